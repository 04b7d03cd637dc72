/* The unbounded channel's slow half: receives that wait. Any thread, with a seat of its own. The
 * argument: the end of unbounded_channel.h. */
#include "bide/unbounded_channel.h"

static bide_unbounded_channel_waiter *unbounded_waiter_of(bide_event_count_waiter *retry)
{
    return bide_container_of(retry, bide_unbounded_channel_waiter, own.retry);
}

static int unbounded_attempt_receive(bide_event_count_waiter *retry)
{
    bide_unbounded_channel_waiter *waiter = unbounded_waiter_of(retry);
    bide_segment_queue_ *queue = &waiter->channel->queue;
    return bide_unbounded_channel_try_recv_(waiter->channel, waiter->seat, waiter->element,
                                            queue->stride, queue->size);
}

static int unbounded_attempt_receive_many(bide_event_count_waiter *retry)
{
    bide_unbounded_channel_many_waiter *many =
        bide_container_of(retry, bide_unbounded_channel_many_waiter, one.own.retry);
    bide_segment_queue_ *queue = &many->one.channel->queue;
    return bide_unbounded_channel_try_recv_many_(many->one.channel, many->one.seat,
                                                 many->one.element, many->max, many->count,
                                                 queue->stride, queue->size);
}

static bool unbounded_may_receive(bide_event_count_waiter *retry)
{
    bide_unbounded_channel_waiter *waiter = unbounded_waiter_of(retry);
    return bide_segment_queue_may_pop_(&waiter->channel->queue, waiter->seat);
}

const bide_event_count_ops bide_unbounded_channel_recv_ops_ = {unbounded_attempt_receive,
                                                               unbounded_may_receive, NULL};
const bide_event_count_ops bide_unbounded_channel_recv_many_ops_ = {unbounded_attempt_receive_many,
                                                                    unbounded_may_receive, NULL};

int bide_unbounded_channel_init_(bide_unbounded_channel_ *channel, bide_hazard_domain *domain,
                                 bide_allocator *allocator, size_t cells, size_t stride,
                                 size_t size)
{
    bide_event_count_init(&channel->not_empty);
    return bide_segment_queue_init_(&channel->queue, domain, allocator, cells, stride, size);
}

void bide_unbounded_channel_close_(bide_unbounded_channel_ *channel, bide_hazard_seat *seat)
{
    bide_segment_queue_close_(&channel->queue, seat);
    bide_event_count_notify_all(&channel->not_empty);
}

bool bide_unbounded_channel_is_idle_(bide_unbounded_channel_ *channel)
{
    return bide_event_count_is_idle(&channel->not_empty);
}

int bide_unbounded_channel_recv_blocking_(bide_unbounded_channel_ *channel, bide_hazard_seat *seat,
                                          void *to, uint64_t deadline)
{
    bide_unbounded_channel_waiter waiter;
    return bide_sync_wait_until(bide_unbounded_channel_recv_(&waiter, channel, seat, to), deadline);
}

int bide_unbounded_channel_recv_many_blocking_(bide_unbounded_channel_ *channel,
                                               bide_hazard_seat *seat, void *to, size_t max,
                                               size_t *count, uint64_t deadline)
{
    bide_unbounded_channel_many_waiter waiter;
    return bide_sync_wait_until(
        bide_unbounded_channel_recv_many_(&waiter, channel, seat, to, max, count), deadline);
}
