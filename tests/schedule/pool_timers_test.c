/*
 * The timers of a thread pool, which its workers set each in a wheel of its own: each comes once, or is cleared,
 * wherever it was set; those of a worker that is busy are run by another.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "../../src/schedule/pool/worker.h"

#include "bide/schedule.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

static bide_thread_pool *create(unsigned threads)
{
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
    return pool;
}

static void wait_for(bide_spawned *spawned)
{
    bide_event_waiter wait;
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &spawned->ended)), 0);
    assert_int_equal(spawned->root.status, 0);
}

/* ---- A busy worker ---- */

struct house;
static void house_hear(struct house *house, uint64_t time);

/* A timer whose coroutine says that it has come. */
struct bell {
    bide_frame frame;
    bide_timer timer;
    bide_atomic(uint32_t) rings;
    struct house *house; /* that hears it; or NULL */
};

static bide_next bell_step(bide_frame *frame, unsigned depth)
{
    struct bell *bell = bide_container_of(frame, struct bell, frame);
    (void)depth;
    if (bell->house != NULL)
        house_hear(bell->house, bell->timer.time);
    bide_atomic_fetch_add(&bell->rings, 1, release);
    return bide_next_none();
}

static const bide_coroutine_code bell_code = {bell_step, "bell", __FILE__, NULL, NULL};
static const bide_point bell_point = BIDE_POINT_START(&bell_code);

static void bell_init(struct bell *bell, const bide_context *context)
{
    bide_frame_init_in(&bell->frame, &bell_point, context);
    bell->frame.awaiter.frame = &bell->frame;
    bide_atomic_init(&bell->rings, 0);
    bell->house = NULL;
}

static void bell_set(struct bell *bell, uint64_t time)
{
    bide_scheduler *scheduler = bell->frame.context->scheduler;
    bell->frame.awaiter.ops = &bell_point.ops;
    bide_timer_init(&bell->timer, time);
    bell->timer.awaiter.ops = &bell_point.ops;
    bell->timer.awaiter.frame = &bell->frame;
    assert_int_equal(scheduler->set_timer(scheduler, &bell->timer), 0);
}

enum { TURNS = 40 };

struct busy {
    bide_task task;
    bide_sleep sleep;
    struct bell bell;
    uint64_t time;
    unsigned left;
};

/* Its worker has kept the time of its sleep, or another has; the other one sleeps when the bell is set. */
bide_coroutine(busy_body)
{
    bide_begin(busy_body, struct busy * self);
    for (self->left = TURNS; self->left != 0; self->left--) {
        self->time = bide_platform.now() + 300000;
        bide_try(bide_sleep_until(&self->sleep, self->time));
        bell_init(&self->bell, bide_this_context());
        bell_set(&self->bell, self->time + (uint64_t)self->left % 4 * 200000);
        schedule_until(bide_atomic_load(&self->bell.rings, acquire) != 0);
    }
    bide_end();
}

static void timers_of_a_busy_worker_are_run_by_another(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(2);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    struct busy busy;
    bide_spawned spawned;
    bide_spawn(&spawned, &context, bide_task_init(&busy.task, &busy_body));
    wait_for(&spawned);
    bide_thread_pool_destroy(pool);
}

/* ---- A worker that is held ---- */

enum { HOSTS = 5, PACED = 2000, BELLS = 6, AHEAD = 5000000, SOON = 100000 };

/*
 * A pool of two workers. One is held by a coroutine that sets bells there and waits until they have rung. The other
 * runs the hosts, which yield, and the bells. The fields that are not atomic are that worker's.
 */
struct house {
    bide_context context;
    struct bell held[BELLS]; /* set by the worker that is held */
    struct bell own[BELLS];  /* set by the other */
    bide_atomic(uint32_t) is_held;
    bide_atomic(uint32_t) may_set; /* `held` */
    bide_atomic(uint64_t) time;    /* of the first of them; 0: none is set yet */
    unsigned bells;                /* that are used of each */
    unsigned expected, rings;
    size_t turns;
    size_t invited; /* the turn when the first bell was due; 0: it has rung before that was seen */
    size_t heard;   /* the turn after which it has rung */
    uint64_t last;  /* the time of the bell that has rung last */
    unsigned misplaced; /* bells that have rung after a later one */
};

struct holder {
    bide_task task;
    bide_spawned spawned;
    struct house *house;
};

struct host {
    bide_task task;
    bide_spawned spawned;
    struct house *house;
    bide_schedule_operation turn;
    bool counts;
};

static void house_hear(struct house *house, uint64_t time)
{
    if (house->rings == 0)
        house->heard = house->turns;
    if (time < house->last)
        house->misplaced++;
    house->last = time;
    house->rings++;
}

static bool have_rung(struct bell *bells, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (bide_atomic_load(&bells[i].rings, acquire) == 0)
            return false;
    }
    return true;
}

