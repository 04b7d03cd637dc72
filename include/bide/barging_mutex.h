/*
 * A mutex that is not handed over: unlocking it frees it and wakes the first in line, who competes for it with whoever
 * comes (barges in). Floor: sync.
 *
 *     bide_try(bide_barging_mutex_lock(&self->lock, &mutex));
 *     ...
 *     bide_barging_mutex_unlock(&self->lock);
 *
 * Which one to take. A mutex that is handed over (mutex.h) belongs to somebody who does not run yet, for as long as it
 * takes to wake him: thousands of cycles, while a section lasts tens; and all who want it meanwhile get in line too, so
 * once there is a line there is one for good (a convoy). Here whoever runs takes it at once, so that throughput stays
 * what it is without a line. The price is fairness: those who come late pass those who wait. It is bounded twice: who
 * was woken and has lost goes back to the front of the line, and who has lost BIDE_BARGING_LOSSES times is handed it
 * when it is unlocked next, before anybody else; and when BIDE_BARGING_PASSES have passed one who was woken, however
 * long his scheduler takes to run him, the last of them leaves it to him. Take mutex.h where order or the longest wait
 * matters, or a section may suspend, and this one where sections are short and there are many of them.
 *
 * The value of its waiter queue is four bits:
 *
 *     LOCKED       somebody has it
 *     PENDING      one was woken and is on his way to compete: nobody else needs to be
 *     HANDS_OVER   the first in line, or who is about to be that, has lost so often that it is handed to him
 *     RESERVED     (only beside PENDING) so many have passed who is PENDING that it is his when he comes
 *
 *     take         neither LOCKED, HANDS_OVER, RESERVED, SERVING nor CLOSED -> LOCKED. The fast way, also while others
 *                  wait. Who was woken takes PENDING and RESERVED off with it, and RESERVED does not keep him from it
 *     unlock       LOCKED -> not. If one is PENDING: he was passed; too often: + RESERVED.
 *                  If nobody is, and somebody waits: serves
 *     serve        not LOCKED, not PENDING: the first in line goes on: + PENDING, or, HANDS_OVER -> LOCKED
 *     lose         who was woken and could not take it: the last time + HANDS_OVER; enlists; then as giving up
 *     give up      who was woken and is asked to stop, or finds it closed, or is destroyed: - PENDING, - RESERVED, and
 *                  serves
 *
 * 1. Nobody is forgotten: when somebody is in line, and nobody serves, it is LOCKED or one is PENDING. Each of these
 *    ends by a put that serves, unless it ends by another's becoming so.
 * 2. PENDING belongs to one coroutine, from its admission until it has taken the mutex, is in line again, or has given
 *    up. So at most one goes to the front at a time; it keeps PENDING until it is enlisted.
 * 3. HANDS_OVER is set by the one who is PENDING, before he enlists. So whenever neither is PENDING nor LOCKED, he is
 *    the first in line, and the server gives it to him; or he has left the line, and has taken it off (leave).
 * 4. RESERVED comes with PENDING and goes with it, so it is never anybody's who is not on his way; and since it is not
 *    LOCKED beside it, nobody is to wait for but him.
 * 5. Who is in line is passed a bounded number of times, whatever the schedulers do: each unlocking while he is there
 *    finds one PENDING, and counts (`passed`), or makes one so, or hands it over. It is counted from one taking by
 *    somebody who has waited to the next. In between PENDING comes anew only after a loss, of which each has but so
 *    many, or after a giving up. So who never suspends between two lockings suspends at last, and whoever is to run
 *    beside him is run.
 * 6. Nobody takes it while somebody serves. So what the server finds possible stays so, as the queue asks (5 and 7 in
 *    waiter_queue.h), and whoever has it may free it: no server is left.
 *
 * Source: the wakes that compete are those of Go's sync.Mutex and of WebKit's ParkingLot; the hand-over after losses is
 * the former's starvation mode.
 */
#ifndef BIDE_BARGING_MUTEX_H
#define BIDE_BARGING_MUTEX_H

#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

enum {
    BIDE_BARGING_LOCKED_ = BIDE_QUEUE_ONE,
    BIDE_BARGING_PENDING_ = 2 * BIDE_QUEUE_ONE,
    BIDE_BARGING_HANDS_OVER_ = 4 * BIDE_QUEUE_ONE,
    BIDE_BARGING_RESERVED_ = 8 * BIDE_QUEUE_ONE,

