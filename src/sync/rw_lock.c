/*
 * The slow half of the reader-writer lock: a waiter queue whose value is the number of readers, whether
 * one of them may upgrade, or a writer. Any thread may wait; a holder unlocks, downgrades and upgrades.
 * The argument: the end of rw_lock.h, with U1 to U4, and docs/internals/waiter_queue.md.
 */
#include "bide/rw_lock.h"

#include "bide/stop.h"

#define WRITER     ((uintptr_t)BIDE_RW_LOCK_WRITER_)
#define UPGRADABLE ((uintptr_t)BIDE_RW_LOCK_UPGRADABLE_)
#define READER     ((uintptr_t)BIDE_RW_LOCK_READER_)

/* What is held, in the value. */
static uintptr_t value_of_holding(uint32_t holds)
{
    switch (holds) {
    case BIDE_RW_LOCK_READS_:
        return READER;
    case BIDE_RW_LOCK_MAY_UPGRADE_:
        return UPGRADABLE;
    default:
        return WRITER;
    }
}

static bool rw_lock_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    uintptr_t before = *value;
    bide_assert((before & WRITER) == 0 || before == WRITER); /* a writer excludes readers */
    switch (waiter->wants) {
    case BIDE_RW_LOCK_READS_:
        *value += (before & WRITER) == 0 ? READER : 0;
        break;
    case BIDE_RW_LOCK_MAY_UPGRADE_:
        *value += (before & (WRITER | UPGRADABLE)) == 0 ? UPGRADABLE : 0;
        break;
    case BIDE_RW_LOCK_UPGRADES_:
        bide_assert((before & UPGRADABLE) != 0); /* it holds that */
        *value = before == UPGRADABLE ? WRITER : before;
        break;
    default:
        *value += before == 0 ? WRITER : 0;
        break;
    }
    return *value != before;
}

/* U2 */
static bool rw_lock_goes_first(const bide_queue_waiter *waiter)
{
    return waiter->wants == BIDE_RW_LOCK_UPGRADES_;
}

const bide_waiter_queue_ops bide_rw_lock_ops_ = {.admit = rw_lock_admit,
                                                 .goes_first = rw_lock_goes_first};

static bool rw_lock_is_held(uintptr_t value, uintptr_t held)
{
    if (held == READER)
        return value >= READER && (value & WRITER) == 0;
    return held == WRITER ? value == WRITER : (value & UPGRADABLE) != 0;
}

void bide_rw_lock_unlock_slow_(bide_waiter_queue *queue, uintptr_t state, uintptr_t held)
{
    for (;;) {
        uintptr_t value = BIDE_QUEUE_VALUE(state);
        if (BIDE_UNLIKELY(!rw_lock_is_held(value, held))) {
            bide_platform.misuse("a reader-writer lock is unlocked that is not locked so", __func__,
                                 __FILE__, __LINE__);
            return;
        }
        if (bide_waiter_queue_put(queue, &bide_rw_lock_ops_, &state, value - held))
            return;
        bide_atomic_retry();
    }
}

void bide_rw_lock_downgrade_(bide_rw_lock_waiter *waiter, uint32_t holds)
{
    bide_waiter_queue *queue = waiter->waiter.queue;
    uintptr_t less = value_of_holding(waiter->holds) - value_of_holding(holds);
    /* relaxed: put validates it. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    waiter->holds = holds;
    while (!bide_waiter_queue_put(queue, &bide_rw_lock_ops_, &state,
                                  BIDE_QUEUE_VALUE(state) - less))
        bide_atomic_retry();
}

bool bide_rw_lock_withdraw_(bide_awaiter *awaiter)
{
    bide_rw_lock_waiter *waiter = (bide_rw_lock_waiter *)(void *)awaiter;
    bide_waiter_queue *queue = waiter->waiter.queue;
    if (bide_waiter_queue_withdraw(awaiter, &bide_rw_lock_ops_))
        return true;
    waiter->holds = BIDE_RW_LOCK_NONE_;
    /* relaxed: put validates it. */
    bide_rw_lock_unlock_slow_(queue, bide_atomic_load(&queue->state, relaxed),
                              value_of_holding(waiter->waiter.wants));
    return false;
}

/* ---- Upgrading ---- */

bide_frame *bide_rw_lock_upgrade_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_queue_waiter *waiter = (bide_queue_waiter *)(void *)awaiter;
    bide_waiter_queue *queue = waiter->queue;
    bide_queue_waiter_start(waiter);
    /* acquire: partner is close's release; writes from before it are visible. */
    if ((bide_atomic_load(&queue->state, acquire) & BIDE_QUEUE_CLOSED_) != 0) {
        bide_awaiter_finish_closed(awaiter);
        return frame;
    }
    if (bide_spin_until_ready(awaiter, frame))
        return frame;
    bide_waiter_queue_enlist(waiter, &bide_rw_lock_ops_);
    /* relaxed: put validates it; U3. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while (!bide_waiter_queue_put(queue, &bide_rw_lock_ops_, &state, BIDE_QUEUE_VALUE(state)))
        bide_atomic_retry();
    return bide_waiter_queue_arm(waiter) ? frame : NULL;
}

/* The holder holds what it held before: U4. */
bool bide_rw_lock_upgrade_withdraw_(bide_awaiter *awaiter)
{
    bide_rw_lock_waiter *waiter = (bide_rw_lock_waiter *)(void *)awaiter;
    if (bide_waiter_queue_withdraw(awaiter, &bide_rw_lock_ops_))
        return true;
    waiter->holds = BIDE_RW_LOCK_WRITES_;
    bide_rw_lock_downgrade_(waiter, BIDE_RW_LOCK_MAY_UPGRADE_);
    return false;
}

void bide_rw_lock_close(bide_rw_lock *lock)
{
    bide_waiter_queue_close(&lock->queue, &bide_rw_lock_ops_);
}
