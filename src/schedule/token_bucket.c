/*
 * The token bucket. What is there at a time is a whole number of parts, 1/period of a token each:
 *
 *     level * period + parts,  where parts < period
 *
 * In a nanosecond there come `rate` such parts. So the time that has passed, times the rate, plus
 * the parts that were there, is divided by the period: the quotient is new tokens, the remainder is
 * the parts. Nothing is rounded, whatever the times at which it is asked.
 *
 * 1. Products have 128 bits: a product of two 64-bit numbers, plus a 64-bit number, fits into them.
 * 2. The taker that has the turn sleeps until the time at which, by a division that is rounded up,
 *    its tokens are there; then it asks again. Nobody else takes meanwhile, since to take needs the
 *    turn. So it sleeps once, unless a clock of another scheduler is behind.
 * 3. The turn is a mutex that is handed over in order; a taker that is cut short or destroyed lets
 *    go of it, and has taken nothing before.
 * 4. The numbers have a lock of their own beside the turn, which is had for the length of an
 *    addition: for those that ask without the turn, and for a taker that is destroyed after it has
 *    taken, which gives its tokens back.
 * 5. A taker that sleeps goes on after its tokens have come, by less than a nanosecond or as late
 *    as its scheduler is. The bucket was not full meanwhile, for it had them when they came. So they
 *    are taken from what has come before that is cut to the burst, and what came since is kept.
 */
#include "bide/token_bucket.h"

#include "../coroutine/lock.h"

#include "bide/coroutine.h"
#include "bide/errors.h"

/* ---- Numbers of 128 bits ---- */

struct wide {
    uint64_t high;
    uint64_t low;
};

/* a * b + c: 1 */
static struct wide multiply_add(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t half = UINT32_MAX;
    uint64_t low = (a & half) * (b & half);
    uint64_t middle = (a >> 32) * (b & half) + (low >> 32);
    uint64_t other = (a & half) * (b >> 32) + (middle & half);
    struct wide product = {(a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32),
                           other << 32 | (low & half)};
    product.low += c;
    product.high += product.low < c;
    return product;
}

/* The quotient, or UINT64_MAX if that is less; *rest is the remainder then. */
static uint64_t divide(struct wide dividend, uint64_t divisor, uint64_t *rest)
{
    uint64_t quotient = 0;
    if (dividend.high == 0) {
        *rest = dividend.low % divisor;
        return dividend.low / divisor;
    }
    *rest = 0;
    if (dividend.high >= divisor)
        return UINT64_MAX;
    for (int bit = 63; bit >= 0; bit--) {
        bool carry = dividend.high >> 63 != 0;
        dividend.high = dividend.high << 1 | (dividend.low >> bit & 1);
        if (carry || dividend.high >= divisor) {
            dividend.high -= divisor;
            quotient |= UINT64_C(1) << bit;
        }
    }
    *rest = dividend.high;
    return quotient;
}

/* ---- The bucket ---- */

int bide_token_bucket_init(bide_token_bucket *bucket, uint64_t tokens, uint64_t period,
                           uint64_t burst)
{
    if (tokens == 0 || period == 0 || burst == 0)
        return -EINVAL;
    bide_mutex_init(&bucket->turn);
    bide_atomic_init(&bucket->lock, 0);
    bucket->rate = tokens;
    bucket->period = period;
    bucket->burst = burst;
    bucket->level = burst;
    bucket->parts = 0;
    bucket->since = 0;
    return 0;
}

/*
 * What has come by `now`, of which `waited` tokens, at most as many as there can be, were taken by
 * one that waited for them, when they were there: 5. Under the lock. False: they are not there yet.
 */
