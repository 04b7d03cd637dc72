/*
 * A sequence barrier: one publisher makes a growing sequence of numbers known, and any number of
 * coroutines and threads wait, each until the number it names has been published. The cursor of a
 * ring buffer. Floor: sync.
 *
 *     bide_sequence_barrier cursor;
 *     bide_sequence_barrier_init(&cursor, bide_sequence_initial());
 *
 *     ring[n % SIZE] = message;                                       the publisher
 *     bide_sequence_barrier_publish(&cursor, n);
 *
 *     bide_try(bide_sequence_barrier_wait_until_published(&self->wait, &cursor, self->next));
 *     while (!bide_sequence_precedes(self->wait.published, self->next))        a waiter
 *         read(ring[self->next++ % SIZE]);
 *
 *     publish(s)      s and all before it are published; waiters that this reaches are resumed
 *     wait(target)    ends at once if target is published; otherwise when it is
 *     close()         waits for what is not published end with -EPIPE, now and later; what is
 *                     published stays published
 *
 * One publisher at a time; waiting and closing from any thread, a stop or a deadline ends a wait
 * (stop.h). Publishing costs a release store, a light fence and a load while nobody waits.
 *
 * Numbers wrap around. Two rules follow:
 *   - A target lies at most half the range ahead of what is published. Further ahead counts as
 *     published already, which is what a producer's first claims rely on.
 *   - From the beginning of a wait to its end, `published` gets less than half the range past the
 *     target. In a ring it cannot, because the consumers hold the producer back. With 32 bits or
 *     more nobody meets the limit. With 8 or 16 (sequence8.h) a waiter that the publisher does not
 *     wait for, and which is overtaken by that much, may sleep until the numbers have come round
 *     again.
 *
 * Sequences are size_t here; for other widths see sequence8.h.
 *
 * Why it is right:
 *
 *     published   ... 6 | 7 | 8 ...      the newest that is published; the publisher writes it
 *     waiters     EMPTY, a list, or SHUT once closed (waiter_list.h)
 *
 * The publisher stores `published` and then looks at the list. A waiter enlists and then looks at
 * `published`. Neither misses the other: that is the list's argument (waiter_list.h, 8 to 11), with
 * `published` as its number. The barrier's own part:
 *
 * 1. A thread that takes waiters to look at them sifts (waiter_list.h). The list says so until the
 *    waiters whose number has not come are put back. So while somebody waits, the publisher never
 *    finds the list empty, no matter which thread holds the waiter. It takes the list itself, or
 *    asks the sifter to look again, and the sifter then sees what was published.
 * 2. close() shuts the list. A later push is refused. A sifter is told when it puts its waiters
 *    back, and ends them with -EPIPE itself. So close() needs no look at `published` that is
 *    ordered with the publisher's, except to tell whose target is reached: it judges those that it
 *    takes by the value that it sees. A publisher in another thread at that moment is concurrent.
 * 3. Seeing a number published means seeing what was written before it: N releases, and the loads
 *    in ready and B acquire. The taker of the list reads `published` after the take, and judges by
 *    that. Otherwise a waiter that enlisted after it had seen a later number than the taker had
 *    would, by the taker's number, lie more than half the range back (waiter_list.h, 13).
 * 4. Nothing of the barrier is touched after the end of a wait: waiter_list.h, 12.
 *
 * Followers, which the sequencers use:
 *
 * 5. The target of a follower is the difference of a counter `next` and a constant `behind`: it
 *    waits for room in a ring of so many slots. The newest sequence to be published is not more
 *    than `behind` - 1 before `next`. A number that is worked out when the wait begins would not do
 *    where numbers come round: before the waiter is enlisted, others may have moved the counter,
 *    and then `published`, on by half the range. So the judge of a follower loads `published`
 *    first, P, and then the counter, C.
 *      a. C is not before P + 1, because the publisher of P had acquired what was claimed up to
 *         there.
 *      b. If P is the last that was published, C is not after P + behind + 1. So the judgement is
 *         right.
 *      c. If C is further on than that, more was published than P. Its publisher finds the follower
 *         in the list, or with the judge, and it is judged again.
 *    So while a follower stays enlisted, the last that was published has left no room. To be told
 *    of room that is gone again does no harm: the follower looks.
 *
 * Which waiters a publish need not look at:
 *
 * 6. The sifter knows the nearest target, so a publish that does not reach that looks at nobody
 *    (waiter_list.h, 14). The nearest is the least of the targets, each counted from the number P
 *    that was published when it was kept, or one that has gone, so less. A target lies at most half
 *    the range ahead of its P. So while `published` goes on from P and has not come to the nearest,
 *    it has come to none. It never gets past the nearest unseen: the publish that reaches it looks
 *    at all waiters, and then the nearest of those that stay is the nearest. A follower's target
 *    moves away only, so what it was is less than what it is.
 *
 * ABA does no harm: the list is pushed onto or taken whole (waiter_list.h).
 *
 * Layout: `published` and `waiters` have a cache line each. Publishing writes the first. Waiters
 * that come and go write the second, and publishers do while they watch.
 *
 * Source: the seed article on the sequence barrier, after cppcoro's sequence_barrier; 1 to 4 answer
 * what they leave open.
 */
