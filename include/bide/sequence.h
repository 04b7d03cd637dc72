/*
 * Sequences: numbers that only grow, and wrap around. The functions decide which of two comes
 * first, and by how much. Floor: base.
 *
 *     bide_sequence next = bide_sequence_initial() + 1; // 0
 *     while (!bide_sequence_precedes(published, next))
 *         read(next++);
 *
 * A bide_sequence is a size_t. With half = 2^(bits - 1) the functions are:
 *
 *     initial()         the sequence before 0
 *     distance(a, b)    how far b is ahead of a: 1 to half; 0 if it equals a, or is behind it
 *     precedes(a, b)    whether b is ahead of a: distance(a, b) > 0
 *     difference(a, b)  a - b as a signed number; positive exactly if precedes(b, a)
 *
 * A number more than half the range ahead counts as behind. Any thread may call the functions; they
 * depend on their arguments alone, and cannot fail.
 *
 * To get another width, include "bide/sequence8.h" (or 16, 32, 64): it declares this header and all
 * headers built on it for that width. So results of arithmetic are cast to bide_sequence here and
 * in those headers: it may be narrower than an int.
 */
#ifndef BIDE_SEQUENCE_H
#define BIDE_SEQUENCE_H

#include "bide/atomic.h"

BIDE_EXTERN_C_BEGIN

#ifndef BIDE_SEQUENCE_NAME_ /* (sequence8.h and its like say for their width what these are) */
typedef size_t bide_sequence;
typedef ptrdiff_t bide_sequence_signed;
/* A counter of which a sequence is the low bits: as wide as a pointer, or as it if wider. */
typedef size_t bide_sequence_counter_;
#endif

#define BIDE_SEQUENCE_HALF_ ((bide_sequence)((bide_sequence)-1 / 2 + 1))

/*
 * The sequence before 0: what is published before anything is.
 * Threads: any. Errors: none. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bide_sequence bide_sequence_initial(void)
{
    return (bide_sequence)-1;
}

/*
 * How far `b` lies ahead of `a`: 1 to half the range; 0 if it is `a`, or lies behind it.
 * Threads: any. Errors: none. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bide_sequence bide_sequence_distance(bide_sequence a, bide_sequence b)
{
    bide_sequence ahead = (bide_sequence)(b - a);
    return ahead <= BIDE_SEQUENCE_HALF_ ? ahead : 0;
}

/*
 * Whether `a` comes before `b`.
 * Threads: any. Errors: none. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bool bide_sequence_precedes(bide_sequence a, bide_sequence b)
{
    /* ahead - 1 wraps for ahead == 0, which does not precede. */
    return (bide_sequence)(b - a - 1) < BIDE_SEQUENCE_HALF_;
}

/*
 * `a` - `b`, signed; at exactly half the range the greatest value (1).
 * Threads: any. Errors: none. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bide_sequence_signed bide_sequence_difference(bide_sequence a, bide_sequence b)
{
    bide_sequence ahead = (bide_sequence)(a - b);
    if (ahead < BIDE_SEQUENCE_HALF_)
        return (bide_sequence_signed)ahead;
    if (ahead == BIDE_SEQUENCE_HALF_)
        return (bide_sequence_signed)(BIDE_SEQUENCE_HALF_ - 1);
    /* -(distance behind), in a way that stays within the signed type */
    return (bide_sequence_signed)(-(bide_sequence_signed)((bide_sequence)-1 - ahead) - 1);
}

/*
 * Why it is correct:
 *
 * 1. At exactly half the range each of two sequences precedes the other. The signed type of the
 *    same width cannot hold that distance, so difference then is its greatest value, one less than
 *    the true distance. Thus its sign agrees with precedes at every distance. A plain cast would be
 *    negative there, and a wait for that sequence would end at once.
 * 2. distance and precedes are exact everywhere. Code built on sequences uses no other.
 *
 * Source: the traits of the seed article on sequence barriers, whose difference is wrong at half
 * the range.
 */

BIDE_EXTERN_C_END

#endif
