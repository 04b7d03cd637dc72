/* Select; how it goes, and the numbers, are in select.h. */
#include "bide/select.h"

#include "bide/coroutine.h"
#include "bide/stop.h"
#include "bide/extend/wrapper.h"

/* ---- The order of the cases ---- */

static uint64_t next_random(uint64_t *random)
{
    /* (splitmix64: any seed will do) */
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Each order is as likely as any other, but for what a modulus does. */
static void shuffle(bide_select *select)
{
    bide_select_case *cases = select->cases;
    for (size_t i = 0; i < select->count; i++) {
        size_t other = (uint32_t)(next_random(select->random) >> 32) % (uint32_t)(i + 1);
        cases[i].turn = cases[other].turn;
        cases[other].turn = i;
    }
}

/* ---- Trying ---- */

/* Is it of the first kind? */
static bool is_retry(const bide_select_case *c)
{
    return c->ops->suspend == bide_retry_suspend_ || c->ops->suspend == bide_own_retry_suspend_;
}

static bide_retry *retry_of(const bide_select_case *c)
{
    if (c->ops->suspend == bide_own_retry_suspend_)
        return &((bide_own_retry *)(void *)c->awaiter)->retry;
    return (bide_retry *)(void *)c->awaiter;
}

/* Is it a receive on a rendezvous? (It is of the first kind too.) */
static bool is_rendezvous_receive(const bide_select_case *c)
{
    return c->ops->suspend == bide_retry_suspend_ &&
           retry_of(c)->rules == &bide_rendezvous_receive_rules_;
}

static bool is_rendezvous_send(const bide_select_case *c)
{
    return c->ops->suspend == bide_rendezvous_suspend_;
}

static bide_rendezvous_receiver *receiver_of(const bide_select_case *c)
{
    return (bide_rendezvous_receiver *)(void *)c->awaiter;
}

static bide_rendezvous_sender *sender_of(const bide_select_case *c)
{
    return (bide_rendezvous_sender *)(void *)c->awaiter;
}

/* While it does not wait: can it be had? */
static bool is_had(bide_select *select, bide_select_case *c)
{
    bide_awaiter *awaiter = c->awaiter;
    if (is_retry(c)) {
        select->status = bide_retry_attempt_(retry_of(c));
        return select->status != -EAGAIN;
    }
    awaiter->ops = c->ops; /* (it may have been another's, of an operation that was cut short) */
    if (!bide_awaiter_had(awaiter))
        return false;
    select->status = bide_awaiter_resume(awaiter, awaiter->ops);
    return true;
}

/* Was an operation on a rendezvous carried out while the select waited? 4 */
static bool was_chosen(bide_select *select)
{
    /* relaxed: rendezvous.h, 7. */
    size_t taken = bide_atomic_load(&select->choice.taken, relaxed);
    if (taken == 0)
        return false;
    select->winner = taken - 1;
    select->status = 0;
    return true;
}

/* After a wait: the operations on rendezvous are not of a choice any more. */
static void end_choice(bide_select *select)
{
    for (size_t i = 0; i < select->count; i++) {
        bide_select_case *c = &select->cases[i];
        if (is_rendezvous_send(c))
            sender_of(c)->choice = NULL;
        else if (is_rendezvous_receive(c))
            receiver_of(c)->choice = NULL;
    }
}

/* After a wait: 3. */
static bool has_come(bide_select *select, bide_select_case *c)
{
    size_t first = bide_atomic_load(&select->fork.decided, relaxed); /* branch.h, 2 */
    if (is_retry(c) || is_rendezvous_send(c))
        return is_had(select, c);
    select->status = c->branch.status;
    return c->branch.status == 0 ||
           (c == &select->cases[first - 1] && c->branch.status != select->reason);
}

/* Tries all: 1. Is one had? */
static bool try_all(bide_select *select, bool (*is_it)(bide_select *select, bide_select_case *c))
{
    shuffle(select);
    for (size_t i = 0; i < select->count; i++)
        if (is_it(select, &select->cases[select->cases[i].turn])) {
            select->winner = select->cases[i].turn;
            return true;
        }
    select->winner = select->count;
    return false;
}

/* 2 */
static void pass_on(bide_select *select)
{
    for (size_t i = 0; i < select->count; i++) {
        bide_select_case *c = &select->cases[i];
        if (is_retry(c) && c->branch.status == 0 && retry_of(c)->rules->is_possible(retry_of(c)))
            bide_event_count_notify(bide_retry_event_count_(retry_of(c)), 1);
    }
}

/* ---- Waiting in all of them ---- */

/* What the case of this index is awaited by. */
static bide_awaiter *wait_of(bide_select *select, size_t index)
{
    bide_select_case *c = &select->cases[index];
    if (is_rendezvous_send(c))
        return bide_rendezvous_choose_send_(sender_of(c), &select->choice, index + 1);
    if (is_rendezvous_receive(c))
        return bide_rendezvous_choose_receive_(receiver_of(c), &select->choice, index + 1);
    if (is_retry(c))
        return bide_retry_wait_(retry_of(c));
    c->awaiter->ops = c->ops;
    return c->awaiter;
}

static bide_frame *waiting_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_select *select = bide_container_of(awaiter, bide_select, waiting);
    const bide_context *context = frame->context;
    bide_awaiter_chain others = {NULL, NULL};
    bide_fork_init_(&select->fork, select->count, BIDE_DECIDED_BY_END, context, awaiter);
    select->choice.senders = NULL;
    bide_atomic_init(&select->choice.taken, 0);
    for (size_t i = 0; i < select->count; i++) { /* (in the order of the last attempts) */
        size_t turn = select->cases[i].turn;
        bide_branch_init(&select->cases[turn].branch, wait_of(select, turn));
    }
    for (size_t i = 0; i < select->count; i++) {
        bide_select_case *c = &select->cases[i];
        c->branch.status = -EAGAIN; /* not 0 */
        bide_branch_prepare_(&c->branch, &select->fork, i + 1, context);
        if (i != 0)
            bide_awaiter_chain_append(&others, &c->branch.frame.awaiter, &c->branch.frame.awaiter);
    }
    bide_fork_attach_(&select->fork, context);
    bide_frame *first = &select->cases[0].branch.frame;
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
    size_t i = select->fork.passed;
    while (i + 1 < select->count && bide_done(&select->cases[i].branch.frame))
        i++;
    return i < select->count ? &select->cases[i].branch.frame : NULL;
}

