/*
 * Completions race with every way to end an operation, at random. Actors receive, send, accept, connect and
 * poll on a few shared descriptors. They are cancelled by the loop and by another thread, have deadlines,
 * are destroyed, and have their descriptors closed. Afterwards nothing is in flight, no descriptor is left,
 * and each sent byte is counted once: by a receive, or in the socket.
 */
#define _GNU_SOURCE
#include "world.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PAIRS = 6,      /* of Unix sockets, and as many of TCP, on which bytes are counted */
    FRAGILE = 4,    /* pairs whose ends are closed and reopened. */
    ACTORS = 48,
    VICTIMS = 8,    /* actors that are destroyed while they wait */
    PIECE = 4096,   /* the maximum number of bytes at once */
    USUAL = 20000,  /* operations; multiplied by BIDE_ROUNDS */
};

typedef struct pair {
    bide_descriptor ends[2];
    uint64_t sent[2], received[2]; /* by each end */
} pair;

/* How an operation may be cancelled. */
enum { NOT_AT_ALL, STOPPED_BEFORE, STOPPED_INSIDE, STOPPED_OUTSIDE, DEADLINE, DEADLINE_AND_STOP, CUTS };

/* A request that another thread may make: the actor offers it, the thread takes it. */
enum { NOTHING, OFFERED, TAKEN, MADE };

typedef struct storm storm;

struct actor {
    bide_task task;
    storm *storm;
    bide_spawned spawned;
    bide_io_operation operation;
    bide_stop_source source;
    bide_with_stop_operation with_stop;
    bide_with_deadline_operation limited;
    bide_schedule_operation turn;
    bide_atomic(uint32_t) request;
    bide_descriptor fresh;
    bide_awaiter *wrapped;
    pair *pair;
    int end;
    int status;
    int cut;
    bool receives, waits;
    char buffer[PIECE];
};

struct storm {
    world *world;
    uint64_t random;
    uint32_t left;    /* operations that have not started */
    unsigned running; /* actors */
    pair pairs[2 * PAIRS];
    pair fragile[FRAGILE];
    bide_descriptor listener;
    bide_address address;
    struct actor actors[ACTORS];
    struct actor victims[VICTIMS];
    unsigned ends[4]; /* completed, cancelled, timed out, other. */
    bide_atomic(uint32_t) is_over;
};

static uint32_t draw(storm *s, uint32_t below)
{
    return (uint32_t)(testing_random(&s->random) >> 33) % below;
}

/* ---- Waits ---- */

static void open_tcp_pair(storm *s, pair *it)
{
    bide_io_operation accept;
    world_connect(s->world, &it->ends[0], &s->address);
    assert_int_equal(
        world_wait(s->world, bide_accept(&accept, &s->listener, &it->ends[1], NULL)), 0);
}

static void open_pair(storm *s, pair *it)
{
    bide_io_operation operation;
    assert_int_equal(
        world_wait(s->world, bide_socket_pair(&operation, &it->ends[0], &it->ends[1])), 0);
}

static void close_pair(pair *it)
{
    for (int i = 0; i < 2; i++)
        bide_close(&it->ends[i]);
}

/* ---- Actors ---- */

static bide_awaiter *move_bytes(struct actor *self, pair *it, bool receives)
{
    storm *s = self->storm;
    self->pair = it;
    self->end = (int)draw(s, 2);
    self->receives = receives;
    size_t size = 1 + draw(s, draw(s, 8) == 0 ? PIECE : 64);
    bide_descriptor *socket = &it->ends[self->end];
    if (receives)
        return bide_recv(&self->operation, socket, self->buffer, size);
    return it >= s->pairs + PAIRS && it < s->pairs + 2 * PAIRS && draw(s, 4) == 0
               ? bide_send_zero_copy(&self->operation, socket, self->buffer, size)
               : bide_send(&self->operation, socket, self->buffer, size);
}

static bide_awaiter *choose(struct actor *self, bool is_victim)
{
    storm *s = self->storm;
    uint32_t what = draw(s, 16);
    self->pair = NULL;
    bide_descriptor_init_closed(&self->fresh);
    if (what == 0)
        return bide_accept(&self->operation, &s->listener, &self->fresh, NULL);
    if (what == 1)
        return bide_connect(&self->operation, &self->fresh, &s->address);
    pair *fragile = &s->fragile[draw(s, FRAGILE)];
    if (what == 2)
        return bide_poll(&self->operation, &fragile->ends[draw(s, 2)], POLLIN);
    if (is_victim || what < 6)
        return move_bytes(self, fragile, draw(s, 2) == 0);
    return move_bytes(self, &s->pairs[draw(s, 2 * PAIRS)], draw(s, 2) == 0);
}

