/*
 * An event count: waiting for something lock-free to be worth another try, a queue to be no longer empty, say. Who
 * changes that something notifies; while nobody waits that costs no locked instruction. Floor: sync.
 *
 *     who waits                                       who changes it
 *     bide_await_status(status,                       bide_mpmc_ring_push(&ring, &job);
 *         bide_event_count_retry(...));               bide_event_count_notify(&not_empty, 1);
 *
 * An operation on it is two functions, the user's (bide_retry_rules): `attempt` does the thing, or says -EAGAIN;
 * `is_possible` only looks whether it would. It attempts; if that fails it waits. Who notifies takes it, and attempts
 * on its behalf: if that succeeds it goes on with what it ended with, otherwise it waits on. So nobody is woken in
 * vain, and waiting reserves nothing: an operation that is cut short has done nothing. (bide_own_retry is for what only
 * its own coroutine may attempt: that is woken to do it.) Those who wait are interchangeable: a notification is for
 * any.
 *
 *     place     FREE                    nobody waits there
 *               operation, and BEGUN    is about to wait, and is still looked after by who has put it there
 *               operation               waits
 *     line      a waiter queue for those who find somebody in the place, or in the line; its value: how many may go
 *     watch     UNWATCHED    nobody has waited lately: who notifies looks no further
 *               ARMING       somebody is about to wait: who notifies looks closely, who waits has a heavy fence
 *               a thread     as WATCHED, and all who have waited lately did so on that thread: who notifies there
 *                            has no fence
 *               WATCHED      who notifies looks closely, who waits has a full fence
 *
 *     place     FREE --stand--> BEGUN --arm--> waits         BEGUN, waits --take, cancel, withdraw--> FREE
 *     watch     UNWATCHED --somebody stands--> ARMING --the same has passed his heavy fence--> his thread
 *               another's thread --the same--> ARMING --------------------------------------> WATCHED
 *               WATCHED, another's thread --some notifications in a row find nobody--> UNWATCHED
 *
 * ---- Nobody waits for what is possible ----
 *
 *     who changes:  N  change it                who waits:  A   take the place, or enlist in the line
 *                   L  light fence                          H   UNWATCHED, another's thread: ARMING, heavy fence
 *                   D  load watch                               ARMING: heavy fence
 *                   F  neither UNWATCHED nor                F'  WATCHED, own thread: full fence
 *                      own thread: full fence               W   load watch again: after H anything but UNWATCHED,
 *                   S  load place and line; take                after F' the same; otherwise once more
 *                      as many as may go                    B   is it possible? Then not to wait, or to let one go
 *
 * 1. Who waits has passed H after A. If D finds a value that makes who notifies look, S sees A or B sees N, by L and H.
 *    If D finds an UNWATCHED from before his H, or another's thread likewise, L came before that H (otherwise D, after
 *    it, found ARMING or later), so B sees N.
 * 2. Who waits has found WATCHED, or his thread, twice, before and after F'. If D finds that too, or ARMING: two full
 *    fences, F and F' (or H, which is one too), so S sees A or B sees N; or D was on that very thread, and S sees A
 *    because it comes later. If D finds a value from before: L came, as in 1, before the H of who has put what was
 *    found; that was released after H, and acquired, so B sees N.
 * 3. D finds an UNWATCHED from after all that. Who made it so looks once more, behind a full fence. Either that comes
 *    after F' or H, and he finds who waits, and takes all; or it comes before, and who waits finds UNWATCHED in W, and
 *    begins anew. Or he finds what another has made of it since: as he found before, 2 again; if it is an ARMING after
 *    H, that other, who waits too, has his H and B before him: by 1 he sees N, and lets one go.
 * 4. Who takes an operation attempts it. If it succeeds, and is possible still, another is taken; if it fails it stands
 *    again, as at first. So if something is possible, and somebody waits, somebody is on his way: who has changed it
 *    and not come to S, who has stood and not come to B, or who has taken an operation and not attempted.
 *
 * ---- The operation ----
 *
 * 5. BEGUN is its coroutine's, or whose who has taken it before. Who takes it then only takes it out of the place: the
 *    other finds that it is not there any more as he arms, attempts, and stands again if that fails (so by 1 and 2 he
 *    sees N then, if not before). After arming he touches it no more: that releases it, and who takes it acquires it.
 *    Where the coroutine does not go on before its suspend has returned, whoever ends the operation (its scheduler has
 *    one thread, or its source a gate), BEGUN is not needed: it stands as one that waits, and so B may find that
 *    another has it, or has had it and put it back.
 * 6. The line hands over as every waiter queue does (waiter_queue.h), but to the server, who attempts. What is left of
 *    its value when nobody is in line is forgotten: who comes later looks for himself.
 * 7. Asked to stop while it is taken, an operation is in neither place nor line. Then the request comes before a full
 *    fence in cancel, and that finds nothing; so who has it sees the request as he has stood, behind his fence.
 * 8. The successes of attempts make others possible, perhaps on another event count (`then`). Those who can go
 *    because of that are put behind those that were taken, so all of it is one loop; who has ended is woken at its end.
 *
 * Order: first come, first served, but for who waits on after a vain attempt: he comes last.
 *
 * Threads: any. Lock-free, but for the system's barrier. Source: Vyukov's eventcount; folly's EventCount; what is tried
 * on behalf of who waits is Go's; biased to a thread as locks were in HotSpot.
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
    bide_atomic(uint32_t) unneeded; /* how many notifications in a row found nobody; a hint */
} bide_event_count;

