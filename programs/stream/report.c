/*
 * Reports: the progress, on a terminal; the end of a command; and the numbers of measure. They have
 * no text of messages.
 */
#include "stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_drawn;

static const char *const done_words[] = {"copied", "printed", "counted", "", "measured"};

void report_failure(struct stream *stream, const char *what, const char *why)
{
    progress_clear();
    fprintf(stderr, "stream: %s%s%s\n", url_shown(what), why != NULL ? ": " : "",
            why != NULL ? why : "");
    stream->has_failed = true;
}

/* ---- Progress ---- */

/* Not on the terminal on which messages are printed. */
bool progress_is_shown(const struct stream *stream)
{
    const struct options *options = &stream->options;
    bool prints = options->command == COMMAND_TAIL ||
                  (options->command == COMMAND_COPY && url_is_stdio(options->to));
    prints = prints && isatty(STDOUT_FILENO);
    return !stream->options.is_quiet && !prints && isatty(STDERR_FILENO);
}

static double seconds_since(uint64_t start)
{
    uint64_t now = bide_platform.now();
    return now > start ? (double)(now - start) / 1e9 : 1e-9;
}

void progress_draw(const struct stream *stream)
{
    double seconds = seconds_since(stream->started_at);
    fprintf(stderr, "\r%" PRIu64 " messages, %.1f MB, %.0f/s\033[K", stream->count,
            (double)stream->bytes / 1e6, (double)stream->count / seconds);
    fflush(stderr);
    is_drawn = true;
}

void progress_clear(void)
{
    if (is_drawn)
        fputs("\r\033[K", stderr);
    is_drawn = false;
}

/* ---- Ends ---- */

void report_done(const struct stream *stream)
{
    const struct options *options = &stream->options;
    char position[BIDE_LOG_POSITION_TEXT];
    bool is_told = stream->is_stopped || (options->command == COMMAND_COPY && !options->is_quiet);
    if (!is_told || options->command == COMMAND_LAG || (stream->has_failed && stream->count == 0))
        return;
    fprintf(stderr, "stream: %s%s %" PRIu64 " message%s", stream->is_stopped ? "interrupted: " : "",
            done_words[options->command], stream->count, stream->count == 1 ? "" : "s");
    if (options->command == COMMAND_COPY && stream->source.has_position &&
        bide_log_position_print(stream->source.position, position, sizeof position) == 0)
        fprintf(stderr, ", up to position %s", position);
    fputc('\n', stderr);
}

static int compare_latencies(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

/* Of `per_mille` of the messages the latency is at most this: the nearest rank. */
static double latency_of(const struct stream *stream, uint64_t per_mille)
{
    uint64_t rank = (stream->count * per_mille + 999) / 1000;
    return (double)stream->latencies[rank - 1] / 1e3;
}

void report_measured(struct stream *stream, uint64_t elapsed)
{
    if (stream->count == 0)
        return;
    qsort(stream->latencies, stream->count, sizeof *stream->latencies, compare_latencies);
    printf("messages %" PRIu64 "\n"
           "rate %.0f items/s\n"
           "p50 %.1f us\n"
           "p99 %.1f us\n"
           "p99.9 %.1f us\n",
           stream->count, (double)stream->count * 1e9 / (double)(elapsed != 0 ? elapsed : 1),
           latency_of(stream, 500), latency_of(stream, 990), latency_of(stream, 999));
}
