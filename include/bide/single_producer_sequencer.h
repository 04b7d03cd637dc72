/*
 * A single-producer sequencer: hands out the slots of a ring to its one producer, in order, and
 * never a slot that a consumer may still read. Floor: sync.
 *
 *     bide_single_producer_sequencer_init(&sequencer, &cursor, &gate, SIZE);
 *
 *     bide_try(bide_single_producer_sequencer_claim_up_to(&self->claim, &sequencer, 16));
 *     for (bide_sequence i = 0; i < self->claim.count; i++)
 *         fill(bide_ring_at(&ring, self->claim.first + i));
 *     bide_single_producer_sequencer_publish_range(&sequencer, self->claim.first,
 *                                                  self->claim.count);
 *
 *              consumed (gate)          published (cursor)     next
 *     ... free | in the consumers' hands      | claimed          | free ...
 *              <---------------- at most `size` ---------------->
 *
 *     cursor      a sequence barrier: consumers wait on it for published slots
 *     gate        a group of the last consumers' barriers: the producer does not overtake it
 *     claim       takes the next numbers, once their slots are free
 *     publish     in order: all claimed numbers up to one
 *     abandon     the same, for slots that could not be filled: consumers skip them
 *     give back   the last claimed numbers, as if they had not been claimed
 *     close       consumers read published slots; claims end with -EPIPE
 *
 * One thread at a time is the producer: it claims, publishes and closes. Consumers wait on the
 * cursor, from any thread. A claim costs a few plain loads while slots are known to be free, and a
 * look at the gate otherwise. Publishing costs as much as the barrier's. The multi-producer
 * sequencer has the same names. Sequences are size_t here; sequence8.h has other widths.
 */
#ifndef BIDE_SINGLE_PRODUCER_SEQUENCER_H
#define BIDE_SINGLE_PRODUCER_SEQUENCER_H

#include "bide/sequence_group.h"
#include "bide/sync_wait.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_single_producer_sequencer {
    /* constant while shared */
    bide_sequence_barrier *cursor;
    bide_sequence_group *gate;
    /* of each slot: is it abandoned? NULL: none ever is. See 3 */
    uint8_t *markers;
    bide_sequence size;
    /* the producer's */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_sequence next; /* the next to be claimed */
    bide_sequence consumed; /* what the slowest consumer had done with at the last look */
    bool closed;            /* `consumed` is then such that none is free */
} bide_single_producer_sequencer;

/* One claim: of `count` slots from `first` on. The caller's memory, in use until it has ended. */
typedef struct bide_claim {
    bide_frame frame;
    bide_single_producer_sequencer *sequencer;
    bide_sequence max;
    bide_sequence first;
    bide_sequence count;
    bide_sequence_group_waiter wait;
} bide_claim;

extern const bide_coroutine_code bide_single_producer_sequencer_claim_code_;

/*
 * Makes a sequencer over a ring of `size` slots. `cursor` and the members of `gate` are the
 * caller's, initialised alike, with the sequence before the first to be claimed; they must outlive
 * the sequencer. A sequencer is aligned to BIDE_CACHE_LINE, and so is what contains one. The memory
 * may go when no claim is under way and nobody calls any of these on it.
 * Threads: before it is shared. Errors: -EINVAL (`size` is no power of two, or more than half the range).
 * Suspends: never. Progress: wait-free.
 */
int bide_single_producer_sequencer_init(bide_single_producer_sequencer *sequencer,
                                        bide_sequence_barrier *cursor, bide_sequence_group *gate,
                                        bide_sequence size);

/*
 * Lets slots be abandoned. `markers` is an array of `size` bytes, the caller's, which must outlive
 * the sequencer; they are cleared here, and from now on by each claim. Returns 0.
 * Threads: before it is shared, after init, and before anything is claimed. Errors: none. Suspends:
 * never.
 */
int bide_single_producer_sequencer_set_markers(bide_single_producer_sequencer *sequencer,
                                               uint8_t *markers);

/* ---- Claiming ---- */

