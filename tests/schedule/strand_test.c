/*
 * Strands: their coroutines run one at a time and in order, on any scheduler; other coroutines get their turn; timers; and
 * destruction.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "schedule_testing.h"
#include "small_stack.h"

#include "bide/auto_event.h"
#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/strand.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>

#define MILLISECOND UINT64_C(1000000)
#define HOUR        (3600 * UINT64_C(1000000000))

static bide_thread_pool *create(unsigned threads)
{
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
    return pool;
}

static int wait_for(bide_spawned *spawned)
{
    bide_event_waiter wait;
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &spawned->ended)), 0);
    return spawned->root.status;
}

/* ---- One at a time ---- */

/* Used only by coroutines of one strand: not atomic. */
typedef struct shared {
    unsigned steps;
    bool inside;
    bool met; /* two coroutines were inside at once */
} shared;

static void touch(shared *shared)
{
    if (shared->inside)
        shared->met = true;
    shared->inside = true;
    shared->steps++;
    bide_cpu_relax();
    shared->inside = false;
}

/* Each step yields, is woken by a neighbour (possibly of another strand), or sleeps. */
struct member {
    bide_task task;
    bide_spawned spawned;
    shared *shared;
    bide_strand *strand;
    bide_auto_event *mine, *next;
    uint64_t random;
    unsigned rounds;
    bide_schedule_operation yield;
    bide_auto_event_waiter wait;
    bide_sleep sleep;
};

bide_coroutine(member_body)
{
    bide_begin(member_body, struct member * self);
    for (; self->rounds > 0; self->rounds--) {
        touch(self->shared);
        switch (testing_random(&self->random) % 8) {
        case 0:
            bide_try(bide_sleep_for(&self->sleep, testing_random(&self->random) % 20000));
            break;
        case 1:
        case 2:
        case 3:
            bide_await(bide_schedule(&self->yield, &self->strand->scheduler));
            break;
        default:
            bide_auto_event_set(self->next);
            bide_try(bide_auto_event_wait(&self->wait, self->mine));
            bide_auto_event_set(self->next);
            break;
        }
        touch(self->shared);
    }
    bide_auto_event_set(self->next);
    bide_end();
}

enum { MEMBERS = 12, STRANDS = 3, ROUNDS = 3000 };

/* Each waits only after it has woken the next, and wakes it again at its end: none waits forever. */
static void members_meet_never(bide_scheduler *under[STRANDS], uint64_t *random)
{
    static bide_strand strands[STRANDS];
    static struct member members[MEMBERS];
    static bide_auto_event events[MEMBERS];
    shared shared[STRANDS] = {{0, false, false}, {0, false, false}, {0, false, false}};
    unsigned rounds = rounds_of(ROUNDS);
    bide_atomic(unsigned) ended;
    bide_atomic_init(&ended, 0);
    for (int i = 0; i < STRANDS; i++)
        bide_strand_init(&strands[i], under[i]);
    for (int i = 0; i < MEMBERS; i++)
        bide_auto_event_init(&events[i], false);
    for (int i = 0; i < MEMBERS; i++) {
        bide_strand *strand = &strands[i % STRANDS];
        members[i] = (struct member){.shared = &shared[i % STRANDS],
                                     .strand = strand,
                                     .mine = &events[i],
                                     .next = &events[(i + 1) % MEMBERS],
                                     .random = testing_random(random),
                                     .rounds = rounds};
        bide_spawn(&members[i].spawned, &strand->context,
                   bide_task_init(&members[i].task, &member_body));
    }
    /* An outside thread wakes them too, so that none is left when its neighbour has ended. */
    for (int i = 0; i < MEMBERS;) {
        if (bide_event_is_set(&members[i].spawned.ended)) {
            i++;
            continue;
        }
        bide_auto_event_set(&events[testing_random(random) % MEMBERS]);
        sched_yield();
    }
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(wait_for(&members[i].spawned), 0);
    for (int i = STRANDS - 1; i >= 0; i--)
        bide_strand_destroy(&strands[i]);
    for (int i = 0; i < STRANDS; i++) {
        assert_false(shared[i].met);
        assert_int_equal(shared[i].steps, 2 * rounds * (MEMBERS / STRANDS));
    }
}

