/*
 * Operations on sockets, each with each of its ends: completed, cancelled (on the loop, from outside, by
 * another thread, before its start), timed out, closed, destroyed. After each end nothing is in flight, no
 * descriptor is left, and data that was not taken is available to the next operation.
 */
#define _GNU_SOURCE
#include "world.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 8 << 20 };

/* More than fits into a socket. (It is filled once: a sanitizer checks each written byte.) */
static char large[LARGE];

typedef struct fixture {
    world *world;
    bide_descriptor listener, one, other, third;
    bide_address address;
    bide_io_operation operation, helper;
    bide_datagram datagram;
    struct msghdr message;
    struct iovec bytes;
    char buffer[64];

    /* the waiting coroutine */
    struct runner {
        bide_task task;
        bide_awaiter *awaiter;
        bide_sleep pause;
        int status;
        bool has_ended;
    } runner;
    bide_stop_source stop;
    bide_context context;
    bide_spawned spawned;
    bide_with_deadline_operation limited;
    bool knew; /* it had ended when it was destroyed */
} fixture;

/* ---- The waiter, and calls on the loop ---- */

bide_coroutine(runner_body)
{
    bide_begin(runner_body, struct runner * self);
    bide_await_status(self->status, self->awaiter);
    self->has_ended = true;
    bide_end();
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

/* Calls a function in a coroutine on the loop. */
static void call_inside(fixture *f, void (*function)(fixture *))
{
    struct caller caller = {.function = function, .fixture = f};
    assert_int_equal(world_wait(f->world, bide_task_init(&caller.task, &caller_body)), 0);
}

/* Runs everything that is ready or has completed. */
static void turn(fixture *f)
{
    bide_sleep sleep;
    assert_int_equal(world_wait(f->world, bide_sleep_for(&sleep, 1000000)), 0);
}

static void begin_waiting(fixture *f, bide_awaiter *awaiter, bool limited)
{
    f->runner.has_ended = false;
    f->runner.awaiter =
        limited ? bide_with_deadline(&f->limited, world_now(f->world) + 2000000, awaiter) : awaiter;
    bide_stop_source_init(&f->stop);
    f->context = *f->world->context;
    f->context.stop = &f->stop;
    bide_spawn(&f->spawned, &f->context, bide_task_init(&f->runner.task, &runner_body));
}

static int wait_for_end(fixture *f)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &f->spawned.ended)), 0);
    return f->runner.status;
}

/* ---- The operations ---- */

typedef struct subject {
    const char *name;
    void (*open)(fixture *);
    bide_awaiter *(*begin)(fixture *);
    void (*complete)(fixture *); /* completes it */
    void (*check)(fixture *);    /* it ended with 0 */
} subject;

static void open_pair(fixture *f)
{
    assert_int_equal(world_wait(f->world, bide_socket_pair(&f->helper, &f->one, &f->other)), 0);
}

static void listen_on(fixture *f, bide_descriptor *listener)
{
    assert_int_equal(bide_address_ip(&f->address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f->world, bide_listen(&f->helper, listener, &f->address, 16)), 0);
    assert_int_equal(bide_local_address(listener, &f->address), 0);
}

static void open_listener(fixture *f)
{
    listen_on(f, &f->one);
}

static void open_tcp(fixture *f)
{
    listen_on(f, &f->listener);
    assert_int_equal(world_wait(f->world, bide_connect(&f->helper, &f->other, &f->address)), 0);
    assert_int_equal(world_wait(f->world, bide_accept(&f->helper, &f->listener, &f->one, NULL)), 0);
}

static void open_datagrams(fixture *f)
{
    assert_int_equal(bide_address_ip(&f->address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f->world, bide_bind(&f->helper, &f->one, &f->address, 0)), 0);
    assert_int_equal(world_wait(f->world, bide_bind(&f->helper, &f->other, &f->address, 0)), 0);
    assert_int_equal(bide_local_address(&f->one, &f->address), 0);
}

static bide_awaiter *begin_receive(fixture *f)
{
    return bide_recv(&f->operation, &f->one, f->buffer, sizeof f->buffer);
}

static void send_five(fixture *f)
{
    assert_int_equal(world_wait(f->world, bide_send(&f->helper, &f->other, "hello", 5)), 0);
    assert_int_equal(f->helper.count, 5);
}

static void check_five(fixture *f)
{
    assert_int_equal(f->operation.count, 5);
    assert_memory_equal(f->buffer, "hello", 5);
}

