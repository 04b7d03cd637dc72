/*
 * Logs of requests. A buffer has two halves: lines are appended to the first, while the second is
 * being written. A write starts by swapping them.
 *
 * Threads: all functions, and the coroutine that writes, run on the loop's thread.
 *
 * Why it is correct:
 * 1. A line contains texts of the client. Bytes that could look like another field or line are
 *    escaped as "\xHH".
 * 2. `news` is set when the first half gets its first line, when it becomes half full, and when the
 *    log is closed. The coroutine waits on it, which resets it, and only then checks the state. Both
 *    run on one thread, so no event is lost.
 * 3. A waiter for the end of a write resets `written` while a write is in progress, and sets it
 *    otherwise. The same thread sets it after the write.
 * 4. A line of an incident takes one of `incidents`, which grow by one a second, up to HTTP_LOG_BURST. A clock that goes
 *    back adds none. An incident whose line finds no room takes none, and is counted like one too many.
 */
#define _GNU_SOURCE
#include "bide/http_log.h"

#include "output.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

/*
 * BURST       incidents that may be logged at once; one more each second
 * MAX_LINE    bytes of an incident's first line; each may need four in the log
 * MAX_REASON  the same of its reason, which may contain texts of the peer
 */
enum {
    HTTP_LOG_INTERVAL = 1000000000,
    HTTP_LOG_BURST = 100,
    HTTP_LOG_MAX_LINE = 128,
    HTTP_LOG_MAX_REASON = 80
};

void bide_http_log_init(bide_http_log *log, bide_descriptor *file, void *memory, size_t size,
                        bide_http_log_format format)
{
    log->lines = 0;
    log->dropped = 0;
    log->error = 0;
    log->suppressed = 0;
    log->incidents = HTTP_LOG_BURST;
    log->since = INT64_MIN;
    log->uncounted = 0;
    log->file = file;
    log->format = format;
    log->halves[0] = memory;
    log->size = size / 2;
    log->halves[1] = log->halves[0] + log->size;
    log->filled = 0;
    log->writing = 0;
    log->is_closed = false;
    log->second = INT64_MIN;
    bide_auto_event_init(&log->news, false);
    bide_auto_event_init(&log->written, false);
}

void bide_http_log_close(bide_http_log *log)
{
    log->is_closed = true;
    bide_auto_event_set(&log->news);
}

void bide_http_log_reopen(bide_http_log *log, bide_descriptor *file)
{
    log->file = file;
}

bide_awaiter *bide_http_log_flush(bide_auto_event_waiter *waiter, bide_http_log *log)
{
    if (bide_http_log_is_idle(log)) /* 3 */
        bide_auto_event_set(&log->written);
    else
        bide_auto_event_reset(&log->written);
    return bide_auto_event_wait(waiter, &log->written);
}

/* ---- Lines ---- */

/* A line under construction. `full`: the line did not fit. */
typedef struct http_log_line {
    char *at;
    char *end;
    bool full;
} http_log_line;

static void http_log_put(http_log_line *line, const char *data, size_t size)
{
    if (size > (size_t)(line->end - line->at)) {
        line->full = true;
        return;
    }
    memcpy(line->at, data, size);
    line->at += size;
}

static void http_log_put_string(http_log_line *line, const char *string)
{
    http_log_put(line, string, strlen(string));
}

static void http_log_put_number(http_log_line *line, uint64_t number)
{
    char digits[20];
    http_log_put(line, digits, bide_http_print_number_(digits, number));
}

/* 1 */
static void http_log_put_text(http_log_line *line, bide_slice text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if (byte >= ' ' && byte < 127 && byte != '"' && byte != '\\') {
            http_log_put(line, text.data + i, 1);
        } else {
            char escaped[4] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
            http_log_put(line, escaped, sizeof escaped);
        }
    }
}

static void http_log_put_quoted(http_log_line *line, bide_slice text)
{
    http_log_put(line, " \"", 2);
    if (text.size == 0)
        http_log_put(line, "-", 1);
    http_log_put_text(line, text);
    http_log_put(line, "\"", 1);
}