bide_coroutine(holder_body)
{
    bide_begin(holder_body, struct holder * self);
    struct house *house = self->house;
    bide_atomic_store(&house->is_held, 1, release);
    schedule_until(bide_atomic_load(&house->may_set, acquire) != 0);
    uint64_t time = bide_platform.now() + AHEAD;
    for (unsigned i = 0; i < house->bells; i++)
        bell_set(&house->held[i], time + (uint64_t)2 * i);
    bide_atomic_store(&house->time, time, release);
    schedule_until(have_rung(house->held, house->bells) &&
                   have_rung(house->own, house->expected - house->bells));
    bide_end();
}

/* In each turn of the host that counts. */
static void note_turn(struct house *house)
{
    if (house->turns >= PACED) /* (the pace is found) */
        bide_atomic_store(&house->may_set, 1, release);
    uint64_t time = bide_atomic_load(&house->time, acquire);
    if (time != 0 && house->invited == 0 && bide_platform.now() >= time)
        house->invited = house->turns;
}

bide_coroutine(host_body)
{
    bide_begin(host_body, struct host * self);
    while (self->house->rings != self->house->expected) {
        self->house->turns++;
        if (self->counts)
            note_turn(self->house);
        bide_await(bide_schedule(&self->turn, bide_this_context()->scheduler));
    }
    bide_end();
}

static void hold_a_worker(struct holder *holder, struct house *house, bide_thread_pool *pool)
{
    house->context = (bide_context){.scheduler = bide_thread_pool_scheduler(pool)};
    for (unsigned i = 0; i < BELLS; i++) {
        bell_init(&house->held[i], &house->context);
        bell_init(&house->own[i], &house->context);
        house->held[i].house = house->own[i].house = house;
    }
    holder->house = house;
    bide_spawn(&holder->spawned, &house->context, bide_task_init(&holder->task, &holder_body));
    schedule_until(bide_atomic_load(&house->is_held, acquire) != 0);
}

/* The bells are set while the other worker sleeps; it has slept until some time before they are due. */
static void wait_while_the_other_sleeps(struct house *house, bide_thread_pool *pool)
{
    schedule_until(bide_pool_sleeping_(bide_atomic_load(&pool->idle, relaxed)) == 1);
    bide_atomic_store(&house->may_set, 1, release);
    schedule_until(bide_atomic_load(&house->time, acquire) != 0);
    uint64_t time = bide_atomic_load(&house->time, relaxed);
    schedule_until(bide_platform.now() >= time - SOON);
}

/* How many turns begin after the bell is due, and before it rings. */
static size_t turns_before_the_bell(unsigned interval, bool sleeps)
{
    const bide_thread_pool_options options = {.threads = 2, .event_interval = interval};
    bide_thread_pool *pool;
    struct house house = {.bells = 1, .expected = 1};
    struct holder holder;
    struct host hosts[HOSTS];
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
    hold_a_worker(&holder, &house, pool);
    if (sleeps)
        wait_while_the_other_sleeps(&house, pool);
    for (unsigned i = 0; i < HOSTS; i++) {
        hosts[i].house = &house;
        hosts[i].counts = i == 0;
        bide_spawn(&hosts[i].spawned, &house.context, bide_task_init(&hosts[i].task, &host_body));
    }
    for (unsigned i = 0; i < HOSTS; i++)
        wait_for(&hosts[i].spawned);
    wait_for(&holder.spawned);
    bide_thread_pool_destroy(pool);
    return house.invited != 0 && house.heard > house.invited ? house.heard - house.invited : 0;
}

static const unsigned event_intervals[] = {2, 3, 8, 16};

static void a_due_timer_of_a_held_worker_runs_within_the_event_interval(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof event_intervals / sizeof event_intervals[0]; i++)
        assert_in_range(turns_before_the_bell(event_intervals[i], false), 0, event_intervals[i]);
}

static void so_does_one_beside_a_worker_that_was_idle(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof event_intervals / sizeof event_intervals[0]; i++)
        assert_in_range(turns_before_the_bell(event_intervals[i], true), 0, event_intervals[i]);
}

/* Sets its bells between those of the worker that is held, and lets no look be until all are due. */
bide_coroutine(between_body)
{
    bide_begin(between_body, struct host * self);
    struct house *house = self->house;
    bide_atomic_store(&house->may_set, 1, release);
    schedule_until(bide_atomic_load(&house->time, acquire) != 0);
    uint64_t time = bide_atomic_load(&house->time, relaxed);
    for (unsigned i = 0; i < BELLS; i++)
        bell_set(&house->own[i], time + (uint64_t)2 * i + 1);
    schedule_until(bide_platform.now() >= time + (uint64_t)2 * BELLS);
    while (self->house->rings != self->house->expected)
        bide_await(bide_schedule(&self->turn, bide_this_context()->scheduler));
    bide_end();
}

