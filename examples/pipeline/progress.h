/*
 * The progress: comes after both other consumers, returns slots and text to the reader, and draws a
 * bar on a terminal.
 */
#ifndef PIPELINE_PROGRESS_H
#define PIPELINE_PROGRESS_H

#include "stream.h"

#include <bide/task.h>

struct progress {
    bide_task task;
    struct stream *stream;
    size_t next; /* the next record */
    bide_sequence_group_waiter wait;

    bool shown;          /* stderr is a terminal */
    uint64_t total;      /* bytes of the input, 0 if unknown */
    uint64_t bytes;      /* bytes that have passed; counted only if shown */
    uint64_t started_at; /* in nanoseconds */
    uint64_t drawn_at;   /* when the bar was last drawn, 0 if never */
};

/*
 * Frees the records that both other consumers have consumed, until one of them has closed its
 * barrier; then closes `freed`. Draws on stderr if that is a terminal. `total` is the size of the
 * input, 0 if unknown. Finishes with 0.
 */
bide_awaiter *progress_run(struct progress *progress, struct stream *stream, uint64_t total);

#endif
