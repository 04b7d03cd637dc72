/*
 * The thread of a handle of standard input and output: it reads lines, and writes batches. stdio_engine.h.
 */
#define _GNU_SOURCE
#include "stdio_engine.h"

#include "lines.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STDIO_CHUNK = 64 * 1024 };

static const char stdio_is_large[] = "it is larger than `size`";
static const char stdio_is_torn[] = "the last line does not end: it may be a part of one";

void bide_stdio_wake_(struct log_stdio *stdio)
{
    while (write(stdio->wake[1], "", 1) < 0 &&
           errno != EAGAIN) /* (a pipe that is full wakes it too) */
        ;
}

/* ---- Calls that do not block: 2 ---- */

static ssize_t stdio_receive(const struct stdio_end *end, void *bytes, size_t size)
{
    int fd = bide_descriptor_fd(&end->descriptor);
    if (end->kind == STDIO_SOCKET)
        return recv(fd, bytes, size, MSG_DONTWAIT);
#ifdef RWF_NOWAIT
    if (end->kind == STDIO_PIPE) { /* another process may have taken what the poll has seen */
        struct iovec part = {bytes, size};
        ssize_t count = preadv2(fd, &part, 1, -1, RWF_NOWAIT);
        if (count >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL))
            return count;
    }
#endif
    return read(fd, bytes, size);
}

static ssize_t stdio_send(const struct stdio_end *end, const void *bytes, size_t size)
{
    int fd = bide_descriptor_fd(&end->descriptor);
    if (end->kind == STDIO_SOCKET)
        return send(fd, bytes, size, MSG_DONTWAIT);
    if (end->kind == STDIO_TERMINAL)
        size = 1;
    else if (end->kind == STDIO_PIPE && size > PIPE_BUF)
        size = PIPE_BUF;
    return write(fd, bytes, size);
}

static bool stdio_may_be_repeated(int error)
{
    return error == EINTR || error == EAGAIN || error == EWOULDBLOCK;
}

/* ---- Lines of the input ---- */

/* Reads end with `status` when the lines that are there were read. */
static void stdio_set_ended(struct log_stdio *stdio, int status)
{
    bide_log_lock_(&stdio->state);
    stdio->state.ended = status;
    bide_log_unlock_(&stdio->state);
    bide_notify_all(&stdio->state.news);
}

/* Makes a line of text, which it changes; NULL: no memory, and the text is as it was. */
static struct stdio_line *stdio_parse(const struct log_stdio *stdio, char *text, size_t size)
{
    uint32_t max = stdio->log.size;
    size_t fields = bide_log_line_fields_(text, size);
    bool is_large = size > bide_log_line_max_(max) || fields > max / 6 + 1; /* 6: of a header */
    struct stdio_line *line = calloc(1, sizeof *line + (is_large ? 0 : size + 3 * fields));
    bide_log_header *headers =
        is_large || fields == 0 ? NULL : (bide_log_header *)calloc(fields, sizeof *headers);
    bide_log_message message;
    if (line == NULL || (headers == NULL && !is_large && fields != 0)) {
        free(line);
        free(headers);
        return NULL;
    }
    line->why = is_large ? stdio_is_large : bide_log_line_parse_(text, size, headers, &message);
    if (line->why == NULL) {
        size_t encoded = bide_log_headers_size_(&message);
        if (encoded > max || message.key_size > max - encoded ||
            message.size > max - encoded - message.key_size)
            line->why = stdio_is_large;
        else /* a header is 3 bytes longer than its field */
            bide_log_slot_fill_(&line->slot, line->bytes, &message, 0);
    }
    free(headers);
    return line;
}

/* Adds a line, of `size` bytes of the input; NULL: reads end with -ENOMEM. True: it was added. */
static bool stdio_add(struct log_stdio *stdio, struct stdio_line *line, size_t size)
{
    struct log_state *state = &stdio->state;
    if (line == NULL) {
        stdio_set_ended(stdio, -ENOMEM);
        return false;
    }
    bide_log_lock_(state);
    bool is_closed = stdio->log.is_closed; /* its reader may have seen the end */
    if (!is_closed) {
        bide_stdio_free_lines_(stdio, state->groups->acknowledged); /* 3 */
        line->slot.time = bide_log_time_(&state->last_time);
        line->begin = stdio->bytes;
        stdio->bytes += size;
        stdio->lines[(state->tail + 1) & stdio->mask] = line;
        state->tail++;
    }
    bide_log_unlock_(state);
    if (is_closed)
        free(line);
    return true;
}

