/*
 * Sequence numbers that wrap around: which of two comes first. Floor: base.
 *
 * For each unsigned type there is a set of the same functions: bide_sequence8_precedes and so on for 8,
 * 16, 32 and 64 bits, and bide_sequence_precedes for size_t. Let half be 2^(bits - 1):
 *
 *     distance(a, b)    how far b lies ahead of a: 1 to half; 0 if it is a or lies behind it
 *     precedes(a, b)    distance(a, b) > 0
 *     difference(a, b)  a - b as a signed number; positive exactly if precedes(b, a)
 *     initial()         the sequence before 0
 *
 * What lies more than half the range ahead counts as lying behind. At exactly half the range each of
 * the two precedes the other, and the signed type of the same width cannot hold the distance: difference
 * then is its greatest value, one less than the true distance, so that its sign agrees with precedes
 * at every distance. (Cast plainly it would be negative there, and a waiter for that sequence would be
 * taken for one whose sequence has come.) distance is exact everywhere; the barriers use no other.
 *
 * All of these: any thread, wait-free, no side effects.
 * Source: the traits of the seed article on sequence barriers, with difference mended.
 */
#ifndef BIDE_SEQUENCE_H
#define BIDE_SEQUENCE_H

#include "bide/atomic.h"

#define BIDE_CONCAT3_(a, b, c) a##b##c
#define BIDE_CONCAT3(a, b, c)  BIDE_CONCAT3_(a, b, c)
#define BIDE_CONCAT2_(a, b)    a##b
#define BIDE_CONCAT2(a, b)     BIDE_CONCAT2_(a, b)

#ifndef BIDE_SEQUENCE_ATOMIC_64
#define BIDE_SEQUENCE_ATOMIC_64 (BIDE_CHECK || ATOMIC_LLONG_LOCK_FREE == 2)
#endif

#define BIDE_SIGNED_8_        int8_t
#define BIDE_SIGNED_16_       int16_t
#define BIDE_SIGNED_32_       int32_t
#define BIDE_SIGNED_64_       int64_t
#define BIDE_SIGNED__         ptrdiff_t /* size_t */
#define BIDE_SIGNED_OF_(bits) BIDE_CONCAT3(BIDE_SIGNED_, bits, _)

/* A counter of which a sequence is the low bits: as wide as a pointer, or as the sequence if that is wider. */
#define BIDE_COUNTER_8_        uintptr_t
#define BIDE_COUNTER_16_       uintptr_t
#define BIDE_COUNTER_32_       uintptr_t
#define BIDE_COUNTER_64_       uint64_t
#define BIDE_COUNTER__         size_t
#define BIDE_COUNTER_OF_(bits) BIDE_CONCAT3(BIDE_COUNTER_, bits, _)

BIDE_EXTERN_C_BEGIN

#define BIDE_SEQUENCE_TEMPLATE "bide/detail/sequence_template.h"
#include "bide/detail/each_sequence.h"

BIDE_EXTERN_C_END

#endif
