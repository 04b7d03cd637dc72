/*
 * Coroutines in libuv's loop, which drives a run loop beside the program's own handles. When the
 * run loop's descriptor is readable or its earliest timer is due, run_ready is called; nothing else
 * is needed. Coroutines sleep, and another thread wakes one, while a timer of the libuv loop keeps
 * running.
 */
#define _GNU_SOURCE /* for <uv.h> */
#include "program.h"

#include <stdio.h>
#include <uv.h>

struct driver {
    bide_run_loop loop;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_timer_t ticker; /* the program's own */
    int ticks;
    struct main_task *main_task;
};

static void run(struct driver *driver);

static void stop_if_all_is_done(struct driver *driver)
{
    if (driver->main_task->ended && driver->ticks >= 3)
        uv_stop(driver->timer.loop);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

static void on_due(uv_timer_t *timer)
{
    run(timer->data);
}

static void on_tick(uv_timer_t *ticker)
{
    struct driver *driver = ticker->data;
    driver->ticks++;
    stop_if_all_is_done(driver);
}

/*
 * Runs ready tasks and sets the timer again. libuv counts milliseconds: a fraction is rounded up.
 */
static void run(struct driver *driver)
{
    bide_run_loop_run_ready(&driver->loop);
    uint64_t next = bide_run_loop_next_deadline(&driver->loop);
    uint64_t now = bide_platform.now();
    uv_update_time(driver->timer.loop);
    if (next == BIDE_FOREVER)
        uv_timer_stop(&driver->timer);
    else
        uv_timer_start(&driver->timer, on_due, next > now ? (next - now + 999999) / 1000000 : 0, 0);
    stop_if_all_is_done(driver);
}

int main(void)
{
    static struct driver driver;
    static struct main_task main_task;
    uv_loop_t *loop = uv_default_loop();
    bide_run_loop_init(&driver.loop);
    int fd = bide_run_loop_fd(&driver.loop);
    if (fd < 0 || uv_poll_init(loop, &driver.poll, fd) != 0 ||
        uv_timer_init(loop, &driver.timer) != 0 || uv_timer_init(loop, &driver.ticker) != 0) {
        fputs("no descriptor, or no room in the loop\n", stderr);
        return 1;
    }
    driver.main_task = &main_task;
    driver.poll.data = driver.timer.data = driver.ticker.data = &driver;
    uv_poll_start(&driver.poll, UV_READABLE, on_readable);
    uv_timer_start(&driver.ticker, on_tick, 1, 1);
    program_begin(&main_task, &driver.loop.context);

    uv_run(loop, UV_RUN_DEFAULT);
    printf("libuv's own timer went on: %s\n", driver.ticks >= 3 ? "yes" : "no");

    uv_close((uv_handle_t *)&driver.poll, NULL);
    uv_close((uv_handle_t *)&driver.timer, NULL);
    uv_close((uv_handle_t *)&driver.ticker, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    bide_run_loop_close_fd(&driver.loop);
    bide_run_loop_destroy(&driver.loop);
    return uv_loop_close(loop) != 0 || main_task.spawned.root.status != 0;
}
