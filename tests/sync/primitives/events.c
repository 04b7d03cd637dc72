/* Events. */
#include "rows.h"

#include "bide/event.h"
#include "bide/single_consumer_event.h"

/* ---- bide_event ---- */

static void event_init(void *object)
{
    bide_event_init(object, false);
}

static bide_awaiter *event_begin(void *waiter, void *object)
{
    return bide_event_wait(waiter, object);
}

static int event_wait_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_event_wait_blocking(object, deadline);
}

static void event_wake(void *object)
{
    bide_event_set(object);
}

static void event_close(void *object)
{
    bide_event_close(object);
}

static bool event_is_idle(void *object)
{
    PRIMITIVE_OBJECT(bide_event, event);
    return bide_waiter_list_word_is_idle(bide_atomic_load(&event->waiters.word, relaxed));
}

static void event_destroy(void *object)
{
    bide_event_destroy((bide_event *)object);
}

const primitive primitive_event = {
    .name = "event",
    .object_size = sizeof(bide_event),
    .waiter_size = sizeof(bide_event_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = event_init,
    .begin = event_begin,
    .wait_blocking = event_wait_blocking,
    .wake = event_wake,
    .close = event_close,
    .is_idle = event_is_idle,
    .destroy = event_destroy,
};

/* ---- Those for one waiter ---- */

static void single_init(void *object)
{
    bide_single_consumer_event_init(object, false);
}

static bide_awaiter *single_begin(void *waiter, void *object)
{
    return bide_single_consumer_event_wait(waiter, object);
}

static int single_wait_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_single_consumer_event_wait_blocking(object, deadline);
}

static void single_wake(void *object)
{
    bide_single_consumer_event_set(object);
}

static void single_close(void *object)
{
    bide_single_consumer_event_close(object);
}

/* Of both kinds. */
static bool single_is_idle(void *object)
{
    PRIMITIVE_OBJECT(bide_single_consumer_word_, state);
    return !bide_single_consumer_is_waiter_(bide_atomic_load(&state->word, relaxed));
}

static void single_destroy(void *object)
{
    bide_single_consumer_event_destroy((bide_single_consumer_event *)object);
}

const primitive primitive_single_consumer_event = {
    .name = "single consumer event",
    .object_size = sizeof(bide_single_consumer_event),
    .waiter_size = sizeof(bide_single_consumer_event_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .max_waiting = 1,
    .init = single_init,
    .begin = single_begin,
    .wait_blocking = single_wait_blocking,
    .wake = single_wake,
    .close = single_close,
    .is_idle = single_is_idle,
    .destroy = single_destroy,
};

static void single_auto_init(void *object)
{
    bide_single_consumer_auto_event_init(object, false);
}

static bide_awaiter *single_auto_begin(void *waiter, void *object)
{
    return bide_single_consumer_auto_event_wait(waiter, object);
}

static int single_auto_wait_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_single_consumer_auto_event_wait_blocking(object, deadline);
}

static void single_auto_wake(void *object)
{
    bide_single_consumer_auto_event_set(object);
}

static void single_auto_hand_on(void *object, void *waiter)
{
    (void)waiter;
    bide_single_consumer_auto_event_set(object);
}

static void single_auto_close(void *object)
{
    bide_single_consumer_auto_event_close(object);
}

static unsigned single_auto_free_tokens(void *object)
{
    return bide_single_consumer_auto_event_try_wait(object);
}

static void single_auto_destroy(void *object)
{
    bide_single_consumer_auto_event_destroy((bide_single_consumer_auto_event *)object);
}

const primitive primitive_single_consumer_auto_reset_event = {
    .name = "single consumer auto-reset event",
    .object_size = sizeof(bide_single_consumer_auto_event),
    .waiter_size = sizeof(bide_single_consumer_auto_event_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .tokens = 1,
    .max_waiting = 1,
    .init = single_auto_init,
    .begin = single_auto_begin,
    .wait_blocking = single_auto_wait_blocking,
    .wake = single_auto_wake,
    .hand_on = single_auto_hand_on,
    .close = single_auto_close,
    .is_idle = single_is_idle,
    .free_tokens = single_auto_free_tokens,
    .destroy = single_auto_destroy,
};
