/*
 * Servers: connections are served, limited, drained, cancelled and destroyed. Failures of the system
 * neither stop a server nor make it spin. After each test no descriptor is left and all slots are free.
 */
#define _GNU_SOURCE
#include "../io/world.h"

#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)

/* ---- The system's accept4, which is counted, and made to fail ---- */

static struct {
    unsigned calls;
    int errors[8]; /* errors of the next calls; 0: no error */
    unsigned next;
} accepts;

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    __atomic_fetch_add(&accepts.calls, 1,
                       __ATOMIC_RELAXED); /* (called by the threads of several loops) */
    int error = accepts.errors[accepts.next];
    if (error != 0) {
        accepts.next++;
        errno = error;
        return -1;
    }
    return (int)syscall(SYS_accept4, fd, address, length, flags);
}

/* ---- A server that echoes ---- */

enum { SLOTS = 400 };

struct client {
    bide_connection connection;
    bide_io_operation operation;
    bide_event_waiter wait;
    bide_with_stop_operation sheltered;
    char buffer[64];
};

static struct {
    unsigned operations; /* started by connections */
    unsigned begun;
    unsigned ended;
    unsigned cut; /* of those, cancelled */
    unsigned max_live;
    bool fails; /* connections end with an error. */
    bool
        is_stubborn; /* a stubborn connection that is cancelled keeps waiting for data that does not arrive */
} echoes;

static bide_event never;

bide_coroutine(echo_body)
{
    bide_begin(echo_body, struct client * self);
    echoes.begun++;
    if (self->connection.server->stats.live > echoes.max_live)
        echoes.max_live = (unsigned)self->connection.server->stats.live;
    for (;;) {
        int status;
        echoes.operations++;
        bide_await_status(status, bide_recv(&self->operation, &self->connection.socket,
                                            self->buffer, sizeof self->buffer));
        if (status == -ECANCELED || status == -ETIMEDOUT)
            echoes.cut++;
        if (status < 0 || self->operation.count == 0)
            break;
        if (echoes.fails)
            bide_return(-EILSEQ);
        echoes.operations++;
        bide_try(bide_send(&self->operation, &self->connection.socket, self->buffer,
                           self->operation.count));
    }
    if (echoes.is_stubborn)
        bide_await(bide_with_stop(&self->sheltered, NULL, bide_event_wait(&self->wait, &never)));
    bide_finally();
    echoes.ended++;
    bide_end();
}

typedef struct fixture {
    world *world;
    bide_server server;
    bide_spawned running;
    bide_address address;
    bide_io_operation operation;
    bide_descriptor clients[SLOTS];
    char buffer[64];
} fixture;

static struct client slots[SLOTS];
static fixture only;

static void listen_with(fixture *f, void **state, const bide_server_options *options)
{
    f->world = world_of(state);
    memset(&echoes, 0, sizeof echoes);
    memset(&accepts, 0, sizeof accepts);
    bide_event_init(&never, false);
    assert_int_equal(bide_server_init(&f->server, options), 0);
    for (int i = 0; i < SLOTS; i++)
        bide_descriptor_init_closed(&f->clients[i]);
    assert_int_equal(bide_address_ip(&f->address, "127.0.0.1", 0), 0);
    assert_int_equal(
        world_wait(f->world, bide_listen(&f->operation, &f->server.listener, &f->address, SLOTS)),
        0);
    assert_int_equal(bide_local_address(&f->server.listener, &f->address), 0);
}

static void serve_with(fixture *f, void **state, const bide_server_options *options)
{
    listen_with(f, state, options);
    bide_spawn(&f->running, f->world->context, bide_server_run(&f->server));
}

static fixture *serve(void **state, size_t max)
{
    bide_server_options options = {
        .body = &echo_body, .size = sizeof *slots, .max_connections = max, .slots = slots};
    serve_with(&only, state, &options);
    return &only;
}

/* Runs until nothing more becomes ready for a while. */
static void turn(fixture *f)
{
    bide_sleep sleep;
    assert_int_equal(world_wait(f->world, bide_sleep_for(&sleep, 5 * MILLISECOND)), 0);
}

static void begin_client(fixture *f, int i)
{
    assert_int_equal(world_wait(f->world, bide_connect(&f->operation, &f->clients[i], &f->address)),
                     0);
}

static void say(fixture *f, int i)
{
    assert_int_equal(world_wait(f->world, bide_send(&f->operation, &f->clients[i], "hello", 5)), 0);
}

/* Receives the response: a number of bytes, or an error; with a timeout of 5 s. */
static int hear(fixture *f, int i)
{
    bide_with_deadline_operation limited;
    int status = world_wait(
        f->world, bide_with_deadline(&limited, world_now(f->world) + 5000 * MILLISECOND,
                                     bide_recv(&f->operation, &f->clients[i], f->buffer, 64)));
    return status < 0 ? status : (int)f->operation.count;
}

static void talk(fixture *f, int i)
{
    say(f, i);
    assert_int_equal(hear(f, i), 5);
}