static void coroutines_of_a_strand_on_a_pool_run_one_at_a_time(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    bide_thread_pool *pool = create(4);
    bide_scheduler *scheduler = bide_thread_pool_scheduler(pool);
    bide_scheduler *under[STRANDS] = {scheduler, scheduler, scheduler};
    members_meet_never(under, &random);
    bide_thread_pool_destroy(pool);
}

struct moving {
    bide_task task;
    shared *shared[2];
    bide_strand *strands[2];
    bide_schedule_operation moves[2];
    bide_schedule_operation out;
    bide_scheduler *pool;
    unsigned rounds;
};

bide_coroutine(moving_body)
{
    bide_begin(moving_body, struct moving * self);
    for (; self->rounds > 0; self->rounds--) {
        bide_await(bide_schedule(&self->moves[0], &self->strands[0]->scheduler));
        touch(self->shared[0]);
        bide_await(bide_schedule(&self->out, self->pool));
        bide_await(bide_schedule(&self->moves[1], &self->strands[1]->scheduler));
        touch(self->shared[1]);
    }
    bide_end();
}

static void coroutines_that_come_and_go_are_in_a_strand_one_at_a_time(void **state)
{
    (void)state;
    enum { MOVERS = 8 };
    bide_thread_pool *pool = create(3);
    bide_strand strands[2];
    shared shared[2] = {{0, false, false}, {0, false, false}};
    static struct moving movers[MOVERS];
    bide_spawned spawned[MOVERS];
    unsigned rounds = rounds_of(5000);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_strand_init(&strands[0], context.scheduler);
    bide_strand_init(&strands[1], &strands[0].scheduler); /* on a strand */
    for (int i = 0; i < MOVERS; i++) {
        movers[i] = (struct moving){.shared = {&shared[i % 2], &shared[1 - i % 2]},
                                    .strands = {&strands[i % 2], &strands[1 - i % 2]},
                                    .pool = context.scheduler,
                                    .rounds = rounds};
        bide_spawn(&spawned[i], &context, bide_task_init(&movers[i].task, &moving_body));
    }
    for (int i = 0; i < MOVERS; i++)
        assert_int_equal(wait_for(&spawned[i]), 0);
    bide_strand_destroy(&strands[1]);
    bide_strand_destroy(&strands[0]);
    for (int i = 0; i < 2; i++) {
        assert_false(shared[i].met);
        assert_int_equal(shared[i].steps, MOVERS * rounds);
    }
    bide_thread_pool_destroy(pool);
}

/* ---- In order ---- */

struct note {
    bide_task task;
    bide_spawned spawned;
    unsigned *next;
    unsigned place;
};

bide_coroutine(note_body)
{
    bide_begin(note_body, struct note * self);
    self->place = (*self->next)++;
    bide_end();
}

static void what_one_thread_posts_runs_in_the_order_of_its_posts(void **state)
{
    (void)state;
    enum { NOTES = 1000 };
    static struct note notes[NOTES];
    bide_thread_pool *pool = create(4);
    bide_strand strand;
    bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
    for (unsigned round = rounds_of(20); round > 0; round--) {
        unsigned next = 0;
        for (unsigned i = 0; i < NOTES; i++) {
            notes[i].next = &next;
            bide_spawn(&notes[i].spawned, &strand.context,
                       bide_task_init(&notes[i].task, &note_body));
        }
        for (unsigned i = 0; i < NOTES; i++) {
            assert_int_equal(wait_for(&notes[i].spawned), 0);
            assert_int_equal(notes[i].place, i);
        }
    }
    bide_strand_destroy(&strand);
    bide_thread_pool_destroy(pool);
}

/* ---- Fairness ---- */

struct yielder {
    bide_task task;
    bide_spawned spawned;
    bide_schedule_operation yield;
    const bool *end;
    unsigned turns;
};

bide_coroutine(yielder_body)
{
    bide_begin(yielder_body, struct yielder * self);
    while (!*self->end) {
        self->turns++;
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    }
    bide_end();
}

struct ender {
    bide_task task;
    bool *end;
};

