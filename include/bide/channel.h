/*
 * A bounded channel: elements go from any number of senders to any number of receivers, each to one; who finds it full
 * or empty waits. In the caller's memory. Floor: queue.
 *
 *     bide_channel_slot(struct job) memory[64];
 *     bide_channel(struct job) jobs;
 *     bide_channel_init(&jobs, memory, 64);
 *     bide_await_status(status, bide_channel_send(&self->send, &jobs, &self->job));
 *     bide_await_status(status, bide_channel_receive(&self->receive, &jobs, &self->job));
 *
 * It is a ring (mpmc_ring.h), and two event counts (event_count.h) for who waits: `not_full`, `not_empty`.
 *
 *     open --close--> closed, and drained by receivers --> closed, empty
 *
 *     send       0: it is in the channel         -EPIPE: it is closed, and the element is the sender's still
 *     receive    0: it is the receiver's         -EPIPE: it is closed, and all that was sent has been received
 *     cut short  -ECANCELED, -ETIMEDOUT          nothing was sent, or received
 *
 * 1. Waiting reserves nothing, neither a slot nor an element: an operation is attempted until it is done. So one that
 *    is cut short loses nothing.
 * 2. Each push notifies one receiver, each pop one sender, after it: N and L of event_count.h. Who notifies attempts on
 *    behalf of who waits first. The look of who waits is at the slot that its operation would claim, which is the last
 *    that a push or pop changes.
 * 3. A push that is under way hides those behind it from receivers (mpmc_ring.h): who is notified of them may find
 *    nothing. He waits on; the push notifies when it is done; whoever then receives sees that there is more, and the
 *    next is attempted (event_count.h, 4). The same for a pop that is under way, and senders.
 * 4. Closing notifies all. A receiver that waits on, because a push is under way still, is notified by that; after the
 *    last element each that ends finds that the next would end too.
 *
 * Order: what one sender sends comes in its order; and what one receiver receives came in the ring's. Who waits is
 * served first come, first served; but one who comes at that moment may be faster, and then who finds nothing waits on
 * behind the others.
 *
 * Threads: any. Progress: as the ring. Source: Go's channels, which also do what the other waits for.
 */
#ifndef BIDE_CHANNEL_H
#define BIDE_CHANNEL_H

#include "bide/extend/event_count.h"
#include "bide/mpmc_ring.h"

BIDE_EXTERN_C_BEGIN

/* A channel without its type. */
typedef struct bide_channel_ {
    bide_mpmc_ring_view_ ring;    /* constant */
    bide_atomic(uint32_t) closed; /* the ring's, in a line of what never changes otherwise */
    bide_mpmc_ring_ends_ ends;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_event_count not_empty;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_event_count not_full;
} bide_channel_;

/* What a channel's memory is an array of. Each use is a type of its own. */
#define bide_channel_slot(type) bide_mpmc_ring_slot(type)

/* A channel of elements of `type`. Each use is a type of its own: give it a name by a typedef. */
#define bide_channel(type)                  \
    struct {                                \
        bide_channel_ channel;              \
        bide_mpmc_ring_slot(type) * typed_; \
    }

/* One send or receive. The caller's, for the time of the wait. */
typedef struct bide_channel_waiter {
    bide_retry retry; /* at the head: it is the awaiter */
    bide_channel_ *channel;
    void *element;
} bide_channel_waiter;

extern const bide_retry_rules bide_channel_send_rules_;
extern const bide_retry_rules bide_channel_receive_rules_;

/* The ring, with the size of its elements where the compiler knows it. */
BIDE_INLINE bide_mpmc_ring_view_ bide_channel_ring_(const bide_channel_ *channel, size_t size)
{
    bide_mpmc_ring_view_ ring = channel->ring;
    ring.size = size;
    return ring;
}

BIDE_INLINE int bide_channel_try_send_(bide_channel_ *channel, const void *from, size_t size)
{
    int status = bide_mpmc_ring_push_(bide_channel_ring_(channel, size), from);
    if (BIDE_LIKELY(status == 0))
        bide_event_count_notify(&channel->not_empty, 1);
    return status;
}

BIDE_INLINE int bide_channel_try_receive_(bide_channel_ *channel, void *to, size_t size)
{
    int status = bide_mpmc_ring_pop_(bide_channel_ring_(channel, size), to);
    if (BIDE_LIKELY(status == 0))
        bide_event_count_notify(&channel->not_full, 1);
    return status;
}

