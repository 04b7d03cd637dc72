/*
 * Moving bytes inside the kernel. Each byte is accounted for once, no matter how the operation
 * ends.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    world *world;
    bide_descriptor one, one_end, other, other_end; /* two pairs of sockets */
    bide_descriptor input, output;                  /* a pipe */
    bide_descriptor tap_input, tap_output;          /* another */
    bide_descriptor dead; /* a connection whose peer is gone; or closed */
    bide_splice_operation splice;
    bide_between copy;
    struct runner runner;
};

static struct fixture *set_up(void **state)
{
    static struct fixture only;
    bide_io_operation operation;
    only.world = world_of(state);
    assert_int_equal(world_wait(only.world, bide_socket_pair(&operation, &only.one_end, &only.one)),
                     0);
    assert_int_equal(
        world_wait(only.world, bide_socket_pair(&operation, &only.other, &only.other_end)), 0);
    world_pipe(only.world, &only.input, &only.output);
    world_pipe(only.world, &only.tap_input, &only.tap_output);
    bide_descriptor_init_closed(&only.dead);
    return &only;
}

static void close_all(void *fixture)
{
    struct fixture *f = fixture;
    bide_descriptor *all[] = {&f->one,   &f->one_end, &f->other,     &f->other_end,
                              &f->input, &f->output,  &f->tap_input, &f->tap_output, &f->dead};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        bide_close(all[i]);
}

static void tear_down(struct fixture *f)
{
    call_inside(f->world, close_all, f);
}

/* Returns the number of bytes; 0: the end. */
static ptrdiff_t read_pipe(world *world, bide_descriptor *pipe, void *data, size_t size)
{
    bide_file_operation operation;
    int status = world_wait(world, bide_read(&operation, pipe, data, size));
    return status < 0 ? status : (ptrdiff_t)operation.operation.count;
}

static void write_pipe(world *world, bide_descriptor *pipe, const void *data, size_t size)
{
    bide_file_operation operation;
    assert_int_equal(world_wait(world, bide_write(&operation, pipe, data, size)), 0);
}

/* Sends as many bytes as fit; 0: none. */
static ptrdiff_t send_now(world *world, bide_descriptor *socket, const void *data, size_t size)
{
    bide_io_operation operation;
    bide_with_deadline_operation limited;
    int status = world_wait(world, bide_with_deadline(&limited, world_now(world) + 100000,
                                                      bide_send(&operation, socket, data, size)));
    assert_true(status == 0 || status == -ETIMEDOUT);
    return (ptrdiff_t)operation.count;
}

static void bytes_are_moved_by_way_of_a_pipe(void **state)
{
    struct fixture *f = set_up(state);
    world *w = f->world;
    char buffer[8];
    begin(w, &f->runner, bide_splice(&f->splice, &f->one, &f->output, 100));
    turn(w);
    assert_false(f->runner.has_ended);
    world_send(w, &f->one_end, "hello", 5);
    assert_int_equal(end(w, &f->runner), 0);
    assert_int_equal(f->splice.count, 5);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->input, &f->other, 3)), 0);
    assert_int_equal(f->splice.count, 3);
    assert_int_equal(world_receive(w, &f->other_end, buffer, 8), 3);
    assert_memory_equal(buffer, "hel", 3);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->one, &f->other, 3)), -EINVAL);
    bide_close(&f->other_end);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->input, &f->other, 3)), -EPIPE);
    assert_int_equal(f->splice.count, 0);
    bide_close(&f->one_end);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->one, &f->output, 3)), 0);
    assert_int_equal(f->splice.count, 0);
    bide_close(&f->one);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->one, &f->output, 3)), -EBADF);
    tear_down(f);
}

static atomic_int pipe_signals;

static void count_pipe_signal(int number)
{
    (void)number;
    atomic_fetch_add(&pipe_signals, 1);
}

/* A connection that does not know that its peer is closed. */
static void connect_to_nobody(bide_descriptor *dead)
{
    const int room = 4 << 20;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, size), 0);
    int end = accept(listener, NULL, NULL);
    assert_true(end >= 0);
    close(end);
    close(listener);
    bide_descriptor_init(dead, client);
}

