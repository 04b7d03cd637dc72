/*
 * The heap of timers.
 *
 *     timers.first --> 3 --child--> 5 --link--> 4 --link--> 9
 *                                               |
 *                                             child--> 8 --link--> 4
 *
 * `place` is the address of the pointer that leads to a timer: timers.first, the child of its
 * parent, or the link of the sibling before it. So all are taken out of the lists alike. A root has
 * no sibling. Nothing here is recursive, because a heap may be as deep as it has timers.
 */
#include "bide/extend/timer.h"

static bide_timer *timer_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_timer, awaiter);
}

static bool comes_before(const bide_timer *a, const bide_timer *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static void put(bide_awaiter **place, bide_awaiter *awaiter)
{
    *place = awaiter;
    if (awaiter != NULL)
        timer_of(awaiter)->place = place;
}

/*
 * Makes the later of two roots the first child of the earlier, which is returned; its link and
 * place are as they were.
 */
static bide_timer *meld(bide_timer *a, bide_timer *b)
{
    bool swapped = comes_before(b, a);
    bide_timer *earlier = swapped ? b : a;
    bide_timer *later = swapped ? a : b;
    put(&later->awaiter.link, earlier->child);
    put(&earlier->child, &later->awaiter);
    return earlier;
}

/*
 * Melds siblings into one heap: by pairs from the first to the last, and the pairs from the last to
 * the first. Returns its root, or NULL if there is none.
 */
static bide_timer *meld_all(bide_awaiter *first)
{
    bide_awaiter *pairs = NULL; /* linked, the last first */
    while (first != NULL) {
        bide_timer *pair = timer_of(first);
        bide_awaiter *second = first->link;
        first = NULL;
        if (second != NULL) {
            first = second->link;
            pair = meld(pair, timer_of(second));
        }
        pair->awaiter.link = pairs;
        pairs = &pair->awaiter;
    }
    bide_timer *root = NULL;
    while (pairs != NULL) {
        bide_timer *pair = timer_of(pairs);
        pairs = pairs->link;
        root = root != NULL ? meld(root, pair) : pair;
    }
    return root;
}

/* Makes what is left, which is no heap's, part of the heap. */
static void add(bide_timers *timers, bide_timer *root)
{
    if (timers->first != NULL)
        root = meld(timer_of(timers->first), root);
    root->awaiter.link = NULL;
    put(&timers->first, &root->awaiter);
}

bool bide_timers_insert(bide_timers *timers, bide_timer *timer)
{
    timer->number = timers->inserted++;
    timer->child = NULL;
    add(timers, timer);
    return timers->first == &timer->awaiter;
}

bool bide_timers_remove(bide_timers *timers, bide_timer *timer)
{
    if (timer->place == NULL)
        return false;
    put(timer->place, timer->awaiter.link);
    timer->place = NULL;
    bide_timer *rest = meld_all(timer->child);
    if (rest != NULL)
        add(timers, rest);
    return true;
}

void bide_timers_take_due(bide_timers *timers, uint64_t now, bide_awaiter_chain *due)
{
    while (timers->first != NULL && timer_of(timers->first)->time <= now) {
        bide_awaiter *awaiter = timers->first;
        if (timer_of(awaiter)->time == BIDE_FOREVER)
            return;
        bide_timers_remove(timers, timer_of(awaiter));
        awaiter->link = NULL;
        bide_awaiter_chain_append(due, awaiter, awaiter);
    }
}
