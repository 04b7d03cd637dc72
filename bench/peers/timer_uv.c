/* libuv's timers: see timer.c. */
#define _GNU_SOURCE
#include "../bench.h"
#include "../timer_peers.h"

#include <stdlib.h>
#include <uv.h>

static uv_loop_t loop;
static uv_timer_t *timers;
static size_t rung;

static void ring(uv_timer_t *timer)
{
    (void)timer;
    rung++;
}

static void begin(size_t live)
{
    timers = malloc(live * sizeof *timers);
    if (timers == NULL || uv_loop_init(&loop) != 0)
        bench_fail("timer", "no memory");
    for (size_t i = 0; i < live; i++)
        uv_timer_init(&loop, &timers[i]);
    uv_update_time(&loop);
}

static void end(size_t live)
{
    for (size_t i = 0; i < live; i++)
        uv_close((uv_handle_t *)&timers[i], NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    free(timers);
}

double bench_uv_restart(size_t live, size_t count)
{
    begin(live);
    for (size_t i = 0; i < live; i++)
        uv_timer_start(&timers[i], ring, bench_timer_away() / 1000000, 0);
    double begun = bench_now();
    for (size_t i = 0; i < count; i++) {
        uv_timer_t *timer = &timers[bench_timer_draw() % live];
        uv_timer_stop(timer);
        uv_timer_start(timer, ring, bench_timer_away() / 1000000, 0);
    }
    double took = bench_now() - begun;
    end(live);
    return took / (double)count;
}

double bench_uv_fire(size_t live)
{
    begin(live);
    for (size_t i = 0; i < live; i++)
        uv_timer_start(&timers[i * 7919 % live], ring, live / 1000 + bench_timer_draw() % 100, 0);
    uint64_t until = uv_hrtime() + (live / 1000 + 101) * 1000000;
    while (uv_hrtime() < until)
        continue;
    rung = 0;
    double begun = bench_now();
    while (rung < live)
        uv_run(&loop, UV_RUN_NOWAIT);
    double took = bench_now() - begun;
    end(live);
    return took / (double)live;
}
