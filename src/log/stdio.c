/* The engine "stdio": handles, what is published, and what is delivered. stdio_engine.h has the rest. */
#define _GNU_SOURCE
#include "stdio_engine.h"

#include "bide/terminal.h"

#include "../system/portable.h"
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STDIO_AHEAD \
    (UINT64_C(1) << 20) /* bytes of lines that no consumer has; then no more are read */

/* The handles that read standard input and write to standard output, or 0. */
static bide_atomic(uintptr_t) stdio_reader, stdio_writer;

static struct log_stdio *stdio_of(bide_log *log)
{
    return bide_container_of(log, struct log_stdio, log);
}

/* True: the handle has it now, and keeps it. */
static bool stdio_own(bide_atomic(uintptr_t) * owner, const struct log_stdio *stdio)
{
    uintptr_t found = 0, self = (uintptr_t)stdio;
    /* relaxed, as below: owners have no memory in common */
    return bide_atomic_load(owner, relaxed) == self ||
           bide_atomic_compare_exchange(owner, &found, self, relaxed, relaxed);
}

static void stdio_disown(bide_atomic(uintptr_t) * owner, const struct log_stdio *stdio)
{
    uintptr_t self = (uintptr_t)stdio;
    (void)bide_atomic_compare_exchange(owner, &self, 0, relaxed, relaxed);
}

/* ---- Open and detach ---- */

/* Opens one of the two. A negative errno other than that it is closed. */
static int stdio_end_open(struct stdio_end *end, int (*open_standard)(bide_descriptor *))
{
    struct stat about;
    end->status = open_standard(&end->descriptor);
    if (end->status < 0)
        return end->status == -EBADF ? 0 : end->status;
    int fd = bide_descriptor_fd(&end->descriptor), flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fstat(fd, &about) != 0)
        return -errno;
    end->kind = (flags & O_NONBLOCK) != 0 ? STDIO_DIRECT
                : S_ISSOCK(about.st_mode) ? STDIO_SOCKET
                : S_ISFIFO(about.st_mode) ? STDIO_PIPE
                : isatty(fd)              ? STDIO_TERMINAL
                                          : STDIO_DIRECT;
    return 0;
}

static void stdio_changed(struct log_state *state);

void bide_stdio_free_lines_(struct log_stdio *stdio, uint64_t up_to)
{
    while (stdio->freed < up_to) {
        struct stdio_line **line = &stdio->lines[++stdio->freed & stdio->mask];
        free(*line);
        *line = NULL;
    }
}

/* Closes what is open, without the thread. */
static void stdio_release(struct log_stdio *stdio)
{
    for (int i = 0; i < 2; i++) {
        if (stdio->wake[i] >= 0)
            close(stdio->wake[i]);
    }
    (void)bide_close(&stdio->input.descriptor);
    (void)bide_close(&stdio->output.descriptor);
    free((void *)stdio->lines);
    free(stdio->buffer);
}

static int stdio_begin(struct log_stdio *stdio)
{
    uint32_t places = 1;
    while (places < stdio->log.window)
        places *= 2;
    stdio->mask = places - 1;
    stdio->lines = (struct stdio_line **)calloc(places, sizeof *stdio->lines);
    if (stdio->lines == NULL)
        return -ENOMEM;
    int status = stdio_end_open(&stdio->input, bide_standard_input);
    if (status == 0)
        status = stdio_end_open(&stdio->output, bide_standard_output);
    if (status == 0 && portable_pipe(stdio->wake, true) != 0)
        status = -errno;
    return status;
}

static int log_stdio_open(bide_log *log, const char *name, char *problem)
{
    struct log_stdio *stdio = stdio_of(log);
    if (*name != '\0') {
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "stdio: it has no name: %.60s", name);
        return -EINVAL;
    }
    stdio->wake[0] = stdio->wake[1] = -1;
    bide_descriptor_init_closed(&stdio->input.descriptor);
    bide_descriptor_init_closed(&stdio->output.descriptor);
    bide_log_state_init_(&stdio->state, log->window, false);
    stdio->state.is_flushing = true; /* state.h, 7 */
    stdio->state.changed = stdio_changed;
    int status = stdio_begin(stdio);
    if (status == 0)
        status = bide_stdio_thread_start_(stdio);
    if (status < 0) {
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "stdio: %s", strerror(-status));
        stdio_release(stdio);
        bide_log_state_destroy_(&stdio->state);
        return status;
    }
    log->state = &stdio->state;
    return 0;
}

