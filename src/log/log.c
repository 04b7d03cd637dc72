/* Message logs: the operations, above an engine. state.h says why it is correct. */
#include "state.h"

#include "bide/coroutine.h"
#include "bide/sleep.h"

#include "../coroutine/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- State ---- */

void bide_log_state_init_(struct log_state *state, uint32_t window, bool groups_hold)
{
    state->sharing = NULL;
    bide_atomic_init(&state->lock, LOCK_FREE);
    state->window = window;
    state->groups_hold = groups_hold;
    state->claimed = 0;
    state->left = 0;
    state->tail = 0;
    state->oldest = 1;
    state->last_time = 0;
    state->owners = 0;
    state->groups = NULL;
    state->pending = NULL;
    state->is_flushing = false;
    state->groups_are_removed = false;
    bide_notify_init(&state->flushed);
    bide_notify_init(&state->room);
    bide_notify_init(&state->news);
}

void bide_log_state_destroy_(struct log_state *state)
{
    while (state->groups != NULL) {
        struct bide_log_group_ *group = state->groups;
        state->groups = group->following;
        bide_log_group_destroy_(group);
    }
    bide_log_batch_free_(state->pending);
    bide_notify_destroy(&state->flushed);
    bide_notify_destroy(&state->room);
    bide_notify_destroy(&state->news);
}

static void log_lock(struct log_state *state)
{
    if (state->sharing != NULL)
        state->sharing->lock(state);
    else
        lock_take(&state->lock);
}

static void log_unlock(struct log_state *state)
{
    if (state->sharing != NULL)
        state->sharing->unlock(state);
    else
        lock_free(&state->lock);
}

/* Under the lock: an operation waits for one of these. Its own wait has begun: 2. */
static void log_awaits(struct log_state *state, unsigned kinds)
{
    if (state->sharing != NULL)
        state->sharing->await(state, kinds);
}

/* After a change, and after the lock: wakes those that wait for one of these. */
static void log_notify(struct log_state *state, unsigned kinds)
{
    if ((kinds & LOG_ROOM) != 0)
        bide_notify_all(&state->room);
    if ((kinds & LOG_NEWS) != 0)
        bide_notify_all(&state->news);
    if (state->sharing != NULL)
        state->sharing->notify(state, kinds);
}

/* The link to the group of that name; a link to NULL: there is none. */
static struct bide_log_group_ **log_state_find(struct log_state *state, const char *name)
{
    struct bide_log_group_ **at = &state->groups;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->following;
    return at;
}

/* Removes the group from the list; the group if it is to be freed, after the lock. */
static struct bide_log_group_ *log_state_remove(struct log_state *state,
                                                struct bide_log_group_ **at)
{
    struct bide_log_group_ *group = *at;
    *at = group->following;
    if (state->sharing == NULL)
        return group;
    state->sharing->remove_group(state, group);
    return NULL;
}

/* The messages in front of which nothing has to be kept: 4. */
static uint64_t log_state_done(const struct log_state *state)
{
    uint64_t done = state->tail;
    for (const struct bide_log_group_ *group = state->groups; group != NULL;
         group = group->following) {
        if (group->acknowledged < done)
            done = group->acknowledged;
    }
    return done;
}

/* The number of the oldest message that a new group can begin with. */
static uint64_t log_state_oldest(const struct log_state *state)
{
    if (!state->groups_hold)
        return state->oldest;
    uint64_t end = state->tail + state->claimed;
    uint64_t first = end > state->window ? end - state->window + 1 : 1;
    return first > state->oldest ? first : state->oldest;
}

static bool log_state_has_room(const struct log_state *state, uint32_t count)
{
    uint64_t used = state->claimed;
    if (state->groups_hold)
        used += state->tail - log_state_done(state);
    return used + count <= state->window;
}