/*
 * The kernel passes sixteen buffers of a pipe at a time to a socket. The closed peer answers the first of
 * them with a reset, which the next ones detect: the splice has moved some bytes and still raises the
 * signal.
 */
static void a_splice_that_has_moved_some_leaves_no_signal(void **state)
{
    static const char much[1 << 20];
    struct fixture *f = set_up(state);
    if (f->world->memory != NULL) { /* there are no signals in memory */
        tear_down(f);
        return;
    }
    struct sigaction count = {.sa_handler = count_pipe_signal}, before;
    assert_int_equal(sigaction(SIGPIPE, &count, &before), 0);
    connect_to_nobody(&f->dead);
    assert_true(fcntl(bide_descriptor_fd(&f->output), F_SETPIPE_SZ, sizeof much) >=
                (int)sizeof much);
    write_pipe(f->world, &f->output, much, sizeof much);
    assert_int_equal(
        world_wait(f->world, bide_splice(&f->splice, &f->input, &f->dead, sizeof much)), 0);
    assert_in_range(f->splice.count, 1, sizeof much - 1);
    assert_int_equal(atomic_load(&pipe_signals), 0);
    assert_int_equal(
        world_wait(f->world, bide_splice(&f->splice, &f->input, &f->dead, sizeof much)), -EPIPE);
    assert_int_equal(atomic_load(&pipe_signals), 0);
    sigaction(SIGPIPE, &before, NULL);
    tear_down(f);
}

static void a_splice_that_ends_early_has_moved_nothing(void **state)
{
    for (int how = 0; how < WAYS; how++) {
        struct fixture *f = set_up(state);
        begin_by(f->world, &f->runner, bide_splice(&f->splice, &f->one, &f->output, 100), how);
        turn(f->world);
        end_by(f->world, &f->runner, &f->one, how);
        assert_int_equal(f->splice.count, 0);
        if (how != CLOSE) {
            world_send(f->world, &f->one_end, "hello", 5);
            assert_int_equal(world_wait(f->world, bide_splice(&f->splice, &f->one, &f->output, 9)),
                             0);
            assert_int_equal(f->splice.count, 5);
        }
        tear_down(f);
    }
}

/* The peer does not read. No more is taken than fits, and the place of each byte is reported. */
static void a_copy_that_ends_early_loses_nothing(void **state)
{
    enum { LARGE = 8 << 20 };
    static char data[65536];
    for (int how = 0; how < WAYS; how++) {
        struct fixture *f = set_up(state);
        size_t sent = 0, got = 0;
        ptrdiff_t count;
        assert_int_equal(bide_copy_between_init(&f->copy, &f->one, &f->other), 0);
        begin_by(f->world, &f->runner, bide_copy_between(&f->copy), how);
        for (int quiet = 0; quiet < 3 && sent < LARGE;) {
            for (size_t i = 0; i < sizeof data; i++)
                data[i] = (char)((sent + i) % 251);
            count = send_now(f->world, &f->one_end, data, sizeof data);
            quiet = count > 0 ? 0 : quiet + 1;
            sent += count > 0 ? (size_t)count : 0;
            if (how == TIME_OUT && quiet == 0 && sent > sizeof data)
                break;
            turn(f->world);
            if (f->runner.has_ended)
                break;
        }
        assert_true(sent < LARGE);
        end_by(f->world, &f->runner, &f->other, how);
        if (how != CLOSE) { /* it continues */
            start(f->world, &f->runner, bide_copy_between(&f->copy));
            call_inside(f->world, close_it, &f->one_end);
        }
        size_t all = how == CLOSE ? (size_t)f->copy.count : sent;
        while (got < all) {
            count = world_receive_now(f->world, &f->other_end, data, sizeof data);
            if (count < 0) {
                turn(f->world);
                continue;
            }
            for (ptrdiff_t i = 0; i < count; i++)
                assert_int_equal(data[i], (char)((got + (size_t)i) % 251));
            got += (size_t)count;
        }
        if (how == CLOSE) { /* the rest is in the pipe */
            while (f->copy.held != got - f->copy.count &&
                   (count = read_pipe(f->world, &f->copy.input, data, sizeof data)) > 0) {
                assert_int_equal(data[0], (char)(got % 251));
                got += (size_t)count;
            }
            assert_int_equal(got, f->copy.count + f->copy.held);
        } else {
            while (!f->runner.has_ended)
                turn(f->world);
            assert_int_equal(f->runner.status, 0);
            assert_int_equal(f->copy.count, sent);
            assert_int_equal(f->copy.held, 0);
        }
        bide_copy_between_destroy(&f->copy);
        bide_copy_between_destroy(&f->copy);
        tear_down(f);
    }
}