static void waiting_give_back(bide_awaiter *awaiter)
{
    bide_select *select = bide_container_of(awaiter, bide_select, waiting);
    bide_fork_end_(&select->fork);
    for (size_t i = 0; i < select->count; i++)
        if (!is_retry(&select->cases[i]))
            bide_branch_give_back_(&select->cases[i].branch);
    end_choice(select);
    pass_on(select);
}

/* Without a case: 5. */
static bide_frame *nothing_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter, (void)frame;
    return NULL;
}

static void nothing_cancel(bide_awaiter *awaiter)
{
    bide_awaiter_end_canceled(awaiter);
    bide_wake_one(awaiter);
}

static bool nothing_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static bide_awaiter *wait_for_all(bide_select *select)
{
    static const bide_wrapper_ops all = {
        .ops = BIDE_WRAPPER_OPS(NULL, waiting_suspend, waiting_resume, "bide_select"),
        .coroutine = waiting_coroutine,
        .give_back = waiting_give_back,
    };
    static const bide_awaiter_ops nothing = {
        .suspend = nothing_suspend,
        .resume = waiting_resume,
        .cancel = nothing_cancel,
        .withdraw = nothing_withdraw,
        .name = "bide_select",
    };
    select->waiting.ops = select->count != 0 ? &all.ops : &nothing;
    return &select->waiting;
}

/* All branches have ended. Is a case had, or the select asked to stop? */
static bool has_ended(bide_select *select, const bide_context *context)
{
    /* (read once: it may be asked at this moment) */
    select->reason = context->stop != NULL ? bide_stop_reason(context->stop) : 0;
    end_choice(select);
    bool had = was_chosen(select) || try_all(select, has_come);
    pass_on(select);
    if (had)
        return true;
    select->status = select->reason;
    return select->status != 0;
}

/* What a case had is given back, if that is possible: what a channel's operation has done is done. */
static void select_give_back(bide_frame *frame)
{
    bide_select *select = bide_container_of(frame, bide_select, task.frame);
    bide_select_case *c = &select->cases[select->winner];
    bide_awaiter *awaiter = c->awaiter;
    if (!is_retry(c) && !is_rendezvous_send(c))
        bide_wrapper_give_back(&awaiter);
}

static const bide_coroutine_type select_type = {.name = "task", .give_back = select_give_back};

bide_coroutine_of(select_type, select_body)
{
    bide_begin(select_body, bide_select * self);
    if (try_all(self, is_had))
        bide_return(self->status);
    for (;;) {
        bide_await(wait_for_all(self));
        if (has_ended(self, bide_this_context()))
            bide_return(self->status);
    }
    bide_end();
}

static void set_up(bide_select *select, bide_select_case *cases, size_t count, uint64_t *random)
{
    select->cases = cases;
    select->count = count;
    select->random = random;
    bide_atomic_init(&select->choice.taken, 0);
}

bide_awaiter *bide_select_any(bide_select *select, bide_select_case *cases, size_t count,
                              uint64_t *random)
{
    set_up(select, cases, count, random);
    return bide_task_init(&select->task, &select_body);
}

int bide_select_try(bide_select *select, bide_select_case *cases, size_t count, uint64_t *random)
{
    set_up(select, cases, count, random);
    return try_all(select, is_had) ? select->status : -EAGAIN;
}
