/*
 * Select: attempts its cases in a random order, waits in all of them, each in a branch, and attempts
 * again. It runs on its coroutine's thread; partners may carry out a case on other threads while it
 * waits. The states, the argument and its numbers: docs/internals/select.md.
 */
#include "bide/select.h"

#include "../coroutine/internal.h"

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

/* Each order is equally likely, except for the bias of 32 random bits. */
BIDE_INLINE void select_shuffle(bide_select *select, uint64_t *random)
{
    bide_select_case *cases = select->cases;
    size_t count = select->count;
    uint64_t drawn = *random;
    for (size_t i = 0; i < count; i++) {
        size_t other = (size_t)((next_random(&drawn) >> 32) * (i + 1) >> 32);
        cases[i].turn = cases[other].turn;
        cases[other].turn = i;
    }
    *random = drawn;
}

BIDE_COLD static void arrange_in_order(bide_select *select)
{
    for (size_t i = 0; i < select->count; i++)
        select->cases[i].turn = i;
}

BIDE_INLINE void select_arrange(bide_select *select)
{
    if (BIDE_LIKELY(select->random != NULL))
        select_shuffle(select, select->random);
    else
        arrange_in_order(select);
}

/* The order in which the waits begin: 6. */
BIDE_COLD static void arrange_waits(bide_select *select)
{
    uint64_t random = (uintptr_t)select + select->waits++;
    select_shuffle(select, &random);
}

/* ---- What can be a case ---- */

/* Whether a case is attempted, rather than awaited. */
static bool is_attempted(const bide_select_case *c)
{
    return c->ops->attempt != NULL;
}

/* The operation because of which a case is refused: 7. NULL: there is none. */
static const bide_awaiter *select_refused(const bide_select *select)
{
    for (size_t i = 0; i < select->count; i++) {
        const bide_select_case *c = &select->cases[i];
        const bide_awaiter *refused = c->is_plain ? NULL : bide_choice_refused_(c->awaiter);
        if (BIDE_UNLIKELY(refused != NULL))
            return refused;
    }
    return NULL;
}

/* `awaiting`: the frame that awaits the select, or NULL. */
BIDE_COLD static void select_refuse(bide_select *select, const bide_awaiter *refused,
                                    const bide_frame *awaiting)
{
    for (size_t i = 0; i < select->count; i++)
        bide_wrapper_abandon(&select->cases[i].awaiter);
    select->winner = select->count;
    select->status = -EOPNOTSUPP;
    bide_choice_report_refused_(refused, awaiting, "bide_select_any");
}

/* Whether all cases can be undone; otherwise the select has ended. */
static inline bool select_accepts(bide_select *select, const bide_frame *awaiting)
{
    const bide_awaiter *refused = select_refused(select);
    if (BIDE_LIKELY(refused == NULL))
        return true;
    select_refuse(select, refused, awaiting);
    return false;
}

/* ---- Attempting ---- */

/* If the wait is cancelled before it begins, it has not ended: not with 0. */
static inline void prepare_wait(bide_select_case *c, bide_awaiter *wait)
{
    bide_branch_init(&c->branch, wait);
    c->branch.status = -EAGAIN;
}

/* Attempts a case. If that fails, its branch has the awaiter of the wait. */
static inline bool is_done(bide_select *select, bide_select_case *c, bide_choice *choice)
{
    c->number = (uint32_t)++choice->number;
    if (choice->again)
        choice->ended = c->branch.status;
    select->status = c->ops->attempt(c->awaiter, choice);
    if (select->status == -EAGAIN) {
        prepare_wait(c, choice->wait);
        return false;
    }
    if (BIDE_UNLIKELY(choice->kept)) {
        bide_wrapper_discard(&c->branch.awaited);
        choice->kept = false;
    }
    return true;
}

/* Before a wait: whether a case that is awaited itself is ready. */
static bool is_ready(bide_select *select, bide_select_case *c)
{
    bide_awaiter *awaiter = c->awaiter;
    prepare_wait(c, awaiter);
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
        (first == (size_t)(c - select->cases) + 1 && c->branch.status != select->reason)) {
        bide_wrapper_discard(&c->branch.awaited); /* it is the select's result now */
        return true;
    }
    c->awaiter->ops = c->ops; /* it may be the table of a cancelled operation */
    c->branch.status = -EAGAIN;
    return false;
}

