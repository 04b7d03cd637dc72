/*
 * The strategies of a test loop: ten planted bugs, how many runs each strategy needs for each, that a seed gives the
 * same run with each, and that the options go together. With the argument "measure" it prints a table of how many of
 * 20,000 seeds fail.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/event.h"
#include "bide/mutex.h"
#include "bide/schedule.h"
#include "bide/sim_loop.h"
#include "bide/spawn.h"
#include "bide/task.h"
#include "bide/when.h"

#include <errno.h>
#include <sys/mman.h>

/* ---- Scripts ---- */

/*
 * Tasks that each go through the steps of a script, with a test point before each step. Steps are indivisible. The run
 * fails if `bad` is set.
 */
enum { TASKS_MAX = 24, WORDS = 8 };

struct bug;

struct planted {
    const struct bug *bug;
    int words[WORDS];
    int own[TASKS_MAX]; /* a register of each task */
    bool bad;
    bide_mutex mutexes[4];
    struct stepper {
        bide_task task;
        struct planted *planted;
        unsigned number, step, keys;
        bide_mutex_waiter key[2];
        bide_spawned spawned;
        bide_sim_point_operation point;
    } steppers[TASKS_MAX];
};

struct bug {
    const char *name;
    unsigned depth; /* as in BIDE_SIM_PCT */
    unsigned tasks, steps;
    void (*step)(struct planted *self, unsigned task, unsigned step);

    /* The mutex that a task locks at its step 0, and at step 1; both are unlocked at its end. NULL: none. */
    unsigned (*mutex)(unsigned task, unsigned step);
};

bide_coroutine(stepper_body)
{
    bide_begin(stepper_body, struct stepper * self);
    for (self->step = 0; self->step < self->planted->bug->steps; self->step++) {
        bide_await(bide_sim_point(&self->point));
        if (self->planted->bug->mutex != NULL && self->step < 2) {
            bide_try(bide_mutex_lock(
                &self->key[self->step],
                &self->planted->mutexes[self->planted->bug->mutex(self->number, self->step)]));
            self->keys++;
        }
        if (self->planted->bug->step != NULL)
            self->planted->bug->step(self->planted, self->number, self->step);
    }
    bide_finally();
    while (self->keys != 0)
        bide_mutex_unlock(&self->key[--self->keys]);
    bide_end();
}

static int run_bug(bide_sim_loop *loop, void *argument)
{
    static struct planted self;
    bide_event_waiter wait;
    memset(&self, 0, sizeof self);
    self.bug = argument;
    for (unsigned i = 0; i < 4; i++)
        bide_mutex_init(&self.mutexes[i]);
    for (unsigned i = 0; i < self.bug->tasks; i++) {
        self.steppers[i].planted = &self;
        self.steppers[i].number = i;
        bide_spawn(&self.steppers[i].spawned, &loop->context,
                   bide_task_init(&self.steppers[i].task, &stepper_body));
    }
    for (unsigned i = 0; i < self.bug->tasks; i++) {
        int status =
            bide_sim_loop_wait(loop, bide_event_wait(&wait, &self.steppers[i].spawned.ended));
        if (status < 0)
            return status;
    }
    return self.bad ? -EINVAL : 0;
}

/* ---- The bugs ---- */

/* 1: two of two tasks read and write back a counter. */
static void lost_update(struct planted *self, unsigned task, unsigned step)
{
    if (step == 4)
        self->own[task] = self->words[0];
    if (step == 5)
        self->words[0] = self->own[task] + 1;
    if (step == 9 && ++self->words[1] == 2)
        self->bad = self->words[0] != 2;
}

/* 2: the same in a crowd: one task of twenty has a window, and one other writes. */
static void window_in_a_crowd(struct planted *self, unsigned task, unsigned step)
{
    if (task == 7 && step == 3)
        self->own[7] = self->words[0];
    if (task == 7 && step == 4)
        self->bad = self->own[7] != self->words[0];
    if (task == 13 && step == 6)
        self->words[0]++;
}

