/* The bounded channel's slow half: sends and receives that wait, permits, and elements that are
 * dropped. Any thread. The argument: the end of
 * channel.h. */
#include "bide/channel.h"

#include "bide/detail/back_off.h"

static bide_channel_waiter *channel_waiter_of(bide_event_count_waiter *retry)
{
    return bide_container_of(retry, bide_channel_waiter, retry);
}

static bide_channel_many_waiter *many_waiter_of(bide_event_count_waiter *retry)
{
    return bide_container_of(retry, bide_channel_many_waiter, one.retry);
}

/* ---- Elements that no receiver gets ---- */

/* How often a send looks again whether the oldest element can be dropped. */
#if BIDE_CHECK
enum { DROP_TRIES = 0 };
#else
enum { DROP_TRIES = 100 };
#endif

/* Drops the first element; `if_full`: unless there is room. Returns false if it cannot. 9 */
static bool channel_drop_first(bide_channel_ *channel, bool if_full)
{
    size_t position;
    void *element = bide_mpmc_ring_pop_begin_(channel->ring, if_full, &position);
    if (element == NULL)
        return false;
    if (channel->options.undelivered != NULL)
        channel->options.undelivered(channel->options.argument, element);
    bide_mpmc_ring_pop_end_(channel->ring, position);
    return true;
}

void bide_channel_drain_(bide_channel_ *channel)
{
    while (channel_drop_first(channel, false))
        ;
}

int bide_channel_send_slow_(bide_channel_ *channel, const void *from)
{
    const bide_channel_options *options = &channel->options;
    int tries = 0;
    for (;;) {
        int status = bide_mpmc_ring_push_beside_(channel->ring, from);
        if (status != -ENOBUFS || options->overflow == BIDE_CHANNEL_WAIT)
            return status;
        if (options->overflow == BIDE_CHANNEL_DROP_NEWEST)
            break;
        if (channel_drop_first(channel, true))
            continue;
        if (tries++ == DROP_TRIES)
            break;
        bide_pause_(1);
    }
    if (options->undelivered != NULL)
        options->undelivered(options->argument, (void *)(uintptr_t)from); /* it is only read */
    return 0;
}

/* ---- Operations that wait ---- */

static int channel_attempt_send(bide_event_count_waiter *retry)
{
    bide_channel_waiter *waiter = channel_waiter_of(retry);
    int status = bide_mpmc_ring_push_(waiter->channel->ring, waiter->element);
    if (status == -EBUSY || status == -ENOBUFS)
        status = bide_channel_send_slow_(waiter->channel, waiter->element);
    return status == -ENOBUFS ? -EAGAIN : status;
}

static int channel_attempt_reserve(bide_event_count_waiter *retry)
{
    bide_channel_waiter *waiter = channel_waiter_of(retry);
    int status = bide_mpmc_ring_reserve_(waiter->channel->ring);
    if (status == 0)
        ((bide_channel_permit *)waiter->element)->channel = waiter->channel;
    return status == -ENOBUFS ? -EAGAIN : status;
}

static int channel_attempt_reserve_many(bide_event_count_waiter *retry)
{
    bide_channel_many_waiter *many = many_waiter_of(retry);
    int status = bide_channel_try_reserve_many_(
        many->one.channel, (bide_channel_permit *)many->one.element, many->max, many->count);
    return status == -ENOBUFS ? -EAGAIN : status;
}

static int channel_attempt_receive_many(bide_event_count_waiter *retry)
{
    bide_channel_many_waiter *many = many_waiter_of(retry);
    if (many->max == 0)
        return -EINVAL;
    ptrdiff_t taken =
        bide_mpmc_ring_pop_many_(many->one.channel->ring, many->one.element, many->max);
    *many->count = taken > 0 ? (size_t)taken : 0;
    return taken > 0 ? 0 : (int)taken;
}

static int channel_attempt_receive(bide_event_count_waiter *retry)
{
    bide_channel_waiter *waiter = channel_waiter_of(retry);
    return bide_mpmc_ring_pop_(waiter->channel->ring, waiter->element);
}

/* A send, or a reservation. (A send that drops elements does not come to wait.) */
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
const bide_event_count_ops bide_channel_recv_many_ops_ = {channel_attempt_receive_many,
                                                          channel_may_receive, channel_not_full};
const bide_event_count_ops bide_channel_reserve_ops_ = {channel_attempt_reserve, channel_may_send,
                                                        NULL};
const bide_event_count_ops bide_channel_reserve_many_ops_ = {channel_attempt_reserve_many,
                                                             channel_may_send, NULL};

/* ---- Permits ---- */

int bide_channel_try_reserve_(bide_channel_ *channel, bide_channel_permit *permit)
{
    int status = bide_mpmc_ring_reserve_(channel->ring);
    permit->channel = status == 0 ? channel : NULL;
    return status;
}

int bide_channel_try_reserve_many_(bide_channel_ *channel, bide_channel_permit *permits, size_t max,
                                   size_t *count)
{
    int status = max != 0 ? 0 : -EINVAL;
    size_t reserved = 0;
    for (; reserved < max; reserved++) {
        status = bide_mpmc_ring_reserve_(channel->ring);
        if (status != 0)
            break;
        permits[reserved].channel = channel;
    }
    *count = reserved;
    for (size_t i = reserved; i < max; i++)
        permits[i].channel = NULL;
    return reserved != 0 ? 0 : status;
}

void bide_channel_permit_send_(bide_channel_permit *permit, const void *from)
{
    bide_channel_ *channel = permit->channel;
    permit->channel = NULL;
    size_t tail = bide_mpmc_ring_push_reserved_(channel->ring, from);
    bide_event_count_notify(&channel->not_empty, 1);
    /* relaxed, here and below: 9. */
    if ((tail & BIDE_RING_CLOSED_) != 0 && bide_atomic_load(&channel->abandoned, relaxed) != 0)
        bide_channel_drain_(channel);
}