    /* in none of these may it be taken */
    BIDE_BARGING_TAKEN_ = BIDE_BARGING_LOCKED_ | BIDE_BARGING_HANDS_OVER_ | BIDE_BARGING_RESERVED_ |
                          BIDE_QUEUE_SERVING_ | BIDE_QUEUE_CLOSED_,

    /* How often one that was woken may find the mutex taken before it is handed to him. */
    BIDE_BARGING_LOSSES = BIDE_CHECK ? 1 : 4,

    /* How often it may be locked and unlocked before those who were woken, until it is left to one of them. */
    BIDE_BARGING_PASSES = BIDE_CHECK ? 2 : 64
};

typedef struct bide_barging_mutex_waiter bide_barging_mutex_waiter;

typedef struct bide_barging_mutex {
    bide_waiter_queue queue;
    bide_barging_mutex_waiter *holder; /* who has locked it last; of the holder */
    uint32_t passed; /* how often since somebody who waited has had it; of the holder */
} bide_barging_mutex;

/* One locking. The caller's, from the beginning of the wait until it has failed, or the mutex is unlocked. */
struct bide_barging_mutex_waiter {
    bide_awaiter awaiter;
    bide_barging_mutex *mutex;
    int status;
    bool has_it;
    bool is_pending;
    bide_frame frame;       /* waits in line, competes, and waits again */
    bide_queue_waiter wait; /* `wants` is how often it has lost */
};

/*
 * Makes a mutex that is free. Before it is shared. The memory may go when it is free and nobody waits; also at once
 * after an unlock, by whoever locked it next: unlocking touches nothing once another can have it.
 */
BIDE_INLINE void bide_barging_mutex_init(bide_barging_mutex *mutex)
{
    bide_waiter_queue_init(&mutex->queue, 0);
    mutex->holder = NULL;
    mutex->passed = 0;
}

/* Takes it if nobody has it, whoever waits; takes `without` off, which does not keep him from it. */
BIDE_INLINE bool bide_barging_mutex_take_(bide_waiter_queue *queue, uintptr_t state,
                                          uintptr_t without)
{
    /* acquire: partner is unlock's release; what was done under the lock before is seen. */
    for (bool again = false; !bide_atomic_compare_exchange(
             &queue->state, &state, (state | BIDE_BARGING_LOCKED_) & ~without, acquire, relaxed);
         again = true) {
        if (again)
            bide_atomic_retry();
        if ((state & BIDE_BARGING_TAKEN_ & ~without) != 0)
            return false;
    }
    return true;
}

/* Takes it if nobody has it, also past those who wait. False: somebody has it, or is being woken or handed it, or it is
 * closed. Any thread; lock-free. */
BIDE_INLINE bool bide_barging_mutex_try_lock(bide_barging_mutex_waiter *waiter,
                                             bide_barging_mutex *mutex)
{
    waiter->mutex = mutex;
    if (!bide_barging_mutex_take_(&mutex->queue, 0, 0))
        return false;
    mutex->holder = waiter;
    return true;
}

BIDE_INLINE bool bide_barging_mutex_ready_(bide_awaiter *awaiter)
{
    bide_barging_mutex_waiter *waiter = (bide_barging_mutex_waiter *)(void *)awaiter;
    waiter->status = 0;
    return bide_barging_mutex_take_(&waiter->mutex->queue, 0, 0);
}

bide_frame *bide_barging_mutex_suspend_(bide_awaiter *awaiter, bide_frame *frame);

BIDE_INLINE int bide_barging_mutex_resume_(bide_awaiter *awaiter)
{
    bide_barging_mutex_waiter *waiter = (bide_barging_mutex_waiter *)(void *)awaiter;
    if (BIDE_LIKELY(waiter->status == 0))
        waiter->mutex->holder = waiter;
    return waiter->status;
}

bool bide_barging_mutex_withdraw_(bide_awaiter *awaiter);

