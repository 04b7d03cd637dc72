/*
 * Coroutines in libevent's loop: a run loop is driven by it, beside the program's own events. Whenever the run
 * loop's descriptor is readable, or its earliest timer is due, run_ready is called; nothing else is needed. Coroutines
 * sleep, and one is woken by another thread; a timer of the foreign loop goes on meanwhile.
 */
#include <bide/bide.h>
#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdio.h>

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

/* ---- The run loop in libevent's ---- */

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

/* Runs what is ready, and sets the timer anew: to microseconds, rounded up. */
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
    bide_spawn(&main_task.spawned, &driver.loop.context,
               bide_task_init(&main_task.task, &main_body));

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
