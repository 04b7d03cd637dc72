/*
 * The data that the four coroutines share: a ring of records, and the barriers by which they pass
 * it on.
 *
 *                              +--> words ----counted--+
 *       reader ---published----+                       +--> progress ---freed---> reader
 *                              +--> checksum --summed--+
 *
 * Each barrier has one publisher: the coroutine at the arrow's start. A record refers to a line in
 * the reader's blocks, so the text is never copied. The slot and the text of a record belong to the
 * consumers until `freed` has passed the record.
 */
#ifndef PIPELINE_STREAM_H
#define PIPELINE_STREAM_H

#include <bide/ring.h>
#include <bide/sequence_group.h>
#include <bide/single_producer_sequencer.h>

/*
 * A line with its newline, or a piece of a line: of a line longer than a block, or of one that the
 * end of input truncates.
 */
struct record {
    const char *text;
    uint32_t size;
    bool ends_line;
};

struct stream {
    bide_ring(struct record) ring;
    size_t batch; /* records published as one step */
    bide_sequence_group both;
    bide_sequence_barrier *both_members[2];
    bide_sequence_group gate;
    bide_sequence_barrier *gate_members[1];

    bide_sequence_barrier published;
    bide_sequence_barrier counted;
    bide_sequence_barrier summed;
    bide_sequence_barrier freed;
    bide_single_producer_sequencer sequencer; /* used only by the reader */
};

/* The contiguous text of adjacent records. */
struct run {
    const char *text;
    size_t size;
    size_t lines; /* records that end a line */
};

/* Initializes a stream with a ring of `size` records, a power of two. Returns 0 or -ENOMEM. */
int stream_init(struct stream *stream, size_t size);

void stream_free(struct stream *stream);

/*
 * The last record of a consumer's batch that begins at `next`, if all up to `published` is
 * available.
 */
size_t stream_batch_end(const struct stream *stream, size_t next, size_t published);

/*
 * Gets the longest run that begins with record `next` and ends with `last` at the latest. Returns
 * the record after it.
 */
size_t stream_next_run(const struct stream *stream, size_t next, size_t last, struct run *run);

#endif
