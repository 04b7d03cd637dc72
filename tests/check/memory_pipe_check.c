/*
 * The pipe in memory: bytes are read once and in order, followed by the end, whichever side is
 * first; an abort ends waiters; and a cancelled operation has transferred no byte that it does not
 * report.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/stream.h"

enum { SIZE = 2, BYTES = 3, BEYOND = 9, WAITS = 1 /* the status of a wait that has not ended */ };

struct end {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    bide_stream_operation operation;
    char data[BYTES];
    size_t count;
    int status;
    bool has_ended;
};

typedef struct state {
    bide_memory_pipe pipe;
    bide_memory_end input, output;
    char memory[SIZE];
    struct end writer, reader;
} state;

/* Writes 1, 2, 3, and ends. */
bide_coroutine(writer_body)
{
    bide_begin(writer_body, struct end * self);
    for (int i = 0; i < BYTES; i++)
        self->data[i] = (char)(i + 1);
    bide_await_status(self->status,
                      bide_stream_write(&self->operation, bide_memory_stream(&self->state->output),
                                        self->data, BYTES));
    self->count = bide_stream_count(&self->operation, bide_memory_stream(&self->state->output));
    if (self->status == 0)
        bide_await(bide_stream_shutdown_output(&self->operation,
                                               bide_memory_stream(&self->state->output)));
    self->has_ended = true;
    bide_end();
}

/* Reads to the end. */
bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct end * self);
    self->data[SIZE] = BEYOND;
    for (;;) {
        bide_await_status(self->status, bide_stream_read(&self->operation,
                                                         bide_memory_stream(&self->state->input),
                                                         self->data, SIZE));
        size_t count = bide_stream_count(&self->operation, bide_memory_stream(&self->state->input));
        if (self->status < 0)
            bide_check_assert(count == 0);
        if (count == 0)
            break;
        for (size_t i = 0; i < count; i++)
            bide_check_assert((size_t)self->data[i] == ++self->count);
        bide_check_assert(self->data[SIZE] == BEYOND);
    }
    self->has_ended = true;
    bide_end();
}

static void begin(state *s, struct end *end, const bide_point *body, bool has_source)
{
    end->state = s;
    end->status = WAITS;
    end->count = 0;
    end->has_ended = false;
    bide_stop_source_init(&end->stop);
    end->context =
        (bide_context){&bide_inline_scheduler, has_source ? &end->stop : NULL, NULL, NULL, NULL};
    bide_start(&end->task.frame, body, &end->context);
    bide_resume(&end->task.frame);
}

/* (what is not initialised holds no zeros) */
static void setup(void *p)
{
    state *s = p;
    for (size_t i = 0; i < sizeof s->pipe; i++)
        ((unsigned char *)&s->pipe)[i] = 0xa5;
    bide_memory_pipe_init(&s->pipe, s->memory, SIZE);
    s->input = (bide_memory_end){&s->pipe, NULL};
    s->output = (bide_memory_end){NULL, &s->pipe};
}

/* The counts wrap at twice the size. */
static void setup_before_wrap(void *p)
{
    state *s = p;
    setup(p);
    bide_atomic_init(&s->pipe.written, 2 * SIZE - 1);
    bide_atomic_init(&s->pipe.taken, 2 * SIZE - 1);
}

static void begin_writer(void *p)
{
    begin(p, &((state *)p)->writer, &writer_body, false);
}

static void begin_reader(void *p)
{
    begin(p, &((state *)p)->reader, &reader_body, false);
}

static void setup_reader(void *p)
{
    state *s = p;
    setup(p);
    begin(s, &s->reader, &reader_body, true);
}

static void stop_reader(void *p)
{
    bide_stop_request(&((state *)p)->reader.stop);
}

static void refuse(void *p)
{
    bide_check_assert(bide_stream_close(bide_memory_stream(&((state *)p)->input)) == 0);
}

