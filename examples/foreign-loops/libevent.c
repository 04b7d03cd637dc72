/*
 * Coroutines in libevent's loop, which drives a run loop beside the program's own events. When the
 * run loop's descriptor is readable or its earliest timer is due, run_ready is called; nothing else
 * is needed. Coroutines sleep, and another thread wakes one, while a timer of the libevent loop
 * keeps running.
 */
#include "program.h"

#include <event2/event.h>
#include <stdio.h>

struct driver {
    bide_run_loop loop;
    struct event_base *base;
    struct event *readable;
    struct event *due;
    struct event *ticker; /* the program's own */
    int ticks;
    struct main_task *main_task;
};

static void stop_if_all_is_done(struct driver *driver)
{
    if (driver->main_task->ended && driver->ticks >= 3)
        event_base_loopbreak(driver->base);
}

/* Runs ready tasks and sets the timer again, in microseconds, rounded up. */
static void run(evutil_socket_t fd, short what, void *argument)
{
    struct driver *driver = argument;
    (void)fd;
    (void)what;
    bide_run_loop_run_ready(&driver->loop);
    uint64_t next = bide_run_loop_next_deadline(&driver->loop);
    uint64_t now = bide_platform.now();
    if (next == BIDE_FOREVER) {
        evtimer_del(driver->due);
    } else {
        uint64_t left = next > now ? (next - now + 999) / 1000 : 0;
        struct timeval time = {(time_t)(left / 1000000), (suseconds_t)(left % 1000000)};
        evtimer_add(driver->due, &time);
    }
    stop_if_all_is_done(driver);
}

static void tick(evutil_socket_t fd, short what, void *argument)
{
    struct driver *driver = argument;
    (void)fd;
    (void)what;
    driver->ticks++;
    stop_if_all_is_done(driver);
}

int main(void)
{
    static struct driver driver;
    static struct main_task main_task;
    const struct timeval millisecond = {0, 1000};
    bide_run_loop_init(&driver.loop);
    int fd = bide_run_loop_fd(&driver.loop);
    driver.base = event_base_new();
    driver.main_task = &main_task;
    if (fd < 0 || driver.base == NULL) {
        fputs("no descriptor, or no loop\n", stderr);
        return 1;
    }
    driver.readable = event_new(driver.base, fd, EV_READ | EV_PERSIST, run, &driver);
    driver.due = evtimer_new(driver.base, run, &driver);
    driver.ticker = event_new(driver.base, -1, EV_PERSIST, tick, &driver);
    event_add(driver.readable, NULL);
    event_add(driver.ticker, &millisecond);
    program_begin(&main_task, &driver.loop.context);

    event_base_dispatch(driver.base);
    printf("libevent's own timer went on: %s\n", driver.ticks >= 3 ? "yes" : "no");

    event_free(driver.readable);
    event_free(driver.due);
    event_free(driver.ticker);
    event_base_free(driver.base);
    bide_run_loop_close_fd(&driver.loop);
    bide_run_loop_destroy(&driver.loop);
    return main_task.spawned.root.status != 0;
}
