/*
 * The token bucket: takers on any thread take tokens, which arrive at a constant rate. The content at a
 * time is a whole number of parts, each 1/period of a token:
 *
 *     level * period + parts,  where parts < period
 *
 * In a nanosecond `rate` parts arrive. So the elapsed time, times the rate, plus the old parts, is
 * divided by the period: the quotient is new tokens, the remainder the new parts. Nothing is rounded,
 * no matter when it is computed.
 *
 * 1. Products have 128 bits: the product of two 64-bit numbers, plus a 64-bit number, fits.
 * 2. The taker that has the turn sleeps until its tokens have arrived, by a division that is rounded
 *    up, and then tries again. No other taker takes meanwhile, since taking needs the turn. So it
 *    sleeps once, unless the clock of another scheduler is behind.
 * 3. The turn is a mutex that is handed over in order. A cancelled or destroyed taker releases it, and
 *    has taken nothing.
 * 4. The numbers have a lock of their own beside the turn, held for the length of an addition: for
 *    readers without the turn, and for a taker that is destroyed after it has taken, which gives its
 *    tokens back.
 * 5. A taker that sleeps resumes after its tokens have arrived, by less than a nanosecond, or by as
 *    much as its scheduler is late. The bucket was not full meanwhile, since these tokens were still
 *    its own. So they are taken before the content is cut to the burst, and later arrivals are kept.
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
static struct wide wide_multiply_add(uint64_t a, uint64_t b, uint64_t c)
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

/* The quotient, at most UINT64_MAX; *rest is the remainder, or 0 if that was exceeded. */
static uint64_t wide_divide(struct wide dividend, uint64_t divisor, uint64_t *rest)
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
 * Adds what has arrived by `now`. `waited` tokens, at most `burst`, belong to a taker that slept until
 * they were there, and are taken: 5. Under the lock. False: they are not there yet.
 */
static bool token_bucket_fill(bide_token_bucket *bucket, uint64_t now, uint64_t waited)
{
    uint64_t parts;
    uint64_t span = now > bucket->since ? now - bucket->since : 0;
    uint64_t come =
        wide_divide(wide_multiply_add(span, bucket->rate, bucket->parts), bucket->period, &parts);
    if (span == 0)
        come = 0;
    bool is_there = come >= waited || bucket->level >= waited - come;
    bucket->since += span;
    if (is_there) { /* from the old level first, the rest from the arrivals */
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
    bide_assert(bucket->level <= bucket->burst && bucket->parts < bucket->period);
    return is_there;
}

/* The time at which there are `tokens`, which are more than now. Under the lock. 2 */
static uint64_t token_bucket_time(const bide_token_bucket *bucket, uint64_t tokens)
{
    uint64_t rest;
    struct wide missing = wide_multiply_add(tokens - bucket->level, bucket->period, 0);
    missing.high -= missing.low < bucket->parts;
    missing.low -= bucket->parts;
    uint64_t span = wide_divide(missing, bucket->rate, &rest);
    if (rest != 0 && span != UINT64_MAX)
        span++;
    return span < BIDE_FOREVER - bucket->since ? bucket->since + span : BIDE_FOREVER;
}

/* Takes the tokens, or returns false and the time to try again. By the taker that has the turn. */
static bool token_bucket_take_now(bide_token_bucket *bucket, uint64_t now, uint64_t tokens,
                                  bool has_slept, uint64_t *time)
{
    lock_take(&bucket->lock);
    bool is_there = token_bucket_fill(bucket, now, has_slept ? tokens : 0) && has_slept;
    if (!is_there && bucket->level >= tokens) {
        bucket->level -= tokens;
        is_there = true;
    }
    if (!is_there)
        *time = token_bucket_time(bucket, tokens);
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
    bool taken = token_bucket_take_now(bucket, bide_now(context), tokens, false, &time);
    bide_mutex_unlock(&turn);
    return taken;
}

uint64_t bide_token_bucket_available(bide_token_bucket *bucket, const bide_context *context)
{
    lock_take(&bucket->lock);
    token_bucket_fill(bucket, bide_now(context), 0);
    uint64_t level = bucket->level;
    lock_free(&bucket->lock);
    return level;
}

/* The coroutine is destroyed after it has taken, before it resumes. 4 */
static void token_bucket_release(bide_frame *frame)
{
    bide_token_take_operation *taking =
        bide_container_of(frame, bide_token_take_operation, task.frame);
    bide_token_bucket *bucket = taking->bucket;
    lock_take(&bucket->lock);
    if (taking->tokens < bucket->burst - bucket->level)
        bucket->level += taking->tokens;
    else
        bucket->level = bucket->burst;
    lock_free(&bucket->lock);
}

static const bide_coroutine_type token_bucket_taking_type = {.name = "task",
                                                             .release = token_bucket_release};

BIDE_COROUTINE_CODE_(static, token_bucket_taking_type, bide_token_bucket_taking)
static const bide_point bide_token_bucket_taking =
    BIDE_POINT_START_OF(NULL, NULL, BIDE_UNDO_WITHDRAW, &bide_token_bucket_taking_code_);

bide_body(bide_token_bucket_taking)
{
    bide_begin(bide_token_bucket_taking, bide_token_take_operation * self);
    uint64_t time;
    if (self->tokens > self->bucket->burst)
        bide_return(-EINVAL);
    bide_try(bide_mutex_lock(&self->wait, &self->bucket->turn));
    self->has_turn = true;
    self->has_slept = false;
    while (!token_bucket_take_now(self->bucket, bide_now(bide_this_context()), self->tokens,
                                  self->has_slept, &time)) {
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
