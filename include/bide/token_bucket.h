/*
 * A token bucket: a bound on how often something is done. Tokens come at a rate, up to so many at
 * once; what is to be done takes some first, or waits for them. Floor: schedule.
 *
 *     bide_token_bucket_init(&bucket, 100, 1000000000, 20);   // 100 a second, 20 at once
 *
 *     bide_try(bide_token_bucket_take(&self->taking, &bucket, 1));
 *     ... send one more ...
 *
 * First come, first served, also by takers that want many: a later one that wants fewer waits
 * behind them. Any thread may take, and coroutines of several schedulers, if those have one clock:
 * that of bide_now() (sleep.h), which is virtual on a test loop. To take costs a lock and a look at
 * the clock; to wait costs one timer of the first in line, whatever waits behind it.
 *
 * Over any span of time, no more is taken than `burst` and what comes in that span; a taker that
 * has waited counts as of the time at which its tokens were there, however late its scheduler runs
 * it. Nothing is rounded: the part of a token that has come by a time is kept as a whole number of
 * parts.
 *
 * Why it is correct: src/schedule/token_bucket.c.
 *
 * Source: the leaky bucket as a meter, J. Turner, "New directions in communications", 1986.
 */
#ifndef BIDE_TOKEN_BUCKET_H
#define BIDE_TOKEN_BUCKET_H

#include "bide/mutex.h"
#include "bide/sleep.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_token_bucket {
    bide_mutex turn; /* the first in line has it */

    /* constant */
    uint64_t rate; /* so many tokens come in each `period` */
    uint64_t period;
    uint64_t burst;

    bide_atomic(uint32_t) lock; /* of what follows */
    uint64_t level;             /* tokens that are there */
    uint64_t parts;             /* and parts of the next: less than `period`, each 1/period of it */
    uint64_t since;             /* the time by which that is so; 0: nothing was taken yet */
} bide_token_bucket;

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_token_take_operation {
    bide_task task;
    bide_token_bucket *bucket;
    uint64_t tokens;
    bide_mutex_waiter wait;
    bool has_turn;
    bool has_slept;
    bide_sleep sleep;
} bide_token_take_operation;

/*
 * Makes a bucket that is full. `tokens` of them come in each `period` nanoseconds, evenly, while
 * there are less than `burst`.
 * Threads: before it is shared. Errors: -EINVAL (one of the numbers is 0). Progress: wait-free.
 */
int bide_token_bucket_init(bide_token_bucket *bucket, uint64_t tokens, uint64_t period,
                           uint64_t burst);

/*
 * Takes `tokens` if so many are there and nobody waits. `context` is the caller's, for its clock.
 * False: it has taken none.
 * Threads: any. Progress: blocks for a moment at most, for the bucket's lock.
 */
bool bide_token_bucket_try_take(bide_token_bucket *bucket, const bide_context *context,
                                uint64_t tokens);

/*
 * How many tokens are there. The answer is out of date at once.
 * Threads: any. Progress: blocks for a moment at most, for the bucket's lock.
 */
uint64_t bide_token_bucket_available(bide_token_bucket *bucket, const bide_context *context);

/*
 * Takes `tokens`: waits until so many are there, and earlier takers have had theirs. `taking` must
 * stay until the wait has ended. If that is cancelled nothing was taken, and the next in line has
 * its turn at once.
 * Threads: any. Errors: -EINVAL (more than there are ever at once), -EPIPE (closed), -ENOTSUP (it
 * had to wait, and the scheduler has no timers), -ECANCELED, -ETIMEDOUT. Suspends: if they cannot
 * be had at once. Cancel-safe: yes. Progress: blocks for a moment at most, for the bucket's lock.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_token_bucket_take(bide_token_take_operation *taking, bide_token_bucket *bucket,
                                     uint64_t tokens);

/*
 * Closes it: those that wait for their turn end with -EPIPE, and later ones do. The first in line
 * still gets its tokens. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
BIDE_INLINE void bide_token_bucket_close(bide_token_bucket *bucket)
{
    bide_mutex_close(&bucket->turn);
}

BIDE_INLINE void bide_token_bucket_destroy_checked_(bide_token_bucket *bucket, const char *what,
                                                    const char *function, const char *file,
                                                    unsigned line)
{
    bide_mutex_destroy_checked_(&bucket->turn, what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_token_bucket_destroy(bucket)                           \
    BIDE_END_OF_LIFE_(bide_token_bucket_destroy_checked_, (bucket), \
                      "a token bucket is destroyed while it is waited for", #bucket)

BIDE_EXTERN_C_END

#endif
