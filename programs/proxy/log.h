/*
 * The log. A coroutine of its own writes many lines at once, so a slow disk or reader never delays
 * a connection. Lines that do not fit into the buffer are dropped, and counted.
 *
 *     lines --log_line--> filling --the writer swaps them--> writing --> file
 */
#ifndef PROXY_LOG_H
#define PROXY_LOG_H

#include <bide/auto_event.h>
#include <bide/file.h>
#include <bide/task.h>

enum { LOG_BUFFER_SIZE = 256 << 10, LOG_MAX_LINE = 2048 };

struct log {
    bide_task task; /* the writer */
    bide_descriptor file;
    char *path;   /* "off", "stdout", "stderr" or a path */
    char *wanted; /* the path to open next; NULL: unchanged */
    bool is_stopping;
    uint64_t dropped, reported; /* dropped lines: all, and those reported */
    int error;                  /* of the file; reported once */
    bide_auto_event wakeup;
    bide_auto_event_waiter wait;
    bide_file_operation operation;
    int64_t second; /* that `stamp` shows */
    char stamp[24];
    size_t filled;
    char *filling, *writing;
    char buffers[2][LOG_BUFFER_SIZE];
};

void log_init(struct log *log);

/* An awaiter that writes lines until log_stop, and then the rest. */
bide_awaiter *log_run(struct log *log);

/* Switches the log to a path, from the next line on. The same path again reopens the file. */
void log_open(struct log *log, const char *path);

void log_stop(struct log *log);

/* Adds a line: the time, then the text. */
__attribute__((format(printf, 2, 3))) void log_line(struct log *log, const char *format, ...);

/* True if the log is written at all. */
static inline bool log_is_on(const struct log *log)
{
    return log->path != NULL;
}

#endif
