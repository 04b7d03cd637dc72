/*
 * Progress: comes after the other two consumers, gives slots and text back to the reader, and draws a bar
 * on a terminal.
 */
#ifndef PIPELINE_PROGRESS_H
#define PIPELINE_PROGRESS_H

#include "stream.h"

#include <bide/task.h>

struct progress {
    bide_task task;
    struct stream *stream;
    size_t next; /* the record to go on with */
    bide_sequence_group_waiter wait;

    bool shown;     /* is there a terminal to draw on? */
    uint64_t total; /* the bytes to come, 0 if unknown */
    uint64_t bytes; /* that have passed; counted only if shown */
    uint64_t begun; /* a time, in nanoseconds */
    uint64_t drawn; /* when the bar was drawn last, 0 if never */
};

/*
 * Frees what both other consumers have done with, until one of them has closed its barrier; then closes
 * `freed`. Draws on stderr if that is a terminal. `total` is the size of the input, 0 if unknown. Ends
 * with 0.
 */
bide_awaiter *progress_run(struct progress *progress, struct stream *stream, uint64_t total);

#endif
