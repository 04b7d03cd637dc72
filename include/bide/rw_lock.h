/*
 * A reader-writer lock: many readers at a time, or one writer. First come, first served: a waiting
 * writer holds back the readers that arrive after it, and adjacent readers in the line are admitted
 * together. Floor: sync.
 *
 *     bide_try(bide_rw_lock_read(&self->lock, &table));
 *     ...
 *     bide_rw_lock_unlock(&self->lock);
 *
 *     free --read--> read by 1 --read--> read by 2 ...     free --write--> written
 *     written --downgrade--> read by 1                     each --unlock--> back, or handed over
 *
 * Any thread may lock. A holder is identified by its waiter, as with the mutex: `self->lock` above is
 * the key, which must not move until the unlock. Neither readers nor writers starve. A holder must not
 * lock again, not even a reader for reading: if a writer is waiting, the holder deadlocks.
 *
 * Without contention, a reader locks and unlocks with one atomic read-modify-write each. All readers
 * modify the same word, so its cache line travels between their processors. The lock pays off only if
 * a read section takes longer than that.
 *
 * Why it is correct: it is a waiter queue whose value is a bit for the writer, and above it the number
 * of readers; docs/internals/waiter_queue.md has the argument. Unlocking and downgrading only ever
 * admit more waiters (5 there).
 *
 * Source: "Concurrent control with readers and writers" of Courtois, Heymans and Parnas, 1971; the
 * fair line is that of Tokio's RwLock.
 */
#ifndef BIDE_RW_LOCK_H
#define BIDE_RW_LOCK_H

#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

enum {
    BIDE_RW_LOCK_WRITER_ = BIDE_QUEUE_ONE,
    BIDE_RW_LOCK_READER_ = 2 * BIDE_QUEUE_ONE /* one of them */
};

/* What a waiter wants, and what it holds. */
enum { BIDE_RW_LOCK_NONE_, BIDE_RW_LOCK_READS_, BIDE_RW_LOCK_WRITES_ };

typedef struct bide_rw_lock {
    bide_waiter_queue queue;
} bide_rw_lock;

/* One locking. The caller's memory until the wait has failed, or the lock is unlocked. */
typedef struct bide_rw_lock_waiter {
    bide_queue_waiter waiter; /* at the head: it is the awaiter */
    uint32_t holds;
} bide_rw_lock_waiter;

extern const bide_waiter_queue_ops bide_rw_lock_ops_;

/*
 * Makes a free lock. The memory may be freed when it is free and has no waiters. Its last holder may let
 * the memory go at once after its own unlock, though the unlock that let it in has not returned:
 * unlocking touches nothing once another can have the lock.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_rw_lock_init(bide_rw_lock *lock)
{
    bide_waiter_queue_init(&lock->queue, 0);
}

/*
 * Is it locked, to read or to write? The answer is out of date at once, except for a holder. Gives
 * no order.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_rw_lock_is_locked(bide_rw_lock *lock)
{
    return BIDE_QUEUE_VALUE(bide_atomic_load(&lock->queue.state, relaxed)) != 0;
}

/* ---- Taking it at once ---- */

BIDE_INLINE bool bide_rw_lock_take_read_(bide_waiter_queue *queue)
{
    /* relaxed: what is found is compared by what follows. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    /* neither a writer nor a flag */
    while ((state & (BIDE_RW_LOCK_READER_ - 1)) == 0) {
        /* acquire: partner is the release of the writers' unlocking and downgrading. */
        if (bide_atomic_compare_exchange_weak(&queue->state, &state, state + BIDE_RW_LOCK_READER_,
                                              acquire, relaxed))
            return true;
        bide_atomic_retry();
    }
    return false;
}

BIDE_INLINE bool bide_rw_lock_take_write_(bide_waiter_queue *queue)
{
    uintptr_t state = 0;
    /* acquire: partner is the release of every unlocking. */
    return bide_atomic_compare_exchange(&queue->state, &state, BIDE_RW_LOCK_WRITER_, acquire,
                                        relaxed);
}

/*
 * Takes it to read if nobody writes or waits. False: not so, or it is closed.
 * Threads: any. Progress: lock-free.
 */
BIDE_INLINE bool bide_rw_lock_try_read(bide_rw_lock_waiter *waiter, bide_rw_lock *lock)
{
    bool took = bide_rw_lock_take_read_(&lock->queue);
    waiter->waiter.queue = &lock->queue;
    waiter->holds = took ? BIDE_RW_LOCK_READS_ : BIDE_RW_LOCK_NONE_;
    return took;
}

