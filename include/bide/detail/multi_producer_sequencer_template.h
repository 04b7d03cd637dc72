/* The multi-producer sequencer for one type of sequence; the model and the argument are in
 * multi_producer_sequencer.h. */

#define GROUP_         BIDE_CONCAT2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define BARRIER_       BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define MEMBER_        BIDE_CONCAT2(bide_sequence_group_member, BIDE_SEQUENCE_BITS)
#define GROUP_F_(name) BIDE_CONCAT3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define GROUP_WAITER_  BIDE_CONCAT2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define SLOT_          BIDE_CONCAT2(bide_sequence_slot, BIDE_SEQUENCE_BITS)
#define SEQUENCER_     BIDE_CONCAT2(bide_multi_producer_sequencer, BIDE_SEQUENCE_BITS)
#define CLAIM_         BIDE_CONCAT2(bide_multi_producer_claim, BIDE_SEQUENCE_BITS)
#define WAITER_        BIDE_CONCAT2(bide_multi_producer_waiter, BIDE_SEQUENCE_BITS)
#define COUNTER_       BIDE_COUNTER_OF_(BIDE_SEQUENCE_BITS)
#define F_(name)       BIDE_CONCAT3(bide_multi_producer_sequencer, BIDE_SEQUENCE_BITS, name)
#define TRAIT_(name)   BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, name)
#define CLOSED_        ((COUNTER_)((COUNTER_)-1 / 2 + 1)) /* added to `next`; see 7 */
#define HALF_          ((BIDE_SEQUENCE)((BIDE_SEQUENCE)((BIDE_SEQUENCE)-1) / 2 + 1))

/* What was published last in a slot. */
typedef bide_atomic(BIDE_SEQUENCE) SLOT_;

typedef struct SEQUENCER_ {
    /* constant while shared */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) GROUP_ *gate;
    SLOT_ *slots;
    BIDE_SEQUENCE size;
    /* who claims writes these */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(COUNTER_) next;
    bide_atomic(COUNTER_) consumed;
    bide_claim_turn_ turn;
    /* consumers that wait write it, publishers read it */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_biased_list readers;
} SEQUENCER_;

/* One claim. The caller's until it has ended; then it holds `count` slots from `first` on. */
typedef struct CLAIM_ {
    bide_frame frame;
    SEQUENCER_ *sequencer;
    BIDE_SEQUENCE most;
    BIDE_SEQUENCE first;
    BIDE_SEQUENCE count;
    uint8_t stage;               /* of a claim that waits: how far it has come */
    const bide_context *context; /* its own, while it waits at the gate */
    bide_mutex_waiter turn;
    GROUP_WAITER_ wait;
} CLAIM_;

/* One wait of a consumer. The caller's until it has ended; then `published` is its result. */
typedef struct WAITER_ {
    bide_list_waiter waiting; /* the head */
    SEQUENCER_ *sequencer;
    BIDE_SEQUENCE target;
    BIDE_SEQUENCE known;     /* known to be published when the wait began */
    BIDE_SEQUENCE published; /* with all before it, when the wait ended */
} WAITER_;

extern const bide_coroutine_code F_(_claim_code_);

/* The slow halves, in src/sync/multi_producer_sequencer.c. */
void F_(_wake_)(SEQUENCER_ *sequencer, uintptr_t word);
bide_frame *F_(_suspend_)(bide_awaiter *awaiter, bide_frame *frame);
void F_(_cancel_)(bide_awaiter *awaiter);
bool F_(_withdraw_)(bide_awaiter *awaiter);

/*
 * Makes a sequencer over a ring of `size` slots. `slots` is an array of as many words, the caller's, which must outlive
 * it; they are initialised here. `gate` is the caller's: the barriers on which the last consumers publish what they
 * have done with; they begin, as the sequencer does, at `initial`, the sequence before the first that will be
 * claimed. Returns 0, or -EINVAL if size is no power of two or more than a quarter of the range. Before it is shared.
 * A sequencer is aligned to BIDE_CACHE_LINE, and so is what contains one. The memory may go when no claim and no wait
 * is under way and nobody calls any of these on it.
 */
int F_(_init)(SEQUENCER_ *sequencer, SLOT_ *slots, BIDE_SEQUENCE size, GROUP_ *gate,
              BIDE_SEQUENCE initial);

