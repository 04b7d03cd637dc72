/*
 * A token bucket: limits how often something is done. Tokens arrive at a constant rate, and the bucket
 * holds at most `burst` of them. A taker takes tokens before it acts, or waits for them.
 * Floor: schedule.
 *
 *     bide_token_bucket_init(&bucket, 100, 1000000000, 20);   // 100 a second, 20 at once
 *
 *     bide_try(bide_token_bucket_take(&self->taking, &bucket, 1));
 *     ... send one more ...
 *
 * Any thread may take, try to take, and close. Takers are served first come, first served: a later
 * taker that wants fewer tokens waits behind an earlier one that wants many. A cancelled taker has
 * taken nothing, and the next in line has its turn at once.
 *
 * Coroutines of several schedulers may share a bucket if these schedulers have one clock, that of
 * bide_now() (sleep.h). A take costs a lock and a look at the clock. Waiting costs one timer, that of
 * the first in line, no matter how many takers wait behind it.
 *
 * In any span of time, takers take at most `burst` tokens plus the tokens that arrive in it. A
 * taker that waited counts from the time at which its tokens were there, even if its scheduler
 * resumes it later. Nothing is rounded: parts of a token are counted as whole numbers.
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
 * its turn at once. If it has ended, and is a case of a select that chooses another, or its coroutine is
 * destroyed before it resumes, the tokens are in the bucket again; a taker that sleeps is not woken
 * sooner for that.
 * Threads: any. Errors: -EINVAL (more than there are ever at once), -EPIPE (closed), -ENOTSUP (it
 * had to wait, and the scheduler has no timers), -ECANCELED, -ETIMEDOUT. Suspends: if they cannot
 * be had at once. Cancel-safe: yes. Progress: blocks for a moment at most, for the bucket's lock.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_token_bucket_take(bide_token_take_operation *taking, bide_token_bucket *bucket,
                                     uint64_t tokens);

/*
 * Closes it: takers that wait for their turn, and later ones, end with -EPIPE. The first in line
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
