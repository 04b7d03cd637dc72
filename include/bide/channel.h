/*
 * A bounded channel: elements go from any number of senders to any number of receivers, each
 * element to one receiver. An operation that finds it full or empty waits. In the caller's memory.
 * Floor: queue.
 *
 *     bide_channel_slot(struct job) memory[64];
 *     bide_channel(struct job) jobs;
 *     bide_channel_init(&jobs, memory, 64);
 *     bide_try(bide_channel_send(&self->send, &jobs, &self->job));          // any coroutine
 *     bide_try(bide_channel_recv(&self->receive, &jobs, &self->job));    // any coroutine
 *
 *     send       0: it is in the channel     -EPIPE: closed; the element is still the sender's
 *     receive    0: it is the receiver's     -EPIPE: closed, and everything sent is received
 *     cancelled  -ECANCELED, -ETIMEDOUT      nothing was sent, or received
 *
 * Any thread may send, receive and close. No call blocks, but a push or pop that is under way hides
 * the elements behind it (mpmc_ring.h). Closing is final: receivers drain the channel, and then get
 * -EPIPE.
 *
 * A receiver gets one sender's elements in order, and receives in the order of the ring. Waiters
 * are served first come, first served. An operation that arrives at that moment may be faster; a
 * waiter that then finds nothing continues to wait, behind the others.
 *
 * Elements are copied as by memcpy. In the macros `channel_` and `memory` may be evaluated more
 * than once, the other arguments once.
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

/* One send or receive. The caller's memory until the wait has ended. */
typedef struct bide_channel_waiter {
    bide_event_count_waiter retry; /* at the head: it is the awaiter */
    bide_channel_ *channel;
    void *element;
} bide_channel_waiter;

extern const bide_event_count_ops bide_channel_send_ops_;
extern const bide_event_count_ops bide_channel_recv_ops_;

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

BIDE_INLINE int bide_channel_try_recv_(bide_channel_ *channel, void *to, size_t size)
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