static void check_end(struct actor *self)
{
    storm *s = self->storm;
    size_t count = self->operation.count;
    switch (self->status) {
    case 0:
        s->ends[0]++;
        break;
    case -ECANCELED:
        s->ends[1]++;
        assert_true(self->cut != NOT_AT_ALL);
        break;
    case -ETIMEDOUT:
        s->ends[2]++;
        assert_true(self->cut == DEADLINE || self->cut == DEADLINE_AND_STOP);
        break;
    default: /* only if the descriptor is closed */
        s->ends[3]++;
        assert_true(self->pair == NULL || (self->pair >= s->fragile &&
                                           self->pair < s->fragile + FRAGILE));
        assert_true(self->status == -EPIPE || self->status == -ECONNRESET ||
                    self->status == -EBADF || self->status == -ECONNREFUSED);
        break;
    }
    if (self->pair != NULL)
        (self->receives ? self->pair->received : self->pair->sent)[self->end] += count;
    if (bide_descriptor_is_open(&self->fresh)) {
        assert_int_equal(self->status, 0);
        bide_close(&self->fresh);
    }
}

static bool is_offer_left(struct actor *self)
{
    uint32_t offered = OFFERED;
    return bide_atomic_compare_exchange(&self->request, &offered, NOTHING, acquire, relaxed) ||
           offered == NOTHING;
}

static bide_awaiter *wrap(struct actor *self, bide_awaiter *inner)
{
    storm *s = self->storm;
    self->cut = (int)draw(s, CUTS);
    if (self->cut == STOPPED_OUTSIDE && s->world->memory != NULL) /* a test loop has one thread */
        self->cut = STOPPED_INSIDE;
    bool has_deadline = self->cut == DEADLINE || self->cut == DEADLINE_AND_STOP;
    bide_stop_source_init(&self->source);
    if (has_deadline)
        inner = bide_with_deadline(&self->limited, world_now(s->world) + draw(s, 200000), inner);
    if (self->cut == NOT_AT_ALL) /* it needs an end: a deadline that the actor does not expect */
        return bide_with_deadline(&self->limited, world_now(s->world) + 2000000, inner);
    if (self->cut == DEADLINE)
        return inner;
    inner = bide_with_stop(&self->with_stop, &self->source, inner);
    if (self->cut == STOPPED_BEFORE)
        bide_stop_request(&self->source);
    /* release: partner is the thread's acquire */
    if ((self->cut == STOPPED_OUTSIDE || self->cut == DEADLINE_AND_STOP) && s->world->memory == NULL)
        bide_atomic_store(&self->request, OFFERED, release);
    return inner;
}

bide_coroutine(actor_body)
{
    bide_begin(actor_body, struct actor * self);
    while (self->storm->left > 0) {
        self->storm->left--;
        self->wrapped = wrap(self, choose(self, false));
        self->waits = true;
        bide_await_status(self->status, self->wrapped);
        self->waits = false;
        /* acquire: partner is the thread's release */
        while (!is_offer_left(self) && bide_atomic_load(&self->request, acquire) != MADE)
            bide_await(bide_schedule(&self->turn, self->storm->world->context->scheduler));
        bide_atomic_store(&self->request, NOTHING, relaxed);
        if (self->cut == NOT_AT_ALL && self->status == -ETIMEDOUT)
            self->cut = DEADLINE;
        check_end(self);
    }
    self->storm->running--;
    bide_end();
}

bide_coroutine(victim_body)
{
    bide_begin(victim_body, struct actor * self);
    bide_await_status(self->status, choose(self, true));
    bide_end();
}

/* ---- Ends of waits, on the loop and on a thread ---- */

static void end_victim(struct actor *victim)
{
    if (!bide_done(&victim->task.frame))
        bide_destroy(&victim->task.frame);
    bide_close(&victim->fresh);
}

static void start_victim(storm *s, struct actor *victim)
{
    victim->storm = s;
    bide_start(&victim->task.frame, &victim_body, s->world->context);
    bide_resume(&victim->task.frame);
}

struct weather {
    bide_task task;
    storm *storm;
    bide_schedule_operation turn;
    bide_sleep pause;
    pair *reopened;
    bide_io_operation open;
};

/* Returns a pair that has to be reopened, or NULL. */
static pair *disturb(storm *s)
{
    struct actor *actor = &s->actors[draw(s, ACTORS)];
    if (actor->waits && actor->cut == STOPPED_INSIDE)
        bide_stop_request(&actor->source);
    if (draw(s, 4) == 0) {
        struct actor *victim = &s->victims[draw(s, VICTIMS)];
        end_victim(victim);
        start_victim(s, victim);
    }
    if (draw(s, 16) != 0)
        return NULL;
    pair *fragile = &s->fragile[draw(s, FRAGILE)];
    close_pair(fragile);
    return fragile;
}

