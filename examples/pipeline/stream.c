/* The ring of records. The reader publishes; the consumers read published records only. */
#include "stream.h"

#include <errno.h>
#include <stdlib.h>

int stream_init(struct stream *stream, size_t size)
{
    struct record *slots = calloc(size, sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    bide_ring_init(&stream->ring, slots, size);
    /* Several batches fit into the ring, so each coroutine can have one to work on. */
    stream->batch = size >= 4 ? size / 4 : 1;

    size_t initial = bide_sequence_initial();
    bide_sequence_barrier_init(&stream->published, initial);
    bide_sequence_barrier_init(&stream->counted, initial);
    bide_sequence_barrier_init(&stream->summed, initial);
    bide_sequence_barrier_init(&stream->freed, initial);

    stream->both_members[0] = &stream->counted;
    stream->both_members[1] = &stream->summed;
    bide_sequence_group_init(&stream->both, stream->both_members, 2);
    stream->gate_members[0] = &stream->freed;
    bide_sequence_group_init(&stream->gate, stream->gate_members, 1);
    return bide_single_producer_sequencer_init(&stream->sequencer, &stream->published,
                                               &stream->gate, size);
}

void stream_free(struct stream *stream)
{
    free(stream->ring.slots);
}

size_t stream_batch_end(const struct stream *stream, size_t next, size_t published)
{
    size_t count = published - next + 1;
    return next + (count < stream->batch ? count : stream->batch) - 1;
}

size_t stream_next_run(const struct stream *stream, size_t next, size_t last, struct run *run)
{
    const struct record *record = bide_ring_at(&stream->ring, next);
    run->text = record->text;
    run->size = 0;
    run->lines = 0;
    do {
        run->size += record->size;
        run->lines += record->ends_line;
        record = bide_ring_at(&stream->ring, ++next);
    } while (next != last + 1 && record->text == run->text + run->size);
    return next;
}