BIDE_INLINE bool bide_channel_recvs_(bide_awaiter *awaiter, size_t size)
{
    bide_channel_waiter *waiter = (bide_channel_waiter *)(void *)awaiter;
    waiter->retry.status = bide_channel_try_recv_(waiter->channel, waiter->element, size);
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
BIDE_CHANNEL_READY_(bide_channel_recv_8_, bide_channel_recvs_, 8)
BIDE_CHANNEL_READY_(bide_channel_recv_16_, bide_channel_recvs_, 16)
BIDE_CHANNEL_READY_(bide_channel_recv_any_, bide_channel_recvs_,
                    bide_channel_element_size_(awaiter))
#undef BIDE_CHANNEL_READY_

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_channel_make_(bide_channel_waiter *waiter, bide_channel_ *channel,
                                             void *element, const bide_awaiter_ops *ops,
                                             const bide_event_count_ops *rules,
                                             bide_event_count *event_count)
{
    waiter->channel = channel;
    waiter->element = element;
    return bide_event_count_waiter_init_(&waiter->retry, ops, rules, event_count);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_channel_send_(bide_channel_waiter *waiter, bide_channel_ *channel,
                                             const void *from, size_t size)
{
    static const bide_awaiter_ops ops_8 = BIDE_EVENT_COUNT_WAITER_OPS(bide_channel_send_8_ready_,
                                                                      "bide_channel_send"),
                                  ops_16 = BIDE_EVENT_COUNT_WAITER_OPS(bide_channel_send_16_ready_,
                                                                       "bide_channel_send"),
                                  ops_any = BIDE_EVENT_COUNT_WAITER_OPS(
                                      bide_channel_send_any_ready_, "bide_channel_send");
    return bide_channel_make_(waiter, channel, (void *)(uintptr_t)from, /* it is not written to */
                              size == 8    ? &ops_8
                              : size == 16 ? &ops_16
                                           : &ops_any,
                              &bide_channel_send_ops_, &channel->not_full);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_channel_recv_(bide_channel_waiter *waiter, bide_channel_ *channel,
                                             void *to, size_t size)
{
    static const bide_awaiter_ops ops_8 = BIDE_EVENT_COUNT_WAITER_OPS(bide_channel_recv_8_ready_,
                                                                      "bide_channel_recv"),
                                  ops_16 = BIDE_EVENT_COUNT_WAITER_OPS(bide_channel_recv_16_ready_,
                                                                       "bide_channel_recv"),
                                  ops_any = BIDE_EVENT_COUNT_WAITER_OPS(
                                      bide_channel_recv_any_ready_, "bide_channel_recv");
    return bide_channel_make_(waiter, channel, to,
                              size == 8    ? &ops_8
                              : size == 16 ? &ops_16
                                           : &ops_any,
                              &bide_channel_recv_ops_, &channel->not_empty);
}

int bide_channel_send_blocking_(bide_channel_ *channel, const void *from, uint64_t deadline);
int bide_channel_recv_blocking_(bide_channel_ *channel, void *to, uint64_t deadline);
void bide_channel_init_(bide_channel_ *channel, void *slots, size_t capacity, size_t stride,
                        size_t offset, size_t size);
void bide_channel_close_(bide_channel_ *channel);
bool bide_channel_is_idle_(bide_channel_ *channel);

/* `pointer`, which must be one to an element. */
#define BIDE_CHANNEL_ELEMENT_(channel_, pointer) (1 ? (pointer) : &(channel_)->typed_->value)
#define BIDE_CHANNEL_SIZE_(channel_)             sizeof(channel_)->typed_->value

/*
 * Makes an empty channel over the array `memory` of `capacity` slots, at least 1, which stays the
 * caller's and must outlive the channel. The memory may be freed when nothing waits and nothing will use
 * it. An operation uses it until it has returned or ended, even if the other side has the element
 * by then.
 * Threads: before it is shared. Progress: wait-free, linear in the slots.
 */
#define bide_channel_init(channel_, memory, capacity)                                     \
    bide_channel_init_(&(channel_)->channel, (memory), (capacity), sizeof *(memory),      \
                       (size_t)((const char *)&(memory)->value - (const char *)(memory)), \
                       sizeof *BIDE_CHANNEL_ELEMENT_((channel_), &(memory)->value))

/*
 * Sends a copy of the element at `from`; waits while the channel is full. `from` and `waiter` must
 * stay until the wait has ended. If the coroutine is destroyed before it goes on, retry.status of
 * `waiter` is 0 if the element was sent.
 * Threads: any. Errors: -EPIPE (closed), -ECANCELED, -ETIMEDOUT. Suspends: if it is full.
 * Cancel-safe: yes, the element was not sent. Progress: lock-free for each call, as mpmc_ring.h
 * says.
 */
#define bide_channel_send(waiter, channel_, from) BIDE_CHANNEL_SEND_(waiter, channel_, from)
#define BIDE_CHANNEL_SEND_(waiter, channel_, from)                                                \
    bide_channel_send_((waiter), &(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (from)), \
                       BIDE_CHANNEL_SIZE_(channel_))

/*
 * Receives the first element, to where `to` points; waits while the channel is empty. `to` and
 * `waiter` must stay until the wait has ended. If the coroutine is destroyed before it goes on,
 * retry.status of `waiter` is 0 if an element was received.
 * Threads: any. Errors: -EPIPE (closed and drained), -ECANCELED, -ETIMEDOUT. Suspends: if it is
 * empty. Cancel-safe: yes, no element was taken. Progress: as bide_channel_send.
 */
#define bide_channel_recv(waiter, channel_, to) BIDE_CHANNEL_RECV_(waiter, channel_, to)
#define BIDE_CHANNEL_RECV_(waiter, channel_, to)                                                \
    bide_channel_recv_((waiter), &(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (to)), \
                       BIDE_CHANNEL_SIZE_(channel_))

/*
 * Sends at once, or not at all.
 * Threads: any. Errors: -EPIPE (closed), -ENOBUFS (full). Suspends: never. Progress: as
 * bide_channel_send.
 */
#define bide_channel_try_send(channel_, from)                                               \
    bide_channel_try_send_(&(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (from)), \
                           BIDE_CHANNEL_SIZE_(channel_))

/*
 * Receives at once, or not at all.
 * Threads: any. Errors: -EPIPE (closed and drained), -EAGAIN (empty). Suspends: never. Progress: as
 * bide_channel_send.
 */
#define bide_channel_try_recv(channel_, to)                                               \
    bide_channel_try_recv_(&(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (to)), \
                           BIDE_CHANNEL_SIZE_(channel_))

/*
 * Send and receive for a plain thread, which they block until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any. Errors: -EPIPE (as above), -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_channel_send_blocking(channel_, from, deadline)                                     \
    bide_channel_send_blocking_(&(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (from)), \
                                (deadline))
#define bide_channel_recv_blocking(channel_, to, deadline)                                     \
    bide_channel_recv_blocking_(&(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (to)), \
                                (deadline))

/*
 * Closes the channel for good: sends, now and later, end with -EPIPE; what is in it is received.
 * More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
#define bide_channel_close(channel_) bide_channel_close_(&(channel_)->channel)

/*
 * How many elements are in it: what was true at about this moment. For statistics.
 * Threads: any. Progress: wait-free.
 */
#define bide_channel_count(channel_) bide_mpmc_ring_count_((channel_)->channel.ring)

BIDE_INLINE void bide_channel_destroy_checked_(bide_channel_ *channel, const char *what,
                                               const char *function, const char *file,
                                               unsigned line)
{
    if (!bide_channel_is_idle_(channel))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_channel_destroy(channel_)                                     \
    BIDE_END_OF_LIFE_(bide_channel_destroy_checked_, &(channel_)->channel, \
                      "a channel is destroyed while it is waited for", #channel_)

/*
 * Why it is correct: it is a ring (mpmc_ring.h) with two event counts (event_count.h) for the
 * waiters, `not_full` and `not_empty`.
 *
 * 1. Waiting reserves nothing, neither a slot nor an element: an operation is attempted until it is
 *    done. So one that is cancelled loses nothing.
 * 2. Each push notifies one receiver, and each pop one sender, after it: N and L of event_count.md.
 *    The notifier attempts the operation of the first waiter on the waiter's behalf. A waiter's
 *    look is at the slot that its operation would claim. That slot is the last thing that a push or
 *    pop changes.
 * 3. A push that is under way hides the elements behind it from receivers (mpmc_ring.h). So a
 *    receiver that is notified of those may find nothing, and waits on. The push notifies when it
 *    is done. The receiver that then receives sees that there is more, and the next is attempted
 *    (event_count.md, 4). The same holds for a pop that is under way, and senders.
 * 4. Closing notifies all. A receiver that waits on because a push is still under way is notified
 *    by that push. After the last element each receiver that ends finds that the next would end
 *    too.
 *
 * Source: Go's channels, which also do what the other side waits for.
 */

BIDE_EXTERN_C_END

#endif