/*
 * Takes it to write if it is free and nobody waits. False: not so, or it is closed.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_rw_lock_try_write(bide_rw_lock_waiter *waiter, bide_rw_lock *lock)
{
    bool took = bide_rw_lock_take_write_(&lock->queue);
    waiter->waiter.queue = &lock->queue;
    waiter->holds = took ? BIDE_RW_LOCK_WRITES_ : BIDE_RW_LOCK_NONE_;
    return took;
}

/* ---- Waiting for it ---- */

BIDE_INLINE bool bide_rw_lock_read_ready_(bide_awaiter *awaiter)
{
    return bide_rw_lock_take_read_(((bide_queue_waiter *)(void *)awaiter)->queue);
}

BIDE_INLINE bool bide_rw_lock_write_ready_(bide_awaiter *awaiter)
{
    return bide_rw_lock_take_write_(((bide_queue_waiter *)(void *)awaiter)->queue);
}

BIDE_INLINE bide_frame *bide_rw_lock_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    return bide_waiter_queue_suspend((bide_queue_waiter *)(void *)awaiter, &bide_rw_lock_ops_,
                                     frame);
}

BIDE_INLINE int bide_rw_lock_resume_(bide_awaiter *awaiter)
{
    bide_rw_lock_waiter *waiter = (bide_rw_lock_waiter *)(void *)awaiter;
    waiter->holds = waiter->waiter.wants;
    return 0;
}

BIDE_INLINE void bide_rw_lock_cancel_(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel((bide_queue_waiter *)(void *)awaiter, &bide_rw_lock_ops_);
}

/* What was handed to a coroutine that is destroyed goes to the next waiter. */
bool bide_rw_lock_withdraw_(bide_awaiter *awaiter);

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_rw_lock_start_(bide_rw_lock_waiter *waiter, bide_rw_lock *lock,
                                              uint32_t wants, const bide_awaiter_ops *ops)
{
    waiter->waiter.awaiter.ops = ops;
    waiter->waiter.queue = &lock->queue;
    waiter->waiter.wants = wants;
    waiter->holds = BIDE_RW_LOCK_NONE_;
    return &waiter->waiter.awaiter;
}

/*
 * Locks `lock` to read, beside other readers: waits while it is written, and for earlier waiters.
 * `waiter` must stay until the lock is unlocked. If it ends with 0 the caller holds the lock,
 * otherwise not: a hand-over that came before the wait was cancelled counts, a later one goes to
 * the next waiter.
 * Threads: any. Errors: -EPIPE (closed), -ECANCELED, -ETIMEDOUT. Suspends: if it cannot be had at
 * once. Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_rw_lock_read(bide_rw_lock_waiter *waiter, bide_rw_lock *lock)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_rw_lock_read_ready_,
        .suspend = bide_rw_lock_suspend_,
        .resume = bide_rw_lock_resume_,
        .cancel = bide_rw_lock_cancel_,
        .withdraw = bide_rw_lock_withdraw_,
        .name = "bide_rw_lock_read",
        .attempt = NULL,
        .undo = BIDE_UNDO_NONE,
    };
    return bide_rw_lock_start_(waiter, lock, BIDE_RW_LOCK_READS_, &ops);
}

/*
 * The same to write, alone.
 * Threads: any. Errors: as bide_rw_lock_read. Suspends: if it cannot be had at once. Cancel-safe:
 * yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_rw_lock_write(bide_rw_lock_waiter *waiter, bide_rw_lock *lock)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_rw_lock_write_ready_,
        .suspend = bide_rw_lock_suspend_,
        .resume = bide_rw_lock_resume_,
        .cancel = bide_rw_lock_cancel_,
        .withdraw = bide_rw_lock_withdraw_,
        .name = "bide_rw_lock_write",
        .attempt = NULL,
        .undo = BIDE_UNDO_NONE,
    };
    return bide_rw_lock_start_(waiter, lock, BIDE_RW_LOCK_WRITES_, &ops);
}

/*
 * Both for a plain thread, which they block until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any. Errors: as bide_rw_lock_read; -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_rw_lock_read_blocking(bide_rw_lock_waiter *waiter, bide_rw_lock *lock,
                                           uint64_t deadline)
{
    return bide_sync_wait_until(bide_rw_lock_read(waiter, lock), deadline);
}

BIDE_INLINE int bide_rw_lock_write_blocking(bide_rw_lock_waiter *waiter, bide_rw_lock *lock,
                                            uint64_t deadline)
{
    return bide_sync_wait_until(bide_rw_lock_write(waiter, lock), deadline);
}

/* ---- Giving it back ---- */

