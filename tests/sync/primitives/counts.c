/* Auto-reset events, notify, and counters: latches, wait groups, cyclic barriers. */
#include "rows.h"

#include "bide/auto_event.h"
#include "bide/cyclic_barrier.h"
#include "bide/latch.h"
#include "bide/notify.h"
#include "bide/task.h"
#include "bide/wait_group.h"

/* ---- An auto-reset event ---- */

static void auto_init(void *object)
{
    bide_auto_event_init(object, false);
}

static bide_awaiter *auto_begin(void *waiter, void *object)
{
    return bide_auto_event_wait(waiter, object);
}

static int auto_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_auto_event_wait_blocking(object, deadline);
}

static void auto_wake(void *object)
{
    bide_auto_event_set(object);
}

static void auto_hand_on(void *object, void *waiter)
{
    (void)waiter;
    bide_auto_event_set(object);
}

static void auto_close(void *object)
{
    bide_auto_event_close(object);
}

static bool auto_is_idle(void *object)
{
    return bide_waiter_queue_is_idle(&((bide_auto_event *)object)->notify.queue);
}

static unsigned auto_free_tokens(void *object)
{
    return bide_auto_event_try_wait(object);
}

static void auto_destroy(void *object)
{
    bide_auto_event_destroy((bide_auto_event *)object);
}

const primitive primitive_auto_event = {
    .name = "auto-reset event",
    .object_size = sizeof(bide_auto_event),
    .waiter_size = sizeof(bide_auto_event_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .tokens = 1,
    .init = auto_init,
    .begin = auto_begin,
    .wait_blocking = auto_blocking,
    .wake = auto_wake,
    .hand_on = auto_hand_on,
    .close = auto_close,
    .is_idle = auto_is_idle,
    .free_tokens = auto_free_tokens,
    .destroy = auto_destroy,
};

/* ---- Notifying one ---- */

static void one_init(void *object)
{
    bide_notify_init(object);
}

static bide_awaiter *one_begin(void *waiter, void *object)
{
    return bide_notify_wait(waiter, object);
}

static int one_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_notify_wait_blocking(object, deadline);
}

static void one_wake(void *object)
{
    bide_notify_one(object);
}

static void one_hand_on(void *object, void *waiter)
{
    (void)waiter;
    bide_notify_one(object);
}

static void one_close(void *object)
{
    bide_notify_close(object);
}

static bool one_is_idle(void *object)
{
    return bide_waiter_queue_is_idle(&((bide_notify *)object)->queue);
}

static unsigned one_free_tokens(void *object)
{
    return bide_notify_try_wait(object);
}

static void one_destroy(void *object)
{
    bide_notify_destroy((bide_notify *)object);
}

const primitive primitive_notify_one = {
    .name = "notify, one",
    .object_size = sizeof(bide_notify),
    .waiter_size = sizeof(bide_notify_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .tokens = 1,
    .init = one_init,
    .begin = one_begin,
    .wait_blocking = one_blocking,
    .wake = one_wake,
    .hand_on = one_hand_on,
    .close = one_close,
    .is_idle = one_is_idle,
    .free_tokens = one_free_tokens,
    .destroy = one_destroy,
};

/* ---- Notifying all of a value beside it: a waiter begins, and then looks ---- */

typedef struct noticed {
    bide_notify notify;
    bide_atomic(uint32_t) is_set;
} noticed;

typedef struct noticed_wait {
    bide_task task;
    noticed *noticed;
    bide_notify_waiter wait;
    int status;
} noticed_wait;

static bool begin_and_look(noticed_wait *self)
{
    bide_await_later(bide_notify_wait(&self->wait, &self->noticed->notify));
    return bide_atomic_load(&self->noticed->is_set, acquire) != 0; /* partner is all_wake */
}

bide_coroutine(noticed_body)
{
    bide_begin(noticed_body, noticed_wait * self);
    while (self->status == 0 && !begin_and_look(self))
        bide_await_status(self->status, &self->wait.waiter.awaiter);
    bide_return(self->status);
    bide_end();
}

static void all_init(void *object)
{
    PRIMITIVE_OBJECT(noticed, noticed);
    bide_notify_init(&noticed->notify);
    bide_atomic_init(&noticed->is_set, 0);
}

static bide_awaiter *all_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(noticed_wait, wait);
    wait->noticed = object;
    wait->status = 0;
    return bide_task_init(&wait->task, &noticed_body);
}

static void all_wake(void *object)
{
    PRIMITIVE_OBJECT(noticed, noticed);
    bide_atomic_store(&noticed->is_set, 1, release); /* partner is begin_and_look */
    bide_notify_all(&noticed->notify);
}

