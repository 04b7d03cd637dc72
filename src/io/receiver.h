/* The part of a receiver that back ends use. On the thread of the socket's io. */
#ifndef BIDE_IO_RECEIVER_H
#define BIDE_IO_RECEIVER_H

#include "bide/receiver.h"

/* Keeps a chunk of `size` bytes, in a buffer of the pool, behind the others. */
void bide_receiver_keep_(bide_receiver *receiver, const void *data, size_t size);

/*
 * Completes `next` with the oldest chunk that is kept, or with the end of the stream. False: there is
 * neither.
 */
bool bide_receiver_take_(bide_receiver *receiver);

#endif
