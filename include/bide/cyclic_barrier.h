/*
 * A barrier at which a given number of parties wait for each other, phase after phase. When the last
 * party has arrived, the waits of all parties end and the next phase begins. Floor: sync.
 *
 *     bide_cyclic_barrier_init(&barrier, 4);          // four parties
 *
 *     for (...) {                                     // in each party
 *         ... a part of the work ...
 *         bide_try(bide_cyclic_barrier_arrive_and_wait(&self->wait, &barrier));
 *     }
 *
 *     arrive           counts one arrival, and returns a token that names the phase
 *     wait(token)      waits until that phase is complete
 *     arrive_and_wait  both at once
 *     arrive_and_drop  arrives; later phases have one party less
 *     close            waits for an incomplete phase end with -EPIPE, now and later
 *
 * Any thread may call these, and any thread may be a party. Each arrival reports whether it was the
 * last one and so completed the phase. A party arrives once in a phase. Arriving more often is
 * misuse: the phase then completes too soon.
 *
 * An arrival is final, except that of arrive_and_wait. If that wait is cancelled, or its coroutine
 * is destroyed, the arrival is taken back as if it had never happened. The other parties then still
 * wait for this one, which may arrive again. If the phase completes first, the wait ends with 0.
 *
 * For a cursor of published numbers, see sequence_barrier.h. Why it is correct: see the end of this
 * file.
 */
#ifndef BIDE_CYCLIC_BARRIER_H
#define BIDE_CYCLIC_BARRIER_H

#include "bide/errors.h"
#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

/* The value: the phase, the parties, and the arrivals that are lacking. */
enum {
    BIDE_CYCLIC_BARRIER_BITS_ = sizeof(uintptr_t) > 4 ? 20 : 9, /* of each of the latter */
    BIDE_CYCLIC_BARRIER_BELOW_ = 5 + 2 * BIDE_CYCLIC_BARRIER_BITS_
};

/* The greatest number of parties: 2^20 - 1 where a word has 64 bits, 2^9 - 1 where it has 32. */
#define BIDE_CYCLIC_BARRIER_MAX (((uint32_t)1 << BIDE_CYCLIC_BARRIER_BITS_) - 1)

typedef struct bide_cyclic_barrier {
    bide_waiter_queue queue;
} bide_cyclic_barrier;

/* An arrival. */
typedef struct bide_cyclic_barrier_token {
    uint32_t phase;
    bool is_last; /* it has completed the phase */
} bide_cyclic_barrier_token;

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_cyclic_barrier_waiter {
    bide_queue_waiter waiter; /* at the head: it is the awaiter; wants: the phase, and BACK */
    bool is_last;
} bide_cyclic_barrier_waiter;

/* (in `wants`) Its arrival is taken back if it leaves. */
#define BIDE_CYCLIC_BARRIER_BACK_ ((uint32_t)1 << 31)

extern const bide_waiter_queue_ops bide_cyclic_barrier_ops_;

BIDE_INLINE void bide_cyclic_barrier_init_(bide_cyclic_barrier *barrier, uint32_t parties,
                                           const char *what, const char *function, const char *file,
                                           unsigned line)
{
    uintptr_t start = ((uintptr_t)parties << BIDE_CYCLIC_BARRIER_BITS_ | parties) * BIDE_QUEUE_ONE;
    if (BIDE_UNLIKELY(parties - 1 >= BIDE_CYCLIC_BARRIER_MAX))
        bide_misuse_(what, function, file, line);
    bide_waiter_queue_init(&barrier->queue, start);
}

/*
 * Makes a barrier for so many parties, 1 to BIDE_CYCLIC_BARRIER_MAX; others are misuse. The memory may be freed when
 * every wait has ended and nobody will use it; so right after the last wait, because arriving
 * touches nothing once that can have ended.
 * Threads: before it is shared. Progress: wait-free.
 */
