/* Where messages come from and go to: logs, and standard input and output. In async C. */
#include "tasks.h"

#include <bide/file.h>
#include <bide/terminal.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_BYTES = 1 << 20 /* of lines, after which a batch takes no more */ };

/* ---- Logs ---- */

/* Reports how opening a log has ended; returns `status`. */
static int log_opened(struct stream *stream, const char *url, const char *problem, int status)
{
    if (status < 0 && status != -ECANCELED) {
        report_failure(stream, problem[0] != '\0' ? problem : url,
                       problem[0] != '\0' ? NULL : strerror(-status));
    } else if (problem[0] != '\0') {
        progress_clear();
        fprintf(stderr, "stream: %s\n", problem);
    }
    return status;
}

/* Reports why an operation failed; returns `status`. */
static int log_failed(struct stream *stream, const char *url, int status)
{
    if (status != -ECANCELED)
        report_failure(stream, url, strerror(-status));
    return status;
}

static const char standard_input[] = "standard input", standard_output[] = "standard output";

/* ---- Sources ---- */

static int input_open(struct source *source)
{
    source->buffer = malloc(LINE_MAX_BYTES);
    source->lines = calloc(BATCH_MAX, sizeof *source->lines);
    if (source->buffer == NULL || source->lines == NULL)
        return -ENOMEM;
    bide_reader_init(&source->reader, bide_file_stream(&source->input), source->buffer,
                     LINE_MAX_BYTES);
    return bide_standard_input(&source->input);
}

async_sized(6144) int source_open(struct stream *stream, struct source *source, const char *url,
                                  const bide_log_consumer_options *options, unsigned how)
{
    bide_log_operation operation;
    source->url = url;
    source->is_stdio = url_is_stdio(url);
    if (source->is_stdio) {
        int error = input_open(source);
        return error < 0 ? log_failed(stream, standard_input, error) : 0;
    }
    int status = (how & SOURCE_MAKES) != 0 ? 0 : url_existing(url, &source->existing);
    if (status < 0)
        return log_failed(stream, url, status);
    status = await bide_log_open(&operation, &source->log,
                                 source->existing != NULL ? source->existing : url);
    if (status == -ENOENT && (how & SOURCE_PROBES) != 0)
        return status;
    if (status == -ENOENT && source->existing != NULL) {
        report_failure(stream, url, "there is no log");
        return status;
    }
    status = log_opened(stream, url, operation.problem, status);
    if (status < 0)
        return status;
    status = await bide_log_subscribe(&operation, &source->consumer, source->log, options);
    if (status < 0)
        return log_failed(stream, url, status);
    source->is_open = true;
    if ((how & SOURCE_STAYS) == 0)
        bide_log_close(source->log);
    return 0;
}

/* Makes a message of a line that was read, without its line feed. */
static int take_line(struct source *source, const char *line, size_t size, uint32_t index,
                     bide_log_message *message)
{
    size_t headers = line_fields(line, size) * sizeof(bide_log_header);
    char *copy = malloc(headers + size + 1);
    if (copy == NULL)
        return -ENOMEM;
    source->lines[index] = copy;
    memcpy(copy + headers, line, size);
    const char *why;
    int status = line_parse(copy + headers, size, (bide_log_header *)(void *)copy, message, &why);
    if (status < 0)
        source->reason = why;
    return status;
}

static int line_failed(struct stream *stream, struct source *source)
{
    char what[64];
    snprintf(what, sizeof what, "standard input, line %llu", (unsigned long long)source->line);
    report_failure(stream, what, source->reason);
    return -EINVAL;
}

static bool has_line(const bide_reader *reader)
{
    return memchr(reader->buffer + reader->begin, '\n', reader->end - reader->begin) != NULL;
}

/* The wait for a line has failed; returns 0 at the end. */
static int input_ended(struct stream *stream, struct source *source, int status)
{
    bool is_empty = source->reader.begin == source->reader.end;
    if (stream->is_stopped || (is_empty && (status == -EPIPE || status == -ENODATA)))
        return 0;
    source->line++;
    source->reason = status == -ENODATA    ? "the last line does not end: it may be a part of one"
                     : status == -EMSGSIZE ? "it is longer than 8 MiB"
                                           : NULL;
    if (source->reason != NULL)
        return line_failed(stream, source);
    return log_failed(stream, standard_input, status);
}

