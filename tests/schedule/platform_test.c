/*
 * The platform table for Linux: the conditions under which a wait ends.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/platform.h"

#include "../../src/system/monotonic_condition.h"

#include <errno.h>
#include <limits.h>

static const uint64_t second = 1000000000u;

static void a_wait_for_a_word_that_has_changed_ends_at_once(void **state)
{
    (void)state;
    bide_atomic(uint32_t) word;
    bide_atomic_init(&word, 1);
    assert_int_equal(bide_platform.wait(&word, 0, BIDE_FOREVER), 0);
    assert_int_equal(bide_platform.wait(&word, 0, 0), 0);
}

/* What is left of a time, where a condition waits for a span: whatever the seconds are. */
static void a_span_has_a_nanosecond_at_least_and_a_day_at_most(void **state)
{
    static const struct {
        int64_t seconds;
        long nanoseconds;
        int64_t now_seconds;
        long now_nanoseconds;
        int64_t span_seconds;
        long span_nanoseconds;
        bool is_cut;
    } cases[] = {
        {5, 0, 5, 0, 0, 1, false},
        {5, 0, 6, 0, 0, 1, false},
        {5, 999999999, 6, 0, 0, 1, false},
        {6, 0, 5, 999999999, 0, 1, false},
        {6, 1, 5, 999999999, 0, 2, false},
        {7, 5, 5, 3, 2, 2, false},
        {7, 3, 5, 5, 1, 999999998, false},
        {86405, 3, 5, 5, 86399, 999999998, false},
        {86405, 5, 5, 5, 86400, 0, true},
        {INT32_MAX, 999999999, 5, 0, 86400, 0, true},
#if INT_MAX < LONG_MAX                                        /* (a time_t of 64 bits) */
        {18446744073, 709551615, 1000000, 5, 86400, 0, true}, /* BIDE_FOREVER */
        {INT64_MAX, 999999999, 1000000000, 0, 86400, 0, true},
#endif
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct timespec time = {(time_t)cases[i].seconds, cases[i].nanoseconds}, span;
        struct timespec now = {(time_t)cases[i].now_seconds, cases[i].now_nanoseconds};
        assert_int_equal(monotonic_span(&span, &time, &now), cases[i].is_cut);
        assert_int_equal(span.tv_sec, cases[i].span_seconds);
        assert_int_equal(span.tv_nsec, cases[i].span_nanoseconds);
    }
}

static void a_wait_ends_when_its_deadline_has_come(void **state)
{
    (void)state;
    bide_atomic(uint32_t) word;
    bide_atomic_init(&word, 0);
    uint64_t deadline = bide_platform.now() + 1000;
    int status;
    while ((status = bide_platform.wait(&word, 0, deadline)) == 0) {
    }
    assert_int_equal(status, -ETIMEDOUT);
    assert_true(bide_platform.now() >= deadline);
}

struct sleeper {
    uint64_t deadline;
    bide_atomic(uint32_t) word;
    bide_atomic(bool) begun;
    int status; /* of the last wait */
};

static void *sleep_until_woken(void *argument)
{
    struct sleeper *self = argument;
    self->status = 0;
    bide_atomic_store(&self->begun, true, release);
    while (bide_atomic_load(&self->word, acquire) == 0 && self->status == 0)
        self->status = bide_platform.wait(&self->word, 0, self->deadline);
    return NULL;
}

/* Only a wake ends it: a deadline that does not fit a time_t of 32 bits is not treated as past. */
static void a_far_deadline_is_not_taken_for_a_near_one(void **state)
{
    (void)state;
    const uint64_t deadlines[] = {
        second << 31, second << 32, (second << 32) + second, BIDE_FOREVER - 1, BIDE_FOREVER,
    };
    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        struct sleeper sleeper = {.deadline = deadlines[i]};
        pthread_t thread = schedule_thread(sleep_until_woken, &sleeper);
        schedule_until(bide_atomic_load(&sleeper.begun, acquire));
        for (int yields = 0; yields < 1000; yields++)
            sched_yield();
        bide_atomic_store(&sleeper.word, 1, release);
        bide_platform.wake(&sleeper.word, 1);
        pthread_join(thread, NULL);
        assert_int_equal(sleeper.status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_for_a_word_that_has_changed_ends_at_once),
        cmocka_unit_test(a_wait_ends_when_its_deadline_has_come),
        cmocka_unit_test(a_span_has_a_nanosecond_at_least_and_a_day_at_most),
        cmocka_unit_test(a_far_deadline_is_not_taken_for_a_near_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
