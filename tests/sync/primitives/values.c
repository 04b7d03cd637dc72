/* Channels for one value, and for values that all receivers see. */
#include "rows.h"

#include "bide/broadcast.h"
#include "bide/oneshot.h"
#include "bide/platform.h"
#include "bide/watch.h"

/* ---- A oneshot, whose value may be received again ---- */

typedef bide_oneshot(uint64_t) answered;

typedef struct answered_waiter {
    bide_oneshot_waiter waiter;
    uint64_t value;
} answered_waiter;

static void oneshot_init(void *object)
{
    bide_oneshot_init((answered *)object);
}

static bide_awaiter *oneshot_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(answered, oneshot);
    PRIMITIVE_WAITER(answered_waiter, self);
    oneshot->state.received = false;
    return bide_oneshot_recv(&self->waiter, oneshot, &self->value);
}

static int oneshot_wait_blocking(void *waiter, void *object, uint64_t deadline)
{
    PRIMITIVE_OBJECT(answered, oneshot);
    PRIMITIVE_WAITER(answered_waiter, self);
    oneshot->state.received = false;
    return bide_oneshot_recv_blocking(oneshot, &self->value, deadline);
}

static void oneshot_wake(void *object)
{
    uint64_t value = 1;
    (void)bide_oneshot_send((answered *)object, &value);
}

static void oneshot_close(void *object)
{
    bide_oneshot_close((answered *)object);
}

static bool oneshot_is_idle(void *object)
{
    PRIMITIVE_OBJECT(answered, oneshot);
    return !bide_single_consumer_is_waiter_(
        bide_atomic_load(&oneshot->state.event.state.word, relaxed));
}

static void oneshot_destroy(void *object)
{
    bide_oneshot_destroy((answered *)object);
}

const primitive primitive_oneshot = {
    .name = "oneshot",
    .object_size = sizeof(answered),
    .waiter_size = sizeof(answered_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .max_waiting = 1,
    .init = oneshot_init,
    .begin = oneshot_begin,
    .wait_blocking = oneshot_wait_blocking,
    .wake = oneshot_wake,
    .close = oneshot_close,
    .is_idle = oneshot_is_idle,
    .destroy = oneshot_destroy,
};

/*
 * ---- Broadcast channels: the sending or closing thread is the producer meanwhile, under a lock
 * ----
 */

typedef bide_atomic(uint32_t) producers_lock;

static void lock(producers_lock *word)
{
    while (bide_atomic_exchange(word, 1, acquire) != 0)
        bide_platform.yield();
}

static void unlock(producers_lock *word)
{
    bide_atomic_store(word, 0, release);
}

static bool barrier_is_idle(bide_sequence_barrier *barrier)
{
    return bide_waiter_list_word_is_idle(bide_atomic_load(&barrier->waiters.list.word, relaxed));
}

/* ---- A watch: the wait is for another value than the first ---- */

typedef struct watched {
    bide_watch(uint64_t) watch;
    producers_lock lock;
} watched;

typedef struct watched_waiter {
    bide_watch_waiter waiter;
    bide_watch_receiver(uint64_t) receiver;
    uint64_t value;
} watched_waiter;

static void watch_init(void *object)
{
    PRIMITIVE_OBJECT(watched, watched);
    uint64_t first = 1;
    bide_watch_init(&watched->watch, &first);
    bide_atomic_init(&watched->lock, 0);
}

static void watch_receive(watched_waiter *self, watched *watched)
{
    bide_watch_receiver_init(&self->receiver, &watched->watch);
    self->receiver.receiver.seen = 0;
}

static bide_awaiter *watch_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(watched_waiter, self);
    watch_receive(self, object);
    return bide_watch_recv(&self->waiter, &self->receiver, &self->value);
}

static int watch_wait_blocking(void *waiter, void *object, uint64_t deadline)
{
    PRIMITIVE_WAITER(watched_waiter, self);
    watch_receive(self, object);
    return bide_watch_recv_blocking(&self->receiver, &self->value, deadline);
}

static void watch_wake(void *object)
{
    PRIMITIVE_OBJECT(watched, watched);
    uint64_t second = 2;
    lock(&watched->lock);
    (void)bide_watch_send(&watched->watch, &second);
    unlock(&watched->lock);
}

static void watch_close(void *object)
{
    PRIMITIVE_OBJECT(watched, watched);
    lock(&watched->lock);
    bide_watch_close(&watched->watch);
    unlock(&watched->lock);
}

static bool watch_is_idle(void *object)
{
    return barrier_is_idle(&((watched *)object)->watch.watch.barrier);
}

static void watch_destroy(void *object)
{
    bide_watch_destroy(&((watched *)object)->watch);
}

