/*
 * A channel of one sender and one receiver, bounded: who finds it full or empty waits. In the caller's memory. The
 * fastest channel there is here: while nobody waits no locked instruction is on its way. Floor: queue.
 *
 *     struct job memory[64];
 *     bide_spsc_channel(struct job) jobs;
 *     bide_spsc_channel_init(&jobs, memory, 64);
 *     bide_await_status(status, bide_spsc_channel_send(&self->send, &jobs, &self->job));
 *     bide_await_status(status, bide_spsc_channel_receive(&self->receive, &jobs, &self->job));
 *
 * It is a ring (spsc_ring.h), and two event counts (event_count.h) for who waits: `not_full`, `not_empty`.
 *
 *     open --close--> closed, and drained by the receiver --> closed, empty
 *
 *     send       0: it is in the channel         -EPIPE: it is closed, and the element is the sender's still
 *     receive    0: it is the receiver's         -EPIPE: it is closed, and all that was sent has been received
 *     cut short  -ECANCELED, -ETIMEDOUT          nothing was sent, or received
 *
 * 1. Waiting reserves nothing, neither a slot nor an element: an operation is attempted until it is done. So one that
 *    is cut short loses nothing.
 * 2. Each push notifies the receiver, each pop the sender, after it: N and L of event_count.h. Who notifies does what
 *    the other waits to do. The look of who waits is at both ends of the ring, and changes nothing. CLOSED is in one of
 *    them.
 * 3. One at a time is the sender, and one the receiver, from the moment when an operation begins until it has ended.
 *    While it waits it belongs to whoever has taken it: that acquires what its coroutine has done, or who has had it
 *    before, and waking the coroutine, or putting it back, releases it (event_count.h, 5). So the ring has one
 *    producer and one consumer at any time, on whatever threads.
 * 4. Closing is the sender's, while no send of its is under way: CLOSED is in the word that only the producer stores,
 *    so a push that was under way elsewhere would undo it (spsc_ring.h, 4). A receiver that wants no more asks the
 *    sender to stop (stop.h).
 *
 * Threads: as in 3; who hands a role on to another thread does so by something that orders the two. Progress: wait-free
 * while nobody waits, lock-free otherwise. Source: Go's channels, which also do what the other waits for.
 */
#ifndef BIDE_SPSC_CHANNEL_H
#define BIDE_SPSC_CHANNEL_H

#include "bide/extend/event_count.h"
#include "bide/spsc_ring.h"

BIDE_EXTERN_C_BEGIN

