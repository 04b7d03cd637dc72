/* The channel of one sender and one receiver: its slow half; the argument is in spsc_channel.h. */
#include "bide/spsc_channel.h"

static bide_spsc_channel_waiter *waiter_of(bide_retry *retry)
{
    return bide_container_of(retry, bide_spsc_channel_waiter, retry);
}

static int attempt_send(bide_retry *retry)
{
    bide_spsc_channel_waiter *waiter = waiter_of(retry);
    bide_spsc_channel_ *channel = waiter->channel;
    int status = bide_spsc_channel_try_send_(channel, waiter->element, channel->size);
    return status == -ENOBUFS ? -EAGAIN : status;
}

static int attempt_receive(bide_retry *retry)
{
    bide_spsc_channel_waiter *waiter = waiter_of(retry);
    bide_spsc_channel_ *channel = waiter->channel;
    return bide_spsc_channel_try_receive_(channel, waiter->element, channel->size);
}

static bool may_send(bide_retry *retry)
{
    bide_spsc_channel_ *channel = waiter_of(retry)->channel;
    bide_spsc_ring_ends_ *ends = &channel->ends;
    size_t tail = bide_atomic_load(&ends->tail, relaxed); /* the sender's own */
    return bide_spsc_ring_room_(ends, channel->capacity, tail, 1) != -ENOBUFS;
}

static bool may_receive(bide_retry *retry)
{
    bide_spsc_channel_ *channel = waiter_of(retry)->channel;
    bide_spsc_ring_ends_ *ends = &channel->ends;
    size_t head = bide_atomic_load(&ends->head, relaxed); /* the receiver's own */
    return bide_spsc_ring_known_(ends, channel->capacity, head, 1) != -EAGAIN;
}

const bide_retry_rules bide_spsc_channel_send_rules_ = {attempt_send, may_send};
const bide_retry_rules bide_spsc_channel_receive_rules_ = {attempt_receive, may_receive};

void bide_spsc_channel_init_(bide_spsc_channel_ *channel, void *slots, size_t capacity, size_t size)
{
    channel->slots = slots;
    channel->capacity = capacity;
    channel->size = size;
    bide_spsc_ring_init_(&channel->ends, capacity);
    bide_event_count_init(&channel->not_empty);
    bide_event_count_init(&channel->not_full);
}

void bide_spsc_channel_close_(bide_spsc_channel_ *channel)
{
    bide_spsc_ring_close_(&channel->ends);
    bide_event_count_notify_all(&channel->not_empty);
    bide_event_count_notify_all(&channel->not_full);
}

bool bide_spsc_channel_is_idle_(bide_spsc_channel_ *channel)
{
    return bide_event_count_is_idle(&channel->not_empty) &&
           bide_event_count_is_idle(&channel->not_full);
}

int bide_spsc_channel_send_blocking_(bide_spsc_channel_ *channel, const void *from,
                                     uint64_t deadline)
{
    bide_spsc_channel_waiter waiter;
    return bide_sync_wait_until(bide_spsc_channel_send_(&waiter, channel, from, channel->size),
                                deadline);
}

int bide_spsc_channel_receive_blocking_(bide_spsc_channel_ *channel, void *to, uint64_t deadline)
{
    bide_spsc_channel_waiter waiter;
    return bide_sync_wait_until(bide_spsc_channel_receive_(&waiter, channel, to, channel->size),
                                deadline);
}
