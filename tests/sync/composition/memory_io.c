/*
 * Rows of input and output in memory: a read from a pipe, a poll of it, and a file that is opened. An io is made for
 * each cell, on the test loop where the row is awaited.
 */
#define _GNU_SOURCE
#include "taking.h"

#include "composition.h"

#include "bide/file.h"
#include "bide/memory_io.h"

#include <poll.h>
#include <stdlib.h>

enum { WORD = 1 /* bytes that a wake writes */, MORE = 16 };

typedef struct piped {
    place *place;
    bide_sim_loop *loop; /* of it */
    bide_memory_io *io;  /* NULL: none */
    bide_descriptor input, output;
} piped;

struct mover {
    bide_task task;
    piped *pipe;
    bide_file_operation operation;
    char bytes[MORE];
    size_t moved;
    bool writes;
    int status;
};

bide_coroutine(mover_body)
{
    bide_begin(mover_body, struct mover * self);
    if (self->writes)
        bide_await_status(self->status,
                          bide_write(&self->operation, &self->pipe->output, self->bytes, WORD));
    else
        bide_await_status(self->status,
                          bide_read(&self->operation, &self->pipe->input, self->bytes, MORE));
    self->moved = self->operation.operation.count;
    bide_end();
}

static void resume_mover(void *argument)
{
    bide_resume(&((struct mover *)argument)->task.frame);
}

/* Moves bytes at once; returns how many. */
static size_t piped_move(piped *self, bool writes)
{
    struct mover mover = {.pipe = self, .writes = writes, .status = WAITS};
    bide_start(&mover.task.frame, &mover_body, &self->loop->context);
    place_call(self->place, resume_mover, &mover);
    if (mover.status != 0)
        abort();
    return mover.moved;
}

static void piped_init(void *object)
{
    PRIMITIVE_OBJECT(piped, self);
    self->place = row_place;
    self->loop = row_place->implementation;
    self->io = NULL;
    bide_descriptor_init_closed(&self->input);
    bide_descriptor_init_closed(&self->output);
    if ((bide_memory_io_create(&self->io, self->loop, NULL) != 0 ||
         bide_memory_io_pipe(self->io, &self->input, &self->output) != 0))
        abort();
}

static void piped_wake(void *object)
{
    if (piped_move(object, true) != WORD)
        abort();
}

static bool piped_is_idle(void *object)
{
    bide_memory_io_stats counts;
    bide_memory_io_get_stats(((piped *)object)->io, &counts);
    return counts.in_flight == 0;
}

static bool piped_is_readable(piped *self)
{
    bide_io *io = self->loop->scheduler.io(&self->loop->scheduler);
    return io->table->calls->poll(io, bide_descriptor_fd(&self->input), POLLIN) != 0;
}

static unsigned piped_tokens(void *object)
{
    PRIMITIVE_OBJECT(piped, self);
    size_t count = 0;
    while (piped_is_readable(self))
        count += piped_move(self, false);
    return (unsigned)count;
}

static void piped_destroy(void *object)
{
    PRIMITIVE_OBJECT(piped, self);
    bide_memory_io_stats counts;
    if (self->io == NULL)
        return;
    bide_close(&self->input);
    bide_close(&self->output);
    bide_memory_io_get_stats(self->io, &counts);
    if (counts.descriptors != 0 || counts.in_flight != 0)
        abort();
    bide_memory_io_destroy(self->io);
}

#define OVER_A_PIPE                                                       \
    .object_size = sizeof(piped), .init = piped_init, .wake = piped_wake, \
    .is_idle = piped_is_idle, .free_tokens = piped_tokens, .destroy = piped_destroy

/* ---- A read ---- */

struct reading {
    bide_file_operation operation;
    char bytes[WORD];
};

static bide_awaiter *read_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(piped, pipe);
    PRIMITIVE_WAITER(struct reading, self);
    return bide_read(&self->operation, &pipe->input, self->bytes, WORD);
}

static void read_hand_on(void *object, void *waiter)
{
    (void)waiter;
    piped_wake(object);
}

const primitive memory_read_row = {
    .name = "a read from a pipe in memory",
    .waiter_size = sizeof(struct reading),
    .traits = KEEPS_WHAT_IT_HAD, /* bytes that were read for a destroyed coroutine are gone */
    .begin = read_begin,
    .hand_on = read_hand_on,
    OVER_A_PIPE,
};

/* ---- A poll, which takes nothing ---- */

static bide_awaiter *poll_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(piped, pipe);
    return bide_poll(waiter, &pipe->input, POLLIN);
}

const primitive memory_poll_row = {
    .name = "a poll of a pipe in memory",
    .waiter_size = sizeof(bide_io_operation),
    .begin = poll_begin,
    OVER_A_PIPE,
};

/* ---- A file is opened, and left to its coroutine or closed ---- */

struct opening {
    bide_file_operation operation;
    bide_descriptor file;
};

static bide_awaiter *open_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(struct opening, self);
    (void)object;
    bide_descriptor_init_closed(&self->file);
    return bide_open(&self->operation, &self->file, "/tmp/file", O_RDWR | O_CREAT, 0600);
}

static void no_wake(void *object)
{
    (void)object;
}

static void open_hand_on(void *object, void *waiter)
{
    (void)object;
    if (bide_close(&((struct opening *)waiter)->file) != 0)
        abort();
}

const primitive memory_open_row = {
    .name = "an open in memory",
    .object_size = sizeof(piped),
    .waiter_size = sizeof(struct opening),
    .init = piped_init,
    .begin = open_begin,
    .wake = no_wake,
    .hand_on = open_hand_on,
    .is_idle = piped_is_idle,
    .destroy = piped_destroy,
};