static void end_pipe(void *p)
{
    bide_check_assert(bide_stream_close(bide_memory_stream(&((state *)p)->output)) == 0);
}

static void finish(void *p)
{
    state *s = p;
    bide_check_assert(s->writer.status == 0 && s->writer.count == BYTES);
    bide_check_assert(s->reader.status == 0 && s->reader.count == BYTES);
    bide_check_assert(s->writer.has_ended && s->reader.has_ended);
}

/* Bytes that were not read are in the pipe, or the writer has them. */
static void finish_stopped(void *p)
{
    state *s = p;
    if (s->reader.status == 0) {
        finish(p);
        return;
    }
    bide_check_assert(s->reader.status == -ECANCELED && s->reader.has_ended);
    size_t taken = s->reader.count;
    for (bool is_first = true;; is_first = false) {
        bide_memory_operation *operation = &s->reader.operation.memory;
        bide_awaiter *awaiter = bide_stream_read(
            &s->reader.operation, bide_memory_stream(&s->input), s->reader.data, SIZE);
        bide_check_assert(bide_awaiter_had(awaiter) || !is_first);
        if (operation->count == 0)
            break;
        for (size_t i = 0; i < operation->count; i++)
            bide_check_assert((size_t)s->reader.data[i] == ++taken);
    }
    bide_check_assert(s->writer.status == 0 && taken == BYTES);
}

static void finish_refused(void *p)
{
    state *s = p;
    bide_check_assert(s->writer.status == -EPIPE && s->writer.has_ended);
}

static void finish_reader_refused(void *p)
{
    state *s = p;
    bide_check_assert(s->reader.status == -EPIPE && s->reader.has_ended);
}

/* Each end has one direction: an operation of the other fails, or does nothing. */
static void use_other_directions(state *s)
{
    bide_stream_operation *operation = &s->reader.operation;
    bide_stream input = bide_memory_stream(&s->input), output = bide_memory_stream(&s->output);
    bide_check_assert(bide_check_await(bide_stream_read(operation, output, s->reader.data, SIZE)) ==
                      -EPIPE);
    bide_check_assert(bide_stream_count(operation, output) == 0);
    bide_check_assert(bide_check_await(bide_stream_shutdown_output(operation, input)) == 0);
}

static void finish_nothing_read(void *p)
{
    state *s = p;
    use_other_directions(s);
    bide_check_assert(s->reader.status == 0 && s->reader.has_ended && s->reader.count == 0);
}

#define SCENARIO(id, text, ...)             \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .cxx20_release_sequences = true, __VA_ARGS__}

SCENARIO(meet, "a_writer_and_a_reader", .setup = setup, .threads = {begin_writer, begin_reader},
         .finish = finish);
SCENARIO(stopped, "the_reader_is_asked_to_stop", .setup = setup_reader,
         .threads = {begin_writer, stop_reader}, .finish = finish_stopped);
SCENARIO(refused, "the_pipe_is_refused", .setup = setup, .threads = {begin_writer, refuse},
         .finish = finish_refused);
SCENARIO(wrapped, "the_counts_wrap", .setup = setup_before_wrap,
         .threads = {begin_writer, begin_reader}, .finish = finish);
SCENARIO(reader_refused, "the_pipe_is_refused_to_the_reader", .setup = setup,
         .threads = {begin_reader, refuse}, .finish = finish_reader_refused);
SCENARIO(ended, "the_pipe_is_ended_while_it_is_full", .setup = setup,
         .threads = {begin_writer, end_pipe}, .finish = finish_refused);
SCENARIO(nothing, "the_pipe_is_ended_while_it_is_empty", .setup = setup,
         .threads = {begin_reader, end_pipe}, .finish = finish_nothing_read);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&meet,           &stopped, &refused, &wrapped,
                                                     &reader_refused, &ended,   &nothing, NULL};
    static const char *const files[] = {"memory_pipe.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
