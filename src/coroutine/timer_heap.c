/* One tree of timers (timer_tree.h) with a head: the timers of firmware. One thread, or interrupts
 * masked by the caller. */
#include "timer_tree.h"

bool bide_timer_heap_insert(bide_timer_heap *heap, bide_timer *timer)
{
    timer->number = heap->inserted++;
    timer->child = NULL;
    return tree_add(&heap->first, timer);
}

bool bide_timer_heap_remove(bide_timer_heap *heap, bide_timer *timer)
{
    (void)heap; /* it is in this one, so its place leads to it */
    if (timer->place == NULL)
        return false;
    tree_remove(timer);
    return true;
}

void bide_timer_heap_take_due(bide_timer_heap *heap, uint64_t now, bide_awaiter_chain *due)
{
    tree_take_due(&heap->first, now, due);
}
