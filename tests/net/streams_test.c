/*
 * Readers, writers and copies: each operation over each kind of stream, while the peer acts byte by byte,
 * in random pieces, or all at once. Each wait completes, or is cancelled, times out or is destroyed and then
 * repeated, at random. In every case the received bytes are the sent bytes, each once and in order.
 */
#define _GNU_SOURCE
#include "../io/world.h"

#include <bide/extend/wrapper.h>

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum { BUFFER = 16, TEXT = 40000, MEMORY = 24, UNBUFFERED = 0 };

typedef struct fixture {
    world *world;
    bide_run_loop run_loop;
    bool is_on_run_loop;
    bide_context *context, run_context;
    uint64_t random;

    /* the streams: bytes written to `output` arrive at `input` */
    bide_descriptor one, other, listener;
    bide_memory_pipe pipe, second;
    char memory[MEMORY], second_memory[MEMORY];
    bide_memory_end from, to;
    bide_stream input, output;

    /* the actors */
    struct actor {
        bide_task task;
        bide_awaiter *awaiter;
        int status;
        bool has_begun, has_ended;
        bide_stop_source stop;
        bide_context context;
        bide_spawned spawned;
    } subject, feeder, drainer;
    bide_with_deadline_operation limited;
    bide_stream_operation feeding, draining;
    bool is_limited;

    bide_reader reader;
    bide_writer writer;
    char in[BUFFER], out[BUFFER];
    bide_reader_operation read;
    bide_writer_operation write;
    bide_copy_operation copy;
    struct iovec vectors[6];

    char *text; /* the sent text */
    size_t size, fed, drained, position, asked;
    bool has_drained, has_fed_end;
    char *got;
    char mine[64];
} fixture;

/* ---- Running ---- */

static int run(fixture *f, bide_awaiter *awaiter)
{
    return f->is_on_run_loop ? bide_run_loop_wait(&f->run_loop, awaiter)
                             : world_wait(f->world, awaiter);
}

static void turn(fixture *f)
{
    bide_sleep sleep;
    assert_int_equal(run(f, bide_sleep_for(&sleep, 20000)), 0);
}

bide_coroutine(actor_body)
{
    bide_begin(actor_body, struct actor * self);
    bide_await_status(self->status, self->awaiter);
    self->has_ended = true;
    bide_end();
}

static void act(fixture *f, struct actor *actor, bide_awaiter *awaiter)
{
    actor->awaiter = awaiter;
    actor->has_begun = true;
    actor->has_ended = false;
    bide_stop_source_init(&actor->stop);
    actor->context = *f->context;
    actor->context.stop = &actor->stop;
    bide_spawn(&actor->spawned, &actor->context, bide_task_init(&actor->task, &actor_body));
}

/* Also for the thread on which it ran: the actor may act again. */
static bool is_over(struct actor *actor)
{
    return bide_event_is_set(&actor->spawned.ended);
}

struct caller {
    bide_task task;
    void (*function)(fixture *);
    fixture *fixture;
};

bide_coroutine(caller_body)
{
    bide_begin(caller_body, struct caller * self);
    self->function(self->fixture);
    bide_end();
}

static void call_inside(fixture *f, void (*function)(fixture *))
{
    struct caller caller = {.function = function, .fixture = f};
    assert_int_equal(run(f, bide_task_init(&caller.task, &caller_body)), 0);
}

static void start_subject(fixture *f)
{
    bide_start(&f->subject.task.frame, &actor_body, f->context);
    bide_resume(&f->subject.task.frame);
}

static void destroy_subject(fixture *f)
{
    bide_destroy(&f->subject.task.frame);
}

/* ---- Kinds of streams ---- */

static void make_small(bide_descriptor *socket)
{
    assert_int_equal(bide_set_socket_option(socket, BIDE_OPTION_SEND_BUFFER, 4096), 0);
}

static void open_memory(fixture *f)
{
    bide_memory_pipe_init(&f->pipe, f->memory, MEMORY);
    f->from = (bide_memory_end){&f->pipe, NULL};
    f->to = (bide_memory_end){NULL, &f->pipe};
    f->input = bide_memory_stream(&f->from);
    f->output = bide_memory_stream(&f->to);
}

static void open_memory_on_run_loop(fixture *f)
{
    f->is_on_run_loop = true;
    bide_run_loop_init(&f->run_loop);
    f->run_context.scheduler = &f->run_loop.scheduler;
    f->context = &f->run_context;
    open_memory(f);
}

static void open_pair(fixture *f)
{
    bide_io_operation operation;
    assert_int_equal(run(f, bide_socket_pair(&operation, &f->one, &f->other)), 0);
    make_small(&f->other);
    f->input = bide_socket_stream(&f->one);
    f->output = bide_socket_stream(&f->other);
}