static bide_awaiter *begin_send(fixture *f)
{
    return bide_send(&f->operation, &f->one, large, LARGE);
}

/*
 * Reads until it has `max` bytes, or until the end; if everything was sent, until nothing is
 * left.
 */
static size_t drain(fixture *f, size_t max, bool is_sent)
{
    char *got = malloc(LARGE);
    size_t total = 0;
    while (total < max) {
        bide_with_deadline_operation limited;
        bide_awaiter *more = bide_recv(&f->helper, &f->other, got, LARGE);
        if (is_sent)
            more = bide_with_deadline(&limited, world_now(f->world) + 50000000, more);
        int status = world_wait(f->world, more);
        ptrdiff_t count = status == 0 ? (ptrdiff_t)f->helper.count : status;
        if (status == -ETIMEDOUT) /* our deadline has passed: check once more */
            count = world_receive_now(f->world, &f->other, got, LARGE);
        if (count <= 0)
            break;
        for (size_t i = 0; i < (size_t)count; i += 997)
            assert_int_equal((unsigned char)got[i], (total + i) % 251);
        total += (size_t)count;
    }
    free(got);
    return total;
}

static void drain_all(fixture *f)
{
    assert_int_equal(drain(f, LARGE, false), LARGE);
}

static void check_large(fixture *f)
{
    assert_int_equal(f->operation.count, LARGE);
}

static bide_awaiter *begin_accept(fixture *f)
{
    return bide_accept(&f->operation, &f->one, &f->third, &f->address);
}

static void connect_other(fixture *f)
{
    bide_address to;
    assert_int_equal(bide_local_address(&f->one, &to), 0);
    assert_int_equal(world_wait(f->world, bide_connect(&f->helper, &f->other, &to)), 0);
}

static void check_accepted(fixture *f)
{
    bide_address mine;
    char text[2][BIDE_ADDRESS_TEXT];
    assert_true(bide_descriptor_is_open(&f->third));
    assert_int_equal(bide_local_address(&f->other, &mine), 0);
    bide_address_print(&mine, text[0], sizeof text[0]);
    bide_address_print(&f->address, text[1], sizeof text[1]);
    assert_string_equal(text[0], text[1]);
}

static bide_awaiter *begin_message(fixture *f)
{
    f->bytes = (struct iovec){f->buffer, sizeof f->buffer};
    f->message = (struct msghdr){.msg_iov = &f->bytes, .msg_iovlen = 1};
    return bide_recvmsg(&f->operation, &f->one, &f->message, 0);
}

static bide_awaiter *begin_datagram(fixture *f)
{
    return bide_recv_from(&f->datagram, &f->one, f->buffer, sizeof f->buffer, NULL);
}

static void send_datagram(fixture *f)
{
    bide_datagram datagram;
    assert_int_equal(
        world_wait(f->world, bide_send_to(&datagram, &f->other, "hello", 5, &f->address)), 0);
}

static void check_datagram(fixture *f)
{
    assert_int_equal(f->datagram.operation.count, 5);
    assert_memory_equal(f->buffer, "hello", 5);
}

static const subject subjects[] = {
    {"recv, of a pair", open_pair, begin_receive, send_five, check_five},
    {"recv, of TCP", open_tcp, begin_receive, send_five, check_five},
    {"send more than fits, of a pair", open_pair, begin_send, drain_all, check_large},
    {"send more than fits, of TCP", open_tcp, begin_send, drain_all, check_large},
    {"accept", open_listener, begin_accept, connect_other, check_accepted},
    {"recvmsg", open_pair, begin_message, send_five, check_five},
    {"recv_from", open_datagrams, begin_datagram, send_datagram, check_datagram},
};

/* ---- The ends ---- */

static void request_stop(fixture *f)
{
    bide_stop_request(&f->stop);
}

static void *request_stop_elsewhere(void *argument)
{
    request_stop(argument);
    return NULL;
}

static void close_one(fixture *f)
{
    assert_int_equal(bide_close(&f->one), 0);
}

static void is_done(fixture *f, const subject *s)
{
    begin_waiting(f, s->begin(f), false);
    turn(f);
    assert_false(f->runner.has_ended);
    s->complete(f);
    assert_int_equal(wait_for_end(f), 0);
    s->check(f);
}

