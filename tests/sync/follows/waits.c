/* Waits of the floors sync and queue: the rows of the contract's table, and those that have none there. */
#include "follows.h"

#include "../composition/channels.h"
#include "../primitives/rows.h"

#include "bide/cyclic_barrier.h"
#include "bide/latch.h"
#include "bide/multi_producer_sequencer.h"
#include "bide/mutex.h"
#include "bide/condition.h"
#include "bide/rw_lock.h"
#include "bide/semaphore.h"
#include "bide/sequence_group.h"
#include "bide/single_producer_sequencer.h"

static bide_awaiter *begin_bide_latch_arrive_and_wait(cell *c)
{
    NEW(bide_latch, latch);
    NEW(bide_latch_waiter, wait);
    bide_latch_init(latch, 2);
    return bide_latch_arrive_and_wait(wait, latch);
}

static bide_awaiter *begin_bide_cyclic_barrier_wait(cell *c)
{
    NEW(bide_cyclic_barrier, barrier);
    NEW(bide_cyclic_barrier_waiter, wait);
    bide_cyclic_barrier_init(barrier, 2);
    return bide_cyclic_barrier_wait(wait, barrier, bide_cyclic_barrier_arrive(barrier));
}

static bide_awaiter *begin_bide_semaphore_acquire_many(cell *c)
{
    NEW(bide_semaphore, semaphore);
    NEW(bide_semaphore_waiter, wait);
    bide_semaphore_init(semaphore, 1);
    return bide_semaphore_acquire_many(wait, semaphore, 2);
}

static bide_awaiter *begin_bide_rw_lock_upgrade(cell *c)
{
    NEW(bide_rw_lock, lock);
    NEW(bide_rw_lock_waiter, reader);
    NEW(bide_rw_lock_waiter, holder);
    bide_rw_lock_init(lock);
    if (!bide_rw_lock_try_read(reader, lock) || !bide_rw_lock_try_upgradable_read(holder, lock))
        return NULL;
    return bide_rw_lock_upgrade(holder);
}

/* ---- A sequencer of one slot, which is published; its one consumer does nothing ---- */

struct sequenced {
    bide_sequence_barrier cursor, consumer;
    bide_sequence_barrier *consumers[1];
    bide_sequence_group gate;
    bide_single_producer_sequencer single;
    bide_multi_producer_sequencer multi;
    bide_sequence_slot slots[1];
    bide_sequence_group_waiter wait;
    bide_sequence_waiter until;
    bide_claim claim;
    bide_multi_producer_claim multi_claim;
    bide_multi_producer_waiter multi_until;
};

static struct sequenced *sequenced(cell *c)
{
    NEW(struct sequenced, self);
    bide_sequence_barrier_init(&self->cursor, bide_sequence_initial());
    bide_sequence_barrier_init(&self->consumer, bide_sequence_initial());
    self->consumers[0] = &self->consumer;
    bide_sequence_group_init(&self->gate, self->consumers, 1);
    return self;
}

static struct sequenced *single(cell *c)
{
    struct sequenced *self = sequenced(c);
    bide_sequence first;
    if (bide_single_producer_sequencer_init(&self->single, &self->cursor, &self->gate, 1) != 0 ||
        bide_single_producer_sequencer_try_claim(&self->single, 1, &first) != 1)
        return NULL;
    bide_single_producer_sequencer_publish(&self->single, first);
    return self;
}

static struct sequenced *multi(cell *c)
{
    struct sequenced *self = sequenced(c);
    bide_sequence first;
    if (bide_multi_producer_sequencer_init(&self->multi, self->slots, 1, &self->gate,
                                           bide_sequence_initial()) != 0 ||
        bide_multi_producer_sequencer_try_claim(&self->multi, 1, &first) != 1)
        return NULL;
    bide_multi_producer_sequencer_publish(&self->multi, first);
    return self;
}

static bide_awaiter *begin_bide_single_producer_sequencer_claim_up_to(cell *c)
{
    struct sequenced *self = single(c);
    return bide_single_producer_sequencer_claim_up_to(&self->claim, &self->single, 1);
}

static bide_awaiter *begin_bide_single_producer_sequencer_wait_until_published(cell *c)
{
    struct sequenced *self = single(c);
    return bide_single_producer_sequencer_wait_until_published(&self->until, &self->single, 1, 0);
}

static bide_awaiter *begin_bide_single_producer_sequencer_drain(cell *c)
{
    struct sequenced *self = single(c);
    return bide_single_producer_sequencer_drain(&self->wait, &self->single);
}

