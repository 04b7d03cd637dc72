/* The single-producer sequencer for one type of sequence; see single_producer_sequencer.h. */

#define BARRIER_         BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name) BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define GROUP_           BIDE_CONCAT2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define GROUP_F_(name)   BIDE_CONCAT3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define SEQUENCER_       BIDE_CONCAT2(bide_single_producer_sequencer, BIDE_SEQUENCE_BITS)
#define CLAIM_           BIDE_CONCAT2(bide_claim, BIDE_SEQUENCE_BITS)
#define F_(name)         BIDE_CONCAT3(bide_single_producer_sequencer, BIDE_SEQUENCE_BITS, name)

typedef struct SEQUENCER_ {
    BARRIER_ *cursor;
    GROUP_ *gate;
    BIDE_SEQUENCE size;
    BIDE_SEQUENCE next;     /* the next to be claimed */
    BIDE_SEQUENCE consumed; /* what the slowest consumer had done with when last looked at */
} SEQUENCER_;

/* One claim. The caller's until it has ended; then it holds `count` slots from `first` on. */
typedef struct CLAIM_ {
    bide_frame frame;
    SEQUENCER_ *sequencer;
    BIDE_SEQUENCE most;
    BIDE_SEQUENCE first;
    BIDE_SEQUENCE count;
    BIDE_CONCAT2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS) wait;
} CLAIM_;

extern const bide_coroutine_code F_(_claim_code_);

/*
 * Makes a sequencer over a ring of `size` slots. `cursor` and the members of `gate` are the caller's,
 * initialised alike, with the sequence before the first to be claimed. Returns 0, or -EINVAL (as a plain
 * negative number in <errno.h>'s terms) if size is 0 or more than half the range.
 */
int F_(_init)(SEQUENCER_ *sequencer, BARRIER_ *cursor, GROUP_ *gate, BIDE_SEQUENCE size);

/*
 * Takes up to `most` free slots without waiting. Returns how many, from *first on; 0 if none is free.
 * The producer only; wait-free.
 */
BIDE_INLINE BIDE_SEQUENCE F_(_try_claim)(SEQUENCER_ *sequencer, BIDE_SEQUENCE most,
                                         BIDE_SEQUENCE *first)
{
    BIDE_SEQUENCE next = sequencer->next;
    BIDE_SEQUENCE used = (BIDE_SEQUENCE)(next - 1 - sequencer->consumed);
    if (BIDE_UNLIKELY(used != 0 && (BIDE_SEQUENCE)(sequencer->size - used) < most)) {
        /* Not enough that is known to be free: look at the gate, which may have moved. */
        BIDE_SEQUENCE needed = (BIDE_SEQUENCE)(next - sequencer->size);
        if (!GROUP_F_(_is_published)(sequencer->gate, needed, &sequencer->consumed))
            return 0;
        used = (BIDE_SEQUENCE)(next - 1 - sequencer->consumed);
    }
    BIDE_SEQUENCE available = (BIDE_SEQUENCE)(sequencer->size - used);
    BIDE_SEQUENCE count = most < available ? most : available;
    *first = next;
    sequencer->next = (BIDE_SEQUENCE)(next + count);
    return count;
}

BIDE_INLINE bool F_(_claim_ready_)(bide_awaiter *awaiter)
{
    CLAIM_ *claim = (CLAIM_ *)(void *)awaiter;
    claim->count = F_(_try_claim)(claim->sequencer, claim->most, &claim->first);
    if (BIDE_UNLIKELY(claim->count == 0))
        return false;
    claim->frame.error = 0;
    return true;
}

/*
 * Claims at least one slot and up to `most` (1 or more): as many as are free, waiting only while none is.
 * Afterwards claim->first and claim->count say which; the producer fills them and publishes. `claim` is
 * the caller's until the wait has ended. Ends with 0, or -EPIPE if a consumer at the gate has closed its
 * barrier, so that no slot will become free (count is then 0). The producer only, one claim at a time;
 * suspends while the ring is full.
 */
BIDE_INLINE bide_awaiter *F_(_claim_up_to)(CLAIM_ *claim, SEQUENCER_ *sequencer, BIDE_SEQUENCE most)
{
    static const bide_point start = BIDE_POINT_START_READY(F_(_claim_ready_), &F_(_claim_code_));
    claim->frame.awaiter.ops = &start.ops;
    claim->sequencer = sequencer;
    claim->most = most;
    return &claim->frame.awaiter;
}

/* The same for one slot, claim->first. */
BIDE_INLINE bide_awaiter *F_(_claim_one)(CLAIM_ *claim, SEQUENCER_ *sequencer)
{
    return F_(_claim_up_to)(claim, sequencer, 1);
}

/*
 * Publishes `sequence`, which has been claimed, and every claimed one before it. The producer only; see
 * the barrier's publish.
 */
BIDE_INLINE void F_(_publish)(SEQUENCER_ *sequencer, BIDE_SEQUENCE sequence)
{
    BARRIER_F_(_publish)(sequencer->cursor, sequence);
}

/* Publishes a whole claim of `count` slots from `first` on, as one step. */
BIDE_INLINE void F_(_publish_range)(SEQUENCER_ *sequencer, BIDE_SEQUENCE first, BIDE_SEQUENCE count)
{
    F_(_publish)(sequencer, (BIDE_SEQUENCE)(first + count - 1));
}

/* Nothing more will be published: closes the cursor. */
BIDE_INLINE void F_(_close)(SEQUENCER_ *sequencer)
{
    BARRIER_F_(_close)(sequencer->cursor);
}

#undef BARRIER_
#undef BARRIER_F_
#undef GROUP_
#undef GROUP_F_
#undef SEQUENCER_
#undef CLAIM_
#undef F_
