/*
 * Pools of connections: connections are reused, waited for in order, checked, and closed after being idle
 * for too long. However a wait ends, it leaves the pool as it was.
 */
#define _GNU_SOURCE
#include "../io/world.h"

#include <errno.h>
#include <sys/socket.h>

#define MILLISECOND UINT64_C(1000000)

enum { MOST = 2, SLOTS = 16, TAKERS = 4 };

/* ---- The server: answers, and closes on request ---- */

struct client {
    bide_connection connection;
    bide_io_operation operation;
    char byte;
};

bide_coroutine(client_body)
{
    bide_begin(client_body, struct client * self);
    for (;;) {
        bide_try(bide_recv(&self->operation, &self->connection.socket, &self->byte, 1));
        if (self->operation.count == 0 || self->byte == 'q')
            break;
        bide_try(bide_send(&self->operation, &self->connection.socket, "ab",
                           self->byte == 'm' ? 2 : 1)); /* 'm' requests more than one byte */
    }
    bide_end();
}

struct taker {
    bide_task task;
    bide_connection_pool *pool;
    bide_connection_acquire_operation taking;
    bide_with_deadline_operation limited;
    uint64_t deadline; /* or 0 */
    int status;        /* 1: pending */
    unsigned *order;
    unsigned place;
    bide_stop_source stop;
    bide_context context;
    bide_spawned spawned;
};

static struct fixture {
    world *world;
    bide_server server;
    bide_spawned running;
    struct client slots[SLOTS];
    bide_connection_pool pool;
    bide_pooled_connection connections[MOST];
    bide_address address;
    bide_io_operation operation;
    struct taker takers[TAKERS];
    unsigned order;
} only;

static struct fixture *begin(void **state, uint64_t idle)
{
    struct fixture *f = &only;
    memset(f, 0, sizeof *f);
    f->world = world_of(state);
    bide_server_options options = {.body = &client_body,
                                   .size = sizeof *f->slots,
                                   .max_connections = SLOTS,
                                   .slots = f->slots};
    assert_int_equal(bide_server_init(&f->server, &options), 0);
    assert_int_equal(bide_address_ip(&f->address, "127.0.0.1", 0), 0);
    assert_int_equal(
        world_wait(f->world, bide_listen(&f->operation, &f->server.listener, &f->address, SLOTS)),
        0);
    assert_int_equal(bide_local_address(&f->server.listener, &f->address), 0);
    bide_spawn(&f->running, f->world->context, bide_server_run(&f->server));
    bide_connection_pool_init(&f->pool, &f->address, f->connections, MOST, idle);
    return f;
}

static void end_server(struct fixture *f)
{
    bide_event_waiter wait;
    bide_server_shut_down(&f->server, 0);
    assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &f->running.ended)), 0);
    assert_int_equal(f->running.root.status, 0);
}

static void end(struct fixture *f)
{
    bide_event_waiter wait;
    bide_connection_pool_close(&f->pool);
    bide_connection_pool_close(&f->pool);
    assert_int_equal(world_wait(f->world, bide_connection_pool_join(&wait, &f->pool)), 0);
    assert_int_equal(f->pool.open, 0);
    assert_false(f->pool.is_closing_idle);
    size_t unused = 0;
    for (bide_pooled_connection *at = f->pool.unused; at != NULL; at = at->older)
        unused++;
    assert_int_equal(unused, MOST);
    if (!bide_event_is_set(&f->running.ended))
        end_server(f);
}

/* Runs until nothing more becomes ready for a while. */
static void turn(struct fixture *f)
{
    bide_sleep sleep;
    assert_int_equal(world_wait(f->world, bide_sleep_for(&sleep, 5 * MILLISECOND)), 0);
}

/* ---- Takers ---- */

bide_coroutine(taker_body)
{
    bide_begin(taker_body, struct taker * self);
    if (self->deadline != 0)
        bide_await_status(self->status, bide_with_deadline(&self->limited, self->deadline,
                                                           bide_connection_pool_acquire(
                                                               &self->taking, self->pool)));
    else
        bide_await_status(self->status, bide_connection_pool_acquire(&self->taking, self->pool));
    self->place = ++*self->order;
    bide_end();
}

static bide_awaiter *taker_init(struct fixture *f, int i)
{
    struct taker *taker = &f->takers[i];
    taker->pool = &f->pool;
    taker->deadline = 0;
    taker->status = 1;
    taker->order = &f->order;
    return bide_task_init(&taker->task, &taker_body);
}

