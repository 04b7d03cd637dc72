/* The slow half of the mutex: a waiter queue whose value is 1 while it is locked. Any thread may wait;
 * the holder unlocks. The argument: docs/internals/waiter_queue.md. */
#include "bide/mutex.h"

static bool mutex_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    (void)waiter;
    bide_assert(*value == 0 || *value == BIDE_QUEUE_ONE);
    if (*value != 0)
        return false;
    *value = BIDE_QUEUE_ONE;
    return true;
}

const bide_waiter_queue_ops bide_mutex_ops_ = {.admit = mutex_admit};

void bide_mutex_unlock_slow_(bide_mutex *mutex, uintptr_t state)
{
    do {
        if (BIDE_UNLIKELY(BIDE_QUEUE_VALUE(state) == 0)) {
            bide_platform.misuse("a mutex is unlocked that is not locked", __func__, __FILE__,
                                 __LINE__);
            return;
        }
    } while (!bide_waiter_queue_put(&mutex->queue, &bide_mutex_ops_, &state, 0));
}

bool bide_mutex_withdraw_(bide_awaiter *awaiter)
{
    bide_mutex_waiter *waiter = (bide_mutex_waiter *)(void *)awaiter;
    if (bide_waiter_queue_withdraw(awaiter, &bide_mutex_ops_))
        return true;
    bide_mutex_unlock_(waiter);
    return false;
}

void bide_mutex_close(bide_mutex *mutex)
{
    bide_waiter_queue_close(&mutex->queue, &bide_mutex_ops_);
}
