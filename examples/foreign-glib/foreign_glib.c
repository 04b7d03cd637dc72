/*
 * Coroutines in GLib's main loop: a run loop is driven by it, beside the program's own sources. Whenever the run
 * loop's descriptor is readable, or its earliest timer is due, run_ready is called; nothing else is needed. Coroutines
 * sleep, and one is woken by another thread; a timer of the foreign loop goes on meanwhile.
 */
#include <bide/bide.h>
#include <errno.h>
#include <glib.h>
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

/* ---- The run loop in GLib's: a source of its own kind ---- */

struct run_loop_source {
    GSource source;
    bide_run_loop *loop;
    gpointer tag; /* of the descriptor */
};

/*
 * The source is ready when its descriptor is, or its time has come: GLib's clock is the monotonic one, as bide's, in
 * microseconds, and a part of one is rounded up.
 */
static gboolean run(GSource *source, GSourceFunc function, gpointer data)
{
    struct run_loop_source *self = (struct run_loop_source *)source;
    bide_run_loop_run_ready(self->loop);
    uint64_t next = bide_run_loop_next_deadline(self->loop);
    g_source_set_ready_time(source, next == BIDE_FOREVER ? -1 : (gint64)((next + 999) / 1000));
    return function != NULL ? function(data) : G_SOURCE_CONTINUE;
}

static GSourceFuncs run_loop_functions = {.dispatch = run};

static GSource *run_loop_source_new(bide_run_loop *loop, int fd)
{
    GSource *source = g_source_new(&run_loop_functions, sizeof(struct run_loop_source));
    struct run_loop_source *self = (struct run_loop_source *)source;
    self->loop = loop;
    self->tag = g_source_add_unix_fd(source, fd, G_IO_IN);
    return source;
}

struct program {
    GMainLoop *main_loop;
    struct main_task main_task;
    int ticks; /* of the program's own timer */
};

static gboolean on_tick(gpointer data)
{
    struct program *program = data;
    program->ticks++;
    if (program->main_task.ended && program->ticks >= 3)
        g_main_loop_quit(program->main_loop);
    return G_SOURCE_CONTINUE;
}

int main(void)
{
    static struct program program;
    static bide_run_loop loop;
    bide_run_loop_init(&loop);
    int fd = bide_run_loop_fd(&loop);
    if (fd < 0) {
        fputs("no descriptor\n", stderr);
        return 1;
    }
    program.main_loop = g_main_loop_new(NULL, FALSE);
    GSource *source = run_loop_source_new(&loop, fd);
    g_source_attach(source, NULL);
    guint ticker = g_timeout_add(1, on_tick, &program);
    bide_spawn(&program.main_task.spawned, &loop.context,
               bide_task_init(&program.main_task.task, &main_body));

    g_main_loop_run(program.main_loop);
    printf("GLib's own timer went on: %s\n", program.ticks >= 3 ? "yes" : "no");

    g_source_remove(ticker);
    g_source_destroy(source);
    g_source_unref(source);
    g_main_loop_unref(program.main_loop);
    bide_run_loop_close_fd(&loop);
    bide_run_loop_destroy(&loop);
    return program.main_task.spawned.root.status != 0;
}
