/* Waits for numbers. */
#include "rows.h"

#include "bide/multi_producer_sequencer.h"
#include "bide/sequence_barrier.h"
#include "bide/sequence8.h"
#include "bide/sequence_group.h"
#include "bide/single_producer_sequencer.h"

/* A waiter list, or an object that starts with one. */
static bool list_is_idle(void *waiters)
{
    bide_waiter_list *list = waiters;
    return bide_waiter_list_word_is_idle(bide_atomic_load(&list->word, relaxed));
}

/* ---- A barrier: the wait is for 0 ---- */

static void barrier8_init(void *object)
{
    bide_sequence_barrier8_init(object, bide_sequence8_initial());
}

static bide_awaiter *barrier8_begin(void *waiter, void *object)
{
    return bide_sequence_barrier8_wait_until_published(waiter, object, 0);
}

static int barrier8_wait_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_sequence_barrier8_wait_until_published_blocking(object, 0, deadline, NULL);
}

static void barrier8_wake(void *object)
{
    bide_sequence_barrier8_publish(object, 0);
}

static void barrier8_close(void *object)
{
    bide_sequence_barrier8_close(object);
}

static bool barrier8_is_idle(void *object)
{
    return list_is_idle(&((bide_sequence_barrier8 *)object)->waiters);
}

static void barrier8_destroy(void *object)
{
    bide_sequence_barrier8_destroy((bide_sequence_barrier8 *)object);
}

const primitive primitive_sequence_barrier8 = {
    .name = "sequence barrier of 8 bits",
    .object_size = sizeof(bide_sequence_barrier8),
    .waiter_size = sizeof(bide_sequence_waiter8),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = barrier8_init,
    .begin = barrier8_begin,
    .wait_blocking = barrier8_wait_blocking,
    .wake = barrier8_wake,
    .close = barrier8_close,
    .is_idle = barrier8_is_idle,
    .destroy = barrier8_destroy,
};

static void barrier_init(void *object)
{
    bide_sequence_barrier_init(object, bide_sequence_initial());
}

static bide_awaiter *barrier_begin(void *waiter, void *object)
{
    return bide_sequence_barrier_wait_until_published(waiter, object, 0);
}

static int barrier_wait_blocking(void *waiter, void *object, uint64_t deadline)
{
    (void)waiter;
    return bide_sequence_barrier_wait_until_published_blocking(object, 0, deadline, NULL);
}

static void barrier_wake(void *object)
{
    bide_sequence_barrier_publish(object, 0);
}

static void barrier_close(void *object)
{
    bide_sequence_barrier_close(object);
}

static bool barrier_is_idle(void *object)
{
    return list_is_idle(&((bide_sequence_barrier *)object)->waiters);
}

static void barrier_destroy(void *object)
{
    bide_sequence_barrier_destroy((bide_sequence_barrier *)object);
}

