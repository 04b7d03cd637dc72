/*
 * Timers: nanoseconds to cancel one of `live` and start it again ("of": "restart"), and for each of
 * `live` to expire ("fire"). The times are random within the next half minute, and a random timer
 * is restarted. Timers that expire are due within ten seconds, and are polled each millisecond.
 *
 *   bide        the wheel in which a scheduler keeps its timers, with a clock that the benchmark sets
 *   bide-heap   a bare pairing heap, as firmware may use it
 *   bide-loop   a run loop's timers, by its scheduler's functions, under its lock; in "fire", a frame
 *               is resumed for each, and all have been due for a while
 *   libuv       uv_timer_again and uv_timer_start, with times in milliseconds; "fire" as bide-loop
 *
 * (peers/timer.sh adds tokio.)
 */
#include "bench.h"
#include "timer_peers.h"

#include "bide/run_loop.h"
#include "bide/sleep.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, RESTARTS = 200000, FIRED = 20000 };

#define MILLISECOND UINT64_C(1000000)
#define SECOND      (1000 * MILLISECOND)

uint64_t bench_timer_draw(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 33;
}

uint64_t bench_timer_away(void)
{
    return 10 * SECOND + bench_timer_draw() % 20000 * MILLISECOND +
           bench_timer_draw() % MILLISECOND;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = aligned_alloc(BIDE_CACHE_LINE, (count * size + BIDE_CACHE_LINE - 1) /
                                                      BIDE_CACHE_LINE * BIDE_CACHE_LINE);
    if (memory == NULL)
        bench_fail("timer", "no memory");
    return memory;
}

/* ---- The wheel, and the heap ---- */

#define NAME(name)   wheel_##name
#define TIMERS(name) bide_timers_##name
#define TIMERS_TYPE  bide_timers
#include "timer_kept.h"

#define NAME(name)   heap_##name
#define TIMERS(name) bide_timer_heap_##name
#define TIMERS_TYPE  bide_timer_heap
#include "timer_kept.h"

/* ---- A run loop ---- */

struct alarm {
    bide_sleep sleep;
    bide_frame frame;
};

static size_t rung;

static bide_next ring(bide_frame *frame, unsigned depth)
{
    (void)frame;
    (void)depth;
    rung++;
    return bide_next_none();
}

static const bide_coroutine_code ring_code = {ring, "alarm", __FILE__, NULL, NULL};
static const bide_point ring_point = BIDE_POINT_START(&ring_code);

static bide_run_loop loop;
static struct alarm *alarms;

static void set(struct alarm *alarm, uint64_t time)
{
    bide_timer_init(&alarm->sleep.timer, time);
    if (loop.scheduler.set_timer(&loop.scheduler, &alarm->sleep.timer) != 0)
        bench_fail("timer", "a timer cannot be set");
}

static void loop_begin(size_t live)
{
    bide_run_loop_init(&loop);
    alarms = allocate(live, sizeof *alarms);
    for (size_t i = 0; i < live; i++) {
        struct alarm *alarm = &alarms[i];
        alarm->frame.awaiter.ops = &ring_point.ops;
        alarm->frame.context = &loop.context;
        alarm->sleep.timer.awaiter.frame = &alarm->frame;
    }
}

static void loop_end(void)
{
    bide_run_loop_destroy(&loop);
    free(alarms);
}

static double loop_restart(size_t live, size_t count)
{
    loop_begin(live);
    for (size_t i = 0; i < live; i++)
        set(&alarms[i], bide_platform.now() + bench_timer_away());
    uint64_t now = bide_platform.now();
    double begun = bench_now();
    for (size_t i = 0; i < count; i++) {
        struct alarm *alarm = &alarms[bench_timer_draw() % live];
        if (!loop.scheduler.clear_timer(&loop.scheduler, &alarm->sleep.timer))
            bench_fail("timer", "a timer was not set");
        set(alarm, now + bench_timer_away());
    }
    double took = bench_now() - begun;
    for (size_t i = 0; i < live; i++)
        loop.scheduler.clear_timer(&loop.scheduler, &alarms[i].sleep.timer);
    loop_end();
    return took / (double)count;
}

static double loop_fire(size_t live)
{
    loop_begin(live);
    uint64_t now = bide_platform.now();
    for (size_t i = 0; i < live; i++)
        set(&alarms[i], now + live * 1000 + bench_timer_draw() % 100 * MILLISECOND +
                            bench_timer_draw() % MILLISECOND);
    while (bide_platform.now() < now + live * 1000 + 101 * MILLISECOND)
        bide_platform.yield();
    rung = 0;
    double begun = bench_now();
    while (rung < live)
        bide_run_loop_run_ready(&loop);
    double took = bench_now() - begun;
    loop_end();
    return took / (double)live;
}

/* ---- All of them ---- */

struct subject {
    const char *name;
    double (*restart)(size_t live, size_t count);
    double (*fire)(size_t live);
};

static const struct subject subjects[] = {
    {"bide", wheel_restart, wheel_fire},
    {"bide-heap", heap_restart, heap_fire},
    {"bide-loop", loop_restart, loop_fire},
#if BENCH_UV
    {"libuv", bench_uv_restart, bench_uv_fire},
#endif
};

enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

/* Repeats the measurement for small counts. */
static double fire(const struct subject *subject, size_t live)
{
    double sum = 0;
    size_t times = subject->fire == loop_fire || live >= FIRED ? 1 : FIRED / live;
    if (BENCH_UV && subject == &subjects[SUBJECTS - 1])
        times = 1;
    for (size_t i = 0; i < times; i++)
        sum += subject->fire(live);
    return sum / (double)times;
}

static void print(const struct subject *subject, const char *of, size_t live, double *values)
{
    char params[80];
    snprintf(params, sizeof params, "{\"live\": %zu, \"of\": \"%s\"}", live, of);
    bench_print("timer", subject->name, bench_median(values, ROUNDS), "ns/op", params);
}

int main(void)
{
    static const size_t lives[] = {1000, 1000000};
    static double restarts[SUBJECTS][ROUNDS], fires[SUBJECTS][ROUNDS];
    for (unsigned l = 0; l < sizeof lives / sizeof lives[0]; l++) {
        for (unsigned round = 0; round < ROUNDS; round++) {
            for (unsigned s = 0; s < SUBJECTS; s++) {
                restarts[s][round] = subjects[s].restart(lives[l], RESTARTS);
                fires[s][round] = fire(&subjects[s], lives[l]);
            }
        }
        for (unsigned s = 0; s < SUBJECTS; s++) {
            print(&subjects[s], "restart", lives[l], restarts[s]);
            print(&subjects[s], "fire", lives[l], fires[s]);
        }
    }
    return 0;
}