enum { BIDE_EVENT_COUNT_FREE_ = 0, BIDE_EVENT_COUNT_UNWATCHED_ = 0 };

typedef struct bide_retry bide_retry;

/* What is tried. Constant. */
typedef struct bide_retry_rules {
    /* Does it, and returns what the operation ends with; or -EAGAIN, and has done nothing. While the operation waits,
 * by
     * whoever notifies, one at a time; what it does comes after all that the operation's coroutine has done. Does not
     * notify. */
    int (*attempt)(bide_retry *retry);

    /* Would an attempt, now, do anything but say -EAGAIN? True if in doubt. It sees what was done before a fence that
     * another has passed. Changes nothing: another may attempt it meanwhile. */
    bool (*is_possible)(bide_retry *retry);

    /* Where an attempt that has ended with 0 makes another possible. NULL: nowhere. */
    bide_event_count *(*then)(bide_retry *retry);
} bide_retry_rules;

/* One operation, at the head of its user's. The caller's, for the time of the wait. */
struct bide_retry {
    bide_queue_waiter waiter; /* at the head: it is the awaiter */
    int status;
    const bide_retry_rules *rules;
};

/* Makes an event count. Before it is shared. */
BIDE_INLINE void bide_event_count_init(bide_event_count *event_count)
{
    bide_atomic_init(&event_count->place, (uintptr_t)BIDE_EVENT_COUNT_FREE_);
    bide_atomic_init(&event_count->watch, (uintptr_t)BIDE_EVENT_COUNT_UNWATCHED_);
    bide_waiter_queue_init(&event_count->line, 0);
    bide_atomic_init(&event_count->unneeded, 0);
}

/* Does nobody wait? For debug builds' checks, by who knows that nobody uses it. */
BIDE_INLINE bool bide_event_count_is_idle(bide_event_count *event_count)
{
    /* relaxed: the caller has seen what was done with it. */
    return bide_atomic_load(&event_count->place, relaxed) == BIDE_EVENT_COUNT_FREE_ &&
           bide_waiter_queue_is_idle(&event_count->line);
}

/* Is somebody in line, or on his way out of it, by the line's state? */
BIDE_INLINE bool bide_event_count_is_line_(uintptr_t state)
{
    return (state & (BIDE_QUEUE_WAITING_ | BIDE_QUEUE_SERVING_)) != 0;
}

