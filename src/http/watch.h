/*
 * The deadline of what a connection is waiting for. Internal to HTTP.
 *
 * Each wait sets `until`. A read and a write may wait at the same time: each has its own time, and `until` is the
 * earliest of both and of the exchange's deadline. A sleeping coroutine, the watcher, checks it: it wakes at `armed`, the
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

/* The index in bide_http_watch.waits. */
enum http_watch_wait { HTTP_WATCH_READ, HTTP_WATCH_WRITE };

static inline void http_watch_set(bide_http_watch *watch, uint64_t time)
{
    watch->until = time;
    if (BIDE_UNLIKELY(time < watch->armed))
        bide_auto_event_set(watch->nudge);
}

/* The connection itself waits until `time`: no operation of an exchange does. */
static inline void http_watch_until(bide_http_watch *watch, uint64_t time)
{
    watch->waits[HTTP_WATCH_READ] = BIDE_FOREVER;
    watch->waits[HTTP_WATCH_WRITE] = BIDE_FOREVER;
    http_watch_set(watch, time);
}

static inline uint64_t http_watch_earliest(const bide_http_watch *watch)
{
    uint64_t time = watch->whole;
    for (int i = 0; i < 2; i++)
        if (watch->waits[i] < time)
            time = watch->waits[i];
    return time;
}

/* Sets the deadline of the exchange. Waits keep theirs. */
static inline void http_watch_exchange_until(bide_http_watch *watch, uint64_t time)
{
    watch->whole = time;
    http_watch_set(watch, http_watch_earliest(watch));
}

/* A wait for the next byte of an exchange starts, or continues after one. */
static inline void http_watch_start_wait_at(bide_http_watch *watch, enum http_watch_wait wait,
                                            uint64_t now)
{
    watch->waits[wait] = http_later(now, watch->between);
    http_watch_set(watch, http_watch_earliest(watch));
}

static inline void http_watch_start_wait(bide_http_watch *watch, enum http_watch_wait wait,
                                         const bide_context *context)
{
    if (watch != NULL && watch->between != BIDE_FOREVER)
        http_watch_start_wait_at(watch, wait, bide_now(context));
}

/* The wait has ended, if there is one. */
static inline void http_watch_stop_wait(bide_http_watch *watch, enum http_watch_wait wait)
{
    if (watch == NULL || watch->waits[wait] == BIDE_FOREVER)
        return;
    watch->waits[wait] = BIDE_FOREVER;
    watch->until = http_watch_earliest(watch);
}

#endif