/* ---- Publishing ---- */

/* Stores `count` numbers from `first` on, each plus `mark`, in their slots, the first last, and wakes who waits: 5. */
BIDE_INLINE void F_(_put_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE first, BIDE_SEQUENCE count,
                           BIDE_SEQUENCE mark)
{
    BIDE_SEQUENCE mask = (BIDE_SEQUENCE)(sequencer->size - 1);
    for (BIDE_SEQUENCE i = (BIDE_SEQUENCE)(count - 1); i != 0; i--) {
        BIDE_SEQUENCE sequence = (BIDE_SEQUENCE)(first + i);
        /* release: who asks for this one only acquires it, _is_published. */
        bide_atomic_store(&sequencer->slots[sequence & mask], (BIDE_SEQUENCE)(sequence + mark),
                          release);
    }
    bide_atomic_store(&sequencer->slots[first & mask], (BIDE_SEQUENCE)(first + mark),
                      release);                                  /* N */
    uintptr_t word = bide_biased_list_look(&sequencer->readers); /* L, D */
    if (word > BIDE_LIST_SHUT)
        F_(_wake_)(sequencer, word);
}

/* Does the word of its slot say that `sequence` is published, or abandoned? */
BIDE_INLINE bool F_(_says_published_)(BIDE_SEQUENCE word, BIDE_SEQUENCE sequence)
{
    return ((BIDE_SEQUENCE)(word - sequence) & (HALF_ - 1)) == 0;
}

/* Is this one published, or abandoned? What was written before is visible. Of those that the caller holds the
 * producers back from, or that lie less than size ahead of them. Any thread; wait-free. */
BIDE_INLINE bool F_(_is_published)(SEQUENCER_ *sequencer, BIDE_SEQUENCE sequence)
{
    BIDE_SEQUENCE mask = (BIDE_SEQUENCE)(sequencer->size - 1);
    /* acquire: partners are the stores of _put_. */
    return F_(_says_published_)(bide_atomic_load(&sequencer->slots[sequence & mask], acquire),
                                sequence);
}

/* Does `next` say that it is closed, beside a `consumed` that was loaded before it? See 7. */
BIDE_INLINE bool F_(_says_closed_)(COUNTER_ next, COUNTER_ consumed)
{
    return (COUNTER_)(next - 1 - consumed) >= CLOSED_;
}

/*
 * Was it closed? *end is then, or otherwise, the first sequence that is not claimed. What was written before the
 * closing is visible.
 */
BIDE_INLINE bool F_(_look_at_end_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE *end)
{
    /* acquire: 7, partner is the store in _take_: `next` is then no older. */
    COUNTER_ consumed = bide_atomic_load(&sequencer->consumed, acquire);
    /* acquire: partner is the release of close. */
    COUNTER_ next = bide_atomic_load(&sequencer->next, acquire);
    bool closed = F_(_says_closed_)(next, consumed);
    *end = (BIDE_SEQUENCE)(closed ? next - CLOSED_ : next);
    return closed;
}

/* Are `count` from `first` on claimed, and none of them published? */
BIDE_INLINE bool F_(_are_claimed_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE first, BIDE_SEQUENCE count)
{
    /* relaxed: the caller's claim has modified it. (It may be closed.) */
    COUNTER_ next = bide_atomic_load(&sequencer->next, relaxed);
    BIDE_SEQUENCE behind = (BIDE_SEQUENCE)((BIDE_SEQUENCE)(next - first) & ~(BIDE_SEQUENCE)CLOSED_);
    bool claimed = count != 0 && behind <= sequencer->size && count <= behind;
    for (BIDE_SEQUENCE i = 0; claimed && i < count; i++)
        claimed = !F_(_is_published)(sequencer, (BIDE_SEQUENCE)(first + i));
    return claimed;
}

/*
 * Publishes `count` sequences from `first` on, at least one, which the caller has claimed: all of a claim, or a part,
 * in any order. Consumers see them when all before them are published too; whose target is reached by that is woken, on
 * his own scheduler, in the order in which they came. Any thread, so not only the one that claimed. Does not suspend.
 * Wait-free while no consumer waits (one store a slot and one load); otherwise lock-free, and
 * linear in the waiters. To publish what is not claimed, or published already, is misuse, which is caught where
 * BIDE_DEBUG is 1. Behind the macros _publish and _publish_range.
 */