static void open_tcp(fixture *f)
{
    bide_io_operation operation;
    bide_address address;
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(run(f, bide_listen(&operation, &f->listener, &address, 4)), 0);
    assert_int_equal(bide_local_address(&f->listener, &address), 0);
    assert_int_equal(run(f, bide_connect(&operation, &f->other, &address)), 0);
    assert_int_equal(run(f, bide_accept(&operation, &f->listener, &f->one, NULL)), 0);
    make_small(&f->other);
    assert_int_equal(bide_set_no_delay(&f->other, true), 0);
    f->input = bide_socket_stream(&f->one);
    f->output = bide_socket_stream(&f->other);
}

static void open_pipe(fixture *f)
{
    world_pipe(f->world, &f->one, &f->other);
    f->input = bide_file_stream(&f->one);
    f->output = bide_file_stream(&f->other);
}

/* (where TLS is available, a second program runs this with TLS) */
#ifndef STREAMS_OF_TLS
#define STREAMS_OF_TLS 0
#endif
#if STREAMS_OF_TLS
#include "streams_tls.h"
#else
static void close_tls(void)
{
}
#endif

static const struct kind {
    const char *name;
    void (*open)(fixture *);
    size_t size; /* of a text that does not fit */
} kinds[] = {
    {"memory", open_memory, 300},
    {"memory on a run loop", open_memory_on_run_loop, 300},
    {"pair of sockets", open_pair, TEXT},
    {"TCP", open_tcp, TEXT},
    {"pipe", open_pipe, 3 * TEXT},
#if STREAMS_OF_TLS
    {"TLS in memory", open_tls, 300},
    {"TLS by sockets", open_tls_of_sockets, TEXT},
#endif
};

enum { FIRST_KIND = STREAMS_OF_TLS ? 5 : 0 };

/* ---- Chunks ---- */

typedef enum chunking { BYTES, DRAWN, WHOLE, CHUNKINGS } chunking;
static const char *const chunkings[] = {"byte by byte", "in drawn pieces", "all at once"};

typedef enum end { DONE, STOPPED, TIMED_OUT, DESTROYED, ENDS } end;
static const char *const ends[] = {"is done", "is asked to stop", "times out", "is destroyed"};

static size_t drawn(fixture *f, size_t from, size_t to)
{
    return from + (size_t)(testing_random(&f->random) % (to - from + 1));
}

static size_t piece_of(fixture *f, chunking chunking, size_t rest)
{
    size_t size = chunking == BYTES ? 1 : chunking == DRAWN ? drawn(f, 1, 30) : rest;
    if (rest > 1000 && chunking != WHOLE)
        size *= 300; /* a long text */
    return size < rest ? size : rest;
}

/* Feeds the next piece, or the end. */
static void feed(fixture *f, chunking chunking)
{
    if (f->feeder.has_begun && !is_over(&f->feeder))
        return;
    if (f->feeder.has_begun)
        assert_int_equal(f->feeder.status, 0);
    if (f->fed < f->size) {
        size_t size = piece_of(f, chunking, f->size - f->fed);
        act(f, &f->feeder, bide_stream_write(&f->feeding, f->output, f->text + f->fed, size));
        f->fed += size;
    } else if (!f->has_fed_end) {
        f->has_fed_end = true;
        act(f, &f->feeder, bide_stream_shutdown_output(&f->feeding, f->output));
    }
}

/* Receives the next piece of the output. */
static void drain(fixture *f, bide_stream stream, chunking chunking)
{
    if (f->drainer.has_begun) {
        if (!is_over(&f->drainer))
            return;
        assert_int_equal(f->drainer.status, 0);
        size_t count = bide_stream_count(&f->draining, stream);
        assert_true(f->drained + count <= f->size);
        assert_memory_equal(f->got + f->drained, f->text + f->drained, count);
        f->drained += count;
        if (count == 0)
            f->has_drained = true;
    }
    if (!f->has_drained)
        act(f, &f->drainer,
            bide_stream_read(&f->draining, stream, f->got + f->drained,
                             piece_of(f, chunking, f->size + 1 - f->drained)));
}

/* ---- The subject ---- */

/* Starts an operation, and handles its result. Returns true when it is finished. */
typedef struct subject {
    const char *name;
    bide_awaiter *(*begin)(fixture *);
    bool (*note)(fixture *, int status);
    void (*others)(fixture *, chunking);
    bool is_writer;
} subject;

