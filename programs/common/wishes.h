/*
 * What a server is asked for by signals.
 *
 *     SIGTERM, SIGINT  to stop
 *     SIGHUP           to read again what it was configured by
 *     SIGUSR1          for its figures
 *
 * A coroutine for each signal notes what is wished and sets `news`. The server's own coroutine waits
 * for that, and does it, so that it is in one place at a time. All are of one loop.
 */
#ifndef COMMON_WISHES_H
#define COMMON_WISHES_H

#include <bide/auto_event.h>
#include <bide/scope.h>
#include <bide/signal.h>
#include <bide/task.h>

enum wish { WISH_STOP = 1, WISH_RELOAD = 2, WISH_FIGURES = 4 };

struct wishes;

/* Waits for one signal, again and again. */
struct watcher {
    bide_task task;
    struct wishes *wishes;
    bide_signal signal;
    bide_signal_waiter wait;
    bide_branch branch;
    enum wish wish;
    bool listens;
};

enum { WATCHERS = 4 };

struct wishes {
    bide_auto_event news; /* the server may set it for news of its own */
    unsigned wished;
    struct watcher watchers[WATCHERS];
};

void wishes_init(struct wishes *wishes);

/* From here on the signals are the program's. Errors: as bide_signal_listen; then wishes_end as well. */
int wishes_listen(struct wishes *wishes);

/* Begins the coroutines, in a scope of the server's. They end when it stops, or by wishes_end. */
void wishes_watch(struct wishes *wishes, bide_scope *scope);

/* Is it wished? It is not any more. */
bool wishes_take(struct wishes *wishes, enum wish wish);

/* The signals are the system's again. May be called again. */
void wishes_end(struct wishes *wishes);

#endif