/* Starts taking a connection, with a stop source of its own. */
static void begin_taking(struct fixture *f, int i)
{
    struct taker *taker = &f->takers[i];
    bide_stop_source_init(&taker->stop);
    taker->context = *f->world->context;
    taker->context.stop = &taker->stop;
    bide_spawn(&taker->spawned, &taker->context, taker_init(f, i));
}

static int wait_for(struct fixture *f, int i)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &f->takers[i].spawned.ended)), 0);
    return f->takers[i].status;
}

static bide_pooled_connection *take(struct fixture *f, int i)
{
    begin_taking(f, i);
    assert_int_equal(wait_for(f, i), 0);
    return f->takers[i].taking.connection;
}

/* One exchange: sends a byte and waits for one. */
static void talk(struct fixture *f, bide_pooled_connection *connection, char what)
{
    char byte = 0;
    assert_int_equal(world_wait(f->world, bide_send(&f->operation, &connection->socket, &what, 1)),
                     0);
    if (what == 'q')
        return;
    assert_int_equal(world_wait(f->world, bide_recv(&f->operation, &connection->socket, &byte, 1)),
                     0);
    assert_int_equal(byte, 'a');
}

struct giver {
    bide_task task;
    bide_pooled_connection *connection;
    bool reusable;
};

bide_coroutine(giver_body)
{
    bide_begin(giver_body, struct giver * self);
    bide_connection_pool_release(self->connection, self->reusable);
    bide_end();
}

static void give(struct fixture *f, bide_pooled_connection *connection, bool reusable)
{
    struct giver giver = {.connection = connection, .reusable = reusable};
    assert_int_equal(world_wait(f->world, bide_task_init(&giver.task, &giver_body)), 0);
}

/* ---- The tests ---- */

static void a_connection_is_used_again(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    for (int i = 0; i < 5; i++) {
        bide_pooled_connection *connection = take(f, 0);
        assert_int_equal(connection->was_idle, i != 0);
        talk(f, connection, 'x');
        give(f, connection, true);
    }
    assert_int_equal(f->server.stats.accepted, 1);
    assert_int_equal(f->pool.open, 1);
    end(f);
}

static void one_that_is_not_to_be_used_again_is_closed(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    bide_pooled_connection *connection = take(f, 0);
    talk(f, connection, 'x');
    give(f, connection, false);
    assert_int_equal(f->pool.open, 0);
    connection = take(f, 0);
    assert_false(connection->was_idle);
    bide_close(&connection->socket); /* its user has closed it */
    give(f, connection, true);
    assert_int_equal(f->pool.open, 0);
    end(f);
}

static unsigned told;

static void note_closing(bide_pooled_connection *connection)
{
    assert_true(bide_descriptor_is_open(&connection->socket));
    if (told++ == 0)
        bide_close(&connection->socket); /* the user may close it */
}

/* The user learns of connections that are returned broken, found broken, or idle at the end. */
static void the_user_learns_of_each_closed_connection(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    told = 0;
    f->pool.closing = note_closing;
    bide_pooled_connection *connection = take(f, 0);
    talk(f, connection, 'x');
    give(f, connection, true);
    connection = take(f, 0);
    assert_int_equal(told, 0);
    give(f, connection, false);
    assert_int_equal(told, 1);
    connection = take(f, 0);
    talk(f, connection, 'm');
    give(f, connection, true);
    connection = take(f, 0);
    assert_int_equal(told, 2);
    talk(f, connection, 'x');
    give(f, connection, true);
    end(f);
    assert_int_equal(told, 3);
}

static struct opener {
    bide_task task;
    bide_pooled_connection *connection;
    bide_io_operation operation;
    bide_event_waiter wait;
    bide_event goes;
    int status;
} opener;

/* Connects, and waits until the test goes on. */
bide_coroutine(opener_body)
{
    bide_begin(opener_body, struct opener * self);
    bide_try(bide_connect(&self->operation, &self->connection->socket, &only.address));
    bide_try(bide_event_wait(&self->wait, &self->goes));
    bide_return(self->status);
    bide_end();
}

static bide_awaiter *open_by_user(bide_connection_acquire_operation *taking,
                                  bide_pooled_connection *connection)
{
    assert_ptr_equal(taking->pool, &only.pool);
    opener.connection = connection;
    return bide_task_init(&opener.task, &opener_body);
}

