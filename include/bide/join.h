/*
 * Fork and join of plain functions: two that may run at once, on the workers of a thread pool.
 * Floor: schedule.
 *
 *     struct fib { unsigned n, result; };
 *
 *     static void fib(void *argument)
 *     {
 *         struct fib *self = argument, one, other;
 *         self->result = self->n;
 *         if (self->n < 2)
 *             return;
 *         one.n = self->n - 1;
 *         other.n = self->n - 2;
 *         bide_join(fib, &one, fib, &other);
 *         self->result = one.result + other.result;
 *     }
 *
 *     struct fib all = {.n = 30};
 *     bide_call_in(pool, fib, &all);        // from a thread that is no worker: blocks
 *
 * Any thread may join. On a pool's worker a join costs a few nanoseconds while no other worker
 * steals: no lock, no atomic read-modify-write, no fence. The second half waits on the worker's
 * deque while the first runs, and idle workers steal the oldest halves first. On any other thread,
 * in a pool of one worker, or with more than BIDE_JOIN_SLOTS_ waiting halves, a join is two calls
 * in sequence.
 *
 * A half returns. It must not leave by longjmp, a C++ exception, or the thread's end: the other
 * half would still run, with a record on the stack that was left.
 */
#ifndef BIDE_JOIN_H
#define BIDE_JOIN_H

#include "bide/detail/join_deque.h"
#include "bide/thread_pool.h"

BIDE_EXTERN_C_BEGIN

/*
 * Runs first(first_argument) and second(second_argument), perhaps at once, and returns when both
 * have ended. The writes of both are visible then. `first` runs on the calling thread, unless its
 * stack is nearly used up (below); `second` on the same or on another worker's. NULL for one of
 * them is misuse, which is detected if BIDE_DEBUG is 1; so it is below.
 * Threads: any. Progress: blocks, while another worker runs `second`.
 */
BIDE_INLINE void bide_join(void (*first)(void *argument), void *first_argument,
                           void (*second)(void *argument), void *second_argument)
{
    bide_join_deque_ *deque = bide_join_here_;
    bide_join_half_ half;
    half.function = second;
    half.argument = second_argument;
    if (BIDE_UNLIKELY(deque == NULL)) {
        bide_join_in_turn_(first, first_argument, second, second_argument);
        return;
    }
    size_t bottom = bide_atomic_load(&deque->bottom, relaxed);
    if (BIDE_UNLIKELY(bide_join_is_deep_(deque, BIDE_JOIN_FRAME_(&half)))) {
        bide_join_on_new_stack_(first, first_argument, second, second_argument);
        return;
    }
    if (BIDE_UNLIKELY(!bide_join_push_(deque, bottom, &half))) {
        bide_join_in_turn_(first, first_argument, second, second_argument);
        return;
    }
    first(first_argument);
    if (BIDE_LIKELY(bide_join_pop_(deque, bottom)))
        second(second_argument);
    else
        bide_join_wait_(deque, &half);
}

/*
 * Runs function(argument) on one of the pool's workers, where its joins fork, and returns when it
 * has ended. On a worker of that pool it is a call. The pool may not be destroyed meanwhile: that is
 * misuse, and told.
 * Threads: any. Progress: blocks.
 */
void bide_call_in(bide_thread_pool *pool, void (*function)(void *argument), void *argument);

/*
 * bide_join on one of the pool's workers, by bide_call_in.
 * Threads: any. Progress: blocks.
 */
void bide_join_in(bide_thread_pool *pool, void (*first)(void *argument), void *first_argument,
                  void (*second)(void *argument), void *second_argument);

/* ---- In debug builds: NULL for a function is misuse ---- */

BIDE_INLINE void bide_join_functions_(bool given, const char *what, const char *function,
                                      const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(!given))
        bide_misuse_(what, function, file, line);
}

BIDE_INLINE void bide_join_checked_(void (*first)(void *argument), void *first_argument,
                                    void (*second)(void *argument), void *second_argument,
                                    const char *what, const char *function, const char *file,
                                    unsigned line)
{
    bide_join_functions_(first != NULL && second != NULL, what, function, file, line);
    bide_join(first, first_argument, second, second_argument);
}

BIDE_INLINE void bide_call_in_checked_(bide_thread_pool *pool, void (*function)(void *argument),
                                       void *argument, const char *what, const char *where,
                                       const char *file, unsigned line)
{
    bide_join_functions_(function != NULL, what, where, file, line);
    bide_call_in(pool, function, argument);
}

BIDE_INLINE void bide_join_in_checked_(bide_thread_pool *pool, void (*first)(void *argument),
                                       void *first_argument, void (*second)(void *argument),
                                       void *second_argument, const char *what,
                                       const char *function, const char *file, unsigned line)
{
    bide_join_functions_(first != NULL && second != NULL, what, function, file, line);
    bide_join_in(pool, first, first_argument, second, second_argument);
}

#if BIDE_DEBUG && !BIDE_CHECK
#define bide_join(first, first_argument, second, second_argument)              \
    bide_join_checked_((first), (first_argument), (second), (second_argument), \
                       BIDE_NULL_FUNCTION_("bide_join"))
#define bide_call_in(pool, function, argument) \
    bide_call_in_checked_((pool), (function), (argument), BIDE_NULL_FUNCTION_("bide_call_in"))
#define bide_join_in(pool, first, first_argument, second, second_argument)                \
    bide_join_in_checked_((pool), (first), (first_argument), (second), (second_argument), \
                          BIDE_NULL_FUNCTION_("bide_join_in"))
#endif

/*
 * Why it is correct: bide/detail/join_deque.h, and src/schedule/pool/join.c.
 */

/*
 * If the second half was stolen when the first has ended, the worker runs functions that the thief
 * has forked inside that half, and nothing else. If there are none, it sleeps. So unrelated work
 * never requests a lock that is held over a join; a thread-local variable that the second half uses
 * is another thread's; and the stack grows no deeper than the joins are nested. The worker runs no
 * coroutines in the meantime. A coroutine of the pool may join too: it does not suspend, and keeps
 * its worker until both halves have ended.
 *
 * Joins that nest are calls that nest, and use the worker's C stack, whether halves are stolen or not. When three
 * quarters of it are used, a join continues with a new stack: on a thread of its own, in the
 * worker's place, while the worker waits. Each join looks how much is used. So depth is bounded by
 * memory. That holds if the code between one join and the next uses less than a tenth of the stack,
 * and does not depend on the thread (thread-local variables, locks that know their owner). The last
 * quarter has to hold that twice, since a join looks at an address anywhere in its function's
 * frame, and then the start of a thread. It costs the start of a thread each time that joins cross
 * that depth; `deep_joins` of bide_thread_pool_worker_stats counts these. If there is no such
 * thread, the join is one on the old stack. To make it rarer give the pool's threads larger stacks
 * (`stack_size` of bide_thread_pool_options), or fork coroutines (fork.h), whose frames are not on
 * the C stack. Joins on threads that are no worker's, and on pools of loops (io_pool.h), have the
 * thread's stack alone.
 */

BIDE_EXTERN_C_END

#endif
