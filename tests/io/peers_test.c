/*
 * Misbehaving peers, alone and in a crowd: peers that are slow, say nothing, half-close, reset, vanish
 * before they are accepted, or read in pieces. A server answers each with the requested number of bytes.
 * A peer that stays gets a complete answer. A peer that vanishes ends its own connection only. BIDE_SOAK is
 * the number of seconds for which the crowd stays; without it the number of peers is fixed.
 */
#define _GNU_SOURCE
#include "world.h"

#include <errno.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SLOTS = 40,
    CROWD = 24,
    HEAD = 4,        /* a request: the number of bytes */
    LARGE = 3 << 20, /* more than the sockets can hold */
    USUAL = 500,
};

/* ---- The server: for each number, so many bytes ---- */

struct client {
    bide_connection connection;
    bide_io_operation operation;
    unsigned char head[HEAD];
    unsigned got;
    size_t left;
};

static unsigned char pattern[65536];

static struct {
    unsigned asked; /* complete requests */
    unsigned cut;   /* connections that ended within a request */
} served;

bide_coroutine(client_body)
{
    bide_begin(client_body, struct client * self);
    for (;;) {
        for (self->got = 0; self->got < HEAD; self->got += (unsigned)self->operation.count) {
            bide_try(bide_recv(&self->operation, &self->connection.socket, self->head + self->got,
                               HEAD - self->got));
            if (self->operation.count == 0) {
                served.cut += self->got != 0;
                bide_return(0);
            }
        }
        served.asked++;
        self->left = (size_t)self->head[0] | (size_t)self->head[1] << 8 |
                     (size_t)self->head[2] << 16 | (size_t)self->head[3] << 24;
        while (self->left != 0) {
            bide_try(bide_send(&self->operation, &self->connection.socket, pattern,
                               self->left < sizeof pattern ? self->left : sizeof pattern));
            self->left -= self->operation.count;
        }
    }
    bide_end();
}

/* ---- The peers ---- */

enum { POLITE, SLOW, HALF_CLOSING, READS_IN_PIECES, KINDS_THAT_END_WELL,
       SILENT = KINDS_THAT_END_WELL, RESETS_AT_ONCE, RESETS_IN_ANSWER, LEAVES_IN_REQUEST, KINDS };

struct peer {
    bide_task task;
    struct fixture *fixture;
    bide_descriptor socket;
    bide_io_operation operation;
    bide_schedule_operation turn;
    bide_spawned spawned;
    unsigned kind, turns, i;
    size_t size, got;
    unsigned char head[HEAD];
    unsigned char buffer[8192];
    bool is_whole;
};

typedef struct fixture {
    world *world;
    bide_server server;
    bide_spawned running;
    bide_address address;
    struct client slots[SLOTS];
    struct peer peers[CROWD];
    uint64_t random;
    uint64_t until; /* 0: a fixed number */
    uint32_t left;
    unsigned ended[KINDS];
} fixture;

static uint32_t draw(fixture *f, uint32_t below)
{
    return (uint32_t)(testing_random(&f->random) >> 33) % below;
}

/* Makes closing the socket a reset. */
static void make_abrupt(struct peer *self)
{
    struct linger none = {1, 0};
    assert_int_equal(
        setsockopt(bide_descriptor_fd(&self->socket), SOL_SOCKET, SO_LINGER, &none, sizeof none),
        0);
}

static void prepare(struct peer *self, unsigned kind)
{
    fixture *f = self->fixture;
    self->kind = kind;
    self->got = 0;
    self->is_whole = false;
    self->size = draw(f, 4) == 0 ? 100000 + draw(f, 200000) : 1 + draw(f, 2000);
    if (kind == RESETS_IN_ANSWER || kind == READS_IN_PIECES)
        self->size = LARGE;
    for (int i = 0; i < HEAD; i++)
        self->head[i] = (unsigned char)(self->size >> (8 * i));
    bide_descriptor_init_closed(&self->socket);
}

/* Compares the received bytes with the sent ones. */
static void check_bytes(struct peer *self)
{
    for (size_t i = 0; i < self->operation.count; i++) {
        size_t at = (self->got + i) % sizeof pattern;
        assert_int_equal(self->buffer[i], pattern[at]);
    }
    self->got += self->operation.count;
}

