/*
 * The test loop: its draws, the same run for the same seed, virtual time, blocking calls, deadlocks; and exploration:
 * its findings, their simplification, and its output.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "testing.h"

#include "bide/barging_mutex.h"
#include "bide/blocking.h"
#include "bide/channel.h"
#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/interval.h"
#include "bide/mutex.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/spawn.h"
#include "bide/strand.h"
#include "bide/task.h"
#include "bide/sim_loop.h"
#include "bide/when.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SECOND = 1000000000, MILLISECOND = 1000000, TASKS = 4, TURNS = 6 };

/* ---- The order ---- */

/* Coroutines that yield a few times, and note their number at each turn. */
typedef struct crowd {
    char order[TASKS * TURNS + 1];
    size_t count;
    bide_spawned spawned[TASKS];
    struct yielder {
        bide_task task;
        struct crowd *crowd;
        unsigned turn;
        char name;
        bide_schedule_operation yield;
    } yielders[TASKS];
} crowd;

bide_coroutine(yielder_body)
{
    bide_begin(yielder_body, struct yielder * self);
    for (self->turn = 0; self->turn < TURNS; self->turn++) {
        self->crowd->order[self->crowd->count++] = self->name;
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    }
    bide_end();
}

static void crowd_run(crowd *self, uint64_t seed)
{
    bide_sim_loop loop;
    bide_sim_loop_init(&loop, seed);
    memset(self, 0, sizeof *self);
    for (unsigned i = 0; i < TASKS; i++) {
        struct yielder *yielder = &self->yielders[i];
        yielder->crowd = self;
        yielder->name = (char)('a' + i);
        bide_spawn(&self->spawned[i], &loop.context, bide_task_init(&yielder->task, &yielder_body));
    }
    bide_sim_loop_run_until(&loop, SECOND);
    assert_int_equal(self->count, TASKS * TURNS);
    assert_true(bide_sim_loop_is_empty(&loop));
    bide_sim_loop_destroy(&loop);
}

static void a_seed_gives_the_same_run(void **state)
{
    static crowd first, second;
    (void)state;
    for (uint64_t seed = 1; seed < 100; seed++) {
        crowd_run(&first, seed);
        crowd_run(&second, seed);
        assert_string_equal(first.order, second.order);
    }
}

/* Two whose awaits are all ready: their turns are budgets that are drawn, also in a coroutine of another loop. */
struct ready_one {
    bide_task task;
    uint64_t i;
    bide_event *set;
    bide_event_waiter wait;
    bide_spawned spawned;
};

bide_coroutine(ready_one_body)
{
    bide_begin(ready_one_body, struct ready_one * self);
    for (self->i = 0; self->i < 100000; self->i++)
        bide_await(bide_event_wait(&self->wait, self->set));
    bide_end();
}

static uint64_t count_drawn_turns(uint64_t seed)
{
    bide_sim_loop loop;
    struct ready_one ones[2];
    bide_event set;
    bide_event_init(&set, true);
    bide_sim_loop_init(&loop, seed);
    for (unsigned i = 0; i < 2; i++) {
        ones[i].set = &set;
        bide_spawn(&ones[i].spawned, &loop.context, bide_task_init(&ones[i].task, &ready_one_body));
    }
    bide_sim_loop_run_until(&loop, SECOND);
    uint64_t turns = loop.turns;
    bide_sim_loop_destroy(&loop);
    bide_event_destroy(&set);
    return turns;
}

struct outer_one {
    bide_task task;
    uint64_t turns[8];
};

bide_coroutine(outer_one_body)
{
    bide_begin(outer_one_body, struct outer_one * self);
    for (uint64_t i = 0; i < 8; i++)
        self->turns[i] = count_drawn_turns(i + 1);
    bide_end();
}

static void a_seed_gives_the_same_run_in_another_loop(void **state)
{
    bide_run_loop loop;
    struct outer_one outer;
    (void)state;
    bide_run_loop_init(&loop);
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&outer.task, &outer_one_body)), 0);
    bide_run_loop_destroy(&loop);
    for (uint64_t i = 0; i < 8; i++)
        assert_true(outer.turns[i] == count_drawn_turns(i + 1));
}

static void seeds_give_different_runs(void **state)
{
    static crowd first, other;
    unsigned different = 0;
    (void)state;
    crowd_run(&first, 1);
    for (uint64_t seed = 2; seed < 102; seed++) {
        crowd_run(&other, seed);
        different += strcmp(first.order, other.order) != 0;
    }
    assert_in_range(different, 90, 100);
}

/* (the output is the same everywhere: other compilers and machines run this too) */
static void a_seed_gives_this_run_on_every_machine(void **state)
{
    static crowd run;
    static const char *const orders[] = {
        "acbbdadcbdacdbacdbacbdac", "abcdabcdabcdabcdabcdabcd", "abcdabcdabcdabcdabcdabcd",
        "abcdabcdacdacdacdacdbbbb", "abcdabcdabcdabcdabcdabcd", "bacaadbccabddacaccbbbddd",
    };
    (void)state;
    for (uint64_t seed = 1; seed <= sizeof orders / sizeof orders[0]; seed++) {
        crowd_run(&run, seed);
        assert_string_equal(run.order, orders[seed - 1]);
    }
}

/* ---- Time ---- */

struct sleeper {
    bide_task task;
    uint64_t began, woke;
    bide_sleep sleep;
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    self->began = bide_now(bide_this_context());
    bide_try(bide_sleep_for(&self->sleep, 3600 * (uint64_t)SECOND));
    self->woke = bide_now(bide_this_context());
    bide_end();
}

static void time_jumps_when_nothing_is_ready(void **state)
{
    bide_sim_loop loop;
    struct sleeper sleeper;
    (void)state;
    bide_sim_loop_init(&loop, 1);
    uint64_t before = bide_platform.now();
    assert_int_equal(bide_sim_loop_wait(&loop, bide_task_init(&sleeper.task, &sleeper_body)), 0);
    assert_true(bide_platform.now() - before < 3600 * (uint64_t)SECOND);
    assert_int_equal(sleeper.began, SECOND);
    assert_true(sleeper.woke == 3601 * (uint64_t)SECOND);
    assert_true(bide_now(&loop.context) == sleeper.woke);
    bide_sim_loop_destroy(&loop);
}

/* The clock and the random numbers of code that has no context. */
struct asker {
    bide_task task;
    uint64_t pause, began, woke, of_context, numbers[4];
    bide_sleep sleep;
};

bide_coroutine(asker_body)
{
    bide_begin(asker_body, struct asker * self);
    self->began = bide_test_now();
    for (unsigned i = 0; i < 4; i++)
        self->numbers[i] = bide_test_random();
    bide_try(bide_sleep_for(&self->sleep, self->pause));
    self->woke = bide_test_now();
    self->of_context = bide_now(bide_this_context());
    bide_end();
}

static void asker_run(struct asker *self, uint64_t seed)
{
    bide_sim_loop loop;
    bide_sim_loop_init(&loop, seed);
    self->pause = 3600 * (uint64_t)SECOND;
    assert_int_equal(bide_sim_loop_wait(&loop, bide_task_init(&self->task, &asker_body)), 0);
    bide_sim_loop_destroy(&loop);
}

