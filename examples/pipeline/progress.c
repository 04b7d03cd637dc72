/* The last consumer: progress, and the slots that it frees. One coroutine. */
#define _GNU_SOURCE
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

#define SECOND   UINT64_C(1000000000)
#define INTERVAL (SECOND / 10) /* between two drawings */

static const char full_bar[] = "##############################";
enum { BAR_WIDTH = sizeof full_bar - 1 };

static void draw_bar(struct progress *self, uint64_t now)
{
    double seconds = (double)(now - self->started_at) / (double)SECOND;
    double megabytes = (double)self->bytes / 1e6;
    double rate = seconds > 0 ? megabytes / seconds : 0;
    if (self->total != 0) {
        double part = (double)self->bytes / (double)self->total;
        if (part > 1) /* the file has grown */
            part = 1;
        fprintf(stderr, "\r[%-*.*s] %3d %%  %.0f MB  %.0f MB/s\033[K", BAR_WIDTH,
                (int)(part * BAR_WIDTH), full_bar, (int)(part * 100), megabytes, rate);
    } else {
        fprintf(stderr, "\r%.1f MB  %.0f MB/s\033[K", megabytes, rate);
    }
    fflush(stderr);
}

/* Counts records that have passed and are not freed yet. */
static void count_records(struct progress *self, size_t last)
{
    for (size_t record = self->next; record != last + 1; record++)
        self->bytes += bide_ring_at(&self->stream->ring, record)->size;
}

static void draw_if_due(struct progress *self)
{
    uint64_t now = bide_platform.now();
    if (now - self->drawn_at < INTERVAL)
        return;
    self->drawn_at = now;
    draw_bar(self, now);
}

static void clear_bar(void)
{
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

bide_coroutine(progress_body)
{
    bide_begin(progress_body, struct progress * self);
    for (;;) {
        /* (closed and nothing left to free: leaves the loop) */
        bide_try_or_break(
            bide_sequence_group_wait_until_published(&self->wait, &self->stream->both, self->next));
        size_t last = self->wait.published;
        if (self->shown)
            count_records(self, last);
        bide_sequence_barrier_publish(&self->stream->freed, last);
        self->next = last + 1;
        if (self->shown)
            draw_if_due(self);
    }
    bide_finally();
    bide_sequence_barrier_close(&self->stream->freed);
    if (self->drawn_at != 0)
        clear_bar();
    bide_end();
}

bide_awaiter *progress_run(struct progress *self, struct stream *stream, uint64_t total)
{
    self->stream = stream;
    self->next = 0;
    self->shown = isatty(STDERR_FILENO) != 0;
    self->total = total;
    self->bytes = 0;
    self->started_at = bide_platform.now();
    self->drawn_at = 0;
    return bide_task_init(&self->task, &progress_body);
}
