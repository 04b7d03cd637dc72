/*
 * A server on each worker of a pool. Connections are distributed, limited, drained and cancelled, wherever
 * they run. After each test all slots are free, and no descriptor is left.
 */
#define _GNU_SOURCE
#include "../io/world.h"

#include "../../src/io/operation.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

enum { THREADS = 3, CLIENTS = 240, SLOTS = 200 };

struct client {
    bide_connection connection;
    bide_io_operation operation;
    char buffer[64];
};

static struct client slots[THREADS * SLOTS];

static struct {
    bide_atomic(unsigned) begun, ended, cut, away;
    bool fails;
} echoes;

static void add(bide_atomic(unsigned) * count)
{
    bide_atomic_fetch_add(count, 1, relaxed);
}

bide_coroutine(echo_body)
{
    bide_begin(echo_body, struct client * self);
    add(&echoes.begun);
    for (;;) {
        int status;
        bide_await_status(status, bide_recv(&self->operation, &self->connection.socket,
                                            self->buffer, sizeof self->buffer));
        if (status < 0)
            add(&echoes.cut);
        if (status < 0 || self->operation.count == 0)
            break;
        if (io_of(&self->connection.socket) != io_of(&self->connection.server->listener))
            add(&echoes.away);
        if (echoes.fails)
            bide_return(-EILSEQ);
        bide_try(bide_send(&self->operation, &self->connection.socket, self->buffer,
                           self->operation.count));
    }
    bide_finally();
    add(&echoes.ended);
    bide_end();
}

typedef struct fixture {
    bide_thread_pool *pool;
    bide_context context;
    bide_stop_source stop;
    bide_pool_server server;
    bide_pool_server_worker workers[THREADS];
    bide_spawned running;
    int descriptors;
} fixture;

static fixture only;

static fixture *begin_pool(void)
{
    bide_io_pool_options options = {
        .threads = {.threads = THREADS},
        .loop = {.kind = world_kind()},
    };
    setenv("BIDE_IO_WITHOUT", world_is("uring-polls") ? "futex" : "", 1);
    memset(&echoes, 0, sizeof echoes);
    only.descriptors = count_descriptors();
    int status = bide_io_pool_create(&only.pool, &options);
    if (status < 0 && options.loop.kind == BIDE_LOOP_URING) {
        printf("# no io_uring: %s\n", strerror(-status));
        skip();
    }
    assert_int_equal(status, 0);
    bide_stop_source_init(&only.stop);
    only.context = (bide_context){.scheduler = bide_thread_pool_scheduler(only.pool)};
    return &only;
}

static void end_pool(fixture *f)
{
    bide_thread_pool_destroy(f->pool);
    /* (descriptors that wake loops are kept for later loops) */
    assert_in_range(count_descriptors(), f->descriptors,
                    f->descriptors + KEPT_DESCRIPTORS * THREADS);
}

static int wait_in(fixture *f, bide_awaiter *awaiter)
{
    return bide_sync_wait_in(&f->context, awaiter);
}

