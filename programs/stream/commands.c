/* The commands, in async C. Each checks between two batches whether a signal has come. */
#include "tasks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSHED = 1 << 16 /* bytes of messages, of which tail writes no more at once */ };

static const bide_log_consumer_options from_beginning = {.from = BIDE_LOG_FROM_BEGINNING};

static uint32_t minimum(uint32_t one, uint32_t other)
{
    return one < other ? one : other;
}

static int out_of_memory(struct stream *stream)
{
    report_failure(stream, "memory", strerror(ENOMEM));
    return -ENOMEM;
}

/* ---- copy ---- */

async int run_copy(struct stream *stream)
{
    const struct options *options = &stream->options;
    struct source *source = &stream->source;
    struct sink *sink = &stream->sink;
    bide_log_consumer_options place = {.group = options->group};
    if (options->has_start) {
        place.from = BIDE_LOG_FROM_POSITION;
        place.position = options->start;
    }
    try await source_open(stream, source, options->from, &place, 0);
    try await sink_open(stream, sink, options->to);
    uint32_t batch = options->batch;
    batch = minimum(batch, bide_log_window(source->log));
    batch = minimum(batch, bide_log_window(sink->log));
    while (!stream->is_stopped) {
        int count = await source_read(stream, source, stream->messages, batch);
        if (count <= 0)
            return count;
        try await sink_write(stream, sink, stream->messages, (uint32_t)count);
        stream->count += (unsigned)count;
        try await source_done(stream, source, stream->messages, (uint32_t)count);
    }
    return 0;
}

/* ---- tail ---- */

/* Copies a message. -ENOMEM: `kept` is as it was. */
static int keep(struct kept *kept, const bide_log_message *message)
{
    size_t key = message->key_size, headers = message->encoded_size;
    char *bytes = malloc(key + headers + message->size + 1);
    if (bytes == NULL)
        return -ENOMEM;
    if (key != 0)
        memcpy(bytes, message->key, key);
    if (headers != 0)
        memcpy(bytes + key, message->encoded, headers);
    if (message->size != 0)
        memcpy(bytes + key + headers, message->data, message->size);
    free(kept->bytes);
    kept->bytes = bytes;
    kept->message = (bide_log_message){.data = bytes + key + headers,
                                       .size = message->size,
                                       .key = key != 0 ? bytes : NULL,
                                       .key_size = key,
                                       .encoded = bytes + key,
                                       .encoded_size = headers};
    return 0;
}

/* Keeps the newest of the messages that were read; *total counts all. */
static int keep_messages(struct stream *stream, uint32_t count, uint64_t *total)
{
    uint32_t lines = stream->options.lines;
    for (uint32_t i = 0; i < count; i++, ++*total) {
        if (lines != 0 && keep(&stream->tail[*total % lines], &stream->messages[i]) < 0)
            return out_of_memory(stream);
    }
    return 0;
}

/* How many more of `count` messages tail prints. */
static uint32_t tail_left(const struct stream *stream, uint32_t count)
{
    uint64_t max = stream->options.count;
    return max != 0 && max - stream->count < count ? (uint32_t)(max - stream->count) : count;
}

/* Prints the messages that are kept, of `total`. */
async int print_tail(struct stream *stream, uint64_t total)
{
    uint64_t lines = stream->options.lines, begin = total > lines ? total - lines : 0;
    uint64_t end = begin + tail_left(stream, (uint32_t)(total - begin));
    while (begin < end && !stream->is_stopped) {
        uint32_t count = 0;
        for (size_t bytes = 0; begin < end && count < BATCH_MAX && bytes < FLUSHED; begin++) {
            stream->messages[count] = stream->tail[begin % lines].message;
            bytes += stream->messages[count++].size;
        }
        try await sink_write(stream, &stream->sink, stream->messages, count);
        stream->count += count;
    }
    return 0;
}

