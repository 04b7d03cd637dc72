/* The log: formatting of lines, and the writer. Everything runs on the loop's thread. */
#define _GNU_SOURCE
#include "log.h"

#include <bide/coroutine.h>
#include <bide/terminal.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void log_init(struct log *log)
{
    memset(log, 0, offsetof(struct log, buffers));
    bide_descriptor_init_closed(&log->file);
    bide_auto_event_init(&log->wakeup, false);
    log->filling = log->buffers[0];
    log->writing = log->buffers[1];
}

/* ---- Lines ---- */

/* "2026-01-31T12:00:00.123Z " */
static size_t print_time(struct log *log, char *text)
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != log->second) {
        time_t second = now.tv_sec;
        log->second = second;
        gmtime_r(&second, &parts);
        strftime(log->stamp, sizeof log->stamp, "%Y-%m-%dT%H:%M:%S", &parts);
    }
    memcpy(text, log->stamp, 19);
    unsigned milliseconds = (unsigned)(now.tv_nsec / 1000000);
    text[19] = '.';
    text[20] = (char)('0' + milliseconds / 100);
    text[21] = (char)('0' + milliseconds / 10 % 10);
    text[22] = (char)('0' + milliseconds % 10);
    text[23] = 'Z';
    text[24] = ' ';
    return 25;
}

void log_line(struct log *log, const char *format, ...)
{
    if (!log_is_on(log))
        return;
    if (log->filled + LOG_MAX_LINE > LOG_BUFFER_SIZE) {
        log->dropped++;
        return;
    }
    char *line = log->filling + log->filled;
    size_t space = LOG_MAX_LINE - 1, size = print_time(log, line);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + size, space - size, format, arguments);
    va_end(arguments);
    size += length < 0 ? 0 : (size_t)length < space - size ? (size_t)length : space - size - 1;
    line[size++] = '\n';
    if (log->filled == 0)
        bide_auto_event_set(&log->wakeup);
    log->filled += size;
    bide_assert(log->filled <= LOG_BUFFER_SIZE && log->filling != log->writing);
}

void log_open(struct log *log, const char *path)
{
    free(log->wanted);
    log->wanted = strdup(path);
    /* lines may be added before it is open */
    if (log->path == NULL && strcmp(path, "off") != 0)
        log->path = strdup(path);
    bide_auto_event_set(&log->wakeup);
}

void log_stop(struct log *log)
{
    log->is_stopping = true;
    bide_auto_event_set(&log->wakeup);
}

/* ---- The writer ---- */

static void report_log_error(struct log *log, int error)
{
    if (error < 0 && error != log->error)
        fprintf(stderr, "proxy: log %s: %s\n", log->path, strerror(-error));
    log->error = error;
}

/* Switches to the wanted path. Returns true if the file has to be opened. */
static bool switch_log_file(struct log *log)
{
    int error = 0;
    free(log->path);
    log->path = log->wanted;
    log->wanted = NULL;
    bide_close(&log->file);
    if (strcmp(log->path, "off") == 0) {
        free(log->path);
        log->path = NULL;
        log->filled = 0;
        return false;
    }
    if (strcmp(log->path, "stdout") == 0)
        error = bide_standard_output(&log->file);
    else if (strcmp(log->path, "stderr") == 0)
        error = bide_standard_error(&log->file);
    else
        return true;
    report_log_error(log, error);
    return false;
}

static void swap_buffers(struct log *log, size_t *size)
{
    char *full = log->filling;
    *size = log->filled;
    log->filling = log->writing;
    log->writing = full;
    log->filled = 0;
}

static bide_awaiter *write_lines(struct log *log)
{
    size_t size;
    swap_buffers(log, &size);
    return bide_write(&log->operation, &log->file, log->writing, size);
}

static bool has_unreported_drops(const struct log *log)
{
    bide_assert(log->reported <= log->dropped);
    return log->dropped != log->reported;
}

static void report_drops(struct log *log)
{
    log_line(log, "log: %llu lines were dropped",
             (unsigned long long)(log->dropped - log->reported));
    log->reported = log->dropped;
}

bide_coroutine(log_body)
{
    bide_begin(log_body, struct log * self);
    int status;
    while (!self->is_stopping || self->filled != 0 || self->wanted != NULL) {
        if (self->wanted != NULL && switch_log_file(self)) {
            bide_await_status(status, bide_open(&self->operation, &self->file, self->path,
                                                O_WRONLY | O_CREAT | O_APPEND, 0644));
            report_log_error(self, status);
        }
        if (self->filled != 0 && bide_descriptor_is_open(&self->file)) {
            bide_await_status(status, write_lines(self));
            report_log_error(self, status);
            if (has_unreported_drops(self))
                report_drops(self);
            continue;
        }
        self->filled = 0; /* the file cannot be opened */
        if (!self->is_stopping && self->wanted == NULL)
            bide_await(bide_auto_event_wait(&self->wait, &self->wakeup));
    }
    bide_finally();
    bide_close(&self->file);
    free(self->path);
    free(self->wanted);
    self->path = self->wanted = NULL;
    bide_end();
}

bide_awaiter *log_run(struct log *log)
{
    return bide_task_init(&log->task, &log_body);
}
