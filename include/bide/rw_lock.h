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
 * One of the readers may be upgradable: it reads beside the others, and can become the writer without
 * another writer in between. So what it has read still holds when it writes.
 *
 *     bide_try(bide_rw_lock_upgradable_read(&self->lock, &table));
 *     if (find(&table, self->name) == NULL) {
 *         bide_try(bide_rw_lock_upgrade(&self->lock));     // `finally` unlocks it if this fails
 *         insert(&table, self->name);
 *     }
 *     bide_rw_lock_unlock(&self->lock);
 *
 *     free, or read --upgradable_read--> and by one that may upgrade --upgrade--> written
 *     written --downgrade_to_upgradable--> read by one that may upgrade --downgrade--> read by 1
 *
 * Any thread may lock. A holder is identified by its waiter, as with the mutex: `self->lock` above is
 * the key, which must not move until the unlock. Neither readers nor writers starve. A holder must not
 * lock again, not even a reader for reading: if a writer is waiting, the holder deadlocks.
 *
 * Without contention, a reader locks and unlocks with one atomic read-modify-write each. All readers
 * modify the same word, so its cache line travels between their processors. The lock pays off only if
 * a read section takes longer than that.
 *
 * Why it is correct: it is a waiter queue whose value is a bit for the writer, a bit for the upgradable
 * reader, and above them the number of the other readers; docs/internals/waiter_queue.md has the
 * argument. Unlocking and downgrading only ever admit more waiters (5 there). The end of this file has
 * the argument for upgrades.
 *
 * Source: "Concurrent control with readers and writers" of Courtois, Heymans and Parnas, 1971; the
 * fair line is that of Tokio's RwLock; upgradable reads are those of Boost's upgrade_mutex.
 */
#ifndef BIDE_RW_LOCK_H
#define BIDE_RW_LOCK_H

#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

enum {
    BIDE_RW_LOCK_WRITER_ = BIDE_QUEUE_ONE,
    BIDE_RW_LOCK_UPGRADABLE_ = 2 * BIDE_QUEUE_ONE, /* the reader that may upgrade */
    BIDE_RW_LOCK_READER_ = 4 * BIDE_QUEUE_ONE      /* one of the others */
};

/* The modes that a waiter wants or holds. The last is only wanted, by a holder that may upgrade. */
enum {
    BIDE_RW_LOCK_NONE_,
    BIDE_RW_LOCK_READS_,
    BIDE_RW_LOCK_WRITES_,
    BIDE_RW_LOCK_MAY_UPGRADE_,
    BIDE_RW_LOCK_UPGRADES_
};

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
    while ((state & (BIDE_RW_LOCK_UPGRADABLE_ - 1)) == 0) {
        /* acquire: partner is the release of the writers' unlocking and downgrading. */
        if (bide_atomic_compare_exchange_weak(&queue->state, &state, state + BIDE_RW_LOCK_READER_,
                                              acquire, relaxed))
            return true;
        bide_atomic_retry();
    }
    return false;
}

BIDE_INLINE bool bide_rw_lock_take_upgradable_(bide_waiter_queue *queue)
{
    /* relaxed: what is found is compared by what follows. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    /* neither a writer, nor one that may upgrade, nor a flag */
    while ((state & (BIDE_RW_LOCK_READER_ - 1)) == 0) {
        /* acquire: as take_read. */
        if (bide_atomic_compare_exchange_weak(&queue->state, &state,
                                              state + BIDE_RW_LOCK_UPGRADABLE_, acquire, relaxed))
            return true;
        bide_atomic_retry();
    }
    return false;
}

