/*
 * The reader: reads the input block by block and publishes a record for each line.
 *
 *     block   |  published lines  |  tail  |  not read yet  |
 *                               begin     end
 *
 * Lines are published in place. When a block is full, its tail, an incomplete line, is copied to
 * the front of the next block. A line that fills a block alone is published in pieces. So memory is
 * bounded for every input. There are a few blocks, used in turn: a block is refilled when its last
 * record has been freed.
 */
#ifndef PIPELINE_READER_H
#define PIPELINE_READER_H

#include "stream.h"

#include <bide/blocking.h>
#include <bide/task.h>

enum { BLOCKS = 8, BLOCK_SIZE = 256 * 1024 };

struct block {
    char text[BLOCK_SIZE];
    size_t last; /* the last published record when the block was left */
};

struct reader {
    bide_task task;
    struct stream *stream;
    bide_blocking *blocking;
    int fd;
    bool ended; /* nothing more will be read */

    struct block blocks[BLOCKS];
    struct block *block;
    size_t begin;   /* of the unpublished text */
    size_t scanned; /* no newline from begin to here */
    size_t end;     /* of the text read */

    struct record found;
    size_t next;    /* the next record to fill */
    size_t claimed; /* claimed slots from there on */
    size_t filled;  /* filled, unpublished records before it */

    bide_blocking_reader read;
    bide_sequence_waiter wait;
    bide_claim claim;
};

/*
 * Reads `fd` to its end, or until `blocking` is interrupted. When it finishes, it closes the
 * stream's sequencer: with 0, with the error of a read, or with -EPIPE if the consumers gave up.
 */
bide_awaiter *reader_run(struct reader *reader, struct stream *stream, bide_blocking *blocking,
                         int fd);

#endif
