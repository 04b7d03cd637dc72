/*
 * Coroutines in libuv's loop: a run loop is driven by it, beside the program's own handles. Whenever the run
 * loop's descriptor is readable, or its earliest timer is due, run_ready is called; nothing else is needed. Coroutines
 * sleep, and one is woken by another thread; a timer of the foreign loop goes on meanwhile.
 */
#define _GNU_SOURCE /* for <uv.h> */
#include <bide/bide.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <uv.h>

/* ---- The program: two coroutines that sleep by turns with each other, and one that a thread wakes ---- */

struct sleeper {
    bide_task task;
    bide_spawned spawned;
    const char *name;
    unsigned milliseconds;
    int naps;
    bide_sleep sleep;
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    for (self->naps = 0; self->naps < 3; self->naps++)
        bide_try(bide_sleep_for(&self->sleep, self->milliseconds * UINT64_C(1000000)));
    printf("%s slept three times\n", self->name);
    bide_end();
}

struct listener {
    bide_task task;
    bide_spawned spawned;
    bide_event asked;
    bide_event_waiter wait;
    bide_event answered;
};

bide_coroutine(listener_body)
{
    bide_begin(listener_body, struct listener * self);
    bide_try(bide_event_wait(&self->wait, &self->asked));
    bide_event_set(&self->answered);
    bide_end();
}

/* A thread that knows neither loop: it wakes the coroutine, and blocks until that has answered. */
static void *ask(void *argument)
{
    struct listener *listener = argument;
    bide_event_set(&listener->asked);
    bide_event_wait_blocking(&listener->answered, BIDE_FOREVER);
    return NULL;
}

struct main_task {
    bide_task task;
    bide_spawned spawned;
    struct sleeper sleepers[2];
    struct listener listener;
    pthread_t thread;
    bide_event_waiter wait;
    int i;
    bool ended;
};

bide_coroutine(main_body)
{
    static const char *const names[] = {"one", "the other"};
    bide_begin(main_body, struct main_task * self);
    for (self->i = 0; self->i < 2; self->i++) {
        struct sleeper *sleeper = &self->sleepers[self->i];
        sleeper->name = names[self->i];
        sleeper->milliseconds = self->i == 0 ? 2 : 7;
        bide_spawn(&sleeper->spawned, bide_this_context(),
                   bide_task_init(&sleeper->task, &sleeper_body));
    }
    bide_event_init(&self->listener.asked, false);
    bide_event_init(&self->listener.answered, false);
    bide_spawn(&self->listener.spawned, bide_this_context(),
               bide_task_init(&self->listener.task, &listener_body));
    if (pthread_create(&self->thread, NULL, ask, &self->listener) != 0)
        bide_return(-EAGAIN);
    bide_try(bide_event_wait(&self->wait, &self->listener.spawned.ended));
    pthread_join(self->thread, NULL);
    for (self->i = 0; self->i < 2; self->i++)
        bide_try(bide_event_wait(&self->wait, &self->sleepers[self->i].spawned.ended));
    puts("a thread was answered");
    self->ended = true;
    bide_end();
}

/* ---- The run loop in libuv's ---- */

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

/* Runs what is ready, and sets the timer anew. libuv counts milliseconds: a part of one is rounded up. */
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
    bide_spawn(&main_task.spawned, &driver.loop.context,
               bide_task_init(&main_task.task, &main_body));

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
