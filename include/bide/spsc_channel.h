/*
 * A bounded channel from one sender to one receiver, in the caller's memory. A send waits while the
 * channel is full, a receive while it is empty. This is the fastest channel here: while nothing
 * waits, sending and receiving execute no locked instruction. Floor: queue.
 *
 *     struct job memory[64];
 *     bide_spsc_channel(struct job) jobs;
 *     bide_spsc_channel_init(&jobs, memory, 64);
 *     bide_try(bide_spsc_channel_send(&self->send, &jobs, &self->job));       // the sender
 *     bide_try(bide_spsc_channel_recv(&self->receive, &jobs, &self->job));    // the receiver
 *     bide_spsc_channel_close(&jobs);                                         // the sender
 *
 *     send       0: it is in the channel     -EPIPE: closed; the element is still the sender's
 *     receive    0: it is the receiver's     -EPIPE: closed, and everything sent is received
 *     cancelled  -ECANCELED, -ETIMEDOUT      nothing was sent, or received
 *
 * One thread at a time is the sender: it sends and closes. One thread at a time is the receiver. A
 * role passes to another thread by something that orders the two, such as a mutex. A second sender or
 * receiver that comes while the first waits is reported where BIDE_DEBUG is 1. Operations are
 * wait-free while nothing waits, and lock-free otherwise.
 *
 * Closing is final: the receiver drains the channel, and then gets -EPIPE. The sender must not close
 * while a send is under way. A receiver that wants no more asks the sender to stop (stop.h).
 *
 * If several coroutines take turns as the sender, the last that goes may close it
 * (bide_spsc_channel_sender_add). Sends to a full channel may drop their element instead of waiting,
 * and a function may be called for each element that the receiver does not get
 * (bide_spsc_channel_init_with).
 *
 * Elements are copied as by memcpy. In the macros `channel_` may be evaluated more than once, the
 * other arguments once.
 *
 * Why it is correct: see the end of this file.
 */
#ifndef BIDE_SPSC_CHANNEL_H
#define BIDE_SPSC_CHANNEL_H

#include "bide/extend/event_count.h"
#include "bide/spsc_ring.h"

BIDE_EXTERN_C_BEGIN

/*
 * For bide_spsc_channel_init_with. The oldest element is never dropped: it is the receiver's to take.
 */
typedef struct bide_spsc_channel_options {
    bool drops_newest; /* a send to a full channel drops its element, in place of waiting */
    void (*undelivered)(void *argument, void *element); /* NULL: nothing is called */
    void *argument;
} bide_spsc_channel_options;

/* A channel without its type. */
typedef struct bide_spsc_channel_ {
    void *slots; /* constant, as are the next three */
    size_t capacity;
    size_t size; /* of an element */
    bide_spsc_channel_options options;
    bide_atomic(uint32_t) senders; /* that were added, and not dropped */
    bide_spsc_ring_ends_ ends;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_event_count not_empty;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_event_count not_full;
} bide_spsc_channel_;