/* 3: the last of twelve tasks to begin must not be the first to run: what it uses is made by the first. */
static void used_before_made(struct planted *self, unsigned task, unsigned step)
{
    if (task == 0 && step == 0)
        self->words[0] = 1;
    if (task == 11 && step == 2)
        self->bad |= self->words[0] == 0;
}

/* 4: a flag is looked at before the wait begins, and is set in between: nobody wakes the waiter. */
static void lost_wake_up(struct planted *self, unsigned task, unsigned step)
{
    if (task == 0 && step == 2 && self->words[0] == 0)
        self->own[0] = 1; /* it will wait */
    if (task == 0 && step == 3 && self->own[0] != 0)
        self->words[1] = 1; /* it waits */
    if (task == 1 && step == 5) {
        self->bad = self->own[0] != 0 && self->words[1] == 0;
        self->words[0] = 1;
    }
}

/* 5: a reader is idle from its first step to its last while a writer makes all of its thirty. */
static void one_passes_all(struct planted *self, unsigned task, unsigned step)
{
    if (task == 0 && step == 0)
        self->own[0] = self->words[0];
    if (task == 0 && step == 1)
        self->bad = self->words[0] - self->own[0] >= 29;
    if (task == 1)
        self->words[0]++;
}

/* 6: A-B-A: one reads the top and its next; another pops two and pushes the first again. */
static void same_top_again(struct planted *self, unsigned task, unsigned step)
{
    if (task == 0 && step == 3)
        self->own[0] = self->words[0]; /* a version that it does not compare */
    if (task == 0 && step == 4)
        self->bad = self->words[0] - self->own[0] == 3;
    if (task == 1 && step >= 5 && step < 8)
        self->words[0]++;
}

/* 7: two changes: the second task is between the two reads of the first, and the third between its own two writes. */
static void two_windows(struct planted *self, unsigned task, unsigned step)
{
    if (task == 1 && step == 4)
        self->words[0] = 1;
    if (task == 1 && step == 5)
        self->words[0] = 2;
    if (task == 0 && step == 3)
        self->own[0] = self->words[0];
    if (task == 0 && step == 4)
        self->own[1] = self->words[0];
    if (task == 0 && step == 5)
        self->bad = self->own[0] == 1 && self->own[1] == 2;
}

/* 8: three tasks must be in the order 3, 2, 1 at three places. */
static void in_reverse(struct planted *self, unsigned task, unsigned step)
{
    if (step != 5 || task > 3)
        return;
    self->bad |= self->words[0] == 3 && task == 0;
    self->words[0] = (unsigned)self->words[0] == 3 - task ? self->words[0] + 1 : 0;
}

/* 9: two mutexes, locked in two orders. */
static unsigned two_orders(unsigned task, unsigned step)
{
    return task == 0 ? step : task == 1 ? 1 - step : 2;
}

/* 10: four who each lock the mutex on the left and then that on the right. */
static unsigned in_a_circle(unsigned task, unsigned step)
{
    return (task + step) % 4;
}

static const struct bug bugs[] = {
    {"a lost update", 2, 2, 10, lost_update, NULL},
    {"a window of one step in a crowd of 20", 2, 20, 10, window_in_a_crowd, NULL},
    {"used before it is made, 12 tasks", 1, 12, 4, used_before_made, NULL},
    {"a lost wake-up", 2, 2, 10, lost_wake_up, NULL},
    {"one passes another for 29 steps", 2, 2, 30, one_passes_all, NULL},
    {"three writes in a window of one step", 2, 4, 12, same_top_again, NULL},
    {"a window in a window", 3, 3, 10, two_windows, NULL},
    {"four in reverse", 3, 4, 8, in_reverse, NULL},
    {"two mutexes in two orders", 2, 2, 4, NULL, two_orders},
    {"four mutexes in a circle", 4, 4, 3, NULL, in_a_circle},
};
enum { BUGS = sizeof bugs / sizeof *bugs };

/* The turns of a run: one for each step, and one at the beginning. */
static unsigned length_of(unsigned bug)
{
    return bugs[bug].tasks * (bugs[bug].steps + 1);
}

