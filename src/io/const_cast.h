/* Data that are read, in a struct of the system's or of ours that has one place for both ways. */
#ifndef BIDE_IO_AS_DATA_H
#define BIDE_IO_AS_DATA_H

#include "bide/compiler.h"

/* The same address. What it leads to is not written to. */
BIDE_INLINE void *io_as_data(const void *data)
{
    union {
        const void *given;
        void *taken;
    } both = {data};
    return both.taken;
}

#endif