BIDE_INLINE void F_(_publish_range_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE first,
                                     BIDE_SEQUENCE count, const char *what, const char *function,
                                     const char *file, unsigned line)
{
    if (BIDE_DEBUG && BIDE_UNLIKELY(!F_(_are_claimed_)(sequencer, first, count)))
        bide_misuse_(what, function, file, line);
    else
        F_(_put_)(sequencer, first, count, 0);
}

/*
 * Gives up `count` claimed sequences from `first` on, without having filled their slots: consumers find them abandoned
 * (_is_abandoned) and go past. Otherwise as publishing them. Behind the macro _abandon.
 */
BIDE_INLINE void F_(_abandon_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE first, BIDE_SEQUENCE count,
                               const char *what, const char *function, const char *file,
                               unsigned line)
{
    if (BIDE_DEBUG && BIDE_UNLIKELY(!F_(_are_claimed_)(sequencer, first, count)))
        bide_misuse_(what, function, file, line);
    else
        F_(_put_)(sequencer, first, count, HALF_);
}

/* ---- Claiming ---- */

/* Is at least one slot free, so that a claim of one need not wait (but for those who wait already)? False once it is
 * closed. Out of date at once, if others claim. Any thread; lock-free. */
BIDE_INLINE bool F_(_any_available)(SEQUENCER_ *sequencer)
{
    for (;;) {
        BIDE_SEQUENCE end, now, consumed;
        if (F_(_look_at_end_)(sequencer, &end))
            return false;
        bool free = GROUP_F_(_is_published)(sequencer->gate, (BIDE_SEQUENCE)(end - sequencer->size),
                                            &consumed);
        if (!F_(_look_at_end_)(sequencer, &now) && now == end)
            return free;
    }
}

/* Of `size` slots `used` are not free, and `kept` of the others are for others: how many are left? */
BIDE_INLINE BIDE_SEQUENCE F_(_beyond_)(BIDE_SEQUENCE size, COUNTER_ used, uint32_t kept)
{
    BIDE_SEQUENCE free = (BIDE_SEQUENCE)(used < size ? size - used : 0);
    return (BIDE_SEQUENCE)(kept < free ? free - kept : 0);
}

/*
 * Takes up to `most` slots that are free, whoever waits if it `has_turn`, else so that all in line are left one each;
 * 0 if there is none, or it is closed. See 1 to 4 and 7.
 */
BIDE_INLINE BIDE_SEQUENCE F_(_take_)(SEQUENCER_ *sequencer, BIDE_SEQUENCE most,
                                     BIDE_SEQUENCE *first, bool has_turn)
{
    const BIDE_SEQUENCE size = sequencer->size;
    /* acquire: 3 and 7, partner is the store below. */
    COUNTER_ consumed = bide_atomic_load(&sequencer->consumed, acquire);
    /* relaxed: the exchange says whether it is the newest. */
    COUNTER_ next = bide_atomic_load(&sequencer->next, relaxed);
    for (;;) {
        COUNTER_ used = (COUNTER_)(next - 1 - consumed);
        /* relaxed: 4; who begins after another has lined up sees that one. */
        uint32_t kept = has_turn ? 0 : bide_atomic_load(&sequencer->turn.lined, relaxed);
        BIDE_SEQUENCE available = F_(_beyond_)(size, used, kept);
        bool looked = false;
        if (BIDE_UNLIKELY(available < most && used != 0)) {
            /* Not enough that is known to be free: look at the gate, which may have moved. */
            BIDE_SEQUENCE last;
            BIDE_SEQUENCE needed = (BIDE_SEQUENCE)((BIDE_SEQUENCE)next - size);
            if (used >= CLOSED_)
                return 0;
            looked = GROUP_F_(_is_published)(sequencer->gate, needed, &last);
            used = looked ? (BIDE_SEQUENCE)((BIDE_SEQUENCE)next - 1 - last) : size;
            available = F_(_beyond_)(size, used, kept);
        }
        if (BIDE_UNLIKELY(available == 0)) {
            COUNTER_ now = bide_atomic_load(&sequencer->next, relaxed);
            if (now == next)
                return 0;
            next = now; /* what was looked at is another's by now */
            continue;
        }
        BIDE_SEQUENCE count = most < available ? most : available;
        if (bide_atomic_compare_exchange_weak(&sequencer->next, &next, (COUNTER_)(next + count),
                                              relaxed, relaxed)) {
            if (looked) /* release: 3 and 7, partner is the load above. */
                bide_atomic_store(&sequencer->consumed, (COUNTER_)(next - 1 - used), release);
            *first = (BIDE_SEQUENCE)next;
            return count;
        }
        bide_atomic_retry();
    }
}

