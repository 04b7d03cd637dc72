/*
 * The thread of a handle of a Redis stream: it renews what consumers have, hands over what groups
 * without members have, and watches the stream for readers that wait. redis.h.
 */
#define _GNU_SOURCE
#include "redis.h"

#include "../coroutine/lock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define REDIS_RETRY_FIRST UINT64_C(10000000)
#define REDIS_RETRY_MAX   UINT64_C(1000000000)

/* When it acts next. */
struct redis_times {
    uint64_t renew;
    uint64_t retry; /* of the watch */
    uint64_t pause; /* before the next retry */
};

static void redis_event_set(int event)
{
    const uint64_t one = 1;
    (void)!write(event, &one, sizeof one);
}

void bide_redis_wake_(struct log_redis *redis)
{
    redis_event_set(redis->wake);
}

/* ---- The watch ---- */

static void redis_set_watched(struct log_redis *redis, bool is_watching)
{
    lock_take(&redis->state.lock);
    redis->is_watching = is_watching;
    redis->wants_watch = redis->wants_watch && !is_watching;
    lock_free(&redis->state.lock);
    bide_notify_all(&redis->state.news);
}

/* Asks for an entry after the newest one: its reply comes when there is one. */
static int redis_watch(struct log_redis *redis)
{
    struct redis_link *link = &redis->watching;
    bide_log_position newest;
    link->deadline = bide_platform.now() + redis->timeout;
    int status = bide_redis_connect_(link);
    if (status == 0)
        status = bide_redis_read_newest_(link, &newest);
    if (status < 0)
        return status;
    bide_redis_array_(link, 8);
    bide_redis_text_(link, "XREAD");
    bide_redis_text_(link, "COUNT");
    bide_redis_text_(link, "1");
    bide_redis_text_(link, "BLOCK");
    bide_redis_text_(link, "0");
    bide_redis_text_(link, "STREAMS");
    bide_redis_text_(link, redis->stream);
    bide_redis_id_(link, newest);
    return bide_redis_flush_(link);
}

static void redis_watch_begin(struct log_redis *redis, struct redis_times *times)
{
    int status = redis_watch(redis);
    if (status == 0) {
        times->pause = REDIS_RETRY_FIRST;
        redis_set_watched(redis, true);
        return;
    }
    bide_redis_link_close_(&redis->watching);
    times->retry = bide_platform.now() + times->pause;
    times->pause = times->pause * 2 < REDIS_RETRY_MAX ? times->pause * 2 : REDIS_RETRY_MAX;
    bide_notify_all(&redis->state.news); /* readers look, and find out what is wrong */
}

/* There is an entry, or the connection was lost. */
static void redis_watch_end(struct log_redis *redis)
{
    struct redis_link *link = &redis->watching;
    link->deadline = bide_platform.now() + redis->timeout;
    if (bide_redis_skip_(link) < 0)
        bide_redis_link_close_(link);
    redis_set_watched(redis, false);
}

/* ---- The thread ---- */

static void redis_wait(struct log_redis *redis, uint64_t until, bool is_watching)
{
    uint64_t now = bide_platform.now(), left = until > now ? until - now : 0, number;
    struct pollfd waits[2] = {
        {.fd = redis->wake, .events = POLLIN},
        {.fd = is_watching ? redis->watching.descriptor : -1, .events = POLLIN}};
    int ready = poll(waits, 2, (int)((left + 999999) / 1000000));
    if (ready > 0 && waits[0].revents != 0)
        (void)!read(redis->wake, &number, sizeof number);
    if (ready > 0 && waits[1].revents != 0)
        redis_watch_end(redis);
}

static void redis_tend(struct log_redis *redis, struct redis_times *times)
{
    uint64_t now = bide_platform.now();
    bool renews = now >= times->renew, leaves = false;
    lock_take(&redis->state.lock);
    for (const struct redis_group *at = redis->groups; at != NULL; at = at->following)
        leaves = leaves || at->head.members == 0;
    lock_free(&redis->state.lock);
    if (!renews && !leaves)
        return;
    pthread_mutex_lock(&redis->io);
    bide_redis_hand_over_(redis);
    if (renews)
        bide_redis_renew_(redis);
    pthread_mutex_unlock(&redis->io);
    if (!renews)
        return;
    times->renew = now + redis->lease / 3;
    bide_notify_all(&redis->state.news); /* readers look for what others have left */
}

static void *redis_run(void *argument)
{
    struct log_redis *redis = argument;
    struct redis_times times = {bide_platform.now() + redis->lease / 3, 0, REDIS_RETRY_FIRST};
    for (;;) {
        lock_take(&redis->state.lock);
        bool ends = redis->ends, is_watching = redis->is_watching, wants = redis->wants_watch;
        lock_free(&redis->state.lock);
        redis_tend(redis, &times); /* also what was left before the end */
        if (ends)
            return NULL;
        bool begins = wants && !is_watching && bide_platform.now() >= times.retry;
        if (begins) {
            redis_watch_begin(redis, &times);
            continue;
        }
        bool retries = wants && !is_watching && times.retry < times.renew;
        redis_wait(redis, retries ? times.retry : times.renew, is_watching);
    }
}

int bide_redis_thread_start_(struct log_redis *redis)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are handled on the user's threads */
    int error = pthread_create(&redis->thread, NULL, redis_run, redis);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        (void)pthread_setname_np(redis->thread, "bide-redis");
    return -error;
}

void bide_redis_thread_end_(struct log_redis *redis)
{
    lock_take(&redis->state.lock);
    redis->ends = true;
    lock_free(&redis->state.lock);
    redis_event_set(redis->interrupt);
    bide_redis_wake_(redis);
    pthread_join(redis->thread, NULL);
}
