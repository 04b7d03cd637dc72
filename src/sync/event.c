/*
 * The slow half of the manual-reset event. Its states and orders are in waiter_list.h. Setting is
 * one compare-exchange that acquires and releases:
 *   1. release, so that whoever finds it set (is_set, or a refused push) sees what was written
 *      before the set;
 *   2. acquire, so that set sees the waiters' nodes, and the frames behind them, that were pushed.
 *      A waiter pushes by a compare-exchange on the same word. So for each wait either the push
 *      comes first, and the exchange takes the waiter; or the exchange comes first, and the push is
 *      refused. No wake-up is lost and none is doubled.
 *
 * Closing is one of the same kind, and so is its argument.
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
