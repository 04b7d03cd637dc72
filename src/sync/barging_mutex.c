/*
 * The slow half of the barging mutex: unlocking with waiters, and waiting. Any thread may wait; the
 * holder unlocks. A wait is a small coroutine: it waits in line, is woken to compete (PENDING), and
 * waits again if it lost. The states and the argument, with the numbers that the comments below
 * refer to: docs/internals/barging_mutex.md and waiter_queue.md.
 */
#include "bide/barging_mutex.h"

#include "bide/handle.h"
#include "bide/stop.h"

#define LOCKED     ((uintptr_t)BIDE_BARGING_LOCKED_)
#define PENDING    ((uintptr_t)BIDE_BARGING_PENDING_)
#define HANDS_OVER ((uintptr_t)BIDE_BARGING_HANDS_OVER_)
#define RESERVED   ((uintptr_t)BIDE_BARGING_RESERVED_)

typedef bide_barging_mutex_waiter waiter_type;

/* ---- Rules ---- */

static bool is_handed_over(const bide_queue_waiter *waiter)
{
    return waiter->wants > BIDE_BARGING_LOSSES;
}

static bool barging_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    bide_assert((*value & RESERVED) == 0 || (*value & (PENDING | LOCKED)) == PENDING); /* 4 */
    if ((*value & (LOCKED | PENDING)) != 0)
        return false;
    if (is_handed_over(waiter))
        *value = (*value & ~HANDS_OVER) | LOCKED;
    else
        *value |= PENDING;
    return true;
}

static void barging_leave(const bide_queue_waiter *waiter, uintptr_t *value)
{
    if (is_handed_over(waiter))
        *value &= ~HANDS_OVER;
}

static bool barging_goes_first(const bide_queue_waiter *waiter)
{
    return waiter->wants != 0;
}

static const bide_waiter_queue_ops barging_rules = {
    .admit = barging_admit, .leave = barging_leave, .goes_first = barging_goes_first};

/* ---- Unlocking ---- */

void bide_barging_mutex_unlock_slow_(bide_barging_mutex *mutex, uintptr_t state)
{
    bide_atomic(uintptr_t) *word = &mutex->queue.state;
    /* Only while the mutex is still this holder's: 5. */
    uint32_t passed = mutex->passed;
    if ((state & PENDING) != 0 && passed < BIDE_BARGING_PASSES)
        mutex->passed = ++passed;
    for (;;) {
        if (BIDE_UNLIKELY((state & LOCKED) == 0)) {
            bide_platform.misuse("a barging mutex is unlocked that is not locked", __func__,
                                 __FILE__, __LINE__);
            return;
        }
        uintptr_t value = BIDE_QUEUE_VALUE(state) & ~LOCKED;
        if ((state & PENDING) != 0) {
            uintptr_t reserved = passed < BIDE_BARGING_PASSES ? (uintptr_t)0 : RESERVED;
            uintptr_t unlocked = (state & ~LOCKED) | reserved;
            /* release: partners are the acquires of the next holder. */
            if (bide_atomic_compare_exchange(word, &state, unlocked, release, relaxed))
                return;
        } else if (bide_waiter_queue_put(&mutex->queue, &barging_rules, &state, value)) {
            return;
        }
        bide_atomic_retry();
    }
}

/* The waiter no longer competes; the next may have to be woken. */
static void barging_end_pending(waiter_type *waiter)
{
    bide_waiter_queue *queue = &waiter->mutex->queue;
    waiter->is_pending = false;
    /* relaxed: put validates it. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while (!bide_waiter_queue_put(queue, &barging_rules, &state,
                                  BIDE_QUEUE_VALUE(state) & ~(PENDING | RESERVED)))
        bide_atomic_retry();
}

/* ---- One wait in line ---- */

static waiter_type *barging_waiter_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, waiter_type, wait.awaiter);
}

static bool barging_wait_ready(bide_awaiter *awaiter)
{
    waiter_type *waiter = barging_waiter_of(awaiter);
    bide_barging_mutex *mutex = waiter->mutex;
    bide_assert(!waiter->has_it);
    if (!waiter->is_pending) {
        waiter->has_it = bide_barging_mutex_take_(&mutex->queue, 0, 0);
    } else if (bide_barging_mutex_take_(&mutex->queue, PENDING, PENDING | RESERVED)) {
        waiter->has_it = true;
        waiter->is_pending = false;
        mutex->passed = 0;
    }
    return waiter->has_it;
}

/* It has lost too often: requests the next hand-over. Returns false if it took the mutex instead. */
static bool barging_request_hand_over(waiter_type *waiter)
{
    bide_waiter_queue *queue = &waiter->mutex->queue;
    while (!barging_wait_ready(&waiter->wait.awaiter)) {
        /* relaxed: the compare-exchange that follows validates it. */
        uintptr_t state = bide_atomic_load(&queue->state, relaxed);
        /* relaxed: it takes effect when PENDING is taken off, which releases; 3. */
        if ((state & BIDE_BARGING_TAKEN_ & ~RESERVED) != 0 &&
            bide_atomic_compare_exchange(&queue->state, &state, state | HANDS_OVER, relaxed,
                                         relaxed))
            return true;
    }
    return false;
}

