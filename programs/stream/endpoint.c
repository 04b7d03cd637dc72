/* The logs that messages come from and go to. In async C. */
#include "tasks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What is reported of it. */
static const char *source_name(const struct source *source)
{
    return source->is_stdio ? "standard input" : source->url;
}

static const char *sink_name(const struct sink *sink)
{
    return url_is_stdio(sink->url) ? "standard output" : sink->url;
}

/* ---- Sources ---- */

async_sized(6144) int source_open(struct stream *stream, struct source *source, const char *url,
                                  const bide_log_consumer_options *options, unsigned how)
{
    bide_log_operation operation;
    source->url = url;
    source->is_stdio = url_is_stdio(url);
    int status = url_opened(url, (how & SOURCE_MAKES) == 0, &source->opened);
    if (status < 0)
        return log_failed(stream, url, status);
    status = await bide_log_open(&operation, &source->log, source->opened);
    if (status == -ENOENT && (how & SOURCE_PROBES) != 0)
        return status;
    if (status == -ENOENT && (how & SOURCE_MAKES) == 0) {
        report_failure(stream, url, "there is no log");
        return status;
    }
    status = log_opened(stream, url, operation.problem, status);
    if (status < 0)
        return status;
    status = await bide_log_subscribe(&operation, &source->consumer, source->log, options);
    if (status < 0)
        return log_failed(stream, source_name(source), status);
    source->is_open = true;
    if ((how & SOURCE_STAYS) == 0 && !source->is_stdio) /* (which has its own end) */
        bide_log_close(source->log);
    return 0;
}

async_sized(4096) int source_read(struct stream *stream, struct source *source,
                                  bide_log_message *messages, uint32_t max)
{
    bide_log_operation operation;
    int status = await bide_log_read(&operation, &source->consumer, messages, max);
    if (status == -EPIPE)
        return 0;
    if (status == -EBADMSG && source->is_stdio) {
        report_failure(stream, operation.problem, NULL);
        return status;
    }
    if (status == -EBADMSG) {
        char what[BIDE_LOG_POSITION_TEXT] = "", why[BIDE_LOG_POSITION_TEXT + 64];
        (void)bide_log_position_print(messages[0].position, what, sizeof what);
        snprintf(why, sizeof why, "the message at position %s is damaged", what);
        report_failure(stream, source->url, why);
        return status;
    }
    return status < 0 ? log_failed(stream, source_name(source), status) : (int)operation.count;
}

async_sized(4096) int source_done(struct stream *stream, struct source *source,
                                  const bide_log_message *messages, uint32_t count)
{
    bide_log_operation operation;
    for (uint32_t i = 0; i < count; i++)
        stream->bytes += messages[i].size;
    source->position = messages[count - 1].position;
    source->has_position = !source->is_stdio; /* (a number of lines is no place to go on) */
    int status = await bide_log_acknowledge(&operation, &source->consumer, messages, count);
    return status < 0 ? log_failed(stream, source_name(source), status) : 0;
}

void source_stop(struct source *source)
{
    if (source->is_open)
        bide_log_close(source->log);
}

void source_close(struct source *source)
{
    if (source->is_open)
        bide_log_unsubscribe(&source->consumer);
    bide_log_destroy(source->log);
    free(source->opened);
    *source = (struct source){.position = source->position, .has_position = source->has_position};
}

/* ---- Sinks ---- */

async_sized(6144) int sink_open(struct stream *stream, struct sink *sink, const char *url)
{
    bide_log_operation operation;
    sink->url = url;
    int status = url_opened(url, false, &sink->opened);
    if (status < 0)
        return log_failed(stream, url, status);
    status = await bide_log_open(&operation, &sink->log, sink->opened);
    return log_opened(stream, url, operation.problem, status);
}

async_sized(4096) int sink_write(struct stream *stream, struct sink *sink,
                                 bide_log_message *messages, uint32_t count)
{
    bide_log_operation operation;
    if (count == 0)
        return 0;
    int status = await bide_log_publish(&operation, sink->log, messages, count);
    if (status == -EMSGSIZE) {
        report_failure(stream, sink->url, "a message is larger than the log's size");
        return status;
    }
    return status < 0 ? log_failed(stream, sink_name(sink), status) : 0;
}

void sink_close(struct sink *sink)
{
    bide_log_destroy(sink->log);
    free(sink->opened);
}