BIDE_INLINE bool bide_channel_sends_(bide_awaiter *awaiter, size_t size)
{
    bide_channel_waiter *waiter = (bide_channel_waiter *)(void *)awaiter;
    waiter->retry.status = bide_channel_try_send_(waiter->channel, waiter->element, size);
    return waiter->retry.status != -ENOBUFS;
}

BIDE_INLINE bool bide_channel_receives_(bide_awaiter *awaiter, size_t size)
{
    bide_channel_waiter *waiter = (bide_channel_waiter *)(void *)awaiter;
    waiter->retry.status = bide_channel_try_receive_(waiter->channel, waiter->element, size);
    return waiter->retry.status != -EAGAIN;
}

BIDE_INLINE size_t bide_channel_element_size_(bide_awaiter *awaiter)
{
    return ((bide_channel_waiter *)(void *)awaiter)->channel->ring.size;
}

/* Operations whose `ready` knows the size of the element: words, pairs of them, and any. */
#define BIDE_CHANNEL_READY_(name, does, size)            \
    BIDE_INLINE bool name##ready_(bide_awaiter *awaiter) \
    {                                                    \
        return does(awaiter, (size));                    \
    }
BIDE_CHANNEL_READY_(bide_channel_send_8_, bide_channel_sends_, 8)
BIDE_CHANNEL_READY_(bide_channel_send_16_, bide_channel_sends_, 16)
BIDE_CHANNEL_READY_(bide_channel_send_any_, bide_channel_sends_,
                    bide_channel_element_size_(awaiter))
BIDE_CHANNEL_READY_(bide_channel_receive_8_, bide_channel_receives_, 8)
BIDE_CHANNEL_READY_(bide_channel_receive_16_, bide_channel_receives_, 16)
BIDE_CHANNEL_READY_(bide_channel_receive_any_, bide_channel_receives_,
                    bide_channel_element_size_(awaiter))
