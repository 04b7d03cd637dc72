/* The bounded channel's slow half; the argument is in channel.h. */
#include "bide/channel.h"

static bide_channel_waiter *waiter_of(bide_event_count_waiter *retry)
{
    return bide_container_of(retry, bide_channel_waiter, retry);
}

static int attempt_send(bide_event_count_waiter *retry)
{
    bide_channel_waiter *waiter = waiter_of(retry);
    int status = bide_mpmc_ring_push_(waiter->channel->ring, waiter->element);
    return status == -ENOBUFS ? -EAGAIN : status;
}

static int attempt_receive(bide_event_count_waiter *retry)
{
    bide_channel_waiter *waiter = waiter_of(retry);
    return bide_mpmc_ring_pop_(waiter->channel->ring, waiter->element);
}

static bool may_send(bide_event_count_waiter *retry)
{
    return bide_mpmc_ring_may_push_(waiter_of(retry)->channel->ring);
}

static bool may_receive(bide_event_count_waiter *retry)
{
    return bide_mpmc_ring_may_pop_(waiter_of(retry)->channel->ring);
}

static bide_event_count *not_empty(bide_event_count_waiter *retry)
{
    return &waiter_of(retry)->channel->not_empty;
}

static bide_event_count *not_full(bide_event_count_waiter *retry)
{
    return &waiter_of(retry)->channel->not_full;
}

const bide_event_count_ops bide_channel_send_ops_ = {attempt_send, may_send, not_empty};
const bide_event_count_ops bide_channel_recv_ops_ = {attempt_receive, may_receive, not_full};

void bide_channel_init_(bide_channel_ *channel, void *slots, size_t capacity, size_t stride,
                        size_t offset, size_t size)
{
    channel->ring = bide_mpmc_ring_view_of_(bide_ring_shape_of_(capacity), &channel->closed,
                                            &channel->ends, slots, stride, offset, size);
    bide_mpmc_ring_init_(channel->ring, NULL);
    bide_event_count_init(&channel->not_empty);
    bide_event_count_init(&channel->not_full);
}

void bide_channel_close_(bide_channel_ *channel)
{
    bide_mpmc_ring_close_(channel->ring);
    bide_event_count_notify_all(&channel->not_empty);
    bide_event_count_notify_all(&channel->not_full);
}

bool bide_channel_is_idle_(bide_channel_ *channel)
{
    return bide_event_count_is_idle(&channel->not_empty) &&
           bide_event_count_is_idle(&channel->not_full);
}

int bide_channel_send_blocking_(bide_channel_ *channel, const void *from, uint64_t deadline)
{
    bide_channel_waiter waiter;
    return bide_sync_wait_until(bide_channel_send_(&waiter, channel, from, channel->ring.size),
                                deadline);
}

int bide_channel_recv_blocking_(bide_channel_ *channel, void *to, uint64_t deadline)
{
    bide_channel_waiter waiter;
    return bide_sync_wait_until(bide_channel_recv_(&waiter, channel, to, channel->ring.size),
                                deadline);
}
