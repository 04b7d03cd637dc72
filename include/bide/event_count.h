/*
 * An event count: waiting for something lock-free to be worth another try, a queue to be no longer empty, say. Who
 * changes that something notifies; while nobody waits that costs no locked instruction. Floor: sync.
 *
 *     who waits                                       who changes it
 *     bide_await_status(status,                       bide_mpmc_ring_push(&ring, &job);
 *         bide_event_count_retry(...));               bide_event_count_notify(&not_empty, 1);
 *
 * An operation on it is two functions, the user's (bide_retry_rules): `attempt` does the thing, or says -EAGAIN;
 * `is_possible` only looks whether it would. It attempts; if that fails it waits until it is notified, and attempts
 * again. So waiting reserves nothing: an operation that is cut short or destroyed has done nothing, and a notification
 * that was meant for it goes to the next.
 *
 *     line      a waiter queue; its value: how many may go
 *     watch     UNWATCHED    nobody has waited lately: who notifies looks no further
 *               ARMING       somebody is about to wait: who notifies looks closely, who waits has a heavy fence
 *               WATCHED      who notifies looks closely, who waits has a full fence
 *
 *     UNWATCHED --somebody has enlisted--> ARMING --the same has passed his heavy fence--> WATCHED
 *     WATCHED --some notifications in a row find nobody--> UNWATCHED
 *
 * ---- Nobody waits for what is possible ----
 *
 *     who changes:  N  change it                who waits:  A   enlist in the line
 *                   L  light fence                          H   UNWATCHED: ARMING, heavy fence, WATCHED
 *                   D  load watch                               ARMING: heavy fence, and look at watch again
 *                   F  if not UNWATCHED: full fence         F'  WATCHED: full fence, and look at watch again
 *                   S  load the line; if somebody               (until it is not UNWATCHED, nor by F' ARMING)
 *                      waits let so many go                 B   is it possible? Then let one in line go
 *
 * 1. D finds an UNWATCHED from before an ARMING that one who waits has seen or made before his H: then L came before
 *    that H (otherwise D, after it, found ARMING or later), so B sees N.
 * 2. Who waits has found WATCHED after F'. If D finds an UNWATCHED from before that, its L came, as in 1, before the H
 *    of who made it WATCHED; that was released after H, and acquired, so B sees N. If D does not find UNWATCHED: two full
 *    fences, F and F' (or H, which is one too), so S sees A or B sees N.
 * 3. D finds an UNWATCHED from after all that. Who made it so looks at the line once more, behind a full fence. Either
 *    that comes after F' or H, and he finds who waits, and lets all go; or it comes before, and who waits finds
 *    UNWATCHED as he looks at watch again, and begins anew. Or he finds what another has made of it since: WATCHED is
 *    2 again; if it is an ARMING, that other, who waits too, has his H and B before him: by 1 he sees N, and lets one
 *    go.
 * 4. Let go is the first in line, whoever that is: one who was woken, whose attempt succeeds, looks whether it is
 *    possible still, and then lets the next go. So if something is possible, and somebody waits, somebody is on his way:
 *    who has changed it and not come to S, who has enlisted and not come to B, or who was let go and has not attempted.
 * 5. The line hands over as every waiter queue does (waiter_queue.h). What is left of its value when nobody is in line
 *    is forgotten: who comes later looks for himself.
 *
 * Threads: any. Lock-free, but for the system's barrier. Source: Vyukov's eventcount; folly's EventCount.
 */
#ifndef BIDE_EVENT_COUNT_H
#define BIDE_EVENT_COUNT_H

#include "bide/errors.h"
#include "bide/fence.h"
#include "bide/sync_wait.h"
#include "bide/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_event_count {
    bide_waiter_queue line;
    bide_atomic(uint32_t) watch;
    bide_atomic(uint32_t) unneeded; /* how many notifications in a row found nobody; a hint */
} bide_event_count;

enum { BIDE_EVENT_COUNT_UNWATCHED_ = 0 };

typedef struct bide_retry bide_retry;

/* What is tried. Constant. */
typedef struct bide_retry_rules {
    /* Does it, and returns what the operation ends with; or -EAGAIN, and has done nothing. */
    int (*attempt)(bide_retry *retry);

    /* Would an attempt, now, do anything but say -EAGAIN? True if in doubt. It sees what was done before a fence that
     * another has passed. */
    bool (*is_possible)(bide_retry *retry);
} bide_retry_rules;