static void go(fixture *f, const subject *s, chunking chunking, end end)
{
    for (;;) {
        bide_awaiter *awaiter = s->begin(f);
        bool cut = end != DONE && drawn(f, 0, 2) != 0;
        int expected = 0;
        f->subject.has_ended = false;
        if (cut && end == DESTROYED) {
            f->subject.awaiter = awaiter;
            call_inside(f, start_subject);
            turn(f);
            if (drawn(f, 0, 1))
                s->others(f, chunking);
            call_inside(f, destroy_subject);
            if (!f->subject.has_ended)
                expected = f->subject.status = -EINTR;
        } else {
            if (cut && end == TIMED_OUT) {
                expected = -ETIMEDOUT;
                awaiter = bide_with_deadline(&f->limited, bide_now(f->context) + drawn(f, 0, 60000),
                                             awaiter);
            }
            act(f, &f->subject, awaiter);
            if (cut && end == STOPPED) {
                expected = -ECANCELED;
                if (drawn(f, 0, 3) != 0)
                    turn(f);
                if (drawn(f, 0, 1))
                    s->others(f, chunking);
                bide_stop_request(&f->subject.stop);
            }
            bide_event_waiter wait;
            while (!f->subject.has_ended) {
                turn(f);
                s->others(f, chunking);
            }
            assert_int_equal(run(f, bide_event_wait(&wait, &f->subject.spawned.ended)), 0);
        }
        int status = f->subject.status;
        if (status == -ECANCELED || status == -ETIMEDOUT)
            assert_int_equal(status, expected);
        if (s->note(f, status))
            return;
        s->others(f, chunking);
    }
}

static bool was_cut(int status)
{
    return status == -ECANCELED || status == -ETIMEDOUT || status == -EINTR;
}

/* The next bytes of the text are these. */
static void came(fixture *f, const char *data, size_t count)
{
    assert_true(f->position + count <= f->size);
    assert_memory_equal(data, f->text + f->position, count);
    f->position += count;
}

static void feeds(fixture *f, chunking chunking)
{
    feed(f, chunking);
}

static bool note_end(fixture *f, int status)
{
    assert_int_equal(status, -EPIPE);
    assert_int_equal(f->position, f->size);
    return true;
}

static bide_awaiter *begin_read(fixture *f)
{
    return bide_reader_read(&f->read, &f->reader, f->mine, drawn(f, 1, sizeof f->mine));
}

static bool note_read(fixture *f, int status)
{
    if (was_cut(status)) {
        assert_int_equal(f->read.count, 0);
        return false;
    }
    if (status != 0)
        return note_end(f, status);
    assert_true(f->read.count != 0);
    came(f, f->mine, f->read.count);
    return false;
}

static bide_awaiter *begin_exact(fixture *f)
{
    f->asked = drawn(f, 1, BUFFER);
    return bide_reader_read_exact(&f->read, &f->reader, f->mine, f->asked);
}

static bide_awaiter *begin_large(fixture *f)
{
    f->asked = drawn(f, BUFFER + 1, sizeof f->mine);
    return bide_reader_read_exact(&f->read, &f->reader, f->mine, f->asked);
}

static bool note_exact(fixture *f, int status)
{
    size_t left = f->size - f->position;
    if (status == 0)
        assert_int_equal(f->read.count, f->asked);
    else if (f->asked <= BUFFER)
        assert_int_equal(f->read.count, 0);
    came(f, f->mine, f->read.count);
    if (status == 0 || was_cut(status))
        return false;
    if (status == -ENODATA) { /* nothing is lost */
        assert_true(left != 0 && left < f->asked);
        if (f->asked > BUFFER) {
            assert_int_equal(f->read.count, left);
            return false;
        }
        assert_int_equal(bide_reader_buffered(&f->reader), left);
        came(f, bide_reader_peek(&f->reader), left);
        bide_reader_consume(&f->reader, left);
        return false;
    }
    return note_end(f, status);
}

static bide_awaiter *begin_until(fixture *f)
{
    return bide_reader_read_until(&f->read, &f->reader, ';');
}

/* A text that does not fit, or has no delimiter, is still complete. */
static void take_buffered(fixture *f)
{
    size_t count = bide_reader_buffered(&f->reader);
    came(f, bide_reader_peek(&f->reader), count);
    bide_reader_consume(&f->reader, count);
}

static bool note_until(fixture *f, int status)
{
    const char *next = f->text + f->position;
    const char *found = memchr(next, ';', f->size - f->position);
    if (was_cut(status))
        return false;
    if (status == 0) {
        assert_non_null(found);
        assert_int_equal(f->read.count, found - next + 1);
        came(f, f->read.data, f->read.count);
    } else if (status == -EMSGSIZE) {
        assert_true(found == NULL || found - next >= BUFFER);
        assert_int_equal(bide_reader_buffered(&f->reader), BUFFER);
        take_buffered(f);
    } else if (status == -ENODATA) {
        assert_null(found);
        assert_int_equal(bide_reader_buffered(&f->reader), f->size - f->position);
        take_buffered(f);
    } else {
        return note_end(f, status);
    }
    return false;
}

static bide_awaiter *begin_line(fixture *f)
{
    return bide_reader_read_line(&f->read, &f->reader);
}

