/* The part of an acceptor that back ends use. On the thread of the listener's io. */
#ifndef BIDE_IO_ACCEPTOR_H
#define BIDE_IO_ACCEPTOR_H

#include "bide/acceptor.h"

/* Keeps a connection. */
void bide_io_acceptor_keep_(bide_acceptor *acceptor, int fd);

/* Takes the oldest; -1: there is none. */
int bide_io_acceptor_take_(bide_acceptor *acceptor);

/* Gives a connection that was taken to an accept, which is done then. */
void bide_io_acceptor_give_(bide_io_operation *operation, int fd);

BIDE_INLINE bool io_acceptor_is_full(const bide_acceptor *acceptor)
{
    return acceptor->count == acceptor->size;
}

#endif