static void the_clock_of_code_under_test_is_the_loops(void **state)
{
    struct asker asker;
    bide_run_loop loop;
    (void)state;
    asker_run(&asker, 1);
    assert_int_equal(asker.began, SECOND);
    assert_true(asker.woke == 3601 * (uint64_t)SECOND);
    assert_true(asker.woke == asker.of_context);
    /* in another loop, and in none, it is the system's */
    uint64_t before = bide_platform.now();
    uint64_t now = bide_test_now();
    assert_in_range(now, before, bide_platform.now());
    bide_run_loop_init(&loop);
    asker.pause = 0;
    before = bide_platform.now();
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&asker.task, &asker_body)), 0);
    bide_run_loop_destroy(&loop);
    assert_in_range(asker.began, before, bide_platform.now());
}

static void random_numbers_of_code_under_test_are_the_seeds(void **state)
{
    /* (the same on all machines) */
    static const uint64_t first[] = {
        UINT64_C(0xa562df66c82c649a),
        UINT64_C(0x2d811509609d7c43),
        UINT64_C(0x6dcc9be25c651d1c),
        UINT64_C(0xaf9462c83ce837d6),
    };
    struct asker one, other;
    (void)state;
    asker_run(&one, 1);
    for (unsigned i = 0; i < 4; i++)
        assert_true(one.numbers[i] == first[i]);
    asker_run(&other, 1);
    assert_memory_equal(one.numbers, other.numbers, sizeof one.numbers);
    asker_run(&other, 2);
    for (unsigned i = 0; i < 4; i++)
        assert_true(one.numbers[i] != other.numbers[i]);
    assert_true(bide_test_random() != bide_test_random());
}

static void run_until_stops_before_what_is_later(void **state)
{
    bide_sim_loop loop;
    bide_spawned spawned;
    struct sleeper sleeper = {.woke = 0};
    (void)state;
    bide_sim_loop_init(&loop, 1);
    bide_spawn(&spawned, &loop.context, bide_task_init(&sleeper.task, &sleeper_body));
    bide_sim_loop_run_until(&loop, 3600 * (uint64_t)SECOND);
    assert_true(bide_now(&loop.context) == 3600 * (uint64_t)SECOND);
    assert_false(bide_sim_loop_is_empty(&loop));
    assert_int_equal(sleeper.woke, 0);
    bide_sim_loop_run_until(&loop, 3601 * (uint64_t)SECOND);
    assert_true(sleeper.woke == 3601 * (uint64_t)SECOND);
    assert_true(bide_sim_loop_is_empty(&loop));
    bide_sim_loop_destroy(&loop);
}

static void deadlines_are_of_the_loops_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        bide_sim_loop loop;
        bide_event event;
        bide_event_waiter wait;
        bide_with_deadline_operation limited;
        bide_sim_loop_init(&loop, seed);
        bide_event_init(&event, false);
        int status = bide_sim_loop_wait(
            &loop, bide_with_deadline(&limited, bide_now(&loop.context) + 5 * MILLISECOND,
                                      bide_event_wait(&wait, &event)));
        assert_int_equal(status, -ETIMEDOUT);
        assert_int_equal(bide_now(&loop.context), SECOND + 5 * MILLISECOND);
        bide_event_destroy(&event);
        bide_sim_loop_destroy(&loop);
    }
}

struct ticker {
    bide_task task;
    bide_interval every;
    uint64_t first;
    unsigned ticks;
    bide_sleep sleep;
};

/* Busy for two and a half periods after the first tick. */
bide_coroutine(ticker_body)
{
    bide_begin(ticker_body, struct ticker * self);
    self->first = bide_now(bide_this_context());
    bide_interval_init(&self->every, self->first, 2 * MILLISECOND, BIDE_MISSED_SKIP);
    bide_try(bide_interval_tick(&self->every));
    bide_try(bide_sleep_for(&self->sleep, 5 * MILLISECOND));
    for (self->ticks = 0; self->ticks < 3; self->ticks++)
        bide_try(bide_interval_tick(&self->every));
    bide_end();
}

static void intervals_are_of_the_loops_time(void **state)
{
    bide_sim_loop loop;
    struct ticker ticker;
    (void)state;
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(bide_sim_loop_wait(&loop, bide_task_init(&ticker.task, &ticker_body)), 0);
    /* ticks at 0, 5 (that of 2, late), 6, 8 */
    assert_int_equal(bide_now(&loop.context) - ticker.first, 8 * MILLISECOND);
    assert_int_equal(ticker.every.next - ticker.first, 10 * MILLISECOND);
    bide_sim_loop_destroy(&loop);
}

static void a_strand_on_the_loop_has_its_time(void **state)
{
    bide_sim_loop loop;
    bide_strand strand;
    bide_spawned spawned;
    bide_event_waiter wait;
    struct sleeper sleeper;
    (void)state;
    bide_sim_loop_init(&loop, 1);
    bide_strand_init(&strand, &loop.scheduler);
    bide_spawn(&spawned, &strand.context, bide_task_init(&sleeper.task, &sleeper_body));
    assert_int_equal(bide_sim_loop_wait(&loop, bide_event_wait(&wait, &spawned.ended)), 0);
    assert_int_equal(sleeper.began, SECOND);
    assert_true(sleeper.woke == 3601 * (uint64_t)SECOND);
    assert_true(bide_now(&strand.context) == sleeper.woke);
    bide_strand_destroy(&strand);
    bide_sim_loop_destroy(&loop);
}

/* A job of 10 ms under a deadline of an hour, with something else that is ready all the time. */
struct job {
    bide_task task;
    unsigned i;
    bide_sleep sleep;
};

bide_coroutine(job_body)
{
    bide_begin(job_body, struct job * self);
    for (self->i = 0; self->i < 10; self->i++)
        bide_try(bide_sleep_for(&self->sleep, MILLISECOND));
    bide_end();
}

static int job_under_a_deadline(bide_sim_loop *loop, void *argument)
{
    struct job job;
    bide_with_deadline_operation limited;
    (void)argument;
    memset(&limited, 0x41, sizeof limited);
    return bide_sim_loop_wait(
        loop, bide_with_deadline(&limited, bide_now(&loop->context) + 3600 * (uint64_t)SECOND,
                                 bide_task_init(&job.task, &job_body)));
}

static void what_is_ready_is_late_by_a_millisecond_at_most(void **state)
{
    (void)state;
    assert_int_equal(bide_sim_loop_explore(job_under_a_deadline, 2000), 0);
}

/* Fails if time passes while a coroutine is ready; there is a timer `apart` from now. */
struct always_ready {
    bide_task task;
    unsigned i;
    bide_schedule_operation yield;
};

bide_coroutine(always_ready_body)
{
    bide_begin(always_ready_body, struct always_ready * self);
    for (self->i = 0; self->i < 20; self->i++)
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    if (bide_now(bide_this_context()) != SECOND)
        bide_return(-ETIME);
    bide_end();
}

static int ready_beside_a_sleep(bide_sim_loop *loop, void *apart)
{
    bide_sleep sleep;
    bide_spawned spawned;
    struct always_ready ready;
    bide_spawn(&spawned, &loop->context, bide_sleep_for(&sleep, *(uint64_t *)apart));
    int status = bide_sim_loop_wait(loop, bide_task_init(&ready.task, &always_ready_body));
    bide_sim_loop_run_until(loop, 2 * (uint64_t)SECOND);
    return status;
}

