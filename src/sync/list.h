/*
 * A line of operations that each leave in constant time, wherever they stand. Floor: sync.
 *
 *     first --link--> ... --link--> last --link--> NULL
 *     `before` leads the other way, and from the first to the last; NULL: not in line
 *
 * A line belongs to its holder, one thread at a time: handing it over releases, taking it acquires.
 * So its links need no order of their own, and whether an operation is in line is read in the
 * operation, by the holder. Where `before` stands in an operation its kind says, by a function that
 * compilers inline.
 *
 * A holder need not have seen an operation in line to let it leave: another thread names it
 * (bide_awaiter_leaves_), and leaves the name where the holder finds it; waiter_list.h and
 * waiter_queue.h say where.
 */
#ifndef BIDE_SYNC_LINE_H
#define BIDE_SYNC_LINE_H

#include "bide/stop.h"

typedef bide_awaiter **line_before(bide_awaiter *awaiter);

/* Its neighbours lead to each other; it leads to them still, for line_step_in. */
BIDE_INLINE void line_step_out(bide_awaiter **first, bide_awaiter *awaiter, line_before *before_of)
{
    bide_awaiter *before = *before_of(awaiter);
    bide_awaiter *after = awaiter->link;
    if (*first == awaiter)
        *first = after;
    else
        before->link = after;
    bide_awaiter *at = after != NULL ? after : *first;
    if (at != NULL)
        *before_of(at) = before;
}

/* Undoes the last line_step_out that has not been undone. */
BIDE_INLINE void line_step_in(bide_awaiter **first, bide_awaiter *awaiter, line_before *before_of)
{
    bide_awaiter *after = awaiter->link;
    bide_awaiter *at = after != NULL ? after : *first;
    if (*first == after)
        *first = awaiter; /* it was the first; its `before` is the last, or itself */
    else
        /* (in line, so `before` is not NULL) NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        (*before_of(awaiter))->link = awaiter;
    if (at != NULL)
        *before_of(at) = awaiter;
}

/* It leaves for good. */
BIDE_INLINE void line_take_out(bide_awaiter **first, bide_awaiter *awaiter, line_before *before_of)
{
    line_step_out(first, awaiter, before_of);
    *before_of(awaiter) = NULL;
}

/*
 * Done with an operation that was named, and is in no line any more: it was removed, or was not
 * there. If it has ended it is put in front of those to be woken.
 */
BIDE_INLINE void say_has_left(bide_awaiter *awaiter, bide_awaiter **woken)
{
    if (bide_awaiter_has_left_(awaiter)) {
        awaiter->link = *woken;
        *woken = awaiter;
    }
}

#endif
