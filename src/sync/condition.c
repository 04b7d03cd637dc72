/*
 * The condition variable: counting waiters, waiting, notifying. Any thread may notify. The holder of
 * the mutex waits: a small coroutine that waits in line, and then locks the mutex again. The value
 * of the queue is two numbers, waiting and notified. The argument, with the numbers that the
 * comments below refer to: the end of condition.h, and docs/internals/waiter_queue.md.
 */
#include "bide/condition.h"

#include "bide/handle.h"
#include "bide/stop.h"

/* The two numbers of the value. */
#define ONE_WAITING  ((uintptr_t)BIDE_QUEUE_ONE)
#define ONE_NOTIFIED (ONE_WAITING << BIDE_CONDITION_BITS_)

static uintptr_t waiting_in(uintptr_t state)
{
    return state / ONE_WAITING & BIDE_CONDITION_MAX;
}

static uintptr_t notified_in(uintptr_t state)
{
    return state / ONE_NOTIFIED & BIDE_CONDITION_MAX;
}

static bool condition_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    (void)waiter;
    if (notified_in(*value) == 0)
        return false;
    bide_assert(waiting_in(*value) != 0); /* a waiter in line is counted */
    *value -= ONE_WAITING + ONE_NOTIFIED;
    return true;
}

static void condition_leave(const bide_queue_waiter *waiter, uintptr_t *value)
{
    (void)waiter;
    *value -= ONE_WAITING;
}

/*
 * A leaving waiter is counted until the server has left. A notification in the meantime that admitted
 * no waiter in line was for the leaving waiter, and is dropped.
 */
static uintptr_t condition_settle(uintptr_t value)
{
    uintptr_t waiting = waiting_in(value);
    uintptr_t notified = notified_in(value);
    return notified > waiting ? value - (notified - waiting) * ONE_NOTIFIED : value;
}

static const bide_waiter_queue_ops condition_rules = {.admit = condition_admit,
                                                      .leave = condition_leave,
                                                      .admits_cancelled = true,
                                                      .settle = condition_settle};

/* ---- Notifying ---- */

/* Notifies at most `max` of the counted waiters. */
static void condition_notify(bide_waiter_queue *queue, uintptr_t max)
{
    /* relaxed: the mutex, or another way by which the caller learnt of the waiter, makes its count
     * visible; 1. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    for (;;) {
        bool closed = (state & BIDE_QUEUE_CLOSED_) != 0; /* then all waits end with -EPIPE */
        uintptr_t not_yet = closed ? 0 : waiting_in(state) - notified_in(state);
        uintptr_t count = not_yet < max ? not_yet : max;
        if (count == 0 || bide_waiter_queue_put(queue, &condition_rules, &state,
                                                BIDE_QUEUE_VALUE(state) + count * ONE_NOTIFIED))
            return;
        bide_atomic_retry();
    }
}

void bide_condition_notify_one(bide_condition *condition)
{
    condition_notify(&condition->queue, 1);
}

void bide_condition_notify_all(bide_condition *condition)
{
    condition_notify(&condition->queue, BIDE_CONDITION_MAX);
}

void bide_condition_close(bide_condition *condition)
{
    bide_waiter_queue_close(&condition->queue, &condition_rules);
}

/* ---- Waiting in line ---- */

static bide_condition_waiter *condition_waiter_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_condition_waiter, wait.awaiter);
}

/* Returns false if the condition is closed. */
static bool condition_count_in(bide_waiter_queue *queue)
{
    for (;;) {
        /* acquire: partner is close's release; writes from before it are visible. */
        uintptr_t state = bide_atomic_load(&queue->state, acquire);
        if ((state & BIDE_QUEUE_CLOSED_) != 0)
            return false;
        if (BIDE_UNLIKELY(waiting_in(state) == BIDE_CONDITION_MAX))
            bide_platform.misuse("a condition has too many waiters", __func__, __FILE__, __LINE__);
        /* relaxed: the mutex shows it to the notifier, and arriving releases the waiter; 1. */
        if (bide_atomic_compare_exchange(&queue->state, &state, state + ONE_WAITING, relaxed,
                                         relaxed))
            return true;
        bide_atomic_retry();
    }
}

static bide_frame *condition_wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_condition_waiter *waiter = condition_waiter_of(awaiter);
    if (!condition_count_in(waiter->wait.queue)) {
        bide_awaiter_finish_closed(awaiter);
        return frame;
    }
    bide_queue_waiter_start(&waiter->wait);
    bide_waiter_queue_enlist(&waiter->wait, &condition_rules);
    waiter->is_locked = false;
    bide_mutex_unlock_(waiter->lock);
    return bide_waiter_queue_arm(&waiter->wait) ? frame : NULL;
}

