/* Data that are only read, in a struct that has one member for both directions. */
#ifndef BIDE_IO_AS_DATA_H
#define BIDE_IO_AS_DATA_H

#include "bide/compiler.h"

/* The same address, without its const. The callee does not write to it. */
BIDE_INLINE void *io_as_data(const void *data)
{
    union {
        const void *given;
        void *taken;
    } both = {data};
    return both.taken;
}

#endif