static bool fill(bide_token_bucket *bucket, uint64_t now, uint64_t waited)
{
    uint64_t parts;
    uint64_t span = now > bucket->since ? now - bucket->since : 0;
    uint64_t come = divide(multiply_add(span, bucket->rate, bucket->parts), bucket->period, &parts);
    if (span == 0)
        come = 0;
    bool is_there = come >= waited || bucket->level >= waited - come;
    bucket->since += span;
    if (is_there) { /* (one of the two has them all, or what they lack is in the other) */
        uint64_t of_level = bucket->level < waited ? bucket->level : waited;
        bucket->level -= of_level;
        come -= waited - of_level;
    }
    if (come < bucket->burst - bucket->level) {
        bucket->level += come;
        bucket->parts = span != 0 ? parts : bucket->parts;
    } else if (span != 0) {
        bucket->level = bucket->burst;
        bucket->parts = 0;
    }
    return is_there;
}

/* When there are `tokens`, more than there are now. Under the lock. 2 */
static uint64_t time_of(const bide_token_bucket *bucket, uint64_t tokens)
{
    uint64_t rest;
    struct wide missing = multiply_add(tokens - bucket->level, bucket->period, 0);
    missing.high -= missing.low < bucket->parts;
    missing.low -= bucket->parts;
    uint64_t span = divide(missing, bucket->rate, &rest);
    if (rest != 0 && span != UINT64_MAX)
        span++;
    return span < BIDE_FOREVER - bucket->since ? bucket->since + span : BIDE_FOREVER;
}

/* Takes them, or says when it would. By the one that has the turn, which may have slept. */
static bool take_now(bide_token_bucket *bucket, uint64_t now, uint64_t tokens, bool has_slept,
                     uint64_t *time)
{
    lock_take(&bucket->lock);
    bool is_there = fill(bucket, now, has_slept ? tokens : 0) && has_slept;
    if (!is_there && bucket->level >= tokens) {
        bucket->level -= tokens;
        is_there = true;
    }
    if (!is_there)
        *time = time_of(bucket, tokens);
    lock_free(&bucket->lock);
    return is_there;
}

bool bide_token_bucket_try_take(bide_token_bucket *bucket, const bide_context *context,
                                uint64_t tokens)
{
    bide_mutex_waiter turn;
    uint64_t time;
    if (tokens > bucket->burst || !bide_mutex_try_lock(&turn, &bucket->turn))
        return false;
    bool taken = take_now(bucket, bide_now(context), tokens, false, &time);
    bide_mutex_unlock(&turn);
    return taken;
}

uint64_t bide_token_bucket_available(bide_token_bucket *bucket, const bide_context *context)
{
    lock_take(&bucket->lock);
    fill(bucket, bide_now(context), 0);
    uint64_t level = bucket->level;
    lock_free(&bucket->lock);
    return level;
}

/* It has taken, and its coroutine will never know. 4 */
static void give_back(bide_frame *frame)
{
    bide_token_take_operation *taking = bide_container_of(frame, bide_token_take_operation, task.frame);
    bide_token_bucket *bucket = taking->bucket;
    lock_take(&bucket->lock);
    if (taking->tokens < bucket->burst - bucket->level)
        bucket->level += taking->tokens;
    else
        bucket->level = bucket->burst;
    lock_free(&bucket->lock);
}

static const bide_coroutine_type taking_type = {.name = "task", .release = give_back};

bide_coroutine_of(taking_type, bide_token_bucket_taking)
{
    bide_begin(bide_token_bucket_taking, bide_token_take_operation * self);
    uint64_t time;
    if (self->tokens > self->bucket->burst)
        bide_return(-EINVAL);
    bide_try(bide_mutex_lock(&self->wait, &self->bucket->turn));
    self->has_turn = true;
    self->has_slept = false;
    while (!take_now(self->bucket, bide_now(bide_this_context()), self->tokens, self->has_slept,
                     &time)) {
        self->has_slept = true;
        bide_try(bide_sleep_until(&self->sleep, time));
    }
    bide_finally();
    if (self->has_turn)
        bide_mutex_unlock(&self->wait);
    bide_end();
}

bide_awaiter *bide_token_bucket_take(bide_token_take_operation *taking, bide_token_bucket *bucket,
                                     uint64_t tokens)
{
    taking->bucket = bucket;
    taking->tokens = tokens;
    taking->has_turn = false;
    return bide_task_init(&taking->task, &bide_token_bucket_taking);
}