static void lateness_is_an_option(void **state)
{
    static const struct {
        uint64_t apart, max_late;
        int found;
    } cases[] = {
        {MILLISECOND / 2, 0, -ETIME},
        {MILLISECOND / 2, BIDE_SIM_NOT_LATE, 0},
        {2 * MILLISECOND, 0, 0},
        {2 * MILLISECOND, 5 * MILLISECOND, -ETIME},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t apart = cases[i].apart;
        bide_sim_options options = {
            .argument = &apart, .max_late = cases[i].max_late, .out = tmpfile()};
        assert_int_equal(bide_sim_loop_explore_with(ready_beside_a_sleep, 2000, &options),
                         cases[i].found);
        fclose(options.out);
    }
}

/* Fails if the last of so many that are ready runs first. */
static struct one_of_many {
    bide_task task;
    bool *has_begun, was_first;
    bide_spawned spawned;
} many[1000];

bide_coroutine(one_of_many_body)
{
    bide_begin(one_of_many_body, struct one_of_many * self);
    self->was_first = !*self->has_begun;
    *self->has_begun = true;
    bide_end();
}

static int last_runs_first(bide_sim_loop *loop, void *count)
{
    unsigned last = *(unsigned *)count - 1;
    bool has_begun = false;
    for (unsigned i = 0; i <= last; i++) {
        many[i].has_begun = &has_begun;
        bide_spawn(&many[i].spawned, &loop->context,
                   bide_task_init(&many[i].task, &one_of_many_body));
    }
    bide_sim_loop_run_until(loop, SECOND);
    return many[last].was_first ? -EINVAL : 0;
}

static void each_of_many_that_are_ready_may_be_first(void **state)
{
    static const unsigned counts[] = {2, 64, 65, 100};
    (void)state;
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        unsigned count = counts[i];
        bide_sim_options options = {
            .argument = &count, .retries = 1, .simplify_seconds = 1, .out = tmpfile()};
        assert_int_equal(bide_sim_loop_explore_with(last_runs_first, 20000, &options), -EINVAL);
        fclose(options.out);
    }
}

/* ---- Blocking calls ---- */

struct caller {
    bide_task task;
    pthread_t made_on;
    unsigned made;
    bide_blocking_call call;
    uint64_t took;
};

static void note_thread(void *argument)
{
    struct caller *self = argument;
    self->made_on = pthread_self();
    self->made++;
}

bide_coroutine(caller_body)
{
    bide_begin(caller_body, struct caller * self);
    self->took = bide_now(bide_this_context());
    bide_try(bide_blocking_run(&self->call, NULL, note_thread, self));
    self->took = bide_now(bide_this_context()) - self->took;
    bide_end();
}

static void blocking_calls_are_made_by_the_loop_and_take_virtual_time(void **state)
{
    uint64_t min = UINT64_MAX;
    uint64_t max = 0;
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        bide_sim_loop loop;
        struct caller caller = {.made = 0};
        bide_sim_loop_init(&loop, seed);
        assert_int_equal(bide_sim_loop_wait(&loop, bide_task_init(&caller.task, &caller_body)), 0);
        assert_int_equal(caller.made, 1);
        assert_true(pthread_equal(caller.made_on, pthread_self()));
        min = caller.took < min ? caller.took : min;
        max = caller.took > max ? caller.took : max;
        bide_sim_loop_destroy(&loop);
    }
    assert_true(min > 0);
    assert_true(max >= 5 * (uint64_t)SECOND);
}

static void a_call_that_is_cut_short_is_made_or_not(void **state)
{
    unsigned made = 0;
    (void)state;
    for (uint64_t seed = 1; seed < 100; seed++) {
        bide_sim_loop loop;
        bide_with_deadline_operation limited;
        struct caller caller = {.made = 0};
        bide_sim_loop_init(&loop, seed);
        int status = bide_sim_loop_wait(
            &loop, bide_with_deadline(&limited, bide_now(&loop.context) + MILLISECOND,
                                      bide_task_init(&caller.task, &caller_body)));
        /* (a call that is cancelled after it was made counts as made) */
        assert_int_equal(status, caller.made == 1 ? 0 : -ETIMEDOUT);
        assert_true(bide_sim_loop_is_empty(&loop));
        made += caller.made;
        bide_sim_loop_destroy(&loop);
    }
    assert_in_range(made, 10, 90);
}

static void a_coroutine_that_waits_for_a_call_can_be_destroyed_before_it_is_made(void **state)
{
    bide_sim_loop loop;
    bide_spawned spawned;
    struct caller caller = {.made = 0};
    (void)state;
    bide_sim_loop_init(&loop, 1);
    bide_spawn(&spawned, &loop.context, bide_task_init(&caller.task, &caller_body));
    assert_true(bide_sim_loop_step(&loop));
    assert_false(bide_sim_loop_step(&loop));
    bide_destroy(&spawned.root.frame);
    assert_int_equal(caller.made, 0);
    assert_true(bide_sim_loop_is_empty(&loop));
    bide_sim_loop_destroy(&loop);
}

static void a_strand_on_the_loop_has_its_calls_made_by_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        bide_sim_loop loop;
        bide_strand strand;
        bide_spawned spawned;
        bide_event_waiter wait;
        struct caller caller = {.made = 0};
        bide_sim_loop_init(&loop, seed);
        bide_strand_init(&strand, &loop.scheduler);
        bide_context context = strand.context;
        bide_stop_source source;
        bide_stop_source_init(&source);
        context.stop = &source;
        bide_spawn(&spawned, &context, bide_task_init(&caller.task, &caller_body));
        if (seed % 2 == 0) { /* cancelled, if it is not too late */
            bide_sim_loop_step(&loop);
            bide_stop_request(&source);
        }
        assert_int_equal(bide_sim_loop_wait(&loop, bide_event_wait(&wait, &spawned.ended)), 0);
        assert_int_equal(caller.made, seed % 2);
        assert_int_equal(spawned.root.status, seed % 2 == 0 ? -ECANCELED : 0);
        bide_strand_destroy(&strand);
        bide_sim_loop_destroy(&loop);
    }
}

static int answer(void *argument)
{
    struct caller *self = argument;
    self->made++;
    return bide_blocking_is_interrupted() ? -EINTR : -EDOM;
}

static void calls_that_may_be_interrupted_end_with_what_they_return(void **state)
{
    bide_sim_loop loop;
    bide_blocking_call call;
    struct caller caller = {.made = 0};
    (void)state;
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(
        bide_sim_loop_wait(&loop, bide_blocking_run_interruptible(&call, NULL, answer, &caller)),
        -EDOM);
    assert_int_equal(caller.made, 1);
    bide_sim_loop_destroy(&loop);
}

static void the_loop_reads(void **state)
{
    bide_sim_loop loop;
    bide_blocking_reader reader;
    char buffer[8];
    int fds[2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "abc", 3), 3);
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(
        bide_sim_loop_wait(&loop, bide_blocking_read(&reader, NULL, fds[0], buffer, sizeof buffer)),
        0);
    assert_int_equal(reader.result, 3);
    assert_memory_equal(buffer, "abc", 3);
    bide_sim_loop_destroy(&loop);
    close(fds[0]);
    close(fds[1]);
}

/* ---- Points and faults ---- */

struct pointed {
    bide_task task;
    bide_sim_point_operation point;
    unsigned passed;
};

bide_coroutine(pointed_body)
{
    bide_begin(pointed_body, struct pointed * self);
    for (self->passed = 0; self->passed < 100; self->passed++)
        bide_await(bide_sim_point(&self->point));
    bide_end();
}

