/*
 * Arriving at a barrier, and waiting there. Any thread may do either. The value of the queue is the
 * phase, the number of parties, and the number of missing arrivals. The argument: the end of
 * cyclic_barrier.h, and docs/internals/waiter_queue.md.
 *
 * The arrival that completes a phase changes the value at once, even while a server is active. So a
 * server may judge by a value in which the phase was not complete, and remove a waiter; it judges
 * that waiter again before it leaves.
 */
#include "bide/cyclic_barrier.h"

#include "bide/stop.h"

#define PARTY ((uintptr_t)BIDE_QUEUE_ONE << BIDE_CYCLIC_BARRIER_BITS_)
#define PHASE ((uintptr_t)1 << BIDE_CYCLIC_BARRIER_BELOW_)

static uintptr_t lacking_in(uintptr_t state)
{
    return state / BIDE_QUEUE_ONE & BIDE_CYCLIC_BARRIER_MAX;
}

static uintptr_t parties_in(uintptr_t state)
{
    return state / PARTY & BIDE_CYCLIC_BARRIER_MAX;
}

static uint32_t phase_in(uintptr_t state)
{
    return (uint32_t)(state >> BIDE_CYCLIC_BARRIER_BELOW_);
}

/* ---- Rules ---- */

static bool cyclic_barrier_is_due(const bide_queue_waiter *waiter, uintptr_t value)
{
    return bide_queue_is_past(value, BIDE_CYCLIC_BARRIER_BELOW_,
                              waiter->wants & ~BIDE_CYCLIC_BARRIER_BACK_);
}

static bool cyclic_barrier_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    return cyclic_barrier_is_due(waiter, *value);
}

static void cyclic_barrier_leave(const bide_queue_waiter *waiter, uintptr_t *value)
{
    if ((waiter->wants & BIDE_CYCLIC_BARRIER_BACK_) != 0)
        *value += BIDE_QUEUE_ONE;
    bide_assert(lacking_in(*value) <= parties_in(*value));
}

const bide_waiter_queue_ops bide_cyclic_barrier_ops_ = {
    .admit = cyclic_barrier_admit, .leave = cyclic_barrier_leave, .is_due = cyclic_barrier_is_due};

/* ---- Arriving ---- */

/* One attempt, at a barrier that is not closed. Returns false if the state changed. */
static bool arrive_once(bide_waiter_queue *queue, bool drops, uintptr_t *state, bool *is_last)
{
    uintptr_t value = BIDE_QUEUE_VALUE(*state) - BIDE_QUEUE_ONE - (drops ? PARTY : 0);
    *is_last = lacking_in(value) == 0;
    if (*is_last)
        value += PHASE + parties_in(value) * BIDE_QUEUE_ONE;
    if (*is_last && (*state & (BIDE_QUEUE_WAITING_ | BIDE_QUEUE_SERVING_)) == BIDE_QUEUE_WAITING_)
        return bide_waiter_queue_put(queue, &bide_cyclic_barrier_ops_, state, value);
    /* release: partners are the acquires that find the phase complete. acquire: for the last one,
     * the arrivals before. */
    return bide_atomic_compare_exchange(&queue->state, state,
                                        value | (*state & (BIDE_QUEUE_ONE - 1)), acq_rel, relaxed);
}

int bide_cyclic_barrier_arrive_(bide_cyclic_barrier *barrier, bool drops,
                                bide_cyclic_barrier_token *token)
{
    /* relaxed: the compare-exchange that follows validates it. */
    uintptr_t state = bide_atomic_load(&barrier->queue.state, relaxed);
    for (;;) {
        *token = (bide_cyclic_barrier_token){phase_in(state), false};
        if ((state & BIDE_QUEUE_CLOSED_) != 0)
            return -EPIPE;
        bide_assert(lacking_in(state) <= parties_in(state));
        if (BIDE_UNLIKELY(lacking_in(state) == 0))
            return -EINVAL;
        if (arrive_once(&barrier->queue, drops, &state, &token->is_last))
            return 0;
        bide_atomic_retry();
    }
}

/* ---- Waiting ---- */

static bool is_complete(bide_awaiter *awaiter)
{
    bide_queue_waiter *waiter = (bide_queue_waiter *)(void *)awaiter;
    /* acquire: partner is the arrivals' release. */
    return cyclic_barrier_is_due(waiter, bide_atomic_load(&waiter->queue->state, acquire));
}

static bide_frame *cyclic_barrier_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    return bide_waiter_queue_suspend((bide_queue_waiter *)(void *)awaiter,
                                     &bide_cyclic_barrier_ops_, frame);
}

/* Arrives if no other party is missing. */
static bool arrive_as_last(bide_awaiter *awaiter)
{
    bide_cyclic_barrier_waiter *waiter = (bide_cyclic_barrier_waiter *)(void *)awaiter;
    bide_waiter_queue *queue = waiter->waiter.queue;
    /* relaxed: the compare-exchange that follows validates it. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while (lacking_in(state) == 1 && (state & BIDE_QUEUE_CLOSED_) == 0) {
        if (arrive_once(queue, false, &state, &waiter->is_last))
            return true;
        bide_atomic_retry();
    }
    return false;
}

/* Arrives; from then on the operation is a wait for that phase. */
static bide_frame *arrive_and_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_cyclic_barrier_waiter *waiter = (bide_cyclic_barrier_waiter *)(void *)awaiter;
    bide_cyclic_barrier *barrier =
        bide_container_of(waiter->waiter.queue, bide_cyclic_barrier, queue);
    bide_cyclic_barrier_token token;
    int status = bide_cyclic_barrier_arrive_(barrier, false, &token);
    if (BIDE_UNLIKELY(status == -EINVAL)) {
        bide_platform.misuse("more arrive at a barrier than it has parties",
                             "bide_cyclic_barrier_arrive_and_wait", __FILE__, __LINE__);
    }
    if (status != 0) {
        bide_awaiter_finish_closed(awaiter);
        return frame;
    }
    waiter->is_last = token.is_last;
    if (token.is_last)
        return frame;
    waiter->waiter.wants = token.phase | BIDE_CYCLIC_BARRIER_BACK_;
    awaiter->ops = &bide_cyclic_barrier_wait_ops_;
    return cyclic_barrier_suspend(awaiter, frame);
}

static int cyclic_barrier_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static void cyclic_barrier_cancel(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel((bide_queue_waiter *)(void *)awaiter, &bide_cyclic_barrier_ops_);
}

static bool cyclic_barrier_withdraw(bide_awaiter *awaiter)
{
    return bide_waiter_queue_withdraw(awaiter, &bide_cyclic_barrier_ops_);
}

const bide_awaiter_ops bide_cyclic_barrier_wait_ops_ = {
    .ready = is_complete,
    .suspend = cyclic_barrier_suspend,
    .resume = cyclic_barrier_resume,
    .cancel = cyclic_barrier_cancel,
    .withdraw = cyclic_barrier_withdraw,
    .name = "bide_cyclic_barrier_wait",
    .undo = BIDE_UNDO_WITHDRAW,
};

const bide_awaiter_ops bide_cyclic_barrier_arrive_and_wait_ops_ = {
    .ready = arrive_as_last,
    .suspend = arrive_and_suspend,
    .resume = cyclic_barrier_resume,
    .cancel = cyclic_barrier_cancel,
    .withdraw = cyclic_barrier_withdraw,
    .name = "bide_cyclic_barrier_arrive_and_wait",
};

void bide_cyclic_barrier_close(bide_cyclic_barrier *barrier)
{
    bide_waiter_queue_close(&barrier->queue, &bide_cyclic_barrier_ops_);
}