bide_coroutine(ender_body)
{
    bide_begin(ender_body, struct ender * self);
    *self->end = true;
    bide_end();
}

/* Without a bound the loop would never run the coroutine that ends them. */
static void a_strand_that_always_has_work_lets_others_of_its_loop_run(void **state)
{
    (void)state;
    bool end = false;
    bide_run_loop loop;
    bide_strand strand;
    struct yielder yielders[2] = {{.end = &end}, {.end = &end}};
    struct ender ender = {.end = &end};
    bide_run_loop_init(&loop);
    bide_strand_init(&strand, &loop.scheduler);
    for (int i = 0; i < 2; i++)
        bide_spawn(&yielders[i].spawned, &strand.context,
                   bide_task_init(&yielders[i].task, &yielder_body));
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&ender.task, &ender_body)), 0);
    for (int i = 0; i < 2; i++) {
        bide_event_waiter wait;
        assert_int_equal(
            bide_run_loop_wait(&loop, bide_event_wait(&wait, &yielders[i].spawned.ended)), 0);
        assert_in_range(yielders[i].turns, 1, BIDE_STRAND_TURN_);
    }
    bide_strand_destroy(&strand);
    bide_run_loop_destroy(&loop);
}

/* ---- Inline ---- */

static void on_the_inline_scheduler_it_runs_where_it_is_woken(void **state)
{
    (void)state;
    bide_strand strand;
    bide_event event;
    witness task;
    bide_spawned spawned;
    bide_strand_init(&strand, &bide_inline_scheduler);
    bide_event_init(&event, false);
    bide_spawn(&spawned, &strand.context, witness_run(&task, &event, -EDOM));
    assert_int_equal(witness_ends(&task), 0);
    bide_event_set(&event);
    assert_int_equal(witness_ends(&task), 1);
    assert_int_equal(spawned.root.status, -EDOM);
    assert_ptr_equal(task.scheduler, &strand.scheduler);
    bide_strand_destroy(&strand);
}

enum { CHAIN = 20000 };

struct link {
    bide_task task;
    bide_strand strand;
    bide_spawned spawned;
    bide_event_waiter wait;
    bide_event mine;
    struct link *next; /* or NULL */
};

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    bide_await(bide_event_wait(&self->wait, &self->mine));
    if (self->next != NULL)
        bide_event_set(&self->next->mine);
    bide_end();
}

static void *wake_the_chain(void *argument)
{
    struct link *links = argument;
    bide_event_set(&links[0].mine);
    return NULL;
}

static void strands_that_wake_each_other_inline_do_not_nest(void **state)
{
    (void)state;
    struct link *links = aligned_alloc(BIDE_CACHE_LINE, CHAIN * sizeof *links);
    assert_non_null(links);
    for (int i = 0; i < CHAIN; i++) {
        bide_strand_init(&links[i].strand, &bide_inline_scheduler);
        bide_event_init(&links[i].mine, false);
        links[i].next = i + 1 < CHAIN ? &links[i + 1] : NULL;
        bide_spawn(&links[i].spawned, &links[i].strand.context,
                   bide_task_init(&links[i].task, &link_body));
    }
    on_a_small_stack(wake_the_chain, links);
    for (int i = 0; i < CHAIN; i++) {
        assert_true(bide_event_is_set(&links[i].spawned.ended));
        bide_strand_destroy(&links[i].strand);
    }
    free(links);
}

/* ---- Timers ---- */

struct sleeper {
    bide_task task;
    bide_spawned spawned;
    shared *shared;
    bide_strand *strand;
    uint64_t time;
    bide_sleep sleep;
    bool was_early;
    bool was_elsewhere;
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    bide_try(bide_sleep_until(&self->sleep, self->time));
    self->was_early = bide_platform.now() < self->time;
    self->was_elsewhere = !self->strand->scheduler.runs_here_only(&self->strand->scheduler);
    touch(self->shared);
    bide_end();
}

