/*
 * Items that are taken one by one, or waited for at an event count: the attempt of such an
 * operation, for scenarios.
 */
#ifndef BIDE_TEST_TAKING_H
#define BIDE_TEST_TAKING_H

#include "bide/extend/event_count.h"

typedef struct taking {
    bide_event_count_waiter retry;
    bide_atomic(uint32_t) * items;
} taking;

static int taking_attempt(bide_event_count_waiter *retry)
{
    taking *taking = bide_container_of(retry, struct taking, retry);
    uint32_t items = bide_atomic_load(taking->items, relaxed);
    while (items != 0) {
        /* acquire: the data of the item. */
        if (bide_atomic_compare_exchange(taking->items, &items, items - 1, acquire, relaxed))
            return 0;
        bide_atomic_retry();
    }
    return -EAGAIN;
}

static bool taking_is_possible(bide_event_count_waiter *retry)
{
    return bide_atomic_load(bide_container_of(retry, taking, retry)->items, relaxed) != 0;
}

/* Makes the operation that takes one of the items, which `event_count` announces. */
static bide_awaiter *taking_begin(taking *taking, bide_atomic(uint32_t) * items,
                                  bide_event_count *event_count)
{
    static const bide_event_count_ops rules = {taking_attempt, taking_is_possible, NULL};
    taking->items = items;
    return bide_event_count_wait(&taking->retry, event_count, &rules);
}

#endif
