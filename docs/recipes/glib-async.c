/* bidec cc -std=gnu11 glib-async.c $(pkg-config --cflags --libs bide glib-2.0) -o glib */
#include <bide/async.h>
#include <bide/bide.h>
#include <glib.h>

static bide_run_loop loop;

async int sleeper(void)
{
    try await bide_sleep_for(BIDE_MILLISECONDS(1));
    g_print("woken in GLib's loop\n");
    return 0;
}

static gboolean run(GSource *source, GSourceFunc function, gpointer data)
{
    bide_run_loop_run_ready(&loop); /* the descriptor is readable, or a timer is due (in us) */
    g_source_set_ready_time(source, (gint64)(bide_run_loop_next_deadline(&loop) / 1000) + 1);
    return function == NULL || function(data);
}

int main(void)
{
    GSourceFuncs functions = {.dispatch = run};
    async_frame(sleeper) frame;
    bide_spawned spawned;
    GSource *source = g_source_new(&functions, sizeof(GSource));
    bide_run_loop_init(&loop);
    g_source_add_unix_fd(source, bide_run_loop_fd(&loop), G_IO_IN);
    g_source_attach(source, NULL);
    bide_spawn(&spawned, &loop.context, async_sleeper(&frame));
    while (!bide_event_is_set(&spawned.ended)) /* or g_main_loop_run, in a program that continues */
        g_main_context_iteration(NULL, TRUE);
    g_source_destroy(source);
}
