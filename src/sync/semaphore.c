/* The slow half of the semaphore: a waiter queue whose value is the number of permits. Any thread may
 * acquire and release. The argument: docs/internals/waiter_queue.md. */
#include "bide/semaphore.h"

#include "../coroutine/internal.h"

#include "bide/errors.h"

static bool semaphore_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    uintptr_t wanted = (uintptr_t)waiter->wants * BIDE_QUEUE_ONE;
    bide_assert(*value / BIDE_QUEUE_ONE <= BIDE_SEMAPHORE_MAX);
    if (*value < wanted)
        return false;
    *value -= wanted;
    return true;
}

void bide_semaphore_too_many_(const char *what, const char *function)
{
    bide_platform.misuse(what, function, __FILE__, __LINE__);
}

const bide_waiter_queue_ops bide_semaphore_ops_ = {.admit = semaphore_admit};

void bide_semaphore_release(bide_semaphore *semaphore, uint32_t permits)
{
    bide_waiter_queue *queue = &semaphore->queue;
    /* relaxed: put validates it. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    for (;;) {
        uintptr_t free = BIDE_QUEUE_VALUE(state) / BIDE_QUEUE_ONE;
        if (BIDE_UNLIKELY(permits > BIDE_SEMAPHORE_MAX - free)) {
            bide_semaphore_too_many_("a semaphore has too many permits", __func__);
            return;
        }
        if (bide_waiter_queue_put(queue, &bide_semaphore_ops_, &state,
                                  (free + permits) * BIDE_QUEUE_ONE))
            return;
        bide_atomic_retry();
    }
}

bool bide_semaphore_withdraw_(bide_awaiter *awaiter)
{
    bide_queue_waiter *waiter = (bide_queue_waiter *)(void *)awaiter;
    if (bide_waiter_queue_withdraw(awaiter, &bide_semaphore_ops_))
        return true;
    bide_semaphore_release(bide_container_of(waiter->queue, bide_semaphore, queue), waiter->wants);
    return false;
}

/* ---- Impossible numbers ---- */

static bide_frame *refused_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter;
#if BIDE_DEBUG
    bide_misused_by_("no permits are waited for", frame, NULL);
#endif
    return frame;
}

static int refused_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return -EINVAL;
}

static bool refused_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

bide_awaiter *bide_semaphore_refuse_(bide_semaphore_waiter *waiter, uint32_t permits)
{
    static const bide_awaiter_ops ops = {
        .suspend = refused_suspend,
        .resume = refused_resume,
        .withdraw = refused_withdraw,
        .name = "bide_semaphore_acquire",
        .undo = BIDE_UNDO_WITHDRAW,
    };
    if (permits != 0)
        bide_semaphore_too_many_("more permits are wanted than a semaphore can have",
                                 "bide_semaphore_acquire_many");
    waiter->waiter.awaiter.ops = &ops;
    return &waiter->waiter.awaiter;
}

void bide_semaphore_close(bide_semaphore *semaphore)
{
    bide_waiter_queue_close(&semaphore->queue, &bide_semaphore_ops_);
}
