/*
 * A multi-producer sequencer: hands out the slots of a ring to any number of producers, in order,
 * and none that a consumer may still read. Producers publish in any order; consumers see the
 * sequences in their order. Floor: sync.
 *
 *     bide_sequence_slot slots[SIZE];
 *     bide_multi_producer_sequencer sequencer;
 *     bide_multi_producer_sequencer_init(&sequencer, slots, SIZE, &gate, bide_sequence_initial());
 *
 * A producer:
 *
 *     bide_try(bide_multi_producer_sequencer_claim_one(&self->claim, &sequencer));
 *     fill(bide_ring_at(&ring, self->claim.first));
 *     bide_multi_producer_sequencer_publish(&sequencer, self->claim.first);
 *
 * A consumer:
 *
 *     bide_try(bide_multi_producer_sequencer_wait_until_published(&self->wait, &sequencer,
 *                                                                 self->known + 1, self->known));
 *     for (bide_sequence s = self->known + 1; s != self->wait.published + 1; s++)
 *         if (!bide_multi_producer_sequencer_is_abandoned(&sequencer, s))
 *             read(bide_ring_at(&ring, s));
 *
 *              consumed (gate)         last published                  next
 *     ... free | in the consumers' hands      | claimed, some published | free ...
 *              <------------------------ at most `size` ---------------->
 *
 *     claim       take a number whose slot is free; where none is, line up, wait at the gate, and
 *                 take it then
 *     publish     write the number to its slot, wake its waiters
 *     abandon     the same with another number: consumers skip it. A claim ends in one or the other
 *     close       no claim succeeds any more; what is claimed may still be published, and is read
 *
 * All of it from any thread. A claim costs a load of each word below and a compare-exchange while
 * it is known that slots are free, publishing a store a slot and a load while no consumer waits. A
 * claim takes its number when its slot is free, never before. So one that is cut short leaves
 * nothing, and nobody waits for a number whose producer has gone. (cppcoro's producers take it
 * before they wait, and cannot give it back.)
 *
 * Sequences are size_t here; for other widths see sequence8.h.
 *
 * Why it is right:
 *
 *     slots[]     one word a slot: the number that was published there last. So s is published if
 *                 the word at s % size is s, abandoned if it is s + half the range, and neither
 *                 otherwise: the word is then of an earlier lap, s - size, or s - size + half. size
 *                 is at most a quarter of the range, so that these four differ
 *     next        the next number to be claimed, plus half the range of its word once it is closed.
 *                 In a wider word than the sequence, where there is one; its low bits are the
 *                 sequence
 *     consumed    what the gate had published when somebody last looked, as wide; a hint
 *     readers     the consumers that wait, each for its target (waiter_list.h)
 *     turn        the claims that wait, and how many they are
 *
 * Claiming
 *
 * 1. Of the claims that find the same `next` one succeeds, by a compare-exchange. It looked at
 *    `consumed`, or at the gate, after it had read `next`. Had anybody claimed since, the exchange
 *    would fail. So what it saw free is free, and its own.
 * 2. For that `next` must not come back to the same value meanwhile. With 8 or 16 bits alone it
 *    would, as soon as the thread is preempted between the two while others claim 256 or 65536
 *    times. Hence the wider word: of pointer size or that of the sequence. It comes back after 2^64
 *    claims; where words have 32 bits, after 2^32, all within one preemption. `consumed` is as
 *    wide. So a thread that writes an old one late makes the ring look fuller than it is, never
 *    emptier, and a claim that is not satisfied looks at the gate itself.
 * 3. A slot may be written after its readers have read it: they publish on the gate's barriers
 *    (release). The claim acquires that from the gate, or from `consumed`, which was released by a
 *    claim that had acquired it.
 * 4. First come, first served.
 *      a. A claim that does not get a slot at once counts itself in `lined`, locks the mutex in
 *         `turn`, which is first in, first out, and as its holder waits at the gate. Then it takes
 *         what is free and hands the mutex on. So of many claims that wait one is woken when a slot
 *         becomes free.
 *      b. Another claim takes a slot only if more are free, in the same look, than there are claims
 *         in line, and leaves one for each. So no claim in line waits because of a later one, and
 *         none starves. A claim that looked at `lined` just before may still take one; so the claim
 *         at the gate looks again.
 *      c. Numbers need not be in the order of the line: where there is enough for all, one claims
 *         at once though those in line have not run yet to take theirs. If it had to go behind them
 *         the line would never end. Each claim would be back at its end before the mutex has come
 *         through to it, suspended at every claim, however empty the ring.
 *      d. `lined` orders nothing: that what is taken is free rests on 1 to 3. For a moment it
 *         counts claims that have just got their slots. That sends one more claim to the line,
 *         where each looks for itself.
 *
 * Publishing: no wake-up is lost
 *
 * The publisher stores in the slot and then looks at the list of readers. A reader enlists and then
 * looks at the slots. Neither misses the other: that is the list's argument, with its letters
 * (waiter_list.h, 8 to 11). The number that is announced is the slot's.
 *
 * 5. Of a range the first is stored last, as N, and the others before, with release. A reader walks
 *    up from what it knows, and stops at the first slot that is not published. That slot is not
 *    inside a range whose first the reader has seen or known, because having acquired that, it sees
 *    the others. So the slot was or will be stored as an N, or not at all.
 * 6. The sifter judges each waiter by its own (target, known), walking again, and puts back those
 *    that stay. So no waiter is resumed before all up to its target is published, however often it
 *    was looked at. (cppcoro resumes some too early when a list is put back: its issue 217.)
 *
 * Closing
 *
 * 7. close() adds to `next` half the range of its word, once. So every claim that had read it
 *    fails, and so do all that read it later: it then lies further ahead of `consumed` than a ring
 *    is large, by so much that it can be nothing else. For that `consumed` is read first: it was
 *    released by a claim that had claimed further, so `next` is then no older. It may be newer; by
 *    half the range only if 2^31 or 2^63 are claimed between the two reads. Thus one word says
 *    whether it is closed, and where all ends that was ever claimed. A reader that finds everything
 *    published up to there knows that nothing follows, and ends with -EPIPE. If something is
 *    claimed still, it waits for that.
 * 8. To the readers closing is as a publish: N is the exchange of `next`, B the load of it.
 * 9. The claim at the gate waits there in the stop source of `turn`, below its own. FREE -> AT_GATE
 *    is released with the source. close() acquires it, AT_GATE -> CLOSED, and asks the source to
 *    stop. No other claim uses the source after that, and while close() does, the sequencer stays.
 *    So nobody has to wait for close(). The claims behind get their turn one after the other, and
 *    find it closed.
 *
 * 10. The claim at the gate may be preempted before it has enlisted there, while others claim as
 *     many as they like. With 8 or 16 bits a number that it had worked out before would then be
 *     that of another lap, ahead of all that is published, and it would wait until the numbers have
 *     come round. So its target is not a number: it follows `next`, which has the wider word, and
 *     its judge looks there (sequence_barrier.h, 5).
 *
 * Joining the gate
 *
 * 11. A joiner begins after P, the last that is claimed when it is linked to the gate, behind a
 *     heavy fence X. No producer writes over what comes after P before the joiner allows it. A
 *     claim goes by what the gate had published at some look, its own or, through `consumed`, which
 *     it acquires, another's: by some C.
 *       a. If that look saw the joiner, it saw P.
 *       b. If not, the light fence in the look came before X (sequence_group.h, 1), and before the
 *          look there was the claim of C: a fixed member has published C, having acquired it from a
 *          slot, which was released by a producer that had claimed it. So the load of `next` behind
 *          X sees that claim, or a later one, and C is not after P.
 *     There must be a fixed member: its C is published with all before it. A joiner's barrier
 *     stands at P from the beginning, where some may still be about to be written. If the gate were
 *     all joiners, those slots would be claimed again.
 * 12. P, and what comes before it, may not be published yet; nobody that has joined after it waits
 *     for it. The joiner walks from P + 1 on, which begins a claim, so no range reaches over it
 *     (5). Let s come after P, up to P + size. The slot of s may hold the number of two laps
 *     before, s - 2 size, because s - size may be claimed and not published. It cannot hold that of
 *     three: s - size was claimed by a C not before s - 2 size, and by 11 what was written before
 *     that look is seen behind X. s - 2 size differs from s and from s + half if size is at most an
 *     eighth of the range. With a quarter it would be s + half: abandoned.
 *
 * Source: the disruptor's multi-producer sequencer; cppcoro's multi_producer_sequencer; the seed
 * article.
 */