static size_t free_slots(const fixture *f)
{
    size_t count = f->server.fresh;
    for (const bide_connection *at = f->server.unused; at != NULL; at = at->next)
        count++;
    return count;
}

static void close_clients(fixture *f)
{
    for (int i = 0; i < SLOTS; i++) {
        if (bide_descriptor_is_open(&f->clients[i]))
            bide_close(&f->clients[i]);
    }
}

/* Waits for its end and checks that nothing is left. */
static int server_end(fixture *f)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &f->running.ended)), 0);
    assert_int_equal(f->server.stats.live, 0);
    assert_int_equal(echoes.ended, f->server.stats.accepted);
    assert_false(bide_descriptor_is_open(&f->server.listener));
    if (f->server.options.slots != NULL)
        assert_int_equal(free_slots(f), f->server.options.max_connections);
    close_clients(f);
    return f->running.root.status;
}

static void shut_down_and_end(fixture *f)
{
    bide_server_shut_down(&f->server, 0);
    assert_int_equal(server_end(f), 0);
}

/* ---- Serving ---- */

static void each_client_is_served_and_counted(void **state)
{
    fixture *f = serve(state, SLOTS);
    for (int i = 0; i < 20; i++)
        begin_client(f, i);
    for (int i = 0; i < 20; i++)
        talk(f, i);
    assert_int_equal(bide_server_own_stats(&f->server)->live, 20);
    for (int i = 0; i < 10; i++)
        bide_close(&f->clients[i]);
    turn(f);
    assert_int_equal(bide_server_own_stats(&f->server)->live, 10);
    assert_int_equal(bide_server_own_stats(&f->server)->accepted, 20);
    assert_int_equal(bide_server_own_stats(&f->server)->refused, 0);
    shut_down_and_end(f);
    assert_int_equal(echoes.cut, 10);
}

static void no_more_than_the_bound_are_accepted(void **state)
{
    fixture *f = serve(state, 2);
    for (int i = 0; i < 4; i++) {
        begin_client(f, i);
        say(f, i);
    }
    assert_int_equal(hear(f, 0), 5);
    assert_int_equal(hear(f, 1), 5);
    turn(f);
    assert_int_equal(f->server.stats.accepted, 2);
    bide_close(&f->clients[0]);
    assert_int_equal(hear(f, 2), 5);
    bide_close(&f->clients[1]);
    assert_int_equal(hear(f, 3), 5);
    assert_int_equal(echoes.max_live, 2);
    shut_down_and_end(f);
}

static void the_number_of_connections_can_be_changed(void **state)
{
    fixture *f = serve(state, SLOTS);
    assert_int_equal(bide_server_set_max_connections(&f->server, 0), -EINVAL);
    assert_int_equal(bide_server_set_max_connections(&f->server, SLOTS + 1), -EINVAL);
    assert_int_equal(bide_server_set_max_connections(&f->server, 2), 0);
    for (int i = 0; i < 4; i++) {
        begin_client(f, i);
        say(f, i);
    }
    assert_int_equal(hear(f, 0), 5);
    assert_int_equal(hear(f, 1), 5);
    turn(f);
    assert_int_equal(f->server.stats.accepted, 2);
    assert_int_equal(bide_server_set_max_connections(&f->server, 3),
                     0); /* it is full, and learns of it */
    assert_int_equal(hear(f, 2), 5);
    turn(f);
    assert_int_equal(f->server.stats.accepted, 3);
    /* less than there are: all continue, and three have to end before the next */
    assert_int_equal(bide_server_set_max_connections(&f->server, 1), 0);
    for (int i = 0; i < 2; i++) {
        bide_close(&f->clients[i]);
        turn(f);
        assert_int_equal(f->server.stats.live, 2 - i);
        assert_int_equal(f->server.stats.accepted, 3);
    }
    talk(f, 2);
    bide_close(&f->clients[2]);
    assert_int_equal(hear(f, 3), 5);
    assert_int_equal(f->server.stats.accepted, 4);
    shut_down_and_end(f);
}

/* An accept that waits may bring one connection more. */
static void a_lower_number_counts_from_the_next_accept_on(void **state)
{
    fixture *f = serve(state, SLOTS);
    begin_client(f, 0);
    talk(f, 0);
    turn(f);
    assert_int_equal(bide_server_set_max_connections(&f->server, 1), 0);
    for (int i = 1; i < 4; i++)
        begin_client(f, i);
    turn(f);
    assert_in_range(f->server.stats.accepted, 1, 2);
    shut_down_and_end(f);
}

static void an_error_of_a_connection_ends_that_alone(void **state)
{
    fixture *f = serve(state, SLOTS);
    begin_client(f, 0);
    begin_client(f, 1);
    talk(f, 0);
    echoes.fails = true;
    say(f, 1);
    assert_int_equal(hear(f, 1), 0); /* closed */
    echoes.fails = false;
    talk(f, 0);
    assert_int_equal(f->server.stats.failed, 1);
    shut_down_and_end(f);
}