static bool note_line(fixture *f, int status)
{
    const char *next = f->text + f->position;
    size_t left = f->size - f->position;
    const char *found = memchr(next, '\n', left);
    if (was_cut(status))
        return false;
    if (status == 0) {
        size_t whole = found != NULL ? (size_t)(found - next) + 1 : left;
        size_t length = found == NULL                    ? whole
                        : whole > 1 && found[-1] == '\r' ? whole - 2
                                                         : whole - 1;
        assert_true(whole != 0);
        assert_int_equal(f->read.count, length);
        assert_memory_equal(f->read.data, next, length);
        f->position += whole;
    } else if (status == -EMSGSIZE) {
        assert_true(found == NULL || found - next >= BUFFER);
        assert_int_equal(bide_reader_buffered(&f->reader), BUFFER);
        take_buffered(f);
    } else {
        return note_end(f, status);
    }
    return false;
}

static bide_awaiter *begin_fill(fixture *f)
{
    f->asked = drawn(f, 1, BUFFER + 1);
    return bide_reader_fill(&f->read, &f->reader, f->asked);
}

static bool note_fill(fixture *f, int status)
{
    if (was_cut(status))
        return false;
    if (status == 0) {
        assert_in_range(f->read.count, f->asked, BUFFER);
        assert_ptr_equal(f->read.data, bide_reader_peek(&f->reader));
        came(f, f->read.data, f->asked);
        bide_reader_consume(&f->reader, f->asked);
    } else if (status == -EMSGSIZE) {
        assert_int_equal(f->asked, BUFFER + 1);
    } else if (status == -ENODATA) {
        take_buffered(f);
        assert_int_equal(f->position, f->size);
    } else {
        return note_end(f, status);
    }
    return false;
}

static bide_awaiter *begin_skip(fixture *f)
{
    f->asked = drawn(f, 1, 40);
    return bide_reader_skip(&f->read, &f->reader, f->asked);
}

static bool note_skip(fixture *f, int status)
{
    f->position += f->read.count;
    if (status == 0)
        assert_int_equal(f->read.count, f->asked);
    if (status == 0 || was_cut(status) || status == -ENODATA) {
        /* the following bytes are the next ones */
        size_t buffered = bide_reader_buffered(&f->reader);
        assert_true(f->position + buffered <= f->size);
        assert_memory_equal(bide_reader_peek(&f->reader), f->text + f->position, buffered);
        return false;
    }
    return note_end(f, status);
}

static void drains(fixture *f, chunking chunking)
{
    drain(f, f->input, chunking);
}

/* Writes pieces and then the end. Bytes that were not accepted are written again. */
static bide_awaiter *begin_write(fixture *f)
{
    size_t left = f->size - f->position;
    f->asked = f->size > 1000 ? drawn(f, 1, 20000) : drawn(f, 1, 40);
    if (f->asked > left)
        f->asked = left;
    if (left == 0)
        return bide_writer_finish(&f->write, &f->writer);
    return bide_writer_write(&f->write, &f->writer, f->text + f->position, f->asked);
}

static bool note_write(fixture *f, int status)
{
    bool is_end = f->size == f->position;
    f->position += f->write.count;
    if (was_cut(status)) {
        assert_true(f->write.count <= f->asked);
        return false;
    }
    assert_int_equal(status, 0);
    assert_int_equal(f->write.count, f->asked);
    return is_end;
}

static bide_awaiter *begin_write_vectors(fixture *f)
{
    size_t left = f->size - f->position;
    size_t each = f->size > 1000 ? 5000 : 12;
    char *at = f->text + f->position;
    f->asked = 0;
    if (left == 0)
        return bide_writer_finish(&f->write, &f->writer);
    for (int i = 0; i < 6; i++) {
        size_t size = drawn(f, 0, each);
        if (size > left)
            size = left;
        f->vectors[i] = (struct iovec){at, size};
        at += size;
        left -= size;
        f->asked += size;
    }
    return bide_writer_write_vectors(&f->write, &f->writer, f->vectors, 6);
}

static bide_awaiter *begin_write_and_flush(fixture *f)
{
    if (bide_writer_buffered(&f->writer) != 0) {
        f->asked = 0;
        return bide_writer_flush(&f->write, &f->writer);
    }
    return begin_write(f);
}

static bool note_write_and_flush(fixture *f, int status)
{
    if (status == 0 && f->asked == 0)
        assert_int_equal(bide_writer_buffered(&f->writer), 0);
    if (f->asked == 0 && f->write.is_flush && !f->write.is_end)
        return false;
    return note_write(f, status);
}

static void feeds_and_drains(fixture *f, chunking chunking)
{
    feed(f, chunking);
    bide_memory_end end = {&f->second, NULL};
    static bide_memory_end only;
    only = end;
    drain(f, bide_memory_stream(&only), chunking);
}