#ifndef BIDE_SEQUENCE_BARRIER_H
#define BIDE_SEQUENCE_BARRIER_H

#include "bide/sequence.h"
#include "bide/sync_wait.h"
#include "bide/extend/waiter_list.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_sequence_barrier {
    /* the publisher writes it, all read it */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(bide_sequence) published;
    /* waiters write it, the publisher reads it */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_biased_list waiters;
    /* the sifter's: 6 */
    bide_sequence nearest;
    bool has_nearest;
} bide_sequence_barrier;

/* One wait. The caller's memory, in use until the wait has ended; `published` is its result. */
typedef struct bide_sequence_waiter {
    bide_list_waiter waiting; /* the head */
    bide_sequence_barrier *barrier;
    bide_sequence target;
    bide_sequence published; /* what was published when the wait ended */
    bool follows;            /* it is a follower's */
} bide_sequence_waiter;

/* A wait whose target follows a counter: what lies `behind` it when it is judged (5). */
typedef struct bide_sequence_follower {
    bide_sequence_waiter wait; /* the head */
    bide_atomic(bide_sequence_counter_) * counter;
    bide_sequence behind;
} bide_sequence_follower;

/* The slow halves, in src/sync/sequence_barrier.c. */
void bide_sequence_barrier_wake_(bide_sequence_barrier *barrier, uintptr_t word);
bide_frame *bide_sequence_barrier_suspend_(bide_awaiter *awaiter, bide_frame *frame);
void bide_sequence_barrier_cancel_(bide_awaiter *awaiter);
bool bide_sequence_barrier_withdraw_(bide_awaiter *awaiter);

/*
 * Makes a barrier whose last published sequence is `initial`: bide_sequence_initial(), the one
 * before 0, or another. A barrier is aligned to BIDE_CACHE_LINE, and so is what contains one (for
 * allocated memory: aligned_alloc).
 *
 * The memory may go when no wait is under way and no publish or close runs. A close that found
 * nobody to end touches nothing once others can see that the barrier is closed, so a coroutine that
 * ends because of the close may free it. A publish gives no such promise.
 * Threads: before it is shared. Errors: none. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE void bide_sequence_barrier_init(bide_sequence_barrier *barrier, bide_sequence initial)
{
    bide_atomic_init(&barrier->published, initial);
    bide_biased_list_init(&barrier->waiters);
    barrier->has_nearest = false;
}

/*
 * The sequence that was published last. What its publisher wrote before is visible.
 * Threads: any. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bide_sequence bide_sequence_barrier_last_published(bide_sequence_barrier *barrier)
{
    return bide_atomic_load(&barrier->published, acquire); /* argument 3 */
}

/*
 * Publishes `sequence`, less than half the range ahead of the last, and with it all before it.
 * Waiters for it, or for less, are resumed, each on its own scheduler, in the order in which they
 * came.
 * Threads: the publisher's, one at a time. Errors: none. Suspends: never. Progress: wait-free while
 * nobody waits: a store and a load, and for a while after somebody has waited a full fence too;
 * otherwise lock-free, and linear in the waiters.
 */
BIDE_INLINE void bide_sequence_barrier_publish(bide_sequence_barrier *barrier,
                                               bide_sequence sequence)
{
    bide_atomic_store(&barrier->published, sequence, release); /* N */
    uintptr_t word = bide_biased_list_peek(&barrier->waiters);
    if (BIDE_UNLIKELY(word > BIDE_LIST_SHUT))
        bide_sequence_barrier_wake_(barrier, word);
}

/*
 * Says that nothing more will be published. Waits for a sequence that is published end with 0, now
 * and later, waits for any other with -EPIPE.
 * Threads: any, any number of times. Errors: none. Suspends: never. Progress: lock-free, linear in
 * the waiters.
 */
void bide_sequence_barrier_close(bide_sequence_barrier *barrier);