/*
 * Takes up to `most` free slots, 1 or more, without waiting. Returns how many, from *first on; 0 if no more are free
 * than there are claims that wait, or if it is closed. What is taken is to be published or abandoned. Any thread;
 * lock-free.
 */
BIDE_INLINE BIDE_SEQUENCE F_(_try_claim)(SEQUENCER_ *sequencer, BIDE_SEQUENCE most,
                                         BIDE_SEQUENCE *first)
{
    return F_(_take_)(sequencer, most, first, false);
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
 * Claims at least one slot and up to `most` (1 or more): as many as are free, waiting only while none is but for those
 * who wait already, who are served in the order in which they came (4). Afterwards claim->first and claim->count say
 * which; they are to be published or abandoned, all of them, else no consumer gets past. `claim` is the caller's until
 * the wait has ended. Ends with 0; or with -EPIPE if the sequencer was closed, or a consumer at the gate has closed its
 * barrier, so that no slot will become free; or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h). With anything but 0
 * nothing is claimed, and count is 0. Any thread; suspends while the ring is full; lock-free.
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

/* ---- Consuming ---- */

/*
 * Was this one, which is published, abandoned, so that there is nothing in its slot? By who holds the producers back
 * from it. Wait-free.
 */
BIDE_INLINE bool F_(_is_abandoned)(SEQUENCER_ *sequencer, BIDE_SEQUENCE sequence)
{
    BIDE_SEQUENCE mask = (BIDE_SEQUENCE)(sequencer->size - 1);
    /* relaxed: the caller has seen it published. */
    return bide_atomic_load(&sequencer->slots[sequence & mask], relaxed) != sequence;
}

/*
 * The last of those that are published from `last_known` on without a gap; `last_known` itself if the next is not. That
 * one is published, or is where the caller has joined. What was written before is visible. The caller holds the
 * producers back from what comes after `last_known`, as a consumer at the gate does, or one on which those at the gate
 * wait. Any thread; wait-free.
 */
BIDE_INLINE BIDE_SEQUENCE F_(_last_published_after)(SEQUENCER_ *sequencer, BIDE_SEQUENCE last_known)
{
    BIDE_SEQUENCE next = (BIDE_SEQUENCE)(last_known + 1);
    /* (no more than the ring has, even if the caller holds nobody back) */
    for (BIDE_SEQUENCE left = sequencer->size; left != 0 && F_(_is_published)(sequencer, next);
         left--)
        next++;
    return (BIDE_SEQUENCE)(next - 1);
}

BIDE_INLINE bool F_(_ready_)(bide_awaiter *awaiter)
{
    WAITER_ *waiter = (WAITER_ *)(void *)awaiter;
    waiter->published = F_(_last_published_after)(waiter->sequencer, waiter->known);
    return !TRAIT_(_precedes)(waiter->published, waiter->target);
}

BIDE_INLINE int F_(_resume_)(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0; /* who ends otherwise has other operations: stop.h */
}