static int explore_bug(unsigned bug, bide_sim_options options, uint64_t seeds,
                       bide_sim_result *result)
{
    FILE *out = tmpfile();
    options.argument = (void *)(uintptr_t)&bugs[bug];
    options.out = out;
    options.result = result;
    int status = bide_sim_loop_explore_with(run_bug, seeds, &options);
    fclose(out);
    return status;
}

/* How many of the seeds fail. */
static unsigned count_failing(unsigned bug, bide_sim_options options, uint64_t seeds)
{
    unsigned failing = 0;
    uint64_t seed = 1;
    options.as_found = true;
    while (seed <= seeds) {
        bide_sim_result result;
        options.first_seed = seed;
        if (explore_bug(bug, options, seeds + 1 - seed, &result) == 0)
            break;
        failing++;
        seed = result.seed + 1;
    }
    return failing;
}

static int measure(void)
{
    enum { SEEDS = 20000 };
    for (unsigned bug = 0; bug < BUGS; bug++) {
        bide_sim_options options[] = {
            {.strategy = BIDE_SIM_UNIFORM},
            {.strategy = BIDE_SIM_PCT},
            {.strategy = BIDE_SIM_PCT, .depth = bugs[bug].depth, .length = length_of(bug)},
        };
        printf("| %s |", bugs[bug].name);
        for (unsigned i = 0; i < 3; i++) {
            unsigned failing = count_failing(bug, options[i], SEEDS);
            printf(" %.1f |", failing != 0 ? (double)SEEDS / failing : 0);
            fflush(stdout);
        }
        puts("");
    }
    return 0;
}

/* ---- Tests ---- */

/* (the same with all compilers and on all machines) */
static void each_strategy_finds_each_bug(void **state)
{
    static const uint16_t seeds[BUGS][2] = {
        {1, 3},  {17, 183},   {6, 4},  {10, 37}, {45, 116},
        {11, 5}, {479, 3945}, {9, 22}, {5, 19},  {18, 223},
    };
    (void)state;
    for (unsigned bug = 0; bug < BUGS; bug++) {
        for (unsigned strategy = 0; strategy < 2; strategy++) {
            bide_sim_result result;
            bide_sim_options options = {.strategy = (bide_sim_strategy)strategy, .as_found = true};
            int status = explore_bug(bug, options, 5000, &result);
            assert_int_equal(status, bugs[bug].mutex != NULL ? -EDEADLK : -EINVAL);
            assert_int_equal(result.seed, seeds[bug][strategy]);
            assert_int_equal(result.runs, result.seed - 1);
            assert_int_equal(result.retries, 0);
        }
    }
}

/* At least 1 / (n * k^(d - 1)) of the seeds fail. */
static void priorities_keep_their_bound(void **state)
{
    (void)state;
    for (unsigned bug = 0; bug < BUGS; bug++) {
        enum { SEEDS = 300 };
        bide_sim_options options = {
            .strategy = BIDE_SIM_PCT, .depth = bugs[bug].depth, .length = length_of(bug)};
        double bound = 1.0 / bugs[bug].tasks;
        for (unsigned i = 1; i < bugs[bug].depth; i++)
            bound /= length_of(bug);
        if (bound * SEEDS >= 5) /* of the others too few are expected */
            assert_true(count_failing(bug, options, SEEDS) >= bound * SEEDS);
    }
}

/* A failure is made simple, whatever found it; and its draws alone give it, by any strategy. */
static void a_run_of_any_strategy_is_made_simple(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        bide_sim_result result;
        bide_sim_options options = {
            .strategy = (i & 1) != 0 ? BIDE_SIM_PCT : BIDE_SIM_UNIFORM,
            .isolated = (i & 2) != 0,
            .max_late = (i & 4) != 0 ? BIDE_SIM_NOT_LATE : 0,
            .depth = (i & 2) != 0 ? 2 : 0,
        };
        assert_int_equal(explore_bug(3, options, 1000, &result), -EINVAL);
        /* (on a slow machine the time for that may be over before one or two are left) */
        assert_in_range(result.draws_left, 1, result.draws);
        /* its seed alone fails too */
        options.first_seed = result.seed;
        options.as_found = true;
        assert_int_equal(explore_bug(3, options, 1, &result), -EINVAL);
        assert_int_equal(result.draws_left, result.draws);
    }
}