const primitive primitive_watch = {
    .name = "watch",
    .object_size = sizeof(watched),
    .waiter_size = sizeof(watched_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = watch_init,
    .begin = watch_begin,
    .wait_blocking = watch_wait_blocking,
    .wake = watch_wake,
    .close = watch_close,
    .is_idle = watch_is_idle,
    .destroy = watch_destroy,
};

/* ---- A watch with several senders ---- */

static void shared_watch_init(void *object)
{
    PRIMITIVE_OBJECT(watched, watched);
    uint64_t first = 1;
    bide_watch_init_shared(&watched->watch, &first);
}

static bool make_two(void *value, void *argument)
{
    (void)argument;
    *(uint64_t *)value = 2;
    return true;
}

static void shared_watch_wake(void *object)
{
    PRIMITIVE_OBJECT(watched, watched);
    uint64_t value;
    (void)bide_watch_send_if_modified(&watched->watch, &value, make_two, NULL);
}

static void shared_watch_close(void *object)
{
    bide_watch_close(&((watched *)object)->watch);
}

const primitive primitive_watch_shared = {
    .name = "watch, several senders",
    .object_size = sizeof(watched),
    .waiter_size = sizeof(watched_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = shared_watch_init,
    .begin = watch_begin,
    .wait_blocking = watch_wait_blocking,
    .wake = shared_watch_wake,
    .close = shared_watch_close,
    .is_idle = watch_is_idle,
    .destroy = watch_destroy,
};

/* ---- A wait for a value of some kind: for the second. It has ended when its coroutine has tested ---- */

typedef struct predicate_waiter {
    bide_watch_predicate_waiter waiter;
    bide_watch_receiver(uint64_t) receiver;
    uint64_t value;
} predicate_waiter;

static bool is_second(const void *value, void *argument)
{
    (void)argument;
    return *(const uint64_t *)value == 2;
}

static bide_awaiter *predicate_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(predicate_waiter, self);
    bide_watch_receiver_init(&self->receiver, &((watched *)object)->watch);
    return bide_watch_wait_for(&self->waiter, &self->receiver, is_second, NULL, &self->value);
}

static int predicate_wait_blocking(void *waiter, void *object, uint64_t deadline)
{
    PRIMITIVE_WAITER(predicate_waiter, self);
    bide_watch_receiver_init(&self->receiver, &((watched *)object)->watch);
    return bide_watch_wait_for_blocking(&self->receiver, is_second, NULL, &self->value, deadline);
}

const primitive primitive_watch_predicate = {
    .name = "watch, wait for",
    .object_size = sizeof(watched),
    .waiter_size = sizeof(predicate_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = shared_watch_init,
    .begin = predicate_begin,
    .wait_blocking = predicate_wait_blocking,
    .wake = shared_watch_wake,
    .close = shared_watch_close,
    .is_idle = watch_is_idle,
    .destroy = watch_destroy,
};

/* ---- A broadcast that keeps one element: the wait is for the first ---- */

typedef struct heard {
    bide_broadcast(uint64_t) broadcast;
    bide_broadcast_slot(uint64_t) memory[1];
    bide_broadcast_subscriber(uint64_t) first; /* from the beginning */
    producers_lock lock;
} heard;

typedef struct heard_waiter {
    bide_broadcast_waiter waiter;
    bide_broadcast_subscriber(uint64_t) subscriber;
    uint64_t value;
} heard_waiter;

static void broadcast_init(void *object)
{
    PRIMITIVE_OBJECT(heard, heard);
    bide_broadcast_init(&heard->broadcast, heard->memory, 1);
    bide_broadcast_subscribe(&heard->first, &heard->broadcast);
    bide_atomic_init(&heard->lock, 0);
}

static bide_awaiter *broadcast_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(heard_waiter, self);
    self->subscriber.cursor = ((heard *)object)->first.cursor;
    return bide_broadcast_recv(&self->waiter, &self->subscriber, &self->value);
}

static int broadcast_wait_blocking(void *waiter, void *object, uint64_t deadline)
{
    PRIMITIVE_WAITER(heard_waiter, self);
    self->subscriber.cursor = ((heard *)object)->first.cursor;
    return bide_broadcast_recv_blocking(&self->subscriber, &self->value, deadline);
}

static void broadcast_wake(void *object)
{
    PRIMITIVE_OBJECT(heard, heard);
    uint64_t value = 1;
    lock(&heard->lock);
    (void)bide_broadcast_send(&heard->broadcast, &value);
    unlock(&heard->lock);
}

static void broadcast_close(void *object)
{
    PRIMITIVE_OBJECT(heard, heard);
    lock(&heard->lock);
    bide_broadcast_close(&heard->broadcast);
    unlock(&heard->lock);
}

static bool broadcast_is_idle(void *object)
{
    return barrier_is_idle(&((heard *)object)->broadcast.broadcast.barrier);
}

static void broadcast_destroy(void *object)
{
    bide_broadcast_destroy(&((heard *)object)->broadcast);
}

const primitive primitive_broadcast = {
    .name = "broadcast",
    .object_size = sizeof(heard),
    .waiter_size = sizeof(heard_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = broadcast_init,
    .begin = broadcast_begin,
    .wait_blocking = broadcast_wait_blocking,
    .wake = broadcast_wake,
    .close = broadcast_close,
    .is_idle = broadcast_is_idle,
    .destroy = broadcast_destroy,
};

/* ---- The same with several senders ---- */

static void shared_broadcast_init(void *object)
{
    PRIMITIVE_OBJECT(heard, heard);
    bide_broadcast_init_shared(&heard->broadcast, heard->memory, 1);
    bide_broadcast_subscribe(&heard->first, &heard->broadcast);
}

static void shared_broadcast_wake(void *object)
{
    uint64_t value = 1;
    (void)bide_broadcast_send(&((heard *)object)->broadcast, &value);
}

static void shared_broadcast_close(void *object)
{
    bide_broadcast_close(&((heard *)object)->broadcast);
}

const primitive primitive_broadcast_shared = {
    .name = "broadcast, several senders",
    .object_size = sizeof(heard),
    .waiter_size = sizeof(heard_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = shared_broadcast_init,
    .begin = broadcast_begin,
    .wait_blocking = broadcast_wait_blocking,
    .wake = shared_broadcast_wake,
    .close = shared_broadcast_close,
    .is_idle = broadcast_is_idle,
    .destroy = broadcast_destroy,
};