static bide_awaiter *begin_bide_multi_producer_sequencer_claim_up_to(cell *c)
{
    struct sequenced *self = multi(c);
    return bide_multi_producer_sequencer_claim_up_to(&self->multi_claim, &self->multi, 1);
}

static bide_awaiter *begin_bide_multi_producer_sequencer_wait_until_published(cell *c)
{
    struct sequenced *self = multi(c);
    return bide_multi_producer_sequencer_wait_until_published(&self->multi_until, &self->multi, 1,
                                                              0);
}

static bide_awaiter *begin_bide_multi_producer_sequencer_drain(cell *c)
{
    struct sequenced *self = multi(c);
    return bide_multi_producer_sequencer_drain(&self->wait, &self->multi);
}

const row rows_of_waits[] = {
    ROW_OF(bide_event_wait, primitive_event),
    ROW_OF(bide_single_consumer_event_wait, primitive_single_consumer_event),
    ROW_OF(bide_single_consumer_auto_event_wait, primitive_single_consumer_auto_reset_event),
    ROW_OF(bide_auto_event_wait, primitive_auto_event),
    ROW_OF(bide_mutex_lock, primitive_mutex),
    ROW_OF(bide_barging_mutex_lock, primitive_barging_mutex),
    ROW_OF(bide_semaphore_acquire, primitive_semaphore),
    ROW(bide_semaphore_acquire_many),
    ROW_OF(bide_rw_lock_write, primitive_rw_lock_write),
    ROW_OF(bide_rw_lock_read, primitive_rw_lock_read),
    ROW_OF(bide_rw_lock_upgradable_read, primitive_rw_lock_upgradable),
    ROW(bide_rw_lock_upgrade),
    ROW_OF(bide_once_start, primitive_once),
    ROW_OF(bide_condition_wait, primitive_condition),
    ROW_OF(bide_notify_wait, primitive_notify_one),
    ROW_OF(bide_latch_wait, primitive_latch),
    ROW(bide_latch_arrive_and_wait),
    ROW_OF(bide_wait_group_wait, primitive_wait_group),
    ROW_OF(bide_cyclic_barrier_arrive_and_wait, primitive_cyclic_barrier),
    ROW(bide_cyclic_barrier_wait),
    ROW_OF(bide_event_count_wait, primitive_event_count),
    ROW_OF(bide_shared_task_wait, primitive_shared_task),
    ROW_OF(bide_sequence_barrier_wait_until_published, primitive_sequence_barrier),
    ROW_OF(bide_sequence_group_wait_until_published, primitive_sequence_group),
    ROW_OF(bide_single_producer_sequencer_claim_one, primitive_claim),
    ROW(bide_single_producer_sequencer_claim_up_to),
    ROW(bide_single_producer_sequencer_wait_until_published),
    ROW(bide_single_producer_sequencer_drain),
    ROW_OF(bide_multi_producer_sequencer_claim_one, primitive_multi_claim),
    ROW(bide_multi_producer_sequencer_claim_up_to),
    ROW(bide_multi_producer_sequencer_wait_until_published),
    ROW(bide_multi_producer_sequencer_drain),
    ROW_OF(bide_oneshot_recv, primitive_oneshot),
    ROW_OF(bide_watch_recv, primitive_watch),
    ROW_OF(bide_watch_wait_for, primitive_watch_predicate),
    ROW_OF(bide_broadcast_recv, primitive_broadcast),
    ROW_OF(bide_channel_recv, primitive_channel_receive),
    ROW_OF(bide_channel_send, primitive_channel_send),
    ROW_OF(bide_channel_recv_many, primitive_channel_receive_many),
    ROW_OF(bide_channel_reserve, primitive_channel_reserve),
    ROW_OF(bide_channel_reserve_many, primitive_channel_reserve_many),
    ROW_OF(bide_spsc_channel_recv, spsc_receive_row),
    ROW_OF(bide_spsc_channel_send, spsc_send_row),
    ROW_OF(bide_spsc_channel_recv_many, spsc_receive_many_row),
    ROW_OF(bide_unbounded_channel_recv, unbounded_receive_row),
    ROW_OF(bide_unbounded_channel_recv_many, unbounded_receive_many_row),
    ROW_OF(bide_rendezvous_recv, rendezvous_receive_row),
    ROW_OF(bide_rendezvous_send, rendezvous_send_row),
};
const size_t rows_of_waits_count = sizeof rows_of_waits / sizeof rows_of_waits[0];
