/* The back end over poll(): what it does differently, and its array of descriptors. */
#define _GNU_SOURCE
#include "runner.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>

static void it_says_what_it_does_worse(void **state)
{
    static const bide_loop_kind kinds[] = {BIDE_LOOP_EPOLL, BIDE_LOOP_POLL};
    static const char *const names[] = {"epoll", "poll"};
    static const unsigned limits[] = {0, BIDE_LOOP_LINEAR};
    (void)state;
    for (int i = !HAS_EPOLL; i < 2; i++) {
        for (int by_environment = 0; by_environment < 2; by_environment++) {
            const bide_loop_options options = {.kind = by_environment ? BIDE_LOOP_ANY : kinds[i]};
            bide_loop *loop;
            setenv("BIDE_IO", by_environment ? names[i] : "uring", 1);
            assert_int_equal(bide_loop_create(&loop, &options), 0);
            bide_loop_back_end back_end = bide_loop_backend(loop);
            bide_loop_destroy(loop);
            assert_string_equal(back_end.name, names[i]);
            assert_string_equal(back_end.why,
                                by_environment ? "BIDE_IO selects it" : "the options select it");
            assert_int_equal(back_end.error, 0);
            /* (Linux has ppoll, and may lack epoll_pwait2) */
            assert_int_equal(back_end.limits & ~(i == 0 ? (unsigned)BIDE_LOOP_MILLISECONDS : 0),
                             limits[i]);
        }
    }
    unsetenv("BIDE_IO");
}

/* A datagram socket whose error queue has an entry: poll reports it for ever. */
static int socket_with_an_error(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int on = 1;
    int closed = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(closed, (struct sockaddr *)&address, length), 0);
    assert_int_equal(getsockname(closed, (struct sockaddr *)&address, &length), 0);
    close(closed);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(send(fd, "x", 1, 0), 1);
    struct pollfd polled = {fd, POLLIN, 0};
    if (poll(&polled, 1, 10000) != 1) { /* no port is refused here */
        close(fd);
        return -1;
    }
    return fd;
}

/* It would never sleep otherwise: thousands of polls in a sleep of 50 ms. */
static void it_sleeps_beside_a_descriptor_that_is_ready_for_ever(void **state)
{
    enum { POLLS_MAX = 200 };
    world *w = world_of(state);
    static struct runner receiver;
    bide_io_operation operation;
    bide_descriptor receiving;
    bide_loop_stats before, after;
    bide_sleep sleep;
    char byte;
    int fd = socket_with_an_error();
    if (fd < 0) {
        printf("# no datagram is refused here\n");
        skip();
    }
    bide_descriptor_init(&receiving, fd);
    assert_int_equal(world_wait(w, bide_recv(&operation, &receiving, &byte, 1)), -ECONNREFUSED);
    begin(w, &receiver, bide_recv(&operation, &receiving, &byte, 1));
    turn(w);
    bide_loop_get_stats(w->loop, &before);
    assert_int_equal(world_wait(w, bide_sleep_for(&sleep, 50000000)), 0);
    bide_loop_get_stats(w->loop, &after);
    assert_false(receiver.has_ended);
    assert_in_range(after.polls - before.polls, 1, POLLS_MAX);
    /* a datagram is received nevertheless */
    struct sockaddr_in to;
    socklen_t length = sizeof to;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &length), 0);
    struct sockaddr_in from;
    length = sizeof from;
    assert_int_equal(getpeername(fd, (struct sockaddr *)&from, &length), 0);
    int peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bind(peer, (struct sockaddr *)&from, sizeof from) != 0) {
        assert_int_equal(errno, EADDRINUSE); /* another program has the port now */
        close(peer);
        assert_int_equal(bide_close(&receiving), 0);
        assert_int_equal(end(w, &receiver), -EPIPE);
        return;
    }
    assert_int_equal(sendto(peer, "y", 1, 0, (struct sockaddr *)&to, sizeof to), 1);
    assert_int_equal(end(w, &receiver), 0);
    assert_int_equal(byte, 'y');
    close(peer);
    assert_int_equal(bide_close(&receiving), 0);
}

