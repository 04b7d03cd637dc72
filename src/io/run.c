/*
 * A loop, an awaiter that signals stop, and one coroutine for each signal.
 *
 *     run_body        bide_with_stop(awaiter)  ........................ ends the listeners, joins the watchers
 *     watcher_body    waits for its signal, ends the listeners, requests the stop
 *
 * All of it belongs to the calling thread but the listeners, which have a lock of their own.
 *
 * 1. The listeners are ended before the stop is requested. So when the awaiter learns of the stop, a
 *    second signal has its former action.
 * 2. Whoever ends a listener first sets `listens` to false, on the loop's thread. So each is ended once.
 * 3. A watcher ends in any case: its listener has ended before run_body joins it, and then its wait ends
 *    with -EPIPE, or has had its signal. In the second case it requests a stop of a source under which
 *    nothing waits any more.
 * 4. Whether a signal has asked is read when the awaiter has ended, before a watcher can run again. So a
 *    signal that comes later does not change what the awaiter's status means.
 */
#include "bide/run.h"

#include "bide/loop.h"
#include "bide/scope.h"
#include "bide/signal.h"
#include "bide/task.h"
#include "bide/with_stop.h"

#include <errno.h>
#include <signal.h>

enum { RUN_SIGNALS = 2 };

struct run;

struct run_watcher {
    bide_task task;
    bide_branch branch;
    struct run *run;
    bide_signal signal;
    bide_signal_waiter wait;
    bool listens;
};

struct run {
    bide_task task;
    bide_awaiter *awaiter;
    bide_stop_source stop;
    bide_with_stop_operation under_stop;
    bide_scope watching;
    struct run_watcher watchers[RUN_SIGNALS];
    int status;
    bool was_asked; /* by a signal */
};

/* As often as wanted: 2. (A handler that somebody has set meanwhile stays, and is no error here.) */
static void run_stop_listening(struct run *run)
{
    for (unsigned i = 0; i < RUN_SIGNALS; i++) {
        struct run_watcher *watcher = &run->watchers[i];
        if (watcher->listens) {
            watcher->listens = false;
            (void)bide_signal_destroy(&watcher->signal);
        }
    }
}

static int run_listen(struct run *run)
{
    static const int numbers[RUN_SIGNALS] = {SIGINT, SIGTERM};
    for (unsigned i = 0; i < RUN_SIGNALS; i++) {
        struct run_watcher *watcher = &run->watchers[i];
        watcher->run = run;
        int status = bide_signal_listen(&watcher->signal, numbers[i]);
        if (status < 0) {
            run_stop_listening(run);
            return status;
        }
        watcher->listens = true;
        if (watcher->signal.was_ignored) {
            watcher->listens = false;
            (void)bide_signal_destroy(&watcher->signal);
        }
    }
    return 0;
}

bide_coroutine(run_watcher_body)
{
    bide_begin(run_watcher_body, struct run_watcher * self);
    int status;
    bide_await_status(status, bide_signal_wait(&self->wait, &self->signal));
    if (status == 0) {
        self->run->was_asked = true;
        run_stop_listening(self->run); /* 1 */
        bide_stop_request(&self->run->stop);
    }
    bide_end();
}

bide_coroutine(run_body)
{
    bide_begin(run_body, struct run * self);
    bide_scope_init(&self->watching, bide_this_frame());
    for (unsigned i = 0; i < RUN_SIGNALS; i++)
        if (self->watchers[i].listens)
            bide_scope_spawn(&self->watching, &self->watchers[i].branch,
                             bide_task_init(&self->watchers[i].task, &run_watcher_body));
    bide_await_status(self->status, bide_with_stop(&self->under_stop, &self->stop, self->awaiter));
    if (self->was_asked && self->status == -ECANCELED) /* 4 */
        self->status = 0;
    run_stop_listening(self); /* 3 */
    bide_await(bide_scope_join(&self->watching));
    bide_end();
}

int bide_run(bide_awaiter *awaiter)
{
    bide_loop *loop;
    struct run run = {.awaiter = awaiter};
    int status = bide_loop_create(&loop, NULL);
    if (status < 0)
        return status;
    status = run_listen(&run);
    if (status == 0) {
        bide_stop_source_init(&run.stop);
        status = bide_loop_wait(loop, bide_task_init(&run.task, &run_body));
        if (status == 0)
            status = run.status;
        run_stop_listening(&run); /* (of a child of fork, where nothing ran) */
    }
    bide_loop_destroy(loop);
    return status;
}
