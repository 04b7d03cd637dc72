/*
 * A log file of a worker: of its requests, or of its incidents.
 *
 *     open --run--> lines are written --reopen--> lines go to a new file of that name --close--> closed
 *
 * All of it runs on the worker's thread, except worker_log_open and worker_log_destroy, which the first
 * thread calls.
 */
#ifndef HTTPD_LOGS_H
#define HTTPD_LOGS_H

#include <bide/file.h>
#include <bide/http_log.h>

struct worker_log {
    bide_task task; /* that of a reload */
    bide_http_log log;
    const char *path;         /* NULL: none, or a standard stream */
    const char *name;         /* in messages */
    bide_descriptor files[2]; /* the log's, and one that is closed except in a reload */
    unsigned at;
    bide_file_operation open;
    bide_auto_event_waiter flushing;
    bide_branch branch;
    int status;
};

/* Where a log without a path goes. */
enum worker_log_stream { LOG_NOWHERE, LOG_TO_OUTPUT, LOG_TO_ERROR };

/*
 * Opens the file at `path`, standard output if that is "-", or the stream if it is NULL. `memory` is for lines that are not yet written. Returns 0 or
 * a negative errno; worker_log_destroy must be called then too.
 */
int worker_log_open(struct worker_log *log, const char *path, enum worker_log_stream stream,
                    void *memory, size_t size, bide_http_log_format format);

void worker_log_destroy(struct worker_log *log);

/* Starts writing, in this scope, until bide_http_log_close. */
void worker_log_start(struct worker_log *log, bide_scope *scope);

/* Opens the file by its name again. If that fails, reports it, and keeps the old file. */
bide_awaiter *worker_log_reopen(struct worker_log *log);

/* Reports an error of the log once. */
void worker_log_report(struct worker_log *log);

#endif