/* For the holder that may upgrade: also past waiters, because it is in front of them (U2). */
BIDE_INLINE bool bide_rw_lock_take_upgrade_(bide_waiter_queue *queue)
{
    const uintptr_t alone = BIDE_RW_LOCK_UPGRADABLE_;
    uintptr_t state = alone;
    /* acquire: partner is the release of the readers' unlocking. */
    while (!bide_atomic_compare_exchange(&queue->state, &state,
                                         state - alone + BIDE_RW_LOCK_WRITER_, acquire, relaxed)) {
        if (BIDE_QUEUE_VALUE(state) != alone ||
            (state & (BIDE_QUEUE_SERVING_ | BIDE_QUEUE_CLOSED_)) != 0)
            return false;
        bide_atomic_retry();
    }
    return true;
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

/*
 * Takes it to read, as the holder that may upgrade, if nobody else may, and nobody writes or waits.
 * False: not so, or it is closed.
 * Threads: any. Progress: lock-free.
 */
BIDE_INLINE bool bide_rw_lock_try_upgradable_read(bide_rw_lock_waiter *waiter, bide_rw_lock *lock)
{
    bool took = bide_rw_lock_take_upgradable_(&lock->queue);
    waiter->waiter.queue = &lock->queue;
    waiter->holds = took ? BIDE_RW_LOCK_MAY_UPGRADE_ : BIDE_RW_LOCK_NONE_;
    return took;
}

BIDE_INLINE bool bide_rw_lock_try_upgrade_(bide_rw_lock_waiter *waiter)
{
    bool took = bide_rw_lock_take_upgrade_(waiter->waiter.queue);
    if (took)
        waiter->holds = BIDE_RW_LOCK_WRITES_;
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

BIDE_INLINE bool bide_rw_lock_upgradable_ready_(bide_awaiter *awaiter)
{
    return bide_rw_lock_take_upgradable_(((bide_queue_waiter *)(void *)awaiter)->queue);
}

BIDE_INLINE bool bide_rw_lock_upgrade_ready_(bide_awaiter *awaiter)
{
    return bide_rw_lock_take_upgrade_(((bide_queue_waiter *)(void *)awaiter)->queue);
}

bide_frame *bide_rw_lock_upgrade_suspend_(bide_awaiter *awaiter, bide_frame *frame);

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

BIDE_INLINE int bide_rw_lock_upgrade_resume_(bide_awaiter *awaiter)
{
    ((bide_rw_lock_waiter *)(void *)awaiter)->holds = BIDE_RW_LOCK_WRITES_;
    return 0;
}

/* A lock that was handed to a destroyed coroutine goes to the next waiter. */
bool bide_rw_lock_withdraw_(bide_awaiter *awaiter);
bool bide_rw_lock_upgrade_withdraw_(bide_awaiter *awaiter);

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
BIDE_KEY_SCOPED(bide_rw_lock_unlock);
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
        .undo = BIDE_UNDO_WITHDRAW,
    };
    return bide_rw_lock_start_(waiter, lock, BIDE_RW_LOCK_READS_, &ops);
}

/*
 * The same to write, alone.
 * Threads: any. Errors: as bide_rw_lock_read. Suspends: if it is not available at once.
 * Cancel-safe: yes. Progress: lock-free.
 */
BIDE_KEY_SCOPED(bide_rw_lock_unlock);
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
        .undo = BIDE_UNDO_WITHDRAW,
    };
    return bide_rw_lock_start_(waiter, lock, BIDE_RW_LOCK_WRITES_, &ops);
}

/*
 * The same to read beside other readers, as the holder that may upgrade: there is one at a time,
 * and the next waits. Writers, and others that may upgrade, wait while it holds the lock; readers
 * do not.
 * Threads: any. Errors: as bide_rw_lock_read. Suspends: if it is not available at once.
 * Cancel-safe: yes. Progress: lock-free.
 */
BIDE_KEY_SCOPED(bide_rw_lock_unlock);
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_rw_lock_upgradable_read(bide_rw_lock_waiter *waiter,
                                                       bide_rw_lock *lock)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_rw_lock_upgradable_ready_,
        .suspend = bide_rw_lock_suspend_,
        .resume = bide_rw_lock_resume_,
        .cancel = bide_rw_lock_cancel_,
        .withdraw = bide_rw_lock_withdraw_,
        .name = "bide_rw_lock_upgradable_read",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    return bide_rw_lock_start_(waiter, lock, BIDE_RW_LOCK_MAY_UPGRADE_, &ops);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_rw_lock_upgrade_(bide_rw_lock_waiter *waiter)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_rw_lock_upgrade_ready_,
        .suspend = bide_rw_lock_upgrade_suspend_,
        .resume = bide_rw_lock_upgrade_resume_,
        .cancel = bide_rw_lock_cancel_,
        .withdraw = bide_rw_lock_upgrade_withdraw_,
        .name = "bide_rw_lock_upgrade",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->waiter.awaiter.ops = &ops;
    waiter->waiter.wants = BIDE_RW_LOCK_UPGRADES_;
    return &waiter->waiter.awaiter;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_rw_lock_upgrade_checked_(bide_rw_lock_waiter *waiter,
                                                        const char *what, const char *function,
                                                        const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(waiter->holds != BIDE_RW_LOCK_MAY_UPGRADE_))
        bide_misuse_(what, function, file, line);
    return bide_rw_lock_upgrade_(waiter);
}

BIDE_INLINE bool bide_rw_lock_try_upgrade_checked_(bide_rw_lock_waiter *waiter, const char *what,
                                                   const char *function, const char *file,
                                                   unsigned line)
{
    if (BIDE_UNLIKELY(waiter->holds != BIDE_RW_LOCK_MAY_UPGRADE_))
        bide_misuse_(what, function, file, line);
    return bide_rw_lock_try_upgrade_(waiter);
}

