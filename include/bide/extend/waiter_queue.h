/*
 * The queue behind every primitive that is handed from one waiter to the next: mutex, semaphore,
 * reader-writer lock, auto-reset event and the like. It is a number, whose meaning the primitive
 * defines, and the operations that wait for the number to admit them: first come, first served. For
 * authors of primitives. Floor: sync.
 *
 *     static bool admit(const bide_queue_waiter *waiter, uintptr_t *value)    // of a lock
 *     {
 *         if (*value != 0)
 *             return false;
 *         *value = BIDE_QUEUE_ONE;
 *         return true;
 *     }
 *     static const bide_waiter_queue_ops rules = {.admit = admit};
 *
 *     return bide_waiter_queue_suspend(&own->waiter, &rules, frame);          // its suspend
 *     bide_waiter_queue_cancel(&own->waiter, &rules);                         // its cancel
 *     while (!bide_waiter_queue_put(&lock->queue, &rules, &state, 0))         // its unlock
 *         ;
 *
 * Any thread may do any of this. Everything is lock-free, except withdrawing, which waits while
 * another thread serves. While nothing waits and no server is active, taking and putting are one
 * compare-exchange of the state each. Removing a waiter takes a constant number of steps, for each
 * call and each waiter that has arrived since the last one. Primitives that announce something to
 * all waiters at once use a waiter_list.h instead.
 *
 * The memory may be freed when every wait on it has ended and its users are done with it. The
 * states, and why it is correct: docs/internals/waiter_queue.md. The numbers below refer to that.
 */
#ifndef BIDE_EXTEND_WAITER_QUEUE_H
#define BIDE_EXTEND_WAITER_QUEUE_H

#include "bide/extend/waiter_list.h"

BIDE_EXTERN_C_BEGIN

enum {
    BIDE_QUEUE_SERVING_ = 1,
    BIDE_QUEUE_NEW_ = 2,
    BIDE_QUEUE_WAITING_ = 4,
    BIDE_QUEUE_CANCEL_ = 8,
    BIDE_QUEUE_CLOSED_ = 16,
    BIDE_QUEUE_ONE = 32 /* what a value of 1 is in the state */
};

/* A state without its flags: a multiple of BIDE_QUEUE_ONE. */
#define BIDE_QUEUE_VALUE(state) ((uintptr_t)(state) & ~(uintptr_t)(BIDE_QUEUE_ONE - 1))

/* The greatest value, in ones. */
#define BIDE_QUEUE_MAX (UINTPTR_MAX / BIDE_QUEUE_ONE)

/*
 * For values that have a number, and above it a phase, which counts how often something has
 * happened that ends all waits; it wraps around. A wait is for the phase that it found to be past.
 */
enum {
    BIDE_QUEUE_NUMBER_BITS = (sizeof(uintptr_t) * CHAR_BIT - 5) / 2,
    BIDE_QUEUE_PHASE_BITS_BELOW = 5 + BIDE_QUEUE_NUMBER_BITS
};
#define BIDE_QUEUE_NUMBER_MAX (((uintptr_t)1 << BIDE_QUEUE_NUMBER_BITS) - 1)
#define BIDE_QUEUE_PHASE_ONE  ((uintptr_t)1 << BIDE_QUEUE_PHASE_BITS_BELOW)

BIDE_INLINE uintptr_t bide_queue_number(uintptr_t state)
{
    return state / BIDE_QUEUE_ONE & BIDE_QUEUE_NUMBER_MAX;
}

BIDE_INLINE uint32_t bide_queue_phase(uintptr_t state)
{
    return (uint32_t)(state >> BIDE_QUEUE_PHASE_BITS_BELOW);
}

/*
 * Is `phase` past in a state that has its phase above so many bits? By no more than half of all
 * phases.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_queue_is_past(uintptr_t state, unsigned bits_below, uint32_t phase)
{
    uintptr_t distance = (state - ((uintptr_t)phase << bits_below)) >> bits_below;
    return distance != 0 && distance <= UINTPTR_MAX >> bits_below >> 1;
}

typedef struct bide_waiter_queue {
    bide_atomic(uintptr_t) state;
    bide_atomic(uintptr_t) arrivals; /* the newest, or 0 */
    bide_atomic(uintptr_t) leaving;  /* the name that came last, or 0, by next_leaving; and SWEEP */
    bide_awaiter *line;              /* of the server: the oldest, or NULL */
} bide_waiter_queue;

/* One wait, at the head of a primitive's waiter. The caller's memory until the wait has ended. */
typedef struct bide_queue_waiter {
    bide_awaiter awaiter;
    bide_waiter_queue *queue;
    /* Of the server: the next older one; in the oldest, the newest; NULL: not in line. */
    bide_awaiter *before;
    uint32_t wants;           /* what the rules judge it by; constant while it waits */
    bide_handshake handshake; /* 6 */
} bide_queue_waiter;