/* ---- Handles ---- */

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
    log_lock(log->state);
    bool was_closed = log->is_closed;
    log->is_closed = true;
    log_unlock(log->state);
    if (was_closed)
        return;
    bide_mutex_close(&log->turn); /* 3 */
    log_notify(log->state, LOG_ROOM | LOG_NEWS);
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
    struct log_state *state = log->state;
    struct bide_log_group_ *ended = NULL;
    int status = 0;
    log_lock(state);
    struct bide_log_group_ **at = log_state_find(state, group), *found = *at;
    if (*group == '\0' || found == NULL)
        status = -ENOENT;
    else if (found->members != 0)
        status = -EBUSY;
    else {
        ended = log_state_remove(state, at);
        state->groups_are_removed = true;
    }
    log_unlock(state);
    if (status < 0)
        return status;
    bide_log_group_destroy_(ended);
    log_notify(state, LOG_ROOM);
    return 0;
}

int bide_log_lag(bide_log *log, const char *group, uint64_t *count)
{
    log_lock(log->state);
    const struct bide_log_group_ *found = *log_state_find(log->state, group);
    if (found != NULL)
        *count = log->state->tail - found->acknowledged;
    log_unlock(log->state);
    return found != NULL && *group != '\0' ? 0 : -ENOENT;
}

/* ---- Batches: 5 ---- */

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
    if (batch != NULL)
        free(batch->bytes);
    free(batch);
}

/* Joins the batch that waits, with `count` messages; under the lock. */
static int log_batch_join(bide_log_operation *self, const bide_log_message *messages,
                          uint32_t count)
{
    bide_log *log = self->log;
    struct log_state *state = log->state;
    struct bide_log_batch_ *batch = state->pending;
    if (batch == NULL)
        batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return -ENOMEM;
    self->commit.first = batch->count;
    int status = count != 0 ? log->engine->encode(batch, messages, count) : 0;
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
    log_lock(state);
    bool is_done = self->batch->is_done;
    if (!is_done && !state->is_flushing)
        self->leads = state->is_flushing = true;
    log_unlock(state);
    return is_done;
}