/* One operation, at the head of its user's. The caller's, for the time of the wait. */
struct bide_retry {
    bide_awaiter awaiter;
    const bide_retry_rules *rules;
    bide_event_count *event_count;
    int status;
    bide_frame frame; /* awaits `waiter` */
    bide_queue_waiter waiter;
};

/* Makes an event count. Before it is shared. */
BIDE_INLINE void bide_event_count_init(bide_event_count *event_count)
{
    bide_waiter_queue_init(&event_count->line, 0);
    bide_atomic_init(&event_count->watch, BIDE_EVENT_COUNT_UNWATCHED_);
    bide_atomic_init(&event_count->unneeded, 0);
}

/* Does nobody wait? For debug builds' checks, by who knows that nobody uses it. */
BIDE_INLINE bool bide_event_count_is_idle(bide_event_count *event_count)
{
    return bide_waiter_queue_is_idle(&event_count->line);
}

void bide_event_count_look_(bide_event_count *event_count, size_t count);

/* Between A and B: a fence, and who changes something later looks closely. */
void bide_event_count_watch_(bide_event_count *event_count);

/*
 * Says that up to `count` attempts may succeed by now that could not before: the first `count` in line attempt again. To
 * be called after the change. Any thread; does not suspend, and runs nobody on the caller's stack while a coroutine is
 * running on it. Lock-free; wait-free while nobody waits.
 */
BIDE_INLINE void bide_event_count_notify(bide_event_count *event_count, size_t count)
{
    bide_atomic_fence_light(); /* L; partner: H */
    /* relaxed: D. */
    if (BIDE_UNLIKELY(bide_atomic_load(&event_count->watch, relaxed) !=
                      BIDE_EVENT_COUNT_UNWATCHED_))
        bide_event_count_look_(event_count, count);
}

/* The same for all who wait. */
BIDE_INLINE void bide_event_count_notify_all(bide_event_count *event_count)
{
    bide_event_count_notify(event_count, SIZE_MAX);
}

BIDE_INLINE bool bide_retry_ready_(bide_awaiter *awaiter)
{
    bide_retry *retry = (bide_retry *)(void *)awaiter;
    retry->status = retry->rules->attempt(retry);
    return retry->status != -EAGAIN;
}

bide_frame *bide_retry_suspend_(bide_awaiter *awaiter, bide_frame *frame);

BIDE_INLINE int bide_retry_resume_(bide_awaiter *awaiter)
{
    return ((bide_retry *)(void *)awaiter)->status;
}

bool bide_retry_withdraw_(bide_awaiter *awaiter);

/* One wait in the line, until an attempt may succeed, or perhaps not: its half of the operation, for select.h. */
bide_awaiter *bide_retry_wait_(bide_retry *retry);

/* For a table of operations of one's own, with a name and an inlined `ready`. */
#define BIDE_RETRY_OPS(ready, name)                                                          \
    {                                                                                        \
        (ready), bide_retry_suspend_, bide_retry_resume_, NULL, bide_retry_withdraw_, (name) \
    }

/* Makes an operation with a table of its own; returns its awaiter. */
BIDE_INLINE bide_awaiter *bide_retry_init_(bide_retry *retry, const bide_awaiter_ops *ops,
                                           const bide_retry_rules *rules,
                                           bide_event_count *event_count)
{
    retry->awaiter.ops = ops;
    retry->rules = rules;
    retry->event_count = event_count;
    return &retry->awaiter;
}

/*
 * Attempts until that says something else than -EAGAIN, and ends with it; in between it waits to be notified. Cut short,
 * it ends with -ECANCELED or -ETIMEDOUT, its last attempt having failed. `retry` is the caller's until it has ended, in
 * whatever the rules find the rest by. Any thread; suspends if it has to wait; cancel-safe: yes; lock-free.
 */
BIDE_INLINE bide_awaiter *bide_event_count_retry(bide_retry *retry, bide_event_count *event_count,
                                                 const bide_retry_rules *rules)
{
    static const bide_awaiter_ops ops = BIDE_RETRY_OPS(bide_retry_ready_, "bide_event_count_retry");
    return bide_retry_init_(retry, &ops, rules, event_count);
}

BIDE_EXTERN_C_END

#endif
