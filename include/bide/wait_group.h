/*
 * A wait group: counts work under way, up and down; its waiters wait until the count is zero. It may be
 * reused, even while there are waiters. Floor: sync.
 *
 *     bide_wait_group_add(&group, 1);     // before the work is begun
 *     ... and at its end: bide_wait_group_done(&group) ...
 *     ...
 *     bide_try(bide_wait_group_wait(&self->wait, &group));
 *
 * Any thread may add, end and wait; each is one atomic operation, except that the zero wakes the
 * waiters.
 *
 * A wait ends when the count is zero, or has been since it began: so it ends with the first zero,
 * even if something is added again before the waiter has noticed. It begins when
 * bide_wait_group_wait is called. Adding from zero while another thread begins a wait is allowed: the
 * wait includes the added work if it begins later, and not if it begins sooner.
 *
 * Why it is correct: it is a waiter queue whose value is the count, and a phase, to which each zero
 * adds 1; docs/internals/waiter_queue.md has the argument. Writes from before each `done` that led to
 * the zero are visible after the wait: each releases, all modifications are read-modify-writes, and
 * finding the zero, or the later phase, acquires.
 *
 * Source: sync.WaitGroup of Go, without its rule that a group is used again only when all waits
 * have returned.
 */
#ifndef BIDE_WAIT_GROUP_H
#define BIDE_WAIT_GROUP_H

#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

/* The greatest count: 2^29 - 1 where a word has 64 bits, 2^13 - 1 where it has 32. */
#define BIDE_WAIT_GROUP_MAX ((uint32_t)BIDE_QUEUE_NUMBER_MAX)

typedef struct bide_wait_group {
    bide_waiter_queue queue;
} bide_wait_group;

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_wait_group_waiter {
    bide_queue_waiter waiter; /* at the head: it is the awaiter; wants: the phase that is to pass */
} bide_wait_group_waiter;

extern const bide_waiter_queue_ops bide_wait_group_ops_;

/*
 * Makes a group of none. The memory may be freed when every wait has ended and it is zero; so right after
 * the last wait, because `done` touches nothing once that can have ended.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_wait_group_init(bide_wait_group *group)
{
    bide_waiter_queue_init(&group->queue, 0);
}

/*
 * How many are under way. The answer is out of date at once. Gives no order.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE uint32_t bide_wait_group_count(bide_wait_group *group)
{
    return (uint32_t)bide_queue_number(bide_atomic_load(&group->queue.state, relaxed));
}

/*
 * Is none under way? What was written before they were done is then visible.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_wait_group_try_wait(bide_wait_group *group)
{
    /* acquire: partner is done's release. */
    return bide_queue_number(bide_atomic_load(&group->queue.state, acquire)) == 0;
}

BIDE_INLINE void bide_wait_group_add_(bide_wait_group *group, uint32_t count, const char *what,
                                      const char *function, const char *file, unsigned line)
{
    /* relaxed: it makes nothing known; what it adds comes before its done by the order of its
     * beginner. */
    uintptr_t before =
        bide_atomic_fetch_add(&group->queue.state, (uintptr_t)count * BIDE_QUEUE_ONE, relaxed);
    if (BIDE_UNLIKELY(count > BIDE_QUEUE_NUMBER_MAX - bide_queue_number(before)))
        bide_misuse_(what, function, file, line);
}

/*
 * `count` more are under way; more than BIDE_WAIT_GROUP_MAX is misuse.
 * Threads: any. Progress: wait-free.
 */