#undef BIDE_CHANNEL_READY_

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_channel_make_(bide_channel_waiter *waiter, bide_channel_ *channel,
                                             void *element, const bide_awaiter_ops *ops,
                                             const bide_retry_rules *rules,
                                             bide_event_count *event_count)
{
    waiter->channel = channel;
    waiter->element = element;
    return bide_retry_init_(&waiter->retry, ops, rules, event_count);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_channel_send_(bide_channel_waiter *waiter, bide_channel_ *channel,
                                             const void *from, size_t size)
{
    static const bide_awaiter_ops ops_8 = BIDE_RETRY_OPS(bide_channel_send_8_ready_,
                                                         "bide_channel_send"),
                                  ops_16 = BIDE_RETRY_OPS(bide_channel_send_16_ready_,
                                                          "bide_channel_send"),
                                  ops_any = BIDE_RETRY_OPS(bide_channel_send_any_ready_,
                                                           "bide_channel_send");
    return bide_channel_make_(waiter, channel, (void *)(uintptr_t)from, /* (it is not written to) */
                              size == 8    ? &ops_8
                              : size == 16 ? &ops_16
                                           : &ops_any,
                              &bide_channel_send_rules_, &channel->not_full);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_channel_receive_(bide_channel_waiter *waiter, bide_channel_ *channel,
                                                void *to, size_t size)
{
    static const bide_awaiter_ops ops_8 = BIDE_RETRY_OPS(bide_channel_receive_8_ready_,
                                                         "bide_channel_receive"),
                                  ops_16 = BIDE_RETRY_OPS(bide_channel_receive_16_ready_,
                                                          "bide_channel_receive"),
                                  ops_any = BIDE_RETRY_OPS(bide_channel_receive_any_ready_,
                                                           "bide_channel_receive");
    return bide_channel_make_(waiter, channel, to,
                              size == 8    ? &ops_8
                              : size == 16 ? &ops_16
                                           : &ops_any,
                              &bide_channel_receive_rules_, &channel->not_empty);
}

int bide_channel_send_blocking_(bide_channel_ *channel, const void *from, uint64_t deadline);
int bide_channel_receive_blocking_(bide_channel_ *channel, void *to, uint64_t deadline);
void bide_channel_init_(bide_channel_ *channel, void *slots, size_t capacity, size_t stride,
                        size_t offset, size_t size);
void bide_channel_close_(bide_channel_ *channel);
bool bide_channel_is_idle_(bide_channel_ *channel);

/* `pointer`, which must be one to an element. */
#define BIDE_CHANNEL_ELEMENT_(sent, pointer) (1 ? (pointer) : &(sent)->typed_->value)
#define BIDE_CHANNEL_SIZE_(sent)             sizeof(sent)->typed_->value

/*
 * Makes an empty channel over the array `memory` of `capacity` slots, at least 1, which stay the caller's and must
 * outlive it. Before it is shared. The memory may go when nobody waits and nobody will use it; who has sent or received
 * uses it until that has returned or ended, even if the other side has the element by then.
 */
#define bide_channel_init(made, memory, capacity)                                         \
    bide_channel_init_(&(made)->channel, (memory), (capacity), sizeof *(memory),          \
                       (size_t)((const char *)&(memory)->value - (const char *)(memory)), \
                       sizeof *BIDE_CHANNEL_ELEMENT_((made), &(memory)->value))

/*
 * Sends a copy of the element at `from`, which is the operation's until it has ended; as is `waiter`. Waits while the
 * channel is full. Ends with 0; -EPIPE; or -ECANCELED or -ETIMEDOUT (stop.h). Any thread; suspends if it has to wait;
 * cancel-safe: yes, the element was not sent then; lock-free but for what mpmc_ring.h says. (Of a coroutine that is
 * destroyed before it goes on, retry.status of `waiter` says 0 if the element was sent.)
 */
#define bide_channel_send(waiter, sent, from)                                             \
    bide_channel_send_((waiter), &(sent)->channel, BIDE_CHANNEL_ELEMENT_((sent), (from)), \
                       BIDE_CHANNEL_SIZE_(sent))

/*
 * Receives the first element, to where `to` points. Waits while the channel is empty. Ends with 0; -EPIPE, it is closed
 * and drained; or -ECANCELED or -ETIMEDOUT. As send; cancel-safe: yes, no element was taken then. (Destroyed: as send.)
 */
#define bide_channel_receive(waiter, received, to)                                                 \
    bide_channel_receive_((waiter), &(received)->channel, BIDE_CHANNEL_ELEMENT_((received), (to)), \
                          BIDE_CHANNEL_SIZE_(received))

/* The same at once: 0, -EPIPE, or -ENOBUFS: it is full. Any thread; does not suspend. */
#define bide_channel_try_send(sent, from)                                           \
    bide_channel_try_send_(&(sent)->channel, BIDE_CHANNEL_ELEMENT_((sent), (from)), \
                           BIDE_CHANNEL_SIZE_(sent))

/* The same at once: 0, -EPIPE, or -EAGAIN: it is empty. Any thread; does not suspend. */
#define bide_channel_try_receive(received, to)                                               \
    bide_channel_try_receive_(&(received)->channel, BIDE_CHANNEL_ELEMENT_((received), (to)), \
                              BIDE_CHANNEL_SIZE_(received))

/* The same for a plain thread, until `deadline` (nanoseconds of bide_platform.now(), or BIDE_FOREVER): returns what the
 * wait ends with, -ETIMEDOUT when the deadline has come. See bide_sync_wait_until. Blocks. */
#define bide_channel_send_blocking(sent, from, deadline) \
    bide_channel_send_blocking_(&(sent)->channel, BIDE_CHANNEL_ELEMENT_((sent), (from)), (deadline))
#define bide_channel_receive_blocking(received, to, deadline)                                     \
    bide_channel_receive_blocking_(&(received)->channel, BIDE_CHANNEL_ELEMENT_((received), (to)), \
                                   (deadline))

/* Closes it for good: who sends, now and later, ends with -EPIPE; what is in it is received. Any thread, more than
 * once; does not suspend. */
#define bide_channel_close(closed) bide_channel_close_(&(closed)->channel)

/* How many elements are in it: what was true at about this moment. For statistics. Any thread; wait-free. */
#define bide_channel_count(counted) bide_mpmc_ring_count_((counted)->channel.ring)

BIDE_INLINE void bide_channel_destroy_checked_(bide_channel_ *channel, const char *what,
                                               const char *function, const char *file,
                                               unsigned line)
{
    if (!bide_channel_is_idle_(channel))
        bide_misuse_(what, function, file, line);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if it is waited for. */
#if BIDE_DEBUG
#define bide_channel_destroy(destroyed) \
    bide_channel_destroy_checked_(      \
        &(destroyed)->channel,          \
        BIDE_MISUSE_("a channel is destroyed while it is waited for", #destroyed))
#else
#define bide_channel_destroy(destroyed) ((void)(destroyed))
#endif

BIDE_EXTERN_C_END

#endif
