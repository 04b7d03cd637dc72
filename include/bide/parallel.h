/*
 * Loops over a range of numbers that a thread pool's workers share. Floor: schedule.
 *
 *     static void scale(void *argument, size_t begin, size_t end)
 *     {
 *         float *values = argument;
 *         for (size_t i = begin; i < end; i++)
 *             values[i] *= 2;
 *     }
 *
 *     bide_parallel_for(0, count, 1024, scale, values);    // on a worker: bide_call_in, or a task
 *
 * The body gets parts of the range, of at most `grain` numbers each; every number is in one part.
 * Take a grain whose part takes some microseconds.
 *
 * A worker forks half of its rest when its deque is empty, because then an idle worker has taken the
 * entries. Otherwise it continues with the next grain. So without helpers a loop forks about once, and
 * otherwise as often as it is stolen from.
 *
 * Any thread may call it. On a thread that is no pool's worker the parts run one after the other. The
 * rules of join.h for halves hold for bodies.
 *
 * Why it is correct: it consists of joins, of two parts that have no number in common.
 */
#ifndef BIDE_PARALLEL_H
#define BIDE_PARALLEL_H

#include "bide/join.h"

BIDE_EXTERN_C_BEGIN

/*
 * Calls body(argument, first, last) for parts of [begin, end), perhaps at once, until each number
 * was in one; last is the number after the part's last. No part has more than `grain` numbers (0
 * is taken for 1). Returns when all have ended. NULL for `body` is misuse, which is detected if BIDE_DEBUG
 * is 1.
 * Threads: any. Progress: blocks, while other workers run parts.
 */
void bide_parallel_for(size_t begin, size_t end, size_t grain,
                       void (*body)(void *argument, size_t begin, size_t end), void *argument);

BIDE_INLINE void bide_parallel_for_checked_(size_t begin, size_t end, size_t grain,
                                            void (*body)(void *argument, size_t begin, size_t end),
                                            void *argument, const char *what, const char *function,
                                            const char *file, unsigned line)
{
    bide_join_functions_(body != NULL, what, function, file, line);
    bide_parallel_for(begin, end, grain, body, argument);
}

#if BIDE_DEBUG && !BIDE_CHECK
#define bide_parallel_for(begin, end, grain, body, argument)                \
    bide_parallel_for_checked_((begin), (end), (grain), (body), (argument), \
                               BIDE_NULL_FUNCTION_("bide_parallel_for"))
#endif

/* How large an accumulator may be, in bytes. */
enum { BIDE_PARALLEL_ACCUMULATOR_MAX = 256 };

/* How parts of a range are made into one value, whose bytes are an accumulator. */
typedef struct bide_reduction {
    size_t size;          /* of an accumulator */
    const void *identity; /* what one begins with; combined with another it changes nothing */

    /* Adds a part of the range to an accumulator that holds what stands left of the part. */
    void (*body)(void *argument, size_t begin, size_t end, void *accumulator);

    /* Adds to `left` what `right` holds, of the numbers right behind. Needs to be associative, and
     * need not be commutative. */
    void (*combine)(void *argument, void *left, const void *right);
} bide_reduction;

/*
 * Makes the numbers of [begin, end) into one value, in *result, which has the accumulator's size
 * and alignment; that of an empty range is the identity. The parts' values are combined in the
 * order of the range. Where parts begin and end differs from run to run, so a sum of floating-point
 * numbers may, in its last digits. Accumulators lie on the stack, aligned as for any type.
 * Threads: any. Errors: -EINVAL (an accumulator is larger than BIDE_PARALLEL_ACCUMULATOR_MAX).
 * Progress: blocks, while other workers run parts.
 */
int bide_parallel_reduce(size_t begin, size_t end, size_t grain, const bide_reduction *reduction,
                         void *argument, void *result);

BIDE_EXTERN_C_END

#endif
