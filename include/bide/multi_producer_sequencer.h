/*
 * A multi-producer sequencer: hands out the slots of a ring to any number of producers, in order,
 * and never a slot that a consumer may still read. Producers publish in any order; consumers see
 * the sequences in order. Floor: sync.
 *
 *     bide_multi_producer_sequencer_init(&sequencer, slots, SIZE, &gate, bide_sequence_initial());
 *
 *     bide_try(bide_multi_producer_sequencer_claim_one(&self->claim, &sequencer));   // a producer
 *     fill(bide_ring_at(&ring, self->claim.first));
 *     bide_multi_producer_sequencer_publish(&sequencer, self->claim.first);
 *
 *     bide_try(bide_multi_producer_sequencer_wait_until_published(&self->wait, &sequencer,
 *                                                                 self->known + 1, self->known));
 *     for (bide_sequence s = self->known + 1; s != self->wait.published + 1; s++)    // a consumer
 *         if (!bide_multi_producer_sequencer_is_abandoned(&sequencer, s))
 *             read(bide_ring_at(&ring, s));
 *
 *              consumed (gate)         last published                  next
 *     ... free | in the consumers' hands      | claimed, some published | free ...
 *              <------------------------ at most `size` ---------------->
 *
 * Any thread may claim, publish, abandon, wait and close. A claim takes a number only when its slot
 * is free, so a cancelled claim leaves no gap. Each claim ends in a publish, or in an abandon,
 * which consumers skip. After close no claim succeeds; claimed slots may still be published, and
 * are read. A claim costs two loads and a compare-exchange while slots are known to be free; a
 * publish costs a store per slot and a load while no consumer waits.
 *
 * Sequences are size_t here; sequence8.h has other widths. Why it is correct:
 * docs/internals/multi_producer_sequencer.md. The numbers below refer to that.
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
    bool chooses;                /* it waits for room, as a case of a select, and takes none */
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
int bide_multi_producer_sequencer_claim_attempt_(bide_awaiter *awaiter, bide_choice *choice);

/*
 * Makes a sequencer over a ring of `size` slots. `slots` is an array of `size` words, which are
 * initialised here; `gate` is the group of the last consumers' barriers. Both are the caller's, and
 * must outlive the sequencer. The barriers begin at `initial` too, the sequence before the first to
 * be claimed. A sequencer is aligned to BIDE_CACHE_LINE. Its memory may be freed when no claim, wait
 * or other call is under way.
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

BIDE_INLINE bool bide_multi_producer_sequencer_says_published_(bide_sequence word,
                                                               bide_sequence sequence)
{
    return ((bide_sequence)(word - sequence) & (BIDE_SEQUENCE_HALF_ - 1)) == 0;
}

/*
 * Whether `sequence` is published, or abandoned. Writes made before that are visible. The caller
 * holds the producers back from it, or from a sequence less than size before it.
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

/* `consumed` was loaded before `next`: 7. */
BIDE_INLINE bool bide_multi_producer_sequencer_says_closed_(bide_sequence_counter_ next,
                                                            bide_sequence_counter_ consumed)
{
    return (bide_sequence_counter_)(next - 1 - consumed) >= BIDE_SEQUENCE_CLOSED_;
}

/* Whether it was closed, and then what was written before the closing is visible. In either case
 * *end is the first sequence that is not claimed. */
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

/* Whether `count` sequences from `first` on are claimed, and none of them published. */
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

/* In debug builds: reports misuse if a fixed member of the gate has done with what is not claimed. */
BIDE_INLINE void bide_multi_producer_sequencer_check_gate_(bide_multi_producer_sequencer *sequencer,
                                                           const char *function, const char *file,
                                                           unsigned line)
{
#if BIDE_DEBUG && !BIDE_CHECK
    for (size_t i = 0; i < sequencer->gate->count; i++) {
        bide_sequence done = bide_sequence_barrier_last_published(sequencer->gate->fixed[i]);
        bide_sequence end; /* is read after that, so it is no less */
        bide_multi_producer_sequencer_look_at_end_(sequencer, &end);
        if (BIDE_UNLIKELY(bide_sequence_difference((bide_sequence)(end - 1), done) < 0))
            bide_misuse_(BIDE_CONSUMER_AHEAD_, function, file, line);
    }
#else
    (void)sequencer, (void)function, (void)file, (void)line;
#endif
}

