/* The channel of one sender and one receiver: sends and receives that wait. One thread at a time is
 * each of them. The argument: the end of spsc_channel.h. */
#include "bide/spsc_channel.h"

static bide_spsc_channel_waiter *spsc_waiter_of(bide_event_count_waiter *retry)
{
    return bide_container_of(retry, bide_spsc_channel_waiter, retry);
}

int bide_spsc_channel_full_(bide_spsc_channel_ *channel, const void *from)
{
    const bide_spsc_channel_options *options = &channel->options;
    if (!options->drops_newest)
        return -ENOBUFS;
    if (options->undelivered != NULL)
        options->undelivered(options->argument, (void *)(uintptr_t)from); /* it is only read */
    return 0;
}

static int spsc_attempt_send(bide_event_count_waiter *retry)
{
    bide_spsc_channel_waiter *waiter = spsc_waiter_of(retry);
    bide_spsc_channel_ *channel = waiter->channel;
    int status = bide_spsc_ring_push_(&channel->ends, channel->capacity, channel->slots,
                                      waiter->element, channel->size);
    if (status == -ENOBUFS)
        status = bide_spsc_channel_full_(channel, waiter->element);
    return status == -ENOBUFS ? -EAGAIN : status;
}

static int spsc_attempt_receive(bide_event_count_waiter *retry)
{
    bide_spsc_channel_waiter *waiter = spsc_waiter_of(retry);
    bide_spsc_channel_ *channel = waiter->channel;
    return bide_spsc_ring_pop_(&channel->ends, channel->capacity, channel->slots, waiter->element,
                               channel->size);
}

static int spsc_attempt_receive_many(bide_event_count_waiter *retry)
{
    bide_spsc_channel_many_waiter *many =
        bide_container_of(retry, bide_spsc_channel_many_waiter, one.retry);
    bide_spsc_channel_ *channel = many->one.channel;
    if (many->max == 0)
        return -EINVAL;
    ptrdiff_t taken = bide_spsc_ring_pop_many_(&channel->ends, channel->capacity, channel->slots,
                                               many->one.element, many->max, channel->size);
    *many->count = taken > 0 ? (size_t)taken : 0;
    return taken > 0 ? 0 : (int)taken;
}

/* Both read only the ring's shared words: another thread may attempt at the same time. */
static bool spsc_may_send(bide_event_count_waiter *retry)
{
    bide_spsc_channel_ *channel = spsc_waiter_of(retry)->channel;
    bide_spsc_ring_ends_ *ends = &channel->ends;
    /* relaxed: B of event_count.md. */
    size_t tail = bide_atomic_load(&ends->tail, relaxed);
    return tail - bide_atomic_load(&ends->head, relaxed) != 2 * channel->capacity; /* or closed */
}

static bool spsc_may_receive(bide_event_count_waiter *retry)
{
    bide_spsc_ring_ends_ *ends = &spsc_waiter_of(retry)->channel->ends;
    /* relaxed: as above. */
    return bide_atomic_load(&ends->tail, relaxed) != bide_atomic_load(&ends->head, relaxed);
}

static bide_event_count *spsc_not_empty(bide_event_count_waiter *retry)
{
    return &spsc_waiter_of(retry)->channel->not_empty;
}

static bide_event_count *spsc_not_full(bide_event_count_waiter *retry)
{
    return &spsc_waiter_of(retry)->channel->not_full;
}

const bide_event_count_ops bide_spsc_channel_send_ops_ = {spsc_attempt_send, spsc_may_send,
                                                          spsc_not_empty};
const bide_event_count_ops bide_spsc_channel_recv_ops_ = {spsc_attempt_receive, spsc_may_receive,
                                                          spsc_not_full};
const bide_event_count_ops bide_spsc_channel_recv_many_ops_ = {spsc_attempt_receive_many,
                                                               spsc_may_receive, spsc_not_full};

void bide_spsc_channel_init_(bide_spsc_channel_ *channel, void *slots, size_t capacity, size_t size)
{
    static const bide_spsc_channel_options options = {false, NULL, NULL};
    bide_spsc_channel_init_with_(channel, slots, capacity, size, &options);
}

void bide_spsc_channel_init_with_(bide_spsc_channel_ *channel, void *slots, size_t capacity,
                                  size_t size, const bide_spsc_channel_options *options)
{
    channel->options = *options;
    bide_atomic_init(&channel->senders, 0);
    channel->slots = slots;
    channel->capacity = capacity;
    channel->size = size;
    bide_spsc_ring_init_(&channel->ends, capacity);
    bide_event_count_init(&channel->not_empty);
    bide_event_count_init(&channel->not_full);
}

void bide_spsc_channel_close_(bide_spsc_channel_ *channel, const char *what, const char *function,
                              const char *file, unsigned line)
{
    if (!bide_event_count_is_idle(&channel->not_full))
        bide_misuse_(what, function, file, line);
    bide_spsc_ring_close_(&channel->ends);
    bide_event_count_notify_all(&channel->not_empty);
}

/* Nobody uses it any more. */
void bide_spsc_channel_drain_(bide_spsc_channel_ *channel)
{
    const bide_spsc_channel_options *options = &channel->options;
    size_t place = channel->ends.head_place;
    for (size_t left = bide_spsc_ring_count_(&channel->ends, channel->capacity); left != 0;
         left--) {
        options->undelivered(options->argument, (char *)channel->slots + place * channel->size);
        if (++place == channel->capacity)
            place = 0;
    }
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

int bide_spsc_channel_recv_blocking_(bide_spsc_channel_ *channel, void *to, uint64_t deadline)
{
    bide_spsc_channel_waiter waiter;
    return bide_sync_wait_until(bide_spsc_channel_recv_(&waiter, channel, to, channel->size),
                                deadline);
}

int bide_spsc_channel_recv_many_blocking_(bide_spsc_channel_ *channel, void *to, size_t max,
                                          size_t *count, uint64_t deadline)
{
    bide_spsc_channel_many_waiter waiter;
    return bide_sync_wait_until(bide_spsc_channel_recv_many_(&waiter, channel, to, max, count),
                                deadline);
}
