/*
 * Control requests that reach a server as signals:
 *
 *     SIGTERM, SIGINT  stop
 *     SIGHUP           reload the configuration
 *     SIGUSR1          print statistics
 *
 * A coroutine for each signal records the request as pending and sets `wakeup`. The server's own
 * coroutine waits for `wakeup` and handles the requests, one at a time. All of it belongs to one
 * loop.
 */
#ifndef COMMON_WISHES_H
#define COMMON_WISHES_H

#include <bide/auto_event.h>
#include <bide/scope.h>
#include <bide/signal.h>
#include <bide/task.h>

enum server_request { SERVER_STOP = 1, SERVER_RELOAD = 2, SERVER_STATISTICS = 4 };

struct server_signals;

/* Waits for one signal, repeatedly. */
struct signal_watcher {
    bide_task task;
    struct server_signals *signals;
    bide_signal signal;
    bide_signal_waiter wait;
    bide_branch branch;
    enum server_request request;
    bool listens;
};

enum { SIGNAL_WATCHERS = 4 };

struct server_signals {
    bide_auto_event wakeup; /* the server may also set it for events of its own */
    unsigned pending;
    struct signal_watcher watchers[SIGNAL_WATCHERS];
};

void server_signals_init(struct server_signals *signals);

/*
 * Takes the signals over from their default action. Errors: as bide_signal_listen;
 * server_signals_stop must be called after an error too.
 */
int server_signals_listen(struct server_signals *signals);

/*
 * Starts the coroutines in a scope of the server. They finish when the scope is stopped, or after
 * server_signals_stop.
 */
void server_signals_spawn(struct server_signals *signals, bide_scope *scope);

/* Returns true if the request is pending, and clears it. */
bool server_signals_consume(struct server_signals *signals, enum server_request request);

/* Restores the signals' previous action. May be called again. */
void server_signals_stop(struct server_signals *signals);

#endif
