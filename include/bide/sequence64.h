/*
 * Sequences of 64 bits. Floor: sync.
 *
 *     #include "bide/sequence64.h"
 *
 * declares the sequence family (sequence.h, sequence_barrier.h, sequence_group.h and both
 * sequencers) once more, for uint64_t. Each name has 64 behind its object:
 *
 *     bide_sequence_barrier64 cursor;
 *     bide_sequence_barrier64_init(&cursor, bide_sequence64_initial());
 *
 * A claim is a bide_claim64, and so on. Contracts, costs and arguments are those of the plain
 * names.
 *
 * For numbers that must not come round where size_t has 32 bits. There, atomics of 64 bits may need
 * a lock; then BIDE_SEQUENCE_ATOMIC_64 is 0, and nothing is declared.
 */
#ifndef BIDE_SEQUENCE64_H
#define BIDE_SEQUENCE64_H

#include "bide/multi_producer_sequencer.h"
#include "bide/single_producer_sequencer.h"

#ifndef BIDE_SEQUENCE_ATOMIC_64
#define BIDE_SEQUENCE_ATOMIC_64 (BIDE_CHECK || ATOMIC_LLONG_LOCK_FREE == 2)
#endif

#if BIDE_SEQUENCE_ATOMIC_64

typedef uint64_t bide_sequence64;
typedef int64_t bide_sequence64_signed;
typedef uint64_t bide_sequence64_counter_;

#define BIDE_SEQUENCE_NAME_(object, rest) object##64##rest
#include "bide/detail/sequence_again.inc"

/* ---- Functions that report where they are misused ---- */

/*
 * The end of a barrier, and of a group.
 * Threads: as bide_sequence_barrier_destroy. Suspends: never. Progress: wait-free.
 */