#ifndef BIDE_MULTI_PRODUCER_SEQUENCER_H
#define BIDE_MULTI_PRODUCER_SEQUENCER_H

#include "bide/detail/claim_turn.h"
#include "bide/mutex.h"
#include "bide/sequence_group.h"
#include "bide/sync_wait.h"

BIDE_EXTERN_C_BEGIN

/* Added to `next` by closing: 7. */
#define BIDE_SEQUENCE_CLOSED_ ((bide_sequence_counter_)((bide_sequence_counter_)-1 / 2 + 1))

/* The number that was published last in a slot. */
typedef bide_atomic(bide_sequence) bide_sequence_slot;

typedef struct bide_multi_producer_sequencer {
    /* constant while shared */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_sequence_group *gate;
    bide_sequence_slot *slots;
    bide_sequence size;
    /* claims write these */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(bide_sequence_counter_) next;
    bide_atomic(bide_sequence_counter_) consumed;
    bide_claim_turn_ turn;
    /* consumers that wait write it, publishers read it */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_biased_list readers;
} bide_multi_producer_sequencer;

/* One claim: of `count` slots from `first` on. The caller's memory, in use until it has ended. */
typedef struct bide_multi_producer_claim {
    bide_frame frame;
    bide_multi_producer_sequencer *sequencer;
    bide_sequence max;
    bide_sequence first;
    bide_sequence count;
    uint8_t stage;               /* of a claim that waits: how far it has come */
    const bide_context *context; /* its own, while it waits at the gate */
    bide_mutex_waiter turn;
    bide_sequence_group_waiter wait;
} bide_multi_producer_claim;

