/*
 * Rows of what is taken from a scope, a token bucket and a recursive generator. In each a token that is lost, or had
 * twice, is counted at the end.
 */
#include "taking.h"

#include "composition.h"

#include "bide/recursive_generator.h"
#include "bide/token_bucket.h"

#include <stdlib.h>

/* ---- The next one of a scope that has ended: its branch waits for an event ---- */

typedef struct collecting {
    bide_event event;
    bide_scope scope;
    bide_task owner; /* it never runs */
    bide_branch branch;
    bide_event_waiter wait;
} collecting;

struct collecting_waiter {
    bide_scope_next_operation next;
    bide_branch *branch;
};

bide_coroutine(owner_body)
{
    bide_begin(owner_body, bide_task * self);
    (void)self;
    bide_end();
}

static void collecting_spawn(collecting *self)
{
    bide_scope_spawn(&self->scope, &self->branch, bide_event_wait(&self->wait, &self->event));
}

static void collecting_init(void *object)
{
    PRIMITIVE_OBJECT(collecting, self);
    static const bide_scope_options options = {.collects = true};
    bide_event_init(&self->event, false);
    bide_start(&self->owner.frame, &owner_body, &bide_default_context);
    bide_scope_init_with(&self->scope, &self->owner.frame, &options);
    collecting_spawn(self);
}

static bide_awaiter *scope_next_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(struct collecting_waiter, self);
    return bide_scope_next(&self->next, &((collecting *)object)->scope, &self->branch);
}

static void collecting_wake(void *object)
{
    bide_event_set(&((collecting *)object)->event);
}

/* (the event is set: the branch ends at once) */
static void collecting_hand_on(void *object, void *waiter)
{
    PRIMITIVE_OBJECT(collecting, self);
    if (((struct collecting_waiter *)waiter)->branch != &self->branch || self->branch.status != 0)
        abort();
    collecting_spawn(self);
}

static bool collecting_is_idle(void *object)
{
    return ((collecting *)object)->scope.waits == NULL;
}

static unsigned collecting_tokens(void *object)
{
    const bide_scope *scope = &((collecting *)object)->scope;
    unsigned count = 0;
    for (bide_awaiter *at = scope->finished.first; at != NULL; at = at->link)
        count++;
    return count == scope->uncollected ? count : 1000;
}

static void collecting_destroy(void *object)
{
    PRIMITIVE_OBJECT(collecting, self);
    bide_scope_destroy(&self->scope);
    bide_destroy(&self->owner.frame);
    bide_event_destroy(&self->event);
}

const primitive scope_next_row = {
    .name = "the next of a scope",
    .object_size = sizeof(collecting),
    .waiter_size = sizeof(struct collecting_waiter),
    .max_waiting = 1,
    .init = collecting_init,
    .begin = scope_next_begin,
    .wake = collecting_wake,
    .hand_on = collecting_hand_on,
    .is_idle = collecting_is_idle,
    .free_tokens = collecting_tokens,
    .destroy = collecting_destroy,
};

/* ---- A token bucket: the turn is waited for; there are tokens ---- */

enum { TOKENS = 3, BURST = 5 /* more, so that none are cut off */ };

typedef struct bucket {
    bide_token_bucket bucket;
    bide_mutex_waiter key; /* of the turn, until the wake */
    bool is_held;
} bucket;

static void bucket_make(bucket *self, uint64_t period, uint64_t level)
{
    if (bide_token_bucket_init(&self->bucket, 1, period, BURST) != 0)
        abort();
    self->bucket.level = level;
    self->is_held = false;
}

static void bucket_turn_init(void *object)
{
    PRIMITIVE_OBJECT(bucket, self);
    bucket_make(self, UINT64_MAX, TOKENS);
    self->is_held = bide_mutex_try_lock(&self->key, &self->bucket.turn);
}

static bide_awaiter *bucket_begin(void *waiter, void *object)
{
    return bide_token_bucket_take(waiter, &((bucket *)object)->bucket, 1);
}

static void bucket_turn_wake(void *object)
{
    PRIMITIVE_OBJECT(bucket, self);
    self->is_held = false;
    bide_mutex_unlock(&self->key);
}

static void bucket_hand_on(void *object, void *waiter)
{
    (void)waiter;
    ((bucket *)object)->bucket.level++;
}

static void bucket_close(void *object)
{
    bide_token_bucket_close(&((bucket *)object)->bucket);
}

static bool bucket_is_idle(void *object)
{
    bide_mutex_waiter key;
    PRIMITIVE_OBJECT(bucket, self);
    if (self->is_held)
        return bide_waiter_queue_is_idle(&self->bucket.turn.queue);
    if (!bide_mutex_try_lock(&key, &self->bucket.turn))
        return false;
    bide_mutex_unlock(&key);
    return true;
}

static unsigned bucket_turn_tokens(void *object)
{
    return (unsigned)(((bucket *)object)->bucket.level - TOKENS + 1);
}

