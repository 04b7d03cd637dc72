/* The checksum consumer. One coroutine; it runs on one of the pool's threads at a time. */
#include "checksum.h"

#include <zlib.h>

static void add_records(struct checksum *self, size_t last)
{
    struct run run;
    while (self->next != last + 1) {
        self->next = stream_next_run(self->stream, self->next, last, &run);
        self->crc = (uint32_t)crc32_z(self->crc, (const Bytef *)run.text, run.size);
        self->bytes += run.size;
        self->lines += run.lines;
    }
}

bide_coroutine(checksum_body)
{
    bide_begin(checksum_body, struct checksum * self);
    for (;;) {
        /* (closed and fully consumed: leaves the loop) */
        bide_try_or_break(bide_sequence_barrier_wait_until_published(
            &self->wait, &self->stream->published, self->next));
        size_t last = stream_batch_end(self->stream, self->next, self->wait.published);
        add_records(self, last);
        bide_sequence_barrier_publish(&self->stream->summed, last);
    }
    bide_finally();
    bide_sequence_barrier_close(&self->stream->summed);
    bide_end();
}

bide_awaiter *checksum_run(struct checksum *self, struct stream *stream)
{
    self->stream = stream;
    self->next = 0;
    self->crc = 0;
    self->bytes = 0;
    self->lines = 0;
    return bide_task_init(&self->task, &checksum_body);
}