/*
 * Locks `mutex`: takes it if nobody has it, or else waits in line until it has got it. `waiter` is the caller's until
 * the mutex is unlocked. Ends with 0, and the caller has it; or with -EPIPE if it was closed, or, cut short, with
 * -ECANCELED or -ETIMEDOUT (stop.h), and has it not: the next in line is woken instead. Any thread; suspends if it is
 * not free; lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_barging_mutex_lock(bide_barging_mutex_waiter *waiter,
                                                  bide_barging_mutex *mutex)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_barging_mutex_ready_,
        .suspend = bide_barging_mutex_suspend_,
        .resume = bide_barging_mutex_resume_,
        .cancel = NULL,
        .withdraw = bide_barging_mutex_withdraw_,
        .name = "bide_barging_mutex_lock",
    };
    waiter->awaiter.ops = &ops;
    waiter->mutex = mutex;
    return &waiter->awaiter;
}

/*
 * The same for a plain thread, until `deadline` (nanoseconds of bide_platform.now(), or BIDE_FOREVER): returns what the
 * wait ends with, -ETIMEDOUT when the deadline has come. See bide_sync_wait_until. Blocks.
 */
BIDE_INLINE int bide_barging_mutex_lock_blocking(bide_barging_mutex_waiter *waiter,
                                                 bide_barging_mutex *mutex, uint64_t deadline)
{
    return bide_sync_wait_until(bide_barging_mutex_lock(waiter, mutex), deadline);
}

/* Is it locked? Out of date at once, but for who holds it. Any thread; wait-free; gives no order. */
BIDE_INLINE bool bide_barging_mutex_is_locked(bide_barging_mutex *mutex)
{
    return (bide_atomic_load(&mutex->queue.state, relaxed) & BIDE_BARGING_LOCKED_) != 0;
}

/* The rest of unlock: somebody waits, or it is closed. */
void bide_barging_mutex_unlock_slow_(bide_barging_mutex *mutex, uintptr_t state);

BIDE_INLINE void bide_barging_mutex_unlock_(bide_barging_mutex_waiter *waiter)
{
    bide_barging_mutex *mutex = waiter->mutex;
    uintptr_t state = BIDE_BARGING_LOCKED_;
    /* release: partners are the acquires of whoever locks it next. */
    if (BIDE_UNLIKELY(
            !bide_atomic_compare_exchange(&mutex->queue.state, &state, 0, release, relaxed)))
        bide_barging_mutex_unlock_slow_(mutex, state);
}

BIDE_INLINE void bide_barging_mutex_unlock_checked_(bide_barging_mutex_waiter *waiter,
                                                    const char *what, const char *function,
                                                    const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(!bide_barging_mutex_is_locked(waiter->mutex) ||
                      waiter->mutex->holder != waiter))
        bide_misuse_(what, function, file, line);
    else
        bide_barging_mutex_unlock_(waiter);
}

/*
 * Unlocks what was locked with `waiter`; if somebody waits, and nobody has been woken already, the first is, on his
 * scheduler. Any thread (but one at a time, as the holder). Does not suspend, and does not run the other on the
 * caller's stack while a coroutine is running on it. Lock-free. To unlock what this waiter has not locked is misuse,
 * which is caught where BIDE_DEBUG is 1.
 */
#if BIDE_DEBUG
#define bide_barging_mutex_unlock(waiter) \
    bide_barging_mutex_unlock_checked_(   \
        (waiter), BIDE_MISUSE_("a barging mutex is unlocked that this has not locked", #waiter))
#else
#define bide_barging_mutex_unlock(waiter) bide_barging_mutex_unlock_(waiter)
#endif

/*
 * Closes it: who waits, and who locks it later, ends with -EPIPE. Who holds it unlocks it as ever. Any thread, more
 * than once; does not suspend; lock-free.
 */
void bide_barging_mutex_close(bide_barging_mutex *mutex);

BIDE_INLINE void bide_barging_mutex_destroy_checked_(bide_barging_mutex *mutex, const char *what,
                                                     const char *function, const char *file,
                                                     unsigned line)
{
    if (BIDE_QUEUE_VALUE(bide_atomic_load(&mutex->queue.state, relaxed)) != 0 ||
        !bide_waiter_queue_is_idle(&mutex->queue))
        bide_misuse_(what, function, file, line);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if it is locked or waited for. */
#if BIDE_DEBUG
#define bide_barging_mutex_destroy(mutex) \
    bide_barging_mutex_destroy_checked_(  \
        (mutex), BIDE_MISUSE_("a barging mutex is destroyed that is in use", #mutex))
#else
#define bide_barging_mutex_destroy(mutex) ((void)(mutex))
#endif

BIDE_EXTERN_C_END

#endif
