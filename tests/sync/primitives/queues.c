/* Primitives that a waiter queue hands from one waiter to the next. */
#include "rows.h"

#include "bide/mutex.h"
#include "bide/semaphore.h"

/* ---- A mutex: the token is to have it locked; at first the object's own waiter has it ---- */

typedef struct locked_mutex {
    bide_mutex mutex;
    bide_mutex_waiter first;
} locked_mutex;

static void mutex_init(void *object)
{
    PRIMITIVE_OBJECT(locked_mutex, locked);
    bide_mutex_init(&locked->mutex);
    if (!bide_mutex_try_lock(&locked->first, &locked->mutex))
        abort();
}

static bide_awaiter *mutex_begin(void *waiter, void *object)
{
    return bide_mutex_lock(waiter, &((locked_mutex *)object)->mutex);
}

static int mutex_blocking(void *waiter, void *object, uint64_t deadline)
{
    return bide_mutex_lock_blocking(waiter, &((locked_mutex *)object)->mutex, deadline);
}

static void mutex_wake(void *object)
{
    bide_mutex_unlock(&((locked_mutex *)object)->first);
}

static void mutex_hand_on(void *object, void *waiter)
{
    (void)object;
    bide_mutex_unlock((bide_mutex_waiter *)waiter);
}

static void mutex_close(void *object)
{
    bide_mutex_close(&((locked_mutex *)object)->mutex);
}

static bool mutex_is_idle(void *object)
{
    return bide_waiter_queue_is_idle(&((locked_mutex *)object)->mutex.queue);
}

static unsigned mutex_free_tokens(void *object)
{
    return bide_mutex_is_locked(&((locked_mutex *)object)->mutex) ? 0 : 1;
}

static void mutex_destroy(void *object)
{
    PRIMITIVE_OBJECT(locked_mutex, locked);
    if (locked->mutex.holder == &locked->first && bide_mutex_is_locked(&locked->mutex))
        bide_mutex_unlock(&locked->first); /* it was never woken */
    bide_mutex_destroy(&locked->mutex);
}

const primitive primitive_mutex = {
    .name = "mutex",
    .object_size = sizeof(locked_mutex),
    .waiter_size = sizeof(bide_mutex_waiter),
    .traits = IN_ORDER | HANDED | HAS_KEY | COUNTS_WHEN_CLOSED,
    .tokens = 1,
    .init = mutex_init,
    .begin = mutex_begin,
    .wait_blocking = mutex_blocking,
    .wake = mutex_wake,
    .hand_on = mutex_hand_on,
    .close = mutex_close,
    .is_idle = mutex_is_idle,
    .free_tokens = mutex_free_tokens,
    .destroy = mutex_destroy,
};

/* ---- A semaphore: a token is a permit, or, in the second row, two ---- */

static void semaphore_init(void *object)
{
    bide_semaphore_init(object, 0);
}

static bide_awaiter *semaphore_begin(void *waiter, void *object)
{
    return bide_semaphore_acquire(waiter, object);
}

static int semaphore_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_semaphore_acquire_blocking(object, 1, deadline);
}

static int two_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_semaphore_acquire_blocking(object, 2, deadline);
}

static bide_awaiter *two_begin(void *waiter, void *object)
{
    return bide_semaphore_acquire_many(waiter, object, 2);
}

static void semaphore_wake(void *object)
{
    bide_semaphore_release(object, 1);
}

static void two_wake(void *object)
{
    bide_semaphore_release(object, 1);
    bide_semaphore_release(object, 1);
}

static void semaphore_hand_on(void *object, void *waiter)
{
    (void)waiter;
    semaphore_wake(object);
}

static void two_hand_on(void *object, void *waiter)
{
    (void)waiter;
    two_wake(object);
}

static void semaphore_close(void *object)
{
    bide_semaphore_close(object);
}

static bool semaphore_is_idle(void *object)
{
    return bide_waiter_queue_is_idle(&((bide_semaphore *)object)->queue);
}

static unsigned semaphore_free_tokens(void *object)
{
    return bide_semaphore_available(object);
}

/* (a single permit would be one too many) */
static unsigned two_free_tokens(void *object)
{
    uint32_t permits = bide_semaphore_available(object);
    return permits % 2 == 0 ? permits / 2 : UINT32_MAX;
}

static void semaphore_destroy(void *object)
{
    bide_semaphore_destroy((bide_semaphore *)object);
}

const primitive primitive_semaphore = {
    .name = "semaphore",
    .object_size = sizeof(bide_semaphore),
    .waiter_size = sizeof(bide_semaphore_waiter),
    .traits = IN_ORDER | HANDED | COUNTS_WHEN_CLOSED,
    .tokens = 3,
    .init = semaphore_init,
    .begin = semaphore_begin,
    .wait_blocking = semaphore_blocking,
    .wake = semaphore_wake,
    .hand_on = semaphore_hand_on,
    .close = semaphore_close,
    .is_idle = semaphore_is_idle,
    .free_tokens = semaphore_free_tokens,
    .destroy = semaphore_destroy,
};

const primitive primitive_semaphore_of_two = {
    .name = "semaphore, two permits at a time",
    .object_size = sizeof(bide_semaphore),
    .waiter_size = sizeof(bide_semaphore_waiter),
    .traits = IN_ORDER | HANDED | COUNTS_WHEN_CLOSED,
    .tokens = 2,
    .init = semaphore_init,
    .begin = two_begin,
    .wait_blocking = two_blocking,
    .wake = two_wake,
    .hand_on = two_hand_on,
    .close = semaphore_close,
    .is_idle = semaphore_is_idle,
    .free_tokens = two_free_tokens,
    .destroy = semaphore_destroy,
};