/* ---- Tees ---- */

static void a_tee_leaves_the_bytes_in_the_pipe(void **state)
{
    struct fixture *f = set_up(state);
    world *w = f->world;
    char buffer[8];
    begin(w, &f->runner, bide_tee(&f->splice, &f->input, &f->tap_output, 4));
    turn(w);
    assert_false(f->runner.has_ended);
    write_pipe(w, &f->output, "hello", 5);
    assert_int_equal(end(w, &f->runner), 0);
    assert_int_equal(f->splice.count, 4);
    assert_int_equal(read_pipe(w, &f->tap_input, buffer, 8), 4);
    assert_memory_equal(buffer, "hell", 4);
    assert_int_equal(read_pipe(w, &f->input, buffer, 8), 5);
    assert_memory_equal(buffer, "hello", 5);
    bide_close(&f->output);
    assert_int_equal(world_wait(w, bide_tee(&f->splice, &f->input, &f->tap_output, 4)), 0);
    assert_int_equal(f->splice.count, 0);
    tear_down(f);
}

static void a_tee_is_between_two_pipes(void **state)
{
    struct fixture *f = set_up(state);
    world *w = f->world;
    write_pipe(w, &f->output, "hello", 5);
    world_send(w, &f->one_end, "hello", 5);
    assert_int_equal(world_wait(w, bide_tee(&f->splice, &f->one, &f->output, 9)), -EINVAL);
    assert_int_equal(world_wait(w, bide_tee(&f->splice, &f->input, &f->other, 9)), -EINVAL);
    assert_int_equal(world_wait(w, bide_tee(&f->splice, &f->input, &f->output, 9)), -EINVAL);
    assert_int_equal(world_wait(w, bide_splice(&f->splice, &f->input, &f->output, 9)), -EINVAL);
    bide_close(&f->tap_input);
    assert_int_equal(world_wait(w, bide_tee(&f->splice, &f->input, &f->tap_output, 9)), -EPIPE);
    assert_int_equal(f->splice.count, 0);
    bide_close(&f->tap_output);
    assert_int_equal(world_wait(w, bide_tee(&f->splice, &f->input, &f->tap_output, 9)), -EBADF);
    tear_down(f);
}

/* It waits for bytes, or for room. */
static void a_tee_that_ends_early_has_copied_nothing(void **state)
{
    static char much[1 << 16];
    for (int how = 0; how < 2 * WAYS; how++) {
        struct fixture *f = set_up(state);
        world *w = f->world;
        bool is_full = how >= WAYS;
        if (is_full) {
            write_pipe(w, &f->tap_output, much, sizeof much);
            write_pipe(w, &f->output, "hello", 5);
        }
        begin_by(w, &f->runner, bide_tee(&f->splice, &f->input, &f->tap_output, 100), how % WAYS);
        turn(w);
        end_by(w, &f->runner, is_full ? &f->tap_output : &f->input, how % WAYS);
        assert_int_equal(f->splice.count, 0);
        if (how % WAYS != CLOSE) {
            size_t left = is_full ? sizeof much : 0;
            if (!is_full)
                write_pipe(w, &f->output, "hello", 5);
            while (left != 0)
                left -= (size_t)read_pipe(w, &f->tap_input, much, left);
            assert_int_equal(world_wait(w, bide_tee(&f->splice, &f->input, &f->tap_output, 9)), 0);
            assert_int_equal(f->splice.count, 5);
        }
        tear_down(f);
    }
}