static void invalid_options_are_rejected(void **state)
{
    bide_server server;
    bide_server_options good = {
        .body = &echo_body, .size = sizeof *slots, .max_connections = 1, .slots = slots};
    bide_server_options bad[] = {good, good, good, good};
    (void)state;
    bad[0].body = NULL;
    bad[1].size = sizeof(bide_connection) - 1;
    bad[2].max_connections = 0;
    bad[3].slots = NULL;
    assert_int_equal(bide_server_init(&server, &good), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(bide_server_init(&server, &bad[i]), -EINVAL);
}

static void an_invalid_listener_is_reported(void **state)
{
    fixture *f = serve(state, 1);
    bide_server_shut_down(&f->server, 0);
    assert_int_equal(server_end(f), 0);

    bide_server_options options = f->server.options;
    assert_int_equal(bide_server_init(&f->server, &options), 0); /* its listener is closed */
    bide_spawn(&f->running, f->world->context, bide_server_run(&f->server));
    assert_int_equal(server_end(f), -EBADF);

    assert_int_equal(bide_server_init(&f->server, &options), 0);
    assert_int_equal(
        world_wait(f->world, bide_bind(&f->operation, &f->server.listener, &f->address, 0)), 0);
    bide_spawn(&f->running, f->world->context, bide_server_run(&f->server));
    assert_in_range(-server_end(f), 1, 4095); /* a datagram socket cannot accept */
}

/* ---- Memory from an allocator ---- */

static void memory_comes_from_an_allocator_and_its_lack_is_waited_out(void **state)
{
    static _Alignas(64) unsigned char memory[3 * sizeof(struct client) + 64];
    bide_pool pool;
    bide_pool_init(&pool, sizeof(struct client), memory, sizeof memory);
    bide_server_options options = {.body = &echo_body,
                                   .size = sizeof(struct client),
                                   .max_connections = SLOTS,
                                   .allocator = &pool.allocator,
                                   .accept_retry_delay = MILLISECOND};
    fixture *f = &only;
    serve_with(f, state, &options);
    for (int i = 0; i < 4; i++) {
        begin_client(f, i);
        say(f, i);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(hear(f, i), 5);
    turn(f);
    assert_int_equal(f->server.stats.accepted, 3);
    assert_true(f->server.stats.errors > 0);
    bide_close(&f->clients[1]);
    assert_int_equal(hear(f, 3), 5);
    shut_down_and_end(f);
}

struct counting {
    bide_allocator allocator;
    size_t made, live;
};

static void *counting_allocate(bide_allocator *allocator, size_t size)
{
    struct counting *counting = bide_container_of(allocator, struct counting, allocator);
    counting->made++;
    counting->live++;
    return bide_heap.allocate(&bide_heap, size);
}

static void counting_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    bide_container_of(allocator, struct counting, allocator)->live--;
    bide_heap.deallocate(&bide_heap, memory, size);
}

static void memory_that_was_given_back_is_kept_as_far_as_was_said_until_the_end(void **state)
{
    struct counting counting = {{counting_allocate, counting_deallocate}, 0, 0};
    bide_server_options options = {.body = &echo_body,
                                   .size = sizeof(struct client),
                                   .max_connections = SLOTS,
                                   .allocator = &counting.allocator,
                                   .spare_connections = 2};
    fixture *f = &only;
    serve_with(f, state, &options);
    for (int i = 0; i < 4; i++) {
        begin_client(f, i);
        talk(f, i);
    }
    assert_int_equal(counting.live, 5); /* and one for the next connection */
    for (int i = 0; i < 4; i++)
        bide_close(&f->clients[i]);
    while (f->server.stats.live != 0)
        turn(f);
    assert_int_equal(counting.live, 3);
    for (int i = 0; i < 4; i++) {
        begin_client(f, 0);
        talk(f, 0);
        bide_close(&f->clients[0]);
        while (f->server.stats.live != 0)
            turn(f);
    }
    assert_int_equal(counting.made, 5);
    shut_down_and_end(f);
    assert_int_equal(counting.live, 0);
}

/* ---- Shutting down ---- */

static void shutting_down_waits_for_connections_that_end_in_time(void **state)
{
    fixture *f = serve(state, SLOTS);
    begin_client(f, 0);
    talk(f, 0);
    bide_server_shut_down(&f->server, BIDE_FOREVER);
    turn(f);
    assert_int_equal(world_wait(f->world, bide_connect(&f->operation, &f->clients[1], &f->address)),
                     -ECONNREFUSED);
    talk(f, 0); /* it is served as usual */
    bide_close(&f->clients[0]);
    assert_int_equal(server_end(f), 0);
    assert_int_equal(echoes.cut, 0);
}

static void after_the_deadline_the_rest_is_cancelled(void **state)
{
    fixture *f = serve(state, SLOTS);
    begin_client(f, 0);
    begin_client(f, 1);
    talk(f, 0);
    talk(f, 1);
    bide_server_shut_down(&f->server, BIDE_FOREVER);
    bide_close(&f->clients[0]);
    while (f->server.stats.live != 1)
        turn(f);
    uint64_t deadline = world_now(f->world) + 20 * MILLISECOND;
    bide_server_shut_down(&f->server, deadline);
    assert_int_equal(server_end(f), 0);
    assert_true(world_now(f->world) >= deadline);
    assert_int_equal(echoes.cut, 1);
}

static void a_second_deadline_counts(void **state)
{
    fixture *f = serve(state, SLOTS);
    begin_client(f, 0);
    talk(f, 0);
    bide_server_shut_down(&f->server, BIDE_FOREVER);
    turn(f);
    assert_int_equal(f->server.stats.live, 1);
    bide_server_shut_down(&f->server, 0);
    assert_int_equal(server_end(f), 0);
    assert_int_equal(echoes.cut, 1);
}

static void it_may_be_shut_down_before_it_runs_and_while_it_is_full(void **state)
{
    fixture *f = serve(state, 1);
    bide_server_shut_down(&f->server, BIDE_FOREVER);
    assert_int_equal(server_end(f), 0);
    f = serve(state, 1);
    begin_client(f, 0);
    talk(f, 0);
    begin_client(f, 1);
    turn(f);
    bide_server_shut_down(&f->server, 0);
    assert_int_equal(server_end(f), 0);
    assert_int_equal(f->server.stats.accepted, 1);
}

static void *shut_down_from_outside(void *argument)
{
    fixture *f = argument;
    bide_server_shut_down(&f->server, 0);
    return NULL;
}

static void another_thread_may_shut_it_down(void **state)
{
    (void)world_of_the_system(state, "a test loop has one thread");
    for (uint32_t round = 0; round < rounds_of(20); round++) {
        pthread_t thread;
        fixture *f = serve(state, SLOTS);
        begin_client(f, 0);
        talk(f, 0);
        assert_int_equal(pthread_create(&thread, NULL, shut_down_from_outside, f), 0);
        assert_int_equal(server_end(f), 0);
        pthread_join(thread, NULL);
    }
}

static void a_request_to_stop_ends_it_with_its_connections(void **state)
{
    fixture *f = &only;
    bide_server_options options = {
        .body = &echo_body, .size = sizeof *slots, .max_connections = SLOTS, .slots = slots};
    bide_stop_source stop;
    serve_with(f, state, &options);
    shut_down_and_end(f);

    for (int reason = 0; reason < 2; reason++) {
        bide_context context = *f->world->context;
        bide_stop_source_init(&stop);
        context.stop = &stop;
        memset(&echoes, 0, sizeof echoes);
        assert_int_equal(bide_server_init(&f->server, &options), 0);
        assert_int_equal(world_wait(f->world, bide_listen(&f->operation, &f->server.listener,
                                                          &f->address, SLOTS)),
                         0);
        bide_spawn(&f->running, &context, bide_server_run(&f->server));
        begin_client(f, 0);
        talk(f, 0);
        bide_stop_request_with(&stop, reason == 0 ? -ECANCELED : -ETIMEDOUT);
        assert_int_equal(server_end(f), reason == 0 ? -ECANCELED : -ETIMEDOUT);
        assert_int_equal(echoes.cut, 1);
    }
}

/* ---- Destroyed ---- */

/*
 * The server's runner: the root, a coroutine under a wrapper, or a coroutine with the server in a
 * scope.
 */
enum { ROOT, WRAPPER, SCOPE, OWNERS };

struct owner {
    bide_task task;
    bide_server *server;
    int kind;
    bide_with_deadline_operation limited;
    bide_scope scope;
    bide_branch branch;
};

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    if (self->kind == WRAPPER) {
        bide_try(
            bide_with_deadline(&self->limited, BIDE_FOREVER - 1, bide_server_run(self->server)));
    } else {
        bide_scope_init(&self->scope, bide_this_frame());
        bide_scope_spawn(&self->scope, &self->branch, bide_server_run(self->server));
        bide_try(bide_scope_join(&self->scope));
    }
    bide_end();
}

