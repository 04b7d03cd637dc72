/*
 * The deque of a pool's worker on which the second halves of its joins wait, to be taken back or to
 * be stolen. Part of join.h. The owner pushes and pops at the bottom, thieves steal at the top. The
 * halves are records in the frames of the functions that join; the deque holds their addresses.
 *
 *     top                  bottom
 *      v                    v
 *     [t  t+1  ...     b-1] b          both count on, modulo the size of the machine's word
 *
 *     bottom    written by the owner alone
 *     top       moved on by one, by whoever takes the half that stands there: a thief, or the owner
 *               if it is the last
 *
 * The owner's push and pop are plain loads and stores on x86. Where other such deques pass a full
 * fence in each pop, here the owner passes the light one, and each thief the heavy one.
 *
 * A half's `state`:
 *
 *     WAITS --stolen--> the address of the thief's deque --it has run--> DONE
 *
 * Why it is right: each half that is pushed is popped or stolen, and never both.
 *
 * 1. Two that take by a compare-exchange never take the same, because `top` only grows. So there is
 *    one case left: the owner pops the half at `b` without one, because it reads a `top` below b.
 * 2. A thief that takes the half at b has read that `top` is b, then passed a heavy fence, and then
 *    read a `bottom` above b. The owner has set `bottom` to b, then passed a light fence, and then
 *    read `top`. If the light fence comes first the thief reads the b that the owner has set, or
 *    what it has set since. If the heavy one comes first, the owner reads a `top` of b or above.
 *    Either way only one of the two takes it.
 * 3. What the thief has read in the slot is the half at `top`. It acquires `bottom`, which the
 *    owner releases with each change, so it reads that half or a later one in the same slot. A later
 *    one is put there only after the owner has acquired a `top` above; then the exchange fails.
 * 4. A half is read only by the thread that has taken it, so it may be gone once it was popped. `top`
 *    would have to go once round, through all values of a size_t, during one steal.
 *
 * A joiner whose half was stolen waits for it. Until then it helps: it steals from the thief, as
 * long as the half is not DONE, and from nobody else. So it runs only what comes from inside the
 * half that it waits for:
 *
 * 5. The thief's deque was empty when it stole the half, because a worker steals only when its own
 *    deque is. (A joiner that waits has an empty one: what it pushed later was joined, and what it
 *    pushed earlier was stolen earlier.) So all that it has pushed between then and DONE comes from
 *    inside the half. What it has pushed after that it has released by a `bottom` after DONE was
 *    stored, so who acquires that `bottom` and then reads `state` reads DONE, and leaves it alone.
 * 6. So nothing runs on top of a joiner that would not run inside that join anyway, on a single
 *    thread. No lock that is held over a join is asked for by what is foreign to it; and the stack
 *    of a worker grows no deeper than the joins are nested.
 * 7. Each waits for what is running, or for what waits inside that: along these edges joins nest
 *    deeper and deeper, so no two wait for each other.
 *
 * Then the joiner sleeps, on `signal` of the thief's deque. Why no wake-up is lost:
 *
 * 8. It sets SLEEPERS in `alert`, passes a heavy fence, and looks again: at the half, and whether
 *    there is something to steal. The thief stores what it has to say (DONE, or a new bottom), passes
 *    a light fence, and looks at `alert`. So either the joiner sees it, or the thief sees SLEEPERS.
 *    Who has seen SLEEPERS takes it out, counts `signal` on and wakes those who sleep there. The
 *    joiner has read `signal` before it set SLEEPERS, so it does not sleep if it was counted on.
 * 9. While it does not yet know the thief, it sleeps likewise on its own deque's, and the thief
 *    looks at the victim's `alert` once it has said who it is.
 *
 * The same word tells the owner that the pool's workers are falling asleep (src/schedule/pool/
 * join.c).
 *
 * Source: D. Chase and Y. Lev, Dynamic Circular Work-Stealing Deque, SPAA 2005; to help only the
 * thief is D. Wagner and B. Calder's leapfrogging, PPoPP 1993.
 */
#ifndef BIDE_DETAIL_JOIN_DEQUE_H
#define BIDE_DETAIL_JOIN_DEQUE_H

#include "bide/detail/tuning.h"
#include "bide/extend/fence.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_join_deque_ bide_join_deque_;

/* States of a half; any other value is the address of a deque. */
enum { BIDE_JOIN_WAITS_, BIDE_JOIN_DONE_ };

/* In `alert`. */
enum { BIDE_JOIN_SLEEPERS_ = 1, BIDE_JOIN_POOL_ = 2 };

/* The second half of a join. */
typedef struct bide_join_half_ {
    void (*function)(void *argument);
    void *argument;
    bide_atomic(uintptr_t) state; /* writer: whoever has stolen it */
} bide_join_half_;

struct bide_join_deque_ {
    /* Writer: the owner. */
    BIDE_ALIGNAS(128) bide_atomic(size_t) bottom;
    bide_atomic(bide_join_half_ *) slots[BIDE_JOIN_SLOTS_];

    /* Writers: all. Seldom, so that the owner finds it in its cache. */
    BIDE_ALIGNAS(128) bide_atomic(size_t) top;
    bide_atomic(uint32_t) alert;
    bide_atomic(uint32_t) signal; /* joiners sleep on it */
};

