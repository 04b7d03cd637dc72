/*
 * The slow half of the manual-reset event. States and orders: waiter_list.h. Setting is one compare-exchange
 * that acquires and releases:
 *   1. release, so that who finds it set (is_set, or a refused push) sees what was written before set;
 *   2. acquire, so that set sees the waiters' nodes, and the frames behind them, that were pushed.
 * A waiter pushes by a compare-exchange on the same word, so for each wait either the push comes first
 * and the exchange takes the waiter, or the exchange comes first and the push is refused: no wake-up is
 * lost and none is doubled.
 */
#include "bide/event.h"

void bide_event_set(bide_event *event)
{
    bide_wake_reversed(bide_waiter_list_shut(&event->waiters));
}