/* "[24/Nov/2026:11:15:29 +0000]", from the server's clock. */
static const char *http_log_time(bide_http_log *log, const bide_http_server *server)
{
    int64_t second = server->options.clock();
    if (second != log->second) {
        char date[BIDE_HTTP_DATE_SIZE]; /* "Sun, 06 Nov 1994 08:49:37 GMT" */
        log->second = second;
        bide_http_print_date(date, second);
        log->time[0] = '[';
        memcpy(log->time + 1, date + 5, 2);
        log->time[3] = '/';
        memcpy(log->time + 4, date + 8, 3);
        log->time[7] = '/';
        memcpy(log->time + 8, date + 12, 4);
        log->time[12] = ':';
        memcpy(log->time + 13, date + 17, 8);
        memcpy(log->time + 21, " +0000]", 8);
    }
    return log->time;
}

static void http_log_put_line(http_log_line *line, bide_http_log *log, bide_http_exchange *exchange)
{
    const bide_http_request *request = &exchange->request;
    http_log_put_string(line, bide_http_peer(exchange));
    http_log_put(line, " - - ", 5);
    http_log_put_string(line, http_log_time(log, exchange->server));
    http_log_put(line, " \"", 2);
    http_log_put_text(line, request->method_name);
    http_log_put(line, " ", 1);
    http_log_put_text(line, request->target);
    http_log_put_string(line, request->major == 2   ? " HTTP/2.0\" "
                              : request->minor == 1 ? " HTTP/1.1\" "
                                                    : " HTTP/1.0\" ");
    http_log_put_number(line, (uint64_t)exchange->status);
    http_log_put(line, " ", 1);
    http_log_put_number(line, request->method == BIDE_HTTP_HEAD ? 0 : bide_http_written(exchange));
    if (log->format == BIDE_HTTP_LOG_COMBINED) {
        http_log_put_quoted(line, bide_http_request_field(exchange, "referer"));
        http_log_put_quoted(line, bide_http_request_field(exchange, "user-agent"));
    }
    http_log_put(line, "\n", 1);
}

static http_log_line http_log_start_line(bide_http_log *log)
{
    http_log_line line = {log->halves[0] + log->filled, log->halves[0] + log->size, false};
    return line;
}

/* Keeps the line. Returns false if it did not fit. */
static bool http_log_keep_line(bide_http_log *log, const http_log_line *line)
{
    size_t before = log->filled;
    if (line->full)
        return false;
    log->lines++;
    log->filled = (size_t)(line->at - log->halves[0]);
    if (before == 0 || (before < log->size / 2 && log->filled >= log->size / 2)) /* 2 */
        bide_auto_event_set(&log->news);
    return true;
}

static void http_log_end_line(bide_http_log *log, const http_log_line *line)
{
    if (!http_log_keep_line(log, line))
        log->dropped++;
}

void bide_http_log_exchange(bide_http_log *log, bide_http_exchange *exchange)
{
    http_log_line line = http_log_start_line(log);
    http_log_put_line(&line, log, exchange);
    http_log_end_line(log, &line);
}

void bide_http_log_refused(bide_http_log *log, const bide_http_server *server, const char *peer,
                           bide_slice text, int status)
{
    http_log_line line = http_log_start_line(log);
    http_log_put_string(&line, peer);
    http_log_put(&line, " - - ", 5);
    http_log_put_string(&line, http_log_time(log, server));
    http_log_put_quoted(&line, text);
    http_log_put(&line, " ", 1);
    http_log_put_number(&line, (uint64_t)status);
    http_log_put(&line, " 0", 2);
    if (log->format == BIDE_HTTP_LOG_COMBINED)
        http_log_put_string(&line, " \"-\" \"-\"");
    http_log_put(&line, "\n", 1);
    http_log_end_line(log, &line);
}

/* ---- Incidents ---- */

/* Counts the incidents that may be logged now: 4 */
static void http_log_earn(bide_http_log *log, int64_t now)
{
    if (log->since == INT64_MIN || now < log->since)
        log->since = now;
    uint64_t passed = (uint64_t)now - (uint64_t)log->since;
    log->since = now;
    log->incidents += passed < HTTP_LOG_BURST - log->incidents ? (uint32_t)passed
                                                               : HTTP_LOG_BURST - log->incidents;
    bide_assert(log->incidents <= HTTP_LOG_BURST);
}

static bide_slice http_log_cut(const char *text, size_t size, size_t limit)
{
    return (bide_slice){text, size < limit ? size : limit};
}