bide_coroutine(weather_body)
{
    bide_begin(weather_body, struct weather * self);
    for (int i = 0; i < VICTIMS; i++)
        start_victim(self->storm, &self->storm->victims[i]);
    while (self->storm->running != 0) {
        self->reopened = disturb(self->storm);
        if (self->reopened != NULL)
            bide_await(bide_socket_pair(&self->open, &self->reopened->ends[0],
                                        &self->reopened->ends[1]));
        if (draw(self->storm, 8) == 0)
            bide_await(bide_sleep_for(&self->pause, draw(self->storm, 50000)));
        else
            bide_await(bide_schedule(&self->turn, self->storm->world->context->scheduler));
    }
    for (int i = 0; i < VICTIMS; i++)
        end_victim(&self->storm->victims[i]);
    bide_end();
}

static void *request_elsewhere(void *storm_)
{
    storm *s = storm_;
    while (bide_atomic_load(&s->is_over, relaxed) == 0) {
        for (int i = 0; i < ACTORS; i++) {
            struct actor *actor = &s->actors[i];
            uint32_t offered = OFFERED;
            /* acquire: partner is the offer's release */
            if (!bide_atomic_compare_exchange(&actor->request, &offered, TAKEN, acquire, relaxed))
                continue;
            bide_stop_request(&actor->source);
            bide_atomic_store(&actor->request, MADE, release); /* the actor continues */
        }
        sched_yield();
    }
    return NULL;
}

/* ---- The storm ---- */

/* Each byte that one end sent was received by the other end, or is still in the socket. */
static void count_bytes(storm *s, pair *it, int end)
{
    static char rest[65536];
    bide_io_operation operation;
    uint64_t received = it->received[1 - end];
    assert_int_equal(bide_shutdown(&it->ends[end], BIDE_HALF_OUTPUT), 0);
    do {
        assert_int_equal(world_wait(s->world, bide_recv(&operation, &it->ends[1 - end], rest,
                                                        sizeof rest)),
                         0);
        received += operation.count;
    } while (operation.count != 0);
    assert_true(it->sent[end] == received);
}

static void each_operation_ends_once_in_a_storm(void **state)
{
    storm *s = calloc(1, sizeof *s);
    struct weather weather = {.storm = s};
    bide_io_operation listen;
    bide_spawned spawned;
    bide_event_waiter wait;
    pthread_t thread;
    s->world = world_of(state);
    s->random = testing_seed();
    world_roughen(s->world, s->random);
    s->left = rounds_of(USUAL);
    s->running = ACTORS;
    bide_address_ip(&s->address, "127.0.0.1", 0);
    assert_int_equal(world_wait(s->world, bide_listen(&listen, &s->listener, &s->address, 16)), 0);
    assert_int_equal(bide_local_address(&s->listener, &s->address), 0);
    for (int i = 0; i < PAIRS; i++) {
        open_pair(s, &s->pairs[i]);
        open_tcp_pair(s, &s->pairs[PAIRS + i]);
    }
    for (int i = 0; i < FRAGILE; i++)
        open_pair(s, &s->fragile[i]);
    for (int i = 0; i < VICTIMS; i++)
        bide_descriptor_init_closed(&s->victims[i].fresh);
    for (int i = 0; i < ACTORS; i++) {
        s->actors[i].storm = s;
        bide_spawn(&s->actors[i].spawned, s->world->context,
                   bide_task_init(&s->actors[i].task, &actor_body));
    }
    bide_spawn(&spawned, s->world->context, bide_task_init(&weather.task, &weather_body));
    if (s->world->memory == NULL)
        assert_int_equal(pthread_create(&thread, NULL, request_elsewhere, s), 0);
    assert_int_equal(world_wait(s->world, bide_event_wait(&wait, &spawned.ended)), 0);
    for (int i = 0; i < ACTORS; i++)
        assert_int_equal(
            world_wait(s->world, bide_event_wait(&wait, &s->actors[i].spawned.ended)), 0);
    bide_atomic_store(&s->is_over, 1, relaxed);
    if (s->world->memory == NULL)
        pthread_join(thread, NULL);

    for (int i = 0; i < 2 * PAIRS; i++) {
        for (int end = 0; end < 2; end++)
            count_bytes(s, &s->pairs[i], end);
        close_pair(&s->pairs[i]);
    }
    for (int i = 0; i < FRAGILE; i++)
        close_pair(&s->fragile[i]);
    bide_close(&s->listener);
    printf("# done %u, cancelled %u, timed out %u, else %u\n", s->ends[0], s->ends[1], s->ends[2],
           s->ends[3]);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(each_operation_ends_once_in_a_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