static void serve_owned(fixture *f, void **state, const bide_server_options *options, int kind)
{
    static struct owner owner;
    owner = (struct owner){.server = &f->server, .kind = kind};
    listen_with(f, state, options);
    bide_spawn(&f->running, f->world->context,
               kind == ROOT ? bide_server_run(&f->server)
                            : bide_task_init(&owner.task, &owner_body));
}

struct destroyer {
    bide_task task;
    bide_frame *frame; /* the outermost */
    unsigned delay;
    bide_schedule_operation yield;
    bide_sleep sleep;
};

bide_coroutine(destroyer_body)
{
    bide_begin(destroyer_body, struct destroyer * self);
    for (; self->delay != 0; self->delay--) {
        if (world_is("memory"))
            bide_await(bide_sleep_for(&self->sleep, 50000));
        else
            bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    }
    bide_destroy(self->frame);
    bide_end();
}

/* Destroys it after `delay` turns. */
static void destroy_after(fixture *f, unsigned delay)
{
    struct destroyer destroyer = {.frame = &f->running.root.frame, .delay = delay};
    assert_int_equal(world_wait(f->world, bide_task_init(&destroyer.task, &destroyer_body)), 0);
}

/* Nothing of it is left: no slot, connection, descriptor or wait. */
static void check_that_it_is_gone(fixture *f, bool has_run)
{
    assert_int_equal(bide_close(&f->server.listener), has_run ? -EBADF : 0);
    assert_int_equal(f->server.reserve, -1);
    assert_int_equal(f->server.stats.live, 0);
    assert_int_equal(echoes.ended, echoes.begun);
    if (f->server.options.slots != NULL)
        assert_int_equal(free_slots(f), f->server.options.max_connections);
    memset(slots, 0xa5, sizeof slots); /* (their memory belongs to the caller again) */
    close_clients(f);
    turn(f);
}