/* A channel without its type. */
typedef struct bide_spsc_channel_ {
    void *slots; /* constant, as are the next two */
    size_t capacity;
    size_t size; /* of an element */
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

/* One send or receive. The caller's, for the time of the wait. */
typedef struct bide_spsc_channel_waiter {
    bide_retry retry; /* at the head: it is the awaiter */
    bide_spsc_channel_ *channel;
    void *element;
} bide_spsc_channel_waiter;

extern const bide_retry_rules bide_spsc_channel_send_rules_;
extern const bide_retry_rules bide_spsc_channel_receive_rules_;

BIDE_INLINE int bide_spsc_channel_try_send_(bide_spsc_channel_ *channel, const void *from,
                                            size_t size)
{
    int status =
        bide_spsc_ring_push_(&channel->ends, channel->capacity, channel->slots, from, size);
    if (BIDE_LIKELY(status == 0))
        bide_event_count_notify(&channel->not_empty, 1);
    return status;
}

BIDE_INLINE int bide_spsc_channel_try_receive_(bide_spsc_channel_ *channel, void *to, size_t size)
{
    int status = bide_spsc_ring_pop_(&channel->ends, channel->capacity, channel->slots, to, size);
    if (BIDE_LIKELY(status == 0))
        bide_event_count_notify(&channel->not_full, 1);
    return status;
}

/* ---- One operation: its table is of its own for the sizes that are frequent ---- */

BIDE_INLINE bool bide_spsc_channel_sent_(bide_awaiter *awaiter, size_t size)
{
    bide_spsc_channel_waiter *waiter = (bide_spsc_channel_waiter *)(void *)awaiter;
    waiter->retry.status = bide_spsc_channel_try_send_(waiter->channel, waiter->element, size);
    return waiter->retry.status != -ENOBUFS;
}

BIDE_INLINE bool bide_spsc_channel_received_(bide_awaiter *awaiter, size_t size)
{
    bide_spsc_channel_waiter *waiter = (bide_spsc_channel_waiter *)(void *)awaiter;
    waiter->retry.status = bide_spsc_channel_try_receive_(waiter->channel, waiter->element, size);
    return waiter->retry.status != -EAGAIN;
}

/* What channel an operation is of. */
BIDE_INLINE bide_spsc_channel_ *bide_spsc_channel_of_(bide_awaiter *awaiter)
{
    return ((bide_spsc_channel_waiter *)(void *)awaiter)->channel;
}

#define BIDE_SPSC_CHANNEL_READY_(suffix, size)                                       \
    BIDE_INLINE bool bide_spsc_channel_send_ready_##suffix(bide_awaiter *awaiter)    \
    {                                                                                \
        return bide_spsc_channel_sent_(awaiter, (size));                             \
    }                                                                                \
    BIDE_INLINE bool bide_spsc_channel_receive_ready_##suffix(bide_awaiter *awaiter) \
    {                                                                                \
        return bide_spsc_channel_received_(awaiter, (size));                         \
    }

BIDE_SPSC_CHANNEL_READY_(4_, 4)
BIDE_SPSC_CHANNEL_READY_(8_, 8)
BIDE_SPSC_CHANNEL_READY_(16_, 16)
BIDE_SPSC_CHANNEL_READY_(any_, bide_spsc_channel_of_(awaiter)->size)

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_spsc_channel_send_(bide_spsc_channel_waiter *waiter,
                                                  bide_spsc_channel_ *channel, const void *from,
                                                  size_t size)
{
    static const bide_awaiter_ops any =
        BIDE_RETRY_OPS(bide_spsc_channel_send_ready_any_, "bide_spsc_channel_send");
    static const bide_awaiter_ops of_4 =
        BIDE_RETRY_OPS(bide_spsc_channel_send_ready_4_, "bide_spsc_channel_send");
    static const bide_awaiter_ops of_8 =
        BIDE_RETRY_OPS(bide_spsc_channel_send_ready_8_, "bide_spsc_channel_send");
    static const bide_awaiter_ops of_16 =
        BIDE_RETRY_OPS(bide_spsc_channel_send_ready_16_, "bide_spsc_channel_send");
    const bide_awaiter_ops *ops =
        size == 8 ? &of_8 : (size == 4 ? &of_4 : (size == 16 ? &of_16 : &any));
    waiter->channel = channel;
    waiter->element = (void *)(uintptr_t)from; /* (it is not written to) */
    return bide_retry_init_(&waiter->retry, ops, &bide_spsc_channel_send_rules_,
                            &channel->not_full);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_spsc_channel_receive_(bide_spsc_channel_waiter *waiter,
                                                     bide_spsc_channel_ *channel, void *to,
                                                     size_t size)
{
    static const bide_awaiter_ops any =
        BIDE_RETRY_OPS(bide_spsc_channel_receive_ready_any_, "bide_spsc_channel_receive");
    static const bide_awaiter_ops of_4 =
        BIDE_RETRY_OPS(bide_spsc_channel_receive_ready_4_, "bide_spsc_channel_receive");
    static const bide_awaiter_ops of_8 =
        BIDE_RETRY_OPS(bide_spsc_channel_receive_ready_8_, "bide_spsc_channel_receive");
    static const bide_awaiter_ops of_16 =
        BIDE_RETRY_OPS(bide_spsc_channel_receive_ready_16_, "bide_spsc_channel_receive");
    const bide_awaiter_ops *ops =
        size == 8 ? &of_8 : (size == 4 ? &of_4 : (size == 16 ? &of_16 : &any));
    waiter->channel = channel;
    waiter->element = to;
    return bide_retry_init_(&waiter->retry, ops, &bide_spsc_channel_receive_rules_,
                            &channel->not_empty);
}

int bide_spsc_channel_send_blocking_(bide_spsc_channel_ *channel, const void *from,
                                     uint64_t deadline);
int bide_spsc_channel_receive_blocking_(bide_spsc_channel_ *channel, void *to, uint64_t deadline);
void bide_spsc_channel_init_(bide_spsc_channel_ *channel, void *slots, size_t capacity,
                             size_t size);
void bide_spsc_channel_close_(bide_spsc_channel_ *channel);
bool bide_spsc_channel_is_idle_(bide_spsc_channel_ *channel);

/* `pointer`, which must be one to an element. */
#define BIDE_SPSC_CHANNEL_ELEMENT_(sent, pointer) (1 ? (pointer) : (sent)->typed_)
#define BIDE_SPSC_CHANNEL_SIZE_(sent)             (sizeof *(sent)->typed_)

/*
 * Makes an empty channel over the array `memory` of `capacity` elements, at least 1, which stays the caller's and must
 * outlive it. Before it is shared. The memory may go when nobody waits and nobody will use it.
 */
#define bide_spsc_channel_init(made, memory, capacity)                                      \
    bide_spsc_channel_init_(&(made)->channel, BIDE_SPSC_CHANNEL_ELEMENT_((made), (memory)), \
                            (capacity), BIDE_SPSC_CHANNEL_SIZE_(made))

/*
 * Sends a copy of the element at `from`, which is the operation's until it has ended; as is `waiter`. Waits while the
 * channel is full. Ends with 0; -EPIPE; or -ECANCELED or -ETIMEDOUT (stop.h). The sender; suspends if it has to wait;
 * cancel-safe: yes, the element was not sent then; wait-free if it has not. (Of a coroutine that is destroyed before it
 * goes on, retry.status of `waiter` says 0 if the element was sent.)
 */
#define bide_spsc_channel_send(waiter, sent, from)                      \
    bide_spsc_channel_send_((waiter), &(sent)->channel,                 \
                            BIDE_SPSC_CHANNEL_ELEMENT_((sent), (from)), \
                            BIDE_SPSC_CHANNEL_SIZE_(sent))

/*
 * Receives the first element, to where `to` points. Waits while the channel is empty. Ends with 0; -EPIPE, it is closed
 * and drained; or -ECANCELED or -ETIMEDOUT. The receiver; otherwise as send; cancel-safe: yes, no element was taken
 * then. (Of a coroutine that is destroyed before it goes on, retry.status of `waiter` says 0 if it was received.)
 */
#define bide_spsc_channel_receive(waiter, received, to)                      \
    bide_spsc_channel_receive_((waiter), &(received)->channel,               \
                               BIDE_SPSC_CHANNEL_ELEMENT_((received), (to)), \
                               BIDE_SPSC_CHANNEL_SIZE_(received))

/* The same at once: 0, -EPIPE, or -ENOBUFS: it is full. The sender; does not suspend. */
#define bide_spsc_channel_try_send(sent, from)                                                \
    bide_spsc_channel_try_send_(&(sent)->channel, BIDE_SPSC_CHANNEL_ELEMENT_((sent), (from)), \
                                BIDE_SPSC_CHANNEL_SIZE_(sent))

/* The same at once: 0, -EPIPE, or -EAGAIN: it is empty. The receiver; does not suspend. */
#define bide_spsc_channel_try_receive(received, to)                              \
    bide_spsc_channel_try_receive_(&(received)->channel,                         \
                                   BIDE_SPSC_CHANNEL_ELEMENT_((received), (to)), \
                                   BIDE_SPSC_CHANNEL_SIZE_(received))

/* The same for a plain thread, until `deadline` (nanoseconds of bide_platform.now(), or BIDE_FOREVER): returns what the
 * wait ends with, -ETIMEDOUT when the deadline has come. See bide_sync_wait_until. Blocks. */
#define bide_spsc_channel_send_blocking(sent, from, deadline)                                      \
    bide_spsc_channel_send_blocking_(&(sent)->channel, BIDE_SPSC_CHANNEL_ELEMENT_((sent), (from)), \
                                     (deadline))
#define bide_spsc_channel_receive_blocking(received, to, deadline) \
    bide_spsc_channel_receive_blocking_(&(received)->channel,      \
                                        BIDE_SPSC_CHANNEL_ELEMENT_((received), (to)), (deadline))

/* Closes it for good: sends end with -EPIPE; what is in it is received. The sender (4), while no send is under way: one
 * that waits is asked to stop first. More than once; does not suspend. */
#define bide_spsc_channel_close(closed) bide_spsc_channel_close_(&(closed)->channel)

/* How many elements are in it: what was true at about this moment. For statistics. Any thread; wait-free. */
#define bide_spsc_channel_count(counted) \
    bide_spsc_ring_count_(&(counted)->channel.ends, (counted)->channel.capacity)

BIDE_INLINE void bide_spsc_channel_destroy_checked_(bide_spsc_channel_ *channel, const char *what,
                                                    const char *function, const char *file,
                                                    unsigned line)
{
    if (!bide_spsc_channel_is_idle_(channel))
        bide_misuse_(what, function, file, line);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if it is waited for. */
#if BIDE_DEBUG
#define bide_spsc_channel_destroy(destroyed) \
    bide_spsc_channel_destroy_checked_(      \
        &(destroyed)->channel,               \
        BIDE_MISUSE_("a channel is destroyed that is waited for", #destroyed))
#else
#define bide_spsc_channel_destroy(destroyed) ((void)(destroyed))
#endif

BIDE_EXTERN_C_END

#endif
