/* Moving bytes from one descriptor to another in the kernel. */
#ifndef BIDE_IO_MOVE_H
#define BIDE_IO_MOVE_H

#include "operation.h"

#include <signal.h>

/*
 * Blocks SIGPIPE for a call that moves bytes, and discards one that the call has raised. The calls
 * have no flag for that. A call may raise it after it has moved some bytes, and then returns their
 * number. Both functions keep errno.
 */
typedef struct io_sigpipe {
    sigset_t before;
    bool was_pending; /* it was raised before, so it is not ours to discard */
} io_sigpipe;
void bide_io_hold_sigpipe_(io_sigpipe *held);
void bide_io_release_sigpipe_(const io_sigpipe *held, bool may_have_come);

/* Rows of the operation table: as in calls.h. Only the second may block. */
ptrdiff_t bide_call_splice_to_socket_(bide_io_operation *operation);
ptrdiff_t bide_call_splice_from_file_(bide_io_operation *operation);

/*
 * It adds what it has sent to the count itself, and stores in `found` how far the file could be
 * sent without waiting for a disk. 0 or a negative errno; -EAGAIN: the socket accepts no more now.
 */
ptrdiff_t bide_call_send_file_(bide_io_operation *operation);

#endif
