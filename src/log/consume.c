/* Message logs: consumers. state.h says why it is correct. */
#include "state.h"

#include "bide/coroutine.h"
#include "bide/sleep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where a new group begins: the number of the message before it. Under the lock. */
static uint64_t log_begin_of(bide_log *log, const bide_log_consumer_options *options)
{
    struct log_state *state = log->state;
    uint64_t oldest = bide_log_state_oldest_(state), begin = oldest;
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

bool bide_log_consumer_options_are_valid_(const bide_log_consumer_options *options)
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
    return bide_log_batch_join_(self, NULL, 0);
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
    bide_log_lock_(state);
    int stored = batch->is_done ? batch->groups_status : waited;
    batch = bide_log_batch_leave_(state, batch);
    bide_log_unlock_(state);
    bide_log_batch_end_(state, batch);
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
    if (!bide_log_consumer_options_are_valid_(options))
        return -EINVAL;
    const char *name = options->group != NULL ? options->group : "";
    struct bide_log_group_ *created =
        state->sharing == NULL ? bide_log_group_create_(name, log->window, 0, 0) : NULL;
    if (created == NULL && state->sharing == NULL)
        return -ENOMEM;
    bide_log_lock_(state);
    struct bide_log_group_ **at =
        options->group != NULL ? bide_log_state_find_(state, name) : &state->groups;
    struct bide_log_group_ *group = options->group != NULL || log->engine->is_single ? *at : NULL;
    if (log->engine->is_single)
        status = log->engine->admit(log, options);
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
            status = bide_log_batch_join_(self, NULL, 0);
        }
        group->members++;
        log->consumers++;
        consumer->group = group;
        consumer->owner = ++state->owners;
    }
    bide_log_unlock_(state);
    bide_log_changed_(state);
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
        bide_await_status(status, bide_log_commit_begin_(self));
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
    bide_log_operation_init_(operation, log);
    operation->consumer = consumer;
    operation->options = options != NULL ? *options : (bide_log_consumer_options){.group = NULL};
    if (log->engine->subscribe != NULL)
        return log->engine->subscribe(operation);
    return bide_task_init(&operation->task, &log_subscribe_body);
}

void bide_log_unsubscribe(bide_log_consumer *consumer)
{
    if (consumer->log->engine->unsubscribe != NULL) {
        consumer->log->engine->unsubscribe(consumer);
        return;
    }
    struct log_state *state = consumer->log->state;
    struct bide_log_group_ *ended = NULL;
    bool was_own = false;
    bide_log_lock_(state);
    struct bide_log_group_ *group = consumer->group;
    if (group != NULL) {
        was_own = group->name[0] == '\0' && !consumer->log->engine->is_single;
        consumer->group = NULL;
        consumer->log->consumers--;
        group->members--;
        if (was_own) {
            struct bide_log_group_ **at = &state->groups;
            while (*at != group)
                at = &(*at)->following;
            ended = bide_log_state_remove_(state, at);
        } else {
            bide_log_group_leave_(group, consumer->owner);
        }
    }
    bide_log_unlock_(state);
    if (group == NULL)
        return;
    bide_log_group_destroy_(ended);
    bide_log_notify_(state, was_own ? LOG_ROOM | LOG_NEWS : LOG_NEWS);
}

/*
 * Completes the messages that were delivered, up to one that is none. The others are withdrawn. If it is
 * the first, it is passed over: -EBADMSG.
 */
static int log_load(bide_log_operation *self, struct bide_log_group_ *group)
{
    bide_log *log = self->log;
    uint64_t owner = self->consumer->owner;
    uint32_t taken = self->count, loaded = 0;
    if (log->engine->load == NULL)
        return 0;
    while (loaded < taken && log->engine->load(log, &self->messages[loaded], self->problem) == 0)
        loaded++;
    for (uint32_t i = loaded != 0 ? loaded : 1; i < taken; i++)
        bide_log_group_release_(group, owner, self->messages[i].position.low_);
    self->count = loaded;
    if (loaded != 0 || taken == 0)
        return 0;
    (void)bide_log_group_acknowledge_(group, owner, self->messages[0].position.low_);
    return -EBADMSG;
}

/* Why there will be no more messages, or 0. Each end but -EPIPE is reported once. Under the lock. */
static int log_take_end(bide_log *log)
{
    struct log_state *state = log->state;
    int ended = state->ended;
    if (ended != 0) {
        if (ended != -EPIPE)
            state->ended = 0;
        return ended;
    }
    bool may_come = !log->engine->is_single && (log->claims != 0 || state->left != 0);
    return log->is_closed && !may_come ? -EPIPE : 0;
}