static bide_awaiter *begin_copy(fixture *f)
{
    f->asked = drawn(f, 0, f->size);
    return bide_copy(&f->copy, &f->reader, &f->writer, drawn(f, 0, 1) ? UINT64_MAX : f->asked);
}

static bool note_copy(fixture *f, int status)
{
    f->position += (size_t)f->copy.count;
    assert_true(f->copy.count <= f->copy.max);
    if (was_cut(status))
        return false;
    assert_int_equal(status, 0);
    if (f->copy.count == f->copy.max)
        return false;
    assert_int_equal(f->position, f->size);
    bide_memory_pipe_destroy(&f->second);
    return true;
}

static const subject subjects[] = {
    {"read", begin_read, note_read, feeds, false},
    {"read_exact", begin_exact, note_exact, feeds, false},
    {"read_exact, past the buffer", begin_large, note_exact, feeds, false},
    {"read_until", begin_until, note_until, feeds, false},
    {"read_line", begin_line, note_line, feeds, false},
    {"fill", begin_fill, note_fill, feeds, false},
    {"skip", begin_skip, note_skip, feeds, false},
    {"copy", begin_copy, note_copy, feeds_and_drains, false},
    {"write", begin_write, note_write, drains, true},
    {"write_vectors", begin_write_vectors, note_write, drains, true},
    {"write and flush", begin_write_and_flush, note_write_and_flush, drains, true},
};

/* ---- The product ---- */

static fixture *begin_fixture(world *world, uint64_t seed)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = world;
    f->context = world->context;
    f->random = seed;
    bide_descriptor_init_closed(&f->one);
    bide_descriptor_init_closed(&f->other);
    bide_descriptor_init_closed(&f->listener);
    return f;
}

/* Lines of 0 to 20 bytes with either line end, and delimiters. The last line may have no end. */
static void draw_text(fixture *f, size_t size)
{
    static const char letters[] = "abcdefghij;\n\n;xyz\r";
    f->size = size;
    f->text = malloc(size);
    f->got = malloc(size + 1);
    assert_true(f->text != NULL && f->got != NULL);
    for (size_t i = 0; i < size; i++)
        f->text[i] = letters[drawn(f, 0, sizeof letters - 2)];
}

static void end_fixture(fixture *f)
{
    bide_event_waiter wait;
    if (f->feeder.has_begun)
        assert_int_equal(run(f, bide_event_wait(&wait, &f->feeder.spawned.ended)), 0);
    if (f->drainer.has_begun)
        assert_int_equal(run(f, bide_event_wait(&wait, &f->drainer.spawned.ended)), 0);
    close_tls();
    bide_close(&f->one);
    bide_close(&f->other);
    bide_close(&f->listener);
    turn(f);
    if (f->is_on_run_loop)
        bide_run_loop_destroy(&f->run_loop);
    free(f->text);
    free(f->got);
    free(f);
}

static void each_operation_of_each_stream_by_each_end(void **state)
{
    world *world = world_of(state);
    uint64_t seed = testing_seed();
    for (uint32_t round = rounds_of(1); round != 0; round--)
        for (size_t k = FIRST_KIND; k < sizeof kinds / sizeof *kinds; k++)
            for (size_t s = 0; s < sizeof subjects / sizeof *subjects; s++)
                for (size_t c = 0; c < CHUNKINGS; c++)
                    for (size_t e = 0; e < ENDS; e++) {
                        fixture *f = begin_fixture(world, testing_random(&seed));
                        if (getenv("BIDE_TEST_TELL") != NULL)
                            fprintf(stderr, "%s of %s: %s, %s\n", subjects[s].name, kinds[k].name,
                                    chunkings[c], ends[e]);
                        kinds[k].open(f);
                        draw_text(f, subjects[s].is_writer ? kinds[k].size : drawn(f, 0, 120));
                        bide_reader_init(&f->reader, f->input, f->in, BUFFER);
                        bide_memory_pipe_init(&f->second, f->second_memory, MEMORY);
                        bide_memory_end to = {NULL, &f->second};
                        bool is_copy = subjects[s].others == feeds_and_drains;
                        bide_writer_init(&f->writer,
                                         is_copy ? bide_memory_stream(&to) : f->output, f->out,
                                         drawn(f, 0, 3) == 0 ? UNBUFFERED : BUFFER);
                        go(f, &subjects[s], (chunking)c, (end)e);
                        if (subjects[s].is_writer || is_copy) {
                            while (!f->has_drained) {
                                turn(f);
                                subjects[s].others(f, (chunking)c);
                            }
                            assert_int_equal(f->drained, f->size);
                        }
                        end_fixture(f);
                    }
}

/* ---- Single cases ---- */

