/*
 * Operations by readiness (readiness.c), for the back ends that have a poller: epoll.c and poll.c. All
 * functions run on the loop's thread.
 */
#ifndef BIDE_IO_READINESS_H
#define BIDE_IO_READINESS_H

#include "loop.h"

/* The poller of a back end: it reports which descriptors are ready (readiness_direction_is_ready). */
struct bide_poller_ {
    /*
     * Reports the descriptor from now on, both directions, and the state of this moment. 0, or a negative
     * errno; -EPERM: it is of a kind that does not poll.
     */
    int (*add)(bide_loop *loop, bide_descriptor *descriptor);

    /* Reports nothing of the descriptor, which was added, from now on. */
    void (*remove)(bide_loop *loop, bide_descriptor *descriptor);
};

/* The members of a bide_io_table, and continue_line of a bide_back_end_. */
bide_frame *bide_readiness_start_(bide_io *io, bide_io_operation *operation, bide_frame *frame);
void bide_readiness_cancel_(bide_io *io, bide_io_operation *operation);
void bide_readiness_discard_(bide_io *io, bide_io_operation *operation);
void bide_readiness_release_(bide_io *io, bide_descriptor *descriptor);
void bide_readiness_continue_line_(bide_loop *loop, bide_descriptor *descriptor, int direction);

/* Makes the calls of a line, until one has to wait. */
void bide_readiness_try_line_(bide_loop *loop, bide_descriptor *descriptor, int direction);

BIDE_STATIC_ASSERT(IO_WAITS_OUTPUT == IO_WAITS_INPUT << BIDE_IO_OUTPUT && BIDE_IO_INPUT == 0,
                   "the bit of a direction is the bit of input, shifted by the direction");

BIDE_INLINE bool readiness_direction_waits(const bide_descriptor *descriptor, int direction)
{
    return direction != BIDE_IO_FREE &&
           (descriptor->bits & ((unsigned)IO_WAITS_INPUT << direction)) != 0;
}

/* (operations that wait for no other are retried at each change) */
BIDE_INLINE void readiness_set_waits(bide_descriptor *descriptor, int direction, bool waits)
{
    if (direction == BIDE_IO_FREE)
        return;
    if (waits)
        descriptor->bits |= (unsigned)IO_WAITS_INPUT << direction;
    else
        descriptor->bits &= ~((unsigned)IO_WAITS_INPUT << direction);
}

/* A call in this direction may succeed now. */
BIDE_INLINE void readiness_direction_is_ready(bide_loop *loop, bide_descriptor *descriptor,
                                              int direction)
{
    if (descriptor->lines[direction].first != NULL)
        bide_readiness_try_line_(loop, descriptor, direction);
    else
        readiness_set_waits(descriptor, direction, false);
}

#endif