BIDE_INLINE void bide_multi_producer_sequencer_publish_range_(
    bide_multi_producer_sequencer *sequencer, bide_sequence first, bide_sequence count,
    const char *what, const char *function, const char *file, unsigned line)
{
    bide_multi_producer_sequencer_check_gate_(sequencer, function, file, line);
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
 * that are resumed, each on its own scheduler, in the order in which they came. Publishing a
 * sequence that is not claimed, or published already, is misuse, which is detected if BIDE_DEBUG is
 * 1. So is a consumer, a fixed member of the gate, that has published on its barrier a sequence
 *    that no producer has claimed.
 * Threads: any, not only the claimer's. Errors: none. Suspends: never. Progress: wait-free
 * while no consumer waits: a store a slot and a load; otherwise lock-free, and linear in the
 * waiters.
 */
#define bide_multi_producer_sequencer_publish_range(sequencer, first, count)    \
    bide_multi_producer_sequencer_publish_range_((sequencer), (first), (count), \
                                                 BIDE_CLAIM_MISUSED_(sequencer))

/*
 * bide_multi_producer_sequencer_publish(sequencer, sequence): the same for one sequence.
 * Threads: any, not only the claimer's. Errors: none. Suspends: never. Progress: as
 * bide_multi_producer_sequencer_publish_range.
 */
#define bide_multi_producer_sequencer_publish(sequencer, sequence)           \
    bide_multi_producer_sequencer_publish_range_((sequencer), (sequence), 1, \
                                                 BIDE_CLAIM_MISUSED_(sequencer))

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
 * Threads: any, not only the claimer's. Errors: none. Suspends: never. Progress: as
 * bide_multi_producer_sequencer_publish_range.
 */
#define bide_multi_producer_sequencer_abandon(sequencer, first, count)    \
    bide_multi_producer_sequencer_abandon_((sequencer), (first), (count), \
                                           BIDE_CLAIM_MISUSED_(sequencer))

/* ---- Claiming ---- */

/*
 * Whether at least one slot is free, so that a claim of one need not wait, except for claims in line.
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

/* The free slots of `size`, of which `used` are occupied and `kept` are for others. */
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
 * no more are free than there are claims in line, or if it is closed. The taken slots are to be
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
 *
 * As a case of a select it takes a number only if it is chosen: it waits in line until there is room, and
 * then has the turn until the select decides (13). A claim inside another operation that loses a
 * select, or whose coroutine is destroyed before it resumes, is abandoned. To claim 0 is misuse: it is
 * detected where it is awaited if BIDE_DEBUG is 1 in the library, and ends with -EINVAL otherwise.
 * Threads: any. Errors: -EINVAL (`max` is 0), -EPIPE (the sequencer was closed; or a consumer at the gate has closed its
 * barrier, so that no slot will become free), -ECANCELED, -ETIMEDOUT. Suspends: if no more slots
 * are free than there are claims in line. Cancel-safe: yes. Progress: as
 * bide_multi_producer_sequencer_try_claim, and as a wait on the gate.
 */
BIDE_KEY_SCOPED(first);
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_multi_producer_sequencer_claim_up_to(
    bide_multi_producer_claim *claim, bide_multi_producer_sequencer *sequencer, bide_sequence max)
{
    static const bide_point start = BIDE_POINT_START_OF(
        bide_multi_producer_sequencer_claim_ready_, bide_multi_producer_sequencer_claim_attempt_,
        BIDE_UNDO_WITHDRAW, &bide_multi_producer_sequencer_claim_code_);
    claim->frame.awaiter.ops = &start.ops;
    claim->sequencer = sequencer;
    claim->max = max;
    claim->stage = 0; /* OUT */
    claim->chooses = false;
    return &claim->frame.awaiter;
}

/*
 * The same for one slot, claim->first.
 * Threads: any. Errors: as bide_multi_producer_sequencer_claim_up_to. Suspends: as
 * bide_multi_producer_sequencer_claim_up_to. Cancel-safe: yes. Progress: as
 * bide_multi_producer_sequencer_claim_up_to.
 */
BIDE_KEY_SCOPED(first);
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_multi_producer_sequencer_claim_one(bide_multi_producer_claim *claim,
                                        bide_multi_producer_sequencer *sequencer)
{
    return bide_multi_producer_sequencer_claim_up_to(claim, sequencer, 1);
}

/*
 * As claim_up_to, for a plain thread, which it blocks until `deadline` at most (sync_wait.h).
 * Threads: any but that of a loop (sync_wait.h). Errors: as
 * bide_multi_producer_sequencer_claim_up_to; -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_multi_producer_sequencer_claim_up_to_blocking(...) \
    BIDE_BLOCKS_(bide_multi_producer_sequencer_claim_up_to_blocking_(__VA_ARGS__))

BIDE_INLINE int
bide_multi_producer_sequencer_claim_up_to_blocking_(bide_multi_producer_claim *claim,
                                                    bide_multi_producer_sequencer *sequencer,
                                                    bide_sequence max, uint64_t deadline)
{
    return bide_sync_wait_until(bide_multi_producer_sequencer_claim_up_to(claim, sequencer, max),
                                deadline);
}

/*
 * The same for one slot.
 * Threads: any but that of a loop (sync_wait.h). Errors: as
 * bide_multi_producer_sequencer_claim_up_to; -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_multi_producer_sequencer_claim_one_blocking(...) \
    BIDE_BLOCKS_(bide_multi_producer_sequencer_claim_one_blocking_(__VA_ARGS__))

BIDE_INLINE int bide_multi_producer_sequencer_claim_one_blocking_(
    bide_multi_producer_claim *claim, bide_multi_producer_sequencer *sequencer, uint64_t deadline)
{
    return bide_multi_producer_sequencer_claim_up_to_blocking_(claim, sequencer, 1, deadline);
}

/* ---- Consuming ---- */

/*
 * Whether `sequence`, which the caller has seen published, was abandoned: its slot has no element.
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
 * The last sequence that is published from `last_known` on without a gap; `last_known` itself if the
 * next is not. `last_known` is published, or is where the caller has joined. Writes made
 * before it are visible.
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
 * `published`; after a wait that was cancelled it is the last that was seen.
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
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->waiting.listed.awaiter.ops = &ops;
    waiter->sequencer = sequencer;
    waiter->target = target;
    waiter->known = last_known;
    return &waiter->waiting.listed.awaiter;
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most (sync_wait.h).
 * Threads: as bide_multi_producer_sequencer_last_published_after, but not that of a loop
 * (sync_wait.h). Errors: as bide_multi_producer_sequencer_wait_until_published; -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
#define bide_multi_producer_sequencer_wait_until_published_blocking(...) \
    BIDE_BLOCKS_(bide_multi_producer_sequencer_wait_until_published_blocking_(__VA_ARGS__))

BIDE_INLINE int bide_multi_producer_sequencer_wait_until_published_blocking_(
    bide_multi_producer_waiter *waiter, bide_multi_producer_sequencer *sequencer,
    bide_sequence target, bide_sequence last_known, uint64_t deadline)
{
    return bide_sync_wait_until(
        bide_multi_producer_sequencer_wait_until_published(waiter, sequencer, target, last_known),
        deadline);
}

/* Behind the macro of the same name. */
int bide_multi_producer_sequencer_join_(bide_multi_producer_sequencer *sequencer,
                                        bide_sequence_group_member *member,
                                        bide_sequence_barrier *barrier, bide_sequence *start);

BIDE_INLINE int bide_multi_producer_sequencer_join_checked_(
    bide_multi_producer_sequencer *sequencer, bide_sequence_group_member *member,
    bide_sequence_barrier *barrier, bide_sequence *start, const char *what, const char *function,
    const char *file, unsigned line)
{
    member = bide_sequence_group_joins_(sequencer->gate, member, what, function, file, line);
    return bide_multi_producer_sequencer_join_(sequencer, member, barrier, start);
}

/*
 * bide_multi_producer_sequencer_join(sequencer, member, barrier, start): joins the gate while the ring runs: makes `barrier` a member, and *start the last sequence that
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
#if BIDE_DEBUG && !BIDE_CHECK
#define bide_multi_producer_sequencer_join(sequencer, member, barrier, start)              \
    bide_multi_producer_sequencer_join_checked_((sequencer), (member), (barrier), (start), \
                                                BIDE_JOINS_TWICE_(member))
#else
#define bide_multi_producer_sequencer_join(sequencer, member, barrier, start) \
    bide_multi_producer_sequencer_join_((sequencer), (member), (barrier), (start))
#endif

/* ---- The end ---- */

/*
 * Ends claiming: every claim, waiting ones included, ends with -EPIPE from now on. Sequences
 * that are claimed already can, and must, still be published or abandoned. Consumers read them, and
 * then their waits end with -EPIPE.
 * Threads: any, any number of times. Errors: none. Suspends: never. Progress: lock-free, linear in
 * the waiters.
 */
void bide_multi_producer_sequencer_close(bide_multi_producer_sequencer *sequencer);

/*
 * Whether it was closed. Writes made before the close are visible.
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
 * The same for a plain thread, which it blocks until `deadline` at most (sync_wait.h).
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_multi_producer_sequencer_drain;
 * -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_multi_producer_sequencer_drain_blocking(...) \
    BIDE_BLOCKS_(bide_multi_producer_sequencer_drain_blocking_(__VA_ARGS__))

BIDE_INLINE int bide_multi_producer_sequencer_drain_blocking_(
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
 * BIDE_DEBUG is 1 it reports misuse if a claim or a consumer waits.
 * Threads: one at a time, the only one that still has it. Suspends: never. Progress: wait-free.
 */
#define bide_multi_producer_sequencer_destroy(sequencer)                           \
    BIDE_END_OF_LIFE_(bide_multi_producer_sequencer_destroy_checked_, (sequencer), \
                      BIDE_MULTI_DESTROYED_, #sequencer)

BIDE_EXTERN_C_END

#endif