static void sleepers_wake_inside_the_strand_and_never_early(void **state)
{
    (void)state;
    enum { SLEEPERS = 300 };
    static struct sleeper sleepers[SLEEPERS];
    uint64_t random = testing_seed();
    bide_thread_pool *pool = create(3);
    bide_strand outer, strand;
    shared shared = {0, false, false};
    bide_strand_init(&outer, bide_thread_pool_scheduler(pool));
    for (int nested = 0; nested < 2; nested++) {
        bide_strand_init(&strand, nested != 0 ? &outer.scheduler : outer.under);
        uint64_t now = bide_platform.now();
        for (int i = 0; i < SLEEPERS; i++) {
            sleepers[i] =
                (struct sleeper){.shared = &shared,
                                 .strand = &strand,
                                 .time = now + testing_random(&random) % (3 * MILLISECOND)};
            bide_spawn(&sleepers[i].spawned, &strand.context,
                       bide_task_init(&sleepers[i].task, &sleeper_body));
        }
        for (int i = 0; i < SLEEPERS; i++) {
            assert_int_equal(wait_for(&sleepers[i].spawned), 0);
            assert_false(sleepers[i].was_early);
            assert_false(sleepers[i].was_elsewhere);
        }
        bide_strand_destroy(&strand);
    }
    assert_false(shared.met);
    assert_int_equal(shared.steps, 2 * SLEEPERS);
    bide_strand_destroy(&outer);
    bide_thread_pool_destroy(pool);
}

static void a_sleep_that_is_cut_short_leaves_no_timer(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_strand strand;
    bide_stop_source stop;
    shared shared = {0, false, false};
    bide_run_loop_init(&loop);
    bide_strand_init(&strand, &loop.scheduler);
    bide_stop_source_init(&stop);
    bide_context context = strand.context;
    context.stop = &stop;
    struct sleeper sleepers[2];
    uint64_t now = bide_platform.now();
    for (int i = 0; i < 2; i++) {
        sleepers[i] = (struct sleeper){
            .shared = &shared, .strand = &strand, .time = now + (uint64_t)(2 - i) * HOUR};
        bide_spawn(&sleepers[i].spawned, &context,
                   bide_task_init(&sleepers[i].task, &sleeper_body));
        bide_run_loop_run_ready(&loop);
        assert_true(bide_run_loop_next_deadline(&loop) == sleepers[i].time); /* the earliest */
    }
    bide_stop_request(&stop);
    bide_run_loop_run_ready(&loop);
    for (int i = 0; i < 2; i++) {
        assert_true(bide_event_is_set(&sleepers[i].spawned.ended));
        assert_int_equal(sleepers[i].spawned.root.status, -ECANCELED);
    }
    assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
    bide_strand_destroy(&strand);
    bide_run_loop_destroy(&loop);
}

static void without_timers_below_there_are_none(void **state)
{
    (void)state;
    bide_scheduler scheduler = bide_inline_scheduler;
    bide_strand strand;
    bide_sleep sleep;
    bide_spawned spawned;
    scheduler.set_timer = NULL;
    scheduler.clear_timer = NULL;
    bide_strand_init(&strand, &scheduler);
    bide_spawn(&spawned, &strand.context, bide_sleep_for(&sleep, 1));
    assert_int_equal(spawned.root.status, -ENOTSUP);
    bide_strand_destroy(&strand);
}

/* A scheduler whose timers fail, on a loop that runs the posted coroutines. */
static bide_run_loop failing_loop;
static int failures;
static unsigned live;

static void failing_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    (void)scheduler;
    failing_loop.scheduler.post(&failing_loop.scheduler, first, last);
}

static int failing_set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    (void)scheduler;
    (void)timer;
    if (failures > 0) {
        failures--;
        return -ENOMEM;
    }
    live++;
    return 0;
}

static bool failing_clear_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    (void)scheduler;
    (void)timer;
    live--;
    return true;
}

