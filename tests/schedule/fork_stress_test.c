/*
 * Trees of when_all, when_all_ready, when_any and scopes on four threads, while events are set and some trees are
 * cancelled: each leaf that started ends once, with a possible status; a waiter for several leaves ends after all of
 * them; and no waiter is left. If the test hangs, a waiter was left. BIDE_ROUNDS multiplies the rounds.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/event.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/thread_pool.h"
#include "bide/when.h"

#include <errno.h>

enum { THREADS = 4, ROOTS = 6, EVENTS = 8, WIDTH = 4, DEPTH = 3, NODES = 1 + 4 + 16 + 64 };

typedef struct round_state {
    bide_event events[EVENTS];
    bide_scheduler *scheduler;
    bide_atomic(uint32_t) faults;
} round_state;

typedef struct node {
    bide_task task;
    struct node *children; /* of its root */
    round_state *round;
    uint64_t random;
    unsigned depth, index; /* index among all nodes of its depth */
    unsigned count, i;
    int status;
    unsigned begun, ended;

    bide_event_waiter wait;
    bide_schedule_operation schedule;
    bide_when when;
    bide_scope scope;
    bide_branch branches[WIDTH];
} node;

static void expect(round_state *round, bool condition)
{
    if (!condition)
        bide_atomic_fetch_add(&round->faults, 1, relaxed);
}

static unsigned pick(node *self, unsigned below)
{
    return (unsigned)(testing_random(&self->random) % below);
}

/* The first of a node's children, in the array of all, depth by depth. */
static node *first_child(node *self)
{
    size_t before = 0;
    for (size_t d = 0, width = 1; d <= self->depth; d++, width *= WIDTH)
        before += width;
    return self->children + before + (size_t)self->index * WIDTH;
}

static bide_awaiter *node_run(node *child, const node *parent, unsigned number);

static bool is_status(int status)
{
    return status == 0 || status == -ECANCELED || status == -EDOM;
}

bide_coroutine(node_body)
{
    bide_begin(node_body, node * self);
    self->begun++;
    if (pick(self, 4) == 0)
        bide_await(bide_schedule(&self->schedule, self->round->scheduler));

    if (self->depth == DEPTH || pick(self, 5) == 0) {
        if (pick(self, 3) != 0) {
            bide_await_status(
                self->status,
                bide_event_wait(&self->wait, &self->round->events[pick(self, EVENTS)]));
            expect(self->round, self->status == 0 || self->status == -ECANCELED);
            if (self->status < 0)
                bide_return(self->status);
        }
        if (pick(self, 3) == 0)
            bide_event_set(&self->round->events[pick(self, EVENTS)]);
        bide_return(pick(self, 6) == 0 ? -EDOM : 0);
    }

    self->count = 1 + pick(self, WIDTH);
    self->i = pick(self, 4);
    if (self->i != 3) {
        for (unsigned i = 0; i < self->count; i++)
            bide_branch_init(&self->branches[i], node_run(&first_child(self)[i], self, i));
        if (self->i == 0)
            bide_await_status(self->status,
                              bide_when_all(&self->when, self->branches, self->count));
        else if (self->i == 1)
            bide_await_status(self->status,
                              bide_when_all_ready(&self->when, self->branches, self->count));
        else
            bide_await_status(self->status,
                              bide_when_any(&self->when, self->branches, self->count));
        if (self->i == 1)
            expect(self->round, self->status == 0);
        else if (bide_when_winner(&self->when) < self->count)
            expect(self->round,
                   self->status == self->branches[bide_when_winner(&self->when)].status);
        else
            expect(self->round, self->i == 0 && self->status == 0);
    } else {
        bide_scope_init(&self->scope, bide_this_frame());
        for (self->i = 0; self->i < self->count; self->i++) {
            bide_scope_spawn(&self->scope, &self->branches[self->i],
                             node_run(&first_child(self)[self->i], self, self->i));
            if (pick(self, 4) == 0)
                bide_await(bide_schedule(&self->schedule, self->round->scheduler));
        }
        if (pick(self, 4) == 0)
            bide_scope_stop(&self->scope);
        bide_await_status(self->status, bide_scope_join(&self->scope));
    }
    expect(self->round, is_status(self->status));
    for (unsigned i = 0; i < self->count; i++) {
        node *child = &first_child(self)[i];
        expect(self->round, child->begun == 1 && child->ended == 1);
        expect(self->round, bide_done(&child->task.frame));
        expect(self->round, is_status(self->branches[i].status));
    }
    bide_return(self->status);
    bide_finally();
    self->ended++;
    bide_end();
}

static bide_awaiter *node_run(node *child, const node *parent, unsigned number)
{
    child->children = parent->children;
    child->round = parent->round;
    child->random = parent->random + number * 0x9e3779b97f4a7c15u + parent->depth;
    testing_random(&child->random);
    child->depth = parent->depth + 1;
    child->index = parent->index * WIDTH + number;
    return bide_task_init(&child->task, &node_body);
}

static void all_of_them_end_once(void **state)
{
    (void)state;
    long rounds = rounds_of(300);
    uint64_t random = testing_seed();
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, THREADS), 0);
    node(*nodes)[NODES] = malloc(ROOTS * sizeof *nodes);
    assert_non_null(nodes);
    for (long r = 0; r < rounds; r++) {
        round_state round = {.scheduler = bide_thread_pool_scheduler(pool)};
        bide_stop_source stops[ROOTS];
        bide_context contexts[ROOTS];
        bide_spawned spawned[ROOTS];
        for (int i = 0; i < EVENTS; i++)
            bide_event_init(&round.events[i], false);
        memset(nodes, 0, ROOTS * sizeof *nodes);
        for (int i = 0; i < ROOTS; i++) {
            node *root = nodes[i];
            bide_stop_source_init(&stops[i]);
            contexts[i] =
                (bide_context){.scheduler = round.scheduler, .stop = i % 3 == 0 ? NULL : &stops[i]};
            root->children = root;
            root->round = &round;
            root->random = testing_random(&random);
            bide_spawn(&spawned[i], &contexts[i], bide_task_init(&root->task, &node_body));
        }
        for (uint64_t n = testing_random(&random) % 20; n > 0; n--) {
            uint64_t which = testing_random(&random);
            if (which % 3 == 0)
                bide_stop_request(&stops[which / 3 % ROOTS]);
            else
                bide_event_set(&round.events[which / 3 % EVENTS]);
        }
        for (int i = 0; i < EVENTS; i++)
            bide_event_set(&round.events[i]);
        for (int i = 0; i < ROOTS; i++) {
            bide_event_waiter wait;
            bide_sync_wait(bide_event_wait(&wait, &spawned[i].ended));
            assert_int_equal(nodes[i][0].begun, 1);
            assert_int_equal(nodes[i][0].ended, 1);
            assert_true(is_status(spawned[i].root.status));
        }
        assert_int_equal(bide_atomic_load(&round.faults, relaxed), 0);
    }
    free(nodes);
    bide_thread_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_them_end_once)};
    return cmocka_run_group_tests_name("fork stress", tests, NULL, NULL);
}