/* Bytes that nobody asks for: a wait for room does not poll for them. */
static void it_asks_for_what_operations_wait_for(void **state)
{
    enum { POLLS_MAX = 10 }; /* (25, if the descriptor had to rest) */
    world *w = world_of(state);
    static struct runner runner;
    bide_io_operation operation;
    bide_descriptor one, other;
    bide_loop_stats before, after;
    bide_sleep sleep;
    char full[65536] = "";
    world_socket_pair(w, &one, &other);
    while (send(bide_descriptor_fd(&one), full, sizeof full, MSG_DONTWAIT) > 0)
        continue;
    assert_int_equal(send(bide_descriptor_fd(&other), "x", 1, 0), 1); /* nobody reads it */
    begin(w, &runner, bide_send(&operation, &one, full, sizeof full));
    turn(w);
    bide_loop_get_stats(w->loop, &before);
    assert_int_equal(world_wait(w, bide_sleep_for(&sleep, 100000000)), 0);
    bide_loop_get_stats(w->loop, &after);
    assert_false(runner.has_ended);
    assert_in_range(after.polls - before.polls, 1, POLLS_MAX);
    while (!runner.has_ended) {
        while (recv(bide_descriptor_fd(&other), full, sizeof full, MSG_DONTWAIT) > 0)
            continue;
        turn(w);
    }
    assert_int_equal(end(w, &runner), 0);
    assert_int_equal(bide_close(&one), 0);
    assert_int_equal(bide_close(&other), 0);
}

/* The next so many connections are taken by somebody else, between the poll and the call. */
static unsigned thefts;

int __real_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    int accepted = __real_accept4(fd, address, length, flags);
    if (accepted >= 0 && thefts != 0) {
        thefts--;
        close(accepted);
        errno = EAGAIN;
        return -1;
    }
    return accepted;
}

static int connect_to(const bide_descriptor *listener)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    assert_int_equal(
        getsockname(bide_descriptor_fd(listener), (struct sockaddr *)&address, &length), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, length), 0);
    return fd;
}

/* Whoever loses races for connections is there for the next one: its descriptor does not rest, but is in the next poll. */
static void a_listener_does_not_rest_because_others_take_its_connections(void **state)
{
    enum { RACES = 20, POLLS_MAX = 1 }; /* (2, if the descriptor had to rest) */
    world *w = world_of(state);
    static struct runner runner;
    bide_io_operation operation;
    bide_descriptor listener, accepted;
    bide_address address;
    bide_loop_stats before, after;
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(w, bide_listen(&operation, &listener, &address, 8)), 0);
    begin(w, &runner, bide_accept(&operation, &listener, &accepted, NULL));
    for (int i = 0; i < RACES; i++) {
        thefts = 1;
        int fd = connect_to(&listener);
        while (thefts != 0)
            turn(w);
        close(fd);
    }
    assert_false(runner.has_ended);
    int fd = connect_to(&listener);
    struct pollfd queue = {.fd = bide_descriptor_fd(&listener), .events = POLLIN};
    assert_int_equal(poll(&queue, 1, -1), 1);
    bide_loop_get_stats(w->loop, &before);
    assert_int_equal(end(w, &runner), 0);
    bide_loop_get_stats(w->loop, &after);
    assert_in_range(after.polls - before.polls, 1, POLLS_MAX);
    close(fd);
    assert_int_equal(bide_close(&accepted), 0);
    assert_int_equal(bide_close(&listener), 0);
}

/* epoll takes no regular file. poll does, and reports no urgent bytes of it, as the bare call. */
static void a_wait_for_urgent_bytes_of_a_file_waits(void **state)
{
    static const bide_loop_kind kinds[] = {BIDE_LOOP_EPOLL, BIDE_LOOP_POLL};
    (void)state;
    for (int i = !HAS_EPOLL; i < 2; i++) {
        static struct runner runner;
        const bide_loop_options options = {.kind = kinds[i]};
        world w = {.loop = NULL};
        bide_io_operation operation;
        bide_descriptor file;
        assert_int_equal(bide_loop_create(&w.loop, &options), 0);
        w.context = bide_loop_context(w.loop);
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        bide_descriptor_init(&file, fd);
        begin(&w, &runner, bide_poll(&operation, &file, POLLPRI));
        turn(&w);
        assert_int_equal(runner.has_ended, kinds[i] == BIDE_LOOP_EPOLL);
        bide_stop_request(&runner.stop);
        assert_int_equal(end(&w, &runner), kinds[i] == BIDE_LOOP_EPOLL ? -EPERM : -ECANCELED);
        assert_int_equal(bide_close(&file), 0);
        bide_loop_destroy(w.loop);
    }
}

enum { MANY = 40 };

typedef struct crowd {
    struct runner runners[MANY];
    bide_io_operation operations[MANY];
    bide_descriptor inputs[MANY], outputs[MANY];
    char bytes[MANY];
} crowd;

