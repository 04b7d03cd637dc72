/*
 * What the four coroutines share: a ring of records, and the barriers by which they pass it on.
 *
 *                              +--> words ----counted--+
 *       reader ---published----+                       +--> progress ---freed---> reader
 *                              +--> checksum --summed--+
 *
 * Each barrier has one publisher: the coroutine whose arrow leads to it. A record says where in the
 * reader's blocks a line stands, so the text itself is never copied; slot and text are the readers'
 * until `freed` has passed the record.
 */
#ifndef PIPELINE_STREAM_H
#define PIPELINE_STREAM_H

#include <bide/ring.h>
#include <bide/sequence_group.h>
#include <bide/single_producer_sequencer.h>

/* A line with its newline, or a piece of a line: one that is longer than a block, or that the end of
 * the input cuts off. */
struct record {
    const char *text;
    uint32_t size;
    bool ends_line;
};

struct stream {
    bide_ring(struct record) ring;
    size_t batch; /* how many records are worth publishing as one step */
    bide_sequence_group both;
    bide_sequence_barrier *both_members[2];
    bide_sequence_group gate;
    bide_sequence_barrier *gate_members[1];

    bide_sequence_barrier published;
    bide_sequence_barrier counted;
    bide_sequence_barrier summed;
    bide_sequence_barrier freed;
    bide_single_producer_sequencer sequencer; /* only the reader touches it */
};

/* The text of adjacent records, as one piece. */
struct run {
    const char *text;
    size_t size;
    size_t lines; /* how many of the records end one */
};

/* Makes a stream with a ring of `size` records, a power of two. Returns 0 or -ENOMEM. */
int stream_init(struct stream *stream, size_t size);

void stream_free(struct stream *stream);

/* Where a consumer's batch ends that begins at `next`, when all up to `published` is there. */
size_t stream_batch_end(const struct stream *stream, size_t next, size_t published);

/* Takes the run that begins with record `next` and ends with `last` at the latest. Returns the record
 * after it. */
size_t stream_take_run(const struct stream *stream, size_t next, size_t last, struct run *run);

#endif