/* Their first claim since these slots were read: nobody else looks at their markers. */
BIDE_INLINE void
bide_single_producer_sequencer_clear_markers_(bide_single_producer_sequencer *sequencer,
                                              bide_sequence first, bide_sequence count)
{
    for (bide_sequence i = 0; i < count; i++)
        sequencer->markers[(bide_sequence)(first + i) & (bide_sequence)(sequencer->size - 1)] = 0;
}

/*
 * Takes up to `max` (1 or more) free slots without waiting. Returns how many, from *first on; 0 if
 * none is free, or it is closed.
 * Threads: the producer's. Suspends: never. Progress: wait-free, but for joined members of the gate
 * (sequence_group.h).
 */
BIDE_INLINE bide_sequence bide_single_producer_sequencer_try_claim(
    bide_single_producer_sequencer *sequencer, bide_sequence max, bide_sequence *first)
{
    bide_sequence next = sequencer->next;
    bide_sequence used = (bide_sequence)(next - 1 - sequencer->consumed);
    if (BIDE_UNLIKELY(used != 0 && (bide_sequence)(sequencer->size - used) < max)) {
        /* Not enough that is known to be free: look at the gate, which may have moved. */
        bide_sequence needed = (bide_sequence)(next - sequencer->size);
        if (sequencer->closed ||
            !bide_sequence_group_is_published(sequencer->gate, needed, &sequencer->consumed))
            return 0;
        used = (bide_sequence)(next - 1 - sequencer->consumed);
    }
    bide_sequence available = (bide_sequence)(sequencer->size - used);
    bide_sequence count = max < available ? max : available;
    *first = next;
    sequencer->next = (bide_sequence)(next + count);
    if (BIDE_UNLIKELY(sequencer->markers != NULL))
        bide_single_producer_sequencer_clear_markers_(sequencer, next, count);
    return count;
}

BIDE_INLINE bool bide_single_producer_sequencer_claim_ready_(bide_awaiter *awaiter)
{
    bide_claim *claim = (bide_claim *)(void *)awaiter;
    claim->count =
        bide_single_producer_sequencer_try_claim(claim->sequencer, claim->max, &claim->first);
    if (BIDE_UNLIKELY(claim->count == 0))
        return false;
    claim->frame.error = 0;
    return true;
}

/*
 * Claims at least one slot and up to `max` (1 or more): as many as are free, waiting only while
 * none is. Afterwards claim->first and claim->count say which; the producer fills them and
 * publishes. If it does not end with 0, nothing is claimed, and count is 0. `claim` is the caller's
 * memory, in use until the wait has ended. If it loses a select, or its coroutine is destroyed before it
 * resumes, the slots are free again. To claim 0 is misuse: it is detected where it is awaited if
 * BIDE_DEBUG is 1 in the library, and ends with -EINVAL otherwise.
 * Threads: the producer's, one claim at a time. Errors: -EINVAL (`max` is 0), -EPIPE (the sequencer was
 * closed; or a consumer at the gate has closed its barrier, so that no slot will become free),
 * -ECANCELED, -ETIMEDOUT. Suspends: if the ring is full. Cancel-safe: yes. Progress: as
 * bide_single_producer_sequencer_try_claim, and as a wait on the gate.
 */
BIDE_KEY_SCOPED(first);
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_single_producer_sequencer_claim_up_to(
    bide_claim *claim, bide_single_producer_sequencer *sequencer, bide_sequence max)
{
    static const bide_point start =
        BIDE_POINT_START_OF(bide_single_producer_sequencer_claim_ready_, NULL, BIDE_UNDO_WITHDRAW,
                            &bide_single_producer_sequencer_claim_code_);
    claim->frame.awaiter.ops = &start.ops;
    claim->sequencer = sequencer;
    claim->max = max;
    return &claim->frame.awaiter;
}

/*
 * The same for one slot, claim->first.
 * Threads: the producer's, one claim at a time. Errors: as
 * bide_single_producer_sequencer_claim_up_to. Suspends: if the ring is full. Cancel-safe: yes.
 * Progress: as bide_single_producer_sequencer_claim_up_to.
 */
