#include "wishes.h"

#include <bide/coroutine.h>

#include <signal.h>
#include <string.h>

bide_coroutine(watcher_body)
{
    bide_begin(watcher_body, struct watcher * self);
    for (;;) {
        int status;
        bide_await_status(status, bide_signal_wait(&self->wait, &self->signal));
        if (status < 0)
            bide_return(0);
        self->wishes->wished |= self->wish;
        bide_auto_event_set(&self->wishes->news);
    }
    bide_end();
}

void wishes_init(struct wishes *wishes)
{
    memset(wishes, 0, sizeof *wishes);
    bide_auto_event_init(&wishes->news, false);
}

int wishes_listen(struct wishes *wishes)
{
    static const struct {
        int number;
        enum wish wish;
    } signals[WATCHERS] = {{SIGTERM, WISH_STOP},
                           {SIGINT, WISH_STOP},
                           {SIGHUP, WISH_RELOAD},
                           {SIGUSR1, WISH_FIGURES}};
    int status = 0;
    for (unsigned i = 0; i < WATCHERS && status == 0; i++) {
        struct watcher *watcher = &wishes->watchers[i];
        watcher->wishes = wishes;
        watcher->wish = signals[i].wish;
        status = bide_signal_listen(&watcher->signal, signals[i].number);
        watcher->listens = status == 0;
    }
    return status;
}

void wishes_watch(struct wishes *wishes, bide_scope *scope)
{
    for (unsigned i = 0; i < WATCHERS; i++)
        bide_scope_spawn(scope, &wishes->watchers[i].branch,
                         bide_task_init(&wishes->watchers[i].task, &watcher_body));
}

bool wishes_take(struct wishes *wishes, enum wish wish)
{
    bool is_wished = (wishes->wished & wish) != 0;
    wishes->wished &= ~(unsigned)wish;
    return is_wished;
}

void wishes_end(struct wishes *wishes)
{
    for (unsigned i = 0; i < WATCHERS; i++) {
        struct watcher *watcher = &wishes->watchers[i];
        if (watcher->listens)
            (void)bide_signal_destroy(&watcher->signal);
        watcher->listens = false;
    }
}
