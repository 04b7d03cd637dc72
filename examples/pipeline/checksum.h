/* The checksum consumer: the CRC-32 of all bytes, and the numbers of bytes and lines. */
#ifndef PIPELINE_CHECKSUM_H
#define PIPELINE_CHECKSUM_H

#include "stream.h"

#include <bide/task.h>

struct checksum {
    bide_task task;
    struct stream *stream;
    size_t next; /* the next record */
    bide_sequence_waiter wait;

    /* results */
    uint32_t crc;
    uint64_t bytes;
    uint64_t lines;
};

/* Consumes published records until the barrier is closed; then closes `summed`. Finishes with 0. */
bide_awaiter *checksum_run(struct checksum *checksum, struct stream *stream);

#endif