const primitive primitive_sequence_barrier = {
    .name = "sequence barrier",
    .object_size = sizeof(bide_sequence_barrier),
    .waiter_size = sizeof(bide_sequence_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = barrier_init,
    .begin = barrier_begin,
    .wait_blocking = barrier_wait_blocking,
    .wake = barrier_wake,
    .close = barrier_close,
    .is_idle = barrier_is_idle,
    .destroy = barrier_destroy,
};

/* ---- A group of two ---- */

typedef struct pair {
    bide_sequence_barrier members[2];
    bide_sequence_barrier *pointers[2];
    bide_sequence_group group;
} pair;

static void group_init(void *object)
{
    PRIMITIVE_OBJECT(pair, pair);
    for (int i = 0; i < 2; i++) {
        barrier_init(&pair->members[i]);
        pair->pointers[i] = &pair->members[i];
    }
    bide_sequence_group_init(&pair->group, pair->pointers, 2);
}

static bide_awaiter *group_begin(void *waiter, void *object)
{
    return bide_sequence_group_wait_until_published(waiter, &((pair *)object)->group, 0);
}

static void group_wake(void *object)
{
    PRIMITIVE_OBJECT(pair, pair);
    barrier_wake(&pair->members[1]);
    barrier_wake(&pair->members[0]);
}

static void group_close(void *object)
{
    PRIMITIVE_OBJECT(pair, pair);
    barrier_close(&pair->members[0]);
    barrier_close(&pair->members[1]);
}

static bool group_is_idle(void *object)
{
    PRIMITIVE_OBJECT(pair, pair);
    return barrier_is_idle(&pair->members[0]) && barrier_is_idle(&pair->members[1]);
}

static void group_destroy(void *object)
{
    PRIMITIVE_OBJECT(pair, pair);
    barrier_destroy(&pair->members[0]);
    barrier_destroy(&pair->members[1]);
}

const primitive primitive_sequence_group = {
    .name = "sequence group",
    .object_size = sizeof(pair),
    .waiter_size = sizeof(bide_sequence_group_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = group_init,
    .begin = group_begin,
    .wake = group_wake,
    .close = group_close,
    .is_idle = group_is_idle,
    .destroy = group_destroy,
};

/* ---- The one slot of a ring, which is full at first; the token is that it is free ---- */

typedef struct full_ring {
    bide_sequence_barrier cursor, consumed;
    bide_sequence_barrier *gate_members[1];
    bide_sequence_group gate;
    bide_single_producer_sequencer sequencer;
} full_ring;

static void claim_init(void *object)
{
    PRIMITIVE_OBJECT(full_ring, ring);
    size_t first;
    barrier_init(&ring->cursor);
    barrier_init(&ring->consumed);
    ring->gate_members[0] = &ring->consumed;
    bide_sequence_group_init(&ring->gate, ring->gate_members, 1);
    if (bide_single_producer_sequencer_init(&ring->sequencer, &ring->cursor, &ring->gate, 1) != 0 ||
        bide_single_producer_sequencer_try_claim(&ring->sequencer, 1, &first) != 1 || first != 0)
        abort();
    bide_single_producer_sequencer_publish(&ring->sequencer, first);
}

static bide_awaiter *claim_begin(void *waiter, void *object)
{
    return bide_single_producer_sequencer_claim_one(waiter, &((full_ring *)object)->sequencer);
}

static int claim_blocking(void *waiter, void *object, uint64_t deadline)
{
    return bide_single_producer_sequencer_claim_one_blocking(
        waiter, &((full_ring *)object)->sequencer, deadline);
}

static void claim_wake(void *object)
{
    barrier_wake(&((full_ring *)object)->consumed);
}

static void claim_hand_on(void *object, void *waiter)
{
    PRIMITIVE_OBJECT(full_ring, ring);
    PRIMITIVE_WAITER(bide_claim, claim);
    size_t sequence = claim->first;
    bide_single_producer_sequencer_publish(&ring->sequencer, sequence);
    bide_sequence_barrier_publish(&ring->consumed, sequence);
}

static void claim_close(void *object)
{
    barrier_close(&((full_ring *)object)->consumed);
}

static bool claim_is_idle(void *object)
{
    return barrier_is_idle(&((full_ring *)object)->consumed);
}

static unsigned claim_free_tokens(void *object)
{
    size_t first;
    return (unsigned)bide_single_producer_sequencer_try_claim(&((full_ring *)object)->sequencer, 1,
                                                              &first);
}

static void claim_destroy(void *object)
{
    PRIMITIVE_OBJECT(full_ring, ring);
    barrier_destroy(&ring->cursor);
    barrier_destroy(&ring->consumed);
}

const primitive primitive_claim = {
    .name = "single-producer sequencer's claim",
    .object_size = sizeof(full_ring),
    .waiter_size = sizeof(bide_claim),
    .traits = IN_ORDER | HANDED | HAS_KEY | STAYS_HAD,
    .tokens = 1,
    .max_waiting = 1,
    .init = claim_init,
    .begin = claim_begin,
    .wait_blocking = claim_blocking,
    .wake = claim_wake,
    .hand_on = claim_hand_on,
    .close = claim_close,
    .is_idle = claim_is_idle,
    .free_tokens = claim_free_tokens,
    .destroy = claim_destroy,
};

/* ---- The same with many producers ---- */

typedef struct shared_ring {
    bide_sequence_barrier consumed;
    bide_multi_producer_sequencer sequencer;
    bide_sequence_barrier *gate_members[1];
    bide_sequence_group gate;
    bide_sequence_slot slots[1];
} shared_ring;

static void empty_ring_init(void *object)
{
    PRIMITIVE_OBJECT(shared_ring, ring);
    barrier_init(&ring->consumed);
    ring->gate_members[0] = &ring->consumed;
    bide_sequence_group_init(&ring->gate, ring->gate_members, 1);
    if (bide_multi_producer_sequencer_init(&ring->sequencer, ring->slots, 1, &ring->gate,
                                           bide_sequence_initial()) != 0)
        abort();
}

/* False: it was closed. */
static bool claim_and_publish(shared_ring *ring)
{
    size_t first;
    if (bide_multi_producer_sequencer_try_claim(&ring->sequencer, 1, &first) == 0)
        return false;
    bide_multi_producer_sequencer_publish(&ring->sequencer, first);
    return true;
}

static void multi_init(void *object)
{
    empty_ring_init(object);
    if (!claim_and_publish(object))
        abort();
}

static bide_awaiter *multi_begin(void *waiter, void *object)
{
    return bide_multi_producer_sequencer_claim_one(waiter, &((shared_ring *)object)->sequencer);
}

static int multi_blocking(void *waiter, void *object, uint64_t deadline)
{
    return bide_multi_producer_sequencer_claim_one_blocking(
        waiter, &((shared_ring *)object)->sequencer, deadline);
}

static void multi_wake(void *object)
{
    barrier_wake(&((shared_ring *)object)->consumed);
}

static void multi_hand_on(void *object, void *waiter)
{
    PRIMITIVE_OBJECT(shared_ring, ring);
    PRIMITIVE_WAITER(bide_multi_producer_claim, claim);
    size_t sequence = claim->first;
    if (!bide_multi_producer_sequencer_is_abandoned(&ring->sequencer, sequence))
        bide_multi_producer_sequencer_publish(&ring->sequencer, sequence);
    bide_sequence_barrier_publish(&ring->consumed, sequence);
}

static void multi_close(void *object)
{
    bide_multi_producer_sequencer_close(&((shared_ring *)object)->sequencer);
}

static bool multi_is_idle(void *object)
{
    PRIMITIVE_OBJECT(shared_ring, ring);
    return !bide_mutex_is_locked(&ring->sequencer.turn.mutex) &&
           bide_waiter_queue_is_idle(&ring->sequencer.turn.mutex.queue) &&
           barrier_is_idle(&ring->consumed) && list_is_idle(&ring->sequencer.readers);
}

static unsigned multi_free_tokens(void *object)
{
    size_t first;
    return (unsigned)bide_multi_producer_sequencer_try_claim(&((shared_ring *)object)->sequencer, 1,
                                                             &first);
}

static void multi_destroy(void *object)
{
    PRIMITIVE_OBJECT(shared_ring, ring);
    bide_multi_producer_sequencer_destroy(&ring->sequencer);
    barrier_destroy(&ring->consumed);
}

const primitive primitive_multi_claim = {
    .name = "multi-producer sequencer's claim",
    .object_size = sizeof(shared_ring),
    .waiter_size = sizeof(bide_multi_producer_claim),
    .traits = IN_ORDER | HAS_KEY | LEAVES_A_GAP,
    .tokens = 1,
    .init = multi_init,
    .begin = multi_begin,
    .wait_blocking = multi_blocking,
    .wake = multi_wake,
    .hand_on = multi_hand_on,
    .close = multi_close,
    .is_idle = multi_is_idle,
    .free_tokens = multi_free_tokens,
    .destroy = multi_destroy,
};

/* ---- Its readers: they wait for the first claimed number, which wakes them ---- */

static bide_awaiter *reader_begin(void *waiter, void *object)
{
    return bide_multi_producer_sequencer_wait_until_published(
        waiter, &((shared_ring *)object)->sequencer, 0, bide_sequence_initial());
}

static int reader_blocking(void *waiter, void *object, uint64_t deadline)
{
    return bide_multi_producer_sequencer_wait_until_published_blocking(
        waiter, &((shared_ring *)object)->sequencer, 0, bide_sequence_initial(), deadline);
}

static void reader_wake(void *object)
{
    claim_and_publish(object);
}

const primitive primitive_multi_reader = {
    .name = "multi-producer sequencer's reader",
    .object_size = sizeof(shared_ring),
    .waiter_size = sizeof(bide_multi_producer_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = empty_ring_init,
    .begin = reader_begin,
    .wait_blocking = reader_blocking,
    .wake = reader_wake,
    .close = multi_close,
    .is_idle = multi_is_idle,
    .destroy = multi_destroy,
};
