/* Moving bytes from one descriptor to another in the kernel. */
#ifndef BIDE_IO_MOVE_H
#define BIDE_IO_MOVE_H

#include "operation.h"

#include <signal.h>

/*
 * To move bytes to an end that is gone raises SIGPIPE, and no flag keeps these calls from that: so
 * it is blocked meanwhile, and taken back. It may come of a call that has moved some bytes, and
 * then the call returns their number. Both keep errno.
 */
typedef struct io_sigpipe {
    sigset_t before;
    bool was_pending; /* one that is not ours */
} io_sigpipe;
void bide_io_hold_sigpipe_(io_sigpipe *held);
void bide_io_release_sigpipe_(const io_sigpipe *held, bool may_have_come);

/* The calls of BIDE_IO_SPLICE_TO_SOCKET and _FROM_FILE; -1 and errno where they fail. */
ptrdiff_t bide_io_splice_to_socket_(const bide_io_operation *operation);
ptrdiff_t bide_io_splice_from_file_(const bide_io_operation *operation);

/*
 * Those of BIDE_IO_SEND_FILE. It counts itself what it has sent, and says in `found` how far the
 * file could be sent so. 0 or a negative errno; -EAGAIN: the socket takes no more for now.
 */
int bide_io_send_file_(bide_io_operation *operation);

#endif
