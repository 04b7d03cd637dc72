/*
 * Scopes with random options on the workers of a pool: every child that was begun ends once; no more than the limit
 * run at a time; each is returned by next once, also if the next is asked to stop; the join ends with the first error
 * or with 0; and a join under another source passes a request on.
 */
#include "schedule_testing.h"

#include "bide/event.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/thread_pool.h"
#include "bide/with_stop.h"

#include <errno.h>

enum { THREADS = 4, OWNERS = 8, FIRST = 6, CHILDREN = 2 * FIRST, EVENTS = 3 };

typedef struct owner owner;

typedef struct child {
    bide_task task;
    bide_branch branch;
    owner *of;
    uint64_t random;
    unsigned number;
    bide_schedule_operation schedule;
    bide_event_waiter wait;
    int status;
    int begun, ended, returned; /* how often */
} child;

struct owner {
    bide_task task;
    uint64_t random;
    bide_scheduler *scheduler;
    bide_event *events;
    bide_scope_options options;
    bide_scope scope;
    child children[CHILDREN];
    bide_atomic(uint32_t) spawned;
    bide_atomic(uint32_t) running;
    bide_atomic(uint32_t) faults;
    bide_stop_source token;
    bide_with_stop_operation under;
    bide_scope_next_operation next;
    bide_branch *taken;
    uint32_t returned;
    int status;
};

static void expect(owner *self, bool holds)
{
    if (!holds)
        bide_atomic_fetch_add(&self->faults, 1, relaxed);
}

static uint64_t pick(uint64_t *random, uint64_t of)
{
    return testing_random(random) % of;
}

static void spawn_child(owner *self, unsigned number, uint64_t random);

bide_coroutine(child_body)
{
    bide_begin(child_body, child * self);
    self->begun++;
    expect(self->of, self->of->options.max_running == 0 ||
                         bide_atomic_fetch_add(&self->of->running, 1, relaxed) <
                             self->of->options.max_running);
    if (pick(&self->random, 2) == 0)
        bide_await(bide_schedule(&self->schedule, self->of->scheduler));
    if (self->number < FIRST && pick(&self->random, 2) == 0)
        spawn_child(self->of, FIRST + self->number, testing_random(&self->random));
    if (pick(&self->random, 2) == 0)
        bide_await_status(self->status,
                          bide_event_wait(&self->wait, &self->of->events[self->number % EVENTS]));
    if (self->status == 0 && pick(&self->random, 4) == 0)
        self->status = -EDOM;
    bide_return(self->status);
    bide_finally();
    self->ended++;
    if (self->of->options.max_running != 0)
        bide_atomic_fetch_sub(&self->of->running, 1, relaxed);
    bide_end();
}

static void spawn_child(owner *self, unsigned number, uint64_t random)
{
    child *c = &self->children[number];
    c->of = self;
    c->number = number;
    c->random = random;
    bide_atomic_fetch_add(&self->spawned, 1, relaxed);
    bide_scope_spawn(&self->scope, &c->branch, bide_task_init(&c->task, &child_body));
}

static bide_awaiter *maybe_under(owner *self, bide_awaiter *awaiter, bool under)
{
    return under ? bide_with_stop(&self->under, &self->token, awaiter) : awaiter;
}

bide_coroutine(owner_body)
{
    bide_begin(owner_body, owner * self);
    bide_scope_init_with(&self->scope, bide_this_frame(), &self->options);
    for (unsigned i = 0; i < FIRST; i++)
        spawn_child(self, i, testing_random(&self->random));
    if (pick(&self->random, 3) == 0)
        bide_scope_stop_one(&self->scope, &self->children[pick(&self->random, FIRST)].branch);
    while (self->options.collects) {
        bide_await_status(self->status,
                          maybe_under(self,
                                      bide_scope_next(&self->next, &self->scope, &self->taken),
                                      pick(&self->random, 2) == 0));
        if (self->status == -ENOENT)
            break;
        if (self->status < 0) {
            expect(self, self->status == -ECANCELED);
            if (bide_stop_requested(bide_this_context()->stop) || pick(&self->random, 4) == 0)
                break;
            continue;
        }
        self->returned++;
        bide_container_of(self->taken, child, branch)->returned++;
    }
    if (self->status == -ENOENT)
        expect(self, self->returned == bide_atomic_load(&self->spawned, relaxed));
    bide_await_status(self->status, maybe_under(self, bide_scope_join(&self->scope),
                                                pick(&self->random, 2) == 0));
    expect(self, self->status == 0 || self->status == -EDOM || self->status == -ECANCELED);
    for (unsigned i = 0; i < CHILDREN; i++) {
        const child *c = &self->children[i];
        expect(self, c->begun == c->ended && c->returned <= c->begun);
        expect(self, c->of == NULL || c->branch.status == c->status);
        expect(self, self->status != 0 || c->status != -EDOM);
    }
    bide_end();
}

static void owner_init(owner *self, uint64_t random, bide_scheduler *scheduler, bide_event *events)
{
    memset(self, 0, sizeof *self);
    self->random = random;
    self->scheduler = scheduler;
    self->events = events;
    self->options.spares = pick(&self->random, 2);
    self->options.collects = pick(&self->random, 2);
    self->options.max_running = pick(&self->random, 4);
    bide_stop_source_init(&self->token);
}

static void what_runs_in_scopes_ends_once_and_within_the_limit(void **state)
{
    (void)state;
    long rounds = rounds_of(2000);
    uint64_t random = testing_seed();
    bide_thread_pool *pool;
    owner *owners = malloc(OWNERS * sizeof *owners);
    assert_non_null(owners);
    assert_int_equal(bide_thread_pool_create(&pool, THREADS), 0);
    for (long r = 0; r < rounds; r++) {
        bide_event events[EVENTS];
        bide_stop_source stops[OWNERS];
        bide_spawned spawned[OWNERS];
        for (int i = 0; i < EVENTS; i++)
            bide_event_init(&events[i], false);
        for (int i = 0; i < OWNERS; i++) {
            bide_context context = {.scheduler = bide_thread_pool_scheduler(pool),
                                    .stop = pick(&random, 2) == 0 ? NULL : &stops[i]};
            bide_stop_source_init(&stops[i]);
            owner_init(&owners[i], testing_random(&random), context.scheduler, events);
            bide_spawn(&spawned[i], &context, bide_task_init(&owners[i].task, &owner_body));
        }
        for (uint64_t n = pick(&random, 8); n > 0; n--) {
            uint64_t which = testing_random(&random);
            if (which % 3 == 0)
                bide_stop_request(&stops[which / 3 % OWNERS]);
            else if (which % 3 == 1)
                bide_stop_request(&owners[which / 3 % OWNERS].token);
            else
                bide_event_set(&events[which / 3 % EVENTS]);
        }
        for (int i = 0; i < EVENTS; i++)
            bide_event_set(&events[i]);
        for (int i = 0; i < OWNERS; i++) {
            bide_event_waiter wait;
            bide_sync_wait(bide_event_wait(&wait, &spawned[i].ended));
            assert_int_equal(bide_atomic_load(&owners[i].faults, relaxed), 0);
            assert_int_equal(bide_atomic_load(&owners[i].running, relaxed), 0);
            assert_null(owners[i].token.first_child);
        }
    }
    bide_thread_pool_destroy(pool);
    free(owners);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_in_scopes_ends_once_and_within_the_limit),
    };
    return cmocka_run_group_tests_name("scope_stress", tests, NULL, NULL);
}
