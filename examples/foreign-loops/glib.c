/*
 * Coroutines in GLib's main loop, which drives a run loop beside the program's own sources. When
 * the run loop's descriptor is readable or its earliest timer is due, run_ready is called; nothing
 * else is needed. Coroutines sleep, and another thread wakes one, while a timer of the GLib loop
 * keeps running.
 */
#include "program.h"

#include <glib.h>
#include <stdio.h>

struct run_loop_source {
    GSource source;
    bide_run_loop *loop;
    gpointer tag; /* of the descriptor */
};

/*
 * The source is ready when its descriptor is readable or its timeout has passed. GLib's clock is the
 * monotonic one, like bide's, in microseconds, and a fraction is rounded up.
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
    program_begin(&program.main_task, &loop.context);

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