/* A consumer's wait. The caller's memory, in use until it has ended; `published` is its result. */
typedef struct bide_multi_producer_waiter {
    bide_list_waiter waiting; /* the head */
    bide_multi_producer_sequencer *sequencer;
    bide_sequence target;
    bide_sequence known;     /* known to be published when the wait began */
    bide_sequence published; /* with all before it, when the wait ended */
} bide_multi_producer_waiter;

extern const bide_coroutine_code bide_multi_producer_sequencer_claim_code_;

/* The slow halves, in src/sync/multi_producer_sequencer.c. */
void bide_multi_producer_sequencer_wake_(bide_multi_producer_sequencer *sequencer, uintptr_t word);
bide_frame *bide_multi_producer_sequencer_suspend_(bide_awaiter *awaiter, bide_frame *frame);
void bide_multi_producer_sequencer_cancel_(bide_awaiter *awaiter);
bool bide_multi_producer_sequencer_withdraw_(bide_awaiter *awaiter);

/*
 * Makes a sequencer over a ring of `size` slots. `slots` is an array of as many words, the
 * caller's, which must outlive it; they are initialised here. `gate` is the caller's, and must
 * outlive it too: the barriers on which the last consumers publish what they have done with. They
 * begin, as the sequencer does, at `initial`, the sequence before the first that will be claimed. A
 * sequencer is aligned to BIDE_CACHE_LINE, and so is what contains one. The memory may go when no
 * claim and no wait is under way and nobody calls any of these on it.
 * Threads: before it is shared. Errors: -EINVAL (`size` is no power of two, or more than a quarter
 * of the range). Suspends: never. Progress: wait-free, linear in the slots.
 */
int bide_multi_producer_sequencer_init(bide_multi_producer_sequencer *sequencer,
                                       bide_sequence_slot *slots, bide_sequence size,
                                       bide_sequence_group *gate, bide_sequence initial);

/* ---- Publishing ---- */

/* Stores `count` numbers from `first` on, plus `mark`, in their slots, the first last; wakes: 5. */
BIDE_INLINE void bide_multi_producer_sequencer_put_(bide_multi_producer_sequencer *sequencer,
                                                    bide_sequence first, bide_sequence count,
                                                    bide_sequence mark)
{
    bide_sequence mask = (bide_sequence)(sequencer->size - 1);
    for (bide_sequence i = (bide_sequence)(count - 1); i != 0; i--) {
        bide_sequence sequence = (bide_sequence)(first + i);
        /* release: partner is _is_published, of a reader that asks for this one only. */
        bide_atomic_store(&sequencer->slots[sequence & mask], (bide_sequence)(sequence + mark),
                          release);
    }
    bide_atomic_store(&sequencer->slots[first & mask], (bide_sequence)(first + mark),
                      release);                                  /* N */
    uintptr_t word = bide_biased_list_peek(&sequencer->readers); /* L, D */
    if (word > BIDE_LIST_SHUT)
        bide_multi_producer_sequencer_wake_(sequencer, word);
}

/* Does the word of its slot say that `sequence` is published, or abandoned? */
BIDE_INLINE bool bide_multi_producer_sequencer_says_published_(bide_sequence word,
                                                               bide_sequence sequence)
{
    return ((bide_sequence)(word - sequence) & (BIDE_SEQUENCE_HALF_ - 1)) == 0;
}