static void bucket_destroy(void *object)
{
    PRIMITIVE_OBJECT(bucket, self);
    if (self->is_held)
        bide_mutex_unlock(&self->key);
    bide_token_bucket_destroy(&self->bucket);
}

const primitive bucket_turn_row = {
    .name = "token bucket, for its turn",
    .object_size = sizeof(bucket),
    .waiter_size = sizeof(bide_token_take_operation),
    .init = bucket_turn_init,
    .begin = bucket_begin,
    .wake = bucket_turn_wake,
    .hand_on = bucket_hand_on,
    .close = bucket_close,
    .is_idle = bucket_is_idle,
    .free_tokens = bucket_turn_tokens,
    .destroy = bucket_destroy,
};

/* ---- A token bucket that is empty: the next token comes late ---- */

static void bucket_time_init(void *object)
{
    bucket_make(object, LATE, 0);
}

static void bucket_time_wake(void *object)
{
    (void)object;
    places_let_time_be(LATE);
}

static unsigned bucket_time_tokens(void *object)
{
    bide_context context = {.scheduler = row_target};
    return (unsigned)bide_token_bucket_available(&((bucket *)object)->bucket, &context);
}

const primitive bucket_time_row = {
    .name = "token bucket",
    .object_size = sizeof(bucket),
    .waiter_size = sizeof(bide_token_take_operation),
    .init = bucket_time_init,
    .begin = bucket_begin,
    .wake = bucket_time_wake,
    .hand_on = bucket_hand_on,
    .is_idle = bucket_is_idle,
    .free_tokens = bucket_time_tokens,
    .destroy = bucket_destroy,
};

/* ---- A recursive generator, at a yield of the innermost, while its user waits for an event ---- */

typedef struct walked {
    bide_event event;
    bide_atomic(uint32_t) opened; /* each generator, when it begins */
    bide_atomic(uint32_t) closed; /* ... and in its `finally` */
} walked;

enum { NESTED = 3 };

struct walk {
    bide_recursive_generator generator;
    walked *walked;
    unsigned depth;
};

static struct walk *walk_create(walked *walked, unsigned depth);

bide_recursive_generator_coroutine(walk_body)
{
    bide_begin(walk_body, struct walk * self);
    bide_atomic_fetch_add(&self->walked->opened, 1, relaxed);
    if (self->depth != 0)
        bide_yield_from_owned(walk_create(self->walked, self->depth - 1), &walk_body);
    bide_yield(self);
    bide_finally();
    bide_atomic_fetch_add(&self->walked->closed, 1, relaxed);
    bide_end();
}

static struct walk *walk_create(walked *walked, unsigned depth)
{
    struct walk *self = bide_create(sizeof *self, &walk_body, &counting_allocator);
    if (self == NULL)
        abort();
    self->walked = walked;
    self->depth = depth;
    return self;
}

struct walking {
    bide_task task;
    struct walk walk;
    bide_event_waiter wait;
    unsigned values;
    int status;
};

bide_coroutine(walking_body)
{
    bide_begin(walking_body, struct walking * self);
    bide_recursive_generator_init(&self->walk.generator, &walk_body);
    while (bide_recursive_generator_next(&self->walk.generator) != NULL) {
        self->values++;
        bide_await_status(self->status, bide_event_wait(&self->wait, &self->walk.walked->event));
        if (self->status != 0)
            bide_return(self->status);
    }
    if (self->values != NESTED + 1)
        bide_return(-EPROTO);
    bide_finally();
    bide_recursive_generator_destroy(&self->walk.generator);
    bide_end();
}

static void walked_init(void *object)
{
    PRIMITIVE_OBJECT(walked, self);
    bide_event_init(&self->event, false);
    bide_atomic_init(&self->opened, 0);
    bide_atomic_init(&self->closed, 0);
}

static bide_awaiter *walking_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(struct walking, self);
    self->walk.walked = object;
    self->walk.depth = NESTED;
    self->values = 0;
    return bide_task_init(&self->task, &walking_body);
}

static void walked_wake(void *object)
{
    bide_event_set(&((walked *)object)->event);
}

static void walked_close(void *object)
{
    bide_event_close(&((walked *)object)->event);
}

static bool walked_is_idle(void *object)
{
    return bide_waiter_list_word_is_idle(
        bide_atomic_load(&((walked *)object)->event.waiters.word, relaxed));
}

/* Each `finally` has run, once. */
static void walked_destroy(void *object)
{
    PRIMITIVE_OBJECT(walked, self);
    if (bide_atomic_load(&self->opened, relaxed) != bide_atomic_load(&self->closed, relaxed))
        abort();
    bide_event_destroy(&self->event);
}

const primitive recursive_generator_row = {
    .name = "a recursive generator at a yield",
    .object_size = sizeof(walked),
    .waiter_size = sizeof(struct walking),
    .init = walked_init,
    .begin = walking_begin,
    .wake = walked_wake,
    .close = walked_close,
    .is_idle = walked_is_idle,
    .destroy = walked_destroy,
};