static void timers_of_two_workers_run_in_the_order_of_their_times(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(2);
    struct house house = {.bells = BELLS, .expected = 2 * BELLS};
    struct holder holder;
    struct host between = {.house = &house};
    hold_a_worker(&holder, &house, pool);
    bide_spawn(&between.spawned, &house.context, bide_task_init(&between.task, &between_body));
    wait_for(&between.spawned);
    wait_for(&holder.spawned);
    bide_thread_pool_destroy(pool);
    assert_int_equal(house.rings, 2 * BELLS);
    assert_int_equal(house.misplaced, 0);
}

/* ---- Set here, cleared there ---- */

enum { PLAYERS = 12, MOVES = 300 };

/* It has a bell that it sets, moves on to some worker, and clears there; or lets it ring. */
struct player {
    bide_task task;
    bide_spawned spawned;
    bide_schedule_operation hop;
    bide_sleep sleep;
    struct bell bell;
    uint64_t random, now;
    unsigned left, hops;
    uint32_t set, cleared;
};

static uint64_t draw_time(struct player *self)
{
    static const uint64_t lengths[] = {1, 20000, 300000, UINT64_C(3600000000000)};
    uint64_t length = lengths[testing_random(&self->random) % 4];
    return bide_platform.now() + testing_random(&self->random) % length;
}

static void clear_bell(struct player *self)
{
    bide_scheduler *scheduler = self->bell.frame.context->scheduler;
    if (scheduler->clear_timer(scheduler, &self->bell.timer))
        self->cleared++;
    assert_false(scheduler->clear_timer(scheduler, &self->bell.timer));
}

static bool bell_is_over(struct player *self)
{
    return bide_atomic_load(&self->bell.rings, acquire) + self->cleared == self->set;
}

bide_coroutine(player_body)
{
    bide_begin(player_body, struct player * self);
    bell_init(&self->bell, bide_this_context());
    for (self->left = MOVES; self->left != 0; self->left--) {
        bell_set(&self->bell, draw_time(self));
        self->set++;
        if (testing_random(&self->random) % 8 == 0) {
            self->now = bide_platform.now() + testing_random(&self->random) % 100000;
            bide_try(bide_sleep_until(&self->sleep, self->now));
            assert_true(bide_platform.now() >= self->now);
        }
        for (self->hops = testing_random(&self->random) % 4; self->hops != 0; self->hops--)
            bide_await(bide_schedule(&self->hop, bide_this_context()->scheduler));
        clear_bell(self);
        while (!bell_is_over(self)) /* it was posted */
            bide_await(bide_schedule(&self->hop, bide_this_context()->scheduler));
    }
    bide_end();
}

static void play(unsigned threads, uint64_t seed)
{
    static struct player players[PLAYERS];
    bide_thread_pool *pool = create(threads);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    for (unsigned i = 0; i < PLAYERS; i++) {
        players[i] = (struct player){.random = seed + i};
        bide_spawn(&players[i].spawned, &context, bide_task_init(&players[i].task, &player_body));
    }
    for (unsigned i = 0; i < PLAYERS; i++) {
        wait_for(&players[i].spawned);
        assert_int_equal(players[i].set, MOVES);
    }
    assert_true(bide_pool_next_timer_(pool) == BIDE_FOREVER);
    bide_thread_pool_destroy(pool);
}

/* The last has more workers than a pool has wheels. */
static void a_timer_comes_once_or_is_cleared_wherever_it_was_set(void **state)
{
    static const unsigned threads[] = {1, 2, 3, BIDE_POOL_WHEELS_MAX_ + 3};
    (void)state;
    uint64_t seed = testing_seed();
    for (unsigned i = 0; i < sizeof threads / sizeof threads[0]; i++)
        play(threads[i], seed + i * PLAYERS);
}

/* ---- A thread outside ---- */

/* A thread that is not the pool's sets timers and clears them while the workers do. */
static void a_thread_outside_sets_and_clears_too(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    bide_thread_pool *pool = create(2);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_scheduler *scheduler = context.scheduler;
    struct player player = {.random = seed};
    struct bell bell;
    uint32_t set = 0, cleared = 0;
    bide_spawn(&player.spawned, &context, bide_task_init(&player.task, &player_body));
    bell_init(&bell, &context);
    for (unsigned i = 0; i < MOVES; i++) {
        bell_set(&bell, bide_platform.now() + testing_random(&seed) % 50000);
        set++;
        schedule_jitter(&seed);
        if (scheduler->clear_timer(scheduler, &bell.timer))
            cleared++;
        schedule_until(bide_atomic_load(&bell.rings, acquire) + cleared == set);
    }
    wait_for(&player.spawned);
    bide_thread_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_of_a_busy_worker_are_run_by_another),
        cmocka_unit_test(a_due_timer_of_a_held_worker_runs_within_the_event_interval),
        cmocka_unit_test(so_does_one_beside_a_worker_that_was_idle),
        cmocka_unit_test(timers_of_two_workers_run_in_the_order_of_their_times),
        cmocka_unit_test(a_timer_comes_once_or_is_cleared_wherever_it_was_set),
        cmocka_unit_test(a_thread_outside_sets_and_clears_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
