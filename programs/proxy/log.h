/*
 * The log: lines that a coroutine of its own writes, many at once, so that a slow disk or reader
 * delays no connection. What does not fit its buffer meanwhile is dropped, and counted.
 *
 *     lines --log_line--> filling --the writer swaps them--> writing --> file
 */
#ifndef PROXY_LOG_H
#define PROXY_LOG_H

#include <bide/auto_event.h>
#include <bide/file.h>
#include <bide/task.h>

enum { LOG_BUFFER = 256 << 10, MAX_LOG_LINE = 2048 };

struct log {
    bide_task task; /* the writer */
    bide_descriptor file;
    char *path;     /* "off", "stdout", "stderr" or a path */
    char *wanted;   /* what to open next; NULL: it stays */
    bool is_ended;
    uint64_t dropped, told; /* lines */
    int error;      /* of the file; told once */
    bide_auto_event news;
    bide_auto_event_waiter wait;
    bide_file_operation operation;
    int64_t second; /* of `stamp` */
    char stamp[24];
    size_t filled;
    char *filling, *writing;
    char buffers[2][LOG_BUFFER];
};

void log_init(struct log *log);

/* To be awaited: writes until log_end, and then what is left. */
bide_awaiter *log_run(struct log *log);

/* From the next line on the log goes there; the same again: it is opened anew. */
void log_open(struct log *log, const char *path);

void log_end(struct log *log);

/* Adds a line: the time, and this. */
__attribute__((format(printf, 2, 3))) void log_line(struct log *log, const char *format, ...);

/* Is it worth making lines? */
static inline bool log_is_on(const struct log *log)
{
    return log->path != NULL;
}

#endif
