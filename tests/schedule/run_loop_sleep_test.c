/*
 * The address on which a run loop sleeps and is woken. The program has its own platform table: its wait checks
 * the word instead of sleeping on it, and lets another thread end the loop's wait. A loop that used the wrong
 * half of its word would just never sleep, which no result shows.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/run_loop.h"

static bide_event event;

/* Writer: the thread that runs the loop. */
static unsigned waits;
static void *slept_on;
static bool would_have_slept;

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parked_loop_sleeps_on_the_word_that_a_post_wakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