/* A channel of elements of `type`. Each use is a type of its own: give it a name by a typedef. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type takes none */
#define bide_spsc_channel(type)     \
    struct {                        \
        bide_spsc_channel_ channel; \
        type *typed_;               \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

/* One send or receive. The caller's memory until the wait has ended. */
typedef struct bide_spsc_channel_waiter {
    bide_event_count_waiter retry; /* at the head: it is the awaiter */
    bide_spsc_channel_ *channel;
    void *element;
} bide_spsc_channel_waiter;

/* One receive of several elements. The caller's memory until the wait has ended. */
typedef struct bide_spsc_channel_many_waiter {
    bide_spsc_channel_waiter one; /* at the head: it is the awaiter */
    size_t max;
    size_t *count;
} bide_spsc_channel_many_waiter;

extern const bide_event_count_ops bide_spsc_channel_send_ops_;
extern const bide_event_count_ops bide_spsc_channel_recv_ops_;
extern const bide_event_count_ops bide_spsc_channel_recv_many_ops_;

/* A send found the channel full. Returns 0 if the element was dropped, otherwise -ENOBUFS. */
int bide_spsc_channel_full_(bide_spsc_channel_ *channel, const void *from);

BIDE_INLINE int bide_spsc_channel_try_send_(bide_spsc_channel_ *channel, const void *from,
                                            size_t size)
{
    int status =
        bide_spsc_ring_push_(&channel->ends, channel->capacity, channel->slots, from, size);
    if (BIDE_LIKELY(status == 0))
        bide_event_count_notify(&channel->not_empty, 1);
    else if (BIDE_UNLIKELY(status == -ENOBUFS && channel->options.drops_newest))
        return bide_spsc_channel_full_(channel, from);
    return status;
}

BIDE_INLINE int bide_spsc_channel_try_recv_(bide_spsc_channel_ *channel, void *to, size_t size)
{
    int status = bide_spsc_ring_pop_(&channel->ends, channel->capacity, channel->slots, to, size);
    if (BIDE_LIKELY(status == 0))
        bide_event_count_notify(&channel->not_full, 1);
    return status;
}

BIDE_INLINE int bide_spsc_channel_try_recv_many_(bide_spsc_channel_ *channel, void *to, size_t max,
                                                 size_t *count, size_t size)
{
    ptrdiff_t taken = max != 0 ? bide_spsc_ring_pop_many_(&channel->ends, channel->capacity,
                                                          channel->slots, to, max, size)
                               : -EINVAL;
    *count = taken > 0 ? (size_t)taken : 0;
    if (BIDE_UNLIKELY(taken < 0))
        return (int)taken;
    bide_event_count_notify(&channel->not_full, 1);
    return 0;
}

/* ---- One operation: frequent sizes have tables of their own ---- */

BIDE_INLINE bool bide_spsc_channel_sent_(bide_awaiter *awaiter, size_t size)
{
    bide_spsc_channel_waiter *waiter = (bide_spsc_channel_waiter *)(void *)awaiter;
    waiter->retry.status = bide_spsc_channel_try_send_(waiter->channel, waiter->element, size);
    return waiter->retry.status != -ENOBUFS;
}

BIDE_INLINE bool bide_spsc_channel_received_(bide_awaiter *awaiter, size_t size)
{
    bide_spsc_channel_waiter *waiter = (bide_spsc_channel_waiter *)(void *)awaiter;
    waiter->retry.status = bide_spsc_channel_try_recv_(waiter->channel, waiter->element, size);
    return waiter->retry.status != -EAGAIN;
}

/* The channel of an operation. */
BIDE_INLINE bide_spsc_channel_ *bide_spsc_channel_of_(bide_awaiter *awaiter)
{
    return ((bide_spsc_channel_waiter *)(void *)awaiter)->channel;
}

#define BIDE_SPSC_CHANNEL_READY_(suffix, size)                                    \
    BIDE_INLINE bool bide_spsc_channel_send_ready_##suffix(bide_awaiter *awaiter) \
    {                                                                             \
        return bide_spsc_channel_sent_(awaiter, (size));                          \
    }                                                                             \
    BIDE_INLINE bool bide_spsc_channel_recv_ready_##suffix(bide_awaiter *awaiter) \
    {                                                                             \
        return bide_spsc_channel_received_(awaiter, (size));                      \
    }

BIDE_SPSC_CHANNEL_READY_(4_, 4)
BIDE_SPSC_CHANNEL_READY_(8_, 8)
BIDE_SPSC_CHANNEL_READY_(16_, 16)
BIDE_SPSC_CHANNEL_READY_(any_, bide_spsc_channel_of_(awaiter)->size)

BIDE_INLINE bool bide_spsc_channel_recv_many_ready_(bide_awaiter *awaiter)
{
    bide_spsc_channel_many_waiter *many = (bide_spsc_channel_many_waiter *)(void *)awaiter;
    bide_spsc_channel_waiter *one = &many->one;
    one->retry.status = bide_spsc_channel_try_recv_many_(one->channel, one->element, many->max,
                                                         many->count, one->channel->size);
    return one->retry.status != -EAGAIN;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_spsc_channel_send_(bide_spsc_channel_waiter *waiter,
                                                  bide_spsc_channel_ *channel, const void *from,
                                                  size_t size)
{
    static const bide_awaiter_ops any =
        BIDE_EVENT_COUNT_WAITER_OPS(bide_spsc_channel_send_ready_any_, "bide_spsc_channel_send");
    static const bide_awaiter_ops of_4 =
        BIDE_EVENT_COUNT_WAITER_OPS(bide_spsc_channel_send_ready_4_, "bide_spsc_channel_send");
    static const bide_awaiter_ops of_8 =
        BIDE_EVENT_COUNT_WAITER_OPS(bide_spsc_channel_send_ready_8_, "bide_spsc_channel_send");
    static const bide_awaiter_ops of_16 =
        BIDE_EVENT_COUNT_WAITER_OPS(bide_spsc_channel_send_ready_16_, "bide_spsc_channel_send");
    const bide_awaiter_ops *ops =
        size == 8 ? &of_8 : (size == 4 ? &of_4 : (size == 16 ? &of_16 : &any));
    waiter->channel = channel;
    waiter->element = (void *)(uintptr_t)from; /* it is not written to */
    return bide_event_count_waiter_init_(&waiter->retry, ops, &bide_spsc_channel_send_ops_,
                                         &channel->not_full);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_spsc_channel_recv_(bide_spsc_channel_waiter *waiter,
                                                  bide_spsc_channel_ *channel, void *to,
                                                  size_t size)
{
    static const bide_awaiter_ops any =
        BIDE_EVENT_COUNT_WAITER_OPS(bide_spsc_channel_recv_ready_any_, "bide_spsc_channel_recv");
    static const bide_awaiter_ops of_4 =
        BIDE_EVENT_COUNT_WAITER_OPS(bide_spsc_channel_recv_ready_4_, "bide_spsc_channel_recv");
    static const bide_awaiter_ops of_8 =
        BIDE_EVENT_COUNT_WAITER_OPS(bide_spsc_channel_recv_ready_8_, "bide_spsc_channel_recv");
    static const bide_awaiter_ops of_16 =
        BIDE_EVENT_COUNT_WAITER_OPS(bide_spsc_channel_recv_ready_16_, "bide_spsc_channel_recv");
    const bide_awaiter_ops *ops =
        size == 8 ? &of_8 : (size == 4 ? &of_4 : (size == 16 ? &of_16 : &any));
    waiter->channel = channel;
    waiter->element = to;
    return bide_event_count_waiter_init_(&waiter->retry, ops, &bide_spsc_channel_recv_ops_,
                                         &channel->not_empty);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_spsc_channel_recv_many_(bide_spsc_channel_many_waiter *waiter,
                                                       bide_spsc_channel_ *channel, void *to,
                                                       size_t max, size_t *count)
{
    static const bide_awaiter_ops ops = BIDE_EVENT_COUNT_WAITER_OPS(
        bide_spsc_channel_recv_many_ready_, "bide_spsc_channel_recv_many");
    waiter->one.channel = channel;
    waiter->one.element = to;
    waiter->max = max;
    waiter->count = count;
    return bide_event_count_waiter_init_(&waiter->one.retry, &ops,
                                         &bide_spsc_channel_recv_many_ops_, &channel->not_empty);
}

int bide_spsc_channel_recv_many_blocking_(bide_spsc_channel_ *channel, void *to, size_t max,
                                          size_t *count, uint64_t deadline);
int bide_spsc_channel_send_blocking_(bide_spsc_channel_ *channel, const void *from,
                                     uint64_t deadline);
int bide_spsc_channel_recv_blocking_(bide_spsc_channel_ *channel, void *to, uint64_t deadline);
void bide_spsc_channel_init_(bide_spsc_channel_ *channel, void *slots, size_t capacity,
                             size_t size);
void bide_spsc_channel_init_with_(bide_spsc_channel_ *channel, void *slots, size_t capacity,
                                  size_t size, const bide_spsc_channel_options *options);
void bide_spsc_channel_drain_(bide_spsc_channel_ *channel);
void bide_spsc_channel_close_(bide_spsc_channel_ *channel, const char *what, const char *function,
                              const char *file, unsigned line);
bool bide_spsc_channel_is_idle_(bide_spsc_channel_ *channel);

/*
 * The channel, for its receiver: no other receive waits. The same for its sender.
 */
BIDE_INLINE bide_spsc_channel_ *bide_spsc_channel_side_(bide_spsc_channel_ *channel,
                                                        bide_event_count *event_count,
                                                        const char *what, const char *function,
                                                        const char *file, unsigned line)
{
#if BIDE_DEBUG
    /* relaxed: an operation of the same side that has ended was seen to. */
    if (bide_atomic_load(&event_count->place, relaxed) != BIDE_EVENT_COUNT_FREE_)
        bide_misuse_(what, function, file, line);
#else
    (void)event_count, (void)what, (void)function, (void)file, (void)line;
#endif
    return channel;
}
#define BIDE_SPSC_CHANNEL_RECEIVER_(channel_)                 \
    bide_spsc_channel_side_(                                  \
        &(channel_)->channel, &(channel_)->channel.not_empty, \
        BIDE_MISUSE_("a second receiver uses a channel between one and one", #channel_))
#define BIDE_SPSC_CHANNEL_SENDER_(channel_)                  \
    bide_spsc_channel_side_(                                 \
        &(channel_)->channel, &(channel_)->channel.not_full, \
        BIDE_MISUSE_("a second sender uses a channel between one and one", #channel_))

/* `pointer`, which must be one to an element. */
#define BIDE_SPSC_CHANNEL_ELEMENT_(channel_, pointer) (1 ? (pointer) : (channel_)->typed_)
#define BIDE_SPSC_CHANNEL_SIZE_(channel_)             (sizeof *(channel_)->typed_)

/*
 * Makes an empty channel over the array `memory` of `capacity` elements, at least 1, which stays
 * the caller's and must outlive the channel. The memory may be freed when nobody waits and nobody will
 * use it. A `memory` that is seen to be smaller does not compile; a capacity of 0 is misuse, which is
 * reported where BIDE_DEBUG is 1.
 * Threads: before it is shared. Progress: wait-free.
 */
#define bide_spsc_channel_init(channel_, memory, capacity)                       \
    (BIDE_CHECK_MEMORY_(memory, capacity),                                       \
     bide_spsc_channel_init_(                                                    \
         &(channel_)->channel, BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (memory)), \
         BIDE_CAPACITY_((capacity), #channel_), BIDE_SPSC_CHANNEL_SIZE_(channel_)))

/*
 * The same with options, which are copied. If it `drops_newest`, a send that finds the channel full
 * drops its element and ends with 0; it never waits. `undelivered` is called once for each element
 * that the receiver does not get, with options->argument: for each that is dropped, on the sender's
 * thread, and for those in the channel when it is destroyed. `element` is to be read during
 * the call only, which must not use the channel. A send that fails, or is cancelled, still has its
 * element.
 * Threads: before it is shared. Progress: wait-free. Source: Kotlin's BufferOverflow and
 * onUndeliveredElement.
 */
#define bide_spsc_channel_init_with(channel_, memory, capacity, options)         \
    (BIDE_CHECK_MEMORY_(memory, capacity),                                       \
     bide_spsc_channel_init_with_(                                               \
         &(channel_)->channel, BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (memory)), \
         BIDE_CAPACITY_((capacity), #channel_), BIDE_SPSC_CHANNEL_SIZE_(channel_), (options)))

/*
 * Sends a copy of the element at `from`; waits while the channel is full. `from` and `waiter` must
 * stay until the wait has ended. If the coroutine is destroyed before it resumes, retry.status of
 * `waiter` is 0 if the element was sent.
 * Threads: the sender's. Errors: -EPIPE (closed), -ECANCELED, -ETIMEDOUT. Suspends: if it is full.
 * Cancel-safe: yes, the element was not sent. Progress: wait-free, if it need not wait.
 */
#define bide_spsc_channel_send(waiter, channel_, from) \
    BIDE_SPSC_CHANNEL_SEND_(waiter, channel_, from)
#define BIDE_SPSC_CHANNEL_SEND_(waiter, channel_, from)                     \
    bide_spsc_channel_send_((waiter), BIDE_SPSC_CHANNEL_SENDER_(channel_),  \
                            BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (from)), \
                            BIDE_SPSC_CHANNEL_SIZE_(channel_))

/*
 * Receives the first element, to where `to` points; waits while the channel is empty. `to` and
 * `waiter` must stay until the wait has ended. If the coroutine is destroyed before it resumes,
 * retry.status of `waiter` is 0 if an element was received.
 * Threads: the receiver's. Errors: -EPIPE (closed and drained), -ECANCELED, -ETIMEDOUT. Suspends:
 * if it is empty. Cancel-safe: yes, no element was taken. Progress: wait-free, if it need not wait.
 */
#define bide_spsc_channel_recv(waiter, channel_, to) BIDE_SPSC_CHANNEL_RECV_(waiter, channel_, to)
#define BIDE_SPSC_CHANNEL_RECV_(waiter, channel_, to)                        \
    bide_spsc_channel_recv_((waiter), BIDE_SPSC_CHANNEL_RECEIVER_(channel_), \
                            BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (to)),    \
                            BIDE_SPSC_CHANNEL_SIZE_(channel_))

/*
 * Receives elements, the first `max` at most, to the array `to`; waits while the channel is empty,
 * and then takes what is there. *count is how many: at least 1 if it ends with 0, otherwise 0. `to`,
 * `count` and `waiter`, a bide_spsc_channel_many_waiter, must stay until the wait has ended. If the
 * coroutine is destroyed before it resumes, *count is not 0 if elements were received. A `max` of 0
 * is misuse, which is reported where BIDE_DEBUG is 1.
 * Threads: the receiver's. Errors: -EPIPE (closed and drained), -EINVAL (`max` is 0), -ECANCELED,
 * -ETIMEDOUT. Suspends: if it is empty. Cancel-safe: yes, no element was taken. Progress: wait-free,
 * if it need not wait.
 */
#define bide_spsc_channel_recv_many(waiter, channel_, to, max, count) \
    BIDE_SPSC_CHANNEL_RECV_MANY_(waiter, channel_, to, max, count)
#define BIDE_SPSC_CHANNEL_RECV_MANY_(waiter, channel_, to, max, count)            \
    bide_spsc_channel_recv_many_((waiter), BIDE_SPSC_CHANNEL_RECEIVER_(channel_), \
                                 BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (to)),    \
                                 BIDE_ELEMENT_MAX_((max), #channel_), (count))

/*
 * Sends at once, or not at all.
 * Threads: the sender's. Errors: -EPIPE (closed), -ENOBUFS (full). Suspends: never. Progress:
 * wait-free while the receiver does not wait, lock-free otherwise.
 */
#define bide_spsc_channel_try_send(channel_, from)                              \
    bide_spsc_channel_try_send_(BIDE_SPSC_CHANNEL_SENDER_(channel_),            \
                                BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (from)), \
                                BIDE_SPSC_CHANNEL_SIZE_(channel_))

/*
 * Receives at once, or not at all.
 * Threads: the receiver's. Errors: -EPIPE (closed and drained), -EAGAIN (empty). Suspends: never.
 * Progress: wait-free while the sender does not wait, lock-free otherwise.
 */
#define bide_spsc_channel_try_recv(channel_, to)                              \
    bide_spsc_channel_try_recv_(BIDE_SPSC_CHANNEL_RECEIVER_(channel_),        \
                                BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (to)), \
                                BIDE_SPSC_CHANNEL_SIZE_(channel_))

/*
 * The same for several elements, as bide_spsc_channel_recv_many.
 * Threads: the receiver's. Errors: -EPIPE (closed and drained), -EAGAIN (empty), -EINVAL (`max` is
 * 0). Suspends: never. Progress: as bide_spsc_channel_try_recv.
 */
#define bide_spsc_channel_try_recv_many(channel_, to, max, count)                            \
    bide_spsc_channel_try_recv_many_(                                                        \
        BIDE_SPSC_CHANNEL_RECEIVER_(channel_), BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (to)), \
        BIDE_ELEMENT_MAX_((max), #channel_), (count), BIDE_SPSC_CHANNEL_SIZE_(channel_))

/*
 * Send and receive for a plain thread, which they block until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: the sender's, and the receiver's, but not that of a loop (sync_wait.h). Errors: -EPIPE
 * (as above), -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_spsc_channel_send_blocking(channel_, from, deadline)                                 \
    BIDE_BLOCKS_(bide_spsc_channel_send_blocking_(BIDE_SPSC_CHANNEL_SENDER_(channel_),            \
                                                  BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (from)), \
                                                  (deadline)))
#define bide_spsc_channel_recv_blocking(channel_, to, deadline)                                 \
    BIDE_BLOCKS_(bide_spsc_channel_recv_blocking_(BIDE_SPSC_CHANNEL_RECEIVER_(channel_),        \
                                                  BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (to)), \
                                                  (deadline)))
#define bide_spsc_channel_recv_many_blocking(channel_, to, max, count, deadline)             \
    BIDE_BLOCKS_(bide_spsc_channel_recv_many_blocking_(                                      \
        BIDE_SPSC_CHANNEL_RECEIVER_(channel_), BIDE_SPSC_CHANNEL_ELEMENT_((channel_), (to)), \
        BIDE_ELEMENT_MAX_((max), #channel_), (count), (deadline)))

/*
 * Closes the channel for good: sends end with -EPIPE; what is in it is received. Not while a send
 * is under way (4): ask one that waits to stop first. More than once is once.
 * Threads: the sender's. Suspends: never. Progress: lock-free.
 */
#define bide_spsc_channel_close(channel_)          \
    bide_spsc_channel_close_(&(channel_)->channel, \
                             BIDE_MISUSE_("a channel is closed while a send waits", #channel_))

/*
 * Counts a sender, one of several that take turns, which is to be dropped once. When the last is
 * dropped the channel is closed. If none is added the channel is closed by bide_spsc_channel_close
 * only. Add senders before the threads or coroutines begin that are to drop them.
 * Threads: any. Progress: wait-free.
 */
#define bide_spsc_channel_sender_add(channel_) \
    ((void)bide_atomic_fetch_add(&(channel_)->channel.senders, 1, relaxed)) /* 5 */

/*
 * A sender that was added will send no more. The last one closes the channel; no send is under way
 * then. More than were added is misuse, which is reported where BIDE_DEBUG is 1.
 * Threads: any. Suspends: never. Progress: wait-free; the last is as bide_spsc_channel_close.
 */
#define bide_spsc_channel_sender_drop(channel_) \
    bide_spsc_channel_sender_drop_(             \
        &(channel_)->channel, BIDE_MISUSE_("more senders are dropped than were added", #channel_))

BIDE_INLINE void bide_spsc_channel_sender_drop_(bide_spsc_channel_ *channel, const char *what,
                                                const char *function, const char *file,
                                                unsigned line)
{
    /* acquire and release: 5. */
    uint32_t senders = bide_atomic_fetch_sub(&channel->senders, 1, acq_rel);
#if BIDE_DEBUG
    if (senders == 0)
        bide_misuse_(what, function, file, line);
#else
    (void)what;
#endif
    if (senders == 1)
        bide_spsc_channel_close_(channel, "a channel is closed while a send waits", function, file,
                                 line);
}

/*
 * How many elements are in it: what was true at about this moment. For statistics.
 * Threads: any. Progress: wait-free.
 */
#define bide_spsc_channel_count(channel_) \
    bide_spsc_ring_count_(&(channel_)->channel.ends, (channel_)->channel.capacity)

BIDE_INLINE void bide_spsc_channel_destroy_(bide_spsc_channel_ *channel, const char *what,
                                            const char *function, const char *file, unsigned line)
{
#if BIDE_DEBUG
    if (!bide_spsc_channel_is_idle_(channel))
        bide_misuse_(what, function, file, line);
#else
    (void)what, (void)function, (void)file, (void)line;
#endif
    if (channel->options.undelivered != NULL)
        bide_spsc_channel_drain_(channel);
}

/*
 * The end of its life: gives the elements that are in it to the function of
 * bide_spsc_channel_init_with, if there is one. If BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: one at a time, and nobody uses it any more. Progress: wait-free, linear in the elements.
 */
#define bide_spsc_channel_destroy(channel_) \
    bide_spsc_channel_destroy_(             \
        &(channel_)->channel,               \
        BIDE_MISUSE_("a channel is destroyed while it is waited for", #channel_))

/*
 * Why it is correct: it is a ring (spsc_ring.h) with two event counts (event_count.h) for the
 * waiters, `not_full` and `not_empty`.
 *
 * 1. Waiting reserves nothing, neither a slot nor an element: an operation is attempted until it is
 *    done. So one that is cancelled loses nothing.
 * 2. Each push notifies the receiver, and each pop the sender, after it: N and L of event_count.md.
 *    The notifier does what the other side waits to do. The waiter's look is at both ends of the
 *    ring, and changes nothing. CLOSED is in one of them.
 * 3. There is one sender and one receiver at a time, from the moment when an operation begins until
 *    it has ended. While it waits it belongs to the thread that has taken it. That thread acquires
 *    what the coroutine has done, or what its last holder has, and waking the coroutine, or putting
 *    it back, releases it: event_count.md, 5. So the ring has one producer and one consumer at any
 *    time, on whatever threads.
 * 4. Closing is the sender's, while no send of its is under way. The reason is that CLOSED is in
 *    the word that only the producer stores, so a push that was under way elsewhere would undo it:
 *    spsc_ring.md, 4. A receiver that wants no more asks the sender to stop (stop.h).
 * 5. The thread that drops the last sender acquires what the other drops released: all sends of
 *    the other senders. So it is the only sender, and closes as such.
 *
 * Source: Go's channels, which also do what the other side waits for.
 */

BIDE_EXTERN_C_END

#endif