/* The states of the server. */
enum state {
    IS_NEW, /* it has not run */
    ACCEPTS,
    SERVES, /* one of its connections is about to resume */
    IS_FULL,
    LACKS_MEMORY, /* it pauses */
    LACKS_DESCRIPTORS,
    DRAINS,
    CANCELS, /* cancelled connections do not end */
    STATES
};

/* The next client connects, and there is no descriptor for the connection. */
static void let_one_come_in_vain(fixture *f)
{
    if (f->world->memory != NULL) {
        bide_memory_io_options one_more = {.descriptors = (unsigned)count_descriptors() + 1};
        bide_memory_io_change(f->world->memory, &one_more);
    }
    world_connect(f->world, &f->clients[2], &f->address);
    if (f->world->memory == NULL)
        world_lack_descriptors(f->world, true);
    turn(f);
    world_lack_descriptors(f->world, false);
    assert_int_equal(f->server.stats.pauses, 1);
}

/* Brings the server into the state. Returns the number of connections. */
static unsigned bring_it(fixture *f, enum state into)
{
    if (into == IS_NEW)
        return 0;
    turn(f);
    if (into == ACCEPTS)
        return 0;
    echoes.is_stubborn = into == CANCELS;
    for (int i = 0; i < 2; i++) {
        begin_client(f, i);
        talk(f, i);
    }
    if (into == LACKS_DESCRIPTORS) {
        let_one_come_in_vain(f); /* (a ring has checked the limit before, and accepts one more) */
        return (unsigned)f->server.stats.accepted;
    }
    begin_client(f, 2);
    turn(f);
    if (into == SERVES)
        say(f, 0);
    assert_int_equal(f->server.stats.pauses, into == LACKS_MEMORY ? 1 : 0);
    if (into == DRAINS || into == CANCELS) {
        bide_server_shut_down(&f->server, into == DRAINS ? BIDE_FOREVER : 0);
        turn(f);
        assert_false(bide_descriptor_is_open(&f->server.listener));
        assert_int_equal(echoes.cut, into == CANCELS ? 3 : 0);
    }
    return into == IS_FULL || into == LACKS_MEMORY ? 2 : 3;
}

static size_t count_pieces(bide_pool *pool)
{
    size_t count = 0;
    while (pool->allocator.allocate(&pool->allocator, sizeof(struct client)) != NULL)
        count++;
    return count;
}

static void destroyed_in_any_state_it_leaves_nothing(void **state)
{
    static _Alignas(64) unsigned char memory[2 * sizeof(struct client) + 64];
    fixture *f = &only;
    bide_pool pool;
    for (int into = 0; into < OWNERS * STATES; into++) {
        bide_server_options options = {.body = &echo_body,
                                       .size = sizeof *slots,
                                       .max_connections = into % STATES == IS_FULL ? 2 : SLOTS,
                                       .slots = slots,
                                       .accept_retry_delay = 3600000 * MILLISECOND};
        bide_pool_init(&pool, sizeof(struct client), memory, sizeof memory);
        size_t pieces = pool.left;
        if (into % STATES == LACKS_MEMORY) {
            options.slots = NULL;
            options.allocator = &pool.allocator;
        }
        serve_owned(f, state, &options, into / STATES);
        unsigned live = bring_it(f, (enum state)(into % STATES));
        assert_int_equal(f->server.stats.live, live);
        assert_int_equal(echoes.begun, live);
        if (into % STATES == IS_NEW)
            bide_destroy(&f->running.root.frame); /* (on the loop it would start first) */
        else
            destroy_after(f, 0);
        check_that_it_is_gone(f, into % STATES != IS_NEW);
        assert_int_equal(count_pieces(&pool), pieces);
    }
}

/* A client that connects and talks as long as it gets answers. */
struct talker {
    bide_task task;
    fixture *fixture;
    bide_descriptor socket;
    bide_io_operation operation;
    char buffer[8];
    bide_spawned spawned;
};

bide_coroutine(talker_body)
{
    bide_begin(talker_body, struct talker * self);
    bide_descriptor_init_closed(&self->socket);
    bide_try(bide_connect(&self->operation, &self->socket, &self->fixture->address));
    do {
        bide_try(bide_send(&self->operation, &self->socket, "hello", 5));
        bide_try(bide_recv(&self->operation, &self->socket, self->buffer, sizeof self->buffer));
    } while (self->operation.count != 0);
    bide_finally();
    bide_close(&self->socket);
    bide_end();
}

