/*
 * Stop callbacks on four threads: callbacks are added and removed while two threads request stops of their sources.
 * Each function is called at most once, never after a remove that returned true, and has returned when a wait has
 * ended. No thread uses a removed callback: its memory is overwritten and freed. If the test hangs, a waiter was not
 * woken. BIDE_ROUNDS multiplies the rounds.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/schedule.h"
#include "bide/spawn.h"
#include "bide/stop_callback.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

enum { THREADS = 4, SOURCES = 3, USERS = 6, REQUESTERS = 2, TURNS = 8, ROUNDS = 2000 };

typedef struct round_state {
    bide_context context;              /* of the pool */
    bide_stop_source sources[SOURCES]; /* 1 and 2 below 0 */
    unsigned reason;                   /* plain, written before all requests: functions see it */
    bide_atomic(unsigned) wrong;
} round_state;

static void expect(round_state *round, bool condition)
{
    if (!condition)
        bide_atomic_fetch_add(&round->wrong, 1, relaxed);
}

/* One callback's life. It outlives the callback. */
struct turn {
    round_state *round;
    bide_stop_callback *callback;
    bide_atomic(unsigned) calls;
    bide_atomic(unsigned) removed;
    bool returned; /* plain, written last by the function: visible to a thread that has waited */
};

static void function(void *p)
{
    struct turn *turn = p;
    expect(turn->round, bide_atomic_fetch_add(&turn->calls, 1, relaxed) == 0);
    expect(turn->round, bide_atomic_load(&turn->removed, relaxed) == 0);
    expect(turn->round, turn->round->reason == 1);
    turn->returned = true;
}

struct user {
    bide_task task;
    bide_spawned spawned;
    round_state *round;
    uint64_t random;
    unsigned i;
    struct turn turns[TURNS];
    bide_schedule_operation schedule;
    bide_stop_callback_waiter wait;
};

static void begin_turn(struct user *self, struct turn *turn)
{
    round_state *round = self->round;
    turn->round = round;
    turn->returned = false;
    bide_atomic_init(&turn->calls, 0);
    bide_atomic_init(&turn->removed, 0);
    turn->callback = malloc(sizeof *turn->callback);
    if (turn->callback == NULL)
        abort();
    bide_stop_callback_init(turn->callback,
                            &round->sources[testing_random(&self->random) % SOURCES],
                            &round->context, function, turn);
}

static void end_turn(struct turn *turn)
{
    memset(turn->callback, 0xff, sizeof *turn->callback);
    free(turn->callback);
}

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    for (self->i = 0; self->i < TURNS; self->i++) {
        begin_turn(self, &self->turns[self->i]);
        schedule_jitter(&self->random);
        if (testing_random(&self->random) % 2 == 0)
            bide_await(bide_schedule(&self->schedule, self->round->context.scheduler));
        if (bide_stop_callback_remove(self->turns[self->i].callback)) {
            bide_atomic_store(&self->turns[self->i].removed, 1, relaxed);
            expect(self->round, bide_atomic_load(&self->turns[self->i].calls, relaxed) == 0);
        } else {
            bide_await(bide_stop_callback_wait(&self->wait, self->turns[self->i].callback));
            expect(self->round, self->turns[self->i].returned);
        }
        end_turn(&self->turns[self->i]);
    }
    bide_end();
}

struct requester {
    bide_task task;
    bide_spawned spawned;
    round_state *round;
    uint64_t random;
    unsigned i;
    bide_schedule_operation schedule;
};

bide_coroutine(requester_body)
{
    bide_begin(requester_body, struct requester * self);
    for (self->i = 0; self->i < SOURCES; self->i++) {
        schedule_jitter(&self->random);
        bide_await(bide_schedule(&self->schedule, self->round->context.scheduler));
        bide_stop_request(&self->round->sources[SOURCES - 1 - self->i]);
    }
    bide_end();
}

static void wait_for(bide_spawned *spawned)
{
    bide_event_waiter wait;
    bide_sync_wait(bide_event_wait(&wait, &spawned->ended));
}

/* The number of called functions, and of callbacks removed in time. */
static void run_round(bide_scheduler *scheduler, uint64_t *random, unsigned *called,
                      unsigned *removed)
{
    static struct user users[USERS];
    struct requester requesters[REQUESTERS];
    round_state round = {.context = {.scheduler = scheduler}};
    bide_atomic_init(&round.wrong, 0);
    for (unsigned i = 0; i < SOURCES; i++)
        bide_stop_source_init(&round.sources[i]);
    for (unsigned i = 1; i < SOURCES; i++)
        bide_stop_source_attach(&round.sources[i], &round.sources[0]);
    for (unsigned i = 0; i < USERS; i++) {
        users[i].round = &round;
        users[i].random = testing_random(random);
        bide_spawn(&users[i].spawned, &round.context, bide_task_init(&users[i].task, &user_body));
    }
    round.reason = 1;
    for (unsigned i = 0; i < REQUESTERS; i++) {
        requesters[i].round = &round;
        requesters[i].random = testing_random(random);
        bide_spawn(&requesters[i].spawned, &round.context,
                   bide_task_init(&requesters[i].task, &requester_body));
    }
    for (unsigned i = 0; i < USERS; i++)
        wait_for(&users[i].spawned);
    for (unsigned i = 0; i < REQUESTERS; i++)
        wait_for(&requesters[i].spawned);
    for (unsigned i = 1; i < SOURCES; i++)
        bide_stop_source_detach(&round.sources[i]);
    for (unsigned i = 0; i < SOURCES; i++)
        assert_null(round.sources[i].first_child);
    assert_int_equal(bide_atomic_load(&round.wrong, relaxed), 0);
    for (unsigned i = 0; i < USERS * TURNS; i++) {
        struct turn *turn = &users[i / TURNS].turns[i % TURNS];
        unsigned calls = bide_atomic_load(&turn->calls, relaxed);
        unsigned was_removed = bide_atomic_load(&turn->removed, relaxed);
        assert_int_equal(calls + was_removed, 1);
        *called += calls;
        *removed += was_removed;
    }
}

static void callbacks_that_come_and_go_while_two_ask_run_once_or_never(void **state)
{
    (void)state;
    unsigned rounds = rounds_of(ROUNDS);
    uint64_t random = testing_seed();
    unsigned called = 0, removed = 0;
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, THREADS), 0);
    for (unsigned i = 0; i < rounds; i++)
        run_round(bide_thread_pool_scheduler(pool), &random, &called, &removed);
    bide_thread_pool_destroy(pool);
    printf("# %u called, %u removed in time\n", called, removed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callbacks_that_come_and_go_while_two_ask_run_once_or_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
