/*
 * Intervals: ticks are never early, and missed ticks follow the policy. No test checks how late a tick is: a coroutine
 * that has to be late polls the clock.
 */
#include "schedule_testing.h"

#include "bide/interval.h"
#include "bide/run_loop.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"

#include <errno.h>

#define MILLISECOND UINT64_C(1000000)
#define HOUR        (3600 * UINT64_C(1000000000))

static void until(uint64_t time)
{
    while (bide_platform.now() < time)
        bide_cpu_relax();
}

/* Awaits so many ticks; notes each one's time, and whether it was early. */
enum { TICKS = 20 };

struct ticker {
    bide_task task;
    bide_interval interval;
    uint64_t due[TICKS + 1]; /* of the next tick, before each, and after all */
    unsigned early;
    unsigned late_at; /* before this one the coroutine is busy for `busy` */
    uint64_t busy;
    uint64_t had_from, had_to; /* when the tick at late_at was delivered */
    unsigned i;
};

bide_coroutine(ticker_body)
{
    bide_begin(ticker_body, struct ticker * self);
    for (self->i = 0; self->i < TICKS; self->i++) {
        if (self->i == self->late_at) {
            until(self->interval.next + self->busy);
            self->had_from = bide_platform.now();
        }
        self->due[self->i] = self->interval.next;
        bide_try(bide_interval_tick(&self->interval));
        self->early += bide_platform.now() < self->due[self->i];
        if (self->i == self->late_at)
            self->had_to = bide_platform.now();
    }
    self->due[TICKS] = self->interval.next;
    bide_end();
}

static void tick(struct ticker *self, bide_missed_ticks missed, uint64_t period)
{
    memset(self, 0, sizeof *self);
    self->late_at = TICKS / 2;
    self->busy = 3 * period + period / 2;
    uint64_t first = bide_platform.now() + period;
    bide_interval_init(&self->interval, first, period, missed);
    assert_int_equal(bide_sync_wait(bide_task_init(&self->task, &ticker_body)), 0);
    assert_int_equal(self->i, TICKS);
    assert_int_equal(self->early, 0);
    assert_true(self->due[0] == first);
}

static void in_a_burst_each_tick_comes(void **state)
{
    (void)state;
    struct ticker self;
    tick(&self, BIDE_MISSED_BURST, MILLISECOND);
    for (unsigned i = 0; i < TICKS; i++)
        assert_true(self.due[i + 1] == self.due[i] + MILLISECOND);
}

/* Ticks that are late because of the machine are skipped, too. */
static void skipped_ticks_come_no_more_and_the_others_where_they_would(void **state)
{
    (void)state;
    struct ticker self;
    tick(&self, BIDE_MISSED_SKIP, MILLISECOND);
    for (unsigned i = 0; i < TICKS; i++) {
        assert_true(self.due[i + 1] > self.due[i]);
        assert_true((self.due[i + 1] - self.due[i]) % MILLISECOND == 0);
    }
    uint64_t next = self.due[self.late_at + 1];
    assert_true(next >= self.due[self.late_at] + 4 * MILLISECOND);
    assert_true(next > self.had_from && next <= self.had_to + MILLISECOND);
}

static void after_a_delay_ticks_go_on_from_there(void **state)
{
    (void)state;
    struct ticker self;
    tick(&self, BIDE_MISSED_DELAY, MILLISECOND);
    uint64_t next = self.due[self.late_at + 1];
    assert_true(next >= self.had_from + MILLISECOND && next <= self.had_to + MILLISECOND);
    for (unsigned i = 0; i < TICKS; i++)
        assert_true(self.due[i + 1] >= self.due[i] + MILLISECOND);
}

/* The rule alone: numbers simulate the lateness. */
static void the_next_tick_follows_from_the_last_and_the_time(void **state)
{
    (void)state;
    static const struct {
        bide_missed_ticks missed;
        uint64_t next, period, now, following;
    } cases[] = {
        {BIDE_MISSED_BURST, 0, 10, 35, 10},
        {BIDE_MISSED_DELAY, 0, 10, 35, 45},
        {BIDE_MISSED_SKIP, 0, 10, 35, 40},
        {BIDE_MISSED_SKIP, 0, 10, 40, 50},
        {BIDE_MISSED_SKIP, 5, 10, 35, 45},
        {BIDE_MISSED_SKIP, 5, 10, 34, 35},
        {BIDE_MISSED_BURST, 100, 10, 109, 110},
        {BIDE_MISSED_DELAY, 100, 10, 109, 110},
        {BIDE_MISSED_SKIP, 100, 10, 109, 110},
        {BIDE_MISSED_DELAY, 100, 10, 110, 120},
        {BIDE_MISSED_SKIP, 100, 10, 110, 120},
        {BIDE_MISSED_SKIP, 7, 0, 1000, 1001},
        {BIDE_MISSED_BURST, 5, BIDE_FOREVER, 5, BIDE_FOREVER},
        {BIDE_MISSED_SKIP, BIDE_FOREVER - 3, 5, BIDE_FOREVER - 2, BIDE_FOREVER},
        {BIDE_MISSED_SKIP, BIDE_FOREVER - 30, 5, BIDE_FOREVER - 2, BIDE_FOREVER},
        {BIDE_MISSED_DELAY, BIDE_FOREVER - 30, 5, BIDE_FOREVER - 2, BIDE_FOREVER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bide_interval interval;
        /* (the function: to the macro of debug builds a period of 0 is misuse) */
        (bide_interval_init)(&interval, cases[i].next, cases[i].period, cases[i].missed);
        uint64_t following = bide_interval_following_(&interval, cases[i].now);
        if (following != cases[i].following)
            fail_msg("case %zu: %llu", i, (unsigned long long)following);
    }
}

struct once {
    bide_task task;
    bide_interval interval;
};

bide_coroutine(once_body)
{
    bide_begin(once_body, struct once * self);
    bide_try(bide_interval_tick(&self->interval));
    bide_end();
}

static void a_tick_that_is_cut_short_is_still_to_come(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    bide_context context = loop.context;
    context.stop = &stop;
    struct once once;
    bide_spawned spawned;
    uint64_t next = bide_platform.now() + HOUR;
    bide_interval_init(&once.interval, next, HOUR, BIDE_MISSED_SKIP);
    bide_spawn(&spawned, &context, bide_task_init(&once.task, &once_body));
    bide_run_loop_run_ready(&loop);
    bide_stop_request(&stop);
    bide_run_loop_run_ready(&loop);
    assert_true(bide_event_is_set(&spawned.ended));
    assert_int_equal(spawned.root.status, -ECANCELED);
    assert_true(once.interval.next == next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_burst_each_tick_comes),
        cmocka_unit_test(skipped_ticks_come_no_more_and_the_others_where_they_would),
        cmocka_unit_test(after_a_delay_ticks_go_on_from_there),
        cmocka_unit_test(the_next_tick_follows_from_the_last_and_the_time),
        cmocka_unit_test(a_tick_that_is_cut_short_is_still_to_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
