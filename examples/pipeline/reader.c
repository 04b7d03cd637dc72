/* The reader: the only producer of the ring. One coroutine. */
#include "reader.h"

#include <errno.h>
#include <string.h>

static struct block *following_block(struct reader *self)
{
    return self->block + 1 < self->blocks + BLOCKS ? self->block + 1 : self->blocks;
}

/* Switches from a full block to the following one, which is free, and copies the tail there. */
static void switch_to_following_block(struct reader *self)
{
    struct block *block = following_block(self);
    size_t tail = self->end - self->begin;
    memcpy(block->text, self->block->text + self->begin, tail);
    self->block->last = self->next - 1;
    self->block = block;
    self->begin = 0;
    self->scanned = tail;
    self->end = tail;
}

/*
 * Finds the next unpublished line, or piece of a line that has to be published, and stores it in
 * `found`. Returns false if there is none.
 */
static bool find_record(struct reader *self)
{
    const char *text = self->block->text;
    const char *newline = memchr(text + self->scanned, '\n', self->end - self->scanned);
    self->scanned = newline != NULL ? (size_t)(newline + 1 - text) : self->end;
    bool fills_block = self->begin == 0 && self->end == BLOCK_SIZE;
    bool complete = newline != NULL || fills_block || self->ended;
    if (!complete || self->begin == self->end)
        return false;
    self->found.text = text + self->begin;
    self->found.size = (uint32_t)(self->scanned - self->begin);
    self->found.ends_line = newline != NULL;
    self->begin = self->scanned;
    return true;
}

/* Writes the found record into the next claimed slot. */
static void fill_slot(struct reader *self)
{
    *bide_ring_at(&self->stream->ring, self->next) = self->found;
    self->next++;
    self->claimed--;
    self->filled++;
}

static void publish_filled(struct reader *self)
{
    if (self->filled == 0)
        return;
    bide_single_producer_sequencer_publish_range(&self->stream->sequencer,
                                                 self->next - self->filled, self->filled);
    self->filled = 0;
}

bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct reader * self);
    while (!self->ended) {
        if (self->end == BLOCK_SIZE) {
            bide_try(bide_sequence_barrier_wait_until_published(&self->wait, &self->stream->freed,
                                                                following_block(self)->last));
            switch_to_following_block(self);
        }

        int status;
        bide_await_status(status, bide_blocking_read(&self->read, self->blocking, self->fd,
                                                     self->block->text + self->end,
                                                     BLOCK_SIZE - self->end));
        if (status < 0 && status != -ECANCELED)
            bide_return(status);
        if (self->read.result > 0)
            self->end += (size_t)self->read.result;
        self->ended = self->read.result <= 0; /* (-ECANCELED: the data read so far is all) */

        /*
         * Slots are claimed in batches; slots that a block does not use are left for the next one.
         */
        while (find_record(self)) {
            if (self->claimed == 0) {
                publish_filled(self);
                bide_try(bide_single_producer_sequencer_claim_up_to(
                    &self->claim, &self->stream->sequencer, self->stream->batch));
                self->claimed = self->claim.count;
            }
            fill_slot(self);
        }
        publish_filled(self);
    }

    bide_finally();
    bide_single_producer_sequencer_close(&self->stream->sequencer);
    bide_end();
}

bide_awaiter *reader_run(struct reader *self, struct stream *stream, bide_blocking *blocking,
                         int fd)
{
    self->stream = stream;
    self->blocking = blocking;
    self->fd = fd;
    self->block = self->blocks;
    self->begin = self->scanned = self->end = 0;
    self->next = 0;
    self->claimed = self->filled = 0;
    self->ended = false;
    for (size_t i = 0; i < BLOCKS; i++)
        self->blocks[i].last = bide_sequence_initial(); /* free from the start */
    return bide_task_init(&self->task, &reader_body);
}