static void listen_on(fixture *f, size_t max)
{
    bide_server_options options = {
        .body = &echo_body, .size = sizeof *slots, .max_connections = max, .slots = slots};
    bide_address address;
    assert_int_equal(bide_pool_server_init(&f->server, f->pool, f->workers, &options), 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(wait_in(f, bide_pool_server_listen(&f->server, &address, CLIENTS)), 0);
    assert_true(bide_address_port(&f->server.address) != 0);
}

static void run(fixture *f)
{
    bide_context context = f->context;
    context.stop = &f->stop;
    bide_spawn(&f->running, &context, bide_pool_server_run(&f->server));
}

static fixture *serve(size_t max)
{
    fixture *f = begin_pool();
    listen_on(f, max);
    run(f);
    return f;
}

/* Waits for its end and checks that nothing is left. */
static int server_end(fixture *f)
{
    bide_server_stats counts;
    assert_int_equal(bide_event_wait_blocking(&f->running.ended, BIDE_FOREVER), 0);
    bide_pool_server_get_stats(&f->server, &counts);
    assert_int_equal(counts.live, 0);
    assert_int_equal(counts.accepted, bide_atomic_load(&echoes.ended, relaxed));
    for (int i = 0; i < THREADS; i++) {
        const bide_server *server = &f->workers[i].server;
        size_t free_slots = server->fresh;
        for (const bide_connection *at = server->unused; at != NULL; at = at->next)
            free_slots++;
        assert_int_equal(free_slots, server->options.max_connections);
        assert_false(bide_descriptor_is_open(&server->listener));
    }
    int status = f->running.root.status;
    end_pool(f);
    return status;
}

/* ---- Clients, on the threads of the test ---- */

static int connect_to(fixture *f)
{
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(client >= 0);
    assert_int_equal(connect(client, &f->server.address.any.generic, f->server.address.length), 0);
    return client;
}

static bool talk(int client)
{
    char buffer[8];
    return send(client, "hello", 5, MSG_NOSIGNAL) == 5 && recv(client, buffer, 8, 0) == 5;
}

static uint64_t live(fixture *f)
{
    bide_server_stats counts;
    bide_pool_server_get_stats(&f->server, &counts);
    return counts.live;
}

static void connections_are_dealt_out_and_stay(void **state)
{
    static int clients[CLIENTS];
    unsigned used = 0;
    (void)state;
    fixture *f = serve(SLOTS);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = connect_to(f);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CLIENTS; i++)
            assert_true(talk(clients[i]));
    }
    assert_int_equal(live(f), CLIENTS);
    for (int i = 0; i < THREADS; i++) {
        bide_server_stats counts;
        bide_server_get_stats(&f->workers[i].server, &counts);
        used += counts.accepted != 0;
        printf("# worker %d: %u\n", i, (unsigned)counts.accepted);
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(io_of(&f->workers[i].server.listener),
                                 io_of(&f->workers[j].server.listener));
    }
    assert_int_equal(used, THREADS); /* (a worker gets no connection once in 10^42 runs) */
    printf("# %u of %u not on the thread of their listener\n",
           bide_atomic_load(&echoes.away, relaxed), 3 * CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    bide_pool_server_shut_down(&f->server, BIDE_FOREVER);
    assert_int_equal(server_end(f), 0);
    assert_int_equal(bide_atomic_load(&echoes.cut, relaxed), 0);
}

/* Many clients and few slots: several threads reuse each slot. */
static void *come_and_go(void *fixture_)
{
    fixture *f = fixture_;
    uintptr_t served = 0;
    for (uint32_t i = 0; i < rounds_of(400); i++) {
        struct linger reset = {1, 0};
        int client = connect_to(f);
        served += talk(client);
        setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(client);
    }
    return (void *)served;
}

static void slots_are_used_again_by_all_threads(void **state)
{
    enum { COMERS = 4 };
    pthread_t threads[COMERS];
    uintptr_t served = 0;
    (void)state;
    fixture *f = serve(2);
    for (int i = 0; i < COMERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, f), 0);
    for (int i = 0; i < COMERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        served += (uintptr_t)result;
    }
    assert_int_equal(served, COMERS * rounds_of(400));
    bide_pool_server_shut_down(&f->server, BIDE_FOREVER);
    assert_int_equal(server_end(f), 0);
}

static void an_error_of_a_connection_is_counted(void **state)
{
    char byte;
    (void)state;
    fixture *f = begin_pool();
    listen_on(f, SLOTS);
    echoes.fails = true;
    run(f);
    for (int i = 0; i < 10; i++) {
        int client = connect_to(f);
        assert_int_equal(send(client, "hello", 5, 0), 5);
        assert_int_equal(recv(client, &byte, 1, 0), 0);
        close(client);
    }
    bide_pool_server_shut_down(&f->server, BIDE_FOREVER);
    bide_server_stats counts;
    assert_int_equal(bide_event_wait_blocking(&f->running.ended, BIDE_FOREVER), 0);
    bide_pool_server_get_stats(&f->server, &counts);
    assert_int_equal(counts.failed, 10);
    assert_int_equal(server_end(f), 0);
}

enum { NOW, LATER, STOP, HOW };

