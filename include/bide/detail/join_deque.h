/*
 * The deque of a pool's worker on which the second halves of its joins wait, to be taken back or to
 * be stolen. Part of join.h. The halves are records in the frames of the functions that join; the
 * deque holds their addresses. Floor: base.
 *
 *     top                  bottom
 *      v                    v
 *     [t  t+1  ...     b-1] b          both increase, modulo the size of the machine's word
 *
 *     A half's `state`:    WAITS --stolen--> the address of the thief's deque --it has run--> DONE
 *
 * The owner pushes and pops at the bottom, with plain loads and stores on x86 and a light fence.
 * Thieves steal at the top, each with a heavy fence. A joiner whose half was stolen helps its
 * thief, and then sleeps on the thief's `signal`.
 *
 * Why each half is popped or stolen and never both, and no wake-up is lost:
 * docs/internals/join_deque.md. The numbers below refer to that.
 */
#ifndef BIDE_DETAIL_JOIN_DEQUE_H
#define BIDE_DETAIL_JOIN_DEQUE_H

#include "bide/detail/tuning.h"
#include "bide/extend/fence.h"

BIDE_EXTERN_C_BEGIN

#if defined __SANITIZE_ADDRESS__
#define BIDE_JOIN_LOCALS_MOVE_ 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define BIDE_JOIN_LOCALS_MOVE_ 1
#endif
#endif
#ifndef BIDE_JOIN_LOCALS_MOVE_
#define BIDE_JOIN_LOCALS_MOVE_ 0
#endif

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

    /* The owner's alone: the lowest address of the stack that it runs on, and how many bytes from there on are
     * kept from joins; 0: none. */
    uintptr_t stack_low;
    size_t stack_reserve;

    bide_atomic(bide_join_half_ *) slots[BIDE_JOIN_SLOTS_];

    /* Writers: all. Seldom, so that the owner finds it in its cache. */
    BIDE_ALIGNAS(128) bide_atomic(size_t) top;
    bide_atomic(uint32_t) alert;
    bide_atomic(uint32_t) signal; /* joiners sleep on it */
};

BIDE_INLINE void bide_join_deque_init_(bide_join_deque_ *deque, uint32_t alert)
{
    bide_atomic_init(&deque->bottom, 0);
    deque->stack_low = 0;
    deque->stack_reserve = 0;
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
 * A coroutine that waits on a deque to be continued (fork.h) is the address of its
 * header there, with FORK added, which no half has.
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
 * Takes back the half that was pushed last and not popped. False: it was stolen.
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

/*
 * Whether the stack that `here` is on is nearly used up. Stacks grow downwards. An address on a stack of another
 * kind is outside the reserve, whatever it is: then nothing is known.
 */
BIDE_INLINE bool bide_join_is_deep_(const bide_join_deque_ *deque, const void *here)
{
    return (uintptr_t)here - deque->stack_low < deque->stack_reserve;
}

/* The same as bide_join, on a new stack: a thread of its own, for which this one waits. */
BIDE_NOINLINE void bide_join_on_new_stack_(void (*first)(void *argument), void *first_argument,
                                           void (*second)(void *argument), void *second_argument);

/* An address in the caller's frame. (AddressSanitizer keeps locals elsewhere.) */
#if BIDE_JOIN_LOCALS_MOVE_
#define BIDE_JOIN_FRAME_(local) __builtin_frame_address(0)
#else
#define BIDE_JOIN_FRAME_(local) ((const void *)(local))
#endif

/* The deque of the pool's worker whose thread this is; NULL: no pool's. */
extern BIDE_THREAD_LOCAL bide_join_deque_ *bide_join_here_;

BIDE_EXTERN_C_END

#endif