static void a_test_point_yields_in_a_test_loop_alone(void **state)
{
    bide_sim_loop loop;
    struct pointed pointed;
    (void)state;
    bide_frame_init_in(&pointed.task.frame, &pointed_body, &bide_default_context);
    bide_resume(&pointed.task.frame);
    assert_true(bide_done(&pointed.task.frame));
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(bide_sim_loop_wait(&loop, bide_task_init(&pointed.task, &pointed_body)), 0);
    assert_in_range(loop.turns, 2, 100);
    bide_sim_loop_destroy(&loop);
}

static int faulty(bide_sim_loop *loop, void *argument)
{
    (void)loop;
    (void)argument;
    for (int i = 0; i < 20; i++) {
        if (bide_maybe("first"))
            i++;
        bide_maybe("second");
    }
    return 0;
}

static void faults_fire_in_test_loops_alone_and_are_counted(void **state)
{
    bide_sim_result result;
    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_false(bide_maybe("first"));
    assert_int_equal(
        bide_sim_loop_explore_with(faulty, 100, &(bide_sim_options){.result = &result}), 0);
    assert_int_equal(result.runs, 100);
    assert_int_equal(result.faults_count, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(result.faults[i].name, i == 0 ? "first" : "second");
        assert_true(result.faults[i].asked >= 1000);
        assert_true(result.faults[i].fired >= 50);
        assert_true(result.faults[i].fired < result.faults[i].asked / 2);
    }
}

/* ---- Exploring ---- */

/* The output of an exploration. */
static char said[100000];

static int explore(bide_sim_body *body, uint64_t seeds, bide_sim_options options,
                   bide_sim_result *result)
{
    FILE *out = tmpfile();
    options.out = out;
    options.result = result;
    memset(said, 0, sizeof said);
    int status = bide_sim_loop_explore_with(body, seeds, &options);
    rewind(out);
    size_t length = fread(said, 1, sizeof said - 1, out);
    said[length] = '\0';
    fclose(out);
    return status;
}

static void assert_said(const char *text)
{
    if (strstr(said, text) == NULL)
        printf("# \"%s\" is not in:\n%s\n", text, said);
    assert_non_null(strstr(said, text));
}

static void a_fault_that_never_fires_fails_the_exploration_if_it_must(void **state)
{
    static const char *const must[] = {"first", "third", NULL};
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(faulty, 100, (bide_sim_options){.faults = must}, &result), -ENODATA);
    assert_int_equal(result.failure, BIDE_SIM_NO_FAULT);
    assert_said("\"third\" never fired");
    assert_null(strstr(said, "\"first\""));
}

/* As many names as there is room for, and one more. */
static int name_faults(bide_sim_loop *loop, void *count)
{
    static char names[BIDE_SIM_FAULTS_MAX + 1][16];
    (void)loop;
    for (unsigned i = 0; i < *(unsigned *)count; i++) {
        snprintf(names[i], sizeof names[i], "%u", i);
        for (unsigned j = 0; j < 100; j++)
            bide_maybe(names[i]);
    }
    return 0;
}

static void name_a_fault_too_many(void)
{
    static bide_sim_loop loop;
    unsigned count = BIDE_SIM_FAULTS_MAX + 1;
    bide_sim_loop_init(&loop, 1);
    bide_sim_loop_running_ = &loop;
    name_faults(&loop, &count);
}

static void each_fault_that_has_a_name_fires(void **state)
{
    static bide_sim_result result;
    unsigned count = BIDE_SIM_FAULTS_MAX;
    (void)state;
    assert_int_equal(explore(name_faults, 20, (bide_sim_options){.argument = &count}, &result), 0);
    assert_int_equal(result.faults_count, count);
    for (unsigned i = 0; i < count; i++)
        assert_true(result.faults[i].fired != 0);
    assert_true(misuse_aborts_naming(name_a_fault_too_many, "more names of faults", "128"));
}

/* A deadline that passes, in memory that is not zero: its trace is that of the whole run. */
static int pass_a_deadline(bide_sim_loop *loop, void *argument)
{
    bide_event event;
    bide_event_waiter wait;
    bide_with_deadline_operation limited;
    (void)argument;
    memset(&limited, 0x41, sizeof limited);
    bide_event_init(&event, false);
    int status = bide_sim_loop_wait(loop, bide_with_deadline(&limited,
                                                             bide_now(&loop->context) + MILLISECOND,
                                                             bide_event_wait(&wait, &event)));
    bide_event_destroy(&event);
    return status == -ETIMEDOUT ? -EINVAL : status;
}

static void a_deadline_that_passes_is_in_the_trace(void **state)
{
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(pass_a_deadline, 1, (bide_sim_options){0}, &result), -EINVAL);
    assert_said("a deadline passes");
}

/* Two mutexes that are locked in two orders. */
struct locker {
    bide_task task;
    bide_mutex *first, *second;
    bide_mutex_waiter one, other;
};

bide_coroutine(locker_body)
{
    bide_begin(locker_body, struct locker * self);
    bide_try(bide_mutex_lock(&self->one, self->first));
    bide_try(bide_mutex_lock(&self->other, self->second));
    bide_mutex_unlock(&self->other);
    bide_mutex_unlock(&self->one);
    bide_end();
}

struct both {
    bide_mutex a, b;
    struct locker lockers[2];
    bide_spawned spawned;
};

static int lock_both(bide_sim_loop *loop, void *argument)
{
    bool same = argument != NULL;
    struct both both;
    bide_event_waiter wait;
    bide_mutex_init(&both.a);
    bide_mutex_init(&both.b);
    both.lockers[0].first = &both.a;
    both.lockers[0].second = &both.b;
    both.lockers[1].first = same ? &both.a : &both.b;
    both.lockers[1].second = same ? &both.b : &both.a;
    bide_spawn(&both.spawned, &loop->context, bide_task_init(&both.lockers[0].task, &locker_body));
    int status = bide_sim_loop_wait(loop, bide_task_init(&both.lockers[1].task, &locker_body));
    int other = bide_sim_loop_wait(loop, bide_event_wait(&wait, &both.spawned.ended));
    return status < 0 ? status : other;
}

static void mutexes_locked_in_two_orders_are_a_deadlock_that_is_named(void **state)
{
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(lock_both, 1000, (bide_sim_options){.argument = &result}, &result), 0);
    assert_int_equal(result.runs, 1000);
    assert_string_equal(said, "");
    assert_int_equal(explore(lock_both, 1000, (bide_sim_options){0}, &result), -EDEADLK);
    assert_int_equal(result.failure, BIDE_SIM_DEADLOCK);
    assert_in_range(result.seed, 1, 1000);
    assert_said("deadlock after");
    assert_said("#0 locker_body at ");
    assert_said("waiting for bide_mutex_lock");
    assert_said("BIDE_TEST_SEED=");
    /* each waits for a lock that the other holds */
    assert_said("    lock 1 is held by task 1: locker_body at ");
    assert_said("    lock 2 is held by task 2: locker_body at ");
}

/* ... through a deadline that is far, with mutexes of both kinds, in a trace and outside of an exploration. */
struct holder {
    bide_task task;
    bool is_barging, keeps_it;
    bide_mutex *mutex;
    bide_barging_mutex *barging;
    bide_mutex_waiter key;
    bide_barging_mutex_waiter barging_key;
    bide_sleep sleep;
    bide_with_deadline_operation limited;
    bide_event never;
    bide_event_waiter wait;
};