void bide_channel_permit_release_(bide_channel_permit *permit)
{
    bide_channel_ *channel = permit->channel;
    permit->channel = NULL;
    size_t tail = bide_mpmc_ring_unreserve_(channel->ring);
    if ((tail & BIDE_RING_CLOSED_) != 0)
        bide_event_count_notify(&channel->not_empty, 1); /* 6 */
    bide_event_count_notify(&channel->not_full, 1);      /* 5 */
}

static bool channel_reserve_ready(bide_awaiter *awaiter)
{
    bide_channel_waiter *waiter = (bide_channel_waiter *)(void *)awaiter;
    waiter->retry.status = channel_attempt_reserve(&waiter->retry);
    return waiter->retry.status != -EAGAIN;
}

/* Gives the permit back if it was reserved, and its holder will never know. */
static bool channel_reserve_withdraw(bide_awaiter *awaiter)
{
    bide_channel_waiter *waiter = (bide_channel_waiter *)(void *)awaiter;
    bide_channel_permit *permit = waiter->element;
    if (bide_event_count_waiter_withdraw_(awaiter))
        return true;
    if (permit->channel != NULL)
        bide_channel_permit_release_(permit);
    return false;
}

bide_awaiter *bide_channel_reserve_(bide_channel_waiter *waiter, bide_channel_ *channel,
                                    bide_channel_permit *permit)
{
    static const bide_awaiter_ops ops = {
        .ready = channel_reserve_ready,
        .suspend = bide_event_count_waiter_suspend_,
        .resume = bide_event_count_waiter_resume_,
        .cancel = bide_event_count_waiter_cancel_,
        .withdraw = channel_reserve_withdraw,
        .name = "bide_channel_reserve",
        .attempt = bide_event_count_waiter_choose_,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    permit->channel = NULL;
    return bide_channel_make_(waiter, channel, permit, &ops, &bide_channel_reserve_ops_,
                              &channel->not_full);
}

static bool channel_reserve_many_ready(bide_awaiter *awaiter)
{
    bide_channel_many_waiter *many = (bide_channel_many_waiter *)(void *)awaiter;
    many->one.retry.status = channel_attempt_reserve_many(&many->one.retry);
    return many->one.retry.status != -EAGAIN;
}

/* Gives back those that were reserved, if their holder will never know. */
static bool channel_reserve_many_withdraw(bide_awaiter *awaiter)
{
    bide_channel_many_waiter *many = (bide_channel_many_waiter *)(void *)awaiter;
    bide_channel_permit *permits = many->one.element;
    if (bide_event_count_waiter_withdraw_(awaiter))
        return true;
    for (size_t i = 0; i < *many->count; i++)
        bide_channel_permit_release_(&permits[i]);
    *many->count = 0;
    return false;
}

bide_awaiter *bide_channel_reserve_many_(bide_channel_many_waiter *waiter, bide_channel_ *channel,
                                         bide_channel_permit *permits, size_t max, size_t *count)
{
    static const bide_awaiter_ops ops = {
        .ready = channel_reserve_many_ready,
        .suspend = bide_event_count_waiter_suspend_,
        .resume = bide_event_count_waiter_resume_,
        .cancel = bide_event_count_waiter_cancel_,
        .withdraw = channel_reserve_many_withdraw,
        .name = "bide_channel_reserve_many",
        .attempt = bide_event_count_waiter_choose_,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->max = max;
    waiter->count = count;
    *count = 0;
    for (size_t i = 0; i < max; i++)
        permits[i].channel = NULL;
    return bide_channel_make_(&waiter->one, channel, permits, &ops, &bide_channel_reserve_many_ops_,
                              &channel->not_full);
}

int bide_channel_reserve_many_blocking_(bide_channel_ *channel, bide_channel_permit *permits,
                                        size_t max, size_t *count, uint64_t deadline)
{
    bide_channel_many_waiter waiter;
    return bide_sync_wait_until(bide_channel_reserve_many_(&waiter, channel, permits, max, count),
                                deadline);
}

int bide_channel_reserve_blocking_(bide_channel_ *channel, bide_channel_permit *permit,
                                   uint64_t deadline)
{
    bide_channel_waiter waiter;
    return bide_sync_wait_until(bide_channel_reserve_(&waiter, channel, permit), deadline);
}

/* ---- The channel ---- */

void bide_channel_init_(bide_channel_ *channel, void *slots, size_t capacity, size_t stride,
                        size_t offset, size_t size)
{
    static const bide_channel_options options = {BIDE_CHANNEL_WAIT, NULL, NULL};
    bide_channel_init_with_(channel, slots, capacity, stride, offset, size, &options);
}

void bide_channel_init_with_(bide_channel_ *channel, void *slots, size_t capacity, size_t stride,
                             size_t offset, size_t size, const bide_channel_options *options)
{
    channel->options = *options;
    bide_atomic_init(&channel->abandoned, 0);
    bide_atomic_init(&channel->senders, 0);
    bide_atomic_init(&channel->receivers, 0);
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

void bide_channel_receiver_gone_(bide_channel_ *channel)
{
    bide_atomic_store(&channel->abandoned, 1, relaxed);
    bide_channel_close_(channel);
    bide_channel_drain_(channel);
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

int bide_channel_recv_many_blocking_(bide_channel_ *channel, void *to, size_t max, size_t *count,
                                     uint64_t deadline)
{
    bide_channel_many_waiter waiter;
    return bide_sync_wait_until(
        bide_channel_recv_many_(&waiter, channel, to, max, count, channel->ring.size), deadline);
}
