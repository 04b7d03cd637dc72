/* The single-producer sequencer for one type of sequence; see single_producer_sequencer.h. */

#define BARRIER_         BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name) BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define WAITER_          BIDE_CONCAT2(bide_sequence_waiter, BIDE_SEQUENCE_BITS)
#define GROUP_           BIDE_CONCAT2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define GROUP_F_(name)   BIDE_CONCAT3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define GROUP_WAITER_    BIDE_CONCAT2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define SEQUENCER_       BIDE_CONCAT2(bide_single_producer_sequencer, BIDE_SEQUENCE_BITS)
#define CLAIM_           BIDE_CONCAT2(bide_claim, BIDE_SEQUENCE_BITS)
#define F_(name)         BIDE_CONCAT3(bide_single_producer_sequencer, BIDE_SEQUENCE_BITS, name)
#define TRAIT_(name)     BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, name)

typedef struct SEQUENCER_ {
    /* constant while shared */
    BARRIER_ *cursor;
    GROUP_ *gate;
    /* Of each slot: was it abandoned? The producer's between claim and publish, the consumers' after that. NULL:
     * none is. */
    uint8_t *markers;
    BIDE_SEQUENCE size;
    /* the producer's */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) BIDE_SEQUENCE next; /* the next to be claimed */
    BIDE_SEQUENCE consumed; /* what the slowest consumer had done with when last looked at */
    bool closed;            /* `consumed` is then such that none is free */
} SEQUENCER_;

/* One claim. The caller's until it has ended; then it holds `count` slots from `first` on. */
typedef struct CLAIM_ {
    bide_frame frame;
    SEQUENCER_ *sequencer;
    BIDE_SEQUENCE most;
    BIDE_SEQUENCE first;
    BIDE_SEQUENCE count;
    GROUP_WAITER_ wait;
} CLAIM_;

extern const bide_coroutine_code F_(_claim_code_);

/*
 * Makes a sequencer over a ring of `size` slots. `cursor` and the members of `gate` are the caller's,
 * initialised alike, with the sequence before the first to be claimed. Returns 0, or -EINVAL (as a plain
 * negative number in <errno.h>'s terms) if size is 0 or more than half the range. Before it is shared. A sequencer is
 * aligned to BIDE_CACHE_LINE, and so is what contains one. The memory may go when no claim is under way and nobody
 * calls any of these on it.
 */
int F_(_init)(SEQUENCER_ *sequencer, BARRIER_ *cursor, GROUP_ *gate, BIDE_SEQUENCE size);

/*
 * Lets slots be abandoned: `markers` is an array of `size` bytes, the caller's, which must outlive the sequencer; they
 * are cleared here, and from now on by each claim. Returns 0, or -EINVAL if size is no power of two. After init, before
 * anything is claimed.
 */
int F_(_set_markers)(SEQUENCER_ *sequencer, uint8_t *markers);

/* ---- Claiming ---- */

/* The first claim of these slots since they were read: nobody else looks at their markers. */
BIDE_INLINE void F_(_clear_markers_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE first,
                                     BIDE_SEQUENCE count)
{
    for (BIDE_SEQUENCE i = 0; i < count; i++)
        sequencer->markers[(BIDE_SEQUENCE)(first + i) & (BIDE_SEQUENCE)(sequencer->size - 1)] = 0;
}

/*
 * Takes up to `most` free slots without waiting. Returns how many, from *first on; 0 if none is free, or it is closed.
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
        if (sequencer->closed ||
            !GROUP_F_(_is_published)(sequencer->gate, needed, &sequencer->consumed))
            return 0;
        used = (BIDE_SEQUENCE)(next - 1 - sequencer->consumed);
    }
    BIDE_SEQUENCE available = (BIDE_SEQUENCE)(sequencer->size - used);
    BIDE_SEQUENCE count = most < available ? most : available;
    *first = next;
    sequencer->next = (BIDE_SEQUENCE)(next + count);
    if (BIDE_UNLIKELY(sequencer->markers != NULL))
        F_(_clear_markers_)(sequencer, next, count);
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
 * the caller's until the wait has ended. Ends with 0; or with -EPIPE if the sequencer was closed, or a consumer at the
 * gate has closed its barrier, so that no slot will become free; or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h).
 * With anything but 0 nothing is claimed, and count is 0. The producer only, one claim at a time; suspends while the
 * ring is full.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *F_(_claim_up_to)(CLAIM_ *claim, SEQUENCER_ *sequencer, BIDE_SEQUENCE most)
{
    static const bide_point start = BIDE_POINT_START_READY(F_(_claim_ready_), &F_(_claim_code_));
    claim->frame.awaiter.ops = &start.ops;
    claim->sequencer = sequencer;
    claim->most = most;
    return &claim->frame.awaiter;
}

/* The same for one slot, claim->first. */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *F_(_claim_one)(CLAIM_ *claim, SEQUENCER_ *sequencer)
{
    return F_(_claim_up_to)(claim, sequencer, 1);
}