static void begin_talker(fixture *f, struct talker *talker)
{
    talker->fixture = f;
    bide_spawn(&talker->spawned, f->world->context, bide_task_init(&talker->task, &talker_body));
}

static void end_talker(fixture *f, struct talker *talker)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &talker->spawned.ended)), 0);
}

struct watcher {
    bide_task task;
    fixture *fixture;
    bide_schedule_operation yield;
};

/* Destroys the server between the accept of a connection and the start of its coroutine. */
bide_coroutine(watcher_body)
{
    bide_begin(watcher_body, struct watcher * self);
    while (self->fixture->server.stats.accepted == echoes.begun)
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    bide_destroy(&self->fixture->running.root.frame);
    bide_end();
}

static void destroyed_before_a_connection_has_begun_it_leaves_nothing(void **state)
{
    static struct talker talker;
    fixture *f = &only;
    bide_server_options options = {
        .body = &echo_body, .size = sizeof *slots, .max_connections = 2, .slots = slots};
    for (int kind = 0; kind < OWNERS; kind++) {
        struct watcher watcher = {.fixture = f};
        serve_owned(f, state, &options, kind);
        turn(f);
        begin_talker(f, &talker);
        assert_int_equal(world_wait(f->world, bide_task_init(&watcher.task, &watcher_body)), 0);
        assert_int_equal(f->server.stats.accepted, 1);
        assert_int_equal(echoes.begun, 0);
        end_talker(f, &talker);
        check_that_it_is_gone(f, true);
    }
}

static void destroyed_at_any_moment_it_leaves_nothing(void **state)
{
    enum { TALKERS = 6, MOMENTS = 60 };
    static struct talker talkers[TALKERS];
    fixture *f = &only;
    bide_server_options options = {
        .body = &echo_body, .size = sizeof *slots, .max_connections = TALKERS - 1, .slots = slots};
    unsigned busy = 0;
    for (unsigned moment = 0; moment < MOMENTS; moment++) {
        serve_owned(f, state, &options, (int)moment % OWNERS);
        world_roughen(f->world, moment);
        for (int i = 0; i < TALKERS; i++)
            begin_talker(f, &talkers[i]);
        destroy_after(f, 5 * moment);
        busy += echoes.begun > 1;
        bide_close(&f->server.listener); /* (if it has not started) */
        for (int i = 0; i < TALKERS; i++)
            end_talker(f, &talkers[i]);
        check_that_it_is_gone(f, true);
    }
    printf("# %u of %u with several connections\n", busy, MOMENTS);
    assert_true(busy != 0);
}

/* ---- Failures of the system ---- */

enum { MANY = 200, DESCRIPTORS = 64 };

/*
 * Waits until a connection is closed. The served connections stay, so the server runs out of
 * descriptors.
 */
static void wait_for_a_refusal(const int *clients)
{
    struct pollfd wait[MANY];
    for (int i = 0; i < MANY; i++)
        wait[i] = (struct pollfd){.fd = clients[i], .events = POLLIN};
    while (poll(wait, MANY, -1) > 0) {
        for (int i = 0; i < MANY; i++) {
            char byte;
            if (wait[i].revents == 0)
                continue;
            if (recv(wait[i].fd, &byte, 1, MSG_PEEK) != 1)
                return;
            wait[i].fd = -1; /* it is served */
        }
    }
}

/* The exit status of the process with all clients: 0 if each was served. */
static int be_clients(const bide_address *address)
{
    static int clients[MANY];
    static bool served[MANY];
    struct rlimit limit = {1024, 1024};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
    setrlimit(RLIMIT_NOFILE, &limit);
    int left = MANY;
    while (left != 0) {
        for (int i = 0; i < MANY; i++) {
            clients[i] = -1;
            if (served[i])
                continue;
            clients[i] = socket(AF_INET, SOCK_STREAM, 0);
            if (clients[i] < 0 ||
                connect(clients[i], &address->any.generic, address->length) != 0 ||
                (send(clients[i], "x", 1, MSG_NOSIGNAL) != 1 && errno != EPIPE &&
                 errno != ECONNRESET))
                return 2;
        }
        if (left == MANY)
            wait_for_a_refusal(clients);
        for (int i = 0; i < MANY; i++) { /* all are open: many more than the server can have */
            char byte;
            if (clients[i] < 0)
                continue;
            if (recv(clients[i], &byte, 1, 0) == 1) {
                served[i] = true;
                left--;
            }
            close(clients[i]);
        }
    }
    return 0;
}

struct reaper {
    pid_t child;
    int status;
    bide_event ended;
};

static void *reap(void *argument)
{
    struct reaper *reaper = argument;
    waitpid(reaper->child, &reaper->status, 0);
    bide_event_set(&reaper->ended);
    return NULL;
}