static void log_stdio_detach(bide_log *log)
{
    struct log_stdio *stdio = stdio_of(log);
    struct log_state *state = &stdio->state;
    bide_stdio_thread_end_(stdio);
    if (stdio->writing != NULL) /* left by publishes that were cancelled: it is given up */
        bide_log_batch_free_(bide_log_batch_leave_(state, stdio->writing));
    bide_stdio_free_lines_(stdio, state->tail);
    stdio_release(stdio);
    bide_log_state_destroy_(state);
    stdio_disown(&stdio_reader, stdio);
    stdio_disown(&stdio_writer, stdio);
}

/* ---- The thread's work ---- */

/* The bytes of lines that no consumer was given. */
static uint64_t stdio_ahead(const struct log_stdio *stdio, const struct bide_log_group_ *group)
{
    if (group->next > stdio->state.tail)
        return 0;
    return stdio->bytes - stdio->lines[group->next & stdio->mask]->begin;
}

unsigned bide_stdio_wants_(const struct log_stdio *stdio)
{
    const struct log_state *state = &stdio->state;
    const struct bide_log_group_ *group = state->groups;
    unsigned wants = state->pending != NULL || stdio->writing != NULL ? STDIO_WRITES : 0;
    if (group != NULL && group->members != 0 && !stdio->log.is_closed && state->ended == 0 &&
        state->tail - group->acknowledged < state->window &&
        stdio_ahead(stdio, group) < STDIO_AHEAD)
        wants |= STDIO_READS;
    return wants;
}

/* After a change by an operation. */
static void stdio_changed(struct log_state *state)
{
    struct log_stdio *stdio = bide_container_of(state, struct log_stdio, state);
    bide_log_lock_(state);
    if (state->groups != NULL)
        bide_stdio_free_lines_(stdio, state->groups->acknowledged);
    bool wakes = bide_stdio_wants_(stdio) != stdio->polled; /* 1 */
    bide_log_unlock_(state);
    if (wakes)
        bide_stdio_wake_(stdio);
}

/* ---- What is published and delivered ---- */

static int log_stdio_encode(bide_log *log, struct bide_log_batch_ *batch,
                            const bide_log_message *messages, uint32_t count)
{
    struct log_stdio *stdio = stdio_of(log);
    struct log_text text = {batch->bytes, batch->size, batch->capacity};
    int status = stdio->output.status < 0 ? stdio->output.status
                 : stdio->torn < 0        ? stdio->torn
                                          : 0;
    if (status == 0 && !stdio_own(&stdio_writer, stdio))
        status = -EBUSY;
    for (uint32_t i = 0; status == 0 && i < count; i++)
        status = bide_log_line_append_(&text, &messages[i]);
    batch->bytes = text.bytes;
    batch->capacity = text.capacity;
    if (status < 0)
        return status; /* what was appended counts no bytes */
    batch->size = text.size;
    batch->count += count;
    return 0;
}

static int log_stdio_admit(bide_log *log, const bide_log_consumer_options *options)
{
    struct log_stdio *stdio = stdio_of(log);
    const struct bide_log_group_ *group = stdio->state.groups;
    if (options->group != NULL || options->from != BIDE_LOG_FROM_BEGINNING)
        return -ENOTSUP;
    if (stdio->input.status < 0)
        return stdio->input.status;
    if (group != NULL && group->members != 0)
        return -EBUSY;
    return stdio_own(&stdio_reader, stdio) ? 0 : -EBUSY;
}

static int log_stdio_load(bide_log *log, bide_log_message *message, char *problem)
{
    const struct log_stdio *stdio = stdio_of(log);
    uint64_t number = message->position.low_;
    const struct stdio_line *line = stdio->lines[number & stdio->mask];
    if (line->why != NULL) {
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "stdio: line %llu: %s", (unsigned long long)number,
                 line->why);
        return -EBADMSG;
    }
    bide_log_slot_read_(&line->slot, line->bytes, log->size, message);
    return 0;
}

const struct log_engine bide_log_stdio_engine_ = {
    .scheme = "stdio",
    .levels = 1u << BIDE_LOG_SENT,
    .best = BIDE_LOG_SENT,
    .handle_size = sizeof(struct log_stdio),
    .is_single = true,
    .open = log_stdio_open,
    .detach = log_stdio_detach,
    .encode = log_stdio_encode,
    .admit = log_stdio_admit,
    .load = log_stdio_load,
};