/* Tries all cases, after a wait or not: 1. Returns the turn of the winner, or their number. */
static size_t try_all(bide_select *select, bide_choice *choice)
{
    const size_t count = select->count;
    bide_select_case *const cases = select->cases;
    size_t turn;
    select_arrange(select);
    for (turn = 0; turn < count; turn++) {
        bide_select_case *c = &cases[select->winner = cases[turn].turn];
        if (is_attempted(c) ? is_done(select, c, choice)
            : choice->again ? select_case_completed(select, c)
                            : is_ready(select, c))
            return turn;
    }
    select->winner = turn;
    select->last = choice->number;
    return turn;
}

/*
 * Makes the case the winner that a partner carried out while the select waited: 4. It is the last one
 * that was attempted with a number that is not above the partner's. Returns false if there is none.
 */
BIDE_COLD static bool find_taken(bide_select *select, size_t taken)
{
    size_t number = 0;
    if (taken > select->last)
        return false;
    for (size_t i = 0; i < select->count; i++) {
        const bide_select_case *c = &select->cases[i];
        if (is_attempted(c) && c->number <= taken && c->number > number) {
            number = c->number;
            select->winner = i;
        }
    }
    return number != 0;
}

BIDE_INLINE bool has_taken(bide_select *select, bide_choice *choice)
{
    size_t taken = bide_choice_taken(choice);
    return BIDE_UNLIKELY(taken != 0) && find_taken(select, taken);
}

/* The result of that case: what wrappers and selects make of it. */
BIDE_COLD static int taken_status(bide_select *select, bide_choice *choice)
{
    bide_select_case *c = &select->cases[select->winner];
    return bide_choice_asks_result_(c->ops) ? c->ops->attempt(c->awaiter, choice) : 0;
}

/*
 * Gives back what the cases from this turn on had while they waited, and will not be asked for: the
 * notifications of the attempted ones, 2, and what the others took, 7.
 */
BIDE_INLINE void give_back(bide_select *select, size_t turn)
{
    for (; turn < select->count; turn++) {
        bide_select_case *c = &select->cases[select->cases[turn].turn];
        if (c->branch.status == 0)
            bide_branch_release_(&c->branch);
    }
}

/* ---- Waiting in all of them ---- */

static bide_frame *waiting_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_select *select = bide_container_of(awaiter, bide_select, waiting);
    const bide_context *context = frame->context;
    bide_awaiter_chain others = {NULL, NULL};
    select->context = context;
    bide_branch_group_init_(&select->group, select->count, BIDE_DECIDED_BY_END, context, awaiter);
    for (size_t i = 0; i < select->count; i++)
        bide_branch_prepare_(&select->cases[i].branch, &select->group, i + 1, context);
    if (BIDE_UNLIKELY(select->random == NULL))
        arrange_waits(select);
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

/* All branches have ended. */
static int waiting_resume(bide_awaiter *awaiter)
{
    bide_select *select = bide_container_of(awaiter, bide_select, waiting);
    /* Read once: a request may come at this moment. */
    bide_stop_source *stop = select->context->stop;
    select->reason = stop != NULL ? bide_stop_reason(stop) : 0;
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

/* A partner that has carried out a case has said so: the select says so too: 10. */
static void waiting_release(bide_awaiter *awaiter)
{
    bide_select *select = bide_container_of(awaiter, bide_select, waiting);
    bide_branch_group_end_(&select->group);
    if (has_taken(select, select->offered))
        select->status = 0;
    for (size_t i = 0; i < select->count; i++)
        bide_branch_release_(&select->cases[i].branch);
}

/* Without a case: 5. */
static bide_frame *nothing_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter, (void)frame;
    return NULL;
}

static int nothing_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
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

static bide_awaiter *wait_for_all(bide_select *select, bide_choice *choice)
{
    static const bide_wrapper_ops all = {
        .ops = BIDE_WRAPPER_OPS(NULL, waiting_suspend, waiting_resume, "bide_select"),
        .coroutine = waiting_coroutine,
        .release = waiting_release,
    };
    static const bide_awaiter_ops nothing = {
        .suspend = nothing_suspend,
        .resume = nothing_resume,
        .cancel = nothing_cancel,
        .withdraw = select_nothing_withdraw,
        .name = "bide_select",
    };
    select->waiting.ops = select->count != 0 ? &all.ops : &nothing;
    select->offered = choice;
    bide_atomic_init(&select->group.decided, 0);
    return &select->waiting;
}