#define bide_wait_group_add(group, count) \
    bide_wait_group_add_(group, count, BIDE_MISUSE_("a wait group has too many", #group))

/* All but what the macro knows: the count is zero already if it returns false. */
bool bide_wait_group_done_(bide_wait_group *group);

BIDE_INLINE void bide_wait_group_done_checked_(bide_wait_group *group, const char *what,
                                               const char *function, const char *file,
                                               unsigned line)
{
    if (BIDE_UNLIKELY(!bide_wait_group_done_(group)))
        bide_misuse_(what, function, file, line);
}

/*
 * One of them is done. If it was the last, the waiters are woken in the order in which they came.
 * Each resumes on its own scheduler, but not on the caller's stack while a coroutine is running on
 * it. Touches nothing afterwards. More than were added is misuse.
 * Threads: any. Suspends: never. Progress: lock-free; at zero, linear in the waiters.
 */
#define bide_wait_group_done(group)      \
    bide_wait_group_done_checked_(group, \
                                  BIDE_MISUSE_("more are done than a wait group has", #group))

BIDE_INLINE bool bide_wait_group_ready_(bide_awaiter *awaiter)
{
    bide_queue_waiter *waiter = (bide_queue_waiter *)(void *)awaiter;
    /* acquire: partner is done's release. */
    uintptr_t state = bide_atomic_load(&waiter->queue->state, acquire);
    return bide_queue_number(state) == 0 ||
           bide_queue_is_past(state, BIDE_QUEUE_PHASE_BITS_BELOW, waiter->wants);
}

BIDE_INLINE bide_frame *bide_wait_group_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    return bide_waiter_queue_suspend((bide_queue_waiter *)(void *)awaiter, &bide_wait_group_ops_,
                                     frame);
}

BIDE_INLINE int bide_wait_group_resume_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

BIDE_INLINE void bide_wait_group_cancel_(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel((bide_queue_waiter *)(void *)awaiter, &bide_wait_group_ops_);
}

BIDE_INLINE bool bide_wait_group_withdraw_(bide_awaiter *awaiter)
{
    return bide_waiter_queue_withdraw(awaiter, &bide_wait_group_ops_);
}

/*
 * Begins a wait until the count is zero, which is then to be awaited, or forgotten. `waiter` must
 * stay until the wait has ended.
 * Threads: any. Errors: -EPIPE (closed, and it had not been zero), -ECANCELED, -ETIMEDOUT.
 * Suspends: if it is not zero. Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_wait_group_wait(bide_wait_group_waiter *waiter,
                                               bide_wait_group *group)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_wait_group_ready_,
        .suspend = bide_wait_group_suspend_,
        .resume = bide_wait_group_resume_,
        .cancel = bide_wait_group_cancel_,
        .withdraw = bide_wait_group_withdraw_,
        .name = "bide_wait_group_wait",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    uintptr_t state = bide_atomic_load(&group->queue.state, relaxed);
    waiter->waiter.awaiter.ops = &ops;
    waiter->waiter.queue = &group->queue;
    /* At zero it has ended already: with the phase before. */
    waiter->waiter.wants =
        bide_queue_phase(state - (bide_queue_number(state) == 0 ? BIDE_QUEUE_PHASE_ONE : 0));
    return &waiter->waiter.awaiter;
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most: see
 * bide_event_wait_blocking.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_wait_group_wait; -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_wait_group_wait_blocking(bide_wait_group *group, uint64_t deadline)
{
    bide_wait_group_waiter waiter;
    return bide_sync_wait_until(bide_wait_group_wait(&waiter, group), deadline);
}

#define bide_wait_group_wait_blocking(...) BIDE_BLOCKS_(bide_wait_group_wait_blocking(__VA_ARGS__))

/*
 * Closes it: waits end with -EPIPE, now and later, but at zero with 0. It counts on. More than once
 * is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_wait_group_close(bide_wait_group *group);

BIDE_INLINE void bide_wait_group_destroy_checked_(bide_wait_group *group, const char *what,
                                                  const char *function, const char *file,
                                                  unsigned line)
{
    if (!bide_waiter_queue_is_idle(&group->queue))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_wait_group_destroy(group)                           \
    BIDE_END_OF_LIFE_(bide_wait_group_destroy_checked_, (group), \
                      "a wait group is destroyed while it is waited for", #group)

BIDE_EXTERN_C_END

#endif