static struct stdio_line *stdio_bad_line(const char *why)
{
    struct stdio_line *line = calloc(1, sizeof *line);
    if (line != NULL)
        line->why = why;
    return line;
}

/* Takes one line from the buffer. False: there is none. */
static bool stdio_take_line(struct log_stdio *stdio)
{
    char *feed = NULL;
    if (stdio->scanned < stdio->end)
        feed = memchr(stdio->buffer + stdio->scanned, '\n', stdio->end - stdio->scanned);
    if (feed != NULL) {
        char *text = stdio->buffer + stdio->begin;
        size_t size = (size_t)(feed - text);
        if (!stdio_add(stdio,
                       stdio->is_skipping ? stdio_bad_line(stdio_is_large)
                                          : stdio_parse(stdio, text, size),
                       size + 1))
            return true;
        stdio->begin += size + 1;
        stdio->scanned = stdio->begin;
        stdio->is_skipping = false;
        return true;
    }
    stdio->scanned = stdio->end;
    if (stdio->is_skipping || stdio->end - stdio->begin > bide_log_line_max_(stdio->log.size)) {
        stdio->is_skipping = true;
        stdio->begin = stdio->end;
    }
    return false;
}

/* The input has ended, and the buffer has no whole line. */
static void stdio_take_end(struct log_stdio *stdio)
{
    size_t size = stdio->end - stdio->begin;
    if (stdio->is_skipping || size != 0) {
        const char *why = stdio->is_skipping ? stdio_is_large : stdio_is_torn;
        if (!stdio_add(stdio, stdio_bad_line(why), size))
            return;
        stdio->begin = stdio->scanned = stdio->end;
        stdio->is_skipping = false;
        bide_notify_all(&stdio->state.news);
        return;
    }
    stdio_set_ended(stdio, -EPIPE);
}

static bool stdio_wants_lines(struct log_stdio *stdio)
{
    bide_log_lock_(&stdio->state);
    bool wants = (bide_stdio_wants_(stdio) & STDIO_READS) != 0;
    bide_log_unlock_(&stdio->state);
    return wants;
}

/* Takes the lines that are in the buffer, and wanted. False: it has none, and more may be read. */
static bool stdio_take_lines(struct log_stdio *stdio)
{
    bool has_taken = false;
    while (stdio_wants_lines(stdio) && stdio_take_line(stdio))
        has_taken = true;
    if (has_taken)
        bide_notify_all(&stdio->state.news);
    else if (stdio->is_at_end && stdio->scanned == stdio->end)
        stdio_take_end(stdio);
    return has_taken || stdio->is_at_end;
}

/* Makes room in the buffer. */
static bool stdio_make_room(struct log_stdio *stdio)
{
    size_t size = stdio->end - stdio->begin;
    if (stdio->begin != 0)
        memmove(stdio->buffer, stdio->buffer + stdio->begin, size);
    stdio->scanned -= stdio->begin;
    stdio->begin = 0;
    stdio->end = size;
    if (stdio->capacity - size >= STDIO_CHUNK / 2)
        return true;
    size_t capacity = stdio->capacity * 2 < STDIO_CHUNK ? STDIO_CHUNK : stdio->capacity * 2;
    char *grown = realloc(stdio->buffer, capacity);
    if (grown == NULL)
        return false;
    stdio->buffer = grown;
    stdio->capacity = capacity;
    return true;
}

static void stdio_read(struct log_stdio *stdio)
{
    if (stdio->end == stdio->capacity || stdio->begin == stdio->end) {
        if (!stdio_make_room(stdio)) {
            stdio_set_ended(stdio, -ENOMEM);
            return;
        }
    }
    ssize_t count =
        stdio_receive(&stdio->input, stdio->buffer + stdio->end, stdio->capacity - stdio->end);
    if (count > 0)
        stdio->end += (size_t)count;
    else if (count == 0)
        stdio->is_at_end = true;
    else if (!stdio_may_be_repeated(errno))
        stdio_set_ended(stdio, -errno);
}

/* ---- Batches for the output ---- */