static void a_timer_that_cannot_be_set_is_reported_and_those_before_it_stay(void **state)
{
    (void)state;
    bide_scheduler scheduler = {.post = failing_post,
                                .one_thread = true,
                                .set_timer = failing_set_timer,
                                .clear_timer = failing_clear_timer};
    bide_strand strand;
    bide_sleep sleeps[2];
    bide_spawned spawned[2];
    bide_stop_source stop;
    bide_run_loop_init(&failing_loop);
    bide_strand_init(&strand, &scheduler);
    bide_stop_source_init(&stop);
    bide_context context = strand.context;
    context.stop = &stop;
    bide_spawn(&spawned[0], &context, bide_sleep_until(&sleeps[0], HOUR));
    bide_run_loop_run_ready(&failing_loop);
    assert_int_equal(live, 1);
    failures = 1;
    bide_spawn(&spawned[1], &context, bide_sleep_until(&sleeps[1], HOUR / 2));
    bide_run_loop_run_ready(&failing_loop);
    assert_true(bide_event_is_set(&spawned[1].ended));
    assert_int_equal(spawned[1].root.status, -ENOMEM);
    assert_false(bide_event_is_set(&spawned[0].ended));
    assert_int_equal(live, 1);
    assert_true(strand.alarm.time == HOUR);
    bide_stop_request(&stop);
    bide_run_loop_run_ready(&failing_loop);
    assert_int_equal(spawned[0].root.status, -ECANCELED);
    assert_int_equal(live, 0);
    bide_strand_destroy(&strand);
}

/* ---- The end ---- */

/* The memory is released when the last coroutine has ended, while the pool's thread is about to leave the strand. */
static void a_strand_may_go_when_what_it_ran_has_ended(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    bide_thread_pool *pool = create(2);
    for (unsigned round = rounds_of(3000); round > 0; round--) {
        bide_strand *strand = aligned_alloc(BIDE_CACHE_LINE, sizeof *strand);
        assert_non_null(strand);
        bide_strand_init(strand, bide_thread_pool_scheduler(pool));
        shared shared = {0, false, false};
        struct sleeper sleeper = {.shared = &shared, .strand = strand, .time = 0};
        if (testing_random(&random) % 2 == 0)
            bide_sync_wait_in(&strand->context, bide_task_init(&sleeper.task, &sleeper_body));
        else {
            witness task;
            bide_sync_wait_in(&strand->context, witness_run(&task, NULL, 0));
        }
        bide_strand_destroy(strand);
        memset(strand, 0xff, sizeof *strand);
        free(strand);
    }
    bide_thread_pool_destroy(pool);
}

/* The posted coroutine is destroyed before it runs: the runner is left in the loop's queue. */
static void a_runner_that_has_nothing_to_run_is_taken_back(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_strand strands[2];
    bide_run_loop_init(&loop);
    bide_strand_init(&strands[0], &loop.scheduler);
    bide_strand_init(&strands[1], &strands[0].scheduler);
    for (int i = 1; i >= 0; i--) {
        witness task;
        bide_event event;
        bide_event_init(&event, false);
        bide_awaiter *awaiter = witness_run(&task, &event, 0);
        (void)awaiter;
        bide_start(&task.task.frame, &witness_body, &strands[i].context);
        bide_resume(&task.task.frame);
        bide_event_set(&event); /* posted */
        bide_destroy(&task.task.frame);
        assert_int_equal(witness_ends(&task), 0);
        bide_strand_destroy(&strands[i]);
        bide_event_destroy(&event);
    }
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
    bide_run_loop_destroy(&loop);
}

struct destroyer {
    bide_task task;
    bide_strand *strand;
};

bide_coroutine(destroyer_body)
{
    bide_begin(destroyer_body, struct destroyer * self);
    bide_strand_destroy(self->strand);
    bide_end();
}

static void destroy_it_inside(void)
{
    bide_run_loop loop;
    bide_strand strand;
    bide_run_loop_init(&loop);
    bide_strand_init(&strand, &loop.scheduler);
    struct destroyer destroyer = {.strand = &strand};
    bide_spawned spawned;
    bide_spawn(&spawned, &strand.context, bide_task_init(&destroyer.task, &destroyer_body));
    bide_run_loop_run_ready(&loop);
}

