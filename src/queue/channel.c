/* The bounded channel's slow half: sends and receives that wait. Any thread. The argument: the end of
 * channel.h. */
#include "bide/channel.h"

static bide_channel_waiter *channel_waiter_of(bide_event_count_waiter *retry)
{
    return bide_container_of(retry, bide_channel_waiter, retry);
}

static int channel_attempt_send(bide_event_count_waiter *retry)
{
    bide_channel_waiter *waiter = channel_waiter_of(retry);
    int status = bide_mpmc_ring_push_(waiter->channel->ring, waiter->element);
    return status == -ENOBUFS ? -EAGAIN : status;
}

static int channel_attempt_receive(bide_event_count_waiter *retry)
{
    bide_channel_waiter *waiter = channel_waiter_of(retry);
    return bide_mpmc_ring_pop_(waiter->channel->ring, waiter->element);
}

static bool channel_may_send(bide_event_count_waiter *retry)
{
    return bide_mpmc_ring_may_push_(channel_waiter_of(retry)->channel->ring);
}

static bool channel_may_receive(bide_event_count_waiter *retry)
{
    return bide_mpmc_ring_may_pop_(channel_waiter_of(retry)->channel->ring);
}

static bide_event_count *channel_not_empty(bide_event_count_waiter *retry)
{
    return &channel_waiter_of(retry)->channel->not_empty;
}

static bide_event_count *channel_not_full(bide_event_count_waiter *retry)
{
    return &channel_waiter_of(retry)->channel->not_full;
}

const bide_event_count_ops bide_channel_send_ops_ = {channel_attempt_send, channel_may_send,
                                                     channel_not_empty};
const bide_event_count_ops bide_channel_recv_ops_ = {channel_attempt_receive, channel_may_receive,
                                                     channel_not_full};

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
    if (channel->ring.closed == NULL) /* zeros */
        return;
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