static uint64_t stdio_lines_of(const uint8_t *bytes, size_t size)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n';
    return lines;
}

/* The batch is written, or its write has failed. */
static void stdio_wrote(struct log_stdio *stdio, int status)
{
    struct log_state *state = &stdio->state;
    struct bide_log_batch_ *batch = stdio->writing;
    size_t written = stdio->written;
    uint64_t lines = status == 0 ? batch->count : stdio_lines_of(batch->bytes, written);
    bide_log_lock_(state);
    if (written != 0 && batch->bytes[written - 1] != '\n')
        stdio->torn = status;
    batch->first = stdio->written_lines + 1;
    stdio->written_lines += lines;
    batch->status = status;
    batch->is_uncertain = status < 0 && written != 0;
    batch->is_done = true;
    stdio->writing = NULL;
    bide_log_batch_settle_(state, batch);
    batch = bide_log_batch_leave_(state, batch);
    bide_log_unlock_(state);
    bide_log_batch_free_(batch);
    bide_notify_all(&state->flushed);
    bide_notify_all(&state->room);
    bide_notify_all(&state->news); /* readers of a closed handle need not wait for it */
}

/* Takes the batch that waits, if none is being written. False: there is none. */
static bool stdio_take_batch(struct log_stdio *stdio)
{
    struct log_state *state = &stdio->state;
    bide_log_lock_(state);
    if (stdio->writing == NULL && state->pending != NULL) {
        stdio->writing = state->pending;
        stdio->written = 0;
        state->pending = NULL;
        stdio->writing->is_taken = true;
        stdio->writing->members++;
    }
    bool has_batch = stdio->writing != NULL;
    bide_log_unlock_(state);
    return has_batch;
}

static void stdio_write(struct log_stdio *stdio)
{
    if (!stdio_take_batch(stdio))
        return;
    const struct bide_log_batch_ *batch = stdio->writing;
    if (stdio->torn < 0) {
        stdio_wrote(stdio, stdio->torn);
        return;
    }
    ssize_t count =
        stdio_send(&stdio->output, batch->bytes + stdio->written, batch->size - stdio->written);
    if (count < 0 && !stdio_may_be_repeated(errno))
        stdio_wrote(stdio, -errno);
    if (count <= 0)
        return;
    stdio->written += (size_t)count;
    if (stdio->written == batch->size)
        stdio_wrote(stdio, 0);
}

/* ---- The thread ---- */

static void stdio_poll(struct log_stdio *stdio, unsigned wants)
{
    struct pollfd waits[3] = {{.fd = stdio->wake[0], .events = POLLIN},
                              {.fd = -1, .events = POLLIN},
                              {.fd = -1, .events = POLLOUT}};
    char bytes[64];
    if ((wants & STDIO_READS) != 0)
        waits[1].fd = bide_descriptor_fd(&stdio->input.descriptor);
    if ((wants & STDIO_WRITES) != 0)
        waits[2].fd = bide_descriptor_fd(&stdio->output.descriptor);
    if (poll(waits, 3, -1) <= 0)
        return;
    if (waits[0].revents != 0)
        (void)!read(stdio->wake[0], bytes, sizeof bytes);
    if (waits[1].revents != 0)
        stdio_read(stdio);
    if (waits[2].revents != 0)
        stdio_write(stdio);
}

static void *stdio_run(void *argument)
{
    struct log_stdio *stdio = argument;
    for (;;) {
        bide_log_lock_(&stdio->state);
        unsigned wants = stdio->polled = bide_stdio_wants_(stdio);
        bool ends = stdio->ends;
        bide_log_unlock_(&stdio->state);
        if (ends)
            return NULL;
        if ((wants & STDIO_READS) == 0 || !stdio_take_lines(stdio))
            stdio_poll(stdio, wants);
    }
}

int bide_stdio_thread_start_(struct log_stdio *stdio)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* SIGPIPE too: a write's error says it */
    int error = pthread_create(&stdio->thread, NULL, stdio_run, stdio);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

void bide_stdio_thread_end_(struct log_stdio *stdio)
{
    bide_log_lock_(&stdio->state);
    stdio->ends = true;
    bide_log_unlock_(&stdio->state);
    bide_stdio_wake_(stdio);
    pthread_join(stdio->thread, NULL);
}
