/*
 * A barrier at which a number of parties wait for each other, phase after phase: who has arrived waits until all have,
 * then the next phase begins. (A sequence barrier, sequence_barrier.h, is something else.) Floor: sync.
 *
 *     for (...) {
 *         ... a part of the work ...
 *         bide_try(bide_cyclic_barrier_arrive_and_wait(&self->wait, &barrier));
 *     }
 *
 *     arrive          one party has arrived; the token says in which phase
 *     wait(token)     waits until that phase is complete
 *     arrive_and_wait both at once
 *     arrive_and_drop arrives, and is no party of the phases that follow
 *
 * Whose arrival completes the phase is told so: the last one. A party arrives once in a phase; more is misuse, which
 * shows as a phase that is complete too soon.
 *
 * An arrival is for good, but for that of arrive_and_wait: if its wait is cut short, or its coroutine is destroyed,
 * the arrival is taken back, as if it had never come, and the others wait on for that party, which may come again. If
 * its phase is complete first, it has ended with 0. One of the two, and everybody sees the same: the phase, the
 * arrivals that it lacks, and the number of parties stand in one word.
 *
 * The value of its waiter queue is those three; completing a phase and taking an arrival back modify it. The argument
 * is the queue's (waiter_queue.h). What was written before the arrivals is seen after the phase: each releases, all
 * modifications are read-modify-writes, and whoever finds the phase complete, or completes it, acquires. Phases wrap
 * around; a wait is for one of the last half of all of them.
 *
 * Source: std::barrier of C++20, for tokens and dropping; Barrier of .NET, for taking an arrival back.
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
#define BIDE_CYCLIC_BARRIER_MOST (((uint32_t)1 << BIDE_CYCLIC_BARRIER_BITS_) - 1)

typedef struct bide_cyclic_barrier {
    bide_waiter_queue queue;
} bide_cyclic_barrier;

/* An arrival. */
typedef struct bide_cyclic_barrier_token {
    uint32_t phase;
    bool is_last; /* it has completed the phase */
} bide_cyclic_barrier_token;

/* One wait. The caller's, for the time of the wait. */
typedef struct bide_cyclic_barrier_waiter {
    bide_queue_waiter waiter; /* at the head: it is the awaiter; wants: the phase, and BACK */
    bool is_last;
} bide_cyclic_barrier_waiter;

/* (in `wants`) Its arrival is taken back if it leaves. */
#define BIDE_CYCLIC_BARRIER_BACK_ ((uint32_t)1 << 31)

extern const bide_queue_rules bide_cyclic_barrier_rules_;

BIDE_INLINE void bide_cyclic_barrier_init_(bide_cyclic_barrier *barrier, uint32_t parties,
                                           const char *what, const char *function, const char *file,
                                           unsigned line)
{
    uintptr_t start = ((uintptr_t)parties << BIDE_CYCLIC_BARRIER_BITS_ | parties) * BIDE_QUEUE_ONE;
    if (BIDE_UNLIKELY(parties > BIDE_CYCLIC_BARRIER_MOST))
        bide_misuse_(what, function, file, line);
    bide_waiter_queue_init(&barrier->queue, start);
}

/*
 * Makes a barrier for so many parties, at most BIDE_CYCLIC_BARRIER_MOST. Before it is shared. The memory may go when
 * every wait has ended and nobody will use it; right after the last wait: arriving touches nothing once that can have
 * ended.
 */