static crowd *begin_crowd(world *w)
{
    static crowd only;
    for (int i = 0; i < MANY; i++) {
        world_socket_pair(w, &only.inputs[i], &only.outputs[i]);
        begin(w, &only.runners[i],
              bide_recv(&only.operations[i], &only.inputs[i], &only.bytes[i], 1));
    }
    turn(w);
    return &only;
}

static void feed(crowd *c, int i)
{
    char byte = (char)('A' + i % 26);
    assert_int_equal(send(bide_descriptor_fd(&c->outputs[i]), &byte, 1, 0), 1);
}

static void end_crowd(crowd *c)
{
    for (int i = 0; i < MANY; i++) {
        if (bide_descriptor_is_open(&c->inputs[i]))
            assert_int_equal(bide_close(&c->inputs[i]), 0);
        assert_int_equal(bide_close(&c->outputs[i]), 0);
    }
}

/* poll() fails then, if it is asked for as many. */
static void more_wait_than_the_process_may_open(void **state)
{
    world *w = world_of(state);
    crowd *c = begin_crowd(w);
    for (int limit = 0; limit <= MANY; limit = 2 * limit + 1) {
        struct rlimit before, lowered;
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        lowered = before;
        lowered.rlim_cur = (rlim_t)limit;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &lowered), 0);
        turn(w);
        int fed = MANY - 1 - limit;
        feed(c, fed);
        int status = end(w, &c->runners[fed]);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(status, 0);
        assert_int_equal(c->bytes[fed], 'A' + fed % 26);
    }
    for (int i = 0; i < MANY; i++) {
        if (!c->runners[i].has_ended)
            feed(c, i);
        assert_int_equal(end(w, &c->runners[i]), 0);
    }
    end_crowd(c);
}

/* The entries behind that of a closed descriptor move, also in the middle of a batch that is taken. */
static void a_descriptor_is_closed_while_others_are_reported(void **state)
{
    world *w = world_of(state);
    uint64_t seed = testing_seed();
    for (int round = 0; round < 20; round++) {
        crowd *c = begin_crowd(w);
        int closed[MANY] = {0};
        for (int i = 0; i < MANY; i++)
            feed(c, i);
        for (int left = MANY; left > 0;) {
            int i = (int)(testing_random(&seed) % MANY);
            if (closed[i])
                continue;
            closed[i] = 1;
            left--;
            if (testing_random(&seed) % 3 == 0) {
                assert_int_equal(bide_close(&c->inputs[i]), 0);
                int status = end(w, &c->runners[i]);
                assert_true(status == -EPIPE || status == 0);
            } else {
                assert_int_equal(end(w, &c->runners[i]), 0);
                assert_int_equal(c->bytes[i], 'A' + i % 26);
            }
        }
        end_crowd(c);
    }
}

/* Either may leave first. */
static void two_structs_with_one_number_wait(void **state)
{
    world *w = world_of(state);
    for (int order = 0; order < 2; order++) {
        static struct runner runners[2];
        bide_io_operation operations[2], send;
        bide_descriptor one, other, again;
        char bytes[2] = "", text[1] = "z";
        world_socket_pair(w, &one, &other);
        bide_descriptor_init(&again, bide_descriptor_fd(&one));
        begin(w, &runners[0], bide_recv(&operations[0], &one, &bytes[0], 1));
        begin(w, &runners[1], bide_recv(&operations[1], &again, &bytes[1], 1));
        turn(w);
        assert_true(bide_descriptor_release(order == 0 ? &one : &again) >= 0);
        assert_int_equal(end(w, &runners[order]), -EPIPE);
        assert_int_equal(world_wait(w, bide_send(&send, &other, text, 1)), 0);
        assert_int_equal(end(w, &runners[1 - order]), 0);
        assert_int_equal(bytes[1 - order], 'z');
        assert_int_equal(bide_close(order == 0 ? &again : &one), 0);
        assert_int_equal(bide_close(&other), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_what_it_does_worse),
        world_test(it_sleeps_beside_a_descriptor_that_is_ready_for_ever),
        world_test(it_asks_for_what_operations_wait_for),
        world_test(a_listener_does_not_rest_because_others_take_its_connections),
        cmocka_unit_test(a_wait_for_urgent_bytes_of_a_file_waits),
        world_test(more_wait_than_the_process_may_open),
        world_test(a_descriptor_is_closed_while_others_are_reported),
        world_test(two_structs_with_one_number_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
