/* The slow half of the mutex. The argument: waiter_queue.h. */
#include "bide/mutex.h"

static bool admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    (void)waiter;
    if (*value != 0)
        return false;
    *value = BIDE_QUEUE_ONE;
    return true;
}

const bide_waiter_queue_ops bide_mutex_ops_ = {.admit = admit};

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