bide_coroutine(peer_body)
{
    bide_begin(peer_body, struct peer * self);
    bide_try(bide_connect(&self->operation, &self->socket, &self->fixture->address));
    if (self->kind == RESETS_AT_ONCE) {
        make_abrupt(self);
        bide_return(0);
    }
    if (self->kind == SILENT) { /* until the server or the test ends it */
        bide_await(bide_recv(&self->operation, &self->socket, self->buffer, 1));
        bide_return(0);
    }
    if (self->kind == LEAVES_IN_REQUEST) {
        bide_try(bide_send(&self->operation, &self->socket, self->head, 1 + draw(self->fixture, 3)));
        if (draw(self->fixture, 2) == 0)
            make_abrupt(self);
        bide_return(0);
    }
    if (self->kind == SLOW) {
        for (self->i = 0; self->i < HEAD; self->i++) {
            bide_try(bide_send(&self->operation, &self->socket, &self->head[self->i], 1));
            for (self->turns = draw(self->fixture, 20); self->turns != 0; self->turns--)
                bide_await(bide_schedule(&self->turn, self->fixture->world->context->scheduler));
        }
    } else {
        bide_try(bide_send(&self->operation, &self->socket, self->head, HEAD));
    }
    if (self->kind == HALF_CLOSING)
        assert_int_equal(bide_shutdown(&self->socket, BIDE_HALF_OUTPUT), 0);
    while (self->got < self->size) {
        size_t max = self->kind == READS_IN_PIECES ? sizeof self->buffer
                                                    : 1 + draw(self->fixture, sizeof self->buffer);
        bide_try(bide_recv(&self->operation, &self->socket, self->buffer, max));
        if (self->operation.count == 0)
            bide_return(-EPIPE);
        check_bytes(self);
        if (self->kind == RESETS_IN_ANSWER && self->got > LARGE / 4) {
            make_abrupt(self);
            bide_return(0);
        }
    }
    if (self->kind == HALF_CLOSING) {
        bide_try(bide_recv(&self->operation, &self->socket, self->buffer, 1));
        assert_int_equal(self->operation.count, 0);
    }
    self->is_whole = self->got == self->size;
    bide_finally();
    bide_close(&self->socket);
    self->fixture->ended[self->kind]++;
    bide_end();
}

/* ---- Fixtures ---- */

static fixture *begin_fixture(world *world)
{
    fixture *f = calloc(1, sizeof *f);
    bide_server_options options = {
        .body = &client_body, .size = sizeof *f->slots, .max_connections = SLOTS, .slots = f->slots};
    bide_io_operation listen;
    assert_non_null(f);
    f->world = world;
    f->random = testing_seed();
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (unsigned char)(i * 7 + i / 256);
    memset(&served, 0, sizeof served);
    assert_int_equal(bide_server_init(&f->server, &options), 0);
    assert_int_equal(bide_address_ip(&f->address, "127.0.0.1", 0), 0);
    assert_int_equal(
        world_wait(world, bide_listen(&listen, &f->server.listener, &f->address, 128)), 0);
    assert_int_equal(bide_local_address(&f->server.listener, &f->address), 0);
    bide_spawn(&f->running, world->context, bide_server_run(&f->server));
    for (int i = 0; i < CROWD; i++)
        f->peers[i].fixture = f;
    return f;
}

/* Requests a stop of the remaining connections. */
static void end_fixture(fixture *f)
{
    bide_event_waiter wait;
    bide_server_shut_down(&f->server, 0);
    assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &f->running.ended)), 0);
    assert_int_equal(bide_server_own_stats(&f->server)->live, 0);
    assert_int_equal(bide_server_own_stats(&f->server)->errors, 0);
    free(f);
}

static void start_peer(struct peer *self, unsigned kind)
{
    prepare(self, kind);
    bide_spawn(&self->spawned, self->fixture->world->context,
               bide_task_init(&self->task, &peer_body));
}

static void end_peer(struct peer *self)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(self->fixture->world, bide_event_wait(&wait, &self->spawned.ended)),
                     0);
}

/* ---- Each kind alone ---- */

static void each_that_stays_gets_all_of_it(void **state)
{
    for (unsigned kind = 0; kind < KINDS_THAT_END_WELL; kind++) {
        fixture *f = begin_fixture(world_of(state));
        for (int i = 0; i < 3; i++) {
            start_peer(&f->peers[0], kind);
            end_peer(&f->peers[0]);
            assert_true(f->peers[0].is_whole);
        }
        assert_int_equal(served.asked, 3);
        end_fixture(f);
    }
}