/* It ended early with `expected`; then the next operation gets all data. */
static void ended_early(fixture *f, const subject *s, int expected)
{
    assert_int_equal(wait_for_end(f), expected);
    if (s->begin == begin_send) {
        assert_in_range(f->operation.count, 1, LARGE - 1);
        assert_int_equal(drain(f, LARGE, true), f->operation.count);
        return;
    }
    assert_int_equal(f->operation.count, 0);
    is_done(f, s);
}

static void is_asked_on_the_loop(fixture *f, const subject *s)
{
    begin_waiting(f, s->begin(f), false);
    turn(f);
    call_inside(f, request_stop);
    ended_early(f, s, -ECANCELED);
}

static void is_asked_from_outside(fixture *f, const subject *s)
{
    begin_waiting(f, s->begin(f), false);
    turn(f);
    request_stop(f);
    ended_early(f, s, -ECANCELED);
}

static void is_asked_by_a_thread(fixture *f, const subject *s)
{
    pthread_t thread;
    begin_waiting(f, s->begin(f), false);
    turn(f);
    assert_int_equal(pthread_create(&thread, NULL, request_stop_elsewhere, f), 0);
    int status = wait_for_end(f);
    pthread_join(thread, NULL);
    assert_int_equal(status, -ECANCELED);
    ended_early(f, s, -ECANCELED);
}

static void is_asked_before(fixture *f, const subject *s)
{
    begin_waiting(f, s->begin(f), false);
    request_stop(f);
    assert_int_equal(wait_for_end(f), -ECANCELED);
    is_done(f, s);
}

static void times_out(fixture *f, const subject *s)
{
    begin_waiting(f, s->begin(f), true);
    ended_early(f, s, -ETIMEDOUT);
}

static void is_closed(fixture *f, const subject *s)
{
    begin_waiting(f, s->begin(f), false);
    turn(f);
    call_inside(f, close_one);
    assert_int_equal(wait_for_end(f), -EPIPE);
    assert_false(bide_descriptor_is_open(&f->one));
    (void)s;
}

static void is_closed_from_outside(fixture *f, const subject *s)
{
    begin_waiting(f, s->begin(f), false);
    turn(f);
    close_one(f);
    assert_int_equal(wait_for_end(f), -EPIPE);
    (void)s;
}

static void start_runner(fixture *f)
{
    bide_start(&f->runner.task.frame, &runner_body, f->world->context);
    bide_resume(&f->runner.task.frame);
}

static void destroy_runner(fixture *f)
{
    f->knew = f->runner.has_ended;
    bide_destroy(&f->runner.task.frame);
}

static void is_destroyed(fixture *f, const subject *s)
{
    f->runner.has_ended = false;
    f->runner.awaiter = s->begin(f);
    call_inside(f, start_runner);
    turn(f);
    assert_false(f->runner.has_ended);
    call_inside(f, destroy_runner);
    assert_false(f->runner.has_ended);
    if (s->begin != begin_send)
        is_done(f, s);
}

/* It has completed, and the coroutine is destroyed before it resumes. */
static void is_destroyed_after_it_was_done(fixture *f, const subject *s)
{
    f->runner.has_ended = false;
    f->runner.awaiter = s->begin(f);
    call_inside(f, start_runner);
    turn(f);
    if (s->begin != begin_send)
        s->complete(f);
    call_inside(f, destroy_runner);
    assert_int_equal(bide_descriptor_is_open(&f->third), f->knew && s->begin == begin_accept);
}

static const struct end {
    const char *name;
    void (*run)(fixture *, const subject *);
} ends[] = {
    {"is done", is_done},
    {"is asked to stop on the loop", is_asked_on_the_loop},
    {"is asked to stop from outside", is_asked_from_outside},
    {"is asked to stop by another thread", is_asked_by_a_thread},
    {"is asked to stop before", is_asked_before},
    {"times out", times_out},
    {"is closed", is_closed},
    {"is closed from outside", is_closed_from_outside},
    {"is destroyed", is_destroyed},
    {"is destroyed after it was done", is_destroyed_after_it_was_done},
};

/* ---- Fixtures ---- */

static fixture *begin_fixture(world *world)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = world;
    bide_descriptor_init_closed(&f->listener);
    bide_descriptor_init_closed(&f->one);
    bide_descriptor_init_closed(&f->other);
    bide_descriptor_init_closed(&f->third);
    return f;
}

static void end_fixture(fixture *f)
{
    bide_close(&f->listener);
    bide_close(&f->one);
    bide_close(&f->other);
    bide_close(&f->third);
    turn(f);
    free(f);
}

