/*
 * A condition variable: coroutines that hold a mutex wait, without it, until they are notified.
 * Floor: sync.
 *
 *     bide_try(bide_mutex_lock(&self->lock, &queue->mutex));
 *     self->status = 0;
 *     while (self->status == 0 && queue->count == 0)
 *         bide_await_status(self->status,
 *                           bide_condition_wait(&self->wait, &queue->filled, &self->lock));
 *     ...
 *     bide_mutex_unlock(&self->lock);
 *
 *     wait: enlists, unlocks the mutex, is notified, locks the mutex again
 *
 * Any thread may wait while it holds the mutex, and notify with or without it. First come, first
 * served. All coroutines that wait at one time use one mutex. There are no spurious wake-ups: a
 * wait ends because it was notified, cancelled, or the condition closed. Check the predicate again
 * all the same: between the notification and the locking others may have had the mutex.
 */
#ifndef BIDE_CONDITION_H
#define BIDE_CONDITION_H

#include "bide/mutex.h"

BIDE_EXTERN_C_BEGIN

/* How many may wait at one time: 2^29 - 1, or, where pointers have 32 bits, 2^13 - 1. */
#define BIDE_CONDITION_BITS_ ((sizeof(uintptr_t) * 8 - 5) / 2)
#define BIDE_CONDITION_MAX   (((uintptr_t)1 << BIDE_CONDITION_BITS_) - 1)

typedef struct bide_condition {
    bide_waiter_queue queue;
} bide_condition;

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_condition_waiter {
    bide_awaiter awaiter;
    bool is_locked; /* after the wait: is the mutex? */
    int status;
    bide_mutex_waiter *lock;
    bide_frame frame; /* waits in line, and then for the mutex */
    bide_queue_waiter wait;
} bide_condition_waiter;

/*
 * Makes a condition. The memory may be freed when nobody waits, and no call on it is under way.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_condition_init(bide_condition *condition)
{
    bide_waiter_queue_init(&condition->queue, 0);
}

BIDE_MUST_AWAIT
bide_awaiter *bide_condition_wait_(bide_condition_waiter *waiter, bide_condition *condition,
                                   bide_mutex_waiter *lock);

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_condition_wait_checked_(bide_condition_waiter *waiter,
                                                       bide_condition *condition,
                                                       bide_mutex_waiter *lock, const char *what,
                                                       const char *function, const char *file,
                                                       unsigned line)
{
    if (BIDE_UNLIKELY(lock->mutex == NULL || !bide_mutex_is_locked(lock->mutex) ||
                      lock->mutex->holder != lock))
        bide_misuse_(what, function, file, line);
    return bide_condition_wait_(waiter, condition, lock);
}

/*
 * Waits until it is notified, without the mutex that was locked with `lock`, and locks that again.
 * `waiter` must stay until the wait has ended, `lock` as ever. A cancelled wait has taken
 * no notification. However it ends, the mutex is locked again: to wait for that cannot be cut
 * short. Only if the mutex itself was closed it ends with -EPIPE without it; waiter->is_locked says
 * so.
 *
 * If the coroutine is destroyed while it waits, it does not hold the mutex (is_locked is false),
 * and a notification that it has not received goes to the next (4). Waiting without the mutex is
 * misuse, which is detected if BIDE_DEBUG is 1.
 *
 * As a case of a select it waits for the mutex again before the select ends. If another case was chosen,
 * although this one was notified, the notification goes to the next waiter, and the mutex is unlocked.
 * So look at waiter->is_locked after a select.
 * Threads: the mutex's holder's. Errors: -EPIPE (the condition, or the mutex, was closed),
 * -ECANCELED, -ETIMEDOUT. Suspends: unless it is closed or asked to stop already. Cancel-safe: yes.
 * Progress: lock-free, except for the mutex.
 */
