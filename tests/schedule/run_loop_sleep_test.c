/*
 * How a run loop sleeps: the address on which it does and is woken, and how often it looks for work before. The
 * program has its own platform table: its wait checks the word instead of sleeping on it, and lets another thread
 * end the loop's wait. A loop that used the wrong half of its word would just never sleep, which no result shows.
 * A loop with a timer reads the clock at each look, so the table counts those.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/coroutine.h"
#include "bide/run_loop.h"
#include "bide/sleep.h"
#include "bide/spawn.h"

enum { LONG = BIDE_LOOP_SPINS_MAX_ * 3 / 4, SLEEPS_MAX = 256, VAIN = SLEEPS_MAX / 2 };

static bide_event event;

/* Writer: the thread that runs the loop. */
static unsigned waits;
static void *slept_on;
static bool would_have_slept;
static unsigned looks[SLEEPS_MAX]; /* readings of the clock before each sleep */
static unsigned readings;          /* since the last sleep */
static unsigned set_at;            /* the event is set at this reading, once; 0: never */
static unsigned set_after;         /* so many sleeps */

/* Writer: the thread that sets the event, which the other one joins. */
static unsigned wakes;
static void *woken;

static void *set_event(void *argument)
{
    (void)argument;
    bide_event_set(&event);
    return NULL;
}

static int look_instead(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    if (waits < SLEEPS_MAX)
        looks[waits] = readings;
    readings = 0;
    waits++;
    slept_on = (void *)word;
    would_have_slept = bide_atomic_load(word, relaxed) == expected && deadline == BIDE_FOREVER;
    pthread_join(schedule_thread(set_event, NULL), NULL);
    return 0;
}

static void note_wake(bide_atomic(uint32_t) * word, uint32_t count)
{
    wakes += count;
    woken = (void *)word;
}

static uint64_t no_time(void)
{
    if (++readings == set_at) {
        set_at = readings = 0;
        set_after = waits;
        pthread_join(schedule_thread(set_event, NULL), NULL);
    }
    return 0;
}

static void yield(void)
{
    sched_yield();
}

static void misuse(const char *what, const char *where, const char *file, unsigned line)
{
    fprintf(stderr, "%s: %s (%s:%u)\n", what, where, file, line);
    abort();
}

const bide_platform_table bide_platform = {look_instead, note_wake, no_time, yield, misuse, NULL};

static void a_parked_loop_sleeps_on_the_word_that_a_post_wakes(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_event_init(&event, false);
    witness task;
    assert_int_equal(bide_run_loop_wait(&loop, witness_run(&task, &event, 0)), 0);
    assert_int_equal(waits, 1);
    assert_true(would_have_slept);
    assert_int_equal(wakes, 1);
    assert_ptr_equal(woken, slept_on);
}

/* Waits `left` times for the event. */
typedef struct waiting_task {
    bide_task task;
    unsigned left;
    bide_event_waiter wait;
    bide_sleep sleep;
} waiting_task;

bide_coroutine(waiting_body)
{
    bide_begin(waiting_body, waiting_task * self);
    for (; self->left != 0; self->left--) {
        bide_try(bide_event_wait(&self->wait, &event));
        bide_event_reset(&event);
    }
    bide_end();
}

bide_coroutine(sleeping_body)
{
    bide_begin(sleeping_body, waiting_task * self);
    bide_await(bide_sleep_until(&self->sleep, UINT64_C(1) << 60));
    bide_end();
}

static unsigned count_sleeps_to_long(unsigned from)
{
    unsigned i = from;
    while (i < waits && looks[i] < LONG)
        i++;
    return i - from;
}

/*
 * A loop that finds nothing when it looks looks less and less. If it never tried for longer again, two loops that wake
 * each other would sleep for ever, because neither looks for as long as the other takes to wake up.
 */
static void a_loop_that_looks_least_tries_for_longer_now_and_then(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    loop.pace.spins = BIDE_LOOP_SPINS_MAX_ / 2; /* (0 on one processor) */
    bide_event_init(&event, false);
    bide_stop_source source;
    bide_stop_source_init(&source);
    bide_context context = loop.context;
    context.stop = &source;
    waiting_task timed, waiting = {.left = VAIN};
    bide_spawned spawned;
    bide_spawn(&spawned, &context, bide_task_init(&timed.task, &sleeping_body));

    waits = readings = set_at = 0;
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&waiting.task, &waiting_body)), 0);
    assert_int_equal(waits, VAIN);
    assert_int_equal(loop.pace.spins, BIDE_LOOP_SPINS_MIN_);
    unsigned first = count_sleeps_to_long(0);
    assert_in_range(first, BIDE_SPIN_SLEEPS_TO_TRY_, BIDE_SPIN_SLEEPS_TO_TRY_ + 8);
    assert_in_range(looks[first - 1], BIDE_LOOP_SPINS_MIN_, BIDE_LOOP_SPINS_MIN_ + 8);
    /* each time after twice as many sleeps */
    for (unsigned interval = BIDE_SPIN_SLEEPS_TO_TRY_; first + 2 * interval + 1 < waits;) {
        interval *= 2;
        assert_int_equal(count_sleeps_to_long(first + 1), interval);
        first += interval + 1;
    }

    /* One that pays: it looks for as long the next time, too. */
    waits = readings = 0;
    set_at = LONG;
    waiting.left = SLEEPS_MAX;
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&waiting.task, &waiting_body)), 0);
    assert_int_equal(waits, SLEEPS_MAX - 1);
    assert_true(set_after < waits);
    assert_in_range(looks[set_after], BIDE_LOOP_SPINS_MAX_, BIDE_LOOP_SPINS_MAX_ + 8);
    first = set_after + 1 + count_sleeps_to_long(set_after + 1);
    assert_in_range(first - set_after, BIDE_SPIN_SLEEPS_TO_TRY_, BIDE_SPIN_SLEEPS_TO_TRY_ + 8);

    bide_stop_request(&source);
    bide_event_waiter ended;
    assert_int_equal(bide_run_loop_wait(&loop, bide_event_wait(&ended, &spawned.ended)), 0);
    bide_run_loop_destroy(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parked_loop_sleeps_on_the_word_that_a_post_wakes),
        cmocka_unit_test(a_loop_that_looks_least_tries_for_longer_now_and_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