static void each_operation_by_each_end(void **state)
{
    world *world = world_of(state);
    for (size_t s = 0; s < sizeof subjects / sizeof *subjects; s++) {
        for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
            if (world_is("memory") && ends[e].run == is_asked_by_a_thread)
                continue; /* (a test loop has one thread) */
            if (world_is("pool") && ends[e].run == is_asked_before)
                continue; /* (its worker may have started) */
            printf("# %s: %s\n", subjects[s].name, ends[e].name);
            fixture *f = begin_fixture(world);
            int before = count_descriptors();
            subjects[s].open(f);
            ends[e].run(f, &subjects[s]);
            end_fixture(f);
            assert_in_range(count_descriptors(), 0, before);
        }
    }
}

static void an_end_is_a_count_of_zero(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    open_tcp(f);
    send_five(f);
    assert_int_equal(bide_shutdown(&f->other, BIDE_HALF_OUTPUT), 0);
    assert_int_equal(world_wait(f->world, begin_receive(f)), 0);
    check_five(f);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_wait(f->world, begin_receive(f)), 0);
        assert_int_equal(f->operation.count, 0);
    }
    /* the other half keeps working */
    assert_int_equal(world_wait(f->world, bide_send(&f->helper, &f->one, "hello", 5)), 0);
    assert_int_equal(world_wait(f->world, bide_recv(&f->helper, &f->other, f->buffer, 64)), 0);
    assert_int_equal(f->helper.count, 5);
    end_fixture(f);
}

static void sending_to_a_closed_end_is_an_error(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    int status = 0;
    open_pair(f);
    bide_close(&f->other);
    for (int i = 0; i < 3 && status == 0; i++)
        status = world_wait(f->world, bide_send(&f->operation, &f->one, "hello", 5));
    assert_int_equal(status, -EPIPE);
    end_fixture(f);
}

static void a_connection_is_refused(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    open_listener(f);
    bide_close(&f->one);
    assert_int_equal(world_wait(f->world, bide_connect(&f->helper, &f->other, &f->address)),
                     -ECONNREFUSED);
    assert_false(bide_descriptor_is_open(&f->other));
    end_fixture(f);
}

static void a_closed_descriptor_is_an_error(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    assert_int_equal(world_wait(f->world, begin_receive(f)), -EBADF);
    assert_int_equal(bide_close(&f->one), -EBADF);
    end_fixture(f);
}

/* Ten waiters on one descriptor are served in order. */
static void waiters_are_served_in_order(void **state)
{
    enum { MANY = 10 };
    fixture *f = begin_fixture(world_of(state));
    static struct runner runners[MANY];
    static bide_spawned spawned[MANY];
    static bide_io_operation operations[MANY];
    static char bytes[MANY];
    bide_event_waiter wait;
    open_pair(f);
    for (int i = 0; i < MANY; i++) {
        runners[i].awaiter = bide_recv(&operations[i], &f->one, &bytes[i], 1);
        bide_spawn(&spawned[i], f->world->context, bide_task_init(&runners[i].task, &runner_body));
    }
    turn(f);
    assert_int_equal(world_wait(f->world, bide_send(&f->helper, &f->other, "0123456789", MANY)), 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &spawned[i].ended)), 0);
        assert_int_equal(runners[i].status, 0);
        assert_int_equal(operations[i].count, 1);
        assert_int_equal(bytes[i], '0' + i);
    }
    end_fixture(f);
}

static void both_directions_work_at_once(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    open_tcp(f);
    begin_waiting(f, begin_receive(f), false);
    turn(f);
    static struct runner sender;
    static bide_spawned spawned;
    static bide_io_operation send;
    bide_event_waiter wait;
    sender.awaiter = bide_send(&send, &f->one, large, LARGE);
    bide_spawn(&spawned, f->world->context, bide_task_init(&sender.task, &runner_body));
    turn(f);
    assert_false(f->runner.has_ended);
    send_five(f);
    assert_int_equal(wait_for_end(f), 0);
    check_five(f);
    drain_all(f);
    assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &spawned.ended)), 0);
    assert_int_equal(send.count, LARGE);
    end_fixture(f);
}