static unsigned closed;

static void note_closed(bide_pooled_connection *connection)
{
    (void)connection;
    closed++;
}

static void the_user_may_open_connections(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    closed = 0;
    f->pool.connect = open_by_user;
    f->pool.closing = note_closed;
    bide_event_init(&opener.goes, true);
    opener.status = 0;
    bide_pooled_connection *connection = take(f, 0);
    assert_false(connection->was_idle);
    talk(f, connection, 'x');
    give(f, connection, true);
    connection = take(f, 0);
    assert_true(connection->was_idle);
    give(f, connection, false);
    assert_int_equal(closed, 1);

    opener.status = -EPROTO; /* after it has opened the socket */
    begin_taking(f, 0);
    assert_int_equal(wait_for(f, 0), -EPROTO);
    assert_null(f->takers[0].taking.connection);
    assert_int_equal(closed, 2);

    bide_event_reset(&opener.goes);
    for (int is_destroyed = 0; is_destroyed < 2; is_destroyed++) {
        if (is_destroyed == 0) {
            begin_taking(f, 0);
        } else {
            (void)taker_init(f, 0);
            bide_start(&f->takers[0].task.frame, &taker_body, f->world->context);
            bide_resume(&f->takers[0].task.frame);
        }
        while (opener.connection == NULL || !bide_descriptor_is_open(&opener.connection->socket))
            turn(f);
        if (is_destroyed == 0) {
            bide_stop_request(&f->takers[0].stop);
            assert_int_equal(wait_for(f, 0), -ECANCELED);
        } else {
            bide_destroy(&f->takers[0].task.frame);
        }
        assert_int_equal(closed, 3 + is_destroyed);
        assert_false(bide_descriptor_is_open(&opener.connection->socket));
        assert_int_equal(f->pool.open, 0);
        assert_int_equal(f->pool.taken, 0);
    }
    end(f);
}

static void takers_wait_in_order_at_the_limit(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    bide_pooled_connection *one = take(f, 0);
    bide_pooled_connection *other = take(f, 1);
    assert_ptr_not_equal(one, other);
    begin_taking(f, 2);
    begin_taking(f, 3);
    turn(f);
    assert_int_equal(f->takers[2].status, 1);
    give(f, one, true);
    assert_int_equal(wait_for(f, 2), 0);
    assert_ptr_equal(f->takers[2].taking.connection, one);
    assert_int_equal(f->takers[3].status, 1);
    give(f, other, false); /* the next take opens another */
    assert_int_equal(wait_for(f, 3), 0);
    assert_int_equal(f->takers[2].place, 3);
    assert_int_equal(f->takers[3].place, 4);
    give(f, f->takers[2].taking.connection, true);
    give(f, f->takers[3].taking.connection, true);
    turn(f);
    assert_int_equal(f->server.stats.accepted, 3);
    end(f);
}

static void a_wait_that_ends_early_passes_its_place_on(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    bide_pooled_connection *one = take(f, 0);
    bide_pooled_connection *other = take(f, 1);
    bide_awaiter *limited = taker_init(f, 2);
    f->takers[2].deadline = world_now(f->world) + 2 * MILLISECOND;
    assert_int_equal(world_wait(f->world, limited), 0);
    assert_int_equal(f->takers[2].status, -ETIMEDOUT);
    begin_taking(f, 2);
    begin_taking(f, 3);
    turn(f);
    bide_stop_request(&f->takers[2].stop);
    assert_int_equal(wait_for(f, 2), -ECANCELED);
    give(f, one, true);
    assert_int_equal(wait_for(f, 3), 0);
    give(f, one, true);
    give(f, other, true);
    end(f);
}

static void one_that_the_other_end_has_closed_is_not_given_out(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    bide_pooled_connection *connection = take(f, 0);
    talk(f, connection, 'q');
    give(f, connection, true);
    while (f->server.stats.live != 0)
        turn(f);
    connection = take(f, 0);
    assert_false(connection->was_idle);
    talk(f, connection, 'x');
    give(f, connection, true);
    end(f);
}

static void a_connection_with_unexpected_input_is_not_handed_out(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    bide_pooled_connection *connection = take(f, 0);
    talk(f, connection, 'm');
    give(f, connection, true);
    connection = take(f, 0);
    assert_false(connection->was_idle);
    talk(f, connection, 'x');
    give(f, connection, true);
    end(f);
}

