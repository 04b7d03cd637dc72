/*
 * The platform table for Linux: the conditions under which a wait ends.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/platform.h"

#include <errno.h>

static const uint64_t second = 1000000000u;

static void a_wait_for_a_word_that_has_changed_ends_at_once(void **state)
{
    (void)state;
    bide_atomic(uint32_t) word;
    bide_atomic_init(&word, 1);
    assert_int_equal(bide_platform.wait(&word, 0, BIDE_FOREVER), 0);
    assert_int_equal(bide_platform.wait(&word, 0, 0), 0);
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
        cmocka_unit_test(a_far_deadline_is_not_taken_for_a_near_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