/* Waits for a line, and takes the lines that are buffered behind it. */
async int read_lines(struct stream *stream, struct source *source, bide_log_message *messages,
                     uint32_t max)
{
    bide_reader_operation operation;
    uint32_t count = 0;
    size_t bytes = 0;
    if (source->reason != NULL)
        return line_failed(stream, source);
    do {
        int status = await bide_reader_read_until(&operation, &source->reader, '\n');
        if (status < 0) /* (the next read ends in the same way) */
            return count != 0 ? (int)count : input_ended(stream, source, status);
        source->line++;
        bytes += operation.count;
        status = take_line(source, operation.data, operation.count - 1, count, &messages[count]);
        if (status == -ENOMEM)
            return log_failed(stream, standard_input, status);
        if (status < 0)
            return count != 0 ? (int)count : line_failed(stream, source);
        count++;
    } while (count < max && bytes < BATCH_BYTES && has_line(&source->reader));
    return (int)count;
}

async_sized(4096) int source_read(struct stream *stream, struct source *source,
                                  bide_log_message *messages, uint32_t max)
{
    bide_log_operation operation;
    if (source->is_stdio)
        return await read_lines(stream, source, messages, max);
    int status = await bide_log_read(&operation, &source->consumer, messages, max);
    if (status == -EPIPE)
        return 0;
    if (status == -EBADMSG) {
        char what[BIDE_LOG_POSITION_TEXT] = "", why[BIDE_LOG_POSITION_TEXT + 64];
        (void)bide_log_position_print(messages[0].position, what, sizeof what);
        snprintf(why, sizeof why, "the message at position %s is damaged", what);
        report_failure(stream, source->url, why);
        return status;
    }
    return status < 0 ? log_failed(stream, source->url, status) : (int)operation.count;
}

static void forget_lines(struct source *source, uint32_t count)
{
    for (uint32_t i = 0; source->lines != NULL && i < count; i++) {
        free(source->lines[i]);
        source->lines[i] = NULL;
    }
}

async_sized(4096) int source_done(struct stream *stream, struct source *source,
                                  const bide_log_message *messages, uint32_t count)
{
    bide_log_operation operation;
    for (uint32_t i = 0; i < count; i++)
        stream->bytes += messages[i].size;
    if (source->is_stdio) {
        forget_lines(source, count);
        return 0;
    }
    source->position = messages[count - 1].position;
    source->has_position = true;
    int status = await bide_log_acknowledge(&operation, &source->consumer, messages, count);
    return status < 0 ? log_failed(stream, source->url, status) : 0;
}

void source_stop(struct source *source)
{
    if (source->is_open)
        bide_log_close(source->log);
    else
        (void)bide_close(&source->input); /* (which may be closed) */
}

void source_close(struct source *source)
{
    if (source->is_open)
        bide_log_unsubscribe(&source->consumer);
    bide_log_destroy(source->log);
    (void)bide_close(&source->input);
    forget_lines(source, BATCH_MAX);
    free(source->lines);
    free(source->buffer);
    free(source->existing);
    *source = (struct source){.position = source->position, .has_position = source->has_position};
}

/* ---- Sinks ---- */

async_sized(6144) int sink_open(struct stream *stream, struct sink *sink, const char *url)
{
    bide_log_operation operation;
    sink->url = url;
    sink->is_stdio = url_is_stdio(url);
    if (sink->is_stdio) {
        int error = bide_standard_output(&sink->output);
        return error < 0 ? log_failed(stream, standard_output, error) : 0;
    }
    int status = await bide_log_open(&operation, &sink->log, url);
    return log_opened(stream, url, operation.problem, status);
}

async_sized(1024) int sink_flush(struct stream *stream, struct sink *sink)
{
    bide_file_operation operation;
    if (sink->text.size == 0)
        return 0;
    int status = await bide_write(&operation, &sink->output, sink->text.bytes, sink->text.size);
    sink->text.size = 0;
    return status < 0 ? log_failed(stream, standard_output, status) : 0;
}

static int append_lines(struct text *text, const bide_log_message *messages, uint32_t count)
{
    int status = 0;
    for (uint32_t i = 0; status == 0 && i < count; i++)
        status = line_append(text, &messages[i]);
    return status;
}

async_sized(4096) int sink_write(struct stream *stream, struct sink *sink,
                                 bide_log_message *messages, uint32_t count)
{
    bide_log_operation operation;
    if (sink->is_stdio) {
        int error = append_lines(&sink->text, messages, count);
        if (error < 0)
            return log_failed(stream, standard_output, error);
        return await sink_flush(stream, sink);
    }
    int status = await bide_log_publish(&operation, sink->log, messages, count);
    if (status == -EMSGSIZE) {
        report_failure(stream, sink->url, "a message is larger than the log's size");
        return status;
    }
    return status < 0 ? log_failed(stream, sink->url, status) : 0;
}

void sink_close(struct sink *sink)
{
    bide_log_destroy(sink->log);
    (void)bide_close(&sink->output);
    free(sink->text.bytes);
}
