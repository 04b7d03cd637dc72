/*
 * Intervals: regular ticks for a coroutine. Floor: coroutine.
 *
 *     uint64_t now = bide_now(bide_this_context());
 *     bide_interval_init(&self->every, now, 20 * 1000000, BIDE_MISSED_SKIP);
 *     for (;;) {
 *         bide_try(bide_interval_tick(&self->every));     // each 20 ms, the first at once
 *         ...
 *     }
 *
 * One coroutine at a time waits for the ticks. A tick never comes early, and delays do not accumulate:
 * each tick's time is computed from the previous tick's time, not from the moment of its delivery. A
 * tick is missed if the coroutine awaits it after the next one's time. The interval's policy decides
 * about missed ticks. For a tick every 10, and work after the first that takes 35:
 *
 *     due                  0    10    20    30    40    50    60    70
 *     BIDE_MISSED_BURST    0                   35,35,35 40    50    60    70
 *     BIDE_MISSED_DELAY    0                   35    45    55    65    75
 *     BIDE_MISSED_SKIP     0                   35    40    50    60    70
 *
 * A tick costs a sleep (sleep.h), and one look at the clock.
 *
 * Why it is correct: it is a sleep, which only its coroutine touches when it has ended. The time of the
 * next tick changes when a tick is delivered; a cancelled wait leaves the tick for the next one. So does a
 * wait that has ended, if its coroutine is destroyed before it resumes, or if it loses a select: the
 * timer still has the time of the tick that was delivered, and `next` becomes that again.
 */
#ifndef BIDE_INTERVAL_H
#define BIDE_INTERVAL_H

#include "bide/sleep.h"

BIDE_EXTERN_C_BEGIN

/* How missed ticks are handled. */
typedef enum bide_missed_ticks {
    BIDE_MISSED_BURST, /* they come at once, one after the other, until the interval has caught up */
    BIDE_MISSED_DELAY, /* they are left out; the next comes a period from now, and so on from there */
    BIDE_MISSED_SKIP, /* they are left out; the next comes when it would have */
} bide_missed_ticks;

/* The coroutine's memory. Its fields may be read, and changed while no tick is awaited. */
typedef struct bide_interval {
    bide_sleep sleep;
    uint64_t next;   /* when the next tick comes, in nanoseconds of bide_now() */
    uint64_t period; /* nanoseconds, more than 0 */
    bide_missed_ticks missed;
} bide_interval;

BIDE_INLINE uint64_t bide_period_(uint64_t period, const char *what, const char *function,
                                  const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(period == 0))
        bide_misuse_(what, function, file, line);
    return period;
}

/*
 * Makes an interval whose first tick comes at `first`, and the others each `period` nanoseconds. A
 * period of 0, which counts as 1, or a negative one is misuse, which is detected if BIDE_DEBUG is 1. A
 * time after which there is none, BIDE_FOREVER, never comes.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_interval_init(bide_interval *interval, uint64_t first, uint64_t period,
                                    bide_missed_ticks missed)
{
    interval->next = first;
    interval->period = period != 0 ? period : 1;
    interval->missed = missed;
}

#if BIDE_DEBUG
#define bide_interval_init(interval, first, period, missed)                                     \
    bide_interval_init((interval), (first),                                                     \
                       bide_period_(BIDE_DURATION_(period, #interval),                          \
                                    BIDE_MISUSE_("the period of an interval is 0", #interval)), \
                       (missed))
#endif

BIDE_INLINE uint64_t bide_interval_after_(const bide_interval *interval, uint64_t time)
{
    return interval->period < BIDE_FOREVER - time ? time + interval->period : BIDE_FOREVER;
}

/* When the tick comes that follows the one of interval->next, which is had `now`. */
BIDE_INLINE uint64_t bide_interval_following_(const bide_interval *interval, uint64_t now)
{
    uint64_t following = bide_interval_after_(interval, interval->next);
    if (BIDE_LIKELY(now < following) || interval->missed == BIDE_MISSED_BURST)
        return following;
    if (interval->missed == BIDE_MISSED_DELAY)
        return bide_interval_after_(interval, now);
    return bide_interval_after_(interval, now - (now - following) % interval->period);
}

BIDE_INLINE int bide_interval_resume_(bide_awaiter *awaiter)
{
    bide_interval *interval = (bide_interval *)(void *)awaiter;
    const bide_context *context = awaiter->frame->context;
    int status = bide_sleep_resume_(awaiter);
    if (status == 0)
        interval->next = bide_interval_following_(interval, bide_now(context));
    return status;
}

/* A tick that was delivered to a wait that will not know of it is still to come. */
BIDE_INLINE bool bide_interval_withdraw_(bide_awaiter *awaiter)
{
    bide_interval *interval = (bide_interval *)(void *)awaiter;
    interval->next = interval->sleep.timer.time;
    return bide_sleep_withdraw_(awaiter);
}

/*
 * Waits for the next tick, also if its time has come already: what else is ready gets its turn. A tick
 * that comes in the same turn as the case that a select chooses instead is still to come.
 * Threads: one at a time. Errors: as bide_sleep_until. Suspends: always. Cancel-safe: yes, the tick
 * is still to come. Progress: as bide_sleep_until.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_interval_tick(bide_interval *interval)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = NULL,
        .suspend = bide_sleep_suspend_,
        .resume = bide_interval_resume_,
        .cancel = bide_sleep_cancel_,
        .withdraw = bide_interval_withdraw_,
        .name = "bide_interval",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    bide_timer_init(&interval->sleep.timer, interval->next);
    interval->sleep.timer.awaiter.ops = &ops;
    return &interval->sleep.timer.awaiter;
}

BIDE_EXTERN_C_END

#endif