BIDE_KEY_SCOPED(first);
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_single_producer_sequencer_claim_one(bide_claim *claim,
                                         bide_single_producer_sequencer *sequencer)
{
    return bide_single_producer_sequencer_claim_up_to(claim, sequencer, 1);
}

/*
 * As claim_up_to, for a plain thread, which it blocks until `deadline` at most (sync_wait.h).
 * Returns what the claim ends with.
 * Threads: the producer's, but not that of a loop (sync_wait.h). Errors: as
 * bide_single_producer_sequencer_claim_up_to; -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_single_producer_sequencer_claim_up_to_blocking(...) \
    BIDE_BLOCKS_(bide_single_producer_sequencer_claim_up_to_blocking_(__VA_ARGS__))

BIDE_INLINE int
bide_single_producer_sequencer_claim_up_to_blocking_(bide_claim *claim,
                                                     bide_single_producer_sequencer *sequencer,
                                                     bide_sequence max, uint64_t deadline)
{
    return bide_sync_wait_until(bide_single_producer_sequencer_claim_up_to(claim, sequencer, max),
                                deadline);
}

/*
 * The same for one slot.
 * Threads: the producer's, but not that of a loop (sync_wait.h). Errors: as
 * bide_single_producer_sequencer_claim_up_to; -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_single_producer_sequencer_claim_one_blocking(...) \
    BIDE_BLOCKS_(bide_single_producer_sequencer_claim_one_blocking_(__VA_ARGS__))

BIDE_INLINE int bide_single_producer_sequencer_claim_one_blocking_(
    bide_claim *claim, bide_single_producer_sequencer *sequencer, uint64_t deadline)
{
    return bide_single_producer_sequencer_claim_up_to_blocking_(claim, sequencer, 1, deadline);
}

/*
 * Is at least one slot free, so that a claim need not wait? False once it is closed.
 * Threads: the producer's. Suspends: never. Progress: as bide_single_producer_sequencer_try_claim.
 */
BIDE_INLINE bool
bide_single_producer_sequencer_any_available(bide_single_producer_sequencer *sequencer)
{
    bide_sequence consumed;
    return !sequencer->closed &&
           bide_sequence_group_is_published(
               sequencer->gate, (bide_sequence)(sequencer->next - sequencer->size), &consumed);
}

/* How many are claimed and not published. */
BIDE_INLINE bide_sequence
bide_single_producer_sequencer_in_hand_(bide_single_producer_sequencer *sequencer)
{
    return (bide_sequence)(sequencer->next - 1 -
                           bide_sequence_barrier_last_published(sequencer->cursor));
}

/* Whether `count` from `first` on, at least one, are claimed and not published. */
BIDE_INLINE bool
bide_single_producer_sequencer_are_claimed_(bide_single_producer_sequencer *sequencer,
                                            bide_sequence first, bide_sequence count)
{
    bide_sequence in_hand = bide_single_producer_sequencer_in_hand_(sequencer);
    bide_sequence behind = (bide_sequence)(sequencer->next - first);
    return count != 0 && behind <= in_hand && count <= behind;
}

/* Behind the macro of the same name. */
BIDE_INLINE void bide_single_producer_sequencer_unclaim_(bide_single_producer_sequencer *sequencer,
                                                         bide_sequence count, const char *what,
                                                         const char *function, const char *file,
                                                         unsigned line)
{
    if (BIDE_DEBUG && BIDE_UNLIKELY(count > bide_single_producer_sequencer_in_hand_(sequencer))) {
        bide_misuse_(what, function, file, line);
        return;
    }
    sequencer->next = (bide_sequence)(sequencer->next - count);
    if (sequencer->closed) /* still none is free */
        sequencer->consumed = (bide_sequence)(sequencer->consumed - count);
}