/* One waits for another by yielding: it does not keep that from running for ever. */
struct polling {
    bide_task task;
    bool *flag;
    bool sets;
    bide_spawned spawned;
    bide_schedule_operation yield;
};

bide_coroutine(polling_body)
{
    bide_begin(polling_body, struct polling * self);
    if (self->sets)
        *self->flag = true;
    while (!*self->flag)
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    bide_end();
}

static int poll_a_flag(bide_sim_loop *loop, void *argument)
{
    enum { POLLERS = 4 };
    struct polling tasks[POLLERS];
    bide_event_waiter wait;
    bool flag = false;
    (void)argument;
    for (unsigned i = 0; i < POLLERS; i++) {
        tasks[i].flag = &flag;
        tasks[i].sets = i == POLLERS - 1;
        bide_spawn(&tasks[i].spawned, &loop->context,
                   bide_task_init(&tasks[i].task, &polling_body));
    }
    for (unsigned i = 0; i < POLLERS; i++) {
        int status = bide_sim_loop_wait(loop, bide_event_wait(&wait, &tasks[i].spawned.ended));
        if (status < 0)
            return status;
    }
    return 0;
}

static void polling_ends_with_each_strategy(void **state)
{
    (void)state;
    for (unsigned strategy = 0; strategy < 2; strategy++) {
        bide_sim_options options = {.strategy = (bide_sim_strategy)strategy, .max_turns = 20000};
        assert_int_equal(bide_sim_loop_explore_with(poll_a_flag, 200, &options), 0);
    }
}

/* Branches of one bide_when_all have priorities of their own, and so have tasks one after another in one place. */
struct branching {
    bide_task task;
    unsigned number;
    unsigned *order;
    unsigned *count;
    bide_sim_point_operation point;
};

bide_coroutine(branching_body)
{
    bide_begin(branching_body, struct branching * self);
    bide_await(bide_sim_point(&self->point));
    self->order[(*self->count)++] = self->number;
    bide_end();
}

static int order_of_branches(bide_sim_loop *loop, void *argument)
{
    unsigned *seen =
        argument; /* shared with the parent: bits of the orders of two, in each of three rounds */
    for (unsigned round = 0; round < 3; round++) {
        unsigned order[2] = {0, 0}, count = 0;
        struct branching branches[2];
        bide_when_of(2) when;
        for (unsigned i = 0; i < 2; i++) {
            branches[i].number = i;
            branches[i].order = order;
            branches[i].count = &count;
        }
        int status = bide_sim_loop_wait(
            loop, bide_when_all_of(&when, bide_task_init(&branches[0].task, &branching_body),
                                   bide_task_init(&branches[1].task, &branching_body)));
        if (status < 0)
            return status;
        seen[round] |= 1u << order[0];
        seen[3] |= order[0] != 0 ? 1u << round : 0;
    }
    seen[4 + seen[3] % 8] = 1; /* this combination of orders */
    seen[3] = 0;
    return 0;
}

static void branches_have_priorities_of_their_own(void **state)
{
    bide_sim_options options = {.strategy = BIDE_SIM_PCT, .depth = 1};
    enum { SEEN = 12 };
    unsigned *seen =
        mmap(NULL, SEEN * sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(seen != MAP_FAILED);
    options.argument = seen;
    assert_int_equal(bide_sim_loop_explore_with(order_of_branches, 200, &options), 0);
    for (unsigned round = 0; round < 3; round++)
        assert_int_equal(seen[round], 3);
    for (unsigned i = 4; i < SEEN; i++)
        assert_int_equal(seen[i], 1);
    munmap(seen, SEEN * sizeof *seen);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_strategy_finds_each_bug),
        cmocka_unit_test(priorities_keep_their_bound),
        cmocka_unit_test(a_run_of_any_strategy_is_made_simple),
        cmocka_unit_test(polling_ends_with_each_strategy),
        cmocka_unit_test(branches_have_priorities_of_their_own),
    };
    if (argc > 1 && strcmp(argv[1], "measure") == 0)
        return measure();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
