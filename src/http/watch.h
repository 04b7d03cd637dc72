/*
 * The deadline of what a connection is waiting for. Internal to HTTP.
 *
 * Each wait sets `until`. A sleeping coroutine, the watcher, checks it: it wakes at `armed`, the
 * earliest deadline that it knows of, and sleeps again if the deadline has moved back. Only a deadline
 * before `armed` wakes it early. A typical wait therefore costs one reading of the clock and sets no
 * timer.
 *
 * Threads: the loop's.
 */
#ifndef BIDE_SRC_HTTP_WATCH_H
#define BIDE_SRC_HTTP_WATCH_H

#include "bide/http_message.h"
#include "bide/sleep.h"

static inline uint64_t http_later(uint64_t now, uint64_t nanoseconds)
{
    return nanoseconds < BIDE_FOREVER - now ? now + nanoseconds : BIDE_FOREVER;
}

static inline void http_watch_until(bide_http_watch *watch, uint64_t time)
{
    watch->until = time;
    if (BIDE_UNLIKELY(time < watch->armed))
        bide_auto_event_set(watch->nudge);
}

/* A wait for the next byte of an exchange starts. */
static inline void http_watch_start_wait_at(bide_http_watch *watch, uint64_t now)
{
    uint64_t time = http_later(now, watch->between);
    http_watch_until(watch, time < watch->whole ? time : watch->whole);
}

static inline void http_watch_start_wait(bide_http_watch *watch, const bide_context *context)
{
    if (watch != NULL && watch->between != BIDE_FOREVER)
        http_watch_start_wait_at(watch, bide_now(context));
}

/* The wait has ended. */
static inline void http_watch_stop_wait(bide_http_watch *watch)
{
    if (watch != NULL)
        watch->until = watch->whole;
}

#endif
