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
    bide_hazard_seat *taken = bide_unbounded_channel_sit_(waiter->channel, waiter->seat);
    bool may = bide_segment_queue_may_pop_(&waiter->channel->queue, taken);
    bide_unbounded_channel_rise_(waiter->channel, waiter->seat, taken);
    return may;
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
    channel->own = NULL;
    channel->undelivered = NULL;
    channel->argument = NULL;
    bide_atomic_init(&channel->senders, 0);
    bide_atomic_init(&channel->receivers, 0);
    return bide_segment_queue_init_(&channel->queue, domain, allocator, cells, stride, size);
}

/* ---- Seats of its own ---- */

enum { OWN_SEATS = 32 };

struct bide_unbounded_channel_own_ {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_hazard_domain domain;
    bide_allocator *allocator;
    void *memory; /* what the allocator gave */
    bide_hazard_seat seats[OWN_SEATS];
};

enum { OWN_SIZE = sizeof(struct bide_unbounded_channel_own_) + BIDE_CACHE_LINE };

int bide_unbounded_channel_init_own_(bide_unbounded_channel_ *channel, bide_allocator *allocator,
                                     size_t cells, size_t stride, size_t size)
{
    unsigned char *memory = (unsigned char *)allocator->allocate(allocator, OWN_SIZE);
    if (memory == NULL)
        return -ENOMEM;
    size_t over = (uintptr_t)memory % BIDE_CACHE_LINE;
    struct bide_unbounded_channel_own_ *own =
        (struct bide_unbounded_channel_own_ *)(void *)(memory +
                                                       (over == 0 ? 0 : BIDE_CACHE_LINE - over));
    own->allocator = allocator;
    own->memory = memory;
    bide_hazard_init(&own->domain, own->seats, OWN_SEATS);
    int status =
        bide_unbounded_channel_init_(channel, &own->domain, allocator, cells, stride, size);
    if (status != 0) {
        allocator->deallocate(allocator, memory, OWN_SIZE);
        return status;
    }
    channel->own = own;
    return 0;
}

/* After its queue. */
void bide_unbounded_channel_destroy_own_(bide_unbounded_channel_ *channel)
{
    struct bide_unbounded_channel_own_ *own = channel->own;
    bide_hazard_destroy(&own->domain);
    own->allocator->deallocate(own->allocator, own->memory, OWN_SIZE);
}

/* ---- The channel ---- */

void bide_unbounded_channel_close_(bide_unbounded_channel_ *channel, bide_hazard_seat *seat)
{
    bide_hazard_seat *taken = bide_unbounded_channel_sit_(channel, seat);
    bide_segment_queue_close_(&channel->queue, taken);
    bide_unbounded_channel_rise_(channel, seat, taken);
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