static int condition_wait_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static void condition_wait_cancel(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel(&condition_waiter_of(awaiter)->wait, &condition_rules);
}

static bool condition_wait_withdraw(bide_awaiter *awaiter)
{
    bide_waiter_queue *queue = condition_waiter_of(awaiter)->wait.queue;
    if (bide_waiter_queue_withdraw(awaiter, &condition_rules))
        return true;
    condition_notify(queue, 1);
    return false;
}

static const bide_awaiter_ops condition_wait_ops = {
    .suspend = condition_wait_suspend,
    .resume = condition_wait_resume,
    .cancel = condition_wait_cancel,
    .withdraw = condition_wait_withdraw,
    .name = "bide_condition_wait",
};

/* ---- A waiter's coroutine: it waits in line, and then for the mutex ---- */

static bide_next condition_step(bide_frame *frame, unsigned depth);

static const bide_coroutine_code condition_code = {condition_step, "bide_condition_wait", __FILE__,
                                                   NULL, NULL};
static const bide_point condition_waits = BIDE_POINT(&condition_code, NULL, 0, BIDE_AT_AWAIT);
static const bide_point condition_locks = BIDE_POINT(&condition_code, NULL, 1, BIDE_AT_AWAIT);

/* An await that cannot be cancelled: the stop source does not know the operation. */
static bide_frame *await_unstoppable(bide_frame *frame, bide_awaiter *awaiter)
{
    frame->awaiter.link = awaiter;
    awaiter->frame = frame;
    return awaiter->ops->ready(awaiter) ? frame : awaiter->ops->suspend(awaiter, frame);
}

/* At `waits` the wait has ended, at `locks` the lock. */
static bide_next condition_step(bide_frame *frame, unsigned depth)
{
    bide_condition_waiter *waiter = bide_container_of(frame, bide_condition_waiter, frame);
    bide_awaiter *wait = &waiter->wait.awaiter;
    bide_awaiter *lock = &waiter->lock->waiter.awaiter;
    (void)depth;
    if (frame->awaiter.ops == &condition_waits.ops) {
        waiter->status = bide_awaiter_resume(wait, wait->ops);
        if (!waiter->is_locked) {
            frame->awaiter.ops = &condition_locks.ops;
            bide_await_later(bide_mutex_lock(waiter->lock, waiter->lock->mutex));
            bide_frame *next = await_unstoppable(frame, lock);
            if (next != frame)
                return bide_next_frame(next);
        }
    }
    if (frame->awaiter.ops == &condition_locks.ops) {
        int status = bide_awaiter_resume(lock, lock->ops);
        waiter->is_locked = status == 0;
        if (status != 0)
            waiter->status = status;
    }
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(waiter->awaiter.frame);
}

static bide_frame *condition_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_condition_waiter *waiter = bide_container_of(awaiter, bide_condition_waiter, awaiter);
    waiter->frame.awaiter.ops = &condition_waits.ops;
    waiter->frame.awaiter.frame = frame;
    waiter->frame.context = frame->context;
    bide_frame *next = bide_frame_await(&waiter->frame, &waiter->wait.awaiter);
    return next == &waiter->frame ? condition_step(next, 0).frame : next;
}

static int condition_resume(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_condition_waiter, awaiter)->status;
}

static bool condition_withdraw(bide_awaiter *awaiter)
{
    bide_condition_waiter *waiter = bide_container_of(awaiter, bide_condition_waiter, awaiter);
    if (!bide_done(&waiter->frame)) {
        bool was_notified =
            waiter->frame.awaiter.ops == &condition_locks.ops && waiter->status == 0;
        bide_destroy(&waiter->frame);
        if (was_notified)
            condition_notify(waiter->wait.queue, 1);
        return true;
    }
    if (waiter->status == 0)
        condition_notify(waiter->wait.queue, 1);
    if (waiter->is_locked) {
        waiter->is_locked = false;
        bide_mutex_unlock_(waiter->lock);
    }
    return false;
}

bide_awaiter *bide_condition_wait_(bide_condition_waiter *waiter, bide_condition *condition,
                                   bide_mutex_waiter *lock)
{
    static const bide_awaiter_ops ops = {
        .suspend = condition_suspend,
        .resume = condition_resume,
        .withdraw = condition_withdraw,
        .name = "bide_condition_wait",
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->awaiter.ops = &ops;
    waiter->is_locked = true;
    waiter->lock = lock;
    waiter->wait.awaiter.ops = &condition_wait_ops;
    waiter->wait.queue = &condition->queue;
    return &waiter->awaiter;
}