/* From one socket through a pipe to another, with a copy of everything to a second pipe. */
struct tap {
    bide_task task;
    struct fixture *f;
    bide_splice_operation splice;
    size_t held;   /* in the pipe, not copied yet */
    size_t copied; /* in the pipe, to be forwarded */
    bide_spawned spawned;
};

bide_coroutine(tap_body)
{
    bide_begin(tap_body, struct tap * self);
    for (;;) {
        bide_try(bide_splice(&self->splice, &self->f->one, &self->f->output, 30000));
        self->held = self->splice.count;
        if (self->held == 0)
            break;
        while (self->held != 0) {
            bide_try(bide_tee(&self->splice, &self->f->input, &self->f->tap_output, self->held));
            self->copied = self->splice.count;
            self->held -= self->copied;
            while (self->copied != 0) {
                bide_try(
                    bide_splice(&self->splice, &self->f->input, &self->f->other, self->copied));
                self->copied -= self->splice.count;
            }
        }
    }
    bide_finally();
    bide_close(&self->f->other);
    bide_close(&self->f->tap_output);
    bide_end();
}

enum { MUCH = 1 << 20 };

static char byte_of(size_t place)
{
    return (char)(place % 251 + place / 65536);
}

struct source {
    bide_task task;
    bide_descriptor *to;
    bide_io_operation operation;
    char data[MUCH];
    bide_spawned spawned;
};

bide_coroutine(source_body)
{
    bide_begin(source_body, struct source * self);
    for (size_t i = 0; i < MUCH; i++)
        self->data[i] = byte_of(i);
    bide_try(bide_send(&self->operation, self->to, self->data, MUCH));
    bide_finally();
    bide_close(self->to);
    bide_end();
}

/* Receives everything, in pieces of a different size each time. */
struct sink {
    bide_task task;
    bide_descriptor *from;
    bide_file_operation operation;
    size_t count;
    size_t wrong;
    char data[40000];
    bide_spawned spawned;
};

bide_coroutine(sink_body)
{
    bide_begin(sink_body, struct sink * self);
    for (;;) {
        bide_try(bide_read(&self->operation, self->from, self->data,
                           1 + (self->count * 7 + 1000) % sizeof self->data));
        if (self->operation.operation.count == 0)
            break;
        for (size_t i = 0; i < self->operation.operation.count; i++)
            self->wrong += self->data[i] != byte_of(self->count++);
    }
    bide_end();
}

static void a_stream_is_copied_and_forwarded(void **state)
{
    static struct source source;
    static struct sink sinks[2];
    static struct tap tap;
    for (uint32_t round = 0; round < rounds_of(8); round++) {
        struct fixture *f = set_up(state);
        bide_spawned *all[] = {&tap.spawned, &source.spawned, &sinks[0].spawned, &sinks[1].spawned};
        world_roughen(f->world, round);
        tap.f = f;
        source.to = &f->one_end;
        sinks[0].from = &f->other_end;
        sinks[1].from = &f->tap_input;
        bide_spawn(&tap.spawned, f->world->context, bide_task_init(&tap.task, &tap_body));
        bide_spawn(&source.spawned, f->world->context, bide_task_init(&source.task, &source_body));
        for (int i = 0; i < 2; i++) {
            sinks[i].count = sinks[i].wrong = 0;
            bide_spawn(&sinks[i].spawned, f->world->context,
                       bide_task_init(&sinks[i].task, &sink_body));
        }
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            bide_event_waiter wait;
            assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &all[i]->ended)), 0);
            assert_int_equal(all[i]->root.status, 0);
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(sinks[i].count, MUCH);
            assert_int_equal(sinks[i].wrong, 0);
        }
        tear_down(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(bytes_are_moved_by_way_of_a_pipe),
        world_test(a_splice_that_has_moved_some_leaves_no_signal),
        world_test(a_splice_that_ends_early_has_moved_nothing),
        world_test(a_copy_that_ends_early_loses_nothing),
        world_test(a_tee_leaves_the_bytes_in_the_pipe),
        world_test(a_tee_is_between_two_pipes),
        world_test(a_tee_that_ends_early_has_copied_nothing),
        world_test(a_stream_is_copied_and_forwarded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