/* A memory pipe with a text and its end, on a run loop. */
static fixture *begin_with(void **state, const char *text)
{
    fixture *f = begin_fixture(world_of(state), 1);
    open_memory_on_run_loop(f);
    bide_memory_pipe_init(&f->pipe, f->second_memory, MEMORY);
    bide_reader_init(&f->reader, f->input, f->in, BUFFER);
    bide_writer_init(&f->writer, f->output, f->out, BUFFER);
    size_t size = strlen(text);
    if (size != 0) {
        assert_int_equal(run(f, bide_stream_write(&f->feeding, f->output, text, size)), 0);
        assert_int_equal(run(f, bide_stream_shutdown_output(&f->feeding, f->output)), 0);
    }
    return f;
}

static void the_last_line_needs_no_end(void **state)
{
    static const char *const lines[] = {"one", "", "two", "last\r"};
    fixture *f = begin_with(state, "one\n\r\ntwo\r\nlast\r");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(run(f, begin_line(f)), 0);
        assert_int_equal(f->read.count, strlen(lines[i]));
        assert_memory_equal(f->read.data, lines[i], f->read.count);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(run(f, begin_line(f)), -EPIPE);
    end_fixture(f);
}

static void a_line_that_is_too_long_stays(void **state)
{
    fixture *f = begin_with(state, "0123456789abcdefg\nnext\n");
    for (int i = 0; i < 2; i++)
        assert_int_equal(run(f, begin_line(f)), -EMSGSIZE);
    assert_int_equal(run(f, bide_reader_read_exact(&f->read, &f->reader, f->mine, 18)), 0);
    assert_memory_equal(f->mine, "0123456789abcdefg\n", 18);
    assert_int_equal(run(f, begin_line(f)), 0);
    assert_memory_equal(f->read.data, "next", 4);
    end_fixture(f);
}

/* With its end it fits exactly. */
static void a_line_as_long_as_the_buffer_is_read(void **state)
{
    fixture *f = begin_with(state, "ab\n0123456789abcde\nx");
    assert_int_equal(run(f, begin_line(f)), 0);
    assert_int_equal(run(f, begin_line(f)), 0);
    assert_int_equal(f->read.count, 15);
    assert_memory_equal(f->read.data, "0123456789abcde", 15);
    end_fixture(f);
}

static void an_early_end_is_reported_and_loses_nothing(void **state)
{
    fixture *f = begin_with(state, "abc");
    assert_int_equal(run(f, bide_reader_read_exact(&f->read, &f->reader, f->mine, 4)), -ENODATA);
    assert_int_equal(f->read.count, 0);
    assert_int_equal(run(f, begin_until(f)), -ENODATA);
    assert_int_equal(run(f, bide_reader_fill(&f->read, &f->reader, 4)), -ENODATA);
    assert_int_equal(run(f, bide_reader_fill(&f->read, &f->reader, BUFFER + 1)), -EMSGSIZE);
    assert_int_equal(run(f, bide_reader_read_exact(&f->read, &f->reader, f->mine, 3)), 0);
    assert_memory_equal(f->mine, "abc", 3);
    assert_int_equal(run(f, bide_reader_read_exact(&f->read, &f->reader, f->mine, 3)), -EPIPE);
    end_fixture(f);
}

bide_coroutine(never_told_body)
{
    bide_begin(never_told_body, struct actor * self);
    bide_await_status(self->status, self->awaiter);
    self->has_ended = true;
    bide_end();
}

static void start_never_told(fixture *f)
{
    bide_start(&f->subject.task.frame, &never_told_body, f->context);
    bide_resume(&f->subject.task.frame);
}

static void put_and_destroy(fixture *f)
{
    static const char text[] = "line\nrest\n";
    bide_memory_operation *put = &f->feeding.memory;
    /* the reader's wait has ended, and it is posted; then the coroutine is destroyed */
    assert_true(bide_awaiter_had(bide_stream_write(&f->feeding, f->output, text, 10)));
    assert_int_equal(put->count, 10);
    bide_destroy(&f->subject.task.frame);
}

static void data_of_a_destroyed_receiver_goes_to_the_next(void **state)
{
    fixture *f = begin_with(state, "");
    f->subject.has_ended = false;
    f->subject.awaiter = begin_line(f);
    call_inside(f, start_never_told);
    turn(f);
    call_inside(f, put_and_destroy);
    assert_false(f->subject.has_ended);
    assert_int_equal(run(f, begin_line(f)), 0);
    assert_int_equal(f->read.count, 4);
    assert_memory_equal(f->read.data, "line", 4);
    end_fixture(f);
}

