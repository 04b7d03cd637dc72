/*
 * Operations that may block: the file pool makes their calls, for back ends that cannot wait for
 * their completion. All functions are called on the loop's thread.
 */
#ifndef BIDE_IO_OFFLOAD_H
#define BIDE_IO_OFFLOAD_H

#include "loop.h"

/* Begins an operation on the loop's file pool, as begin of a bide_io_table. */
bide_frame *bide_loop_offload_(bide_loop *loop, bide_io_operation *operation, bide_frame *frame);

/* The file pool has the operation, or has done it, and it has not ended yet. */
BIDE_INLINE bool bide_loop_is_offloaded_(const bide_io_operation *operation)
{
    return (operation->state & IO_OFFLOADED) != 0;
}

/*
 * Requests an offloaded operation to stop, as cancel of a bide_io_table. An operation that has
 * started is not interrupted.
 */
void bide_loop_cancel_offloaded_(bide_loop *loop, bide_io_operation *operation);

/*
 * Takes an offloaded operation back, as forget of a bide_io_table. Waits for one that has started,
 * because a thread, or the post of its completion, refers to it.
 */
void bide_loop_discard_offloaded_(bide_loop *loop, bide_io_operation *operation);

/* Ends an offloaded operation, for release of a bide_io_table: it keeps what it has done. */
void bide_loop_release_offloaded_(bide_loop *loop, bide_io_operation *operation);

#endif