/*
 * Is `sequence` published, or abandoned? What was written before is visible. The caller holds the
 * producers back from it, or it lies less than size ahead of those from which it does.
 * Threads: any. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bool
bide_multi_producer_sequencer_is_published(bide_multi_producer_sequencer *sequencer,
                                           bide_sequence sequence)
{
    bide_sequence mask = (bide_sequence)(sequencer->size - 1);
    /* acquire: partners are the stores of _put_. */
    return bide_multi_producer_sequencer_says_published_(
        bide_atomic_load(&sequencer->slots[sequence & mask], acquire), sequence);
}

/* Does `next` say that it is closed, beside a `consumed` that was loaded before it? See 7. */
BIDE_INLINE bool bide_multi_producer_sequencer_says_closed_(bide_sequence_counter_ next,
                                                            bide_sequence_counter_ consumed)
{
    return (bide_sequence_counter_)(next - 1 - consumed) >= BIDE_SEQUENCE_CLOSED_;
}

/*
 * Was it closed? *end is then, or otherwise, the first sequence that is not claimed. What was
 * written before the closing is visible.
 */
BIDE_INLINE bool
bide_multi_producer_sequencer_look_at_end_(bide_multi_producer_sequencer *sequencer,
                                           bide_sequence *end)
{
    /* acquire: 7, partner is the store in _take_: `next` is then no older. */
    bide_sequence_counter_ consumed = bide_atomic_load(&sequencer->consumed, acquire);
    /* acquire: partner is the release of close. */
    bide_sequence_counter_ next = bide_atomic_load(&sequencer->next, acquire);
    bool closed = bide_multi_producer_sequencer_says_closed_(next, consumed);
    *end = (bide_sequence)(closed ? next - BIDE_SEQUENCE_CLOSED_ : next);
    return closed;
}

/* Are `count` from `first` on claimed, and none of them published? */
BIDE_INLINE bool
bide_multi_producer_sequencer_are_claimed_(bide_multi_producer_sequencer *sequencer,
                                           bide_sequence first, bide_sequence count)
{
    /* relaxed: the caller's claim has modified it. (It may be closed.) */
    bide_sequence_counter_ next = bide_atomic_load(&sequencer->next, relaxed);
    bide_sequence behind =
        (bide_sequence)((bide_sequence)(next - first) & ~(bide_sequence)BIDE_SEQUENCE_CLOSED_);
    bool claimed = count != 0 && behind <= sequencer->size && count <= behind;
    for (bide_sequence i = 0; claimed && i < count; i++)
        claimed =
            !bide_multi_producer_sequencer_is_published(sequencer, (bide_sequence)(first + i));
    return claimed;
}

/* Behind the macros _publish and _publish_range. */
BIDE_INLINE void bide_multi_producer_sequencer_publish_range_(
    bide_multi_producer_sequencer *sequencer, bide_sequence first, bide_sequence count,
    const char *what, const char *function, const char *file, unsigned line)
{
    if (BIDE_DEBUG &&
        BIDE_UNLIKELY(!bide_multi_producer_sequencer_are_claimed_(sequencer, first, count)))
        bide_misuse_(what, function, file, line);
    else
        bide_multi_producer_sequencer_put_(sequencer, first, count, 0);
}