#define bide_condition_wait(waiter, condition, lock) BIDE_CONDITION_WAIT_(waiter, condition, lock)
#if BIDE_DEBUG
#define BIDE_CONDITION_WAIT_(waiter, condition, lock) \
    bide_condition_wait_checked_(                     \
        (waiter), (condition), (lock),                \
        BIDE_MISUSE_("a condition is waited for without its mutex", #lock))
#else
#define BIDE_CONDITION_WAIT_(waiter, condition, lock) \
    bide_condition_wait_((waiter), (condition), (lock))
#endif

/*
 * The same for a plain thread, which waits to be notified until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. Then too the mutex is locked again. See
 * bide_sync_wait_until.
 * Threads: the mutex's holder's, but not that of a loop (sync_wait.h). Errors: as
 * bide_condition_wait; -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_condition_wait_blocking(bide_condition_waiter *waiter,
                                             bide_condition *condition, bide_mutex_waiter *lock,
                                             uint64_t deadline)
{
    return bide_sync_wait_until(bide_condition_wait_(waiter, condition, lock), deadline);
}

#define bide_condition_wait_blocking(...) BIDE_BLOCKS_(bide_condition_wait_blocking(__VA_ARGS__))

/*
 * Notifies the longest-waiting waiter; does nothing if there is none. With the mutex or without it.
 * The waiter does not run on the caller's stack while a coroutine is running on it.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
void bide_condition_notify_one(bide_condition *condition);

/*
 * The same for all that wait now; they go on, one after the other, in the order in which they came.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_condition_notify_all(bide_condition *condition);

/*
 * Closes it: waits end with -EPIPE, now and later, with the mutex. A waiter that was notified
 * before ends with 0. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_condition_close(bide_condition *condition);

BIDE_INLINE void bide_condition_destroy_checked_(bide_condition *condition, const char *what,
                                                 const char *function, const char *file,
                                                 unsigned line)
{
    if (BIDE_QUEUE_VALUE(bide_atomic_load(&condition->queue.state, relaxed)) != 0 ||
        !bide_waiter_queue_is_idle(&condition->queue))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_condition_destroy(condition)                           \
    BIDE_END_OF_LIFE_(bide_condition_destroy_checked_, (condition), \
                      "a condition is destroyed while it is waited for", #condition)

/*
 * Why it is correct: it is a waiter queue; waiter_queue.md has the queue's argument. Its value is two
 * numbers: how many wait, and how many of those have been notified and are not yet taken out of the
 * line.
 *
 *     begin        waiting + 1, by the mutex's holder; then enlists, and only then unlocks it
 *     notify_one   notified + 1, unless that would be more than wait
 *     notify_all   notified = waiting
 *     serve        the first in line continues if notified is not 0; both - 1
 *     leave        waiting - 1
 *
 * 1. No notification is lost between the unlocking and the wait: a notifier that comes after the
 *    mutex was unlocked finds the waiter counted.
 * 2. A notification is for the waiters that were counted when it came, and no other. They are the
 *    first in the line, because they were counted and enlisted in the same order, that in which
 *    they had the mutex. A later waiter does not change how many are notified. Where nobody waits
 *    there is nothing to notify.
 * 3. A notified waiter may be cancelled before it resumes. It ends with 0 all the same, so what
 *    was for it goes to no later waiter. A leaving that is not yet in the value is undone when a
 *    notification comes first (admits_cancelled): the waiter stands where it stood. A waiter that
 *    has left before a notification comes is not counted, and the notification goes to the next.
 * 4. The exception is a coroutine that is destroyed after it was notified, and before it resumes:
 *    it is unknown which waiters were counted then. Its notification goes to the longest-waiting
 *    waiter, which may have come later. That one looks again, as every waiter does.
 *
 * To count a waiter in changes the value beside a server, as a put does, and makes nothing possible
 * or impossible (5 in waiter_queue.md).
 *
 * Source: C. A. R. Hoare, "Monitors: an operating system structuring concept", 1974; the rules are
 * those of POSIX.
 */

BIDE_EXTERN_C_END

#endif