bide_coroutine(holder_body)
{
    bide_begin(holder_body, struct holder * self);
    bide_try(bide_with_deadline(&self->limited, BIDE_FOREVER,
                                self->is_barging
                                    ? bide_barging_mutex_lock(&self->barging_key, self->barging)
                                    : bide_mutex_lock(&self->key, self->mutex)));
    bide_try(bide_sleep_for(&self->sleep, MILLISECOND));
    if (self->keeps_it)
        bide_try(bide_event_wait(&self->wait, &self->never));
    if (self->is_barging)
        bide_barging_mutex_unlock(&self->barging_key);
    else
        bide_mutex_unlock(&self->key);
    bide_try(bide_sleep_for(&self->sleep, MILLISECOND)); /* it is still there in the other's turn */
    bide_end();
}

static struct holders {
    bide_mutex mutex;
    bide_barging_mutex barging;
    bool is_barging, is_passed_on;
    struct holder holders[2];
    bide_spawned spawned;
} holders;

static int hold_one_lock(bide_sim_loop *loop, void *argument)
{
    struct holders *self = argument;
    bide_event_waiter wait;
    bide_mutex_init(&self->mutex);
    bide_barging_mutex_init(&self->barging);
    for (unsigned i = 0; i < 2; i++) {
        struct holder *holder = &self->holders[i];
        holder->is_barging = self->is_barging;
        holder->keeps_it = !self->is_passed_on;
        holder->mutex = &self->mutex;
        holder->barging = &self->barging;
        bide_event_init(&holder->never, false);
    }
    bide_spawn(&self->spawned, &loop->context,
               bide_task_init(&self->holders[0].task, &holder_body));
    int status = bide_sim_loop_wait(loop, bide_task_init(&self->holders[1].task, &holder_body));
    int other = bide_sim_loop_wait(loop, bide_event_wait(&wait, &self->spawned.ended));
    return status < 0 ? status : other < 0 ? other : -EINVAL;
}

static void a_lock_is_named_with_its_holder(void **state)
{
    bide_sim_result result;
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        holders.is_barging = i != 0;
        bide_sim_options options = {.argument = &holders};
        holders.is_passed_on = false;
        assert_int_equal(explore(hold_one_lock, 1, options, &result), -EDEADLK);
        assert_said("    lock 1 is held by task 1: holder_body at ");
        holders.is_passed_on = true;
        assert_int_equal(explore(hold_one_lock, 1, options, &result), -EINVAL);
        assert_said(i != 0 ? "goes on after bide_barging_mutex_lock of lock 1, which task 1 had"
                           : "goes on after bide_mutex_lock of lock 1, which task 1 had");
    }
}

/* The struct of one that has ended has no holder in it; nor has one that is no coroutine's. */
static int lock_and_end(bide_sim_loop *loop, void *argument)
{
    static bide_mutex_waiter key;
    struct holders *self = argument;
    bide_mutex_waiter other;
    bide_mutex_init(&self->mutex);
    assert_true(bide_mutex_try_lock(&key, &self->mutex));
    return bide_sim_loop_wait(loop, bide_mutex_lock(&other, &self->mutex));
}

static void a_lock_whose_holder_is_not_known_is_named(void **state)
{
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(lock_and_end, 1, (bide_sim_options){.argument = &holders}, &result),
                     -EDEADLK);
    assert_said("    lock 1 is held, by no task that waits here\n");
}

static void a_deadlock_outside_an_exploration_is_a_status(void **state)
{
    bide_sim_loop loop;
    bide_event event;
    bide_event_waiter wait;
    (void)state;
    bide_sim_loop_init(&loop, 1);
    bide_event_init(&event, false);
    assert_int_equal(bide_sim_loop_wait(&loop, bide_event_wait(&wait, &event)), -EDEADLK);
    assert_true(bide_sim_loop_is_empty(&loop));
    bide_event_destroy(&event);
    bide_sim_loop_destroy(&loop);
}

/* ... begun in a scope, or by bide_when_all, by a coroutine of which they are parts. */
struct group {
    bide_task task;
    bool in_scope;
    struct both both;
    bide_scope scope;
    bide_branch branches[2];
    bide_when_of(2) when;
};