#define BIDE_CLAIM_MISUSED_(sequencer) \
    BIDE_MISUSE_("a sequence is published that is not claimed, or was published", #sequencer)

/*
 * bide_multi_producer_sequencer_publish_range(sequencer, first, count): publishes `count` sequences
 * from `first` on, at least one, which are claimed: all of a claim, or a part, in any order.
 * Consumers see them when all before them are published too. Waiters whose target is reached by
 * that are resumed, each on its own scheduler, in the order in which they came. To publish what is
 * not claimed, or published already, is misuse, which is caught where BIDE_DEBUG is 1.
 * Threads: any, not only the one that claimed. Errors: none. Suspends: never. Progress: wait-free
 * while no consumer waits: a store a slot and a load; otherwise lock-free, and linear in the
 * waiters.
 */
#define bide_multi_producer_sequencer_publish_range(sequencer, first, count)    \
    bide_multi_producer_sequencer_publish_range_((sequencer), (first), (count), \
                                                 BIDE_CLAIM_MISUSED_(sequencer))

/*
 * bide_multi_producer_sequencer_publish(sequencer, sequence): the same for one sequence.
 * Threads: any, not only the one that claimed. Errors: none. Suspends: never. Progress: as
 * bide_multi_producer_sequencer_publish_range.
 */
#define bide_multi_producer_sequencer_publish(sequencer, sequence)           \
    bide_multi_producer_sequencer_publish_range_((sequencer), (sequence), 1, \
                                                 BIDE_CLAIM_MISUSED_(sequencer))

/* Behind the macro of the same name. */
BIDE_INLINE void bide_multi_producer_sequencer_abandon_(bide_multi_producer_sequencer *sequencer,
                                                        bide_sequence first, bide_sequence count,
                                                        const char *what, const char *function,
                                                        const char *file, unsigned line)
{
    if (BIDE_DEBUG &&
        BIDE_UNLIKELY(!bide_multi_producer_sequencer_are_claimed_(sequencer, first, count)))
        bide_misuse_(what, function, file, line);
    else
        bide_multi_producer_sequencer_put_(sequencer, first, count, BIDE_SEQUENCE_HALF_);
}

/*
 * bide_multi_producer_sequencer_abandon(sequencer, first, count): gives up `count` claimed
 * sequences from `first` on, without having filled their slots: consumers find them abandoned
 * (_is_abandoned) and go past. Otherwise as publishing them.
 * Threads: any, not only the one that claimed. Errors: none. Suspends: never. Progress: as
 * bide_multi_producer_sequencer_publish_range.
 */
#define bide_multi_producer_sequencer_abandon(sequencer, first, count)    \
    bide_multi_producer_sequencer_abandon_((sequencer), (first), (count), \
                                           BIDE_CLAIM_MISUSED_(sequencer))

/* ---- Claiming ---- */

/*
 * Is at least one slot free, so that a claim of one need not wait, but for the claims in line?
 * False once it is closed. Out of date at once, if others claim.
 * Threads: any. Suspends: never. Progress: lock-free, but for joined members of the gate
 * (sequence_group.h).
 */
BIDE_INLINE bool
bide_multi_producer_sequencer_any_available(bide_multi_producer_sequencer *sequencer)
{
    for (;;) {
        bide_sequence end, now, consumed;
        if (bide_multi_producer_sequencer_look_at_end_(sequencer, &end))
            return false;
        bool free = bide_sequence_group_is_published(
            sequencer->gate, (bide_sequence)(end - sequencer->size), &consumed);
        if (!bide_multi_producer_sequencer_look_at_end_(sequencer, &now) && now == end)
            return free;
    }
}

/* Of `size` slots `used` are not free, and `kept` of the rest are for others: what is left? */
BIDE_INLINE bide_sequence bide_multi_producer_sequencer_beyond_(bide_sequence size,
                                                                bide_sequence_counter_ used,
                                                                uint32_t kept)
{
    bide_sequence free = (bide_sequence)(used < size ? size - used : 0);
    return (bide_sequence)(kept < free ? free - kept : 0);
}

/*
 * Takes up to `max` slots that are free: all of them if the claim `has_turn`, otherwise so many
 * that one is left for each claim in line. 0 if there is none, or it is closed. See 1 to 4 and 7.
 */
BIDE_INLINE bide_sequence
bide_multi_producer_sequencer_take_(bide_multi_producer_sequencer *sequencer, bide_sequence max,
                                    bide_sequence *first, bool has_turn)
{
    const bide_sequence size = sequencer->size;
    /* acquire: 3 and 7, partner is the store below. */
    bide_sequence_counter_ consumed = bide_atomic_load(&sequencer->consumed, acquire);
    /* relaxed: the exchange says whether it is the newest. */
    bide_sequence_counter_ next = bide_atomic_load(&sequencer->next, relaxed);
    for (;;) {
        bide_sequence_counter_ used = (bide_sequence_counter_)(next - 1 - consumed);
        /* relaxed: 4; a claim that begins after another has lined up sees that one. */
        uint32_t kept = has_turn ? 0 : bide_atomic_load(&sequencer->turn.lined, relaxed);
        bide_sequence available = bide_multi_producer_sequencer_beyond_(size, used, kept);
        bool looked = false;
        if (BIDE_UNLIKELY(available < max && used != 0)) {
            /* Not enough that is known to be free: look at the gate, which may have moved. */
            bide_sequence last;
            bide_sequence needed = (bide_sequence)((bide_sequence)next - size);
            if (used >= BIDE_SEQUENCE_CLOSED_)
                return 0;
            looked = bide_sequence_group_is_published(sequencer->gate, needed, &last);
            used = looked ? (bide_sequence)((bide_sequence)next - 1 - last) : size;
            available = bide_multi_producer_sequencer_beyond_(size, used, kept);
        }
        if (BIDE_UNLIKELY(available == 0)) {
            bide_sequence_counter_ now = bide_atomic_load(&sequencer->next, relaxed);
            if (now == next)
                return 0;
            next = now; /* what was looked at is another's by now */
            continue;
        }
        bide_sequence count = max < available ? max : available;
        if (bide_atomic_compare_exchange_weak(&sequencer->next, &next,
                                              (bide_sequence_counter_)(next + count), relaxed,
                                              relaxed)) {
            if (looked) /* release: 3 and 7, partner is the load above. */
                bide_atomic_store(&sequencer->consumed, (bide_sequence_counter_)(next - 1 - used),
                                  release);
            *first = (bide_sequence)next;
            return count;
        }
        bide_atomic_retry();
    }
}

/*
 * Takes up to `max` (1 or more) free slots without waiting. Returns how many, from *first on; 0 if
 * no more are free than there are claims in line, or if it is closed. What is taken is to be
 * published or abandoned.
 * Threads: any. Suspends: never. Progress: lock-free, but for joined members of the gate
 * (sequence_group.h).
 */
BIDE_INLINE bide_sequence bide_multi_producer_sequencer_try_claim(
    bide_multi_producer_sequencer *sequencer, bide_sequence max, bide_sequence *first)
{
    return bide_multi_producer_sequencer_take_(sequencer, max, first, false);
}

BIDE_INLINE bool bide_multi_producer_sequencer_claim_ready_(bide_awaiter *awaiter)
{
    bide_multi_producer_claim *claim = (bide_multi_producer_claim *)(void *)awaiter;
    claim->count =
        bide_multi_producer_sequencer_try_claim(claim->sequencer, claim->max, &claim->first);
    if (BIDE_UNLIKELY(claim->count == 0))
        return false;
    claim->frame.error = 0;
    return true;
}

/*
 * Claims at least one slot and up to `max` (1 or more): as many as are free, waiting only while no
 * more are free than there are claims in line. Those are served in the order in which they came
 * (4). Afterwards claim->first and claim->count say which. All of them are to be published or
 * abandoned, else no consumer gets past. If it does not end with 0, nothing is claimed, and count
 * is 0. `claim` is the caller's memory, in use until the wait has ended.
 * Threads: any. Errors: -EPIPE (the sequencer was closed; or a consumer at the gate has closed its
 * barrier, so that no slot will become free), -ECANCELED, -ETIMEDOUT. Suspends: if no more slots
 * are free than there are claims in line. Cancel-safe: yes. Progress: as
 * bide_multi_producer_sequencer_try_claim, and as a wait on the gate.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_multi_producer_sequencer_claim_up_to(
    bide_multi_producer_claim *claim, bide_multi_producer_sequencer *sequencer, bide_sequence max)
{
    static const bide_point start = BIDE_POINT_START_READY(
        bide_multi_producer_sequencer_claim_ready_, &bide_multi_producer_sequencer_claim_code_);
    claim->frame.awaiter.ops = &start.ops;
    claim->sequencer = sequencer;
    claim->max = max;
    return &claim->frame.awaiter;
}

/*
 * The same for one slot, claim->first.
 * Threads: any. Errors: as bide_multi_producer_sequencer_claim_up_to. Suspends: as
 * bide_multi_producer_sequencer_claim_up_to. Cancel-safe: yes. Progress: as
 * bide_multi_producer_sequencer_claim_up_to.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_multi_producer_sequencer_claim_one(bide_multi_producer_claim *claim,
                                        bide_multi_producer_sequencer *sequencer)
{
    return bide_multi_producer_sequencer_claim_up_to(claim, sequencer, 1);
}

/*
 * As claim_up_to, for a plain thread, which it blocks until `deadline` at most (sync_wait.h).
 * Returns what the claim ends with.
 * Threads: any. Errors: as bide_multi_producer_sequencer_claim_up_to; -ETIMEDOUT (the deadline has
 * come). Progress: blocks.
 */
BIDE_INLINE int
bide_multi_producer_sequencer_claim_up_to_blocking(bide_multi_producer_claim *claim,
                                                   bide_multi_producer_sequencer *sequencer,
                                                   bide_sequence max, uint64_t deadline)
{
    return bide_sync_wait_until(bide_multi_producer_sequencer_claim_up_to(claim, sequencer, max),
                                deadline);
}

/*
 * The same for one slot.
 * Threads: any. Errors: as bide_multi_producer_sequencer_claim_up_to; -ETIMEDOUT (the deadline has
 * come). Progress: blocks.
 */
BIDE_INLINE int bide_multi_producer_sequencer_claim_one_blocking(
    bide_multi_producer_claim *claim, bide_multi_producer_sequencer *sequencer, uint64_t deadline)
{
    return bide_multi_producer_sequencer_claim_up_to_blocking(claim, sequencer, 1, deadline);
}

/* ---- Consuming ---- */

/*
 * Was `sequence`, which the caller has seen published, abandoned, so that there is nothing in its
 * slot?
 * Threads: any that holds the producers back from it, as a consumer at the gate does. Suspends:
 * never. Progress: wait-free.
 */
BIDE_INLINE bool
bide_multi_producer_sequencer_is_abandoned(bide_multi_producer_sequencer *sequencer,
                                           bide_sequence sequence)
{
    bide_sequence mask = (bide_sequence)(sequencer->size - 1);
    /* relaxed: the caller has seen it published. */
    return bide_atomic_load(&sequencer->slots[sequence & mask], relaxed) != sequence;
}

/*
 * The last of those that are published from `last_known` on without a gap; `last_known` itself if
 * the next is not. That one is published, or is where the caller has joined. What was written
 * before is visible.
 * Threads: any that holds the producers back from what comes after `last_known`, as a consumer at
 * the gate does, or one that those at the gate wait for. Suspends: never. Progress: wait-free,
 * linear in what is published.
 */
BIDE_INLINE bide_sequence bide_multi_producer_sequencer_last_published_after(
    bide_multi_producer_sequencer *sequencer, bide_sequence last_known)
{
    bide_sequence next = (bide_sequence)(last_known + 1);
    /* (no more than the ring has, even if the caller holds nobody back) */
    for (bide_sequence left = sequencer->size;
         left != 0 && bide_multi_producer_sequencer_is_published(sequencer, next); left--)
        next++;
    return (bide_sequence)(next - 1);
}

BIDE_INLINE bool bide_multi_producer_sequencer_ready_(bide_awaiter *awaiter)
{
    bide_multi_producer_waiter *waiter = (bide_multi_producer_waiter *)(void *)awaiter;
    waiter->published =
        bide_multi_producer_sequencer_last_published_after(waiter->sequencer, waiter->known);
    return !bide_sequence_precedes(waiter->published, waiter->target);
}

BIDE_INLINE int bide_multi_producer_sequencer_resume_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0; /* a wait that ends otherwise has been given other operations: stop.h */
}

