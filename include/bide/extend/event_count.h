/*
 * An event count: waiting until a lock-free structure is worth another try, for example until a
 * queue is no longer empty. A thread that changes the structure notifies; while nothing waits that
 * costs no locked instruction. For authors of primitives. Floor: sync.
 *
 *     waiter                                      changer
 *     bide_await_status(status,                   bide_mpmc_ring_push(&ring, &job);
 *         bide_event_count_wait(...));           bide_event_count_notify(&not_empty, 1);
 *
 * An operation on it is two functions of the user's (bide_event_count_ops). `attempt` performs the
 * operation, or returns -EAGAIN. `is_possible` only looks whether it would succeed. The operation
 * attempts; if that fails it waits. A notifier takes a waiting operation, and attempts it on the
 * waiter's behalf. If that succeeds the waiter resumes with the result, otherwise it continues to
 * wait. So no coroutine is woken in vain, and waiting reserves nothing: a cancelled operation has
 * done nothing.
 *
 * An operation that only its own coroutine may attempt is a bide_event_count_own_waiter: that coroutine is woken
 * to attempt it. Waiters are interchangeable: a notification is for any of them.
 *
 * Any thread may wait and notify. Everything is lock-free, except the system's barrier. Waiters are
 * served first come, first served, but a waiter whose attempt failed continues at the end of the
 * line.
 *
 * The states, and why it is correct: docs/internals/event_count.md. Numbers and letters below refer
 * to that.
 */
#ifndef BIDE_EXTEND_EVENT_COUNT_H
#define BIDE_EXTEND_EVENT_COUNT_H

#include "bide/detail/this_thread.h"
#include "bide/errors.h"
#include "bide/extend/fence.h"
#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_event_count {
    bide_atomic(uintptr_t) place;
    bide_atomic(uintptr_t) watch;
    bide_waiter_queue line;
    bide_atomic(uint32_t) unneeded; /* how many notifications in a row found none; a hint */
} bide_event_count;

enum { BIDE_EVENT_COUNT_FREE_ = 0, BIDE_EVENT_COUNT_UNWATCHED_ = 0 };

typedef struct bide_event_count_waiter bide_event_count_waiter;

/* The operation that is tried. Constant. */
typedef struct bide_event_count_ops {
    /*
     * Does it, and returns what the operation ends with; or -EAGAIN, and has done nothing. While
     * the operation waits the notifiers call it, one at a time. Its effects come after all that
     * the operation's coroutine has done. Does not notify.
     */
    int (*attempt)(bide_event_count_waiter *retry);

    /*
     * Would an attempt, now, do anything but say -EAGAIN? True if in doubt. It sees what was done
     * before a fence that another thread has passed. Changes nothing: another thread may attempt it
     * meanwhile.
     */
    bool (*is_possible)(bide_event_count_waiter *retry);

    /* Where an attempt that has ended with 0 makes another possible. NULL: nowhere. */
    bide_event_count *(*then)(bide_event_count_waiter *retry);
} bide_event_count_ops;

/* One operation, at the head of its user's. The caller's memory until the wait has ended. */
struct bide_event_count_waiter {
    bide_queue_waiter waiter; /* at the head: it is the awaiter */
    int status;
    const bide_event_count_ops *rules;
};

/*
 * Makes an event count. The memory may be freed when no operation waits and no call is under way.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_event_count_init(bide_event_count *event_count)
{
    bide_atomic_init(&event_count->place, (uintptr_t)BIDE_EVENT_COUNT_FREE_);
    bide_atomic_init(&event_count->watch, (uintptr_t)BIDE_EVENT_COUNT_UNWATCHED_);
    bide_waiter_queue_init(&event_count->line, 0);
    bide_atomic_init(&event_count->unneeded, 0);
}

/*
 * Does no operation wait? For debug builds' checks, by a caller that knows that it is not used.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_event_count_is_idle(bide_event_count *event_count)
{
    /* relaxed: the caller has seen what was done with it. */
    return bide_atomic_load(&event_count->place, relaxed) == BIDE_EVENT_COUNT_FREE_ &&
           bide_waiter_queue_is_idle(&event_count->line);
}

/* Whether an operation is in line, or on its way out of it, by the line's state. */
BIDE_INLINE bool bide_event_count_is_line_(uintptr_t state)
{
    return (state & (BIDE_QUEUE_WAITING_ | BIDE_QUEUE_SERVING_)) != 0;
}

