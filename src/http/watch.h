/*
 * When what a connection waits for is to end. Internal to HTTP.
 *
 * The time is a word, which is set at each wait; a coroutine that sleeps looks at it. It wakes up
 * when the earliest time has come that it knows of, and sleeps again if that has been put off. Only a
 * time that is earlier than that wakes it early. So the usual wait costs a look at the clock, and sets
 * no timer.
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

/* A wait for the next byte begins, in an exchange. */
static inline void http_watch_wait_at(bide_http_watch *watch, uint64_t now)
{
    uint64_t time = http_later(now, watch->between);
    http_watch_until(watch, time < watch->whole ? time : watch->whole);
}

static inline void http_watch_wait(bide_http_watch *watch, const bide_context *context)
{
    if (watch != NULL && watch->between != BIDE_FOREVER)
        http_watch_wait_at(watch, bide_now(context));
}

/* It has ended. */
static inline void http_watch_go_on(bide_http_watch *watch)
{
    if (watch != NULL)
        watch->until = watch->whole;
}

#endif
