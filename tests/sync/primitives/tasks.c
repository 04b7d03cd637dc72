/* Waits for the end of a task. */
#include "rows.h"

#include "bide/event.h"
#include "bide/handle.h"
#include "bide/shared_task.h"
#include "bide/sync_wait.h"

/* A shared task that ends on command; it runs inline. */
typedef struct told {
    bide_shared_task shared;
    bide_event end;
    bide_event_waiter wait;
} told;

bide_shared_coroutine(told_body)
{
    bide_begin(told_body, told * self);
    bide_await(bide_event_wait(&self->wait, &self->end));
    bide_end();
}

static void shared_init(void *object)
{
    PRIMITIVE_OBJECT(told, told);
    bide_event_init(&told->end, false);
    bide_shared_task_init(&told->shared, &told_body, &bide_default_context);
}

static bide_awaiter *shared_begin(void *waiter, void *object)
{
    return bide_shared_task_wait(waiter, &((told *)object)->shared);
}

static void shared_wake(void *object)
{
    PRIMITIVE_OBJECT(told, told);
    bide_event_set(&told->end);
    if (bide_atomic_load(&told->shared.started, relaxed) == 0) {
        bide_shared_task_waiter waiter;
        bide_sync_wait(bide_shared_task_wait(&waiter, &told->shared));
    }
}

static bool shared_is_idle(void *object)
{
    return bide_waiter_list_word_is_idle(
        bide_atomic_load(&((told *)object)->shared.waiters.word, relaxed));
}

static void shared_destroy(void *object)
{
    bide_destroy(&((told *)object)->shared.frame);
}

const primitive primitive_shared_task = {
    .name = "shared task",
    .object_size = sizeof(told),
    .waiter_size = sizeof(bide_shared_task_waiter),
    .traits = IN_ORDER | HANDED,
    .init = shared_init,
    .begin = shared_begin,
    .wake = shared_wake,
    .is_idle = shared_is_idle,
    .destroy = shared_destroy,
};