bide_coroutine(group_body)
{
    bide_begin(group_body, struct group * self);
    bide_scope_init(&self->scope, bide_this_frame());
    for (unsigned i = 0; i < 2 && self->in_scope; i++)
        bide_scope_spawn(&self->scope, &self->branches[i],
                         bide_task_init(&self->both.lockers[i].task, &locker_body));
    if (self->in_scope)
        bide_try(bide_scope_join(&self->scope));
    else
        bide_try(bide_when_all_of(&self->when,
                                  bide_task_init(&self->both.lockers[0].task, &locker_body),
                                  bide_task_init(&self->both.lockers[1].task, &locker_body)));
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

static int lock_both_in_a_group(bide_sim_loop *loop, void *in_scope)
{
    static struct group group;
    group.in_scope = in_scope != NULL;
    bide_mutex_init(&group.both.a);
    bide_mutex_init(&group.both.b);
    group.both.lockers[0].first = group.both.lockers[1].second = &group.both.a;
    group.both.lockers[1].first = group.both.lockers[0].second = &group.both.b;
    return bide_sim_loop_wait(loop, bide_task_init(&group.task, &group_body));
}

static unsigned count_said(const char *text)
{
    unsigned count = 0;
    for (const char *at = said; (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

static void a_deadlock_names_each_of_a_group(void **state)
{
    (void)state;
    for (unsigned in_scope = 0; in_scope < 2; in_scope++) {
        bide_sim_result result;
        bide_sim_options options = {.argument = in_scope != 0 ? &result : NULL};
        assert_int_equal(explore(lock_both_in_a_group, 1000, options, &result), -EDEADLK);
        assert_int_equal(count_said("#0 locker_body at "), 2);
        assert_int_equal(count_said("waiting for bide_mutex_lock"), 2);
        assert_int_equal(count_said("locker_body in a scope"), in_scope != 0 ? 2 : 0);
        /* turns and tasks have the same numbers, and the users' names */
        assert_said("task 1: group_body at ");
        assert_said("task 1: group_body:");
        assert_said("locker_body at sim_loop_test.c");
        assert_null(strstr(said, "branch.c:22 begins"));
        if (in_scope != 0)
            assert_said("task 3: locker_body in a scope");
    }
}

/* Some read a number, may be preempted, and write it back. */
enum { WRITERS = 3 };

struct numbered {
    unsigned number, ended;
    bool crashes;
    bide_spawned spawned[WRITERS];
    struct writer {
        bide_task task;
        struct numbered *shared;
        unsigned read, i;
        bide_sim_point_operation point;
    } writers[WRITERS];
};

bide_coroutine(writer_body)
{
    bide_begin(writer_body, struct writer * self);
    for (self->i = 0; self->i < 5; self->i++)
        bide_await(bide_sim_point(&self->point));
    self->read = self->shared->number;
    bide_await(bide_sim_point(&self->point));
    self->shared->number = self->read + 1;
    for (self->i = 0; self->i < 5; self->i++)
        bide_await(bide_sim_point(&self->point));
    self->shared->ended++;
    bide_end();
}

static int add_up(bide_sim_loop *loop, void *argument)
{
    struct numbered all = {.number = 0};
    bide_event_waiter wait;
    for (unsigned i = 0; i < WRITERS; i++) {
        all.writers[i].shared = &all;
        bide_spawn(&all.spawned[i], &loop->context,
                   bide_task_init(&all.writers[i].task, &writer_body));
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        int status = bide_sim_loop_wait(loop, bide_event_wait(&wait, &all.spawned[i].ended));
        if (status < 0)
            return status;
    }
    if (all.number != WRITERS && argument != NULL) {
        signal(SIGSEGV, SIG_DFL); /* cmocka or a sanitizer may have a handler */
        raise(SIGSEGV);
    }
    return all.number == WRITERS ? 0 : -EINVAL;
}

static void a_lost_update_is_found_and_made_simple(void **state)
{
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(add_up, 1000, (bide_sim_options){0}, &result), -EINVAL);
    assert_int_equal(result.failure, BIDE_SIM_STATUS);
    assert_int_equal(result.status, -EINVAL);
    assert_in_range(result.draws_left, 1, 2); /* one yields where it must not */
    assert_said("yields at a test point");
    assert_said("the simplest run found that fails alike: "); /* (not every run was tried) */
}

/*
 * It fails by four of its own six draws, and by one of these if one of two tasks passes the other. With an argument it
 * fails by one draw that is 3, or if one passes the other.
 */
struct passing {
    bide_task task;
    bool *passed, was_passed;
    bide_sim_point_operation point;
    bide_spawned spawned;
};

bide_coroutine(passing_body)
{
    bide_begin(passing_body, struct passing * self);
    *self->passed = false;
    bide_await(bide_sim_point(&self->point));
    self->was_passed = *self->passed;
    *self->passed = true;
    bide_end();
}

static int pass_or_draw(bide_sim_loop *loop, void *argument)
{
    enum { OWN = 6 };
    struct passing all[2] = {{.was_passed = false}};
    bide_event_waiter wait;
    uint32_t own[OWN];
    bool passed = false;
    for (unsigned i = 0; i < OWN; i++)
        own[i] = bide_sim_loop_draw(loop, 1000);
    for (unsigned i = 0; i < 2; i++) {
        all[i].passed = &passed;
        bide_spawn(&all[i].spawned, &loop->context, bide_task_init(&all[i].task, &passing_body));
    }
    for (unsigned i = 0; i < 2; i++) {
        int status = bide_sim_loop_wait(loop, bide_event_wait(&wait, &all[i].spawned.ended));
        if (status < 0)
            return status;
    }
    bool is_passed = all[0].was_passed || all[1].was_passed;
    if (argument != NULL)
        return own[0] == 3 || is_passed ? -EINVAL : 0;
    bool is_drawn = own[1] != 0 && own[2] != 0 && own[3] != 0;
    return own[0] != 0 && (is_drawn || is_passed) ? -EINVAL : 0;
}

static void fewer_preemptions_are_simpler_than_fewer_draws(void **state)
{
    bide_sim_result result;
    unsigned preempted = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        bide_sim_options options = {.first_seed = seed};
        assert_int_equal(explore(pass_or_draw, 1, options, &result), -EINVAL);
        preempted += result.preemptions != 0;
        assert_int_equal(result.preemptions_left, 0);
        assert_int_equal(result.draws_left, 4); /* with a preemption it would be two */
    }
    assert_in_range(preempted, 5, 20);
}

static void a_draw_that_is_as_good_as_a_preemption_takes_its_place(void **state)
{
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(pass_or_draw, 1000, (bide_sim_options){.argument = &result}, &result),
                     -EINVAL);
    assert_in_range(result.preemptions, 1, 1000);
    assert_int_equal(result.preemptions_left, 0);
    assert_int_equal(result.draws_left, 1);
}

/*
 * One notes a number and looks at it again after a turn, while two others move it there and back, in a crowd. One draw
 * is enough, which lets both of them run twice in between; what a seed finds has many.
 */
enum { CROWD = 9, MOVES = 10 };

struct mover {
    bide_task task;
    unsigned *number, *moves, who, i, seen;
    bool *is_wrong;
    bide_schedule_operation yield;
    bide_spawned spawned;
};

bide_coroutine(mover_body)
{
    bide_begin(mover_body, struct mover * self);
    for (self->i = 0; self->i < MOVES; self->i++) {
        self->seen = *self->number;
        if (self->who == 0)
            *self->moves = 0;
        else if (self->who <= 2 && self->seen == self->who - 1) {
            *self->number = 2 - self->who;
            ++*self->moves;
        }
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
        if (self->who == 0 && *self->number == self->seen && *self->moves >= 4)
            *self->is_wrong = true;
    }
    bide_end();
}

static int move_in_a_crowd(bide_sim_loop *loop, void *argument)
{
    unsigned number = 0, moves = 0;
    bool is_wrong = false;
    struct mover movers[CROWD];
    (void)argument;
    for (unsigned i = 0; i < CROWD; i++) {
        movers[i] =
            (struct mover){.number = &number, .moves = &moves, .who = i, .is_wrong = &is_wrong};
        bide_spawn(&movers[i].spawned, &loop->context,
                   bide_task_init(&movers[i].task, &mover_body));
    }
    bide_sim_loop_run_until(loop, SECOND);
    return is_wrong ? -EINVAL : 0;
}

/* It fails by a draw, whatever its random numbers are; these are the same however it is made simpler, and no draws. */
static int fail_by_a_number(bide_sim_loop *loop, void *numbers)
{
    uint64_t *seen = numbers; /* shared with the parent */
    uint64_t number = bide_test_random();
    for (unsigned i = 0; i < 100; i++)
        number ^= bide_test_random();
    seen[1] += seen[0] != 0 && seen[0] != number;
    seen[0] = number;
    seen[2]++;
    return bide_sim_loop_draw(loop, 4) + bide_sim_loop_draw(loop, 4) > 2 ? -EINVAL : 0;
}

static void random_numbers_stay_when_a_run_is_made_simpler(void **state)
{
    uint64_t *seen =
        mmap(NULL, sizeof(uint64_t[3]), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bide_sim_result result;
    (void)state;
    assert_true(seen != MAP_FAILED);
    assert_int_equal(explore(fail_by_a_number, 100, (bide_sim_options){.argument = seen}, &result),
                     -EINVAL);
    uint64_t failing = result.seed;
    seen[0] = seen[1] = seen[2] = 0;
    bide_sim_options alone = {.argument = seen, .first_seed = failing};
    assert_int_equal(explore(fail_by_a_number, 1, alone, &result), -EINVAL);
    assert_in_range(seen[2], 3, 10000); /* it was made simpler */
    assert_int_equal(seen[1], 0);       /* with one number in all runs */
    assert_int_equal(result.draws_left, 1);
    munmap(seen, sizeof(uint64_t[3]));
}

/* It yields as often as it draws first, and then fails by one draw. */
struct shifting {
    bide_task task;
    uint32_t points;
    bool fails;
    bide_sim_point_operation point;
};

bide_coroutine(shifting_body)
{
    bide_begin(shifting_body, struct shifting * self);
    for (self->points = bide_sim_loop_draw(bide_sim_loop_running_, 50); self->points != 0;
         self->points--)
        bide_await(bide_sim_point(&self->point));
    self->fails = bide_sim_loop_draw(bide_sim_loop_running_, 1000) / 100 == 7;
    bide_end();
}

static int yield_and_draw(bide_sim_loop *loop, void *argument)
{
    struct shifting self = {.fails = false};
    (void)argument;
    int status = bide_sim_loop_wait(loop, bide_task_init(&self.task, &shifting_body));
    return status < 0 ? status : self.fails ? -EINVAL : 0;
}

static void draws_that_are_left_out_shift_no_other_streams(void **state)
{
    bide_sim_result result;
    unsigned simpler = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed = result.seed + 1) {
        bide_sim_options options = {.first_seed = seed, .simplify_seconds = 200};
        assert_int_equal(explore(yield_and_draw, 1000, options, &result), -EINVAL);
        assert_int_equal(result.draws_left, 1);
        assert_said("BIDE_TEST_DRAWS=own.1:7");
        simpler += result.draws > 1;
    }
    assert_in_range(simpler, 3, 50);
}

/* Draws of a name, and between them some of another. */
static void draw_two_names(uint64_t seed, unsigned between, uint32_t *drawn, size_t count)
{
    bide_sim_loop loop;
    bide_sim_loop_init(&loop, seed);
    for (size_t i = 0; i < count; i++) {
        drawn[i] = bide_sim_loop_draw_named(&loop, "ours", 10);
        assert_in_range(drawn[i], 0, 9);
        for (unsigned j = 0; j < between; j++)
            bide_sim_loop_draw_named(&loop, "others", 1000);
    }
    bide_sim_loop_destroy(&loop);
}

static void a_name_has_draws_of_its_own(void **state)
{
    enum { COUNT = 20 };
    /* (the same on all machines) */
    static const uint32_t expected[COUNT] = {2, 6, 8, 9, 6, 3, 4, 8, 8, 3,
                                             1, 8, 3, 2, 8, 4, 8, 7, 2, 2};
    uint32_t alone[COUNT], beside[COUNT];
    unsigned seen[10] = {0};
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        draw_two_names(seed, 0, alone, COUNT);
        draw_two_names(seed, (unsigned)seed % 4, beside, COUNT);
        assert_memory_equal(alone, beside, sizeof alone);
        if (seed == 1)
            assert_memory_equal(alone, expected, sizeof alone);
        for (unsigned i = 0; i < COUNT; i++)
            seen[alone[i]]++;
    }
    for (unsigned i = 0; i < 10; i++) /* 200 are expected */
        assert_in_range(seen[i], 140, 260);
}