/*
 * Waits until all from `last_known`, which is published, or where the caller has joined, to
 * `target` are. `target` lies at most size ahead, else this waits for ever. `waiter` is the
 * caller's memory, in use until the wait has ended; its member `published` is then what
 * _last_published_after gives at that moment, `target` or later. After -EPIPE nothing comes after
 * `published`; after a wait that was cut short it is the last that was seen.
 * Threads: as bide_multi_producer_sequencer_last_published_after. Errors: -EPIPE (closed, all that
 * was ever claimed is published, and `target` is not among it), -ECANCELED, -ETIMEDOUT. Suspends:
 * if `target` is not published. Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_multi_producer_sequencer_wait_until_published(bide_multi_producer_waiter *waiter,
                                                   bide_multi_producer_sequencer *sequencer,
                                                   bide_sequence target, bide_sequence last_known)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_multi_producer_sequencer_ready_,
        .suspend = bide_multi_producer_sequencer_suspend_,
        .resume = bide_multi_producer_sequencer_resume_,
        .cancel = bide_multi_producer_sequencer_cancel_,
        .withdraw = bide_multi_producer_sequencer_withdraw_,
        .name = "bide_multi_producer_sequencer_wait",
        .attempt = NULL,
    };
    waiter->waiting.listed.awaiter.ops = &ops;
    waiter->sequencer = sequencer;
    waiter->target = target;
    waiter->known = last_known;
    return &waiter->waiting.listed.awaiter;
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most (sync_wait.h). Returns what
 * the wait ends with.
 * Threads: as bide_multi_producer_sequencer_last_published_after. Errors: as
 * bide_multi_producer_sequencer_wait_until_published; -ETIMEDOUT (the deadline has come). Progress:
 * blocks.
 */