static void destroy_it_while_one_sleeps(void)
{
    bide_thread_pool *pool = create(1);
    bide_strand strand;
    bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
    shared shared = {0, false, false};
    struct sleeper sleeper = {.shared = &shared, .strand = &strand, .time = BIDE_FOREVER - 1};
    bide_spawn(&sleeper.spawned, &strand.context, bide_task_init(&sleeper.task, &sleeper_body));
    bool sleeps = false;
    while (!sleeps) {
        pthread_mutex_lock(&strand.timers_lock);
        sleeps = strand.timers.first != NULL;
        pthread_mutex_unlock(&strand.timers_lock);
    }
    bide_strand_destroy(&strand);
}

static void destroy_it_while_one_waits(void)
{
    bide_run_loop loop;
    bide_strand strand;
    bide_event event;
    witness task;
    bide_spawned spawned;
    bide_run_loop_init(&loop);
    bide_strand_init(&strand, &loop.scheduler);
    bide_event_init(&event, false);
    bide_spawn(&spawned, &strand.context, witness_run(&task, &event, 0));
    bide_run_loop_run_ready(&loop);
    bide_strand_destroy(&strand);
}

static void destroy_it_while_something_is_posted(void)
{
    bide_run_loop loop;
    bide_strand strand;
    witness task;
    bide_spawned spawned;
    bide_run_loop_init(&loop);
    bide_strand_init(&strand, &loop.scheduler);
    bide_spawn(&spawned, &strand.context, witness_run(&task, NULL, 0));
    bide_strand_destroy(&strand);
}

static void to_destroy_one_that_is_in_use_is_misuse(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(destroy_it_inside, "in one of its coroutines", "strand_test.c"));
    assert_true(
        misuse_aborts_naming(destroy_it_while_one_sleeps, "a timer of it is set", "sleeper_body"));
    assert_true(
        misuse_aborts_naming(destroy_it_while_one_waits, "a task of it waits", "witness_body"));
    assert_true(misuse_aborts_naming(destroy_it_while_something_is_posted, "while it is in use",
                                     "strand_test.c"));
}

struct blocker {
    bide_task task;
    bide_strand *strand;
};

bide_coroutine(blocker_body)
{
    bide_begin(blocker_body, struct blocker * self);
    witness task;
    bide_sync_wait_in(&self->strand->context, witness_run(&task, NULL, 0));
    bide_end();
}

static void block_for_its_own(void)
{
    bide_thread_pool *pool = create(2);
    bide_strand strand;
    bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
    struct blocker blocker = {.strand = &strand};
    bide_sync_wait_in(&strand.context, bide_task_init(&blocker.task, &blocker_body));
}

static void block_the_loop_below(void)
{
    bide_run_loop loop;
    bide_strand strand;
    bide_run_loop_init(&loop);
    bide_strand_init(&strand, &loop.scheduler);
    struct blocker blocker = {.strand = &strand};
    bide_run_loop_wait(&loop, bide_task_init(&blocker.task, &blocker_body));
}

static void to_block_for_what_only_the_strand_could_run_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(block_for_its_own, "only it could run", "witness_body"));
    assert_true(misuse_aborts_naming(block_the_loop_below, "only it could run", "witness_body"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coroutines_of_a_strand_on_a_pool_run_one_at_a_time),
        cmocka_unit_test(coroutines_that_come_and_go_are_in_a_strand_one_at_a_time),
        cmocka_unit_test(what_one_thread_posts_runs_in_the_order_of_its_posts),
        cmocka_unit_test(a_strand_that_always_has_work_lets_others_of_its_loop_run),
        cmocka_unit_test(on_the_inline_scheduler_it_runs_where_it_is_woken),
        cmocka_unit_test(strands_that_wake_each_other_inline_do_not_nest),
        cmocka_unit_test(sleepers_wake_inside_the_strand_and_never_early),
        cmocka_unit_test(a_sleep_that_is_cut_short_leaves_no_timer),
        cmocka_unit_test(without_timers_below_there_are_none),
        cmocka_unit_test(a_timer_that_cannot_be_set_is_reported_and_those_before_it_stay),
        cmocka_unit_test(a_strand_may_go_when_what_it_ran_has_ended),
        cmocka_unit_test(a_runner_that_has_nothing_to_run_is_taken_back),
        cmocka_unit_test(to_destroy_one_that_is_in_use_is_misuse),
        cmocka_unit_test(to_block_for_what_only_the_strand_could_run_is_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