BIDE_INLINE bool bide_sequence_barrier_ready_(bide_awaiter *awaiter)
{
    bide_sequence_waiter *waiter = (bide_sequence_waiter *)(void *)awaiter;
    waiter->published = bide_sequence_barrier_last_published(waiter->barrier);
    return !bide_sequence_precedes(waiter->published, waiter->target);
}

BIDE_INLINE int bide_sequence_barrier_resume_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0; /* a wait that ends otherwise has been given other operations: stop.h */
}

/*
 * Waits until `target` is published. A target that does not lie ahead of the last published
 * sequence, by 1 to half the range, is published already. `waiter` is the caller's memory, in use
 * until the wait has ended; its member `published` is then the last published sequence, `target` or
 * later. If the wait does not end with 0, `published` is the last that was seen.
 * Threads: any. Errors: -EPIPE (closed before `target`), -ECANCELED, -ETIMEDOUT. Suspends: if
 * `target` is not published. Cancel-safe: yes. Progress: lock-free, but for the system call of a
 * heavy fence (fence.h) when nobody has waited for some time.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_sequence_barrier_wait_until_published(bide_sequence_waiter *waiter,
                                                                     bide_sequence_barrier *barrier,
                                                                     bide_sequence target)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_sequence_barrier_ready_,
        .suspend = bide_sequence_barrier_suspend_,
        .resume = bide_sequence_barrier_resume_,
        .cancel = bide_sequence_barrier_cancel_,
        .withdraw = bide_sequence_barrier_withdraw_,
        .name = "bide_sequence_barrier_wait",
        .attempt = NULL,
    };
    waiter->waiting.listed.awaiter.ops = &ops;
    waiter->barrier = barrier;
    waiter->target = target;
    waiter->follows = false;
    return &waiter->waiting.listed.awaiter;
}

BIDE_INLINE bide_sequence bide_sequence_barrier_followed_(const bide_sequence_follower *waiter)
{
    /* relaxed: 5; what it must not be older than happened before. */
    return (bide_sequence)(bide_atomic_load(waiter->counter, relaxed) - waiter->behind);
}

/*
 * For a wait for room at the gate of a ring: waits until what lies `behind` the counter is
 * published, or has been for a moment, since the counter may have gone on. Others change the
 * counter, which stays until the wait has ended; argument 5 says what must hold. Otherwise as
 * _wait_until_published.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_sequence_barrier_follow_(bide_sequence_follower *waiter, bide_sequence_barrier *barrier,
                              bide_atomic(bide_sequence_counter_) * counter, bide_sequence behind)
{
    waiter->counter = counter;
    waiter->behind = behind;
    bide_await_later(bide_sequence_barrier_wait_until_published(
        &waiter->wait, barrier, bide_sequence_barrier_followed_(waiter)));
    waiter->wait.follows = true;
    return &waiter->wait.waiting.listed.awaiter;
}

/*
 * As _wait_until_published, for a plain thread, which it blocks until `deadline` at most:
 * nanoseconds of bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until. Returns what the
 * wait ends with. *published, unless that is NULL, is what the waiter's member would be.
 * Threads: any, as bide_sync_wait_until. Errors: -EPIPE (closed before `target`), -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_sequence_barrier_wait_until_published_blocking(bide_sequence_barrier *barrier,
                                                                    bide_sequence target,
                                                                    uint64_t deadline,
                                                                    bide_sequence *published)
{
    bide_sequence_waiter waiter;
    int status = bide_sync_wait_until(
        bide_sequence_barrier_wait_until_published(&waiter, barrier, target), deadline);
    if (published != NULL)
        *published = waiter.published;
    return status;
}

BIDE_INLINE void bide_sequence_barrier_destroy_checked_(bide_sequence_barrier *barrier,
                                                        const char *what, const char *function,
                                                        const char *file, unsigned line)
{
    if (!bide_waiter_list_word_is_idle(bide_atomic_load(&barrier->waiters.list.word, relaxed)))
        bide_misuse_(what, function, file, line);
}

#define BIDE_BARRIER_DESTROYED_ "a sequence barrier is destroyed while it is waited for"

/*
 * bide_sequence_barrier_destroy(barrier): the end of its life. Does nothing; where BIDE_DEBUG is 1
 * it tells of misuse if a wait is under way.
 * Threads: one at a time, the only one that still has it. Suspends: never. Progress: wait-free.
 */
#define bide_sequence_barrier_destroy(barrier)                                                    \
    BIDE_END_OF_LIFE_(bide_sequence_barrier_destroy_checked_, (barrier), BIDE_BARRIER_DESTROYED_, \
                      #barrier)

BIDE_EXTERN_C_END

#endif