#define bide_cyclic_barrier_init(barrier, parties) \
    bide_cyclic_barrier_init_(barrier, parties,    \
                              BIDE_MISUSE_("a barrier has no parties, or too many", #barrier))

/*
 * Arrives, and drops out after that if `drops`. 0; -EPIPE, and nothing has happened: it is closed;
 * -EINVAL: all have arrived, which is misuse. The phase of *token is set in any case.
 */
int bide_cyclic_barrier_arrive_(bide_cyclic_barrier *barrier, bool drops,
                                bide_cyclic_barrier_token *token);

BIDE_INLINE bide_cyclic_barrier_token
bide_cyclic_barrier_arrive_checked_(bide_cyclic_barrier *barrier, bool drops, const char *what,
                                    const char *function, const char *file, unsigned line)
{
    bide_cyclic_barrier_token token;
    if (BIDE_UNLIKELY(bide_cyclic_barrier_arrive_(barrier, drops, &token) == -EINVAL))
        bide_misuse_(what, function, file, line);
    return token;
}

/*
 * One party arrives; returns its token. If it is the last, the phase is complete, the next has
 * begun, and the waiters are woken in the order in which they came. Each resumes on its own
 * scheduler, but not on the caller's stack while a coroutine is running on it. Writes made before
 * the other arrivals are visible to the last party. At a closed barrier this does nothing, and is
 * never the last. Touches nothing afterwards.
 * Threads: any. Suspends: never. Progress: lock-free; the last, linear in the waiters.
 */
#define bide_cyclic_barrier_arrive(barrier) \
    bide_cyclic_barrier_arrive_checked_(    \
        barrier, false, BIDE_MISUSE_("more arrive at a barrier than it has parties", #barrier))

/*
 * The same, and from the next phase on there is one party less. Returns whether it was the last.
 * Threads: any. Suspends: never. Progress: as bide_cyclic_barrier_arrive.
 */
#define bide_cyclic_barrier_arrive_and_drop(barrier)                                            \
    (bide_cyclic_barrier_arrive_checked_(                                                       \
         barrier, true, BIDE_MISUSE_("more arrive at a barrier than it has parties", #barrier)) \
         .is_last)

/*
 * Is the phase of `token` complete? What was written before its arrivals is then visible.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_cyclic_barrier_try_wait(bide_cyclic_barrier *barrier,
                                              bide_cyclic_barrier_token token)
{
    /* acquire: partner is the arrivals' release. */
    return bide_queue_is_past(bide_atomic_load(&barrier->queue.state, acquire),
                              BIDE_CYCLIC_BARRIER_BELOW_, token.phase);
}

/*
 * How many parties there are in the next phase. The answer is out of date at once. Gives no order.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE uint32_t bide_cyclic_barrier_parties(bide_cyclic_barrier *barrier)
{
    uintptr_t state = bide_atomic_load(&barrier->queue.state, relaxed);
    return (uint32_t)(state / BIDE_QUEUE_ONE >> BIDE_CYCLIC_BARRIER_BITS_) &
           BIDE_CYCLIC_BARRIER_MAX;
}

/* The operations. */
extern const bide_awaiter_ops bide_cyclic_barrier_wait_ops_;
extern const bide_awaiter_ops bide_cyclic_barrier_arrive_and_wait_ops_;

/*
 * Waits until the phase of `token` is complete. `waiter` must stay until the wait has ended. The
 * arrival stays, however the wait ends.
 * Threads: any. Errors: -EPIPE (closed first), -ECANCELED, -ETIMEDOUT. Suspends: if it is not
 * complete. Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_cyclic_barrier_wait(bide_cyclic_barrier_waiter *waiter,
                                                   bide_cyclic_barrier *barrier,
                                                   bide_cyclic_barrier_token token)
{
    waiter->waiter.awaiter.ops = &bide_cyclic_barrier_wait_ops_;
    waiter->waiter.queue = &barrier->queue;
    waiter->waiter.wants = token.phase;
    waiter->is_last = token.is_last;
    return &waiter->waiter.awaiter;
}

/*
 * Arrives, when it is awaited, and waits until the phase is complete. After a wait that ended with
 * 0 bide_cyclic_barrier_is_last says whether this arrival was the last; after one that was cut
 * short it has not arrived. `waiter` must stay until the wait has ended.
 *
 * It cannot be a case of a select, which refuses it: once the phase is complete the other parties have
 * gone on, and the arrival cannot be taken back. Arrive, and select on bide_cyclic_barrier_wait.
 * Threads: any. Errors: -EPIPE (closed first), -ECANCELED, -ETIMEDOUT. Suspends: unless it is the
 * last. Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_cyclic_barrier_arrive_and_wait(bide_cyclic_barrier_waiter *waiter,
                                                              bide_cyclic_barrier *barrier)
{
    waiter->waiter.awaiter.ops = &bide_cyclic_barrier_arrive_and_wait_ops_;
    waiter->waiter.queue = &barrier->queue;
    waiter->is_last = false;
    return &waiter->waiter.awaiter;
}

/*
 * Whether the arrival of this wait, which has ended with 0, completed its phase. Exactly one
 * arrival of a phase did.
 * Threads: the waiter's. Progress: wait-free.
 */
BIDE_INLINE bool bide_cyclic_barrier_is_last(const bide_cyclic_barrier_waiter *waiter)
{
    return waiter->is_last;
}

/*
 * Both for a plain thread, which they block until `deadline` at most: see bide_event_wait_blocking.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_cyclic_barrier_wait; -ETIMEDOUT
 * (the deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_cyclic_barrier_wait_blocking(bide_cyclic_barrier *barrier,
                                                  bide_cyclic_barrier_token token,
                                                  uint64_t deadline)
{
    bide_cyclic_barrier_waiter waiter;
    return bide_sync_wait_until(bide_cyclic_barrier_wait(&waiter, barrier, token), deadline);
}

#define bide_cyclic_barrier_wait_blocking(...) \
    BIDE_BLOCKS_(bide_cyclic_barrier_wait_blocking(__VA_ARGS__))

BIDE_INLINE int bide_cyclic_barrier_arrive_and_wait_blocking(bide_cyclic_barrier *barrier,
                                                             uint64_t deadline)
{
    bide_cyclic_barrier_waiter waiter;
    return bide_sync_wait_until(bide_cyclic_barrier_arrive_and_wait(&waiter, barrier), deadline);
}

#define bide_cyclic_barrier_arrive_and_wait_blocking(...) \
    BIDE_BLOCKS_(bide_cyclic_barrier_arrive_and_wait_blocking(__VA_ARGS__))

/*
 * Closes it: no phase is completed any more, and waits for one that is not complete end with
 * -EPIPE, now and later. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_cyclic_barrier_close(bide_cyclic_barrier *barrier);

BIDE_INLINE void bide_cyclic_barrier_destroy_checked_(bide_cyclic_barrier *barrier,
                                                      const char *what, const char *function,
                                                      const char *file, unsigned line)
{
    if (!bide_waiter_queue_is_idle(&barrier->queue))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_cyclic_barrier_destroy(barrier)                           \
    BIDE_END_OF_LIFE_(bide_cyclic_barrier_destroy_checked_, (barrier), \
                      "a barrier is destroyed while it is waited for", #barrier)

/*
 * Why it is correct: it is a waiter queue; waiter_queue.md has the argument. Its value is the phase,
 * the number of parties, and the arrivals that the phase lacks, all in one word. Completing a phase
 * and taking an arrival back modify it. Writes made before the arrivals are visible after the
 * phase: each releases, all modifications are read-modify-writes, and finding the phase complete,
 * or completing it, acquires. Phases wrap around; a wait is for one of the last half of all of
 * them.
 *
 * Source: std::barrier of C++20, for tokens and dropping; Barrier of .NET, for taking an arrival
 * back.
 */

BIDE_EXTERN_C_END

#endif
