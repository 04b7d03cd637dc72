/*
 * The checksum: the CRC-32 of all bytes, and how many bytes and lines there are.
 */
#ifndef PIPELINE_CHECKSUM_H
#define PIPELINE_CHECKSUM_H

#include "stream.h"

#include <bide/task.h>

struct checksum {
    bide_task task;
    struct stream *stream;
    size_t next; /* the record to go on with */
    bide_sequence_waiter wait;

    /* the results */
    uint32_t crc;
    uint64_t bytes;
    uint64_t lines;
};

/* Sums up what is published, until that is closed; then closes `summed`. Ends with 0. */
bide_awaiter *checksum_run(struct checksum *checksum, struct stream *stream);

#endif
