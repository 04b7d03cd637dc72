/*
 * Select: attempts its cases in a random order, waits in all of them, each in a branch, and attempts
 * again. It runs on its coroutine's thread; partners may carry out a case on other threads while it
 * waits. The states, the argument and its numbers: docs/internals/select.md.
 */
#include "bide/select.h"

#include "bide/coroutine.h"
#include "bide/stop.h"
#include "bide/extend/wrapper.h"

/* ---- The order of the cases ---- */

static uint64_t next_random(uint64_t *random)
{
    /* splitmix64: any seed will do. */
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Each order is equally likely, except for the bias of a modulus. */
static void select_shuffle(bide_select *select)
{
    bide_select_case *cases = select->cases;
    for (size_t i = 0; i < select->count; i++) {
        size_t other = (uint32_t)(next_random(select->random) >> 32) % (uint32_t)(i + 1);
        cases[i].turn = cases[other].turn;
        cases[other].turn = i;
    }
}

/* ---- Attempting ---- */

/* Whether a case is attempted, rather than awaited. */
static bool is_attempted(const bide_select_case *c)
{
    return c->ops->attempt != NULL;
}

/* Attempts a case. If that fails, its branch has the awaiter of the wait. */
static inline bool is_done(bide_select *select, bide_select_case *c)
{
    select->choice.number = (size_t)(c - select->cases) + 1;
    select->status = c->ops->attempt(c->awaiter, &select->choice);
    if (select->status != -EAGAIN)
        return true;
    bide_branch_init(&c->branch, select->choice.wait);
    return false;
}

/* Before a wait: whether a case that is awaited itself is ready. */
static bool is_ready(bide_select *select, bide_select_case *c)
{
    bide_awaiter *awaiter = c->awaiter;
    bide_branch_init(&c->branch, awaiter);
    if (!bide_awaiter_had(awaiter))
        return false;
    select->status = bide_awaiter_resume(awaiter, awaiter->ops);
    return true;
}

/* After a wait: whether a case that is awaited itself has completed: 3. */
static bool select_case_completed(bide_select *select, bide_select_case *c)
{
    size_t first = bide_atomic_load(&select->group.decided, relaxed); /* branch.h, 2 */
    select->status = c->branch.status;
    if (c->branch.status == 0 ||
        (c == &select->cases[first - 1] && c->branch.status != select->reason))
        return true;
    c->awaiter->ops = c->ops; /* it may be the table of a cancelled operation */
    return false;
}

/* Tries all cases, after a wait or not: 1. Returns the turn of the winner, or their number. */
static size_t try_all(bide_select *select, bool waited)
{
    size_t turn;
    select_shuffle(select);
    bide_choice_init(&select->choice);
    for (turn = 0; turn < select->count; turn++) {
        bide_select_case *c = &select->cases[select->winner = select->cases[turn].turn];
        if (is_attempted(c) ? is_done(select, c)
            : waited        ? select_case_completed(select, c)
                            : is_ready(select, c))
            return turn;
    }
    select->winner = turn;
    return turn;
}

/* Whether a partner carried out a case while the select waited: 4. */
static bool was_taken(bide_select *select)
{
    size_t taken = bide_choice_taken(&select->choice);
    if (taken == 0)
        return false;
    select->winner = taken - 1;
    select->status = 0;
    return true;
}

/* Passes on the notifications of the cases from this turn on, which were not attempted: 2. */
static void pass_on(bide_select *select, size_t turn)
{
    for (; turn < select->count; turn++) {
        bide_select_case *c = &select->cases[select->cases[turn].turn];
        if (is_attempted(c) && c->branch.status == 0)
            bide_branch_release_(&c->branch);
    }
}

/* ---- Waiting in all of them ---- */

static bide_frame *waiting_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_select *select = bide_container_of(awaiter, bide_select, waiting);
    const bide_context *context = frame->context;
    bide_awaiter_chain others = {NULL, NULL};
    bide_branch_group_init_(&select->group, select->count, BIDE_DECIDED_BY_END, context, awaiter);
    for (size_t i = 0; i < select->count; i++) {
        bide_select_case *c = &select->cases[i];
        c->branch.status = -EAGAIN; /* not 0 */
        bide_branch_prepare_(&c->branch, &select->group, i + 1, context);
    }
    for (size_t turn = 1; turn < select->count; turn++) { /* 6 */
        bide_awaiter *begun = &select->cases[select->cases[turn].turn].branch.frame.awaiter;
        bide_awaiter_chain_append(&others, begun, begun);
    }
    bide_branch_group_attach_(&select->group, context);
    bide_frame *first = &select->cases[select->cases[0].turn].branch.frame;
    if (others.first != NULL)
        context->scheduler->post(context->scheduler, others.first, others.last);
    return first;
}