static void a_descriptor_is_passed_to_another(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    bide_descriptor input, output, passed;
    bide_file_operation file;
    int fd;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    open_pair(f);
    world_pipe(f->world, &input, &output);
    f->bytes = (struct iovec){"x", 1};
    f->message = (struct msghdr){.msg_iov = &f->bytes,
                                 .msg_iovlen = 1,
                                 .msg_control = control.bytes,
                                 .msg_controllen = sizeof control.bytes};
    memset(&control, 0, sizeof control);
    struct cmsghdr *header = CMSG_FIRSTHDR(&f->message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &(int){bide_descriptor_fd(&output)}, sizeof(int));
    assert_int_equal(world_wait(f->world, bide_sendmsg(&f->helper, &f->one, &f->message, 0)), 0);
    bide_close(&output);
    memset(&control, 0, sizeof control);
    f->bytes = (struct iovec){f->buffer, sizeof f->buffer};
    assert_int_equal(world_wait(f->world, bide_recvmsg(&f->helper, &f->other, &f->message, 0)), 0);
    assert_int_equal(f->helper.count, 1);
    header = CMSG_FIRSTHDR(&f->message);
    assert_non_null(header);
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    bide_descriptor_init(&passed, fd);
    assert_int_equal(world_wait(f->world, bide_write(&file, &passed, "y", 1)), 0);
    assert_int_equal(bide_close(&passed), 0);
    for (size_t expected = 1; expected <= 1; expected--) { /* the byte, and the end */
        assert_int_equal(world_wait(f->world, bide_read(&file, &input, f->buffer, 8)), 0);
        assert_int_equal(file.operation.count, expected);
    }
    bide_close(&input);
    end_fixture(f);
}

static void sockets_of_a_path(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    char name[40]; /* of this process: other back ends' tests run at the same time */
    snprintf(name, sizeof name, "@bide-sockets-%ld", (long)getpid());
    assert_int_equal(bide_address_unix(&f->address, name), 0);
    assert_int_equal(world_wait(f->world, bide_listen(&f->helper, &f->listener, &f->address, 4)),
                     0);
    assert_int_equal(world_wait(f->world, bide_connect(&f->helper, &f->other, &f->address)), 0);
    assert_int_equal(world_wait(f->world, bide_accept(&f->helper, &f->listener, &f->one, NULL)), 0);
    send_five(f);
    assert_int_equal(world_wait(f->world, begin_receive(f)), 0);
    check_five(f);
    end_fixture(f);
}

static void the_loop_reports_its_back_end(void **state)
{
    world *world = world_of_a_loop(world_of(state));
    if (world_is("memory")) {
        assert_string_equal(bide_memory_io_back_end(world->memory).name, "memory");
        return;
    }
    bide_loop_back_end back_end = bide_loop_backend(world->loop);
    if (!world_is("any"))
        assert_string_equal(back_end.name, world_is_by_readiness() ? world_name() : "uring");
    if (getenv("BIDE_TEST_REFUSED") != NULL) {
        assert_string_equal(back_end.name, BY_READINESS_NAME);
        assert_string_equal(back_end.why, "io_uring is not available");
        assert_int_equal(back_end.error, -atoi(getenv("BIDE_TEST_REFUSED")));
    }
    if (!world_is("any"))
        assert_string_equal(back_end.why, "the options select it");
}

/* The child of a fork cannot use the loop, and does not disturb its parent's. */
static void a_child_of_fork_is_rejected(void **state)
{
    fixture *f = begin_fixture(
        world_of_a_loop(world_of_the_system(state, "a child of fork has a loop of its own")));
    open_pair(f);
    begin_waiting(f, begin_receive(f), false);
    turn(f);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        bide_io_operation operation;
        int status =
            bide_loop_wait(f->world->loop, bide_socket_pair(&operation, &f->third, &f->listener));
        bide_loop_destroy(f->world->loop);
        _exit(status == -ENOTSUP && bide_close(&f->one) == 0 && bide_close(&f->other) == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    send_five(f);
    assert_int_equal(wait_for_end(f), 0);
    check_five(f);
    end_fixture(f);
}

int main(void)
{
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)(i % 251);
    const struct CMUnitTest tests[] = {
        world_test(each_operation_by_each_end),
        world_test(an_end_is_a_count_of_zero),
        world_test(sending_to_a_closed_end_is_an_error),
        world_test(a_connection_is_refused),
        world_test(a_closed_descriptor_is_an_error),
        world_test(waiters_are_served_in_order),
        world_test(both_directions_work_at_once),
        world_test(a_descriptor_is_passed_to_another),
        world_test(sockets_of_a_path),
        world_test(the_loop_reports_its_back_end),
        world_test(a_child_of_fork_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