BIDE_INLINE int bide_multi_producer_sequencer_wait_until_published_blocking(
    bide_multi_producer_waiter *waiter, bide_multi_producer_sequencer *sequencer,
    bide_sequence target, bide_sequence last_known, uint64_t deadline)
{
    return bide_sync_wait_until(
        bide_multi_producer_sequencer_wait_until_published(waiter, sequencer, target, last_known),
        deadline);
}

/*
 * Joins the gate while the ring runs: makes `barrier` a member, and *start the last sequence that
 * is claimed, which `barrier` has published from the beginning. The joiner gets everything that is
 * claimed later, each once: it waits for *start + 1, with *start as the last that is known, though
 * that may not be published yet, and publishes on `barrier` what it has done with. It leaves by
 * leaving the gate (sequence_group.h, which explains `member` and `barrier` too).
 *
 * It joins the gate only, no group that the gate comes after: a consumer that comes after those
 * that have joined may think published what they have begun behind.
 * Threads: any, at any time, also once it is closed (then nothing comes). Errors: -EINVAL (with
 * nothing done: the gate has no fixed member, or the size is more than an eighth of the range; see
 * 11 and 12). Suspends: never. Progress: as bide_sequence_group_join.
 */
int bide_multi_producer_sequencer_join(bide_multi_producer_sequencer *sequencer,
                                       bide_sequence_group_member *member,
                                       bide_sequence_barrier *barrier, bide_sequence *start);