static void http_log_put_reason(http_log_line *line, const bide_http_incident *incident)
{
    if (incident->reason != NULL)
        http_log_put_text(
            line, http_log_cut(incident->reason, strlen(incident->reason), HTTP_LOG_MAX_REASON));
    if (incident->reason != NULL && incident->error != 0)
        http_log_put(line, ": ", 2);
    if (incident->error == 0)
        return;
    http_log_put_string(line, "error ");
    http_log_put_number(line, (uint64_t)-incident->error);
    http_log_put(line, ": ", 2);
    http_log_put_string(line, strerror(-incident->error));
}

static void http_log_put_suppressed(bide_http_log *log, const char *time)
{
    http_log_line line = http_log_start_line(log);
    if (log->uncounted == 0)
        return;
    http_log_put_string(&line, time);
    http_log_put_string(&line, " - - \"-\" further incidents before this one: ");
    http_log_put_number(&line, log->uncounted);
    http_log_put(&line, "\n", 1);
    if (http_log_keep_line(log, &line))
        log->uncounted = 0;
}

/* Returns false if there is no room. */
static bool http_log_put_incident(bide_http_log *log, const char *time,
                                  const bide_http_incident *incident)
{
    http_log_line line = http_log_start_line(log);
    http_log_put_string(&line, time);
    http_log_put(&line, " ", 1);
    http_log_put_string(&line, incident->peer);
    http_log_put(&line, " ", 1);
    if (incident->status != 0)
        http_log_put_number(&line, (uint64_t)incident->status);
    else
        http_log_put(&line, "-", 1);
    http_log_put_quoted(&line,
                        http_log_cut(incident->line.data, incident->line.size, HTTP_LOG_MAX_LINE));
    http_log_put(&line, " ", 1);
    http_log_put_reason(&line, incident);
    http_log_put(&line, "\n", 1);
    return http_log_keep_line(log, &line);
}

void bide_http_log_incident(bide_http_log *log, const bide_http_server *server,
                            const bide_http_incident *incident)
{
    const char *time = http_log_time(log, server);
    http_log_earn(log, log->second);
    if (log->incidents != 0) {
        http_log_put_suppressed(log, time);
        if (http_log_put_incident(log, time, incident)) {
            log->incidents--;
            return;
        }
    }
    log->suppressed++;
    log->uncounted++;
}

/* ---- Writing ---- */

/* Waits for more lines, or, if there are lines, for at most a second. */
static bide_awaiter *http_log_wait_for_lines(bide_http_log *log, const bide_context *context)
{
    uint64_t until = log->filled != 0 ? bide_now(context) + HTTP_LOG_INTERVAL : BIDE_FOREVER;
    return bide_with_deadline(&log->limited, until, bide_auto_event_wait(&log->wait, &log->news));
}

static bide_awaiter *http_log_start_write(bide_http_log *log)
{
    char *half = log->halves[0];
    bide_assert(log->writing == 0 && log->filled != 0 && log->filled <= log->size);
    log->halves[0] = log->halves[1];
    log->halves[1] = half;
    log->writing = log->filled;
    log->filled = 0;
    return bide_write(&log->write, log->file, half, log->writing);
}

/* The number of lines of a failed write that were not written completely. */
static uint64_t http_log_count_lost(const bide_http_log *log)
{
    uint64_t lost = 0;
    const char *end = log->halves[1] + log->writing;
    for (const char *at = log->halves[1] + log->write.operation.count; at < end; lost++)
        at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    return lost;
}

bide_coroutine(http_log_body)
{
    bide_begin(http_log_body, bide_http_log * self);
    for (;;) {
        if (self->filled == 0 && self->is_closed)
            break;
        if (self->filled < self->size / 2 && !self->is_closed) {
            bide_await_status(self->status, http_log_wait_for_lines(self, bide_this_context()));
            if (bide_stop_requested(bide_this_context()->stop))
                bide_return(bide_stop_reason(bide_this_context()->stop));
            if (self->status != -ETIMEDOUT)
                continue;
        }
        if (self->filled == 0)
            continue;
        bide_await_status(self->status, http_log_start_write(self));
        if (self->status < 0) {
            self->error = self->status;
            self->dropped += http_log_count_lost(self);
        }
        self->writing = 0;
        bide_auto_event_set(&self->written);
    }
    bide_end();
}

bide_awaiter *bide_http_log_run(bide_http_log *log)
{
    return bide_task_init(&log->task, &http_log_body);
}