/* Operations that were ready, and whose result nobody takes. */
static void a_returned_result_goes_to_the_next(void **state)
{
    fixture *f = begin_with(state, "0123456789\nabc\n");
    for (int past = 0; past < 2; past++) {
        bide_awaiter *begun[] = {
            bide_reader_read(&f->read, &f->reader, f->mine, past ? 64 : 3),
        };
        if (past) { /* nothing is buffered: the read bypasses the buffer */
            assert_int_equal(run(f, begun[0]), 0);
            begun[0] = &f->read.task.frame.awaiter;
        } else {
            bide_reader_operation fill;
            assert_int_equal(run(f, bide_reader_fill(&fill, &f->reader, 1)), 0);
            assert_true(bide_awaiter_had(begun[0]));
        }
        size_t count = f->read.count;
        assert_true(count != 0);
        bide_wrapper_release(&begun[0]);
        assert_int_equal(f->read.count, 0);
        bide_reader_operation again;
        assert_int_equal(run(f, bide_reader_read_exact(&again, &f->reader, f->mine + 32, count)),
                         0);
        assert_memory_equal(f->mine + 32, f->mine, count);
        if (!past) /* the rest of the buffer */
            assert_int_equal(
                run(f, bide_reader_skip(&again, &f->reader, bide_reader_buffered(&f->reader))), 0);
        if (!past) { /* a new text */
            bide_memory_pipe_init(&f->pipe, f->second_memory, MEMORY);
            f->reader.has_ended = false;
            assert_int_equal(
                run(f, bide_stream_write(&f->feeding, f->output, "ABCDEFGHIJKLMNOPQRST", 20)), 0);
        }
    }
    end_fixture(f);
}

/* A stop request does not deprive a coroutine of data that has arrived. */
static void buffered_data_is_delivered_after_a_stop_request(void **state)
{
    fixture *f = begin_with(state, "a\nb\nc");
    bide_reader_operation fill;
    assert_int_equal(run(f, bide_reader_fill(&fill, &f->reader, 5)), 0);
    bide_event_waiter wait;
    act(f, &f->subject, begin_line(f));
    bide_stop_request(&f->subject.stop);
    assert_int_equal(run(f, bide_event_wait(&wait, &f->subject.spawned.ended)), 0);
    assert_int_equal(f->subject.status, 0);
    end_fixture(f);
}

/* Small writes are gathered. A write that does not fit waits for the reader only. */
static void a_writer_waits_for_a_slow_reader(void **state)
{
    fixture *f = begin_with(state, "");
    for (int i = 0; i < BUFFER / 4; i++) {
        assert_int_equal(run(f, bide_writer_write(&f->write, &f->writer, "four", 4)), 0);
        assert_int_equal(bide_atomic_load(&f->pipe.written, relaxed), 0);
    }
    act(f, &f->subject,
        bide_writer_write(&f->write, &f->writer, "0123456789012345678901234567890123456789", 40));
    turn(f);
    assert_false(f->subject.has_ended);
    assert_int_equal(bide_atomic_load(&f->pipe.written, relaxed), MEMORY);
    assert_int_equal(run(f, bide_stream_read(&f->draining, f->input, f->mine, MEMORY)), 0);
    bide_event_waiter wait;
    while (!f->subject.has_ended)
        assert_int_equal(run(f, bide_stream_read(&f->draining, f->input, f->mine, 8)), 0), turn(f);
    assert_int_equal(run(f, bide_event_wait(&wait, &f->subject.spawned.ended)), 0);
    assert_int_equal(f->subject.status, 0);
    assert_int_equal(f->write.count, 40);
    end_fixture(f);
}