/* All branches have ended. Returns true if a case has won. */
BIDE_INLINE bool select_case_ended(bide_select *select, bide_choice *choice)
{
    size_t turn = 0;
    if (has_taken(select, choice))
        select->status = taken_status(select, choice);
    else
        turn = try_all(select, choice);
    if (turn == select->count)
        return false;
    give_back(select, turn);
    return true;
}

/*
 * Undoes the completed case, if possible. A channel's completed operation is not undone.
 */
static void select_release(bide_frame *frame)
{
    bide_select *select = bide_container_of(frame, bide_select, task.frame);
    bide_select_case *c = &select->cases[select->winner];
    if (is_attempted(c))
        bide_choice_release_(c->awaiter, c->ops);
    else
        bide_wrapper_release(&c->awaiter);
}

/* ---- A select as a case of another: 9 ---- */

/* The waits have been given back: the other select, which releases the wait for all, must not do so again. */
static void discard_waits(bide_select *select)
{
    for (size_t i = 0; i < select->count; i++)
        bide_wrapper_discard(&select->cases[i].branch.awaited);
}

static int select_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    bide_select *select = bide_container_of(awaiter, bide_select, task.frame.awaiter);
    bool is_chosen;
    if (choice->again && select->count != 0) {
        is_chosen = select_case_ended(select, choice);
        if (is_chosen)
            discard_waits(select);
    } else {
        is_chosen = !select_accepts(select, NULL) || try_all(select, choice) != select->count;
    }
    if (!is_chosen) {
        choice->wait = wait_for_all(select, choice);
        return -EAGAIN;
    }
    select->task.frame.error = select->status;
    return select->status;
}

/* ---- A select ---- */

/* After a wait. If a partner has carried out a case nothing is attempted. */
static void next_round(bide_choice *choice, const bide_context *context)
{
    if (bide_choice_taken(choice) == 0)
        bide_choice_init(choice);
    choice->scheduler = context->scheduler;
    choice->again = true;
}

static bide_next select_body_step_(bide_frame *frame, unsigned depth);

static const bide_coroutine_type select_type = {.name = "task", .release = select_release};
static const bide_coroutine_type *const select_body_type_ = &select_type;
static const bide_coroutine_code select_body_code = {select_body_step_, "select_body", __FILE__,
                                                     &select_body_type_, NULL};
static const bide_point select_start = {
    {NULL, NULL, NULL, NULL, bide_frame_withdraw_, NULL, select_attempt, BIDE_UNDO_INNER},
    &select_body_code,
    NULL,
    0,
    __LINE__,
    BIDE_AT_START,
};

bide_body(select_body)
{
    bide_begin(select_body, bide_select * self);
    if (!select_accepts(self, self->task.frame.awaiter.frame))
        bide_return(self->status);
    bide_await_status(self->status, bide_yield_point_init_(&self->waiting));
    if (self->status != 0)
        bide_return(self->status);
    bide_choice_init(&self->choice);
    self->choice.scheduler = bide_this_context()->scheduler;
    if (try_all(self, &self->choice) != self->count)
        bide_return(self->status);
    for (;;) {
        bide_await_status(self->status, wait_for_all(self, &self->choice));
        if (self->status != 0) /* without a case */
            bide_return(self->status);
        next_round(&self->choice, bide_this_context());
        if (select_case_ended(self, &self->choice))
            bide_return(self->status);
        self->status = self->reason;
        if (self->status != 0)
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
    select->winner = count;
    select->last = 0;
    select->waits = 0;
}

bide_awaiter *bide_select_any(bide_select *select, bide_select_case *cases, size_t count,
                              uint64_t *random)
{
    select_set_up(select, cases, count, random);
    return bide_task_init(&select->task, &select_start);
}

int bide_select_try(bide_select *select, bide_select_case *cases, size_t count, uint64_t *random)
{
    select_set_up(select, cases, count, random);
    bide_choice_init(&select->choice);
    if (!select_accepts(select, NULL) || try_all(select, &select->choice) != count)
        return select->status;
    return -EAGAIN;
}

bide_awaiter *bide_select_any_in_order(bide_select *select, bide_select_case *cases, size_t count)
{
    return bide_select_any(select, cases, count, NULL);
}

int bide_select_try_in_order(bide_select *select, bide_select_case *cases, size_t count)
{
    return bide_select_try(select, cases, count, NULL);
}
