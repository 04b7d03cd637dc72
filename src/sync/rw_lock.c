/* The slow half of the reader-writer lock: a waiter queue whose value is the number of readers, or a
 * writer. Any thread may wait; a holder unlocks. The argument: docs/internals/waiter_queue.md. */
#include "bide/rw_lock.h"

#define WRITER ((uintptr_t)BIDE_RW_LOCK_WRITER_)
#define READER ((uintptr_t)BIDE_RW_LOCK_READER_)

static bool rw_lock_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    bool writes = waiter->wants == BIDE_RW_LOCK_WRITES_;
    bide_assert((*value & WRITER) == 0 || *value == WRITER); /* a writer excludes readers */
    if (writes ? *value != 0 : (*value & WRITER) != 0)
        return false;
    *value += writes ? WRITER : READER;
    return true;
}

const bide_waiter_queue_ops bide_rw_lock_ops_ = {.admit = rw_lock_admit};

void bide_rw_lock_unlock_slow_(bide_waiter_queue *queue, uintptr_t state, uintptr_t held)
{
    for (;;) {
        uintptr_t value = BIDE_QUEUE_VALUE(state);
        if (BIDE_UNLIKELY(held == WRITER ? value != WRITER : value == 0 || (value & WRITER) != 0)) {
            bide_platform.misuse("a reader-writer lock is unlocked that is not locked so", __func__,
                                 __FILE__, __LINE__);
            return;
        }
        if (bide_waiter_queue_put(queue, &bide_rw_lock_ops_, &state, value - held))
            return;
        bide_atomic_retry();
    }
}

void bide_rw_lock_downgrade_(bide_rw_lock_waiter *waiter)
{
    bide_waiter_queue *queue = waiter->waiter.queue;
    /* relaxed: put validates it. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    waiter->holds = BIDE_RW_LOCK_READS_;
    while (!bide_waiter_queue_put(queue, &bide_rw_lock_ops_, &state, READER))
        bide_atomic_retry();
}

bool bide_rw_lock_withdraw_(bide_awaiter *awaiter)
{
    bide_queue_waiter *waiter = (bide_queue_waiter *)(void *)awaiter;
    bide_waiter_queue *queue = waiter->queue;
    if (bide_waiter_queue_withdraw(awaiter, &bide_rw_lock_ops_))
        return true;
    /* relaxed: put validates it. */
    bide_rw_lock_unlock_slow_(queue, bide_atomic_load(&queue->state, relaxed),
                              waiter->wants == BIDE_RW_LOCK_WRITES_ ? WRITER : READER);
    return false;
}

void bide_rw_lock_close(bide_rw_lock *lock)
{
    bide_waiter_queue_close(&lock->queue, &bide_rw_lock_ops_);
}
