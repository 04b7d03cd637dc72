/*
 * A descriptor of the system, as a loop knows it: a socket, a pipe, a file. Floor: io.
 *
 *     bide_descriptor input;
 *     bide_descriptor_init(&input, STDIN_FILENO);
 *     bide_try(bide_read(&self->read, &input, self->buffer, sizeof self->buffer));
 *     bide_descriptor_release(&input);                        // or bide_close(&input)
 *
 *     CLOSED --init, or what opens it--> OPEN --close, or release--> CLOSED
 *
 * A struct of zeros is CLOSED.
 *
 * Operations that open one (bide_listen, bide_accept, bide_connect, bide_open) fill the struct that
 * they are given. It is the caller's memory and stays where it is while it is open.
 *
 * A descriptor belongs to the loop whose coroutines used it first, until it is closed or released.
 * It is used on that loop's thread only, or, in a pool whose workers each have a loop (io_pool.h), on
 * any of the pool's. There a close has an order with every operation, also with the first one: an
 * operation that begins later ends with -EBADF. Operations on it wait in one line for each direction:
 * they are done one after the other, in the order in which they were begun. Both directions go on at
 * the same time, and those at an offset of a file all do.
 *
 * Why it is correct: src/io/descriptor.c.
 */
#ifndef BIDE_DESCRIPTOR_H
#define BIDE_DESCRIPTOR_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_io bide_io;
typedef struct bide_io_operation bide_io_operation;

/* Operations that have not ended, the first begun first. */
typedef struct bide_io_line_ {
    bide_io_operation *first;
    bide_io_operation *last;
} bide_io_line_;

typedef struct bide_descriptor bide_descriptor;

struct bide_descriptor {
    bide_atomic(int) fd_and_1_; /* its number and one; 0: closed. Its io's thread writes it. */
    uint32_t bits;              /* what its io knows about it */
    bide_atomic(bide_io *) io;  /* to which it belongs (extend/io.h); NULL: none yet */
    bide_descriptor *next;      /* of the list of descriptors of `io` */
    bide_descriptor **place;    /* NULL: it is not in that list */
    /* of operations that wait for input, that wait for output, and that wait for no other */
    bide_io_line_ lines[3];
};

/*
 * Makes one that is closed. A struct of zeros is one already, so that `finally` may close the
 * descriptors of a frame that was zeroed.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_descriptor_init_closed(bide_descriptor *descriptor)
{
    bide_atomic_init(&descriptor->fd_and_1_, 0);
    descriptor->bits = 0;
    bide_atomic_init(&descriptor->io, (bide_io *)NULL);
    descriptor->place = NULL;
    descriptor->lines[0].first = NULL;
    descriptor->lines[1].first = NULL;
    descriptor->lines[2].first = NULL;
}

/*
 * Makes one of a descriptor of the system that is open; a negative number makes a closed one. Its
 * mode, blocking or not, stays as it is: others may share it. A struct that was used before is
 * closed, or released, before it is made another: its loop knows it until then. That is caught as
 * misuse when the loop sees it.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_descriptor_init(bide_descriptor *descriptor, int fd)
{
    bide_descriptor_init_closed(descriptor);
    bide_atomic_init(&descriptor->fd_and_1_, fd < 0 ? 0 : fd + 1);
}

/*
 * Whether it is open.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE bool bide_descriptor_is_open(const bide_descriptor *descriptor)
{
    return bide_atomic_load(&descriptor->fd_and_1_, relaxed) != 0; /* relaxed: descriptor.c, 4 */
}

/*
 * Returns its number, which stays the descriptor's; -1 if it is closed.
 * Threads: the loop's. Errors: none. Progress: wait-free.
 */
BIDE_INLINE int bide_descriptor_fd(const bide_descriptor *descriptor)
{
    return bide_atomic_load(&descriptor->fd_and_1_, relaxed) - 1; /* relaxed: descriptor.c, 4 */
}

/*
 * Ends what waits on it with -EPIPE, and closes it. Nothing refers to it afterwards: operations that
 * the kernel has begun are cancelled, and waited for. A descriptor that is closed is left as it is.
 * Threads: the loop's. Errors: -EBADF (it was closed), and those of close(2), after which it is
 * closed all the same. Progress: blocks until the kernel has let go of what waits; linear in that.
 */
int bide_close(bide_descriptor *descriptor);

/*
 * Takes it from its loop, open: returns its number, and it is as one that is closed. Operations
 * that wait on it end with -EPIPE. Another loop may have it then.
 * Threads: the loop's. Errors: -EBADF (it was closed). Progress: as bide_close.
 */
int bide_descriptor_release(bide_descriptor *descriptor);

BIDE_EXTERN_C_END

#endif