static void two_hundred_clients_are_served_with_sixty_four_descriptors(void **state)
{
    (void)world_of_a_loop(world_of_the_system(state, "the clients are another process"));
    struct rlimit before, few;
    struct reaper reaper;
    pthread_t thread;
    bide_event_waiter wait;
    bide_loop_stats begun, ended;
    fixture *f = serve(state, SLOTS);
    turn(f);
    bide_event_init(&reaper.ended, false);
    reaper.child = fork();
    if (reaper.child == 0)
        _exit(be_clients(&f->address));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = DESCRIPTORS;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(pthread_create(&thread, NULL, reap, &reaper), 0);
    bide_loop_get_stats(f->world->loop, &begun);
    accepts.calls = 0;
    assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &reaper.ended)), 0);
    pthread_join(thread, NULL);
    turn(f);
    bide_loop_get_stats(f->world->loop, &ended);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(reaper.status, 0);

    const bide_server_stats *counts = bide_server_own_stats(&f->server);
    uint64_t came = counts->accepted + counts->refused;
    uint64_t operations = ended.started - begun.started - echoes.operations;
    printf("# accepted %u, refused %u, errors %u, pauses %u; %u accepts, %u system calls\n",
           (unsigned)counts->accepted, (unsigned)counts->refused, (unsigned)counts->errors,
           (unsigned)counts->pauses, (unsigned)operations, accepts.calls);
    assert_true(counts->accepted >= MANY);
    assert_true(echoes.max_live < DESCRIPTORS);
    assert_true(counts->pauses > 0); /* the limit was reached */
    /* of two operations, one accepted a connection or was followed by a pause */
    assert_true(operations <= 2 * (came + counts->pauses) + 2);
    assert_true(accepts.calls <= 2 * operations);
    shut_down_and_end(f);
}

static void errors_of_connections_are_skipped_and_lacks_waited_out(void **state)
{
    const int errors[] = {ECONNABORTED, EPROTO, ENETUNREACH, EPERM, ENOBUFS, ENOMEM, 0};
    bide_server_options options = {.body = &echo_body,
                                   .size = sizeof *slots,
                                   .max_connections = SLOTS,
                                   .slots = slots,
                                   .accept_retry_delay = MILLISECOND};
    fixture *f = &only;
    if (!world_is_by_readiness()) {
        (void)world_of(state);
        return; /* a ring makes no call that could fail here */
    }
    serve_with(f, state, &options);
    memcpy(accepts.errors, errors, sizeof errors);
    begin_client(f, 0);
    talk(f, 0);
    assert_int_equal(f->server.stats.errors, 6);
    assert_int_equal(f->server.stats.pauses, 2);
    assert_int_equal(f->server.stats.accepted, 1);
    shut_down_and_end(f);
}

/*
 * A descriptor for the connection exists only because the reserve was closed. Then another becomes
 * free.
 */
static void with_the_reserve_a_connection_is_kept_if_it_can_be_had_again(void **state)
{
    fixture *f = &only;
    bide_server_options options = {
        .body = &echo_body, .size = sizeof *slots, .max_connections = SLOTS, .slots = slots};
    if (!world_is_by_readiness()) {
        (void)world_of(state);
        return;
    }
    serve_with(f, state, &options);
    accepts.errors[0] = EMFILE;
    begin_client(f, 0);
    talk(f, 0);
    assert_int_equal(f->server.stats.accepted, 1);
    assert_int_equal(f->server.stats.refused, 0);
    assert_int_equal(f->server.stats.pauses, 0);
    shut_down_and_end(f);
}

/* ---- Fairness ---- */

struct bystander {
    bide_task task;
    bide_server *server;
    bide_schedule_operation yield;
    uint64_t seen;
    uint64_t max; /* connections that were accepted between two turns */
};

bide_coroutine(bystander_body)
{
    bide_begin(bystander_body, struct bystander * self);
    while (self->server->stats.accepted < 300u) {
        uint64_t come = self->server->stats.accepted - self->seen;
        if (come > self->max)
            self->max = come;
        self->seen += come;
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    }
    bide_end();
}

/* All connections are pending when the server starts. */
static void a_storm_of_connections_leaves_others_their_turns(void **state)
{
    enum { STORM = 300 };
    static bide_descriptor clients[STORM];
    struct bystander bystander = {.server = &only.server};
    fixture *f = serve(state, SLOTS);
    bide_server_shut_down(&f->server, 0); /* (a listener is needed before it runs) */
    assert_int_equal(server_end(f), 0);
    bide_server_options options = f->server.options;
    assert_int_equal(bide_server_init(&f->server, &options), 0);
    memset(&echoes, 0, sizeof echoes);
    assert_int_equal(world_wait(f->world, bide_listen(&f->operation, &f->server.listener,
                                                      &f->address, 2 * STORM)),
                     0);
    for (int i = 0; i < STORM; i++)
        world_connect(f->world, &clients[i], &f->address);
    bide_spawn(&f->running, f->world->context, bide_server_run(&f->server));
    assert_int_equal(world_wait(f->world, bide_task_init(&bystander.task, &bystander_body)), 0);
    printf("# %u at a turn\n", (unsigned)bystander.max);
    assert_in_range(bystander.max, 1, STORM / 2);
    for (int i = 0; i < STORM; i++)
        bide_close(&clients[i]);
    shut_down_and_end(f);
}

/* ---- One server a thread ---- */

enum { THREADS = 3, SHARED = 60 };