#define bide_sequence_barrier64_destroy(barrier)                           \
    BIDE_END_OF_LIFE_(bide_sequence_barrier64_destroy_checked_, (barrier), \
                      BIDE_BARRIER_DESTROYED_, #barrier)
#define bide_sequence_group64_destroy(group)                                                  \
    BIDE_END_OF_LIFE_(bide_sequence_group64_destroy_checked_, (group), BIDE_GROUP_DESTROYED_, \
                      #group)

/*
 * Publishing by a single producer, and giving back.
 * Threads: as bide_single_producer_sequencer_publish_range. Errors: none. Suspends: never.
 * Progress: as bide_single_producer_sequencer_publish_range; of giving back, wait-free.
 */
#define bide_single_producer_sequencer64_publish(sequencer, sequence)           \
    bide_single_producer_sequencer64_publish_range_((sequencer), (sequence), 1, \
                                                    BIDE_NOT_CLAIMED_(sequencer))
#define bide_single_producer_sequencer64_publish_range(sequencer, first, count)    \
    bide_single_producer_sequencer64_publish_range_((sequencer), (first), (count), \
                                                    BIDE_NOT_CLAIMED_(sequencer))
#define bide_single_producer_sequencer64_abandon(sequencer, first, count)    \
    bide_single_producer_sequencer64_abandon_((sequencer), (first), (count), \
                                              BIDE_NOT_ABANDONED_(sequencer))
#define bide_single_producer_sequencer64_unclaim(sequencer, count) \
    bide_single_producer_sequencer64_unclaim_((sequencer), (count), BIDE_NOT_GIVEN_BACK_(sequencer))

/*
 * The end of a single-producer sequencer.
 * Threads: as bide_single_producer_sequencer_destroy. Suspends: never. Progress: wait-free.
 */
#define bide_single_producer_sequencer64_destroy(sequencer)                           \
    BIDE_END_OF_LIFE_(bide_single_producer_sequencer64_destroy_checked_, (sequencer), \
                      BIDE_SINGLE_DESTROYED_, #sequencer)

/*
 * Publishing by any of many producers.
 * Threads: as bide_multi_producer_sequencer_publish_range. Errors: none. Suspends: never. Progress:
 * as bide_multi_producer_sequencer_publish_range.
 */
#define bide_multi_producer_sequencer64_publish(sequencer, sequence)           \
    bide_multi_producer_sequencer64_publish_range_((sequencer), (sequence), 1, \
                                                   BIDE_CLAIM_MISUSED_(sequencer))
#define bide_multi_producer_sequencer64_publish_range(sequencer, first, count)    \
    bide_multi_producer_sequencer64_publish_range_((sequencer), (first), (count), \
                                                   BIDE_CLAIM_MISUSED_(sequencer))
#define bide_multi_producer_sequencer64_abandon(sequencer, first, count)    \
    bide_multi_producer_sequencer64_abandon_((sequencer), (first), (count), \
                                             BIDE_CLAIM_MISUSED_(sequencer))

/*
 * The end of a multi-producer sequencer.
 * Threads: as bide_multi_producer_sequencer_destroy. Suspends: never. Progress: wait-free.
 */
#define bide_multi_producer_sequencer64_destroy(sequencer)                           \
    BIDE_END_OF_LIFE_(bide_multi_producer_sequencer64_destroy_checked_, (sequencer), \
                      BIDE_MULTI_DESTROYED_, #sequencer)

#endif

/*
 * Publishing on a barrier; joining a group and leaving it; joining the ring of a multi-producer
 * sequencer.
 * Threads: as bide_sequence_barrier_publish, bide_sequence_group_join and bide_sequence_group_leave.
 * Errors: as bide_multi_producer_sequencer_join. Suspends: as
 * bide_sequence_group_leave. Progress: as bide_sequence_barrier_publish, bide_sequence_group_join and
 * bide_sequence_group_leave.
 */
#define bide_sequence_group64_leave(...) bide_sequence_group64_leave_(__VA_ARGS__)
#if BIDE_DEBUG && !BIDE_CHECK
#define bide_sequence_barrier64_publish(barrier, sequence) \
    bide_sequence_barrier64_publish_checked_((barrier), (sequence), BIDE_GOES_BACK_(barrier))
#define bide_sequence_group64_join(group, member, barrier, after)              \
    bide_sequence_group64_join_checked_((group), (member), (barrier), (after), \
                                        BIDE_JOINS_TWICE_(member))
#define bide_sequence_group64_join_from(group, member, barrier, start, argument)                \
    bide_sequence_group64_join_from_checked_((group), (member), (barrier), (start), (argument), \
                                             BIDE_JOINS_TWICE_(member))
#define bide_sequence_group64_add(group, member, barrier) \
    bide_sequence_group64_add_checked_((group), (member), (barrier), BIDE_JOINS_TWICE_(member))
#define bide_sequence_group64_try_leave(group, member) \
    bide_sequence_group64_try_leave_checked_((group), (member), BIDE_LEAVES_UNJOINED_(member))
#define bide_sequence_group64_leave_blocking(group, member)           \
    (bide_blocks_here_(__func__, __FILE__, __LINE__),                 \
     bide_sequence_group64_leave_blocking_checked_((group), (member), \
                                                   BIDE_LEAVES_UNJOINED_(member)))
#define bide_multi_producer_sequencer64_join(sequencer, member, barrier, start)              \
    bide_multi_producer_sequencer64_join_checked_((sequencer), (member), (barrier), (start), \
                                                  BIDE_JOINS_TWICE_(member))
#else
#define bide_sequence_barrier64_publish(barrier, sequence) \
    bide_sequence_barrier64_publish_((barrier), (sequence))
#define bide_sequence_group64_join(group, member, barrier, after) \
    bide_sequence_group64_join_((group), (member), (barrier), (after))
#define bide_sequence_group64_join_from(group, member, barrier, start, argument) \
    bide_sequence_group64_join_from_((group), (member), (barrier), (start), (argument))
#define bide_sequence_group64_add(group, member, barrier) \
    bide_sequence_group64_add_((group), (member), (barrier))
#define bide_sequence_group64_try_leave(group, member) \
    bide_sequence_group64_try_leave_((group), (member))
#define bide_sequence_group64_leave_blocking(group, member) \
    bide_sequence_group64_leave_blocking_((group), (member))
#define bide_multi_producer_sequencer64_join(sequencer, member, barrier, start) \
    bide_multi_producer_sequencer64_join_((sequencer), (member), (barrier), (start))
#endif

/*
 * For plain threads.
 * Threads: as bide_sequence_barrier_wait_until_published_blocking. Errors: as
 * bide_multi_producer_sequencer_claim_up_to_blocking. Progress: blocks.
 */
#define bide_sequence_barrier64_wait_until_published_blocking(...) \
    BIDE_BLOCKS_(bide_sequence_barrier64_wait_until_published_blocking_(__VA_ARGS__))
#define bide_single_producer_sequencer64_claim_up_to_blocking(...) \
    BIDE_BLOCKS_(bide_single_producer_sequencer64_claim_up_to_blocking_(__VA_ARGS__))
#define bide_single_producer_sequencer64_claim_one_blocking(...) \
    BIDE_BLOCKS_(bide_single_producer_sequencer64_claim_one_blocking_(__VA_ARGS__))
#define bide_single_producer_sequencer64_wait_until_published_blocking(...) \
    BIDE_BLOCKS_(bide_single_producer_sequencer64_wait_until_published_blocking_(__VA_ARGS__))
#define bide_single_producer_sequencer64_drain_blocking(...) \
    BIDE_BLOCKS_(bide_single_producer_sequencer64_drain_blocking_(__VA_ARGS__))
#define bide_multi_producer_sequencer64_claim_up_to_blocking(...) \
    BIDE_BLOCKS_(bide_multi_producer_sequencer64_claim_up_to_blocking_(__VA_ARGS__))
#define bide_multi_producer_sequencer64_claim_one_blocking(...) \
    BIDE_BLOCKS_(bide_multi_producer_sequencer64_claim_one_blocking_(__VA_ARGS__))
#define bide_multi_producer_sequencer64_wait_until_published_blocking(...) \
    BIDE_BLOCKS_(bide_multi_producer_sequencer64_wait_until_published_blocking_(__VA_ARGS__))
#define bide_multi_producer_sequencer64_drain_blocking(...) \
    BIDE_BLOCKS_(bide_multi_producer_sequencer64_drain_blocking_(__VA_ARGS__))

#endif