/* ---- The end ---- */

/*
 * Ends claiming: every claim, those that wait too, ends with -EPIPE from now on. What is claimed
 * already can, and must, still be published or abandoned. Consumers read it, and then their waits
 * end with -EPIPE.
 * Threads: any, any number of times. Errors: none. Suspends: never. Progress: lock-free, linear in
 * the waiters.
 */
void bide_multi_producer_sequencer_close(bide_multi_producer_sequencer *sequencer);

/*
 * Was it closed? What was written before is visible.
 * Threads: any. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bool bide_multi_producer_sequencer_is_closed(bide_multi_producer_sequencer *sequencer)
{
    bide_sequence end;
    return bide_multi_producer_sequencer_look_at_end_(sequencer, &end);
}

/*
 * Waits until the consumers at the gate have done with everything that was claimed before this:
 * after a close, with all there is. `waiter` is the caller's memory, in use until then. Ends as a
 * wait on the group does.
 * Threads: any. Errors: -EPIPE (one of them has closed its barrier before), -ECANCELED, -ETIMEDOUT.
 * Suspends: if the consumers have not done with it. Cancel-safe: yes. Progress: as
 * bide_sequence_group_wait_until_published.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_multi_producer_sequencer_drain(bide_sequence_group_waiter *waiter,
                                    bide_multi_producer_sequencer *sequencer)
{
    bide_sequence end;
    bide_multi_producer_sequencer_look_at_end_(sequencer, &end);
    return bide_sequence_group_wait_until_published(waiter, sequencer->gate,
                                                    (bide_sequence)(end - 1));
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most (sync_wait.h). Returns what
 * the wait ends with.
 * Threads: any. Errors: as bide_multi_producer_sequencer_drain; -ETIMEDOUT (the deadline has come).
 * Progress: blocks.
 */
BIDE_INLINE int bide_multi_producer_sequencer_drain_blocking(
    bide_sequence_group_waiter *waiter, bide_multi_producer_sequencer *sequencer, uint64_t deadline)
{
    return bide_sync_wait_until(bide_multi_producer_sequencer_drain(waiter, sequencer), deadline);
}

BIDE_INLINE void
bide_multi_producer_sequencer_destroy_checked_(bide_multi_producer_sequencer *sequencer,
                                               const char *what, const char *function,
                                               const char *file, unsigned line)
{
    if (bide_atomic_load(&sequencer->turn.lined, relaxed) != 0 ||
        bide_waiter_list_word_has_waiters(bide_atomic_load(&sequencer->readers.list.word, relaxed)))
        bide_misuse_(what, function, file, line);
}

#define BIDE_MULTI_DESTROYED_ "a sequencer is destroyed while it is waited for"

/*
 * bide_multi_producer_sequencer_destroy(sequencer): the end of its life. Does nothing; where
 * BIDE_DEBUG is 1 it tells of misuse if a claim or a consumer waits.
 * Threads: one at a time, the only one that still has it. Suspends: never. Progress: wait-free.
 */
#define bide_multi_producer_sequencer_destroy(sequencer)                           \
    BIDE_END_OF_LIFE_(bide_multi_producer_sequencer_destroy_checked_, (sequencer), \
                      BIDE_MULTI_DESTROYED_, #sequencer)

BIDE_EXTERN_C_END

#endif