/* Prints what is published after the messages that the tail had. */
async int follow(struct stream *stream)
{
    struct source *source = &stream->other, *before = &stream->source;
    uint32_t batch = minimum(BATCH_MAX, bide_log_window(source->log));
    while (!stream->is_stopped && tail_left(stream, 1) != 0) {
        int count = await source_read(stream, source, stream->messages, batch);
        if (count <= 0)
            return count;
        uint32_t old = 0; /* the tail had these */
        while (before->has_position && old < (uint32_t)count &&
               bide_log_position_compare(stream->messages[old].position, before->position) <= 0)
            old++;
        uint32_t printed = tail_left(stream, (uint32_t)count - old);
        try await sink_write(stream, &stream->sink, stream->messages + old, printed);
        stream->count += printed;
        try await source_done(stream, source, stream->messages, (uint32_t)count);
    }
    return 0;
}

/*
 * One consumer reads what the log has. With -f another one has been subscribed before, at the end: so
 * no message is missed between the two. Messages that both have are printed once.
 */
async int run_tail(struct stream *stream)
{
    const bide_log_consumer_options end = {.from = BIDE_LOG_FROM_END};
    struct source *source = &stream->source;
    uint64_t total = 0;
    int count = 0;
    stream->tail = calloc(stream->options.lines + 1, sizeof *stream->tail);
    if (stream->tail == NULL)
        return out_of_memory(stream);
    try await source_open(stream, source, stream->options.from, &from_beginning, 0);
    if (stream->options.follows)
        try await source_open(stream, &stream->other, stream->options.from, &end, SOURCE_STAYS);
    try await sink_open(stream, &stream->sink, "stdio:");
    uint32_t batch = minimum(BATCH_MAX, bide_log_window(source->log));
    while (!stream->is_stopped &&
           (count = await source_read(stream, source, stream->messages, batch)) > 0) {
        if (keep_messages(stream, (uint32_t)count, &total) < 0)
            return -ENOMEM;
        try await source_done(stream, source, stream->messages, (uint32_t)count);
    }
    if (count < 0)
        return count;
    source_close(source);
    try await print_tail(stream, total);
    return stream->options.follows ? await follow(stream) : 0;
}

/* ---- count, lag ---- */

async int run_count(struct stream *stream)
{
    struct source *source = &stream->source;
    try await source_open(stream, source, stream->options.from, &from_beginning, 0);
    uint32_t batch = minimum(BATCH_MAX, bide_log_window(source->log));
    while (!stream->is_stopped) {
        int count = await source_read(stream, source, stream->messages, batch);
        if (count <= 0)
            return count;
        stream->count += (unsigned)count;
        try await source_done(stream, source, stream->messages, (uint32_t)count);
    }
    return 0;
}

async int run_lag(struct stream *stream)
{
    const struct options *options = &stream->options;
    try await source_open(stream, &stream->source, options->from, &from_beginning, 0);
    int status = bide_log_lag(stream->source.log, options->group, &stream->count);
    if (status < 0)
        report_failure(stream, options->group,
                       status == -ENOENT ? "there is no such group" : strerror(-status));
    return status;
}

/* ---- measure ---- */

/* At the beginning of each message. */
struct stamp {
    uint64_t number;
    uint64_t time;
};

async int send_messages(struct stream *stream, uint32_t batch)
{
    const struct options *options = &stream->options;
    while (stream->sent < options->count && !stream->is_stopped) {
        bide_log_operation operation;
        uint32_t count = options->count - (uint32_t)stream->sent;
        count = minimum(count, batch);
        for (uint32_t i = 0; i < count; i++) {
            struct stamp stamp = {stream->sent + i, bide_platform.now()};
            char *payload = stream->payload + (size_t)i * options->size;
            memcpy(payload, &stamp, sizeof stamp);
            stream->outgoing[i] = (bide_log_message){.data = payload, .size = options->size};
        }
        bide_log *log = stream->source.log;
        int status = await bide_log_publish(&operation, log, stream->outgoing, count);
        if (status == -EPIPE && stream->is_stopped)
            return 0;
        if (status == -EMSGSIZE)
            report_failure(stream, options->from, "--size is larger than the log's size");
        else if (status < 0 && status != -ECANCELED)
            report_failure(stream, options->from, strerror(-status));
        if (status < 0)
            return status;
        stream->sent += count;
    }
    return 0;
}

