/* The slow half of the wait group: a waiter queue whose value is the count, and a phase that each zero
 * increments. Any thread may add, end and wait. The argument: docs/internals/waiter_queue.md. */
#include "bide/wait_group.h"

static bool wait_group_is_due(const bide_queue_waiter *waiter, uintptr_t value)
{
    return bide_queue_is_past(value, BIDE_QUEUE_PHASE_BITS_BELOW, waiter->wants);
}

static bool wait_group_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    return wait_group_is_due(waiter, *value);
}

const bide_waiter_queue_ops bide_wait_group_ops_ = {.admit = wait_group_admit,
                                                    .is_due = wait_group_is_due};

bool bide_wait_group_done_(bide_wait_group *group)
{
    bide_waiter_queue *queue = &group->queue;
    /* relaxed: the compare-exchange that follows validates it. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    for (;;) {
        uintptr_t number = bide_queue_number(state);
        if (number == 0)
            return false;
        if (number == 1) {
            if (bide_waiter_queue_put(queue, &bide_wait_group_ops_, &state,
                                      BIDE_QUEUE_VALUE(state) - BIDE_QUEUE_ONE +
                                          BIDE_QUEUE_PHASE_ONE))
                return true;
            /* release: partners are the acquires that find the later zero. */
        } else if (bide_atomic_compare_exchange(&queue->state, &state, state - BIDE_QUEUE_ONE,
                                                release, relaxed)) {
            return true;
        }
        bide_atomic_retry();
    }
}

void bide_wait_group_close(bide_wait_group *group)
{
    bide_waiter_queue_close(&group->queue, &bide_wait_group_ops_);
}
