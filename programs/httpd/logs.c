/* A log file of a worker. */
#define _GNU_SOURCE
#include "logs.h"

#include <bide/coroutine.h>
#include <bide/terminal.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { LOG_FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, LOG_MODE = 0644 };

int worker_log_open(struct worker_log *log, const char *path, enum worker_log_stream stream,
                    void *memory, size_t size, bide_http_log_format format)
{
    bide_descriptor *file = &log->files[0];
    if (path != NULL && strcmp(path, "-") == 0) {
        path = NULL;
        stream = LOG_TO_OUTPUT;
    }
    log->path = path;
    log->name = path != NULL ? path : stream == LOG_TO_ERROR ? "standard error" : "standard output";
    log->at = 0;
    bide_descriptor_init_closed(&log->files[0]);
    bide_descriptor_init_closed(&log->files[1]);
    bide_http_log_init(&log->log, file, memory, size, format);
    if (path == NULL && stream == LOG_TO_ERROR) {
        (void)bide_standard_error(file); /* (it may be closed) */
        return 0;
    }
    if (path == NULL)
        return stream == LOG_TO_OUTPUT ? bide_standard_output(file) : 0;
    bide_descriptor_init(file, open(path, LOG_FLAGS, LOG_MODE));
    return bide_descriptor_is_open(file) ? 0 : -errno;
}

void worker_log_destroy(struct worker_log *log)
{
    bide_close(&log->files[0]);
    bide_close(&log->files[1]);
}

void worker_log_start(struct worker_log *log, bide_scope *scope)
{
    bide_scope_spawn(scope, &log->branch, bide_http_log_run(&log->log));
}

static void report_error(const struct worker_log *log, int status)
{
    fprintf(stderr, "httpd: %s: %s\n", log->name, strerror(-status));
}

void worker_log_report(struct worker_log *log)
{
    if (log->log.error < 0)
        report_error(log, log->log.error);
    log->log.error = 0;
}

static bide_awaiter *open_next(struct worker_log *log)
{
    return bide_open(&log->open, &log->files[1 - log->at], log->path, LOG_FLAGS, LOG_MODE);
}

static void switch_files(struct worker_log *log)
{
    bide_assert(log->at <= 1);
    bide_assert(bide_descriptor_is_open(&log->files[1 - log->at]));
    log->at = 1 - log->at;
    bide_http_log_reopen(&log->log, &log->files[log->at]);
}

bide_coroutine(reopen_body)
{
    bide_begin(reopen_body, struct worker_log * self);
    if (self->path == NULL)
        bide_return(0);
    worker_log_report(self);
    bide_await_status(self->status, open_next(self));
    if (self->status < 0) {
        report_error(self, self->status);
        bide_return(0);
    }
    switch_files(self);
    bide_await(bide_http_log_flush(&self->flushing, &self->log));
    bide_close(&self->files[1 - self->at]);
    bide_end();
}

bide_awaiter *worker_log_reopen(struct worker_log *log)
{
    return bide_task_init(&log->task, &reopen_body);
}