/* The operations of a primitive. Constant. */
typedef struct bide_waiter_queue_ops bide_waiter_queue_ops;
struct bide_waiter_queue_ops {
    /*
     * Is the value such that `waiter`, first in line, may end? Then takes from *value what it
     * needs. A function of these two alone.
     */
    bool (*admit)(const bide_queue_waiter *waiter, uintptr_t *value);

    /*
     * `waiter` was admitted, which left `value`, and has left the line: for a primitive that must
     * know afterwards how it ended. Called by the server, before the waiter can go on. NULL:
     * nothing.
     */
    void (*admitted)(bide_queue_waiter *waiter, uintptr_t value);

    /*
     * `waiter` leaves the line without having been admitted: takes back what its coming has done to
     * *value. NULL: nothing.
     */
    void (*leave)(const bide_queue_waiter *waiter, uintptr_t *value);

    /*
     * Has what `waiter` waits for come, wherever in the line it stands? It takes nothing, and once
     * true this stays so. Such a waiter is admitted too when it is first, and does not leave. A
     * function of these two alone. NULL: never.
     */
    bool (*is_due)(const bide_queue_waiter *waiter, uintptr_t value);

    /*
     * The server leaves, and the line is empty: what becomes of the value? The new one admits no
     * waiter that the other one did not. NULL: it stays.
     */
    uintptr_t (*settle)(uintptr_t value);

    /*
     * Whether `waiter`, which has come, is in front of all other waiters. A function of it alone.
     * NULL: none does.
     */
    bool (*goes_first)(const bide_queue_waiter *waiter);

    /*
     * A put is for the waiters of that moment, whichever of them is asked to stop, and for
     * none that comes later. So a waiter that is admitted ends so, although it was asked to stop by
     * the time that it is seen. And a waiter leaves when the server does: if something was put
     * meanwhile, it is there again, where it stood. When it is closed nothing may be put.
     */
    bool admits_cancelled;

    /*
     * Is given the ended waiters, in that order, instead of their being woken. The server has
     * left by then. NULL: they are woken.
     */
    void (*hand)(const bide_waiter_queue_ops *rules, const bide_awaiter_chain *ended);
};

/*
 * Makes a queue.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_waiter_queue_init(bide_waiter_queue *queue, uintptr_t value)
{
    bide_atomic_init(&queue->state, value);
    bide_atomic_init(&queue->arrivals, (uintptr_t)0);
    bide_atomic_init(&queue->leaving, (uintptr_t)0);
    queue->line = NULL;
}

/*
 * One attempt to change the state from *state, whatever its flags, to `value`, which does not make
 * impossible what was possible. Serves if there are waiters. False: the state is another, now in
 * *state.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
bool bide_waiter_queue_put(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules,
                           uintptr_t *state, uintptr_t value);

/*
 * The suspend of an operation that was not ready: enlists it, unless the queue is closed. Then what
 * came before that is had, by `ready`, and otherwise it ends with -EPIPE. Returns the frame that
 * runs next.
 * Threads: the awaiting coroutine's. Progress: lock-free, linear in the waiters.
 */
bide_frame *bide_waiter_queue_suspend(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules,
                                      bide_frame *frame);

/*
 * Before a wait is enlisted for the first time: it is not in line.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_queue_waiter_start(bide_queue_waiter *waiter)
{
    waiter->before = NULL;
}

/*
 * The halves of bide_waiter_queue_suspend, for a suspend that has something to do in between, when
 * the wait has begun but cannot have ended for the coroutine. After the second the waiter is not
 * touched, unless it returns true: it has ended, and its frame is to go on at once.
 * Threads: the awaiting coroutine's. Progress: lock-free, linear in the waiters.
 */
void bide_waiter_queue_enlist(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules);
bool bide_waiter_queue_arm(bide_queue_waiter *waiter);

/*
 * For the operations' `cancel` and `withdraw`: a constant number of steps for each call and each
 * waiter that has come since the last one. When the latter says false, and what the operation has
 * taken is not to be lost, the primitive gives it back.
 * Threads: any. Suspends: never. Progress: lock-free; withdrawing blocks while another thread
 * serves.
 */
void bide_waiter_queue_cancel(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules);
bool bide_waiter_queue_withdraw(bide_awaiter *awaiter, const bide_waiter_queue_ops *rules);

/*
 * Removes and ends all in line that were asked to stop: for a holder of a waiter that may have been
 * asked while it was nowhere, and that has enlisted it. Not where the rules admit what is
 * cancelled.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_waiter_queue_sweep(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules);

/*
 * Closes it: waits, now and later, end with -EPIPE.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_waiter_queue_close(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules);

/*
 * Does no operation wait? For debug builds' checks, by a caller that knows that it is not used.
 * WAITING may be left over from a waiter that was served before it had said that it had come.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_waiter_queue_is_idle(bide_waiter_queue *queue)
{
    /* relaxed: the caller has seen what was done with it. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    if ((state & BIDE_QUEUE_SERVING_) != 0)
        return false;
    return (state & BIDE_QUEUE_WAITING_) == 0 ||
           (bide_atomic_load(&queue->arrivals, relaxed) == 0 && queue->line == NULL);
}

BIDE_EXTERN_C_END

#endif
