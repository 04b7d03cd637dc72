/* Batches of messages, and changes of groups, which engines commit together: state.h, 5. */
#include "state.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <stdlib.h>

void bide_log_batch_settle_(struct log_state *state, struct bide_log_batch_ *batch)
{
    state->claimed -= batch->left; /* 4 */
    state->left -= batch->left;
    batch->left = 0;
}

struct bide_log_batch_ *bide_log_batch_leave_(struct log_state *state,
                                              struct bide_log_batch_ *batch)
{
    if (--batch->members != 0)
        return NULL;
    if (state->pending == batch) /* nobody waits for it, and it is not written */
        state->pending = NULL;
    bide_log_batch_settle_(state, batch);
    return batch;
}

void bide_log_batch_free_(struct bide_log_batch_ *batch)
{
    if (batch != NULL) {
        free(batch->bytes);
        free(batch->positions);
    }
    free(batch);
}

int bide_log_batch_join_(bide_log_operation *self, const bide_log_message *messages, uint32_t count)
{
    bide_log *log = self->log;
    struct log_state *state = log->state;
    struct bide_log_batch_ *batch = state->pending;
    if (batch == NULL)
        batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return -ENOMEM;
    self->commit.first = batch->count;
    int status = count != 0 ? log->engine->encode(log, batch, messages, count) : 0;
    if (status < 0) {
        if (state->pending == NULL)
            bide_log_batch_free_(batch);
        return status;
    }
    batch->members++;
    batch->syncs = batch->syncs || log->level == BIDE_LOG_SYNCED;
    state->pending = batch;
    self->commit.batch = batch;
    self->commit.log = log;
    self->commit.leads = false;
    return 0;
}

/* True if its batch is done; or `leads` says whether it makes the next commit or waits. */
static bool log_commit_look(bide_log_commit_ *self)
{
    struct log_state *state = self->log->state;
    bide_log_lock_(state);
    bool is_done = self->batch->is_done;
    if (!is_done && !state->is_flushing)
        self->leads = state->is_flushing = true;
    bide_log_unlock_(state);
    return is_done;
}

/* The commit that it led has ended, or was not made. */
static void log_commit_led(bide_log_commit_ *self)
{
    struct log_state *state = self->log->state;
    self->leads = false;
    bide_log_lock_(state);
    state->is_flushing = false;
    bide_log_unlock_(state);
    bide_notify_all(&state->flushed);
    bide_log_notify_(state, LOG_ROOM); /* of publishes that did not wait for the end */
    bide_log_notify_(state, LOG_NEWS);
}

static void log_commit_call(void *argument)
{
    bide_log_commit_ *self = argument;
    self->log->engine->commit(self->log);
}

bide_coroutine(log_commit_body)
{
    bide_begin(log_commit_body, bide_log_commit_ * self);
    int status;
    for (;;) {
        bide_awaiter *flushed = bide_notify_wait(&self->notified, &self->log->state->flushed);
        if (log_commit_look(self))
            bide_return(0);
        if (!self->leads) {
            bide_try(flushed);
            continue;
        }
        self->threads = self->log->threads;
        status = self->threads != NULL ? 0 : bide_log_threads_(&self->threads);
        if (status == 0)
            bide_await_status(status,
                              bide_blocking_run(&self->call, self->threads, log_commit_call, self));
        log_commit_led(self);
        if (status < 0)
            bide_return(status);
    }
    bide_finally();
    if (self->leads)
        log_commit_led(self);
    bide_end();
}

bide_awaiter *bide_log_commit_begin_(bide_log_operation *self)
{
    return bide_task_init(&self->commit.task, &log_commit_body);
}

void bide_log_batch_end_(struct log_state *state, struct bide_log_batch_ *batch)
{
    if (batch == NULL)
        return;
    bide_log_batch_free_(batch);
    bide_log_notify_(state, LOG_ROOM);
    bide_log_notify_(state, LOG_NEWS); /* readers of a closed handle need not wait for it */
}