/* Is somebody in line now? S. */
BIDE_INLINE bool bide_event_count_has_line_(bide_event_count *event_count)
{
    /* relaxed: what comes of it is ordered by who takes. */
    return bide_event_count_is_line_(bide_atomic_load(&event_count->line.state, relaxed));
}

/* Does somebody wait? S. */
BIDE_INLINE bool bide_event_count_has_waiters_(bide_event_count *event_count)
{
    /* relaxed: as above. */
    return bide_atomic_load(&event_count->place, relaxed) != BIDE_EVENT_COUNT_FREE_ ||
           bide_event_count_has_line_(event_count);
}

/* Something was changed: is it to be looked closely for who waits? Then *watch is what was found, for that. */
BIDE_INLINE bool bide_event_count_must_look_(bide_event_count *event_count, uintptr_t *watch)
{
    bide_atomic_fence_light(); /* L; partner: H */
    /* relaxed: D. */
    *watch = bide_atomic_load(&event_count->watch, relaxed);
    return *watch != BIDE_EVENT_COUNT_UNWATCHED_ &&
           (*watch != bide_this_thread_() || bide_event_count_has_waiters_(event_count));
}

/* F and S, having found `watch`. */
void bide_event_count_look_(bide_event_count *event_count, size_t count, uintptr_t watch);

/* H, F' and W. After a read-modify-write, A. */
void bide_event_count_watch_(bide_event_count *event_count);

/*
 * Says that up to `count` attempts may succeed by now that could not before: the first `count` who wait are attempted.
 * To be called after the change. Any thread; does not suspend, and runs nobody on the caller's stack while a coroutine
 * is running on it; it runs their attempts. Lock-free; wait-free while nobody waits.
 */
BIDE_INLINE void bide_event_count_notify(bide_event_count *event_count, size_t count)
{
    uintptr_t watch;
    if (bide_event_count_must_look_(event_count, &watch))
        bide_event_count_look_(event_count, count, watch);
}

/* The same for all who wait. */
BIDE_INLINE void bide_event_count_notify_all(bide_event_count *event_count)
{
    bide_event_count_notify(event_count, SIZE_MAX);
}

/* What an operation waits on. */
BIDE_INLINE bide_event_count *bide_retry_event_count_(bide_retry *retry)
{
    return bide_container_of(retry->waiter.queue, bide_event_count, line);
}

/* Attempts it, and notifies who can go because of that. Returns what it ends with, or -EAGAIN. */
BIDE_INLINE int bide_retry_attempt_(bide_retry *retry)
{
    int status = retry->rules->attempt(retry);
    if (status == 0 && retry->rules->then != NULL)
        bide_event_count_notify(retry->rules->then(retry), 1);
    return status;
}

BIDE_INLINE bool bide_retry_ready_(bide_awaiter *awaiter)
{
    bide_retry *retry = (bide_retry *)(void *)awaiter;
    retry->status = bide_retry_attempt_(retry);
    return retry->status != -EAGAIN;
}

bide_frame *bide_retry_suspend_(bide_awaiter *awaiter, bide_frame *frame);

BIDE_INLINE int bide_retry_resume_(bide_awaiter *awaiter)
{
    return ((bide_retry *)(void *)awaiter)->status;
}

void bide_retry_cancel_(bide_awaiter *awaiter);
bool bide_retry_withdraw_(bide_awaiter *awaiter);

/* As a case of a select: waits to be notified, and is attempted by the select alone. */
int bide_retry_choose_(bide_awaiter *awaiter, bide_choice *choice);

/* For a table of operations of one's own, with a name and an inlined `ready`, which notifies too. */
#define BIDE_RETRY_OPS(ready, name)                                           \
    {                                                                         \
        (ready), bide_retry_suspend_, bide_retry_resume_, bide_retry_cancel_, \
            bide_retry_withdraw_, (name), bide_retry_choose_                  \
    }