#define BIDE_NOT_GIVEN_BACK_(sequencer) \
    BIDE_MISUSE_("more is given back than is claimed", #sequencer)

/*
 * bide_single_producer_sequencer_unclaim(sequencer, count): gives back the `count` slots that
 * were claimed last, and are not published. The next claim claims them again, and nobody notices.
 * Giving back more than are in hand is misuse, which is detected if BIDE_DEBUG is 1.
 * Threads: the producer's. Errors: none. Suspends: never. Progress: wait-free.
 */
#define bide_single_producer_sequencer_unclaim(sequencer, count) \
    bide_single_producer_sequencer_unclaim_((sequencer), (count), BIDE_NOT_GIVEN_BACK_(sequencer))

/* ---- Publishing ---- */

/* In debug builds: reports misuse if a fixed member of the gate has done with what is not published. */
BIDE_INLINE void
bide_single_producer_sequencer_check_gate_(bide_single_producer_sequencer *sequencer,
                                           const char *function, const char *file, unsigned line)
{
#if BIDE_DEBUG && !BIDE_CHECK
    bide_sequence last = bide_sequence_barrier_last_published(sequencer->cursor);
    for (size_t i = 0; i < sequencer->gate->count; i++) {
        bide_sequence done = bide_sequence_barrier_last_published(sequencer->gate->fixed[i]);
        if (BIDE_UNLIKELY(bide_sequence_difference(last, done) < 0))
            bide_misuse_(BIDE_CONSUMER_AHEAD_, function, file, line);
    }
#else
    (void)sequencer, (void)function, (void)file, (void)line;
#endif
}

/* Behind the macros _publish and _publish_range. */
BIDE_INLINE void bide_single_producer_sequencer_publish_range_(
    bide_single_producer_sequencer *sequencer, bide_sequence first, bide_sequence count,
    const char *what, const char *function, const char *file, unsigned line)
{
    bide_single_producer_sequencer_check_gate_(sequencer, function, file, line);
    if (BIDE_DEBUG &&
        BIDE_UNLIKELY(!bide_single_producer_sequencer_are_claimed_(sequencer, first, count)))
        bide_misuse_(what, function, file, line);
    else
        bide_sequence_barrier_publish_(sequencer->cursor, (bide_sequence)(first + count - 1));
}

#define BIDE_NOT_CLAIMED_(sequencer) \
    BIDE_MISUSE_("a sequence is published that is not claimed, or was published", #sequencer)

/*
 * bide_single_producer_sequencer_publish_range(sequencer, first, count): publishes `count`
 * sequences from `first` on, at least one, which have been claimed, and every claimed one before
 * them: in order, as one step. (In another order: the multi-producer sequencer.) To publish what is
 * not claimed, or published already, is misuse, which is detected if BIDE_DEBUG is 1. So is a consumer,
 * a fixed member of the gate, that has published on its barrier what the producer has not.
 * Threads: the producer's. Errors: none. Suspends: never. Progress: as
 * bide_sequence_barrier_publish.
 */
#define bide_single_producer_sequencer_publish_range(sequencer, first, count)    \
    bide_single_producer_sequencer_publish_range_((sequencer), (first), (count), \
                                                  BIDE_NOT_CLAIMED_(sequencer))

/*
 * bide_single_producer_sequencer_publish(sequencer, sequence): the same for one sequence.
 * Threads: the producer's. Errors: none. Suspends: never. Progress: as
 * bide_sequence_barrier_publish.
 */
#define bide_single_producer_sequencer_publish(sequencer, sequence)           \
    bide_single_producer_sequencer_publish_range_((sequencer), (sequence), 1, \
                                                  BIDE_NOT_CLAIMED_(sequencer))

/* Behind the macro of the same name. */
BIDE_INLINE void bide_single_producer_sequencer_abandon_(bide_single_producer_sequencer *sequencer,
                                                         bide_sequence first, bide_sequence count,
                                                         const char *what, const char *function,
                                                         const char *file, unsigned line)
{
    if (sequencer->markers == NULL ||
        (BIDE_DEBUG &&
         BIDE_UNLIKELY(!bide_single_producer_sequencer_are_claimed_(sequencer, first, count)))) {
        bide_misuse_(what, function, file, line);
        return;
    }
    bide_sequence mask = (bide_sequence)(sequencer->size - 1);
    for (bide_sequence i = 0; i < count; i++)
        sequencer->markers[(bide_sequence)(first + i) & mask] = 1;
    bide_sequence_barrier_publish_(sequencer->cursor, (bide_sequence)(first + count - 1));
}

#define BIDE_NOT_ABANDONED_(sequencer) \
    BIDE_MISUSE_("a sequence is abandoned that is not claimed, or without markers", #sequencer)

/*
 * bide_single_producer_sequencer_abandon(sequencer, first, count): gives up `count` claimed
 * sequences from `first` on, without having filled their slots: consumers find them abandoned
 * (_is_abandoned) and go past. It is in order, so it publishes every claimed one before them.
 * Without markers (_set_markers) it is misuse, which is always caught. Otherwise as publishing.
 * Threads: the producer's. Errors: none. Suspends: never. Progress: as
 * bide_single_producer_sequencer_publish_range, linear in `count`.
 */
#define bide_single_producer_sequencer_abandon(sequencer, first, count)    \
    bide_single_producer_sequencer_abandon_((sequencer), (first), (count), \
                                            BIDE_NOT_ABANDONED_(sequencer))

/* ---- Consuming: all of it is the cursor's too, which consumers may use by itself ---- */

/*
 * The last that is published, `last_known` or later. Writes made before it are visible.
 * Threads: any. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bide_sequence bide_single_producer_sequencer_last_published_after(
    bide_single_producer_sequencer *sequencer, bide_sequence last_known)
{
    (void)last_known;
    return bide_sequence_barrier_last_published(sequencer->cursor);
}

/*
 * Is `sequence` published, or abandoned? What was written before is visible.
 * Threads: any. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bool
bide_single_producer_sequencer_is_published(bide_single_producer_sequencer *sequencer,
                                            bide_sequence sequence)
{
    return !bide_sequence_precedes(bide_sequence_barrier_last_published(sequencer->cursor),
                                   sequence);
}

/*
 * Was `sequence`, which is published, abandoned, so that there is nothing in its slot?
 * Threads: any that holds the producer back from it, as a consumer at the gate does. Suspends:
 * never. Progress: wait-free.
 */
BIDE_INLINE bool
bide_single_producer_sequencer_is_abandoned(bide_single_producer_sequencer *sequencer,
                                            bide_sequence sequence)
{
    return sequencer->markers != NULL &&
           sequencer->markers[sequence & (bide_sequence)(sequencer->size - 1)] != 0;
}

/*
 * Waits until `target` is published: all as bide_sequence_barrier_wait_until_published.
 * `last_known` is not needed here; it is the multi-producer sequencer's.
 * Threads: any. Errors: as bide_sequence_barrier_wait_until_published. Suspends: if `target` is not
 * published. Cancel-safe: yes. Progress: as bide_sequence_barrier_wait_until_published.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_single_producer_sequencer_wait_until_published(bide_sequence_waiter *waiter,
                                                    bide_single_producer_sequencer *sequencer,
                                                    bide_sequence target, bide_sequence last_known)
{
    (void)last_known;
    return bide_sequence_barrier_wait_until_published(waiter, sequencer->cursor, target);
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most (sync_wait.h). Returns what
 * the wait ends with.
 * Threads: any but that of a loop (sync_wait.h). Errors: as
 * bide_single_producer_sequencer_wait_until_published; -ETIMEDOUT (the deadline has come).
 * Progress: blocks.
 */
#define bide_single_producer_sequencer_wait_until_published_blocking(...) \
    BIDE_BLOCKS_(bide_single_producer_sequencer_wait_until_published_blocking_(__VA_ARGS__))

BIDE_INLINE int bide_single_producer_sequencer_wait_until_published_blocking_(
    bide_sequence_waiter *waiter, bide_single_producer_sequencer *sequencer, bide_sequence target,
    bide_sequence last_known, uint64_t deadline)
{
    return bide_sync_wait_until(
        bide_single_producer_sequencer_wait_until_published(waiter, sequencer, target, last_known),
        deadline);
}

/* ---- The end ---- */

/*
 * Ends publishing: closes the cursor. Consumers read what is published, then their waits end with
 * -EPIPE; and no claim succeeds any more. Nobody will see what is claimed and not published. (A
 * consumer ends the producer's claims by closing its own barrier at the gate; any thread does by
 * asking the producer to stop.)
 * Threads: the producer's, or those of what acts for it, any number of times. Errors: none.
 * Suspends: never. Progress: as bide_sequence_barrier_close.
 */
void bide_single_producer_sequencer_close(bide_single_producer_sequencer *sequencer);

/*
 * Was it closed? What was written before is visible.
 * Threads: any. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bool bide_single_producer_sequencer_is_closed(bide_single_producer_sequencer *sequencer)
{
    /* acquire: partner is the shutting. */
    return bide_waiter_list_word_is_shut(
        bide_atomic_load(&sequencer->cursor->waiters.list.word, acquire));
}

/*
 * Waits until the consumers at the gate have done with all that is published now: after a close,
 * with all there is. `waiter` is the caller's memory, in use until then. Ends as a wait on the
 * group does.
 * Threads: any. Errors: -EPIPE (one of them has closed its barrier before), -ECANCELED, -ETIMEDOUT.
 * Suspends: if the consumers have not done with it. Cancel-safe: yes. Progress: as
 * bide_sequence_group_wait_until_published.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_single_producer_sequencer_drain(bide_sequence_group_waiter *waiter,
                                     bide_single_producer_sequencer *sequencer)
{
    return bide_sequence_group_wait_until_published(
        waiter, sequencer->gate, bide_sequence_barrier_last_published(sequencer->cursor));
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most (sync_wait.h). Returns what
 * the wait ends with.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_single_producer_sequencer_drain;
 * -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_single_producer_sequencer_drain_blocking(...) \
    BIDE_BLOCKS_(bide_single_producer_sequencer_drain_blocking_(__VA_ARGS__))

BIDE_INLINE int
bide_single_producer_sequencer_drain_blocking_(bide_sequence_group_waiter *waiter,
                                               bide_single_producer_sequencer *sequencer,
                                               uint64_t deadline)
{
    return bide_sync_wait_until(bide_single_producer_sequencer_drain(waiter, sequencer), deadline);
}

BIDE_INLINE void
bide_single_producer_sequencer_destroy_checked_(bide_single_producer_sequencer *sequencer,
                                                const char *what, const char *function,
                                                const char *file, unsigned line)
{
    if (bide_waiter_list_word_has_waiters(
            bide_atomic_load(&sequencer->cursor->waiters.list.word, relaxed)))
        bide_misuse_(what, function, file, line);
}

#define BIDE_SINGLE_DESTROYED_ "a sequencer is destroyed while it is waited for"

/*
 * bide_single_producer_sequencer_destroy(sequencer): the end of its life. Does nothing; where
 * BIDE_DEBUG is 1 it reports misuse if a consumer waits for a sequence that it would publish.
 * Threads: one at a time, the only one that still has it. Suspends: never. Progress: wait-free.
 */
#define bide_single_producer_sequencer_destroy(sequencer)                           \
    BIDE_END_OF_LIFE_(bide_single_producer_sequencer_destroy_checked_, (sequencer), \
                      BIDE_SINGLE_DESTROYED_, #sequencer)

/*
 * Why it is correct:
 *
 * 1. `next` and `consumed` are plain fields, because only the producer touches them.
 * 2. A slot is claimed after an acquiring load of what the consumer published when it had done with
 *    the slot. So the claims' memory orders are those of the gate's barriers.
 * 3. The markers of abandoned slots are plain bytes. Like the slots they are the producer's until
 *    they are published, and the consumers' until they have done with them.
 * 4. size is at most half the range of the sequence. The first claims look for sequences up to
 *    `size` behind the initial one, which count as published.
 *
 * Source: the disruptor; cppcoro's single_producer_sequencer; the seed article, for 4.
 */

BIDE_EXTERN_C_END

#endif