/*
 * Waits until all from `last_known`, which is published, or where the caller has joined, to `target` are. `waiter` is
 * the caller's until the wait has ended; its member `published` is then what _last_published_after gives at that
 * moment, `target` or later. The caller holds the producers back as there; `target` lies at most size ahead, else it
 * waits for ever. Ends with 0; or with -EPIPE when the sequencer was closed, all that was ever claimed is published,
 * and `target` is not among it: nothing comes after `published`; or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h),
 * and `published` is then the last that was seen. Any thread; suspends if `target` is not published; lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *F_(_wait_until_published)(WAITER_ *waiter, SEQUENCER_ *sequencer,
                                                    BIDE_SEQUENCE target, BIDE_SEQUENCE last_known)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = F_(_ready_),
        .suspend = F_(_suspend_),
        .resume = F_(_resume_),
        .cancel = F_(_cancel_),
        .withdraw = F_(_withdraw_),
        .name = "bide_multi_producer_sequencer_wait",
    };
    waiter->waiting.listed.awaiter.ops = &ops;
    waiter->sequencer = sequencer;
    waiter->target = target;
    waiter->known = last_known;
    return &waiter->waiting.listed.awaiter;
}

/* The same from a plain thread, which blocks, until `deadline` at most (sync_wait.h). Returns the status. */
BIDE_INLINE int F_(_wait_until_published_blocking)(WAITER_ *waiter, SEQUENCER_ *sequencer,
                                                   BIDE_SEQUENCE target, BIDE_SEQUENCE last_known,
                                                   uint64_t deadline)
{
    return bide_sync_wait_until(F_(_wait_until_published)(waiter, sequencer, target, last_known),
                                deadline);
}

/*
 * Joins the gate while the ring runs: makes `barrier` a member, and *start the last sequence that is claimed, which it
 * has from the beginning. The joiner gets everything that is claimed later, each once: it waits for *start + 1, with
 * *start as the last that is known, though that may not be published yet, and publishes on `barrier` what it has done
 * with. It leaves by leaving the gate (sequence_group.h, where `member` and `barrier` are explained too).
 *
 * Returns 0; or -EINVAL, and nothing is done, if the gate has no fixed member, or the size is more than an eighth of
 * the range: 11, 12. It joins the gate only, no group that the gate comes after: who comes after those that have joined
 * may think published what they have begun behind. Any thread, at any time, also once it is closed: then nothing
 * comes. Does not suspend; blocks as joining a group does.
 */
int F_(_join)(SEQUENCER_ *sequencer, MEMBER_ *member, BARRIER_ *barrier, BIDE_SEQUENCE *start);

/* ---- The end ---- */

/*
 * Ends claiming: every claim, those that wait too, ends with -EPIPE from now on. What is claimed already can, and must,
 * still be published or abandoned; consumers read it, and then their waits end with -EPIPE. Any thread, more than
 * once; does not suspend; lock-free, and linear in the waiters.
 */
void F_(_close)(SEQUENCER_ *sequencer);

/* Was it closed? What was written before that is visible. Any thread; wait-free. */
BIDE_INLINE bool F_(_is_closed)(SEQUENCER_ *sequencer)
{
    BIDE_SEQUENCE end;
    return F_(_look_at_end_)(sequencer, &end);
}

/*
 * Waits until the consumers at the gate have done with everything that was claimed before this: after a close, with all
 * there is. Ends as a wait on the group does: with 0, or -EPIPE if one of them has closed its barrier before, or
 * as it was cut short. `waiter` is the caller's until then. Any thread; suspends if they have not; lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *F_(_drain)(GROUP_WAITER_ *waiter, SEQUENCER_ *sequencer)
{
    BIDE_SEQUENCE end;
    F_(_look_at_end_)(sequencer, &end);
    return GROUP_F_(_wait_until_published)(waiter, sequencer->gate, (BIDE_SEQUENCE)(end - 1));
}

/* The same from a plain thread, which blocks, until `deadline` at most (sync_wait.h). Returns the status. */
BIDE_INLINE int F_(_drain_blocking)(GROUP_WAITER_ *waiter, SEQUENCER_ *sequencer, uint64_t deadline)
{
    return bide_sync_wait_until(F_(_drain)(waiter, sequencer), deadline);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if somebody waits. Behind the macro
 * _destroy. */
BIDE_INLINE void F_(_destroy_)(SEQUENCER_ *sequencer, const char *what, const char *function,
                               const char *file, unsigned line)
{
    if (BIDE_DEBUG && (bide_atomic_load(&sequencer->turn.lined, relaxed) != 0 ||
                       bide_waiter_list_word_has_waiters(
                           bide_atomic_load(&sequencer->readers.list.word, relaxed))))
        bide_misuse_(what, function, file, line);
}

#undef GROUP_
#undef GROUP_F_
#undef GROUP_WAITER_
#undef BARRIER_
#undef MEMBER_
#undef SLOT_
#undef SEQUENCER_
#undef CLAIM_
#undef WAITER_
#undef COUNTER_
#undef F_
#undef TRAIT_
#undef CLOSED_
#undef HALF_