/* Notes the latencies. Returns false if a message is not the next one that was sent. */
static bool note_latencies(struct stream *stream, uint32_t count)
{
    uint64_t now = bide_platform.now();
    for (uint32_t i = 0; i < count; i++) {
        const bide_log_message *message = &stream->messages[i];
        struct stamp stamp;
        if (message->size != stream->options.size)
            return false;
        memcpy(&stamp, message->data, sizeof stamp);
        if (stamp.number != stream->count + i)
            return false;
        stream->latencies[stamp.number] = now > stamp.time ? now - stamp.time : 0;
    }
    return true;
}

async int receive_messages(struct stream *stream)
{
    struct source *source = &stream->source;
    uint32_t batch = minimum(BATCH_MAX, bide_log_window(source->log));
    while (stream->count < stream->options.count) {
        uint32_t left = stream->options.count - (uint32_t)stream->count;
        int count = await source_read(stream, source, stream->messages, minimum(batch, left));
        if (count <= 0)
            return count;
        if (!note_latencies(stream, (uint32_t)count)) {
            report_failure(stream, source->url, "a message is not the next one that was sent");
            return -EBADMSG;
        }
        stream->count += (unsigned)count;
        try await source_done(stream, source, stream->messages, (uint32_t)count);
    }
    return 0;
}

/* Messages of measure would reach the consumers of a log that is in use. */
async int check_empty(struct stream *stream)
{
    bide_log_message message;
    struct source *probe = &stream->other;
    int status =
        await source_open(stream, probe, stream->options.from, &from_beginning, SOURCE_PROBES);
    if (status == -ENOENT) {
        source_close(probe);
        return 0;
    }
    if (status < 0)
        return status;
    int count = await source_read(stream, probe, &message, 1);
    if (count < 0)
        return count;
    if (count > 0) {
        report_failure(stream, stream->options.from,
                       "it has messages; measure takes a log without any");
        return -EEXIST;
    }
    source_close(probe); /* a group that does not read would hold a ring's publishes back */
    return 0;
}

async int run_measure(struct stream *stream)
{
    const struct options *options = &stream->options;
    const bide_log_consumer_options end = {.from = BIDE_LOG_FROM_END};
    stream->latencies = malloc(options->count * sizeof *stream->latencies);
    stream->payload = calloc(options->batch, options->size);
    stream->outgoing = calloc(BATCH_MAX, sizeof *stream->outgoing);
    if (stream->latencies == NULL || stream->payload == NULL || stream->outgoing == NULL)
        return out_of_memory(stream);
    try await check_empty(stream);
    try await source_open(stream, &stream->source, options->from, &end,
                          SOURCE_MAKES | SOURCE_STAYS);
    if (stream->is_stopped)
        return 0;
    bide_scope both;
    bide_scope_init(&both, bide_this_frame());
    defer bide_scope_destroy(&both);
    uint64_t start = bide_platform.now();
    stream->started_at = start;
    uint32_t batch = minimum(options->batch, bide_log_window(stream->source.log));
    if (spawn(&both, send_messages(stream, batch)) < 0 ||
        spawn(&both, receive_messages(stream)) < 0)
        return out_of_memory(stream);
    int status = await bide_scope_join(&both);
    stream->elapsed = bide_platform.now() - start;
    return status;
}

/* ---- All ---- */

async_sized(16384) int command_run(struct stream *stream)
{
    switch (stream->options.command) {
    case COMMAND_COPY:
        return await run_copy(stream);
    case COMMAND_TAIL:
        return await run_tail(stream);
    case COMMAND_COUNT:
        return await run_count(stream);
    case COMMAND_LAG:
        return await run_lag(stream);
    default:
        return await run_measure(stream);
    }
}