static void each_that_leaves_ends_its_own_connection(void **state)
{
    for (unsigned kind = KINDS_THAT_END_WELL; kind < KINDS; kind++) {
        fixture *f = begin_fixture(world_of(state));
        for (int i = 0; i < 3; i++)
            start_peer(&f->peers[i], kind);
        for (int i = 0; i < 3 && kind != SILENT; i++)
            end_peer(&f->peers[i]);
        start_peer(&f->peers[4], POLITE); /* it is served nevertheless */
        end_peer(&f->peers[4]);
        assert_true(f->peers[4].is_whole);
        if (kind == SILENT) {
            bide_server_shut_down(&f->server, 0);
            for (int i = 0; i < 3; i++)
                end_peer(&f->peers[i]);
        }
        end_fixture(f);
    }
}

/* ---- All of them at once ---- */

struct crowd_member {
    bide_task task;
    fixture *fixture;
    struct peer *peer;
    bide_event_waiter wait;
    bide_spawned spawned;
};

static bool goes_on(fixture *f)
{
    if (f->until != 0)
        return bide_platform.now() < f->until;
    if (f->left == 0)
        return false;
    f->left--;
    return true;
}

/* Runs one peer after another; its own stop ends a silent one. */
bide_coroutine(member_body)
{
    bide_begin(member_body, struct crowd_member * self);
    while (goes_on(self->fixture)) {
        unsigned kind = draw(self->fixture, KINDS);
        start_peer(self->peer, kind == SILENT ? (unsigned)POLITE : kind);
        bide_await(bide_event_wait(&self->wait, &self->peer->spawned.ended));
        if (self->peer->kind < KINDS_THAT_END_WELL)
            assert_true(self->peer->is_whole);
    }
    bide_end();
}

static void a_crowd_of_all_kinds(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    struct crowd_member members[CROWD / 2];
    const char *seconds = getenv("BIDE_SOAK");
    int before = 0;
    size_t memory = 0;
    f->until = seconds != NULL ? bide_platform.now() + strtoull(seconds, NULL, 10) * 1000000000 : 0;
    f->left = rounds_of(USUAL);
    for (int i = CROWD / 2; i < CROWD; i++) /* half of the crowd stays and says nothing */
        start_peer(&f->peers[i], SILENT);
    for (int round = 0; round < 2; round++) { /* the first round warms up: it may allocate memory that is kept */
        uint32_t left = f->left;
        uint64_t until = f->until;
        if (round == 0) {
            f->left = CROWD;
            f->until = 0;
        }
        for (int i = 0; i < CROWD / 2; i++) {
            members[i] = (struct crowd_member){.fixture = f, .peer = &f->peers[i]};
            bide_spawn(&members[i].spawned, f->world->context,
                       bide_task_init(&members[i].task, &member_body));
        }
        for (int i = 0; i < CROWD / 2; i++) {
            bide_event_waiter wait;
            assert_int_equal(
                world_wait(f->world, bide_event_wait(&wait, &members[i].spawned.ended)), 0);
        }
        /* the server's side of disconnected peers */
        while (bide_server_own_stats(&f->server)->live > CROWD / 2) {
            bide_sleep pause;
            assert_int_equal(world_wait(f->world, bide_sleep_for(&pause, 1000000)), 0);
        }
        if (round == 0) {
            before = count_descriptors();
            memory = mallinfo2().uordblks;
            f->left = left;
            f->until = until;
        }
    }
    assert_int_equal(count_descriptors(), before);
    assert_in_range(mallinfo2().uordblks, 0, memory + 65536);
    bide_server_shut_down(&f->server, 0);
    for (int i = CROWD / 2; i < CROWD; i++)
        end_peer(&f->peers[i]);
    printf("# polite %u, slow %u, half closing %u, in pieces %u, reset %u and %u, left %u\n",
           f->ended[POLITE], f->ended[SLOW], f->ended[HALF_CLOSING], f->ended[READS_IN_PIECES],
           f->ended[RESETS_AT_ONCE], f->ended[RESETS_IN_ANSWER], f->ended[LEAVES_IN_REQUEST]);
    end_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(each_that_stays_gets_all_of_it),
        world_test(each_that_leaves_ends_its_own_connection),
        world_test(a_crowd_of_all_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
