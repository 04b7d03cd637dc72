/*
 * For the contract of message logs over a server: a run loop in real time in place of a test loop, whose
 * coroutines other threads may not wake. A millisecond of the contract's is 10 us.
 */
#ifndef BIDE_LOG_REAL_LOOP_H
#define BIDE_LOG_REAL_LOOP_H

#include "log_redis_server.h"

#include <bide/bide.h>
#include <bide/message_log.h>

#include "../../src/coroutine/lock.h"
#include "../../src/log/redis.h"

#include <sched.h>

static bide_log *real_loop_log; /* of which the loop waits for calls */

#define bide_sim_loop                  bide_run_loop
#define bide_sim_loop_init(loop, seed) bide_run_loop_init(loop)
#define bide_sim_loop_wait             bide_run_loop_wait
#undef bide_sim_loop_destroy
#define bide_sim_loop_destroy(loop) ((void)0)
#define bide_sim_loop_step(loop)    real_loop_step(loop)

static inline bool real_loop_are_idle(bide_blocking *threads)
{
    bide_blocking_stats counts;
    bide_blocking_get_stats(threads, &counts);
    return counts.queued == 0 && counts.idle == counts.threads;
}

/* True: no call of the log, and none that opens one, is being made, and no reader waits for the watch to begin. */
static inline bool real_loop_is_idle(void)
{
    struct log_redis *redis = bide_container_of(real_loop_log, struct log_redis, log);
    bide_blocking *opening;
    lock_take(&redis->state.lock);
    bool is_idle = !redis->wants_watch;
    lock_free(&redis->state.lock);
    assert_int_equal(bide_log_threads_(&opening), 0);
    return is_idle && real_loop_are_idle(opening) && real_loop_are_idle(redis->log.threads);
}

/* Runs what is ready; false: nothing is, and nothing will be by itself. */
static inline bool real_loop_step(bide_run_loop *loop)
{
    bool is_idle = real_loop_is_idle();
    if (bide_run_loop_run_ready(loop) != 0 || !is_idle) {
        (void)sched_yield();
        return true;
    }
    return false;
}

#endif