/* Makes an operation with a table of its own; returns its awaiter. */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_retry_init_(bide_retry *retry, const bide_awaiter_ops *ops,
                                           const bide_retry_rules *rules,
                                           bide_event_count *event_count)
{
    retry->waiter.awaiter.ops = ops;
    retry->waiter.queue = &event_count->line;
    retry->rules = rules;
    return &retry->waiter.awaiter;
}

/*
 * Attempts until that says something else than -EAGAIN, and ends with it; in between it waits to be notified. Cut
 * short, it ends with -ECANCELED or -ETIMEDOUT, its last attempt having failed; a coroutine that is destroyed may have
 * been attempted for just before. `retry` is the caller's until it has ended, in whatever the rules find the rest by.
 * Any thread; suspends if it has to wait; cancel-safe: yes; lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_event_count_retry(bide_retry *retry, bide_event_count *event_count,
                                                 const bide_retry_rules *rules)
{
    static const bide_awaiter_ops ops = BIDE_RETRY_OPS(bide_retry_ready_, "bide_event_count_retry");
    return bide_retry_init_(retry, &ops, rules, event_count);
}

/*
 * Takes an operation that waits to be attempted, if there seems to be one, to be ended by bide_retry_end_ with what was
 * done on its behalf. NULL: none. Who waits to be told only is told.
 */
bide_retry *bide_event_count_take_(bide_event_count *event_count);

BIDE_INLINE void bide_retry_end_(bide_retry *retry, int status)
{
    retry->status = status;
    bide_wake_one(&retry->waiter.awaiter);
}

/* ---- What only its own coroutine may attempt ---- */

/* One operation, at the head of its user's. The caller's, for the time of the wait. */
typedef struct bide_own_retry {
    bide_awaiter awaiter;
    bide_frame frame; /* waits in `retry` */
    bide_retry retry; /* what the rules are called with */
} bide_own_retry;

BIDE_INLINE bool bide_own_retry_ready_(bide_awaiter *awaiter)
{
    bide_own_retry *own = (bide_own_retry *)(void *)awaiter;
    return bide_retry_ready_(&own->retry.waiter.awaiter);
}

bide_frame *bide_own_retry_suspend_(bide_awaiter *awaiter, bide_frame *frame);

BIDE_INLINE int bide_own_retry_resume_(bide_awaiter *awaiter)
{
    return ((bide_own_retry *)(void *)awaiter)->retry.status;
}

bool bide_own_retry_withdraw_(bide_awaiter *awaiter);
int bide_own_retry_choose_(bide_awaiter *awaiter, bide_choice *choice);

/* As BIDE_RETRY_OPS. */
#define BIDE_OWN_RETRY_OPS(ready, name)                                                           \
    {                                                                                             \
        (ready), bide_own_retry_suspend_, bide_own_retry_resume_, NULL, bide_own_retry_withdraw_, \
            (name), bide_own_retry_choose_                                                        \
    }

/* As bide_retry_init_. */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_own_retry_init_(bide_own_retry *own, const bide_awaiter_ops *ops,
                                               const bide_retry_rules *rules,
                                               bide_event_count *event_count)
{
    own->awaiter.ops = ops;
    bide_await_later(bide_retry_init_(&own->retry, NULL, rules, event_count));
    return &own->awaiter;
}

/*
 * As bide_event_count_retry, but attempts and looks are made on the coroutine's own thread alone, or where its
 * scheduler has it go on. Who is woken in vain waits on, behind the others; one that is destroyed has done nothing.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_event_count_retry_own(bide_own_retry *own,
                                                     bide_event_count *event_count,
                                                     const bide_retry_rules *rules)
{
    static const bide_awaiter_ops ops =
        BIDE_OWN_RETRY_OPS(bide_own_retry_ready_, "bide_event_count_retry_own");
    return bide_own_retry_init_(own, &ops, rules, event_count);
}

BIDE_EXTERN_C_END

#endif