/* The same from a plain thread, which blocks, until `deadline` at most (sync_wait.h). Returns the status. */
BIDE_INLINE int F_(_claim_up_to_blocking)(CLAIM_ *claim, SEQUENCER_ *sequencer, BIDE_SEQUENCE most,
                                          uint64_t deadline)
{
    return bide_sync_wait_until(F_(_claim_up_to)(claim, sequencer, most), deadline);
}

BIDE_INLINE int F_(_claim_one_blocking)(CLAIM_ *claim, SEQUENCER_ *sequencer, uint64_t deadline)
{
    return F_(_claim_up_to_blocking)(claim, sequencer, 1, deadline);
}

/* Is at least one slot free, so that a claim need not wait? False once it is closed. The producer only; wait-free. */
BIDE_INLINE bool F_(_any_available)(SEQUENCER_ *sequencer)
{
    BIDE_SEQUENCE consumed;
    return !sequencer->closed &&
           GROUP_F_(_is_published)(sequencer->gate,
                                   (BIDE_SEQUENCE)(sequencer->next - sequencer->size), &consumed);
}

/* How many are claimed and not published. */
BIDE_INLINE BIDE_SEQUENCE F_(_in_hand_)(SEQUENCER_ *sequencer)
{
    return (BIDE_SEQUENCE)(sequencer->next - 1 - BARRIER_F_(_last_published)(sequencer->cursor));
}

/* Are `count` from `first` on, at least one, claimed and not published? */
BIDE_INLINE bool F_(_are_claimed_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE first, BIDE_SEQUENCE count)
{
    BIDE_SEQUENCE in_hand = F_(_in_hand_)(sequencer);
    BIDE_SEQUENCE behind = (BIDE_SEQUENCE)(sequencer->next - first);
    return count != 0 && behind <= in_hand && count <= behind;
}

/*
 * Gives back the `count` slots that were claimed last, which are not published: they are claimed again by the next
 * claim. Nobody notices. To give back more than are in hand is misuse, which is caught where BIDE_DEBUG is 1. The
 * producer only; wait-free. Behind the macro _give_back.
 */
BIDE_INLINE void F_(_give_back_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE count, const char *what,
                                 const char *function, const char *file, unsigned line)
{
    if (BIDE_DEBUG && BIDE_UNLIKELY(count > F_(_in_hand_)(sequencer))) {
        bide_misuse_(what, function, file, line);
        return;
    }
    sequencer->next = (BIDE_SEQUENCE)(sequencer->next - count);
    if (sequencer->closed) /* still none is free */
        sequencer->consumed = (BIDE_SEQUENCE)(sequencer->consumed - count);
}

/* ---- Publishing ---- */

/*
 * Publishes `count` sequences from `first` on, at least one, which have been claimed, and every claimed one before
 * them: in order, as one step. (Who wants to publish in another order takes the multi-producer sequencer.) To publish
 * what is not claimed, or published already, is misuse, which is caught where BIDE_DEBUG is 1. The producer only; see
 * the barrier's publish. Behind the macros _publish and _publish_range.
 */
BIDE_INLINE void F_(_publish_range_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE first,
                                     BIDE_SEQUENCE count, const char *what, const char *function,
                                     const char *file, unsigned line)
{
    if (BIDE_DEBUG && BIDE_UNLIKELY(!F_(_are_claimed_)(sequencer, first, count)))
        bide_misuse_(what, function, file, line);
    else
        BARRIER_F_(_publish)(sequencer->cursor, (BIDE_SEQUENCE)(first + count - 1));
}

/*
 * Gives up `count` claimed sequences from `first` on, without having filled their slots: consumers find them abandoned
 * (_is_abandoned) and go past. In order, so it publishes every claimed one before them. Without markers
 * (_set_markers) it is misuse. Otherwise as publishing. Behind the macro _abandon.
 */
BIDE_INLINE void F_(_abandon_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE first, BIDE_SEQUENCE count,
                               const char *what, const char *function, const char *file,
                               unsigned line)
{
    if (sequencer->markers == NULL ||
        (BIDE_DEBUG && BIDE_UNLIKELY(!F_(_are_claimed_)(sequencer, first, count)))) {
        bide_misuse_(what, function, file, line);
        return;
    }
    BIDE_SEQUENCE mask = (BIDE_SEQUENCE)(sequencer->size - 1);
    for (BIDE_SEQUENCE i = 0; i < count; i++)
        sequencer->markers[(BIDE_SEQUENCE)(first + i) & mask] = 1;
    BARRIER_F_(_publish)(sequencer->cursor, (BIDE_SEQUENCE)(first + count - 1));
}