/* True if the read has ended, with *status; false: it waits until there are news, or self->due. */
static bool log_try_read(bide_log_operation *self, const bide_context *context, int *status)
{
    bide_log *log = self->log;
    struct log_state *state = log->state;
    bide_log_lock_(state);
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
        *status = log_load(self, group);
        if (*status == 0 && self->count == 0 && group->rejected == 0 && group->next > state->tail)
            *status = log_take_end(log);
    }
    bool has_ended = *status < 0 || self->count != 0;
    if (!has_ended)
        bide_log_await_(state, LOG_NEWS);
    bide_log_unlock_(state);
    if (has_ended)
        bide_log_changed_(state);
    return has_ended;
}

static void log_read_release(bide_frame *frame)
{
    bide_log_operation *self = bide_container_of(frame, bide_log_operation, task.frame);
    struct log_state *state = self->log->state;
    bide_log_lock_(state);
    struct bide_log_group_ *group = self->consumer->group;
    for (uint32_t i = 0; group != NULL && i < self->count; i++)
        bide_log_group_release_(group, self->consumer->owner, self->messages[i].position.low_);
    bide_log_unlock_(state);
    self->count = 0;
    bide_log_notify_(state, LOG_NEWS);
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
    bide_log_lock_(state);
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
    bide_log_unlock_(state);
    if (taken != fetched)
        bide_log_notify_(state, LOG_NEWS);
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
    bide_log_operation_init_(operation, consumer->log);
    operation->consumer = consumer;
    operation->messages = messages;
    operation->wanted = max;
    if (consumer->log->engine->read != NULL)
        return consumer->log->engine->read(operation);
    return bide_task_init(&operation->task, &log_read_body);
}

/* After an acknowledgement: a publish may have room, or a reader of the group a message. */
static void log_notify_acknowledged(struct log_state *state)
{
    if (state->groups_hold)
        bide_log_notify_(state, LOG_ROOM);
    else
        bide_log_notify_(state, LOG_NEWS);
}

static int log_acknowledge(bide_log_operation *self)
{
    struct log_state *state = self->log->state;
    bide_log_lock_(state);
    struct bide_log_group_ *group = self->consumer->group;
    for (uint32_t i = 0; group != NULL && i < self->wanted; i++)
        self->count += bide_log_group_acknowledge_(group, self->consumer->owner,
                                                   self->acknowledged[i].position.low_);
    int joined = self->count != 0 ? log_group_changes(self, group) : 0;
    bide_log_unlock_(state);
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
        bide_await_status(status, bide_log_commit_begin_(self));
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
    bide_log_operation_init_(operation, consumer->log);
    operation->consumer = consumer;
    operation->acknowledged = messages != NULL ? messages : &log_no_message;
    operation->wanted = messages != NULL ? count : 0;
    if (consumer->log->engine->acknowledge != NULL)
        return consumer->log->engine->acknowledge(operation);
    return bide_task_init(&operation->task, &log_acknowledge_body);
}

static int log_acknowledge_up_to(bide_log_operation *self)
{
    struct log_state *state = self->log->state;
    bide_log_lock_(state);
    struct bide_log_group_ *group = self->consumer->group;
    if (group != NULL)
        self->count = bide_log_group_acknowledge_up_to_(
            group, self->consumer->owner,
            self->position.high_ == 0 ? self->position.low_ : UINT64_MAX);
    int joined = self->count != 0 ? log_group_changes(self, group) : 0;
    bide_log_unlock_(state);
    log_notify_acknowledged(state);
    return group == NULL ? -EINVAL : joined;
}

bide_awaiter *bide_log_acknowledge_up_to(bide_log_operation *operation, bide_log_consumer *consumer,
                                         bide_log_position position)
{
    bide_log_operation_init_(operation, consumer->log);
    operation->consumer = consumer;
    operation->acknowledged = NULL;
    operation->position = position;
    if (consumer->log->engine->acknowledge != NULL)
        return consumer->log->engine->acknowledge(operation);
    return bide_task_init(&operation->task, &log_acknowledge_body);
}

static int log_reject(bide_log_operation *self, uint64_t now)
{
    struct log_state *state = self->log->state;
    uint64_t due = self->delay < BIDE_FOREVER - now ? now + self->delay : BIDE_FOREVER - 1;
    bide_log_lock_(state);
    struct bide_log_group_ *group = self->consumer->group;
    for (uint32_t i = 0; group != NULL && i < self->wanted; i++)
        self->count += bide_log_group_reject_(group, self->consumer->owner,
                                              self->acknowledged[i].position.low_, due);
    bide_log_unlock_(state);
    bide_log_notify_(state, LOG_NEWS);
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
    bide_log_operation_init_(operation, consumer->log);
    operation->consumer = consumer;
    operation->acknowledged = messages;
    operation->wanted = count;
    operation->delay = delay;
    if (consumer->log->engine->reject != NULL)
        return consumer->log->engine->reject(operation);
    return bide_task_init(&operation->task, &log_reject_body);
}
