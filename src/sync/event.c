/*
 * The slow half of the manual-reset event. Any thread may set, reset, wait and close. Its states and
 * orders are those of docs/internals/waiter_list.md. Setting is one compare-exchange that acquires
 * and releases:
 *   1. release, so that a thread that finds the event set (is_set, or a rejected push) sees writes
 *      from before the set;
 *   2. acquire, so that set sees the pushed waiters' nodes, and the frames behind them. A waiter
 *      pushes by a compare-exchange on the same word. So for each wait either the push comes first,
 *      and the exchange takes the waiter; or the exchange comes first, and the push is rejected. No
 *      wake-up is lost and none is doubled.
 *
 * Closing works likewise, with the same argument.
 */
#include "bide/event.h"

#include "bide/stop.h"

void bide_event_set(bide_event *event)
{
    bide_wake_reversed(bide_waiter_list_shut(&event->waiters));
}

void bide_event_close(bide_event *event)
{
    bide_awaiter *newest = bide_waiter_list_shut_for_good(&event->waiters);
    for (bide_awaiter *awaiter = newest; awaiter != NULL; awaiter = awaiter->link)
        bide_awaiter_finish_closed(awaiter);
    bide_wake_reversed(newest);
}
