/*
 * The position of an operation in the buffers that it was given: at `*offset` of the first of
 * `*vectors`.
 */
#ifndef BIDE_IO_VECTORS_H
#define BIDE_IO_VECTORS_H

#include "bide/platform.h"

#include <stddef.h>
#include <sys/uio.h>

/*
 * Advances the position by `count` of the `*left` bytes, and past empty buffers. If bytes are left,
 * the first buffer has some.
 */
BIDE_INLINE void vectors_pass(const struct iovec **vectors, size_t *offset, size_t *left,
                              size_t count)
{
    bide_assert(count <= *left);
    *left -= count;
    *offset += count;
    while (*left != 0 && *offset >= (*vectors)->iov_len) {
        *offset -= (*vectors)->iov_len;
        ++*vectors;
    }
}

#endif
