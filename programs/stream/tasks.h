/* The async functions of stream that more than one file uses. */
#ifndef STREAM_TASKS_H
#define STREAM_TASKS_H

#include "stream.h"

#include <bide/async.h>

/*
 * Opens a log, and reports why it cannot be. The log must be there, except with
 * SOURCE_MAKES. It ends with the messages that it has now, except with SOURCE_STAYS; standard input at its
 * end. SOURCE_PROBES: a
 * log that is not there is -ENOENT without a report.
 */
enum { SOURCE_MAKES = 1, SOURCE_STAYS = 2, SOURCE_PROBES = 4 };
async_sized(6144) int source_open(struct stream *stream, struct source *source, const char *url,
                                  const bide_log_consumer_options *options, unsigned how);

/*
 * Reads up to `max` messages; returns how many, 0 at the end. They stay until source_done. Errors
 * are reported.
 */
async_sized(4096) int source_read(struct stream *stream, struct source *source,
                                  bide_log_message *messages, uint32_t max);

/* Acknowledges messages that were read, all of the last read. */
async_sized(4096) int source_done(struct stream *stream, struct source *source,
                                  const bide_log_message *messages, uint32_t count);

/* The source ends: reads that wait, and later ones. At once. */
void source_stop(struct source *source);

/* More than once is once. The position stays. */
void source_close(struct source *source);

async_sized(6144) int sink_open(struct stream *stream, struct sink *sink, const char *url);

/*
 * Writes messages, of which there may be none, and waits until they are as safe as the URL says. Errors
 * are reported.
 */
async_sized(4096) int sink_write(struct stream *stream, struct sink *sink,
                                 bide_log_message *messages, uint32_t count);

void sink_close(struct sink *sink);

/* Runs the command of the options. */
async_sized(16384) int command_run(struct stream *stream);

#endif