static void writing_without_a_reader_is_an_error(void **state)
{
    fixture *f = begin_with(state, "");
    assert_int_equal(bide_stream_close(f->input), 0);
    assert_int_equal(run(f, bide_writer_write(&f->write, &f->writer, "four", 4)), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(run(f, bide_writer_flush(&f->write, &f->writer)), -EPIPE);
    assert_int_equal(bide_writer_buffered(&f->writer), 4);
    assert_int_equal(run(f, begin_line(f)), -EPIPE);
    end_fixture(f);
}

/* Rejecting input wakes the writer that waits for room, and the reader that waits for bytes. */
static void closing_wakes_waiters(void **state)
{
    for (int reads = 0; reads < 2; reads++) {
        bide_event_waiter wait;
        fixture *f = begin_with(state, "");
        if (reads)
            act(f, &f->subject, begin_line(f));
        else
            act(f, &f->subject, bide_stream_write(&f->feeding, f->output, f->mine, MEMORY + 1));
        turn(f);
        assert_false(f->subject.has_ended);
        assert_int_equal(bide_stream_close(f->input), 0);
        assert_int_equal(run(f, bide_event_wait(&wait, &f->subject.spawned.ended)), 0);
        assert_int_equal(f->subject.status, -EPIPE);
        end_fixture(f);
    }
}

/* A stream that delivers five bytes and then fails. */
static bide_awaiter *read_and_break(bide_stream stream, bide_stream_operation *operation,
                                    void *data, size_t size)
{
    int *reads = stream.object;
    assert_in_range(size, 5, BUFFER);
    if (++*reads == 1)
        memcpy(data, "01234", 5);
    return bide_stream_ended(operation, -ECONNRESET);
}

static size_t five;
static size_t count_five(const bide_stream_operation *operation)
{
    (void)operation;
    return five;
}

static void data_before_an_error_goes_to_the_next(void **state)
{
    static const bide_stream_table table = {
        .name = "breaks", .read = read_and_break, .count = count_five};
    for (int past = 0; past < 2; past++) {
        int reads = 0;
        bide_stream stream = {&table, &reads};
        fixture *f = begin_with(state, "");
        bide_reader_init(&f->reader, stream, f->in, BUFFER);
        five = 5;
        assert_int_equal(run(f, bide_reader_read(&f->read, &f->reader, f->mine, past ? 64 : 8)),
                         -ECONNRESET);
        assert_int_equal(f->read.count, 0);
        five = 0;
        assert_int_equal(run(f, bide_reader_read(&f->read, &f->reader, f->mine, 64)), 0);
        assert_int_equal(f->read.count, 5);
        assert_memory_equal(f->mine, "01234", 5);
        assert_int_equal(run(f, bide_reader_read(&f->read, &f->reader, f->mine, 64)), -ECONNRESET);
        end_fixture(f);
    }
}

/* The ends of a pipe in memory on two threads, neither of which has a loop. */
struct half {
    bide_task task;
    fixture *fixture;
    size_t done;
};

bide_coroutine(writing_body)
{
    bide_begin(writing_body, struct half * self);
    while (self->done < TEXT) {
        self->fixture->asked = self->done % 61 + 1;
        if (self->fixture->asked > TEXT - self->done)
            self->fixture->asked = TEXT - self->done;
        bide_try(bide_writer_write(&self->fixture->write, &self->fixture->writer,
                                   self->fixture->text + self->done, self->fixture->asked));
        self->done += self->fixture->write.count;
    }
    bide_try(bide_writer_finish(&self->fixture->write, &self->fixture->writer));
    bide_end();
}

bide_coroutine(reading_body)
{
    bide_begin(reading_body, struct half * self);
    for (;;) {
        bide_try_or_break(bide_reader_read(&self->fixture->read, &self->fixture->reader,
                                           self->fixture->mine, self->done % 50 + 1));
        assert_memory_equal(self->fixture->mine, self->fixture->text + self->done,
                            self->fixture->read.count);
        self->done += self->fixture->read.count;
    }
    bide_end();
}

static void *write_elsewhere(void *argument)
{
    struct half half = {.fixture = argument};
    assert_int_equal(bide_sync_wait(bide_task_init(&half.task, &writing_body)), 0);
    return NULL;
}

static void a_pipe_in_memory_joins_two_threads(void **state)
{
    pthread_t thread;
    fixture *f = begin_with(state, "");
    draw_text(f, TEXT);
    assert_int_equal(pthread_create(&thread, NULL, write_elsewhere, f), 0);
    struct half half = {.fixture = f};
    assert_int_equal(bide_sync_wait(bide_task_init(&half.task, &reading_body)), 0);
    pthread_join(thread, NULL);
    assert_int_equal(half.done, TEXT);
    end_fixture(f);
}

/* Both use the inline scheduler: a waiter resumes on the thread of the other end. */
static void a_pipe_in_memory_needs_no_loop(void **state)
{
    fixture *f = begin_with(state, "");
    draw_text(f, TEXT);
    struct half writing = {.fixture = f}, reading = {.fixture = f};
    bide_spawned spawned[2];
    bide_spawn(&spawned[0], &bide_default_context, bide_task_init(&writing.task, &writing_body));
    assert_in_range(writing.done, 1, TEXT - 1);
    bide_spawn(&spawned[1], &bide_default_context, bide_task_init(&reading.task, &reading_body));
    assert_int_equal(writing.done, TEXT);
    assert_int_equal(reading.done, TEXT);
    assert_true(bide_event_is_set(&spawned[0].ended) && bide_event_is_set(&spawned[1].ended));
    end_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(each_operation_of_each_stream_by_each_end),
        world_test(the_last_line_needs_no_end),
        world_test(a_line_that_is_too_long_stays),
        world_test(a_line_as_long_as_the_buffer_is_read),
        world_test(an_early_end_is_reported_and_loses_nothing),
        world_test(data_of_a_destroyed_receiver_goes_to_the_next),
        world_test(a_returned_result_goes_to_the_next),
        world_test(buffered_data_is_delivered_after_a_stop_request),
        world_test(a_writer_waits_for_a_slow_reader),
        world_test(writing_without_a_reader_is_an_error),
        world_test(closing_wakes_waiters),
        world_test(data_before_an_error_goes_to_the_next),
        world_test(a_pipe_in_memory_joins_two_threads),
        world_test(a_pipe_in_memory_needs_no_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