/* The rest of unlock: it has waiters or other readers, or it is closed. */
void bide_rw_lock_unlock_slow_(bide_waiter_queue *queue, uintptr_t state, uintptr_t held);

BIDE_INLINE void bide_rw_lock_unlock_(bide_rw_lock_waiter *waiter)
{
    bide_waiter_queue *queue = waiter->waiter.queue;
    uintptr_t held = BIDE_RW_LOCK_WRITER_;
    uintptr_t state = BIDE_RW_LOCK_WRITER_;
    if (waiter->holds != BIDE_RW_LOCK_WRITES_) {
        held = BIDE_RW_LOCK_READER_;
        /* relaxed: what is found is compared. (A writer knows what there is if nobody waits.) */
        state = bide_atomic_load(&queue->state, relaxed);
    }
    waiter->holds = BIDE_RW_LOCK_NONE_;
    /* release: partners are the acquires of the next holder. */
    if (BIDE_UNLIKELY(
            (state & (BIDE_QUEUE_ONE - 1)) != 0 ||
            !bide_atomic_compare_exchange(&queue->state, &state, state - held, release, relaxed)))
        bide_rw_lock_unlock_slow_(queue, state, held);
}

void bide_rw_lock_downgrade_(bide_rw_lock_waiter *waiter);

BIDE_INLINE void bide_rw_lock_unlock_checked_(bide_rw_lock_waiter *waiter, const char *what,
                                              const char *function, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(waiter->holds == BIDE_RW_LOCK_NONE_))
        bide_misuse_(what, function, file, line);
    else
        bide_rw_lock_unlock_(waiter);
}

BIDE_INLINE void bide_rw_lock_downgrade_checked_(bide_rw_lock_waiter *waiter, const char *what,
                                                 const char *function, const char *file,
                                                 unsigned line)
{
    if (BIDE_UNLIKELY(waiter->holds != BIDE_RW_LOCK_WRITES_))
        bide_misuse_(what, function, file, line);
    else
        bide_rw_lock_downgrade_(waiter);
}

/*
 * bide_rw_lock_unlock unlocks what was locked with `waiter`. The waiters whose turn it is hold the
 * lock from now on, and are woken on their schedulers, but not on the caller's stack while a
 * coroutine is running on it. To unlock what this waiter has not locked is misuse, which is caught
 * where BIDE_DEBUG is 1.
 *
 * bide_rw_lock_downgrade: the writer reads from now on, and so do the readers that are next in
 * line; no writer comes in between. As unlock otherwise.
 * Threads: any, on behalf of the holder. Suspends: never. Progress: lock-free.
 */
#if BIDE_DEBUG
#define bide_rw_lock_unlock(waiter)                                                         \
    bide_rw_lock_unlock_checked_(                                                           \
        (waiter),                                                                           \
        BIDE_MISUSE_("a reader-writer lock is unlocked by a waiter that has not locked it", \
                     #waiter))
#define bide_rw_lock_downgrade(waiter)                                                        \
    bide_rw_lock_downgrade_checked_(                                                          \
        (waiter),                                                                             \
        BIDE_MISUSE_(                                                                         \
            "a reader-writer lock is downgraded by a waiter that has not locked it to write", \
            #waiter))
#else
#define bide_rw_lock_unlock(waiter)    bide_rw_lock_unlock_(waiter)
#define bide_rw_lock_downgrade(waiter) bide_rw_lock_downgrade_(waiter)
#endif

/*
 * Closes it: waiters end with -EPIPE, and so do later lockings. Holders unlock it as ever. More
 * than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_rw_lock_close(bide_rw_lock *lock);

BIDE_INLINE void bide_rw_lock_destroy_checked_(bide_rw_lock *lock, const char *what,
                                               const char *function, const char *file,
                                               unsigned line)
{
    if (bide_rw_lock_is_locked(lock) || !bide_waiter_queue_is_idle(&lock->queue))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if the lock is
 * held or waited for.
 * Threads: any. Progress: wait-free.
 */
#define bide_rw_lock_destroy(lock)                           \
    BIDE_END_OF_LIFE_(bide_rw_lock_destroy_checked_, (lock), \
                      "a reader-writer lock is destroyed while it is in use", #lock)

BIDE_EXTERN_C_END

#endif
