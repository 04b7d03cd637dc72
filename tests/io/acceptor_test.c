/*
 * Accepted connections as a stream. Each connection arrives once, in order and with its peer, no matter
 * how the waits end. No connection is left open.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <errno.h>
#include <fcntl.h>

enum { QUEUE = 4, MANY = 40 };

typedef struct fixture {
    world *world;
    bide_descriptor listener;
    bide_acceptor acceptor;
    int queue[QUEUE];
    bide_address address, peer;
    bide_io_operation operation;
    bide_descriptor accepted;
    bide_descriptor clients[MANY];
    int connected;
    struct runner runner;
} fixture;

/* This back end accepts only while a wait is in progress. */
static bool keeps_none(void)
{
    return world_is_by_readiness() || world_is("memory");
}

static fixture *begin_fixture(world *world)
{
    fixture *f = calloc(1, sizeof *f);
    bide_io_operation listen;
    assert_non_null(f);
    f->world = world;
    bide_descriptor_init_closed(&f->accepted);
    assert_int_equal(bide_address_ip(&f->address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(world, bide_listen(&listen, &f->listener, &f->address, MANY)), 0);
    assert_int_equal(bide_local_address(&f->listener, &f->address), 0);
    bide_acceptor_init(&f->acceptor, &f->listener, f->queue, QUEUE);
    return f;
}

static void end_fixture(fixture *f)
{
    bide_acceptor_destroy(&f->acceptor);
    bide_close(&f->listener);
    bide_close(&f->accepted);
    for (int i = 0; i < f->connected; i++)
        bide_close(&f->clients[i]);
    free(f);
}

static void connect_one(fixture *f)
{
    world_connect(f->world, &f->clients[f->connected++], &f->address);
}

static bide_awaiter *next(fixture *f)
{
    bide_close(&f->accepted);
    return bide_acceptor_next(&f->operation, &f->acceptor, &f->accepted, &f->peer);
}

/* The accepted connection is that of the nth client. */
static void check_is(fixture *f, int n)
{
    bide_address mine;
    char text[2][BIDE_ADDRESS_TEXT];
    assert_true(bide_descriptor_is_open(&f->accepted));
    assert_int_equal(bide_local_address(&f->clients[n], &mine), 0);
    bide_address_print(&mine, text[0], sizeof text[0]);
    bide_address_print(&f->peer, text[1], sizeof text[1]);
    assert_string_equal(text[1], text[0]);
}

static void take(fixture *f, int n)
{
    assert_int_equal(world_wait(f->world, next(f)), 0);
    check_is(f, n);
}

static void connections_come_in_order_with_their_peers(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    for (int i = 0; i < MANY / 2; i++)
        connect_one(f);
    for (int i = 0; i < MANY / 2; i++)
        take(f, i);
    begin(f->world, &f->runner, next(f));
    turn(f->world);
    assert_false(f->runner.has_ended);
    connect_one(f);
    assert_int_equal(end(f->world, &f->runner), 0);
    check_is(f, MANY / 2);
    end_fixture(f);
}

/* A wait that ends early takes nothing: the next wait gets the connection. */
static void a_wait_that_ends_early_loses_nothing(void **state)
{
    world *w = world_of(state);
    for (int how = 0; how < CLOSE; how++) {
        fixture *f = begin_fixture(w);
        begin_by(w, &f->runner, next(f), how);
        if (how != TIME_OUT) {
            turn(w);
            assert_false(f->runner.has_ended);
        }
        end_by(w, &f->runner, &f->listener, how);
        assert_false(bide_descriptor_is_open(&f->accepted));
        connect_one(f);
        turn(w);
        assert_int_equal(bide_acceptor_pending(&f->acceptor), keeps_none() ? 0 : 1);
        take(f, 0);
        end_fixture(f);
    }
}

/* Waiters behind one that is cancelled or destroyed keep waiting. */
static void waiters_are_served_in_order_of_arrival(void **state)
{
    enum { WAITERS = 6 };
    static struct runner runners[WAITERS];
    static bide_io_operation operations[WAITERS];
    static bide_descriptor accepted[WAITERS];
    fixture *f = begin_fixture(world_of(state));
    for (int i = 0; i < WAITERS; i++)
        begin(f->world, &runners[i],
              bide_acceptor_next(&operations[i], &f->acceptor, &accepted[i], NULL));
    turn(f->world);
    stop(&runners[0]);
    stop(&runners[3]);
    assert_int_equal(end(f->world, &runners[0]), -ECANCELED);
    assert_int_equal(end(f->world, &runners[3]), -ECANCELED);
    for (int i = 0; i < WAITERS - 2; i++)
        connect_one(f);
    for (int i = 0, n = 0; i < WAITERS; i++) {
        if (i == 0 || i == 3)
            continue;
        assert_int_equal(end(f->world, &runners[i]), 0);
        f->accepted = accepted[i];
        assert_int_equal(bide_peer_address(&accepted[i], &f->peer), 0);
        check_is(f, n++);
        bide_descriptor_init_closed(&f->accepted); /* (the copy) */
        bide_close(&accepted[i]);
    }
    end_fixture(f);
}

/*
 * Two numbers of one listener, with an accept each: the kernel may wake only the first one for a connection. If that
 * is ended at this moment, one of the two still has the connection.
 */
static void a_connection_at_the_moment_of_an_end_is_not_lost(void **state)
{
    static struct runner first, second;
    static bide_io_operation operations[2];
    world *w = world_of_the_system(state, "a listener has one number");
    for (int how = 0; how < WAYS; how++) {
        if (how == TIME_OUT || how == DESTROY) /* (its moment cannot be chosen; it may take none) */
            continue;
        fixture *f = begin_fixture(w);
        bide_descriptor other, one_of_two;
        int fd = fcntl(bide_descriptor_fd(&f->listener), F_DUPFD_CLOEXEC, 3);
        assert_true(fd >= 0);
        bide_descriptor_init(&other, fd);
        bide_descriptor_init_closed(&one_of_two);
        begin(w, &first, bide_accept(&operations[0], &f->listener, &f->accepted, &f->peer));
        turn(w);
        begin(w, &second, bide_accept(&operations[1], &other, &one_of_two, NULL));
        turn(w);
        connect_one(f);
        if (how == STOP)
            call_inside(w, stop, &first);
        else if (how == STOP_OUTSIDE)
            stop(&first);
        else
            call_inside(w, close_it, &f->listener);
        int status = end(w, &first);
        if (status == 0) {
            check_is(f, 0);
            stop(&second);
            assert_int_equal(end(w, &second), -ECANCELED);
        } else {
            assert_int_equal(status, how == CLOSE ? -EPIPE : -ECANCELED);
            assert_false(bide_descriptor_is_open(&f->accepted));
            assert_int_equal(end(w, &second), 0);
        }
        assert_int_equal(bide_descriptor_is_open(&one_of_two), status != 0);
        bide_close(&one_of_two);
        bide_close(&other);
        end_fixture(f);
    }
}

static void close_listener(void *fixture)
{
    assert_int_equal(bide_close(&((struct fixture *)fixture)->listener), 0);
}

static void a_listener_is_closed_under_it(void **state)
{
    world *w = world_of(state);
    for (int how = 0; how < 2; how++) {
        fixture *f = begin_fixture(w);
        struct runner second;
        bide_io_operation operation;
        bide_descriptor accepted;
        begin(w, &f->runner, next(f));
        begin(w, &second, bide_acceptor_next(&operation, &f->acceptor, &accepted, NULL));
        turn(w);
        if (how == 0)
            call_inside(w, close_listener, f);
        else
            close_listener(f);
        assert_int_equal(end(w, &f->runner), -EPIPE);
        assert_int_equal(end(w, &second), -EPIPE);
        assert_int_equal(world_wait(w, next(f)), -EBADF);
        end_fixture(f);
    }
}

/*
 * If nobody takes connections, accepting stops, and further connections stay in the kernel's
 * backlog.
 */
static void a_full_queue_stops_the_kernel(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    connect_one(f);
    take(f, 0);
    for (int i = 1; i <= 3 * QUEUE; i++)
        connect_one(f);
    turn(f->world);
    turn(f->world);
    size_t kept = bide_acceptor_pending(&f->acceptor);
    if (keeps_none())
        assert_int_equal(kept, 0);
    else
        assert_in_range(kept, QUEUE, 3 * QUEUE);
    while (f->connected < MANY)
        connect_one(f);
    turn(f->world);
    assert_int_equal(bide_acceptor_pending(&f->acceptor), kept);
    for (int i = 1; i < MANY; i++)
        take(f, i);
    assert_int_equal(bide_acceptor_pending(&f->acceptor), 0);
    assert_int_equal(bide_acceptor_dropped(&f->acceptor), 0);
    end_fixture(f);
}

/* Its end closes the connections that it holds. The clients see that. */
static void kept_connections_are_closed_at_its_end(void **state)
{
    world *w = world_of(state);
    for (int order = 0; order < 2; order++) {
        fixture *f = begin_fixture(w);
        int before = count_descriptors();
        connect_one(f);
        take(f, 0);
        for (int i = 1; i <= 2 * QUEUE; i++)
            connect_one(f);
        turn(w);
        if (order == 1)
            bide_close(&f->listener);
        bide_acceptor_destroy(&f->acceptor);
        assert_int_equal(bide_acceptor_pending(&f->acceptor), 0);
        bide_close(&f->listener);
        bide_close(&f->accepted);
        assert_int_equal(count_descriptors(), before + f->connected - 1);
        for (int i = 1; i < f->connected; i++) {
            char byte;
            assert_true(world_receive(w, &f->clients[i], &byte, 1) <= 0);
        }
        end_fixture(f);
    }
}

static void without_descriptors_a_connection_keeps_waiting(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    connect_one(f);
    world_lack_descriptors(f->world, true);
    int status = world_wait(f->world, next(f));
    int again = world_wait(f->world, next(f));
    world_lack_descriptors(f->world, false);
    assert_int_equal(status, -EMFILE);
    assert_int_equal(again, -EMFILE);
    take(f, 0);
    end_fixture(f);
}

/* A plain accept gets nothing while the stream runs, and fails when the listener is closed. */
static void a_plain_accept_on_its_listener_is_closed_too(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    bide_io_operation plain;
    bide_descriptor accepted;
    struct runner runner;
    connect_one(f);
    take(f, 0);
    begin(f->world, &runner, bide_accept(&plain, &f->listener, &accepted, NULL));
    begin(f->world, &f->runner, next(f));
    turn(f->world);
    close_listener(f);
    assert_int_equal(end(f->world, &runner), -EPIPE);
    assert_int_equal(end(f->world, &f->runner), -EPIPE);
    end_fixture(f);
}

/* Connections race with stop requests and deadlines: every connection arrives. */
static void none_is_lost_in_a_storm(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    uint64_t random = testing_seed();
    unsigned rounds = rounds_of(300);
    int before = count_descriptors();
    for (unsigned i = 0; i < rounds; i++) {
        unsigned drawn = (unsigned)testing_random(&random);
        int wanted = 1 + (int)(drawn % 6);
        int had = 0;
        for (int n = 0; n < wanted; n++) {
            if ((drawn >> n & 64) != 0)
                turn(f->world);
            connect_one(f);
        }
        while (had < wanted) {
            unsigned how = (unsigned)testing_random(&random) % 4;
            begin(f->world, &f->runner, next(f));
            if (how == 1)
                stop(&f->runner);
            else if (how == 2)
                call_inside(f->world, stop, &f->runner);
            int status = end(f->world, &f->runner);
            assert_true(status == 0 || status == -ECANCELED);
            had += status == 0;
            assert_int_equal(bide_descriptor_is_open(&f->accepted), status == 0);
        }
        while (f->connected > 0)
            bide_close(&f->clients[--f->connected]);
        bide_close(&f->accepted);
        assert_int_equal(bide_acceptor_pending(&f->acceptor), 0);
    }
    assert_int_equal(count_descriptors(), before);
    end_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(connections_come_in_order_with_their_peers),
        world_test(a_wait_that_ends_early_loses_nothing),
        world_test(waiters_are_served_in_order_of_arrival),
        world_test(a_connection_at_the_moment_of_an_end_is_not_lost),
        world_test(a_listener_is_closed_under_it),
        world_test(a_full_queue_stops_the_kernel),
        world_test(kept_connections_are_closed_at_its_end),
        world_test(without_descriptors_a_connection_keeps_waiting),
        world_test(a_plain_accept_on_its_listener_is_closed_too),
        world_test(none_is_lost_in_a_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
