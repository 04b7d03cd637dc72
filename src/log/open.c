/* Message logs: handles. state.h says why it is correct. */
#include "state.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Makes the handle, in self->log, which open completes. */
static int log_open_begin(bide_log_operation *self, struct log_url *url)
{
    int status = bide_log_url_parse_(url, self->url, self->problem);
    if (status < 0)
        return status;
    bide_log *log = calloc(1, url->engine->handle_size);
    if (log == NULL) {
        snprintf(self->problem, sizeof self->problem, "%s: no memory", url->engine->scheme);
        return -ENOMEM;
    }
    log->engine = url->engine;
    log->level = url->level;
    log->window = url->window;
    log->size = url->size;
    log->segment = url->segment;
    log->retain = url->retain;
    log->keep_for = url->keep_for;
    log->has_window = url->has_window;
    log->has_size = url->has_size;
    log->has_segment = url->has_segment;
    log->has_retain = url->has_retain;
    log->has_keep_for = url->has_keep_for;
    log->keep = url->keep;
    log->redeliver = url->redeliver;
    log->timeout = url->timeout;
    log->replicas = url->replicas;
    log->has_keep = url->has_keep;
    log->must_exist = url->must_exist;
    bide_mutex_init(&log->turn);
    self->log = log;
    return 0;
}

/* Opens what does not block; 1: it blocks, and is open when log_open_call has been called. */
static int log_open_url(bide_log_operation *self)
{
    struct log_url url;
    int status = log_open_begin(self, &url);
    if (status < 0)
        return status;
    if (self->log->engine->commit == NULL && !self->log->engine->open_blocks)
        return self->log->engine->open(self->log, url.name, self->problem);
    status = bide_log_threads_(&self->threads);
    if (status < 0)
        snprintf(self->problem, sizeof self->problem, "%s: no threads", url.engine->scheme);
    return status < 0 ? status : 1;
}

static void log_open_call(void *argument)
{
    bide_log_operation *self = argument;
    struct log_url url;
    self->status = bide_log_url_parse_(&url, self->url, self->problem);
    if (self->status == 0)
        self->status = self->log->engine->open(self->log, url.name, self->problem);
}

static void log_open_release(bide_frame *frame)
{
    bide_log_operation *self = bide_container_of(frame, bide_log_operation, task.frame);
    bide_log_destroy(*self->opened);
    *self->opened = NULL;
}

static const bide_coroutine_type log_open_type = {.name = "task", .release = log_open_release};

bide_coroutine_of(log_open_type, log_open_body)
{
    bide_begin(log_open_body, bide_log_operation * self);
    int status = log_open_url(self);
    if (status == 1) {
        bide_await_status(status,
                          bide_blocking_run(&self->call, self->threads, log_open_call, self));
        status = status == 0 ? self->status : status;
    }
    if (status == 0) {
        *self->opened = self->log;
        self->log = NULL;
    }
    bide_return(status);
    bide_finally();
    if (self->log != NULL && self->log->state != NULL)
        bide_log_destroy(self->log); /* 6: it is open, and the caller does not know */
    else
        free(self->log);
    self->log = NULL;
    bide_end();
}

#undef bide_log_open
bide_awaiter *bide_log_open(bide_log_operation *operation, bide_log **log, const char *url)
{
    *log = NULL;
    operation->log = NULL;
    operation->opened = log;
    operation->url = url;
    operation->count = 0;
    operation->problem[0] = '\0';
    return bide_task_init(&operation->task, &log_open_body);
}

void bide_log_close(bide_log *log)
{
    bide_log_lock_(log->state);
    bool was_closed = log->is_closed;
    log->is_closed = true;
    bide_log_unlock_(log->state);
    if (was_closed)
        return;
    bide_mutex_close(&log->turn); /* 3 */
    bide_log_notify_(log->state, LOG_ROOM | LOG_NEWS);
}

void bide_log_destroy(bide_log *log)
{
    if (log == NULL)
        return;
    if (log->consumers != 0)
        bide_misuse_("a message log is destroyed while it has consumers", __func__, __FILE__,
                     __LINE__);
    if (log->claims != 0)
        bide_misuse_("a message log is destroyed while a claim is held", __func__, __FILE__,
                     __LINE__);
    bide_mutex_destroy(&log->turn);
    log->engine->detach(log);
    free(log);
}

bide_log_level bide_log_level_of(const bide_log *log)
{
    return log->level;
}

uint32_t bide_log_window(const bide_log *log)
{
    return log->window;
}

uint32_t bide_log_size_max(const bide_log *log)
{
    return log->size;
}

int bide_log_remove_group(bide_log *log, const char *group)
{
    if (log->engine->remove_group != NULL)
        return log->engine->remove_group(log, group);
    struct log_state *state = log->state;
    struct bide_log_group_ *ended = NULL;
    int status = 0;
    bide_log_lock_(state);
    struct bide_log_group_ **at = bide_log_state_find_(state, group), *found = *at;
    if (*group == '\0' || found == NULL)
        status = -ENOENT;
    else if (found->members != 0)
        status = -EBUSY;
    else {
        ended = bide_log_state_remove_(state, at);
        state->groups_are_removed = true;
    }
    bide_log_unlock_(state);
    if (status < 0)
        return status;
    bide_log_group_destroy_(ended);
    bide_log_notify_(state, LOG_ROOM);
    return 0;
}

int bide_log_lag(bide_log *log, const char *group, uint64_t *count)
{
    if (log->engine->lag != NULL)
        return log->engine->lag(log, group, count);
    bide_log_lock_(log->state);
    const struct bide_log_group_ *found = *bide_log_state_find_(log->state, group);
    if (found != NULL)
        *count = log->state->tail - found->acknowledged;
    bide_log_unlock_(log->state);
    return found != NULL && *group != '\0' ? 0 : -ENOENT;
}