static int waiting_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bide_frame *waiting_coroutine(bide_awaiter *awaiter)
{
    bide_select *select = bide_container_of(awaiter, bide_select, waiting);
    size_t i = select->group.passed;
    while (i + 1 < select->count && bide_done(&select->cases[i].branch.frame))
        i++;
    return i < select->count ? &select->cases[i].branch.frame : NULL;
}

static void waiting_release(bide_awaiter *awaiter)
{
    bide_select *select = bide_container_of(awaiter, bide_select, waiting);
    bide_branch_group_end_(&select->group);
    for (size_t i = 0; i < select->count; i++)
        bide_branch_release_(&select->cases[i].branch);
}

/* Without a case: 5. */
static bide_frame *nothing_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter, (void)frame;
    return NULL;
}

static void nothing_cancel(bide_awaiter *awaiter)
{
    bide_awaiter_finish_cancelled(awaiter);
    bide_wake_one(awaiter);
}

static bool select_nothing_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static bide_awaiter *wait_for_all(bide_select *select)
{
    static const bide_wrapper_ops all = {
        .ops = BIDE_WRAPPER_OPS(NULL, waiting_suspend, waiting_resume, "bide_select"),
        .coroutine = waiting_coroutine,
        .release = waiting_release,
    };
    static const bide_awaiter_ops nothing = {
        .suspend = nothing_suspend,
        .resume = waiting_resume,
        .cancel = nothing_cancel,
        .withdraw = select_nothing_withdraw,
        .name = "bide_select",
    };
    select->waiting.ops = select->count != 0 ? &all.ops : &nothing;
    return &select->waiting;
}

/* All branches have ended. Returns true if a case has won, or the select was cancelled. */
static bool select_case_ended(bide_select *select, const bide_context *context)
{
    /* Read once: a request may come at this moment. */
    select->reason = context->stop != NULL ? bide_stop_reason(context->stop) : 0;
    size_t turn = was_taken(select) ? 0 : try_all(select, true);
    if (turn == select->count) {
        select->status = select->reason;
        return select->status != 0;
    }
    pass_on(select, turn);
    return true;
}

/*
 * Undoes the completed case, if possible. A channel's completed operation is not undone.
 */
static void select_release(bide_frame *frame)
{
    bide_select *select = bide_container_of(frame, bide_select, task.frame);
    bide_select_case *c = &select->cases[select->winner];
    bide_awaiter *awaiter = c->awaiter;
    if (is_attempted(c)) { /* as if it had been ready */
        awaiter->ops = c->ops;
        awaiter->frame = NULL;
    }
    bide_wrapper_release(&awaiter);
}

static const bide_coroutine_type select_type = {.name = "task", .release = select_release};

bide_coroutine_of(select_type, select_body)
{
    bide_begin(select_body, bide_select * self);
    if (try_all(self, false) != self->count)
        bide_return(self->status);
    for (;;) {
        bide_await(wait_for_all(self));
        if (select_case_ended(self, bide_this_context()))
            bide_return(self->status);
    }
    bide_end();
}

static void select_set_up(bide_select *select, bide_select_case *cases, size_t count,
                          uint64_t *random)
{
    select->cases = cases;
    select->count = count;
    select->random = random;
}

bide_awaiter *bide_select_any(bide_select *select, bide_select_case *cases, size_t count,
                              uint64_t *random)
{
    select_set_up(select, cases, count, random);
    return bide_task_init(&select->task, &select_body);
}

int bide_select_try(bide_select *select, bide_select_case *cases, size_t count, uint64_t *random)
{
    select_set_up(select, cases, count, random);
    return try_all(select, false) != count ? select->status : -EAGAIN;
}
