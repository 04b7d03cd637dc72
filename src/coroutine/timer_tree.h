/*
 * Trees of timers: pairing heaps without a head. Floor: coroutine.
 *
 *     root --> 3 --child--> 5 --link--> 4 --link--> 9
 *                                       |
 *                                     child--> 8 --link--> 4
 *
 * Each timer has a list of later timers, its children, themselves trees. `place` is the address of
 * the pointer that leads to a timer: the root, the child of its parent, or the link of the sibling
 * before it. A root has no sibling.
 *
 * 1. The root comes first, because each timer comes before its children.
 * 2. Adding a timer takes one comparison with the root.
 * 3. Removing a timer melds its children into one tree, which takes its place. That tree comes after
 *    the parent, as its parts did. So removing needs no root, and a timer without a child is only
 *    unlinked.
 * 4. Nothing here is recursive, because a tree may be as deep as it has timers.
 *
 * Source: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap: a new form of self-adjusting
 * heap", 1986.
 */
#ifndef BIDE_COROUTINE_TIMER_TREE_H
#define BIDE_COROUTINE_TIMER_TREE_H

#include "bide/extend/timer.h"

BIDE_INLINE bide_timer *timer_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_timer, awaiter);
}

/* The bit of `child` that says that it is a hint. It is free in the address of an awaiter. */
enum { TIMER_HINT = 1 };

BIDE_STATIC_ASSERT(_Alignof(bide_awaiter) > TIMER_HINT,
                   "the address of an awaiter has TIMER_HINT clear");

BIDE_INLINE bool comes_before(const bide_timer *a, const bide_timer *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

BIDE_INLINE void timer_tree_put(bide_awaiter **place, bide_awaiter *awaiter)
{
    *place = awaiter;
    if (awaiter != NULL)
        timer_of(awaiter)->place = place;
}

/* NULL: none. A timer without children may keep a hint in `child`: timers.c, 8. */
BIDE_INLINE bide_awaiter *timer_children(const bide_timer *timer)
{
    return ((uintptr_t)timer->child & TIMER_HINT) == 0 ? timer->child : NULL;
}

/*
 * Makes the later of two roots the first child of the earlier, which is returned; its link and
 * place are as they were.
 */
BIDE_INLINE bide_timer *timer_tree_meld(bide_timer *a, bide_timer *b)
{
    bool swapped = comes_before(b, a);
    bide_timer *earlier = swapped ? b : a;
    bide_timer *later = swapped ? a : b;
    timer_tree_put(&later->awaiter.link, timer_children(earlier));
    timer_tree_put(&earlier->child, &later->awaiter);
    return earlier;
}

/*
 * Melds siblings, one at least, into one tree: by pairs from the first to the last, and the pairs
 * from the last to the first. Returns its root, whose link and place are not valid.
 */
static inline bide_timer *meld_all(bide_awaiter *first)
{
    bide_awaiter *pairs = NULL; /* linked, the last first */
    do {
        bide_timer *pair = timer_of(first);
        bide_awaiter *second = first->link;
        first = NULL;
        if (second != NULL) {
            first = second->link;
            pair = timer_tree_meld(pair, timer_of(second));
        }
        pair->awaiter.link = pairs;
        pairs = &pair->awaiter;
    } while (first != NULL);
    bide_timer *root = timer_of(pairs);
    for (pairs = pairs->link; pairs != NULL;) {
        bide_timer *pair = timer_of(pairs);
        pairs = pairs->link;
        root = timer_tree_meld(root, pair);
    }
    return root;
}

/* Adds a tree that is no part of another. Returns true if its root is the first now. */
BIDE_INLINE bool tree_add(bide_awaiter **root, bide_timer *timer)
{
    bide_timer *first = *root != NULL ? timer_tree_meld(timer_of(*root), timer) : timer;
    first->awaiter.link = NULL;
    timer_tree_put(root, &first->awaiter);
    return first == timer;
}

/* Removes a timer from the tree that it is in. */
BIDE_INLINE void tree_remove(bide_timer *timer)
{
    bide_awaiter **place = timer->place;
    bide_awaiter *next = timer->awaiter.link;
    bide_assert(place != NULL && *place == &timer->awaiter);
    bide_assert(next == NULL || timer_of(next)->place == &timer->awaiter.link);
    timer->place = NULL;
    bide_awaiter *children = timer_children(timer);
    if (children != NULL) {
        bide_timer *rest = meld_all(children);
        timer_tree_put(place, &rest->awaiter);
        place = &rest->awaiter.link;
    }
    timer_tree_put(place, next);
}

/* Removes the timers whose time is `now` or earlier, and appends them to `due`, earliest first. */
static inline void tree_take_due(bide_awaiter **root, uint64_t now, bide_awaiter_chain *due)
{
    bide_awaiter *first;
    uint64_t time;
    while ((time = bide_timer_time_(first = *root)) <= now && time != BIDE_FOREVER) {
        tree_remove(timer_of(first));
        first->link = NULL;
        bide_awaiter_chain_append(due, first, first);
    }
}

#endif
