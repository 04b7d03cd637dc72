/*
 * A run loop, sleeps, tasks and generators on one thread, as they are on systems without threads.
 * tests/base/core_elsewhere_test.sh runs it there, with a small cmocka of its own.
 */
#include "testing.h"

#include "bide/core.h"
#include "bide/interval.h"
#include "bide/run_loop.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/strand.h"

enum { MILLISECOND = 1000000 };

/* Notes its number when it has slept. */
struct sleeper {
    bide_task task;
    bide_spawned spawned;
    bide_sleep sleep;
    uint64_t time; /* of its end */
    int number;
};

static int order[8];
static unsigned noted;
static bool
    is_in_time; /* whether the last one to begin, whose sleep ends first, began before that */

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    is_in_time = bide_platform.now() < self->time;
    bide_try(bide_sleep_until(&self->sleep, self->time));
    order[noted++] = self->number;
    bide_end();
}

/* Waits for all of them. */
struct waiter {
    bide_task task;
    bide_event_waiter wait;
    struct sleeper *sleepers;
    unsigned count, at;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    for (self->at = 0; self->at < self->count; self->at++)
        bide_try(bide_event_wait(&self->wait, &self->sleepers[self->at].spawned.ended));
    bide_end();
}

enum { SLEEPERS = 4 };

/*
 * Some sleep in the context, the first of them for longest, and end in the order of their times. If
 * the machine stopped for so long that some slept no more when others began, they sleep again, for
 * longer.
 */
static void sleep_in_order(bide_run_loop *loop, const bide_context *context)
{
    static struct sleeper sleepers[SLEEPERS];
    uint64_t gap = MILLISECOND;
    do {
        struct waiter waiter = {.sleepers = sleepers, .count = SLEEPERS};
        uint64_t now = bide_platform.now();
        gap *= 2;
        noted = 0;
        for (unsigned i = 0; i < SLEEPERS; i++) {
            sleepers[i].number = (int)i;
            sleepers[i].time = now + (SLEEPERS - i) * gap;
            bide_spawn(&sleepers[i].spawned, context,
                       bide_task_init(&sleepers[i].task, &sleeper_body));
        }
        assert_int_equal(bide_run_loop_wait(loop, bide_task_init(&waiter.task, &waiter_body)), 0);
        assert_true(bide_platform.now() >= sleepers[0].time);
        assert_int_equal(noted, SLEEPERS);
    } while (!is_in_time);
    for (int i = 0; i < SLEEPERS; i++)
        assert_int_equal(order[i], SLEEPERS - 1 - i);
}

static void sleeps_end_in_the_order_of_their_times(void **state)
{
    static bide_run_loop loop;
    (void)state;
    bide_run_loop_init(&loop);
    sleep_in_order(&loop, &loop.context);
    bide_run_loop_destroy(&loop);
}

static void a_strand_runs_and_sleeps_on_a_loop(void **state)
{
    static bide_run_loop loop;
    static bide_strand strand;
    (void)state;
    bide_run_loop_init(&loop);
    bide_strand_init(&strand, &loop.scheduler);
    sleep_in_order(&loop, &strand.context);
    bide_strand_destroy(&strand);
    bide_run_loop_destroy(&loop);
}

static void a_deadline_ends_a_wait(void **state)
{
    bide_run_loop loop;
    bide_event event;
    bide_event_waiter wait;
    bide_with_deadline_operation limited;
    (void)state;
    bide_run_loop_init(&loop);
    bide_event_init(&event, false);
    uint64_t deadline = bide_platform.now() + MILLISECOND;
    assert_int_equal(bide_run_loop_wait(&loop, bide_with_deadline(&limited, deadline,
                                                                  bide_event_wait(&wait, &event))),
                     -ETIMEDOUT);
    assert_true(bide_platform.now() >= deadline);
    bide_run_loop_destroy(&loop);
}

/* ---- Generators ---- */

struct counter {
    bide_generator generator;
    int value;
};

bide_generator_coroutine(counter_body)
{
    bide_begin(counter_body, struct counter * self);
    for (self->value = 1; self->value <= 10; self->value++)
        bide_yield(&self->value);
    bide_end();
}

static void a_generator_hands_out_its_values(void **state)
{
    struct counter counter;
    int sum = 0;
    (void)state;
    bide_for (int *, value, bide_generator_init(&counter.generator, &counter_body))
        sum += *value;
    assert_int_equal(sum, 55);
}

struct slow_counter {
    bide_async_generator generator;
    int value;
    bide_sleep sleep;
};

bide_async_generator_coroutine(slow_counter_body)
{
    bide_begin(slow_counter_body, struct slow_counter * self);
    for (self->value = 1; self->value <= 10; self->value++) {
        bide_try(bide_sleep_for(&self->sleep, MILLISECOND / 10));
        bide_yield(&self->value);
    }
    bide_end();
}

struct adder {
    bide_task task;
    struct slow_counter counter;
    bide_async_generator_next_operation next;
    int sum;
};

bide_coroutine(adder_body)
{
    bide_begin(adder_body, struct adder * self);
    bide_async_generator_init(&self->counter.generator, &slow_counter_body);
    bide_for_await (&self->next, &self->counter.generator)
        self->sum += *(int *)self->next.value;
    bide_end();
}

static void a_generator_sleeps_between_its_values(void **state)
{
    bide_run_loop loop;
    struct adder adder = {.sum = 0};
    (void)state;
    bide_run_loop_init(&loop);
    uint64_t begun = bide_platform.now();
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&adder.task, &adder_body)), 0);
    assert_true(bide_platform.now() - begun >= MILLISECOND);
    assert_int_equal(adder.sum, 55);
    bide_run_loop_destroy(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleeps_end_in_the_order_of_their_times),
        cmocka_unit_test(a_strand_runs_and_sleeps_on_a_loop),
        cmocka_unit_test(a_deadline_ends_a_wait),
        cmocka_unit_test(a_generator_hands_out_its_values),
        cmocka_unit_test(a_generator_sleeps_between_its_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