static void it_ends_with_its_connections(void **state)
{
    (void)state;
    for (int how = 0; how < HOW; how++) {
        int clients[20];
        char byte;
        fixture *f = serve(SLOTS);
        for (int i = 0; i < 20; i++) {
            clients[i] = connect_to(f);
            assert_true(talk(clients[i]));
        }
        if (how == STOP)
            bide_stop_request(&f->stop);
        else
            bide_pool_server_shut_down(&f->server,
                                       how == NOW ? 0 : bide_now(&f->context) + 20000000);
        for (int i = 0; i < 20; i++) {
            assert_int_equal(recv(clients[i], &byte, 1, 0), 0);
            close(clients[i]);
        }
        assert_int_equal(server_end(f), how == STOP ? -ECANCELED : 0);
        assert_int_equal(bide_atomic_load(&echoes.cut, relaxed), 20);
    }
}

/* ---- Failures ---- */

static void one_that_cannot_listen_leaves_none_listening(void **state)
{
    (void)state;
    fixture *f = begin_pool();
    bide_server_options options = {
        .body = &echo_body, .size = sizeof *slots, .max_connections = 1, .slots = slots};
    bide_address address;
    int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(bind(taken, &address.any.generic, address.length), 0);
    assert_int_equal(listen(taken, 1), 0);
    assert_int_equal(getsockname(taken, &address.any.generic, &address.length), 0);
    assert_int_equal(bide_pool_server_init(&f->server, f->pool, f->workers, &options), 0);
    assert_int_equal(wait_in(f, bide_pool_server_listen(&f->server, &address, 1)), -EADDRINUSE);
    for (int i = 0; i < THREADS; i++)
        assert_false(bide_descriptor_is_open(&f->workers[i].server.listener));
    close(taken);
    options.max_connections = 0;
    assert_int_equal(bide_pool_server_init(&f->server, f->pool, f->workers, &options), -EINVAL);
    end_pool(f);
}

static void one_that_fails_stops_the_others(void **state)
{
    char byte;
    (void)state;
    fixture *f = begin_pool();
    listen_on(f, SLOTS);
    /* its listener is invalid */
    assert_int_equal(bide_close(&f->workers[1].server.listener), 0);
    int client = connect_to(f);
    run(f);
    (void)recv(client, &byte, 1, 0); /* it is served for a while, or reset */
    close(client);
    assert_int_equal(server_end(f), -EBADF);
}

static void a_pool_without_loops_has_none(void **state)
{
    bide_thread_pool *pool;
    bide_server_options options = {
        .body = &echo_body, .size = sizeof *slots, .max_connections = 1, .slots = slots};
    bide_descriptor descriptor;
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, THREADS), 0);
    assert_false(bide_io_pool_is(pool));
    assert_int_equal(bide_pool_server_init(&only.server, pool, only.workers, &options), -EINVAL);
    bide_descriptor_init(&descriptor, 0);
    assert_int_equal(bide_io_pool_assign(pool, 0, &descriptor), -EINVAL);
    bide_thread_pool_destroy(pool);
}

static void a_descriptor_gets_one_home(void **state)
{
    int fds[2];
    bide_descriptor one;
    (void)state;
    fixture *f = begin_pool();
    assert_true(bide_io_pool_is(f->pool));
    assert_int_equal(pipe(fds), 0);
    bide_descriptor_init_closed(&one);
    assert_int_equal(bide_io_pool_assign(f->pool, 0, &one), -EBADF);
    bide_descriptor_init(&one, fds[0]);
    assert_int_equal(bide_io_pool_assign(f->pool, THREADS, &one), -EINVAL);
    assert_int_equal(bide_io_pool_assign(f->pool, 1, &one), 0);
    assert_int_equal(bide_io_pool_assign(f->pool, 2, &one), -EBUSY);
    assert_int_equal(bide_close(&one), 0);
    close(fds[1]);
    end_pool(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_are_dealt_out_and_stay),
        cmocka_unit_test(slots_are_used_again_by_all_threads),
        cmocka_unit_test(an_error_of_a_connection_is_counted),
        cmocka_unit_test(it_ends_with_its_connections),
        cmocka_unit_test(one_that_cannot_listen_leaves_none_listening),
        cmocka_unit_test(one_that_fails_stops_the_others),
        cmocka_unit_test(a_pool_without_loops_has_none),
        cmocka_unit_test(a_descriptor_gets_one_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
