/*
 * A doubly linked list of waiting operations, from which each is removed in constant time.
 * Floor: sync.
 *
 *     first --link--> ... --link--> last --link--> NULL
 *     `before` leads to the predecessor, and from the first to the last; NULL: not in the list
 *
 * A list belongs to its holder, one thread at a time: handing it over releases, taking it acquires.
 * So its links need no memory order of their own, and the holder reads from an operation whether it
 * is in the list. A function that compilers inline says where an operation has its `before`.
 *
 * The holder can remove an operation that it has not seen in the list: another thread requests the
 * removal (bide_awaiter_leaves_), and leaves the request where the holder finds it.
 * docs/internals/waiter_list.md and docs/internals/waiter_queue.md say where.
 */
#ifndef BIDE_SYNC_LINE_H
#define BIDE_SYNC_LINE_H

#include "bide/stop.h"

typedef bide_awaiter **line_before(bide_awaiter *awaiter);

/* Links the operation's neighbours to each other. Its own links stay, for line_reinsert. */
BIDE_INLINE void line_unlink(bide_awaiter **first, bide_awaiter *awaiter, line_before *before_of)
{
    bide_awaiter *before = *before_of(awaiter);
    bide_awaiter *after = awaiter->link;
    bide_assert(before != NULL);
    bide_assert(*first == awaiter || before->link == awaiter);
    if (*first == awaiter)
        *first = after;
    else
        before->link = after;
    bide_awaiter *at = after != NULL ? after : *first;
    if (at != NULL) {
        bide_assert(*before_of(at) == awaiter);
        *before_of(at) = before;
    }
}

/* Undoes the last line_unlink that has not been undone. */
BIDE_INLINE void line_reinsert(bide_awaiter **first, bide_awaiter *awaiter, line_before *before_of)
{
    bide_awaiter *after = awaiter->link;
    bide_awaiter *at = after != NULL ? after : *first;
    bide_assert(*before_of(awaiter) != NULL);
    bide_assert(at == NULL || *before_of(at) == *before_of(awaiter));
    if (*first == after)
        *first = awaiter; /* it was the first; its `before` is the last, or itself */
    else
        /* (its `before` is not NULL) NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        (*before_of(awaiter))->link = awaiter;
    if (at != NULL)
        *before_of(at) = awaiter;
}

/* Removes the operation for good. */
BIDE_INLINE void line_remove(bide_awaiter **first, bide_awaiter *awaiter, line_before *before_of)
{
    line_unlink(first, awaiter, before_of);
    *before_of(awaiter) = NULL;
}

/*
 * Completes a requested removal of an operation that is in no list any more. If the operation has
 * ended, adds it in front of those to be woken.
 */
BIDE_INLINE void complete_removal(bide_awaiter *awaiter, bide_awaiter **woken)
{
    if (bide_awaiter_has_left_(awaiter)) {
        awaiter->link = *woken;
        *woken = awaiter;
    }
}

#endif