#define bide_cyclic_barrier_init(barrier, parties) \
    bide_cyclic_barrier_init_(barrier, parties,    \
                              BIDE_MISUSE_("a barrier has too many parties", #barrier))

/*
 * Arrives, and drops out after that if `drops`. 0; -EPIPE, and nothing has happened: it is closed; -EINVAL: all have
 * arrived, which is misuse. The phase of *token is set in any case.
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
 * One party arrives; returns its token. If it is the last, the phase is complete, the next has begun, and those who
 * wait are woken, in the order in which they came, each on its own scheduler; it sees what was written before the other
 * arrivals. At a closed barrier it does nothing, and is never the last. Touches nothing afterwards. Any thread; does
 * not suspend, and does not run them on the caller's stack while a coroutine is running on it. Lock-free; the last,
 * linear in the waiters.
 */
#define bide_cyclic_barrier_arrive(barrier) \
    bide_cyclic_barrier_arrive_checked_(    \
        barrier, false, BIDE_MISUSE_("more arrive at a barrier than it has parties", #barrier))

/* The same, and from the next phase on there is one party less. Returns whether it was the last. */
#define bide_cyclic_barrier_arrive_and_drop(barrier)                                            \
    (bide_cyclic_barrier_arrive_checked_(                                                       \
         barrier, true, BIDE_MISUSE_("more arrive at a barrier than it has parties", #barrier)) \
         .is_last)

/* Is the phase of `token` complete? What was written before its arrivals is then visible. Any thread; wait-free. */
BIDE_INLINE bool bide_cyclic_barrier_try_wait(bide_cyclic_barrier *barrier,
                                              bide_cyclic_barrier_token token)
{
    /* acquire: partner is the arrivals' release. */
    return bide_queue_is_past(bide_atomic_load(&barrier->queue.state, acquire),
                              BIDE_CYCLIC_BARRIER_BELOW_, token.phase);
}

/* How many parties there are in the next phase. Out of date at once. Any thread; wait-free; gives no order. */
BIDE_INLINE uint32_t bide_cyclic_barrier_parties(bide_cyclic_barrier *barrier)
{
    uintptr_t state = bide_atomic_load(&barrier->queue.state, relaxed);
    return (uint32_t)(state / BIDE_QUEUE_ONE >> BIDE_CYCLIC_BARRIER_BITS_) &
           BIDE_CYCLIC_BARRIER_MOST;
}

/* The operations. */
extern const bide_awaiter_ops bide_cyclic_barrier_wait_ops_;
extern const bide_awaiter_ops bide_cyclic_barrier_arrive_and_wait_ops_;

/*
 * Waits until the phase of `token` is complete. `waiter` is the caller's until the wait has ended. Ends with 0; or with
 * -EPIPE if the barrier was closed first, or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h): the arrival stays. Any
 * thread; suspends if it is not complete; lock-free.
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
 * Arrives, when it is awaited, and waits until the phase is complete. Ends with 0; then bide_cyclic_barrier_is_last
 * says whether this arrival was the last. Or with -EPIPE if the barrier was closed first, or, cut short, with
 * -ECANCELED or -ETIMEDOUT: then it has not arrived. As above otherwise.
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

/* Was the arrival of this wait, which has ended with 0, the one that completed its phase? One of them was. */
BIDE_INLINE bool bide_cyclic_barrier_is_last(const bide_cyclic_barrier_waiter *waiter)
{
    return waiter->is_last;
}

/* Both for a plain thread, until `deadline`: see bide_event_wait_blocking. */
BIDE_INLINE int bide_cyclic_barrier_wait_blocking(bide_cyclic_barrier *barrier,
                                                  bide_cyclic_barrier_token token,
                                                  uint64_t deadline)
{
    bide_cyclic_barrier_waiter waiter;
    return bide_sync_wait_until(bide_cyclic_barrier_wait(&waiter, barrier, token), deadline);
}

BIDE_INLINE int bide_cyclic_barrier_arrive_and_wait_blocking(bide_cyclic_barrier *barrier,
                                                             uint64_t deadline)
{
    bide_cyclic_barrier_waiter waiter;
    return bide_sync_wait_until(bide_cyclic_barrier_arrive_and_wait(&waiter, barrier), deadline);
}

/*
 * Closes it: no phase is completed any more, and who waits for one that is not complete, now and later, ends with
 * -EPIPE. Any thread, more than once; does not suspend; lock-free.
 */
void bide_cyclic_barrier_close(bide_cyclic_barrier *barrier);

BIDE_INLINE void bide_cyclic_barrier_destroy_checked_(bide_cyclic_barrier *barrier,
                                                      const char *what, const char *function,
                                                      const char *file, unsigned line)
{
    if (!bide_waiter_queue_is_idle(&barrier->queue))
        bide_misuse_(what, function, file, line);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if somebody waits. */
#if BIDE_DEBUG
#define bide_cyclic_barrier_destroy(barrier) \
    bide_cyclic_barrier_destroy_checked_(    \
        (barrier), BIDE_MISUSE_("a barrier is destroyed that is waited at", #barrier))
#else
#define bide_cyclic_barrier_destroy(barrier) ((void)(barrier))
#endif

BIDE_EXTERN_C_END

#endif
