/*
 * The reader: reads the input block by block and publishes a record for each line.
 *
 *     block   |  published lines  |  tail  |  not read yet  |
 *                               begin     end
 *
 * Lines are published in place. When the block is full, the tail, a line whose end has not been read, is
 * copied to the front of the next one; a line that fills a block by itself is published in pieces. So
 * memory is bounded whatever the input. There are a few blocks, used in turn: one is filled again when
 * its last record has been freed.
 */
#ifndef PIPELINE_READER_H
#define PIPELINE_READER_H

#include "stream.h"

#include <bide/blocking.h>
#include <bide/task.h>

enum { BLOCKS = 8, BLOCK_SIZE = 256 * 1024 };

struct block {
    char text[BLOCK_SIZE];
    size_t last; /* the last record that was published when the block was left */
};

struct reader {
    bide_task task;
    struct stream *stream;
    bide_blocking *blocking;
    int fd;
    bool ended; /* nothing more will be read */

    struct block blocks[BLOCKS];
    struct block *block;
    size_t begin;   /* of the text that is not published yet */
    size_t scanned; /* from begin to here there is no newline */
    size_t end;     /* of what has been read */

    struct record found;
    size_t next;    /* the record that is filled next */
    size_t claimed; /* how many slots from there on are claimed */
    size_t filled;  /* how many before it are not published yet */

    bide_blocking_reader read;
    bide_sequence_waiter wait;
    bide_claim claim;
};

/*
 * Reads `fd` to its end, or until `blocking` is interrupted. Closes
 * the stream's sequencer when it ends: with 0, with the error of a read, or with -EPIPE if the consumers
 * gave up.
 */
bide_awaiter *reader_run(struct reader *reader, struct stream *stream, bide_blocking *blocking,
                         int fd);

#endif
