/* Message logs: producers. state.h says why it is correct. */
#include "state.h"

#include "bide/coroutine.h"

#include <errno.h>

/* True if it has ended: with the room, or *status is -EPIPE. */
static bool log_try_claim(bide_log_operation *self, int *status)
{
    struct log_state *state = self->log->state;
    bide_log_lock_(state);
    bool has_room = bide_log_state_has_room_(state, self->wanted);
    *status = self->log->is_closed ? -EPIPE : 0;
    if (*status == 0 && has_room) {
        state->claimed += self->wanted;
        self->log->claims += self->wanted;
        self->claimed = self->wanted;
    }
    if (*status == 0 && !has_room)
        bide_log_await_(state, LOG_ROOM);
    bide_log_unlock_(state);
    return *status < 0 || has_room;
}

static void log_unclaim(bide_log *log, uint32_t count)
{
    if (count == 0)
        return;
    bide_log_lock_(log->state);
    bide_assert(log->claims >= count && log->state->claimed >= count);
    log->state->claimed -= count;
    log->claims -= count;
    bool ends = log->is_closed && log->claims == 0;
    bide_log_unlock_(log->state);
    bide_log_notify_(log->state, LOG_ROOM);
    if (ends) /* its readers need not wait for what the claim might have published */
        bide_log_notify_(log->state, LOG_NEWS);
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
    bide_log_lock_(state);
    bide_assert(self->claimed == self->wanted && state->claimed >= self->claimed);
    self->log->engine->append(self->log, self->messages, self->wanted);
    state->claimed -= self->wanted;
    self->log->claims -= self->wanted;
    bide_log_unlock_(state);
    self->claimed = 0;
    self->count = self->wanted;
    bide_log_notify_(state, LOG_NEWS);
}

/* Publishes what is claimed, or joins a batch with it. */
static int log_publish_begin(bide_log_operation *self)
{
    if (self->log->engine->encode == NULL) {
        log_append(self);
        return 0;
    }
    bide_log_lock_(self->log->state);
    int status = bide_log_batch_join_(self, self->messages, self->wanted);
    bide_log_unlock_(self->log->state);
    bide_log_changed_(self->log->state);
    return status;
}

/* The status of the publish, when the wait for its batch has ended or was cancelled. */
static int log_publish_end(bide_log_operation *self, int status)
{
    struct log_state *state = self->log->state;
    struct bide_log_batch_ *batch = self->commit.batch;
    self->commit.batch = NULL;
    bide_log_lock_(state);
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
            batch->positions != NULL
                ? batch->positions[self->commit.first + i]
                : (bide_log_position){.low_ = batch->first + self->commit.first + i};
    batch = bide_log_batch_leave_(state, batch);
    bide_log_unlock_(state);
    bide_log_batch_end_(state, batch);
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
        bide_await_status(status, bide_log_commit_begin_(self));
        status = log_publish_end(self, status);
    }
    bide_return(status);
    bide_finally();
    log_publish_leave(self);
    if (self->has_turn)
        bide_mutex_unlock(&self->turn);
    bide_end();
}

bide_awaiter *bide_log_publish(bide_log_operation *operation, bide_log *log,
                               bide_log_message *messages, uint32_t count)
{
    bide_log_operation_init_(operation, log);
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
    bide_log_operation_init_(operation, log);
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
        bide_await_status(status, bide_log_commit_begin_(self));
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
    bide_log_operation_init_(operation, claim->log);
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