struct shard {
    pthread_t thread;
    world *world;
    const bide_address *address;
    bide_address bound;
    bide_event listening;
    bide_server server;
    int status;
};

struct shard_task {
    bide_task task;
    struct shard *shard;
    bide_io_operation listen;
};

bide_coroutine(shard_body)
{
    bide_begin(shard_body, struct shard_task * self);
    bide_try(bide_listen_with(&self->listen, &self->shard->server.listener, self->shard->address,
                              SHARED, BIDE_LISTEN_REUSE_PORT));
    bide_local_address(&self->shard->server.listener, &self->shard->bound);
    bide_event_set(&self->shard->listening);
    bide_try(bide_server_run(&self->shard->server));
    bide_end();
}

struct quiet {
    bide_connection connection;
    bide_io_operation operation;
    char buffer[8];
};

bide_coroutine(quiet_body)
{
    bide_begin(quiet_body, struct quiet * self);
    bide_try(bide_recv(&self->operation, &self->connection.socket, self->buffer, 8));
    bide_try(bide_send(&self->operation, &self->connection.socket, self->buffer, 1));
    bide_end();
}

static void *run_shard(void *argument)
{
    struct shard *shard = argument;
    struct shard_task task = {.shard = shard};
    bide_loop *loop;
    bide_loop_options options = {.kind = world_kind()};
    shard->status = bide_loop_create(&loop, &options);
    if (shard->status < 0)
        return NULL;
    shard->status = bide_loop_wait(loop, bide_task_init(&task.task, &shard_body));
    bide_loop_destroy(loop);
    return NULL;
}

static void several_threads_share_an_address(void **state)
{
    static struct shard shards[THREADS];
    static struct quiet memory[THREADS][SHARED];
    bide_address address;
    (void)world_of_the_system(state, "needs one loop a thread");
    bide_address_ip(&address, "127.0.0.1", 0);
    for (int i = 0; i < THREADS; i++) {
        bide_server_options options = {.body = &quiet_body,
                                       .size = sizeof **memory,
                                       .max_connections = SHARED,
                                       .slots = memory[i]};
        assert_int_equal(bide_server_init(&shards[i].server, &options), 0);
        shards[i].address = i == 0 ? &address : &shards[0].bound;
        bide_event_init(&shards[i].listening, false);
        assert_int_equal(pthread_create(&shards[i].thread, NULL, run_shard, &shards[i]), 0);
        assert_int_equal(bide_event_wait_blocking(&shards[i].listening, BIDE_FOREVER), 0);
    }
    for (int i = 0; i < SHARED; i++) {
        char byte = 'x';
        int client = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(client, &shards[0].bound.any.generic, shards[0].bound.length), 0);
        assert_int_equal(send(client, &byte, 1, 0), 1);
        assert_int_equal(recv(client, &byte, 1, 0), 1);
        close(client);
    }
    uint64_t accepted = 0;
    for (int i = 0; i < THREADS; i++) {
        bide_server_shut_down(&shards[i].server, BIDE_FOREVER);
        pthread_join(shards[i].thread, NULL);
        assert_int_equal(shards[i].status, 0);
        accepted += shards[i].server.stats.accepted;
    }
    assert_int_equal(accepted, SHARED);
}

/* (each loop keeps a descriptor for the next loop that wakes it) */
static int end_without_counting(void **state)
{
    world *world = *state;
    if (world->loop == NULL)
        return world_end(state);
    bide_loop_destroy(world->loop);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(each_client_is_served_and_counted),
        world_test(no_more_than_the_bound_are_accepted),
        world_test(the_number_of_connections_can_be_changed),
        world_test(a_lower_number_counts_from_the_next_accept_on),
        world_test(an_error_of_a_connection_ends_that_alone),
        cmocka_unit_test(invalid_options_are_rejected),
        world_test(an_invalid_listener_is_reported),
        world_test(memory_comes_from_an_allocator_and_its_lack_is_waited_out),
        world_test(memory_that_was_given_back_is_kept_as_far_as_was_said_until_the_end),
        world_test(shutting_down_waits_for_connections_that_end_in_time),
        world_test(after_the_deadline_the_rest_is_cancelled),
        world_test(a_second_deadline_counts),
        world_test(it_may_be_shut_down_before_it_runs_and_while_it_is_full),
        world_test(another_thread_may_shut_it_down),
        world_test(a_request_to_stop_ends_it_with_its_connections),
        world_test(destroyed_in_any_state_it_leaves_nothing),
        world_test(destroyed_before_a_connection_has_begun_it_leaves_nothing),
        world_test(destroyed_at_any_moment_it_leaves_nothing),
        world_test(two_hundred_clients_are_served_with_sixty_four_descriptors),
        world_test(errors_of_connections_are_skipped_and_lacks_waited_out),
        world_test(with_the_reserve_a_connection_is_kept_if_it_can_be_had_again),
        world_test(a_storm_of_connections_leaves_others_their_turns),
        cmocka_unit_test_setup_teardown(several_threads_share_an_address, world_begin,
                                        end_without_counting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