static int fail_by_a_named_draw(bide_sim_loop *loop, void *argument)
{
    uint32_t sum = 0;
    (void)argument;
    for (unsigned i = 0; i < 5; i++) {
        sum += bide_sim_loop_draw_named(loop, "summand", 3);
        bide_sim_loop_draw(loop, 1 + bide_sim_loop_draw_named(loop, "another", 10));
    }
    return sum == 8 ? -EINVAL : 0;
}

static void named_draws_are_in_the_trace_and_in_the_environment(void **state)
{
    bide_sim_result result;
    char draws[200];
    (void)state;
    bide_sim_options options = {.simplify_seconds = 200};
    assert_int_equal(explore(fail_by_a_named_draw, 1000, options, &result), -EINVAL);
    assert_in_range(result.draws_left, 4, 5); /* of a sum of 8 */
    assert_said("draws \"summand\" 2 of 3");
    const char *simpler = strstr(said, "BIDE_TEST_DRAWS=");
    snprintf(draws, sizeof draws, "%.*s", (int)strcspn(simpler + 16, "\n"), simpler + 16);
    setenv("BIDE_TEST_SEED", "1", 1);
    setenv("BIDE_TEST_DRAWS", draws, 1);
    assert_int_equal(explore(fail_by_a_named_draw, 1, (bide_sim_options){0}, &result), -EINVAL);
    static const char *const wrong[] = {"12:1",   "turn",     "turn.",    "turn.x:1", "own.1:70000",
                                        "own.1:", "own.1:1,", "own.1:1;", "256.1:1",  ""};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("BIDE_TEST_DRAWS", wrong[i], 1);
        assert_int_equal(explore(fail_by_a_number, 1, (bide_sim_options){0}, &result), -EINVAL);
        assert_said("BIDE_TEST_DRAWS is not of draws");
    }
    unsetenv("BIDE_TEST_DRAWS");
    unsetenv("BIDE_TEST_SEED");
}

static void one_draw_is_found_where_it_is_enough(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        bide_sim_result result;
        bide_sim_options options = {.first_seed = 1 + i * 100000, .retries = 100};
        assert_int_equal(explore(move_in_a_crowd, 20000, options, &result), -EINVAL);
        assert_int_equal(result.draws_left, 1);
        assert_int_equal(result.preemptions_left, 1);
    }
}

static void a_crash_is_found_and_made_simple(void **state)
{
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(add_up, 1000, (bide_sim_options){.argument = &result}, &result),
                     -EFAULT);
    assert_int_equal(result.failure, BIDE_SIM_CRASH);
    assert_in_range(result.draws_left, 1, 2);
    assert_said("yields at a test point");
}

static void runs_from_the_environment_fail_as_was_said(void **state)
{
    bide_sim_result result, again;
    char seed[32], draws[4000];
    (void)state;
    assert_int_equal(explore(add_up, 1000, (bide_sim_options){0}, &result), -EINVAL);
    const char *simpler = strstr(said, "BIDE_TEST_DRAWS=");
    snprintf(draws, sizeof draws, "%.*s", (int)strcspn(simpler + 16, "\n"), simpler + 16);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)result.seed);
    setenv("BIDE_TEST_SEED", seed, 1);
    assert_int_equal(explore(add_up, 1000, (bide_sim_options){0}, &again), -EINVAL);
    assert_true(again.seed == result.seed);
    setenv("BIDE_TEST_DRAWS", draws, 1);
    assert_int_equal(explore(add_up, 1000, (bide_sim_options){0}, &again), -EINVAL);
    setenv("BIDE_TEST_DRAWS", "0", 1); /* all plain */
    assert_int_equal(explore(add_up, 1000, (bide_sim_options){0}, &again), 0);
    unsetenv("BIDE_TEST_DRAWS");
    unsetenv("BIDE_TEST_SEED");
}

/* A coroutine is left when the body returns. */
static int leave_one(bide_sim_loop *loop, void *argument)
{
    static bide_event never;
    static bide_event_waiter wait;
    static bide_spawned spawned;
    (void)argument;
    bide_event_init(&never, false);
    bide_spawn(&spawned, &loop->context, bide_event_wait(&wait, &never));
    bide_sim_loop_run_until(loop, SECOND);
    return 0;
}

static void a_coroutine_that_is_left_is_a_failure(void **state)
{
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(leave_one, 10, (bide_sim_options){0}, &result), -EBUSY);
    assert_int_equal(result.failure, BIDE_SIM_LEFT);
    assert_int_equal(result.seed, 1);
}

struct spinner {
    bide_task task;
    bide_schedule_operation yield;
};

bide_coroutine(spinner_body)
{
    bide_begin(spinner_body, struct spinner * self);
    for (;;)
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    bide_end();
}

static int spin(bide_sim_loop *loop, void *argument)
{
    struct spinner spinner;
    (void)argument;
    return bide_sim_loop_wait(loop, bide_task_init(&spinner.task, &spinner_body));
}

static void a_run_without_end_is_a_failure(void **state)
{
    bide_sim_result result;
    bide_sim_loop loop;
    (void)state;
    assert_int_equal(explore(spin, 10, (bide_sim_options){.max_turns = 1000}, &result), -ELOOP);
    assert_int_equal(result.failure, BIDE_SIM_LIVELOCK);
    assert_said("spinner_body");
    bide_sim_loop_init(&loop, 1);
    loop.max_turns = 1000;
    assert_int_equal(spin(&loop, NULL), -ELOOP);
    assert_true(bide_sim_loop_is_empty(&loop));
}