const primitive primitive_notify_all = {
    .name = "notify, all",
    .object_size = sizeof(noticed),
    .waiter_size = sizeof(noticed_wait),
    .traits = IN_ORDER | HANDED | STAYS_HAD | AWAITS_NOTHING,
    .init = all_init,
    .begin = all_begin,
    .wake = all_wake,
    .close = one_close,
    .is_idle = one_is_idle,
    .destroy = one_destroy,
};

/* ---- A latch of two ---- */

static void latch_init(void *object)
{
    bide_latch_init(object, 2);
}

static bide_awaiter *latch_begin(void *waiter, void *object)
{
    return bide_latch_wait(waiter, object);
}

static int latch_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_latch_wait_blocking(object, deadline);
}

static void latch_wake(void *object)
{
    PRIMITIVE_OBJECT(bide_latch, latch);
    bide_latch_count_down(latch);
    bide_latch_count_down(latch);
}

static void latch_close(void *object)
{
    bide_latch_close(object);
}

static bool latch_is_idle(void *object)
{
    return bide_waiter_list_word_is_idle(
        bide_atomic_load(&((bide_latch *)object)->zero.waiters.word, relaxed));
}

static void latch_destroy(void *object)
{
    PRIMITIVE_OBJECT(bide_latch, latch);
    bide_latch_destroy(latch);
}

const primitive primitive_latch = {
    .name = "latch",
    .object_size = sizeof(bide_latch),
    .waiter_size = sizeof(bide_latch_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = latch_init,
    .begin = latch_begin,
    .wait_blocking = latch_blocking,
    .wake = latch_wake,
    .close = latch_close,
    .is_idle = latch_is_idle,
    .destroy = latch_destroy,
};

/* ---- A wait group of two ---- */

static void group_init(void *object)
{
    PRIMITIVE_OBJECT(bide_wait_group, group);
    bide_wait_group_init(group);
    bide_wait_group_add(group, 2);
}

static bide_awaiter *group_begin(void *waiter, void *object)
{
    return bide_wait_group_wait(waiter, object);
}

static int group_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_wait_group_wait_blocking(object, deadline);
}

static void group_wake(void *object)
{
    PRIMITIVE_OBJECT(bide_wait_group, group);
    bide_wait_group_done(group);
    bide_wait_group_done(group);
}

static void group_close(void *object)
{
    bide_wait_group_close(object);
}

static bool group_is_idle(void *object)
{
    return bide_waiter_queue_is_idle(&((bide_wait_group *)object)->queue);
}

static void group_destroy(void *object)
{
    PRIMITIVE_OBJECT(bide_wait_group, group);
    bide_wait_group_destroy(group);
}

const primitive primitive_wait_group = {
    .name = "wait group",
    .object_size = sizeof(bide_wait_group),
    .waiter_size = sizeof(bide_wait_group_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = group_init,
    .begin = group_begin,
    .wait_blocking = group_blocking,
    .wake = group_wake,
    .close = group_close,
    .is_idle = group_is_idle,
    .destroy = group_destroy,
};

/*
 * ---- A barrier of two parties, one of which has arrived: the wait is for the end of its phase ----
 */

typedef struct phase {
    bide_cyclic_barrier barrier;
    bide_cyclic_barrier_token token;
} phase;

static void phase_init(void *object)
{
    PRIMITIVE_OBJECT(phase, phase);
    bide_cyclic_barrier_init(&phase->barrier, 2);
    phase->token = bide_cyclic_barrier_arrive(&phase->barrier);
}

static bide_awaiter *phase_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(phase, phase);
    return bide_cyclic_barrier_wait(waiter, &phase->barrier, phase->token);
}

static int phase_blocking(void *waiter, void *object, uint64_t deadline)
{
    PRIMITIVE_OBJECT(phase, phase);
    (void)waiter;
    return bide_cyclic_barrier_wait_blocking(&phase->barrier, phase->token, deadline);
}

static void phase_wake(void *object)
{
    bide_cyclic_barrier_arrive(&((phase *)object)->barrier);
}

static void phase_close(void *object)
{
    bide_cyclic_barrier_close(&((phase *)object)->barrier);
}

static bool phase_is_idle(void *object)
{
    return bide_waiter_queue_is_idle(&((phase *)object)->barrier.queue);
}

static void phase_destroy(void *object)
{
    PRIMITIVE_OBJECT(phase, phase);
    bide_cyclic_barrier_destroy(&phase->barrier);
}

const primitive primitive_cyclic_barrier = {
    .name = "cyclic barrier",
    .object_size = sizeof(phase),
    .waiter_size = sizeof(bide_cyclic_barrier_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = phase_init,
    .begin = phase_begin,
    .wait_blocking = phase_blocking,
    .wake = phase_wake,
    .close = phase_close,
    .is_idle = phase_is_idle,
    .destroy = phase_destroy,
};