/* Is an operation in line now? S. */
BIDE_INLINE bool bide_event_count_has_line_(bide_event_count *event_count)
{
    /* relaxed: what comes of it is ordered by the taker. */
    return bide_event_count_is_line_(bide_atomic_load(&event_count->line.state, relaxed));
}

/* Does an operation wait? S. */
BIDE_INLINE bool bide_event_count_has_waiters_(bide_event_count *event_count)
{
    /* relaxed: as above. */
    return bide_atomic_load(&event_count->place, relaxed) != BIDE_EVENT_COUNT_FREE_ ||
           bide_event_count_has_line_(event_count);
}

/*
 * Something was changed: is it to be looked closely for waiters? Then *watch is what was found, for
 * that.
 */
BIDE_INLINE bool bide_event_count_must_poll_(bide_event_count *event_count, uintptr_t *watch)
{
    bide_atomic_fence_light(); /* L; partner: H */
    /* relaxed: D. */
    *watch = bide_atomic_load(&event_count->watch, relaxed);
    return *watch != BIDE_EVENT_COUNT_UNWATCHED_ &&
           (*watch != bide_this_thread_() || bide_event_count_has_waiters_(event_count));
}

/* F and S, having found `watch`. */
void bide_event_count_poll_(bide_event_count *event_count, size_t count, uintptr_t watch);

/* H, F' and W. After a read-modify-write, A. */
void bide_event_count_watch_(bide_event_count *event_count);

/*
 * Says that up to `count` attempts may succeed by now that could not before: the first `count`
 * waiting operations are attempted. To be called after the change. It runs their attempts. A woken
 * coroutine does not run on the caller's stack while a coroutine is running on it.
 * Threads: any. Suspends: never. Progress: lock-free, wait-free while nothing waits.
 */
BIDE_INLINE void bide_event_count_notify(bide_event_count *event_count, size_t count)
{
    uintptr_t watch;
    if (bide_event_count_must_poll_(event_count, &watch))
        bide_event_count_poll_(event_count, count, watch);
}

/*
 * The same for all waiting operations.
 * Threads: any. Suspends: never. Progress: as bide_event_count_notify.
 */
BIDE_INLINE void bide_event_count_notify_all(bide_event_count *event_count)
{
    bide_event_count_notify(event_count, SIZE_MAX);
}

/* The event count that an operation waits on. */
BIDE_INLINE bide_event_count *bide_event_count_of_waiter_(bide_event_count_waiter *retry)
{
    return bide_container_of(retry->waiter.queue, bide_event_count, line);
}

/*
 * Attempts it, and notifies the operation that can go because of that. Returns what it ends with,
 * or -EAGAIN.
 */
BIDE_INLINE int bide_event_count_waiter_attempt_(bide_event_count_waiter *retry)
{
    int status = retry->rules->attempt(retry);
    if (status == 0 && retry->rules->then != NULL)
        bide_event_count_notify(retry->rules->then(retry), 1);
    return status;
}

BIDE_INLINE bool bide_event_count_waiter_ready_(bide_awaiter *awaiter)
{
    bide_event_count_waiter *retry = (bide_event_count_waiter *)(void *)awaiter;
    retry->status = bide_event_count_waiter_attempt_(retry);
    return retry->status != -EAGAIN;
}

bide_frame *bide_event_count_waiter_suspend_(bide_awaiter *awaiter, bide_frame *frame);

BIDE_INLINE int bide_event_count_waiter_resume_(bide_awaiter *awaiter)
{
    return ((bide_event_count_waiter *)(void *)awaiter)->status;
}

void bide_event_count_waiter_cancel_(bide_awaiter *awaiter);
bool bide_event_count_waiter_withdraw_(bide_awaiter *awaiter);

/* As a case of a select: waits to be notified, and is attempted by the select alone. */
int bide_event_count_waiter_choose_(bide_awaiter *awaiter, bide_choice *choice);

/* For a table of one's own operations, with a name and an inlined `ready`, which notifies too. */
#define BIDE_EVENT_COUNT_WAITER_OPS(ready, name)                                        \
    {                                                                                   \
        (ready), bide_event_count_waiter_suspend_, bide_event_count_waiter_resume_,     \
            bide_event_count_waiter_cancel_, bide_event_count_waiter_withdraw_, (name), \
            bide_event_count_waiter_choose_, BIDE_UNDO_NONE                             \
    }

/* Makes an operation with a table of its own; returns its awaiter. */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_event_count_waiter_init_(bide_event_count_waiter *retry,
                                                        const bide_awaiter_ops *ops,
                                                        const bide_event_count_ops *rules,
                                                        bide_event_count *event_count)
{
    retry->waiter.awaiter.ops = ops;
    retry->waiter.queue = &event_count->line;
    retry->rules = rules;
    return &retry->waiter.awaiter;
}