/* ---- Consuming; all of it is the cursor's too, which consumers may use by itself ---- */

/* The last that is published, `last_known` or later. What was written before is visible. Any thread; wait-free. */
BIDE_INLINE BIDE_SEQUENCE F_(_last_published_after)(SEQUENCER_ *sequencer, BIDE_SEQUENCE last_known)
{
    (void)last_known;
    return BARRIER_F_(_last_published)(sequencer->cursor);
}

/* Is this one published, or abandoned? What was written before is visible. Any thread; wait-free. */
BIDE_INLINE bool F_(_is_published)(SEQUENCER_ *sequencer, BIDE_SEQUENCE sequence)
{
    return !TRAIT_(_precedes)(BARRIER_F_(_last_published)(sequencer->cursor), sequence);
}

/* Was this one, which is published, abandoned, so that there is nothing in its slot? By who holds the producer
 * back from it. Wait-free. */
BIDE_INLINE bool F_(_is_abandoned)(SEQUENCER_ *sequencer, BIDE_SEQUENCE sequence)
{
    return sequencer->markers != NULL &&
           sequencer->markers[sequence & (BIDE_SEQUENCE)(sequencer->size - 1)] != 0;
}

/* Waits until `target` is published; see the barrier's wait. `last_known` is not needed here: it is the multi-producer
 * sequencer's. */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *F_(_wait_until_published)(WAITER_ *waiter, SEQUENCER_ *sequencer,
                                                    BIDE_SEQUENCE target, BIDE_SEQUENCE last_known)
{
    (void)last_known;
    return BARRIER_F_(_wait_until_published)(waiter, sequencer->cursor, target);
}

/* The same from a plain thread, which blocks, until `deadline` at most (sync_wait.h). Returns the status. */
BIDE_INLINE int F_(_wait_until_published_blocking)(WAITER_ *waiter, SEQUENCER_ *sequencer,
                                                   BIDE_SEQUENCE target, BIDE_SEQUENCE last_known,
                                                   uint64_t deadline)
{
    return bide_sync_wait_until(F_(_wait_until_published)(waiter, sequencer, target, last_known),
                                deadline);
}

/* ---- The end ---- */

/*
 * Nothing more will be published: closes the cursor, so that consumers read what is published, and their waits then end
 * with -EPIPE; and no claim succeeds any more. What is claimed and not published nobody will see. The producer
 * only (or who acts for it), more than once. (A consumer ends the producer's claims by closing its own barrier at the
 * gate; anybody by asking it to stop.)
 */
void F_(_close)(SEQUENCER_ *sequencer);

/* Was it closed? What was written before that is visible. Any thread; wait-free. */
BIDE_INLINE bool F_(_is_closed)(SEQUENCER_ *sequencer)
{
    /* acquire: partner is the shutting. */
    return bide_waiter_list_word_is_shut(
        bide_atomic_load(&sequencer->cursor->waiters.list.word, acquire));
}

/*
 * Waits until the consumers at the gate have done with all that is published now: after a close, with all there is.
 * Ends as a wait on the group does: with 0, or -EPIPE if one of them has closed its barrier before, or as it was cut
 * short. `waiter` is the caller's until then. Any thread; suspends if they have not; lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *F_(_drain)(GROUP_WAITER_ *waiter, SEQUENCER_ *sequencer)
{
    return GROUP_F_(_wait_until_published)(waiter, sequencer->gate,
                                           BARRIER_F_(_last_published)(sequencer->cursor));
}

/* The same from a plain thread, which blocks, until `deadline` at most (sync_wait.h). Returns the status. */
BIDE_INLINE int F_(_drain_blocking)(GROUP_WAITER_ *waiter, SEQUENCER_ *sequencer, uint64_t deadline)
{
    return bide_sync_wait_until(F_(_drain)(waiter, sequencer), deadline);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if a consumer waits for what it would
 * publish. Behind the macro _destroy. */
BIDE_INLINE void F_(_destroy_)(SEQUENCER_ *sequencer, const char *what, const char *function,
                               const char *file, unsigned line)
{
    if (BIDE_DEBUG && bide_waiter_list_word_has_waiters(
                          bide_atomic_load(&sequencer->cursor->waiters.list.word, relaxed)))
        bide_misuse_(what, function, file, line);
}

#undef BARRIER_
#undef BARRIER_F_
#undef WAITER_
#undef GROUP_
#undef GROUP_F_
#undef GROUP_WAITER_
#undef SEQUENCER_
#undef CLAIM_
#undef F_
#undef TRAIT_