static bide_frame *barging_wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    waiter_type *waiter = barging_waiter_of(awaiter);
    bide_queue_waiter *wait = &waiter->wait;
    /* acquire: partner is close's release; writes from before it are visible. */
    if ((bide_atomic_load(&wait->queue->state, acquire) & BIDE_QUEUE_CLOSED_) != 0) {
        bide_awaiter_finish_closed(awaiter);
        return frame;
    }
    if (bide_spin_until_ready(awaiter, frame))
        return frame;
    if (waiter->is_pending) {
        wait->wants++;
        if (is_handed_over(wait) && !barging_request_hand_over(waiter))
            return frame;
    }
    bide_queue_waiter_start(wait);
    bide_waiter_queue_enlist(wait, &barging_rules);
    if (waiter->is_pending)
        barging_end_pending(waiter); /* 2 */
    return bide_waiter_queue_arm(wait) ? frame : NULL;
}

/* It was handed the mutex, or woken to compete. */
static int barging_wait_resume(bide_awaiter *awaiter)
{
    waiter_type *waiter = barging_waiter_of(awaiter);
    if (!waiter->has_it) {
        waiter->has_it = is_handed_over(&waiter->wait);
        waiter->is_pending = !waiter->has_it;
        if (waiter->has_it)
            waiter->mutex->passed = 0;
    }
    return 0;
}

static void barging_wait_cancel(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel(&barging_waiter_of(awaiter)->wait, &barging_rules);
}

/* If the coroutine is destroyed, its mutex or its turn to compete goes to the next waiter. */
static bool barging_wait_withdraw(bide_awaiter *awaiter)
{
    waiter_type *waiter = barging_waiter_of(awaiter);
    if (waiter->has_it) { /* it took the mutex without suspending, and yielded then */
        bide_barging_mutex_unlock_(waiter);
        return false;
    }
    if (bide_waiter_queue_withdraw(awaiter, &barging_rules))
        return true;
    if (is_handed_over(&waiter->wait))
        bide_barging_mutex_unlock_(waiter);
    else
        barging_end_pending(waiter);
    return false;
}

static const bide_awaiter_ops barging_wait_ops = {
    .ready = barging_wait_ready,
    .suspend = barging_wait_suspend,
    .resume = barging_wait_resume,
    .cancel = barging_wait_cancel,
    .withdraw = barging_wait_withdraw,
    .name = "bide_barging_mutex_lock",
};

/* ---- A waiter's coroutine: it waits in line until it has the mutex ---- */

static bide_next barging_lock_step(bide_frame *frame, unsigned depth);

static const bide_coroutine_code barging_lock_code = {barging_lock_step, "bide_barging_mutex_lock",
                                                      __FILE__, NULL, NULL};
static const bide_point barging_lock_waits = BIDE_POINT(&barging_lock_code, NULL, 0, BIDE_AT_AWAIT);

static bide_frame *barging_lock_wait(waiter_type *waiter)
{
    waiter->wait.awaiter.ops = &barging_wait_ops;
    return bide_frame_await(&waiter->frame, &waiter->wait.awaiter);
}

static bide_next barging_lock_step(bide_frame *frame, unsigned depth)
{
    waiter_type *waiter = bide_container_of(frame, waiter_type, frame);
    bide_awaiter *wait = &waiter->wait.awaiter;
    (void)depth;
    for (;;) {
        waiter->status = bide_awaiter_resume(wait, wait->ops);
        if (waiter->status < 0 || waiter->has_it)
            break;
        bide_frame *next = barging_lock_wait(waiter);
        if (next != frame)
            return bide_next_frame(next);
    }

    if (waiter->is_pending)
        barging_end_pending(waiter);
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(waiter->awaiter.frame);
}

bide_frame *bide_barging_mutex_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    waiter_type *waiter = (waiter_type *)(void *)awaiter;
    waiter->has_it = false;
    waiter->is_pending = false;
    waiter->wait.queue = &waiter->mutex->queue;
    waiter->wait.wants = 0;
    waiter->frame.awaiter.ops = &barging_lock_waits.ops;
    waiter->frame.awaiter.frame = frame;
    waiter->frame.context = frame->context;
    bide_frame *next = barging_lock_wait(waiter);
    return next == &waiter->frame ? barging_lock_step(next, 0).frame : next;
}

bool bide_barging_mutex_withdraw_(bide_awaiter *awaiter)
{
    waiter_type *waiter = (waiter_type *)(void *)awaiter;
    if (bide_awaiter_suspended(awaiter) && !bide_done(&waiter->frame)) {
        bide_destroy(&waiter->frame);
        /* It was asked to stop when it was about to compete, at a give-way: its wait has not begun. */
        if (waiter->is_pending && waiter->wait.awaiter.ops != &barging_wait_ops)
            barging_end_pending(waiter);
        return true;
    }
    if (waiter->status == 0)
        bide_barging_mutex_unlock_(waiter);
    return false;
}

void bide_barging_mutex_close(bide_barging_mutex *mutex)
{
    bide_waiter_queue_close(&mutex->queue, &barging_rules);
}
