/* The coroutines that turn signals into pending requests. All of it belongs to one loop. */
#include "server_signals.h"

#include <bide/coroutine.h>

#include <signal.h>
#include <string.h>

bide_coroutine(signal_watcher_body)
{
    bide_begin(signal_watcher_body, struct signal_watcher * self);
    for (;;) {
        int status;
        bide_await_status(status, bide_signal_wait(&self->wait, &self->signal));
        if (status < 0)
            bide_return(0);
        self->signals->pending |= self->request;
        bide_auto_event_set(&self->signals->wakeup);
    }
    bide_end();
}

void server_signals_init(struct server_signals *signals)
{
    memset(signals, 0, sizeof *signals);
    bide_auto_event_init(&signals->wakeup, false);
}

int server_signals_listen(struct server_signals *signals)
{
    static const struct {
        int number;
        enum server_request request;
    } watched[SIGNAL_WATCHERS] = {{SIGTERM, SERVER_STOP},
                                  {SIGINT, SERVER_STOP},
                                  {SIGHUP, SERVER_RELOAD},
                                  {SIGUSR1, SERVER_STATISTICS}};
    int status = 0;
    for (unsigned i = 0; i < SIGNAL_WATCHERS && status == 0; i++) {
        struct signal_watcher *watcher = &signals->watchers[i];
        watcher->signals = signals;
        watcher->request = watched[i].request;
        status = bide_signal_listen(&watcher->signal, watched[i].number);
        watcher->listens = status == 0;
    }
    return status;
}

void server_signals_spawn(struct server_signals *signals, bide_scope *scope)
{
    for (unsigned i = 0; i < SIGNAL_WATCHERS; i++)
        bide_scope_spawn(scope, &signals->watchers[i].branch,
                         bide_task_init(&signals->watchers[i].task, &signal_watcher_body));
}

bool server_signals_consume(struct server_signals *signals, enum server_request request)
{
    bool was_pending = (signals->pending & request) != 0;
    signals->pending &= ~(unsigned)request;
    return was_pending;
}

void server_signals_stop(struct server_signals *signals)
{
    for (unsigned i = 0; i < SIGNAL_WATCHERS; i++) {
        struct signal_watcher *watcher = &signals->watchers[i];
        if (watcher->listens)
            (void)bide_signal_destroy(&watcher->signal);
        watcher->listens = false;
    }
}