/*
 * Attempts until that says something else than -EAGAIN, and ends with it; in between it waits to be
 * notified. `retry` must stay until the wait has ended, and so must what the rules find the rest
 * by. For a coroutine that is destroyed an attempt may have succeeded just before.
 * Threads: any. Errors: those of the rules' `attempt`; -ECANCELED, -ETIMEDOUT. Suspends: if the
 * attempt fails. Cancel-safe: yes, its last attempt failed. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_event_count_wait(bide_event_count_waiter *retry,
                                                bide_event_count *event_count,
                                                const bide_event_count_ops *rules)
{
    static const bide_awaiter_ops ops =
        BIDE_EVENT_COUNT_WAITER_OPS(bide_event_count_waiter_ready_, "bide_event_count_wait");
    return bide_event_count_waiter_init_(retry, &ops, rules, event_count);
}

/*
 * Takes an operation that waits to be attempted, if there seems to be one. The caller ends it by
 * bide_event_count_waiter_end_ with what was done on its behalf. NULL: none. An operation that
 * waits only for a notification is notified.
 */
bide_event_count_waiter *bide_event_count_take_(bide_event_count *event_count);

BIDE_INLINE void bide_event_count_waiter_end_(bide_event_count_waiter *retry, int status)
{
    retry->status = status;
    bide_wake_one(&retry->waiter.awaiter);
}

/* ---- What only its own coroutine may attempt ---- */

/* One operation, at the head of its user's. The caller's memory until the wait has ended. */
typedef struct bide_event_count_own_waiter {
    bide_awaiter awaiter;
    bide_frame frame;              /* waits in `retry` */
    bide_event_count_waiter retry; /* what the rules are called with */
} bide_event_count_own_waiter;

BIDE_INLINE bool bide_event_count_own_waiter_ready_(bide_awaiter *awaiter)
{
    bide_event_count_own_waiter *own = (bide_event_count_own_waiter *)(void *)awaiter;
    return bide_event_count_waiter_ready_(&own->retry.waiter.awaiter);
}

bide_frame *bide_event_count_own_waiter_suspend_(bide_awaiter *awaiter, bide_frame *frame);

BIDE_INLINE int bide_event_count_own_waiter_resume_(bide_awaiter *awaiter)
{
    return ((bide_event_count_own_waiter *)(void *)awaiter)->retry.status;
}

bool bide_event_count_own_waiter_withdraw_(bide_awaiter *awaiter);
int bide_event_count_own_waiter_choose_(bide_awaiter *awaiter, bide_choice *choice);

/* As BIDE_EVENT_COUNT_WAITER_OPS. */
#define BIDE_EVENT_COUNT_OWN_WAITER_OPS(ready, name)                                              \
    {                                                                                             \
        (ready), bide_event_count_own_waiter_suspend_, bide_event_count_own_waiter_resume_, NULL, \
            bide_event_count_own_waiter_withdraw_, (name), bide_event_count_own_waiter_choose_,   \
            BIDE_UNDO_NONE                                                                        \
    }

/* As bide_event_count_waiter_init_. */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_event_count_own_waiter_init_(bide_event_count_own_waiter *own,
                                                            const bide_awaiter_ops *ops,
                                                            const bide_event_count_ops *rules,
                                                            bide_event_count *event_count)
{
    own->awaiter.ops = ops;
    bide_await_later(bide_event_count_waiter_init_(&own->retry, NULL, rules, event_count));
    return &own->awaiter;
}

/*
 * As bide_event_count_wait, but attempts and looks are made on the coroutine's own thread alone,
 * or where its scheduler has it go on. One that is woken in vain waits on, behind the others. A
 * coroutine that is destroyed has done nothing.
 * Threads: any. Errors: as bide_event_count_wait. Suspends: if the attempt fails. Cancel-safe:
 * yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_event_count_wait_own(bide_event_count_own_waiter *own,
                                                    bide_event_count *event_count,
                                                    const bide_event_count_ops *rules)
{
    static const bide_awaiter_ops ops = BIDE_EVENT_COUNT_OWN_WAITER_OPS(
        bide_event_count_own_waiter_ready_, "bide_event_count_wait_own");
    return bide_event_count_own_waiter_init_(own, &ops, rules, event_count);
}

BIDE_EXTERN_C_END

#endif
