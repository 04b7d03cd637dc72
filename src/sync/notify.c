/*
 * The slow half of notify, and of the auto-reset event: a waiter queue whose value is the number of
 * waits that may end, and a phase. Any thread may notify and wait. The argument: the end of notify.h,
 * and docs/internals/waiter_queue.md.
 */
#include "bide/auto_event.h"

/* A waiter whose phase is past takes nothing: a notification of one is then the next waiter's. */
static bool notify_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    if (bide_notify_is_due_(waiter, *value))
        return true;
    if (bide_queue_number(*value) == 0)
        return false;
    *value -= BIDE_QUEUE_ONE;
    return true;
}

/* A waiter that is due has taken nothing. */
static void notify_admitted(bide_queue_waiter *waiter, uintptr_t value)
{
    if (!bide_notify_is_due_(waiter, value))
        waiter->awaiter.ops = &bide_notify_had_one_;
}

/* The line is empty: one notification is remembered. A second ends all waits that have begun. */
static uintptr_t notify_settle(uintptr_t value)
{
    uintptr_t number = bide_queue_number(value);
    return number > 1 ? value - (number - 1) * BIDE_QUEUE_ONE + BIDE_QUEUE_PHASE_ONE : value;
}

const bide_waiter_queue_ops bide_notify_ops_ = {.admit = notify_admit,
                                                .admitted = notify_admitted,
                                                .is_due = bide_notify_is_due_,
                                                .settle = notify_settle};

/* `anyway`: also if it is closed. */
static void notify_one(bide_notify *notify, bool anyway)
{
    /* relaxed: put validates it. */
    uintptr_t state = bide_atomic_load(&notify->queue.state, relaxed);
    while (anyway || (state & BIDE_QUEUE_CLOSED_) == 0) {
        /* While a server is active, only it knows the number of waiters. */
        uintptr_t max = (state & BIDE_QUEUE_SERVING_) != 0 ? BIDE_QUEUE_NUMBER_MAX : 1;
        uintptr_t more = bide_queue_number(state) < max ? BIDE_QUEUE_ONE : BIDE_QUEUE_PHASE_ONE;
        if (bide_waiter_queue_put(&notify->queue, &bide_notify_ops_, &state,
                                  BIDE_QUEUE_VALUE(state) + more))
            return;
        bide_atomic_retry();
    }
}

void bide_notify_one(bide_notify *notify)
{
    notify_one(notify, false);
}

void bide_notify_all(bide_notify *notify)
{
    /* relaxed: put validates it. */
    uintptr_t state = bide_atomic_load(&notify->queue.state, relaxed);
    while ((state & BIDE_QUEUE_CLOSED_) == 0) {
        if (bide_waiter_queue_put(&notify->queue, &bide_notify_ops_, &state,
                                  BIDE_QUEUE_VALUE(state) + BIDE_QUEUE_PHASE_ONE))
            return;
        bide_atomic_retry();
    }
}

bool bide_notify_withdraw_(bide_awaiter *awaiter)
{
    return bide_waiter_queue_withdraw(awaiter, &bide_notify_ops_);
}

/* A notification from before the close is still there after it. */
bool bide_notify_pass_on_(bide_awaiter *awaiter)
{
    bide_waiter_queue *queue = ((bide_queue_waiter *)(void *)awaiter)->queue;
    notify_one(bide_container_of(queue, bide_notify, queue), true);
    return false;
}

void bide_notify_close(bide_notify *notify)
{
    bide_waiter_queue_close(&notify->queue, &bide_notify_ops_);
}

void bide_auto_event_reset(bide_auto_event *event)
{
    bide_waiter_queue *queue = &event->notify.queue;
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while (bide_queue_number(state) != 0 && (state & BIDE_QUEUE_CLOSED_) == 0) {
        uintptr_t reset = state - bide_queue_number(state) * BIDE_QUEUE_ONE;
        if ((state & BIDE_QUEUE_SERVING_) != 0) {
            /* The notification may be for waiters in line. */
            bide_platform.yield();
            state = bide_atomic_load(&queue->state, relaxed);
            /* acquire: partner is set's release. */
        } else if (bide_atomic_compare_exchange(&queue->state, &state, reset, acquire, relaxed)) {
            return;
        }
    }
}