static void idle_connections_are_closed_after_their_timeout(void **state)
{
    struct fixture *f = begin(state, 20 * MILLISECOND);
    bide_pooled_connection *one = take(f, 0);
    bide_pooled_connection *other = take(f, 1);
    talk(f, one, 'x');
    talk(f, other, 'x');
    assert_int_equal(f->server.stats.live, 2);
    uint64_t given = world_now(f->world);
    give(f, one, true);
    give(f, other, true);
    while (f->server.stats.live != 0)
        turn(f);
    assert_true(world_now(f->world) - given >= 20 * MILLISECOND);
    assert_int_equal(f->pool.open, 0);
    assert_false(f->pool.is_closing_idle);
    one = take(f, 0); /* once more */
    assert_false(one->was_idle);
    give(f, one, true);
    end(f);
}

static void a_connect_that_fails_gives_its_place_back(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    end_server(f);
    for (int i = 0; i < 2 * MOST; i++) {
        begin_taking(f, 0);
        assert_int_equal(wait_for(f, 0), -ECONNREFUSED);
        assert_null(f->takers[0].taking.connection);
    }
    assert_int_equal(f->pool.open, 0);
    end(f);
}

static void closing_ends_waits_and_later_closes_taken_connections(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    bide_event_waiter wait;
    bide_with_deadline_operation limited;
    bide_pooled_connection *one = take(f, 0);
    bide_pooled_connection *other = take(f, 1);
    begin_taking(f, 2);
    turn(f);
    give(f, other, true);
    assert_int_equal(wait_for(f, 2), 0);
    begin_taking(f, 3);
    turn(f);
    bide_connection_pool_close(&f->pool);
    assert_int_equal(wait_for(f, 3), -EPIPE);
    begin_taking(f, 3);
    assert_int_equal(wait_for(f, 3), -EPIPE);
    assert_int_equal(
        world_wait(f->world, bide_with_deadline(&limited, world_now(f->world) + MILLISECOND,
                                                bide_connection_pool_join(&wait, &f->pool))),
        -ETIMEDOUT);
    talk(f, one, 'x'); /* it still works */
    give(f, one, true);
    assert_int_equal(f->pool.open, 1);
    give(f, f->takers[2].taking.connection, true);
    end(f);
}

static void closing_ends_the_closer_with_the_idle(void **state)
{
    struct fixture *f = begin(state, 3600000 * MILLISECOND);
    bide_pooled_connection *one = take(f, 0);
    bide_pooled_connection *other = take(f, 1);
    give(f, one, true);
    give(f, other, true);
    assert_true(f->pool.is_closing_idle);
    end(f);
}

static void destroyed_takers_leave_nothing_behind(void **state)
{
    struct fixture *f = begin(state, BIDE_FOREVER);
    bide_pooled_connection *one = take(f, 0);
    bide_pooled_connection *other = take(f, 1);
    bide_await_later(taker_init(f, 2)); /* a waiter in the queue */
    bide_start(&f->takers[2].task.frame, &taker_body, f->world->context);
    bide_resume(&f->takers[2].task.frame);
    bide_destroy(&f->takers[2].task.frame);
    give(f, one, false);
    give(f, other, false);
    bide_await_later(taker_init(f, 2)); /* behind a deadline, while connecting */
    f->takers[2].deadline = world_now(f->world) + 3600000 * MILLISECOND;
    bide_start(&f->takers[2].task.frame, &taker_body, f->world->context);
    bide_resume(&f->takers[2].task.frame);
    bide_destroy(&f->takers[2].task.frame);
    assert_int_equal(f->pool.taken, 0);
    one = take(f, 0);
    other = take(f, 1);
    give(f, one, true);
    give(f, other, true);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_connection_is_used_again),
        world_test(one_that_is_not_to_be_used_again_is_closed),
        world_test(the_user_learns_of_each_closed_connection),
        world_test(the_user_may_open_connections),
        world_test(takers_wait_in_order_at_the_limit),
        world_test(a_wait_that_ends_early_passes_its_place_on),
        world_test(one_that_the_other_end_has_closed_is_not_given_out),
        world_test(a_connection_with_unexpected_input_is_not_handed_out),
        world_test(idle_connections_are_closed_after_their_timeout),
        world_test(a_connect_that_fails_gives_its_place_back),
        world_test(closing_ends_waits_and_later_closes_taken_connections),
        world_test(closing_ends_the_closer_with_the_idle),
        world_test(destroyed_takers_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
