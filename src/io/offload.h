/*
 * Operations that may block: the file pool makes their calls, for back ends that cannot wait for
 * their completion. All functions are called on the loop's thread.
 */
#ifndef BIDE_IO_OFFLOAD_H
#define BIDE_IO_OFFLOAD_H

#include "loop.h"

/* Creates a file pool, whose calls can be interrupted. 0, or a negative errno. */
int bide_loop_create_file_pool_(bide_blocking **files);

/*
 * Begins an operation on the loop's file pool, as begin of a bide_io_table. If others are in its line,
 * it waits behind them.
 */
bide_frame *bide_loop_offload_(bide_loop *loop, bide_io_operation *operation, bide_frame *frame);

/*
 * Gives an operation that waits, the first of its line, to the file pool. False: it has ended with an
 * error.
 */
bool bide_loop_offload_waiting_(bide_loop *loop, bide_io_operation *operation);

/* The file pool has the operation, or has done it, and it has not ended yet. */
BIDE_INLINE bool bide_loop_is_offloaded_(const bide_io_operation *operation)
{
    return (operation->state & IO_OFFLOADED) != 0;
}

/*
 * Requests an offloaded operation to stop, as cancel of a bide_io_table. A call that has started is
 * interrupted.
 */
void bide_loop_cancel_offloaded_(bide_loop *loop, bide_io_operation *operation);

/*
 * Takes an offloaded operation back, as discard of a bide_io_table. A call that has started is
 * interrupted. Waits for its end, because a thread, or the post of its completion, refers to it.
 */
void bide_loop_discard_offloaded_(bide_loop *loop, bide_io_operation *operation);

/* Ends an offloaded operation, for release of a bide_io_table: it keeps what it has done. */
void bide_loop_release_offloaded_(bide_loop *loop, bide_io_operation *operation);

#endif