/* Yields so often, in turn with another, and fails then. */
static int fail_late(bide_sim_loop *loop, void *turns)
{
    struct always_ready all[2];
    bide_spawned spawned[2];
    for (unsigned i = 0; i < 2; i++)
        bide_spawn(&spawned[i], &loop->context, bide_task_init(&all[i].task, &always_ready_body));
    for (unsigned i = 0; i < *(unsigned *)turns; i++) {
        bide_sim_loop_run_until(loop, SECOND);
        bide_maybe("never mind");
        bide_spawn(&spawned[0], &loop->context, bide_task_init(&all[0].task, &always_ready_body));
    }
    bide_sim_loop_run_until(loop, SECOND);
    return -EINVAL;
}

static void a_report_fits_a_screen(void **state)
{
    static const unsigned turns[] = {1, 200, 5000}; /* of 20 lines each: more than are kept, too */
    (void)state;
    for (unsigned i = 0; i < sizeof turns / sizeof *turns; i++) {
        bide_sim_result result;
        unsigned count = turns[i];
        FILE *trace = tmpfile();
        bide_sim_options options = {.argument = &count, .trace = trace, .first_seed = 3};
        assert_int_equal(explore(fail_late, 1, options, &result), -EINVAL);
        assert_in_range(count_said("\n"), 5, 80);
        unsigned lines = 0;
        rewind(trace);
        for (int c; (c = getc(trace)) != EOF;)
            lines += c == '\n';
        fclose(trace);
        assert_true(lines >= (count < 5000 ? 2 * 20 * count : 2 * 65536));
    }
}

/* Fails once; the processes share what it counts in. */
static int fail_by_chance(bide_sim_loop *loop, void *argument)
{
    unsigned *runs = argument;
    (void)loop;
    return ++*runs == 20 ? -EINVAL : 0;
}

static void a_run_that_is_not_alike_twice_is_told(void **state)
{
    bide_sim_result result;
    unsigned *runs =
        mmap(NULL, sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(runs != MAP_FAILED);
    assert_int_equal(explore(fail_by_chance, 30, (bide_sim_options){.argument = runs}, &result),
                     -EAGAIN);
    munmap(runs, sizeof *runs);
    assert_int_equal(result.failure, BIDE_SIM_NOT_ALIKE);
    assert_said("not drawn from the seed");
}

/* Fails in its 20th run in one process. */
static int fail_by_a_static(bide_sim_loop *loop, void *argument)
{
    static unsigned runs;
    (void)loop;
    (void)argument;
    return ++runs == 20 ? -EINVAL : 0;
}

static void a_run_that_depends_on_earlier_ones_is_told(void **state)
{
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(fail_by_a_static, 30, (bide_sim_options){0}, &result), -EAGAIN);
    assert_int_equal(result.failure, BIDE_SIM_NOT_ALIKE);
    assert_int_equal(result.seed, 20);
    assert_said("what earlier runs left in memory");
    assert_int_equal(explore(fail_by_a_static, 30, (bide_sim_options){.isolated = true}, &result),
                     0);
    assert_int_equal(result.runs, 30);
    assert_int_equal(explore(add_up, 1000, (bide_sim_options){.isolated = true}, &result), -EINVAL);
    assert_in_range(result.draws_left, 1, 2);
}

/* ---- Other threads ---- */

static void *set_it(void *argument)
{
    bide_event_set(argument);
    return NULL;
}

static void wake_from_elsewhere(void)
{
    static bide_event event;
    static bide_event_waiter wait;
    static bide_spawned spawned;
    bide_sim_loop loop;
    pthread_t thread;
    bide_sim_loop_init(&loop, 1);
    bide_event_init(&event, false);
    bide_spawn(&spawned, &loop.context, bide_event_wait(&wait, &event));
    bide_sim_loop_run_until(&loop, SECOND);
    pthread_create(&thread, NULL, set_it, &event);
    pthread_join(thread, NULL);
}

static void to_wake_on_another_thread_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(wake_from_elsewhere, "woken by another thread", "sim_loop"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_the_same_run),
        cmocka_unit_test(a_seed_gives_the_same_run_in_another_loop),
        cmocka_unit_test(seeds_give_different_runs),
        cmocka_unit_test(a_seed_gives_this_run_on_every_machine),
        cmocka_unit_test(time_jumps_when_nothing_is_ready),
        cmocka_unit_test(the_clock_of_code_under_test_is_the_loops),
        cmocka_unit_test(random_numbers_of_code_under_test_are_the_seeds),
        cmocka_unit_test(run_until_stops_before_what_is_later),
        cmocka_unit_test(deadlines_are_of_the_loops_time),
        cmocka_unit_test(intervals_are_of_the_loops_time),
        cmocka_unit_test(a_strand_on_the_loop_has_its_time),
        cmocka_unit_test(what_is_ready_is_late_by_a_millisecond_at_most),
        cmocka_unit_test(lateness_is_an_option),
        cmocka_unit_test(each_of_many_that_are_ready_may_be_first),
        cmocka_unit_test(blocking_calls_are_made_by_the_loop_and_take_virtual_time),
        cmocka_unit_test(a_call_that_is_cut_short_is_made_or_not),
        cmocka_unit_test(a_coroutine_that_waits_for_a_call_can_be_destroyed_before_it_is_made),
        cmocka_unit_test(a_strand_on_the_loop_has_its_calls_made_by_it),
        cmocka_unit_test(calls_that_may_be_interrupted_end_with_what_they_return),
        cmocka_unit_test(the_loop_reads),
        cmocka_unit_test(a_test_point_yields_in_a_test_loop_alone),
        cmocka_unit_test(faults_fire_in_test_loops_alone_and_are_counted),
        cmocka_unit_test(a_fault_that_never_fires_fails_the_exploration_if_it_must),
        cmocka_unit_test(mutexes_locked_in_two_orders_are_a_deadlock_that_is_named),
        cmocka_unit_test(a_lock_is_named_with_its_holder),
        cmocka_unit_test(a_lock_whose_holder_is_not_known_is_named),
        cmocka_unit_test(each_fault_that_has_a_name_fires),
        cmocka_unit_test(a_deadline_that_passes_is_in_the_trace),
        cmocka_unit_test(a_deadlock_names_each_of_a_group),
        cmocka_unit_test(a_deadlock_outside_an_exploration_is_a_status),
        cmocka_unit_test(a_lost_update_is_found_and_made_simple),
        cmocka_unit_test(fewer_preemptions_are_simpler_than_fewer_draws),
        cmocka_unit_test(a_draw_that_is_as_good_as_a_preemption_takes_its_place),
        cmocka_unit_test(random_numbers_stay_when_a_run_is_made_simpler),
        cmocka_unit_test(draws_that_are_left_out_shift_no_other_streams),
        cmocka_unit_test(a_name_has_draws_of_its_own),
        cmocka_unit_test(named_draws_are_in_the_trace_and_in_the_environment),
        cmocka_unit_test(one_draw_is_found_where_it_is_enough),
        cmocka_unit_test(a_crash_is_found_and_made_simple),
        cmocka_unit_test(runs_from_the_environment_fail_as_was_said),
        cmocka_unit_test(a_report_fits_a_screen),
        cmocka_unit_test(a_coroutine_that_is_left_is_a_failure),
        cmocka_unit_test(a_run_without_end_is_a_failure),
        cmocka_unit_test(a_run_that_is_not_alike_twice_is_told),
        cmocka_unit_test(a_run_that_depends_on_earlier_ones_is_told),
        cmocka_unit_test(to_wake_on_another_thread_is_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