BIDE_INLINE void bide_join_deque_init_(bide_join_deque_ *deque, uint32_t alert)
{
    bide_atomic_init(&deque->bottom, 0);
    bide_atomic_init(&deque->top, 0);
    bide_atomic_init(&deque->alert, alert);
    bide_atomic_init(&deque->signal, 0);
    for (size_t i = 0; i < BIDE_JOIN_SLOTS_; i++)
        bide_atomic_init(&deque->slots[i], NULL);
}

/* Is it empty? To other threads than the owner's it is a hint. */
BIDE_INLINE bool bide_join_deque_is_empty_(const bide_join_deque_ *deque)
{
    size_t bottom = bide_atomic_load(&deque->bottom, relaxed);
    return (ptrdiff_t)(bottom - bide_atomic_load(&deque->top, relaxed)) <= 0;
}

/* Somebody has set `alert`. */
BIDE_NOINLINE void bide_join_alerted_(bide_join_deque_ *deque);

/* There is news on the deque: a half to steal, the end of one that was stolen, or who has it. */
BIDE_INLINE void bide_join_tell_(bide_join_deque_ *deque)
{
    bide_atomic_fence_light(); /* 8; partner: the heavy fence of who is about to sleep */
    if (BIDE_UNLIKELY(bide_atomic_load(&deque->alert, relaxed) != 0))
        bide_join_alerted_(deque);
}

/*
 * A coroutine that waits on a deque to be gone on with (fork.h) stands there as the address of its
 * header with FORK added, which no half has.
 */
enum { BIDE_JOIN_FORK_ = 1 };

BIDE_INLINE bide_join_half_ *bide_join_of_fork_(void *forking)
{
    return (bide_join_half_ *)(void *)((char *)forking + BIDE_JOIN_FORK_);
}

BIDE_INLINE bool bide_join_is_fork_(const bide_join_half_ *half)
{
    return ((uintptr_t)half & BIDE_JOIN_FORK_) != 0;
}

/* Puts one at the bottom. False: the deque is full. The owner's. */
BIDE_INLINE bool bide_join_put_(bide_join_deque_ *deque, size_t bottom, bide_join_half_ *half)
{
    /* acquire: partner is the thief's exchange; it has read the slot that is written here (3) */
    if (BIDE_UNLIKELY(bottom - bide_atomic_load(&deque->top, acquire) >= BIDE_JOIN_SLOTS_))
        return false;
    bide_atomic_store(&deque->slots[bottom % BIDE_JOIN_SLOTS_], half, relaxed);
    /* release: partner is the thief's load; it reads the slot, and the half */
    bide_atomic_store(&deque->bottom, bottom + 1, release);
    bide_join_tell_(deque);
    return true;
}

/*
 * Puts the half at the bottom. False: the deque is full.
 * Threads: the owner's. Progress: wait-free, unless somebody is woken.
 */
BIDE_INLINE bool bide_join_push_(bide_join_deque_ *deque, size_t bottom, bide_join_half_ *half)
{
    bide_atomic_store(&half->state, BIDE_JOIN_WAITS_, relaxed);
    return bide_join_put_(deque, bottom, half);
}

/* Takes the half at `bottom`, which is the last or was stolen. False: it was stolen. */
BIDE_NOINLINE bool bide_join_pop_last_(bide_join_deque_ *deque, size_t bottom);

/*
 * Takes back the half that was pushed last, of those that were not popped. False: it was stolen.
 * Threads: the owner's. Progress: wait-free.
 */
BIDE_INLINE bool bide_join_pop_(bide_join_deque_ *deque, size_t bottom)
{
    /* release: as in push, for the halves above which there was this one */
    bide_atomic_store(&deque->bottom, bottom, release);
    bide_atomic_fence_light(); /* 2; partner: the heavy fence in steal */
    if (BIDE_LIKELY((ptrdiff_t)(bottom - bide_atomic_load(&deque->top, relaxed)) > 0))
        return true;
    return bide_join_pop_last_(deque, bottom);
}

/*
 * Steals the half at the top of another's deque; NULL: there is none, or another thread was faster.
 * If `awaited` is not NULL, a half that this deque's owner has stolen, only as long as it is not
 * DONE.
 * Threads: any but the owner's. Progress: wait-free, except for the system's barrier.
 */
bide_join_half_ *bide_join_steal_(bide_join_deque_ *victim, const bide_join_half_ *awaited);

/*
 * Runs a half that was stolen from `victim`, on the thread of `own`, whose deque is empty.
 * Threads: the owner's of `own`.
 */
void bide_join_run_(bide_join_deque_ *own, bide_join_deque_ *victim, bide_join_half_ *half);

/*
 * Waits until the half, which was stolen from `own`, has run.
 * Threads: the owner's. Progress: blocks.
 */
BIDE_NOINLINE void bide_join_wait_(bide_join_deque_ *own, bide_join_half_ *half);

/* Calls both, one after the other. */
BIDE_NOINLINE void bide_join_in_turn_(void (*first)(void *argument), void *first_argument,
                                      void (*second)(void *argument), void *second_argument);

/* The deque of the pool's worker whose thread this is; NULL: no pool's. */
extern BIDE_THREAD_LOCAL bide_join_deque_ *bide_join_here_;

BIDE_EXTERN_C_END

#endif