#define BIDE_RW_LOCK_NOT_UPGRADABLE_(waiter)                                                     \
    BIDE_MISUSE_("a reader-writer lock is upgraded by a waiter that has not locked it to do so", \
                 #waiter)

/*
 * bide_rw_lock_upgrade(waiter): has the holder, which has locked it by _upgradable_read, write: waits
 * until the other readers have unlocked it. It is in front of all waiters, readers too. If it ends
 * with 0 the holder writes; otherwise it still reads, and may upgrade. In either case it unlocks.
 * An upgrade whose coroutine is destroyed, or that loses a select, leaves the lock as it was before.
 * Upgrading a lock that `waiter` has not locked so is misuse, which is detected if BIDE_DEBUG is 1.
 * Threads: any, on behalf of the holder. Errors: -EPIPE (closed), -ECANCELED, -ETIMEDOUT. Suspends: if
 * there are other readers. Cancel-safe: yes. Progress: lock-free.
 */
#if BIDE_DEBUG
#define bide_rw_lock_upgrade(waiter) \
    bide_rw_lock_upgrade_checked_((waiter), BIDE_RW_LOCK_NOT_UPGRADABLE_(waiter))
#else
#define bide_rw_lock_upgrade(waiter) bide_rw_lock_upgrade_(waiter)
#endif

/*
 * bide_rw_lock_try_upgrade(waiter): the same if there are no other readers. False: there are, or it is
 * closed; perhaps also if another thread hands the lock over at this moment.
 * Threads: any, on behalf of the holder. Suspends: never. Progress: lock-free.
 */
#if BIDE_DEBUG
#define bide_rw_lock_try_upgrade(waiter) \
    bide_rw_lock_try_upgrade_checked_((waiter), BIDE_RW_LOCK_NOT_UPGRADABLE_(waiter))
#else
#define bide_rw_lock_try_upgrade(waiter) bide_rw_lock_try_upgrade_(waiter)
#endif

/*
 * These for a plain thread, which they block until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_rw_lock_read; -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_rw_lock_read_blocking(bide_rw_lock_waiter *waiter, bide_rw_lock *lock,
                                           uint64_t deadline)
{
    return bide_sync_wait_until(bide_rw_lock_read(waiter, lock), deadline);
}

#define bide_rw_lock_read_blocking(...) BIDE_BLOCKS_(bide_rw_lock_read_blocking(__VA_ARGS__))

BIDE_INLINE int bide_rw_lock_write_blocking(bide_rw_lock_waiter *waiter, bide_rw_lock *lock,
                                            uint64_t deadline)
{
    return bide_sync_wait_until(bide_rw_lock_write(waiter, lock), deadline);
}

#define bide_rw_lock_write_blocking(...) BIDE_BLOCKS_(bide_rw_lock_write_blocking(__VA_ARGS__))

BIDE_INLINE int bide_rw_lock_upgradable_read_blocking(bide_rw_lock_waiter *waiter,
                                                      bide_rw_lock *lock, uint64_t deadline)
{
    return bide_sync_wait_until(bide_rw_lock_upgradable_read(waiter, lock), deadline);
}

#define bide_rw_lock_upgradable_read_blocking(...) \
    BIDE_BLOCKS_(bide_rw_lock_upgradable_read_blocking(__VA_ARGS__))

BIDE_INLINE int bide_rw_lock_upgrade_blocking(bide_rw_lock_waiter *waiter, uint64_t deadline)
{
    return bide_sync_wait_until(bide_rw_lock_upgrade(waiter), deadline);
}

#define bide_rw_lock_upgrade_blocking(...) BIDE_BLOCKS_(bide_rw_lock_upgrade_blocking(__VA_ARGS__))

/* ---- Giving it back ---- */

/* The rest of unlock: it has waiters or other readers, or it is closed. */
void bide_rw_lock_unlock_slow_(bide_waiter_queue *queue, uintptr_t state, uintptr_t held);

BIDE_INLINE void bide_rw_lock_unlock_(bide_rw_lock_waiter *waiter)
{
    bide_waiter_queue *queue = waiter->waiter.queue;
    uintptr_t held = BIDE_RW_LOCK_WRITER_;
    uintptr_t state = BIDE_RW_LOCK_WRITER_;
    if (waiter->holds != BIDE_RW_LOCK_WRITES_) {
        held = waiter->holds == BIDE_RW_LOCK_MAY_UPGRADE_ ? (uintptr_t)BIDE_RW_LOCK_UPGRADABLE_
                                                          : (uintptr_t)BIDE_RW_LOCK_READER_;
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

/* To read, or to read as the holder that may upgrade. */
void bide_rw_lock_downgrade_(bide_rw_lock_waiter *waiter, uint32_t holds);

BIDE_INLINE void bide_rw_lock_unlock_checked_(bide_rw_lock_waiter *waiter, const char *what,
                                              const char *function, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(waiter->holds == BIDE_RW_LOCK_NONE_))
        bide_misuse_(what, function, file, line);
    else
        bide_rw_lock_unlock_(waiter);
}

/* The held mode must be more than `holds`. */
BIDE_INLINE void bide_rw_lock_downgrade_checked_(bide_rw_lock_waiter *waiter, uint32_t holds,
                                                 const char *what, const char *function,
                                                 const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(waiter->holds != BIDE_RW_LOCK_WRITES_ &&
                      (waiter->holds != BIDE_RW_LOCK_MAY_UPGRADE_ || holds == waiter->holds)))
        bide_misuse_(what, function, file, line);
    else
        bide_rw_lock_downgrade_(waiter, holds);
}

/*
 * bide_rw_lock_unlock unlocks what was locked with `waiter`. The waiters whose turn it is hold the
 * lock from now on, and are woken on their schedulers, but not on the caller's stack while a
 * coroutine is running on it. Unlocking a lock that this waiter has not locked is misuse, which is
 * detected if BIDE_DEBUG is 1.
 * Threads: any, on behalf of the holder. Suspends: never. Progress: lock-free.
 */
#if BIDE_DEBUG
#define bide_rw_lock_unlock(waiter)                                                         \
    bide_rw_lock_unlock_checked_(                                                           \
        (waiter),                                                                           \
        BIDE_MISUSE_("a reader-writer lock is unlocked by a waiter that has not locked it", \
                     #waiter))
#else
#define bide_rw_lock_unlock(waiter) bide_rw_lock_unlock_(waiter)
#endif

#if BIDE_DEBUG
#define BIDE_RW_LOCK_DOWNGRADE_(waiter, holds)                                                \
    bide_rw_lock_downgrade_checked_(                                                          \
        (waiter), (holds),                                                                    \
        BIDE_MISUSE_(                                                                         \
            "a reader-writer lock is downgraded by a waiter that has not locked it to write", \
            #waiter))
#else
#define BIDE_RW_LOCK_DOWNGRADE_(waiter, holds) bide_rw_lock_downgrade_((waiter), (holds))
#endif

/*
 * bide_rw_lock_downgrade(waiter): the writer reads from now on, and so do the readers that are next in
 * line; no writer comes in between. Or the reader that may upgrade is one like the others from now on.
 * As unlock otherwise.
 * Threads: any, on behalf of the holder. Suspends: never. Progress: lock-free.
 */
#define bide_rw_lock_downgrade(waiter) BIDE_RW_LOCK_DOWNGRADE_(waiter, BIDE_RW_LOCK_READS_)

/*
 * bide_rw_lock_downgrade_to_upgradable(waiter): the writer reads from now on, and may upgrade again; no
 * writer comes in between. As unlock otherwise.
 * Threads: any, on behalf of the holder. Suspends: never. Progress: lock-free.
 */
#define bide_rw_lock_downgrade_to_upgradable(waiter) \
    BIDE_RW_LOCK_DOWNGRADE_(waiter, BIDE_RW_LOCK_MAY_UPGRADE_)

/*
 * Closes it: waiters end with -EPIPE, and so do later lockings and upgrades. Holders unlock it as ever.
 * More than once is once.
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

/*
 * Why upgrades are correct:
 *
 * U1. One reader at most has the bit UPGRADABLE, and a writer is admitted only by a value of 0, so not
 *     while the bit is set. An upgrade changes the bit to WRITER in one step, when there is no other
 *     reader. So no writer comes in between. It acquires; partners: the readers' unlockings, which
 *     release.
 * U2. An upgrade goes to the front of the line. It waits only for readers that hold the lock; readers
 *     that come later find WAITING. Nobody in line could be admitted that it passes, except for readers,
 *     which it holds back as a writer does. So it may also take the lock past waiters, while no server
 *     is active.
 * U3. A waiter that arrives at a line that is not empty leaves the serving to the next put, because it
 *     cannot be admitted before those in front. An upgrade can. So it puts, after it has enlisted: the same value,
 *     which serves if nobody does. It still holds the lock then, so the lock is there.
 * U4. An upgrade that was admitted, and of which its coroutine will not know, is taken back by a
 *     downgrade, which makes more possible (5 in waiter_queue.md). The coroutine holds what it held
 *     before.
 */

BIDE_EXTERN_C_END

#endif
