/*
 * The state of a thread at a step: its registers, its stack and its thread-local variables. Two equal
 * states of one thread continue in the same way, as long as what they read is the same.
 */
#ifndef BIDE_CHECK_SNAPSHOT_H
#define BIDE_CHECK_SNAPSHOT_H

#include "execution.h"

typedef struct snapshot_buffer {
    unsigned char *bytes;
    unsigned used, capacity;
} snapshot_buffer;

/*
 * Appends the state of the running thread at its call of the running operation, and sets the state's
 * size. False: it cannot be told on this processor, or the code was compiled without unwind tables.
 */
bool snapshot_take(snapshot_buffer *to, unsigned *size);

#endif
