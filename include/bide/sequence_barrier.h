/*
 * A sequence barrier: one publisher makes a growing sequence of numbers known. Any number of
 * coroutines and threads wait, each until the number that it names has been published. It is the
 * cursor of a ring buffer. Floor: sync.
 *
 *     bide_sequence_barrier_init(&cursor, bide_sequence_initial());
 *
 *     ring[n % SIZE] = message;                                       the publisher
 *     bide_sequence_barrier_publish(&cursor, n);
 *
 *     bide_try(bide_sequence_barrier_wait_until_published(&self->wait, &cursor, self->next));
 *     while (!bide_sequence_precedes(self->wait.published, self->next))        a waiter
 *         read(ring[self->next++ % SIZE]);
 *
 *     publish(s)      s and all numbers before it are published; waiters that this reaches resume
 *     wait(target)    returns at once if target is published; otherwise when it is
 *     close()         waits for unpublished numbers end with -EPIPE, now and later
 *
 * One publisher at a time. Any thread may wait and close; a stop or a deadline ends a wait
 * (stop.h). Publishing costs a release store, a light fence and a load while nothing waits.
 *
 * Numbers wrap around. A target is at most half the range ahead of `published`; further ahead
 * counts as published already. During a wait `published` must get less than half the range past the
 * target. In a ring it cannot get further. With 8 or 16 bits (sequence8.h) an overtaken waiter that
 * the publisher does not wait for may sleep until the numbers have come round again.
 *
 * Sequences are size_t here; sequence8.h has other widths. Why it is correct:
 * docs/internals/sequence_barrier.md. The numbers below refer to that.
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
 * The memory may be freed when no wait is under way and no publish or close runs. A close that found
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
 * The sequence that was published last. Writes that its publisher made before are visible.
 * Threads: any. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bide_sequence bide_sequence_barrier_last_published(bide_sequence_barrier *barrier)
{
    return bide_atomic_load(&barrier->published, acquire); /* argument 3 */
}

/* Behind the macro of the same name. */
BIDE_INLINE void bide_sequence_barrier_publish_(bide_sequence_barrier *barrier,
                                                bide_sequence sequence)
{
    bide_atomic_store(&barrier->published, sequence, release); /* N */
    uintptr_t word = bide_biased_list_peek(&barrier->waiters);
    if (BIDE_UNLIKELY(word > BIDE_LIST_SHUT))
        bide_sequence_barrier_wake_(barrier, word);
}

BIDE_INLINE void bide_sequence_barrier_publish_checked_(bide_sequence_barrier *barrier,
                                                        bide_sequence sequence, const char *what,
                                                        const char *function, const char *file,
                                                        unsigned line)
{
    /* relaxed: it is the publisher's own. */
    bide_sequence last = bide_atomic_load(&barrier->published, relaxed);
    if (BIDE_UNLIKELY(bide_sequence_difference(sequence, last) < 0))
        bide_misuse_(what, function, file, line);
    bide_sequence_barrier_publish_(barrier, sequence);
}

#define BIDE_GOES_BACK_(barrier) \
    BIDE_MISUSE_("a sequence is published that lies before the last published one", #barrier)

/*
 * bide_sequence_barrier_publish(barrier, sequence): publishes `sequence`, less than half the range ahead
 * of the last, and with it all before it. Waiters for it, or for less, are resumed, each on its own
 * scheduler, in the order in which they came. Going back is misuse, which is detected if BIDE_DEBUG
 * is 1; publishing the last one again changes nothing.
 * Threads: the publisher's, one at a time. Errors: none. Suspends: never. Progress: wait-free while
 * nobody waits: a store and a load, and for a while after somebody has waited a full fence too;
 * otherwise lock-free, and linear in the waiters.
 */
#if BIDE_DEBUG && !BIDE_CHECK
#define bide_sequence_barrier_publish(barrier, sequence) \
    bide_sequence_barrier_publish_checked_((barrier), (sequence), BIDE_GOES_BACK_(barrier))
#else
#define bide_sequence_barrier_publish(barrier, sequence) \
    bide_sequence_barrier_publish_((barrier), (sequence))
#endif

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
        .undo = BIDE_UNDO_WITHDRAW,
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
 * Threads: any, as bide_sync_wait_until, but not that of a loop (sync_wait.h). Errors: -EPIPE
 * (closed before `target`), -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_sequence_barrier_wait_until_published_blocking(...) \
    BIDE_BLOCKS_(bide_sequence_barrier_wait_until_published_blocking_(__VA_ARGS__))

BIDE_INLINE int bide_sequence_barrier_wait_until_published_blocking_(bide_sequence_barrier *barrier,
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
 * bide_sequence_barrier_destroy(barrier): the end of its life. Does nothing; if BIDE_DEBUG is 1
 * it reports misuse if a wait is under way.
 * Threads: one at a time, the only one that still has it. Suspends: never. Progress: wait-free.
 */
#define bide_sequence_barrier_destroy(barrier)                                                    \
    BIDE_END_OF_LIFE_(bide_sequence_barrier_destroy_checked_, (barrier), BIDE_BARRIER_DESTROYED_, \
                      #barrier)

BIDE_EXTERN_C_END

#endif