/* The commit that it led has ended, or was not made. */
static void log_commit_led(bide_log_commit_ *self)
{
    struct log_state *state = self->log->state;
    self->leads = false;
    log_lock(state);
    state->is_flushing = false;
    log_unlock(state);
    bide_notify_all(&state->flushed);
    log_notify(state, LOG_ROOM); /* of publishes that did not wait for the end */
    log_notify(state, LOG_NEWS);
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
        status = bide_log_threads_(&self->threads);
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

static bide_awaiter *log_commit(bide_log_operation *self)
{
    return bide_task_init(&self->commit.task, &log_commit_body);
}

/* ---- Producers ---- */

/* True if it has ended: with the room, or *status is -EPIPE. */
static bool log_try_claim(bide_log_operation *self, int *status)
{
    struct log_state *state = self->log->state;
    log_lock(state);
    bool has_room = log_state_has_room(state, self->wanted);
    *status = self->log->is_closed ? -EPIPE : 0;
    if (*status == 0 && has_room) {
        state->claimed += self->wanted;
        self->log->claims += self->wanted;
        self->claimed = self->wanted;
    }
    if (*status == 0 && !has_room)
        log_awaits(state, LOG_ROOM);
    log_unlock(state);
    return *status < 0 || has_room;
}

static void log_unclaim(bide_log *log, uint32_t count)
{
    if (count == 0)
        return;
    log_lock(log->state);
    bide_assert(log->claims >= count && log->state->claimed >= count);
    log->state->claimed -= count;
    log->claims -= count;
    bool ends = log->is_closed && log->claims == 0;
    log_unlock(log->state);
    log_notify(log->state, LOG_ROOM);
    if (ends) /* its readers need not wait for what the claim might have published */
        log_notify(log->state, LOG_NEWS);
}

static bool log_message_has_bytes(const bide_log_message *message)
{
    return (message->data != NULL || message->size == 0) &&
           (message->key != NULL || message->key_size == 0) &&
           (message->encoded != NULL || message->encoded_size == 0);
}

/* 0: the messages may be published in this handle. */
static int log_check_messages(const bide_log_operation *self)
{
    for (uint32_t i = 0; i < self->wanted; i++) {
        const bide_log_message *message = &self->messages[i];
        size_t left = self->log->size;
        if (!log_message_has_bytes(message))
            return -EINVAL;
        if (message->size > left || message->key_size > left - message->size)
            return -EMSGSIZE;
        left -= message->size + message->key_size;
        for (size_t h = 0; h < message->header_count; h++) {
            const bide_log_header *header = &message->headers[h];
            if (header->name_size - 1 >= UINT8_MAX || header->name == NULL ||
                (header->value == NULL && header->value_size != 0))
                return -EINVAL;
        }
        if (!bide_log_headers_are_whole_(message->encoded, message->encoded_size))
            return -EINVAL;
        if (bide_log_headers_size_(message) > left)
            return -EMSGSIZE;
    }
    return 0;
}

/* Publishes what is claimed. */
static void log_append(bide_log_operation *self)
{
    struct log_state *state = self->log->state;
    log_lock(state);
    bide_assert(self->claimed == self->wanted && state->claimed >= self->claimed);
    self->log->engine->append(self->log, self->messages, self->wanted);
    state->claimed -= self->wanted;
    self->log->claims -= self->wanted;
    log_unlock(state);
    self->claimed = 0;
    self->count = self->wanted;
    log_notify(state, LOG_NEWS);
}

/* Publishes what is claimed, or joins a batch with it. */
static int log_publish_begin(bide_log_operation *self)
{
    if (self->log->engine->commit == NULL) {
        log_append(self);
        return 0;
    }
    log_lock(self->log->state);
    int status = log_batch_join(self, self->messages, self->wanted);
    log_unlock(self->log->state);
    return status;
}

/* Frees the batch that bide_log_batch_leave_ has returned, or does nothing. */
static void log_batch_ends(struct log_state *state, struct bide_log_batch_ *batch)
{
    if (batch == NULL)
        return;
    bide_log_batch_free_(batch);
    log_notify(state, LOG_ROOM);
    log_notify(state, LOG_NEWS); /* readers of a closed handle need not wait for it */
}

/* The status of the publish, when the wait for its batch has ended or was cancelled. */
static int log_publish_end(bide_log_operation *self, int status)
{
    struct log_state *state = self->log->state;
    struct bide_log_batch_ *batch = self->commit.batch;
    self->commit.batch = NULL;
    log_lock(state);
    if (batch->is_done) {
        status = batch->status;
        self->uncertain = batch->is_uncertain;
    } else {
        self->uncertain = batch->is_taken || batch->members > 1;
        if (self->uncertain) { /* 4: the messages stay in the batch, and so does their room */
            batch->left += self->claimed;
            state->left += self->claimed;
            self->log->claims -= self->claimed;
            self->claimed = 0;
        }
    }
    for (uint32_t i = 0; status == 0 && i < self->wanted; i++)
        self->messages[i].published =
            (bide_log_position){.low_ = batch->first + self->commit.first + i};
    batch = bide_log_batch_leave_(state, batch);
    log_unlock(state);
    log_batch_ends(state, batch);
    self->count = status == 0 ? self->wanted : 0;
    return status;
}

/* Returns what a publish has. */
static void log_publish_leave(bide_log_operation *self)
{
    if (self->commit.batch != NULL)
        (void)log_publish_end(self, -ECANCELED);
    uint32_t claimed = self->claimed;
    self->claimed = 0;
    log_unclaim(self->log, claimed);
}

bide_coroutine(log_publish_body)
{
    bide_begin(log_publish_body, bide_log_operation * self);
    int status =
        self->wanted == 0 || self->wanted > self->log->window ? -EINVAL : log_check_messages(self);
    if (status < 0)
        bide_return(status);
    bide_try(bide_mutex_lock(&self->turn, &self->log->turn));
    self->has_turn = true;
    for (;;) {
        bide_awaiter *freed = bide_notify_wait(&self->notified, &self->log->state->room); /* 2 */
        if (log_try_claim(self, &status))
            break;
        bide_try(freed);
    }
    if (status == 0)
        status = log_publish_begin(self);
    self->has_turn = false;
    bide_mutex_unlock(&self->turn); /* the next may join the same batch */
    if (self->commit.batch != NULL) {
        bide_await_status(status, log_commit(self));
        status = log_publish_end(self, status);
    }
    bide_return(status);
    bide_finally();
    log_publish_leave(self);
    if (self->has_turn)
        bide_mutex_unlock(&self->turn);
    bide_end();
}

static bide_log_operation *log_operation_init(bide_log_operation *operation, bide_log *log)
{
    operation->log = log;
    operation->count = 0;
    operation->claimed = 0;
    operation->has_turn = false;
    operation->uncertain = false;
    operation->is_fetching = false;
    operation->commit.batch = NULL;
    return operation;
}

bide_awaiter *bide_log_publish(bide_log_operation *operation, bide_log *log,
                               bide_log_message *messages, uint32_t count)
{
    log_operation_init(operation, log);
    operation->messages = messages;
    operation->wanted = count;
    return bide_task_init(&operation->task, &log_publish_body);
}

static void log_reserve_release(bide_frame *frame)
{
    bide_log_claim_release(bide_container_of(frame, bide_log_operation, task.frame)->claim);
}

static const bide_coroutine_type log_reserve_type = {.name = "task",
                                                     .release = log_reserve_release};

bide_coroutine_of(log_reserve_type, log_reserve_body)
{
    bide_begin(log_reserve_body, bide_log_operation * self);
    int status;
    if (self->wanted == 0 || self->wanted > self->log->window)
        bide_return(-EINVAL);
    bide_try(bide_mutex_lock(&self->turn, &self->log->turn));
    self->has_turn = true;
    for (;;) {
        bide_awaiter *freed = bide_notify_wait(&self->notified, &self->log->state->room); /* 2 */
        if (log_try_claim(self, &status))
            break;
        bide_try(freed);
    }
    self->claim->count = self->claimed;
    bide_return(status);
    bide_finally();
    if (self->has_turn)
        bide_mutex_unlock(&self->turn);
    bide_end();
}

bide_awaiter *bide_log_reserve(bide_log_operation *operation, bide_log *log, uint32_t count,
                               bide_log_claim *claim)
{
    *claim = (bide_log_claim){log, 0};
    log_operation_init(operation, log);
    operation->wanted = count;
    operation->claim = claim;
    return bide_task_init(&operation->task, &log_reserve_body);
}

bide_coroutine(log_publish_claimed_body)
{
    bide_begin(log_publish_claimed_body, bide_log_operation * self);
    int status =
        self->wanted == 0 || self->wanted > self->claim->count ? -EINVAL : log_check_messages(self);
    if (status < 0)
        bide_return(status);
    self->claimed = self->wanted;
    self->claim->count -= self->wanted;
    status = log_publish_begin(self);
    if (self->commit.batch != NULL) {
        bide_await_status(status, log_commit(self));
        status = log_publish_end(self, status);
    }
    if (status < 0) { /* the claim keeps its room */
        self->claim->count += self->claimed;
        self->claimed = 0;
    }
    bide_return(status);
    bide_finally();
    log_publish_leave(self);
    bide_end();
}

bide_awaiter *bide_log_publish_claimed(bide_log_operation *operation, bide_log_claim *claim,
                                       bide_log_message *messages, uint32_t count)
{
    log_operation_init(operation, claim->log);
    operation->messages = messages;
    operation->wanted = count;
    operation->claim = claim;
    return bide_task_init(&operation->task, &log_publish_claimed_body);
}

void bide_log_claim_release(bide_log_claim *claim)
{
    uint32_t count = claim->count;
    claim->count = 0;
    log_unclaim(claim->log, count);
}

/* ---- Consumers ---- */

/* Where a new group begins: the number of the message before it. Under the lock. */
static uint64_t log_begin_of(bide_log *log, const bide_log_consumer_options *options)
{
    struct log_state *state = log->state;
    uint64_t oldest = log_state_oldest(state), begin = oldest;
    if (options->from == BIDE_LOG_FROM_END)
        begin = state->tail + 1;
    else if (options->from == BIDE_LOG_FROM_POSITION && options->position.high_ != 0)
        begin = state->tail + 1;
    else if (options->from == BIDE_LOG_FROM_POSITION && options->position.low_ < state->tail)
        begin = options->position.low_ + 1;
    else if (options->from == BIDE_LOG_FROM_POSITION)
        begin = state->tail + 1;
    else if (options->from == BIDE_LOG_FROM_TIME) {
        uint64_t end = state->tail + 1; /* times do not decrease */
        while (begin < end) {
            uint64_t middle = begin + (end - begin) / 2;
            if (log->engine->time_of(log, middle) < options->time)
                begin = middle + 1;
            else
                end = middle;
        }
    }
    return (begin > oldest ? begin : oldest) - 1;
}

static bool log_consumer_options_are_valid(const bide_log_consumer_options *options)
{
    size_t length = options->group != NULL ? strlen(options->group) : 1;
    return length - 1 < LOG_GROUP_NAME - 1 && options->from >= BIDE_LOG_FROM_BEGINNING &&
           options->from <= BIDE_LOG_FROM_TIME;
}

/* The group is stored by the next commit, for which the operation waits. Under the lock. */
static int log_group_changes(bide_log_operation *self, struct bide_log_group_ *group)
{
    if (self->log->engine->commit == NULL || group->name[0] == '\0')
        return 0;
    group->is_changed = true;
    return log_batch_join(self, NULL, 0);
}

/* The group may be one that was not stored, or whose storing failed. Under the lock. */
static bool log_group_is_unstored(const bide_log *log, const struct bide_log_group_ *group)
{
    const struct log_state *state = log->state;
    return log->engine->commit != NULL && group->name[0] != '\0' &&
           (group->is_changed || state->groups_are_removed || state->is_flushing);
}

/* The wait for that has ended: its status, or else `status`. */
static int log_group_changed(bide_log_operation *self, int waited, int status)
{
    struct log_state *state = self->log->state;
    struct bide_log_batch_ *batch = self->commit.batch;
    self->commit.batch = NULL;
    log_lock(state);
    int stored = batch->is_done ? batch->groups_status : waited;
    batch = bide_log_batch_leave_(state, batch);
    log_unlock(state);
    log_batch_ends(state, batch);
    return stored < 0 ? stored : status;
}

/* 1: the engine has to find a time for it first. */
static int log_subscribe(bide_log_operation *self)
{
    bide_log *log = self->log;
    bide_log_consumer *consumer = self->consumer;
    const bide_log_consumer_options *options = &self->options;
    int status = 0;
    struct log_state *state = log->state;
    if (!log_consumer_options_are_valid(options))
        return -EINVAL;
    const char *name = options->group != NULL ? options->group : "";
    struct bide_log_group_ *created =
        state->sharing == NULL ? bide_log_group_create_(name, log->window, 0, 0) : NULL;
    if (created == NULL && state->sharing == NULL)
        return -ENOMEM;
    log_lock(state);
    struct bide_log_group_ **at =
        options->group != NULL ? log_state_find(state, name) : &state->groups;
    struct bide_log_group_ *group = options->group != NULL ? *at : NULL;
    if (!log->is_closed && group == NULL && state->sharing != NULL)
        status = state->sharing->add_group(state, name, &created);
    if (log->is_closed) {
        status = -EPIPE;
    } else if (status < 0) {
        /* there is no place for it */
    } else if (group == NULL && options->from == BIDE_LOG_FROM_TIME &&
               log->engine->time_of == NULL) {
        status = 1;
    } else {
        if (group == NULL) {
            group = created;
            created = NULL;
            group->acknowledged = log_begin_of(log, options);
            group->next = group->acknowledged + 1;
            group->following = *at;
            *at = group;
            status = log_group_changes(self, group);
        } else if (log_group_is_unstored(log, group)) {
            status = log_batch_join(self, NULL, 0);
        }
        group->members++;
        log->consumers++;
        consumer->group = group;
        consumer->owner = ++state->owners;
    }
    log_unlock(state);
    bide_log_group_destroy_(created);
    return status;
}

static void log_subscribe_release(bide_frame *frame)
{
    bide_log_unsubscribe(bide_container_of(frame, bide_log_operation, task.frame)->consumer);
}

static const bide_coroutine_type log_subscribe_type = {.name = "task",
                                                       .release = log_subscribe_release};

static void log_find_time_call(void *argument)
{
    bide_log_operation *self = argument;
    uint64_t number = 1;
    self->status = self->log->engine->find_time(self->log, self->options.time, &number);
    self->options.from = BIDE_LOG_FROM_POSITION;
    self->options.position = (bide_log_position){.low_ = number - 1};
}

bide_coroutine_of(log_subscribe_type, log_subscribe_body)
{
    bide_begin(log_subscribe_body, bide_log_operation * self);
    int status = log_subscribe(self);
    if (status == 1) {
        status = bide_log_threads_(&self->threads);
        if (status < 0)
            bide_return(status);
        bide_try(bide_blocking_run(&self->call, self->threads, log_find_time_call, self));
        if (self->status < 0)
            bide_return(self->status);
        status = log_subscribe(self); /* options.from is a position now */
    }
    if (self->commit.batch != NULL) {
        bide_await_status(status, log_commit(self));
        status = log_group_changed(self, status, 0);
    }
    if (status < 0)
        bide_log_unsubscribe(self->consumer);
    bide_return(status);
    bide_finally();
    if (self->commit.batch != NULL) {
        (void)log_group_changed(self, -ECANCELED, 0);
        bide_log_unsubscribe(self->consumer);
    }
    bide_end();
}

bide_awaiter *bide_log_subscribe(bide_log_operation *operation, bide_log_consumer *consumer,
                                 bide_log *log, const bide_log_consumer_options *options)
{
    *consumer = (bide_log_consumer){.log = log};
    log_operation_init(operation, log);
    operation->consumer = consumer;
    operation->options = options != NULL ? *options : (bide_log_consumer_options){.group = NULL};
    return bide_task_init(&operation->task, &log_subscribe_body);
}

void bide_log_unsubscribe(bide_log_consumer *consumer)
{
    struct log_state *state = consumer->log->state;
    struct bide_log_group_ *ended = NULL;
    bool was_own = false;
    log_lock(state);
    struct bide_log_group_ *group = consumer->group;
    if (group != NULL) {
        was_own = group->name[0] == '\0';
        consumer->group = NULL;
        consumer->log->consumers--;
        bide_log_group_leave_(group, consumer->owner);
        group->members--;
        if (was_own) {
            struct bide_log_group_ **at = &state->groups;
            while (*at != group)
                at = &(*at)->following;
            ended = log_state_remove(state, at);
        }
    }
    log_unlock(state);
    if (group == NULL)
        return;
    bide_log_group_destroy_(ended);
    log_notify(state, was_own ? LOG_ROOM | LOG_NEWS : LOG_NEWS);
}

/* True if the read has ended, with *status; false: it waits until there are news, or self->due. */
static bool log_try_read(bide_log_operation *self, const bide_context *context, int *status)
{
    bide_log *log = self->log;
    struct log_state *state = log->state;
    log_lock(state);
    struct bide_log_group_ *group = self->consumer->group;
    *status = 0;
    if (group == NULL) {
        *status = -EPIPE;
    } else {
        if (!state->groups_hold)
            bide_log_group_skip_(group, state->oldest);
        uint64_t now = group->rejected != 0 ? bide_now(context) : 0;
        self->count = bide_log_group_take_(group, self->consumer->owner, state->tail, now,
                                           self->messages, self->wanted, &self->due);
        for (uint32_t i = 0; log->engine->load != NULL && i < self->count; i++)
            log->engine->load(log, &self->messages[i]);
        if (self->count == 0 && log->is_closed && log->claims == 0 && state->left == 0 &&
            group->rejected == 0 && group->next > state->tail)
            *status = -EPIPE;
    }
    bool has_ended = *status < 0 || self->count != 0;
    if (!has_ended)
        log_awaits(state, LOG_NEWS);
    log_unlock(state);
    return has_ended;
}

static void log_read_release(bide_frame *frame)
{
    bide_log_operation *self = bide_container_of(frame, bide_log_operation, task.frame);
    struct log_state *state = self->log->state;
    log_lock(state);
    struct bide_log_group_ *group = self->consumer->group;
    for (uint32_t i = 0; group != NULL && i < self->count; i++)
        bide_log_group_release_(group, self->consumer->owner, self->messages[i].position.low_);
    log_unlock(state);
    self->count = 0;
    log_notify(state, LOG_NEWS);
}

static void log_fetch_call(void *argument)
{
    bide_log_operation *self = argument;
    self->status = self->log->engine->fetch(self->log, self->messages, self->count, &self->fetched);
}

/*
 * The messages that were fetched are their deliveries' now; the others are withdrawn. 1: none is
 * left of them, and the read looks again.
 */
static int log_fetched(bide_log_operation *self, int status)
{
    struct log_state *state = self->log->state;
    uint32_t fetched = self->fetched, taken = self->count;
    self->is_fetching = false;
    log_lock(state);
    struct bide_log_group_ *group = self->consumer->group;
    bool is_kept = taken > fetched && self->messages[fetched].position.low_ >= state->oldest;
    for (uint32_t i = 0; i < taken; i++) {
        const bide_log_message *message = &self->messages[i];
        void *memory =
            i < fetched ? (void *)((uintptr_t)message->encoded - message->key_size) : NULL;
        if (group == NULL || (i >= fetched))
            free(memory);
        else if (!bide_log_group_keep_(group, self->consumer->owner, message->position.low_,
                                       memory))
            free(memory);
        if (group != NULL && i >= fetched)
            bide_log_group_release_(group, self->consumer->owner, message->position.low_);
    }
    self->count = group != NULL ? fetched : 0;
    log_unlock(state);
    if (taken != fetched)
        log_notify(state, LOG_NEWS);
    if (group == NULL)
        return -EPIPE;
    if (fetched != 0)
        return 0;
    return status == -ESTALE ? (is_kept ? -ENOENT : 1) : status;
}

static const bide_coroutine_type log_read_type = {.name = "task", .release = log_read_release};

bide_coroutine_of(log_read_type, log_read_body)
{
    bide_begin(log_read_body, bide_log_operation * self);
    int status;
    if (self->wanted == 0)
        bide_return(-EINVAL);
    for (;;) {
        bide_awaiter *news = bide_notify_wait(&self->notified, &self->log->state->news); /* 2 */
        if (log_try_read(self, bide_this_context(), &status)) {
            if (status < 0 || self->log->engine->fetch == NULL)
                bide_return(status);
            self->is_fetching = true;
            self->fetched = 0;
            status = bide_log_threads_(&self->threads);
            if (status == 0)
                bide_await_status(
                    status, bide_blocking_run(&self->call, self->threads, log_fetch_call, self));
            status = log_fetched(self, status < 0 ? status : self->status);
            if (status != 1)
                bide_return(status);
            continue;
        }
        if (self->due == BIDE_FOREVER) {
            bide_try(news);
            continue;
        }
        bide_await_status(status, bide_with_deadline(&self->limited, self->due, news));
        if (status < 0 && !(status == -ETIMEDOUT && bide_with_deadline_passed(&self->limited)))
            bide_return(status);
    }
    bide_finally();
    if (self->is_fetching) { /* 6 */
        (void)log_fetched(self, -ECANCELED);
        log_read_release(&self->task.frame);
    }
    bide_end();
}

bide_awaiter *bide_log_read(bide_log_operation *operation, bide_log_consumer *consumer,
                            bide_log_message *messages, uint32_t max)
{
    log_operation_init(operation, consumer->log);
    operation->consumer = consumer;
    operation->messages = messages;
    operation->wanted = max;
    return bide_task_init(&operation->task, &log_read_body);
}

/* After an acknowledgement: a publish may have room, or a reader of the group a message. */
static void log_notify_acknowledged(struct log_state *state)
{
    if (state->groups_hold)
        log_notify(state, LOG_ROOM);
    else
        log_notify(state, LOG_NEWS);
}

static int log_acknowledge(bide_log_operation *self)
{
    struct log_state *state = self->log->state;
    log_lock(state);
    struct bide_log_group_ *group = self->consumer->group;
    for (uint32_t i = 0; group != NULL && i < self->wanted; i++)
        self->count += bide_log_group_acknowledge_(group, self->consumer->owner,
                                                   self->acknowledged[i].position.low_);
    int joined = self->count != 0 ? log_group_changes(self, group) : 0;
    log_unlock(state);
    log_notify_acknowledged(state);
    return group == NULL                 ? -EINVAL
           : joined < 0                  ? joined
           : self->count == self->wanted ? 0
                                         : -ESTALE;
}

static int log_acknowledge_up_to(bide_log_operation *self);

bide_coroutine(log_acknowledge_body)
{
    bide_begin(log_acknowledge_body, bide_log_operation * self);
    int status = 0;
    self->status = self->acknowledged != NULL ? log_acknowledge(self) : log_acknowledge_up_to(self);
    if (self->commit.batch != NULL) {
        bide_await_status(status, log_commit(self));
        self->status = log_group_changed(self, status, self->status);
    }
    bide_return(self->status);
    bide_finally();
    if (self->commit.batch != NULL)
        (void)log_group_changed(self, -ECANCELED, 0);
    bide_end();
}

static const bide_log_message log_no_message;

bide_awaiter *bide_log_acknowledge(bide_log_operation *operation, bide_log_consumer *consumer,
                                   const bide_log_message *messages, uint32_t count)
{
    log_operation_init(operation, consumer->log);
    operation->consumer = consumer;
    operation->acknowledged = messages != NULL ? messages : &log_no_message;
    operation->wanted = messages != NULL ? count : 0;
    return bide_task_init(&operation->task, &log_acknowledge_body);
}

static int log_acknowledge_up_to(bide_log_operation *self)
{
    struct log_state *state = self->log->state;
    log_lock(state);
    struct bide_log_group_ *group = self->consumer->group;
    if (group != NULL)
        self->count = bide_log_group_acknowledge_up_to_(
            group, self->consumer->owner,
            self->position.high_ == 0 ? self->position.low_ : UINT64_MAX);
    int joined = self->count != 0 ? log_group_changes(self, group) : 0;
    log_unlock(state);
    log_notify_acknowledged(state);
    return group == NULL ? -EINVAL : joined;
}

bide_awaiter *bide_log_acknowledge_up_to(bide_log_operation *operation, bide_log_consumer *consumer,
                                         bide_log_position position)
{
    log_operation_init(operation, consumer->log);
    operation->consumer = consumer;
    operation->acknowledged = NULL;
    operation->position = position;
    return bide_task_init(&operation->task, &log_acknowledge_body);
}

static int log_reject(bide_log_operation *self, uint64_t now)
{
    struct log_state *state = self->log->state;
    uint64_t due = self->delay < BIDE_FOREVER - now ? now + self->delay : BIDE_FOREVER - 1;
    log_lock(state);
    struct bide_log_group_ *group = self->consumer->group;
    for (uint32_t i = 0; group != NULL && i < self->wanted; i++)
        self->count += bide_log_group_reject_(group, self->consumer->owner,
                                              self->acknowledged[i].position.low_, due);
    log_unlock(state);
    log_notify(state, LOG_NEWS);
    return group == NULL ? -EINVAL : self->count == self->wanted ? 0 : -ESTALE;
}

bide_coroutine(log_reject_body)
{
    bide_begin(log_reject_body, bide_log_operation * self);
    bide_return(log_reject(self, bide_now(bide_this_context())));
    bide_end();
}

bide_awaiter *bide_log_reject(bide_log_operation *operation, bide_log_consumer *consumer,
                              const bide_log_message *messages, uint32_t count, uint64_t delay)
{
    log_operation_init(operation, consumer->log);
    operation->consumer = consumer;
    operation->acknowledged = messages;
    operation->wanted = count;
    operation->delay = delay;
    return bide_task_init(&operation->task, &log_reject_body);
}
