/*
 * Sleeping: a coroutine waits until a time, or for a time. Floor: coroutine.
 *
 *     bide_await(bide_sleep_for(&self->sleep, 20 * 1000000));      // 20 ms
 *     bide_await(bide_sleep_until(&self->sleep, time));
 *
 * Times are in nanoseconds of bide_now(). That is bide_platform.now(), except on a test loop, whose
 * time is virtual. For regular ticks use interval.h: delays accumulate with bide_sleep_for, and not
 * there.
 *
 * The coroutine's scheduler must have timers, as run loops and thread pools do; otherwise a sleep
 * fails with -ENOTSUP. Any thread may call these functions. The sleep is the caller's memory until
 * the wait has ended.
 *
 * Under the inline scheduler, the thread on which the coroutine goes to sleep keeps the time if it is
 * inside bide_sync_wait, and resumes the coroutine. Otherwise a thread of the library does both; it is
 * started when it is first needed. On a system without threads, only bide_sync_wait keeps time.
 *
 * Why it is correct: a sleep is a timer of the coroutine's scheduler (extend/timer.h), which orders
 * setting, clearing and ending it.
 */
#ifndef BIDE_SLEEP_H
#define BIDE_SLEEP_H

#include "bide/errors.h"
#include "bide/stop.h"
#include "bide/extend/timer.h"

BIDE_EXTERN_C_BEGIN

BIDE_INLINE uint64_t bide_scheduler_now_(bide_scheduler *scheduler)
{
    return scheduler->environment == NULL ? bide_platform.now()
                                          : scheduler->environment->now(scheduler);
}

/*
 * What time is it for a coroutine of `context`? The clock by which its scheduler's timers go:
 * bide_platform.now(), or the virtual time of a test loop (sim_loop.h). In a body:
 * bide_now(bide_this_context()).
 * Threads: the scheduler's of `context`. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE uint64_t bide_now(const bide_context *context)
{
    return bide_scheduler_now_(context->scheduler);
}

/* One sleep. The caller's memory until the wait has ended. */
typedef struct bide_sleep {
    bide_timer timer;
    int status;
} bide_sleep;

BIDE_INLINE bide_frame *bide_sleep_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_sleep *sleep = (bide_sleep *)(void *)awaiter;
    bide_scheduler *scheduler = frame->context->scheduler;
#if BIDE_DEBUG
    bide_check_time_(frame, sleep->timer.time);
#endif
    if (scheduler->set_timer == NULL)
        sleep->status = -ENOTSUP;
    else {
        sleep->status = 0;
        /* Once it is set, neither the sleep nor the frame is touched; if it could not be, they are
         * ours. */
        int error = scheduler->set_timer(scheduler, &sleep->timer);
        if (BIDE_LIKELY(error == 0))
            return NULL;
        sleep->status = error;
    }
    return frame;
}

/* The timer's time is how long to sleep. */
BIDE_INLINE bide_frame *bide_sleep_suspend_for_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_timer *timer = &((bide_sleep *)(void *)awaiter)->timer;
    uint64_t now = bide_now(frame->context);
    timer->time = timer->time < BIDE_FOREVER - now ? now + timer->time : BIDE_FOREVER;
    return bide_sleep_suspend_(awaiter, frame);
}

/* From then on its frame is not looked at: a select may withdraw it when that has ended. */
BIDE_INLINE int bide_sleep_resume_(bide_awaiter *awaiter)
{
    awaiter->frame = NULL;
    return ((bide_sleep *)(void *)awaiter)->status;
}

/* The thread that clears the timer has the sleep, and nobody else ends it. */
BIDE_INLINE void bide_sleep_cancel_(bide_awaiter *awaiter)
{
    bide_scheduler *scheduler = awaiter->frame->context->scheduler;
    if (scheduler->clear_timer(scheduler, (bide_timer *)(void *)awaiter)) {
        bide_awaiter_finish_cancelled(awaiter);
        bide_wake_one(awaiter);
    }
}

BIDE_INLINE bool bide_sleep_withdraw_(bide_awaiter *awaiter)
{
    if (!bide_awaiter_suspended(awaiter))
        return false;
    bide_scheduler *scheduler = awaiter->frame->context->scheduler;
    return scheduler->clear_timer != NULL &&
           scheduler->clear_timer(scheduler, (bide_timer *)(void *)awaiter);
}

/*
 * Waits until `time`; never less, but more if the thread has other things to do. A time that has
 * passed is waited for too: what else is ready gets its turn. BIDE_FOREVER never comes. `sleep`
 * must stay until the wait has ended.
 * Threads: any. Errors: -ENOTSUP (at once: the scheduler has no timers), -EAGAIN (at once: inline, and no
 * thread could be started), -ECANCELED, -ETIMEDOUT.
 * Suspends: always. Cancel-safe: yes. Progress: blocks for a moment, for the lock of the
 * scheduler's timers.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_sleep_until(bide_sleep *sleep, uint64_t time)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = NULL,
        .suspend = bide_sleep_suspend_,
        .resume = bide_sleep_resume_,
        .cancel = bide_sleep_cancel_,
        .withdraw = bide_sleep_withdraw_,
        .name = "bide_sleep",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    bide_timer_init(&sleep->timer, time);
    sleep->timer.awaiter.ops = &ops;
    return &sleep->timer.awaiter;
}

/*
 * Waits for so many nanoseconds, from when the wait begins. A negative number is misuse, which is detected
 * if BIDE_DEBUG is 1. As bide_sleep_until otherwise.
 * Threads: any. Errors: as bide_sleep_until. Suspends: always. Cancel-safe: yes. Progress: as
 * bide_sleep_until.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_sleep_for(bide_sleep *sleep, uint64_t nanoseconds)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = NULL,
        .suspend = bide_sleep_suspend_for_,
        .resume = bide_sleep_resume_,
        .cancel = bide_sleep_cancel_,
        .withdraw = bide_sleep_withdraw_,
        .name = "bide_sleep",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    bide_timer_init(&sleep->timer, nanoseconds);
    sleep->timer.awaiter.ops = &ops;
    return &sleep->timer.awaiter;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_sleep_for_checked_(bide_sleep *sleep, uint64_t nanoseconds,
                                                  const char *what, const char *function,
                                                  const char *file, unsigned line)
{
    return bide_sleep_for(sleep, bide_duration_(nanoseconds, what, function, file, line));
}

#if BIDE_DEBUG
#define bide_sleep_for(sleep, nanoseconds) BIDE_SLEEP_FOR_(sleep, nanoseconds)
#define BIDE_SLEEP_FOR_(sleep, nanoseconds) \
    bide_sleep_for_checked_((sleep), (nanoseconds), BIDE_MISUSE_("a duration is negative", #sleep))
#endif

BIDE_EXTERN_C_END

#endif
