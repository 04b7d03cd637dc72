/*
 * A bounded channel: elements go from any number of senders to any number of receivers, each
 * element to one receiver. An operation that finds it full or empty waits. In the caller's memory.
 * Floor: queue.
 *
 *     static bide_channel_slot(struct job) memory[64];
 *     static bide_channel(struct job) jobs;
 *
 *     bide_channel_init(&jobs, memory, 64);
 *
 *     bide_try(bide_channel_send(&self->send, &jobs, &self->job));       // any coroutine
 *     bide_try(bide_channel_recv(&self->receive, &jobs, &self->job));    // any coroutine
 *
 *     send       0: it is in the channel     -EPIPE: closed; the element is still the sender's
 *     receive    0: it is the receiver's     -EPIPE: closed, and everything sent is received
 *     cancelled  -ECANCELED, -ETIMEDOUT      nothing was sent, or received
 *
 * A sender that must not find the channel full once it has the element reserves the room before:
 *
 *     bide_try(bide_channel_reserve(&self->reserve, &jobs, &self->permit));
 *     if (make_job(&self->job))
 *         bide_channel_permit_send(&jobs, &self->permit, &self->job);    // does not wait
 *     else
 *         bide_channel_permit_release(&self->permit);                    // the room is another's
 *
 * A channel may also drop elements instead of letting senders wait (bide_channel_init_with), and be
 * closed by the last sender, or receiver, that goes (bide_channel_sender_add).
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

/* How a send behaves if the channel is full. */
typedef enum bide_channel_overflow {
    BIDE_CHANNEL_WAIT,        /* waits for room */
    BIDE_CHANNEL_DROP_OLDEST, /* drops the first element of the channel, and takes its place */
    BIDE_CHANNEL_DROP_NEWEST  /* drops the element that is sent */
} bide_channel_overflow;

/* For bide_channel_init_with. */
typedef struct bide_channel_options {
    bide_channel_overflow overflow;
    void (*undelivered)(void *argument, void *element); /* NULL: nothing is called */
    void *argument;
} bide_channel_options;

/* A channel without its type. */
typedef struct bide_channel_ {
    bide_mpmc_ring_view_ ring;       /* constant */
    bide_atomic(uint32_t) closed;    /* the ring's, in a line of what seldom changes */
    bide_atomic(uint32_t) abandoned; /* the last receiver has gone */
    bide_channel_options options;    /* constant */
    bide_atomic(uint32_t) senders;   /* that were added, and not dropped */
    bide_atomic(uint32_t) receivers; /* likewise */
    bide_mpmc_ring_ends_ ends;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_event_count not_empty;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_event_count not_full;
} bide_channel_;

/* The element type of the array in a channel's memory. Each use is a type of its own. */
#define bide_channel_slot(type) bide_mpmc_ring_slot(type)

/* A channel of elements of `type`. Each use is a type of its own: give it a name by a typedef. */
#define bide_channel(type)                  \
    struct {                                \
        bide_channel_ channel;              \
        bide_mpmc_ring_slot(type) * typed_; \
    }

/* One send, receive or reservation. The caller's memory until the wait has ended. */
typedef struct bide_channel_waiter {
    bide_event_count_waiter retry; /* at the head: it is the awaiter */
    bide_channel_ *channel;
    void *element; /* or permit */
} bide_channel_waiter;

/* One receive, or reservation, of several elements. The caller's memory until the wait has ended. */
typedef struct bide_channel_many_waiter {
    bide_channel_waiter one; /* at the head: it is the awaiter */
    size_t max;
    size_t *count;
} bide_channel_many_waiter;

/*
 * The room for one element. It is the holder's, on one thread at a time, until it is sent by or
 * released.
 */
typedef struct bide_channel_permit {
    bide_channel_ *channel; /* NULL: it is not held */
} bide_channel_permit;

extern const bide_event_count_ops bide_channel_send_ops_;
extern const bide_event_count_ops bide_channel_recv_ops_;
extern const bide_event_count_ops bide_channel_recv_many_ops_;
extern const bide_event_count_ops bide_channel_reserve_ops_;
extern const bide_event_count_ops bide_channel_reserve_many_ops_;

/* A push found the channel full, or slots reserved. -ENOBUFS, -EPIPE; 0: it is done, or dropped. */
int bide_channel_send_slow_(bide_channel_ *channel, const void *from);

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
    if (BIDE_UNLIKELY(status == -EBUSY || (status == -ENOBUFS && channel->options.overflow != 0)))
        status = bide_channel_send_slow_(channel, from);
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

BIDE_INLINE int bide_channel_try_recv_many_(bide_channel_ *channel, void *to, size_t max,
                                            size_t *count, size_t size)
{
    ptrdiff_t taken =
        max != 0 ? bide_mpmc_ring_pop_many_(bide_channel_ring_(channel, size), to, max) : -EINVAL;
    *count = taken > 0 ? (size_t)taken : 0;
    if (BIDE_UNLIKELY(taken < 0))
        return (int)taken;
    bide_event_count_notify(&channel->not_full, (size_t)taken);
    return 0;
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

BIDE_INLINE bool bide_channel_recvs_many_(bide_awaiter *awaiter, size_t size)
{
    bide_channel_many_waiter *many = (bide_channel_many_waiter *)(void *)awaiter;
    many->one.retry.status = bide_channel_try_recv_many_(many->one.channel, many->one.element,
                                                         many->max, many->count, size);
    return many->one.retry.status != -EAGAIN;
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
BIDE_CHANNEL_READY_(bide_channel_recv_many_8_, bide_channel_recvs_many_, 8)
BIDE_CHANNEL_READY_(bide_channel_recv_many_any_, bide_channel_recvs_many_,
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

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_channel_recv_many_(bide_channel_many_waiter *waiter,
                                                  bide_channel_ *channel, void *to, size_t max,
                                                  size_t *count, size_t size)
{
    static const bide_awaiter_ops ops_8 = BIDE_EVENT_COUNT_WAITER_OPS(
                                      bide_channel_recv_many_8_ready_, "bide_channel_recv_many"),
                                  ops_any = BIDE_EVENT_COUNT_WAITER_OPS(
                                      bide_channel_recv_many_any_ready_, "bide_channel_recv_many");
    waiter->max = max;
    waiter->count = count;
    return bide_channel_make_(&waiter->one, channel, to, size == 8 ? &ops_8 : &ops_any,
                              &bide_channel_recv_many_ops_, &channel->not_empty);
}

BIDE_MUST_AWAIT
bide_awaiter *bide_channel_reserve_(bide_channel_waiter *waiter, bide_channel_ *channel,
                                    bide_channel_permit *permit);
int bide_channel_try_reserve_(bide_channel_ *channel, bide_channel_permit *permit);
BIDE_MUST_AWAIT
bide_awaiter *bide_channel_reserve_many_(bide_channel_many_waiter *waiter, bide_channel_ *channel,
                                         bide_channel_permit *permits, size_t max, size_t *count);
int bide_channel_try_reserve_many_(bide_channel_ *channel, bide_channel_permit *permits, size_t max,
                                   size_t *count);
int bide_channel_reserve_many_blocking_(bide_channel_ *channel, bide_channel_permit *permits,
                                        size_t max, size_t *count, uint64_t deadline);
int bide_channel_reserve_blocking_(bide_channel_ *channel, bide_channel_permit *permit,
                                   uint64_t deadline);
void bide_channel_permit_send_(bide_channel_permit *permit, const void *from);
void bide_channel_permit_release_(bide_channel_permit *permit);
int bide_channel_recv_many_blocking_(bide_channel_ *channel, void *to, size_t max, size_t *count,
                                     uint64_t deadline);

BIDE_INLINE void bide_channel_permit_checked_(const bide_channel_permit *permit,
                                              const bide_channel_ *channel, const char *what,
                                              const char *function, const char *file, unsigned line)
{
#if BIDE_DEBUG
    if (channel == NULL || permit->channel != channel)
        bide_misuse_(what, function, file, line);
#else
    (void)permit, (void)channel, (void)what, (void)function, (void)file, (void)line;
#endif
}

int bide_channel_send_blocking_(bide_channel_ *channel, const void *from, uint64_t deadline);
int bide_channel_recv_blocking_(bide_channel_ *channel, void *to, uint64_t deadline);
void bide_channel_init_(bide_channel_ *channel, void *slots, size_t capacity, size_t stride,
                        size_t offset, size_t size);
void bide_channel_init_with_(bide_channel_ *channel, void *slots, size_t capacity, size_t stride,
                             size_t offset, size_t size, const bide_channel_options *options);
void bide_channel_close_(bide_channel_ *channel);
void bide_channel_receiver_gone_(bide_channel_ *channel);
void bide_channel_drain_(bide_channel_ *channel);
bool bide_channel_is_idle_(bide_channel_ *channel);

/* `pointer`, which must be one to an element. */
#define BIDE_CHANNEL_ELEMENT_(channel_, pointer) (1 ? (pointer) : &(channel_)->typed_->value)
#define BIDE_CHANNEL_SIZE_(channel_)             sizeof(channel_)->typed_->value

/*
 * Makes an empty channel over the array `memory` of `capacity` slots, at least 1, which stays the
 * caller's and must outlive the channel. The memory may be freed when nothing waits and nothing will use
 * it. An operation uses it until it has returned or ended, even if the other side has the element
 * by then. A `memory` that is seen to be smaller does not compile; a capacity of 0 is misuse, which is
 * reported where BIDE_DEBUG is 1.
 * Threads: before it is shared. Progress: wait-free, linear in the slots.
 */
#define bide_channel_init(channel_, memory, capacity)                                          \
    (BIDE_CHECK_MEMORY_(memory, capacity),                                                     \
     bide_channel_init_(&(channel_)->channel, (memory), BIDE_CAPACITY_((capacity), #channel_), \
                        sizeof *(memory),                                                      \
                        (size_t)((const char *)&(memory)->value - (const char *)(memory)),     \
                        sizeof *BIDE_CHANNEL_ELEMENT_((channel_), &(memory)->value)))

/*
 * The same with options, which are copied. They say what a send does that finds the channel full: if
 * it drops an element it never waits, and ends with 0 also if the dropped element is its own. They
 * also name a function that is called once for each element that no receiver gets, with
 * options->argument: for each that is dropped, and for those in the channel when its last
 * receiver is dropped or when it is destroyed. It is called on the thread that sends, drops the
 * receiver, sends by a permit, or destroys. `element` is to be read during the call only, which must
 * not use the channel. A send that fails, or is cancelled, still has its element.
 *
 * BIDE_CHANNEL_DROP_OLDEST drops the new element if, for some microseconds, the first cannot be
 * dropped: because its send or another receive is under way on a thread that was suspended, or
 * because all room is held by permits. Reservations wait for room and drop nothing.
 * Threads: before it is shared. Progress: wait-free, linear in the slots. Source: Kotlin's
 * BufferOverflow and onUndeliveredElement.
 */
#define bide_channel_init_with(channel_, memory, capacity, options)                               \
    (BIDE_CHECK_MEMORY_(memory, capacity),                                                        \
     bide_channel_init_with_(                                                                     \
         &(channel_)->channel, (memory), BIDE_CAPACITY_((capacity), #channel_), sizeof *(memory), \
         (size_t)((const char *)&(memory)->value - (const char *)(memory)),                       \
         sizeof *BIDE_CHANNEL_ELEMENT_((channel_), &(memory)->value), (options)))

/*
 * Sends a copy of the element at `from`; waits while the channel is full. `from` and `waiter` must
 * stay until the wait has ended. If the coroutine is destroyed before it resumes, retry.status of
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
 * `waiter` must stay until the wait has ended. If the coroutine is destroyed before it resumes,
 * retry.status of `waiter` is 0 if an element was received.
 * Threads: any. Errors: -EPIPE (closed and drained), -ECANCELED, -ETIMEDOUT. Suspends: if it is
 * empty. Cancel-safe: yes, no element was taken. Progress: as bide_channel_send.
 */
#define bide_channel_recv(waiter, channel_, to) BIDE_CHANNEL_RECV_(waiter, channel_, to)
#define BIDE_CHANNEL_RECV_(waiter, channel_, to)                                                \
    bide_channel_recv_((waiter), &(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (to)), \
                       BIDE_CHANNEL_SIZE_(channel_))

/*
 * Receives elements, the first `max` at most, to the array `to`; waits while the channel is empty,
 * and then takes what is there. *count is how many: at least 1 if it ends with 0, otherwise 0. `to`,
 * `count` and `waiter`, a bide_channel_many_waiter, must stay until the wait has ended. If the
 * coroutine is destroyed before it resumes, *count is not 0 if elements were received. A `max` of 0
 * is misuse, which is reported where BIDE_DEBUG is 1.
 * Threads: any. Errors: -EPIPE (closed and drained), -EINVAL (`max` is 0), -ECANCELED, -ETIMEDOUT.
 * Suspends: if it is empty. Cancel-safe: yes, no element was taken. Progress: as bide_channel_send.
 */
#define bide_channel_recv_many(waiter, channel_, to, max, count) \
    BIDE_CHANNEL_RECV_MANY_(waiter, channel_, to, max, count)
#define BIDE_CHANNEL_RECV_MANY_(waiter, channel_, to, max, count)                \
    bide_channel_recv_many_(                                                     \
        (waiter), &(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (to)), \
        BIDE_ELEMENT_MAX_((max), #channel_), (count), BIDE_CHANNEL_SIZE_(channel_))

/*
 * Waits until there is room for an element, and reserves it: `permit` is held then. Receivers do not
 * notice it, nor do other senders while there is more room: elements are in the order in which they
 * are sent. `permit` and `waiter` must stay until the wait has ended. A permit that nobody will use
 * goes back by bide_channel_permit_release; or by itself, if the coroutine is destroyed before
 * it resumes. At most 4095 permits of a channel are held at a time (15, if a size_t has 32 bits).
 * Threads: any. Errors: -EPIPE (closed), -EOVERFLOW (too many permits), -ECANCELED, -ETIMEDOUT.
 * Suspends: if there is no room. Cancel-safe: yes, nothing was reserved. Progress: as
 * bide_channel_send. Source: Tokio's mpsc::Permit.
 */
#define bide_channel_reserve(waiter, channel_, permit) \
    BIDE_CHANNEL_RESERVE_(waiter, channel_, permit)
#define BIDE_CHANNEL_RESERVE_(waiter, channel_, permit) \
    bide_channel_reserve_((waiter), &(channel_)->channel, (permit))

/*
 * Waits until there is room for an element, and then reserves what there is, for `max` elements at
 * most, each by a permit of the array `permits`. *count is how many: at least 1 if it ends with 0,
 * otherwise 0. The first *count permits are held then, each on its own; the others are not. The
 * rooms need not be beside each other: other elements may come between the elements that are sent
 * by them. `permits`, `count` and `waiter`, a bide_channel_many_waiter, must stay until the wait
 * has ended. If the coroutine is destroyed before it resumes, all go back by themselves. A `max` of
 * 0 is misuse, which is reported where BIDE_DEBUG is 1.
 * Threads: any. Errors: as bide_channel_reserve; -EINVAL (`max` is 0). Suspends: if there is no
 * room. Cancel-safe: yes, nothing was reserved. Progress: as bide_channel_send, for each permit.
 * Source: Tokio's reserve_many, which waits for all of them.
 */
#define bide_channel_reserve_many(waiter, channel_, permits, max, count) \
    BIDE_CHANNEL_RESERVE_MANY_(waiter, channel_, permits, max, count)
#define BIDE_CHANNEL_RESERVE_MANY_(waiter, channel_, permits, max, count) \
    bide_channel_reserve_many_((waiter), &(channel_)->channel, (permits), \
                               BIDE_PERMITS_MAX_((max), #channel_), (count))
#define BIDE_PERMITS_MAX_(max, name) \
    bide_element_max_((max), BIDE_MISUSE_("at most 0 permits are reserved", name))

/*
 * Sends a copy of the element at `from` to the room that `permit` holds, also if the channel was
 * closed since: its receivers get -EPIPE only once no permit is held. The permit is not held any
 * more. A permit that is not held, or is of another channel, is misuse, which is reported where
 * BIDE_DEBUG is 1.
 * Threads: the permit's holder's. Suspends: never. Progress: lock-free.
 */
#define bide_channel_permit_send(channel_, permit, from)                            \
    (bide_channel_permit_checked_(                                                  \
         (permit), &(channel_)->channel,                                            \
         BIDE_MISUSE_("an element is sent by a permit that is not held", #permit)), \
     bide_channel_permit_send_((permit), BIDE_CHANNEL_ELEMENT_((channel_), (from))))

/*
 * Gives the room that `permit` holds to the next sender that waits. The permit must be held, as
 * above, and is not any more.
 * Threads: the permit's holder's. Suspends: never. Progress: wait-free while nothing waits,
 * lock-free otherwise.
 */
#define bide_channel_permit_release(permit)                                                        \
    (bide_channel_permit_checked_((permit), (permit)->channel,                                     \
                                  BIDE_MISUSE_("a permit is released that is not held", #permit)), \
     bide_channel_permit_release_(permit))

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
 * The same for several elements, as bide_channel_recv_many.
 * Threads: any. Errors: -EPIPE (closed and drained), -EAGAIN (empty), -EINVAL (`max` is 0).
 * Suspends: never. Progress: as bide_channel_send.
 */
#define bide_channel_try_recv_many(channel_, to, max, count)                                   \
    bide_channel_try_recv_many_(&(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (to)), \
                                BIDE_ELEMENT_MAX_((max), #channel_), (count),                  \
                                BIDE_CHANNEL_SIZE_(channel_))

/*
 * Reserves room at once, or not at all.
 * Threads: any. Errors: -EPIPE (closed), -ENOBUFS (full), -EOVERFLOW (too many permits). Suspends:
 * never. Progress: as bide_channel_send.
 */
#define bide_channel_try_reserve(channel_, permit) \
    bide_channel_try_reserve_(&(channel_)->channel, (permit))

/*
 * The same for several elements, as bide_channel_reserve_many.
 * Threads: any. Errors: -EPIPE (closed), -ENOBUFS (full), -EOVERFLOW (too many permits), -EINVAL
 * (`max` is 0). Suspends: never. Progress: as bide_channel_reserve_many.
 */
#define bide_channel_try_reserve_many(channel_, permits, max, count) \
    bide_channel_try_reserve_many_(&(channel_)->channel, (permits),  \
                                   BIDE_PERMITS_MAX_((max), #channel_), (count))

/*
 * Send, receive and reserve for a plain thread, which they block until `deadline` at most:
 * nanoseconds of bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any but that of a loop (sync_wait.h). Errors: those of the operation above, except
 * -ECANCELED. Progress: blocks.
 */
#define bide_channel_send_blocking(channel_, from, deadline) \
    BIDE_BLOCKS_(bide_channel_send_blocking_(                \
        &(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (from)), (deadline)))
#define bide_channel_recv_blocking(channel_, to, deadline)         \
    BIDE_BLOCKS_(bide_channel_recv_blocking_(&(channel_)->channel, \
                                             BIDE_CHANNEL_ELEMENT_((channel_), (to)), (deadline)))
#define bide_channel_recv_many_blocking(channel_, to, max, count, deadline) \
    BIDE_BLOCKS_(bide_channel_recv_many_blocking_(                          \
        &(channel_)->channel, BIDE_CHANNEL_ELEMENT_((channel_), (to)),      \
        BIDE_ELEMENT_MAX_((max), #channel_), (count), (deadline)))
#define bide_channel_reserve_blocking(channel_, permit, deadline) \
    BIDE_BLOCKS_(bide_channel_reserve_blocking_(&(channel_)->channel, (permit), (deadline)))
#define bide_channel_reserve_many_blocking(channel_, permits, max, count, deadline)                \
    BIDE_BLOCKS_(bide_channel_reserve_many_blocking_(&(channel_)->channel, (permits),              \
                                                     BIDE_PERMITS_MAX_((max), #channel_), (count), \
                                                     (deadline)))

/*
 * Closes the channel for good: sends and reservations, now and later, end with -EPIPE; what is in it
 * is received, and so is what is sent by permits that are held. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
#define bide_channel_close(channel_) bide_channel_close_(&(channel_)->channel)

/*
 * Counts a sender, which is to be dropped once. When the last is dropped the channel is closed. If
 * none is added the channel is closed by bide_channel_close only; that may also be called before.
 * Add senders before the threads or coroutines begin that are to drop them: a channel that was
 * closed stays so.
 * Threads: any. Progress: wait-free.
 */
#define bide_channel_sender_add(channel_) \
    ((void)bide_atomic_fetch_add(&(channel_)->channel.senders, 1, relaxed)) /* 8 */

/*
 * A sender that was added will send no more. The last one closes the channel. More than were added
 * is misuse, which is reported where BIDE_DEBUG is 1.
 * Threads: any. Suspends: never. Progress: wait-free; the last is as bide_channel_close.
 */
#define bide_channel_sender_drop(channel_)          \
    bide_channel_sender_drop_(&(channel_)->channel, \
                              BIDE_MISUSE_("more senders are dropped than were added", #channel_))

/*
 * Counts a receiver, as bide_channel_sender_add a sender.
 * Threads: any. Progress: wait-free.
 */
#define bide_channel_receiver_add(channel_) \
    ((void)bide_atomic_fetch_add(&(channel_)->channel.receivers, 1, relaxed)) /* 8 */

/*
 * A receiver that was added will receive no more. The last one closes the channel, so that sends end
 * with -EPIPE, and gives the elements that are in it to the function of bide_channel_init_with. A
 * send that is under way at that moment leaves its element until the channel is destroyed. More than
 * were added is misuse, which is reported where BIDE_DEBUG is 1.
 * Threads: any. Suspends: never. Progress: wait-free; the last is as bide_channel_close, and linear
 * in the elements.
 */
#define bide_channel_receiver_drop(channel_) \
    bide_channel_receiver_drop_(             \
        &(channel_)->channel,                \
        BIDE_MISUSE_("more receivers are dropped than were added", #channel_))

BIDE_INLINE void bide_channel_sender_drop_(bide_channel_ *channel, const char *what,
                                           const char *function, const char *file, unsigned line)
{
    /* acquire and release: 8. */
    uint32_t senders = bide_atomic_fetch_sub(&channel->senders, 1, acq_rel);
#if BIDE_DEBUG
    if (senders == 0)
        bide_misuse_(what, function, file, line);
#else
    (void)what, (void)function, (void)file, (void)line;
#endif
    if (senders == 1)
        bide_channel_close_(channel);
}

BIDE_INLINE void bide_channel_receiver_drop_(bide_channel_ *channel, const char *what,
                                             const char *function, const char *file, unsigned line)
{
    /* acquire and release: 8. */
    uint32_t receivers = bide_atomic_fetch_sub(&channel->receivers, 1, acq_rel);
#if BIDE_DEBUG
    if (receivers == 0)
        bide_misuse_(what, function, file, line);
#else
    (void)what, (void)function, (void)file, (void)line;
#endif
    if (receivers == 1)
        bide_channel_receiver_gone_(channel);
}

/*
 * How many elements are in it, without what permits hold: what was true at about this moment. For
 * statistics.
 * Threads: any. Progress: wait-free.
 */
#define bide_channel_count(channel_) bide_mpmc_ring_count_((channel_)->channel.ring)

BIDE_INLINE void bide_channel_destroy_(bide_channel_ *channel, const char *what,
                                       const char *function, const char *file, unsigned line)
{
#if BIDE_DEBUG
    if (!bide_channel_is_idle_(channel))
        bide_misuse_(what, function, file, line);
    /* relaxed: the caller has seen what was done with it. */
    if (bide_ring_reserved_(bide_atomic_load(&channel->ends.tail, relaxed)) != 0)
        bide_misuse_("a channel is destroyed while a permit of it is held", function, file, line);
#else
    (void)what, (void)function, (void)file, (void)line;
#endif
    if (channel->options.undelivered != NULL)
        bide_channel_drain_(channel);
}

/*
 * The end of its life: gives the elements that are in it to the function of bide_channel_init_with,
 * if there is one. If BIDE_DEBUG is 1 it reports misuse if a wait is under way, or a permit is held.
 * Threads: one at a time, and nobody uses it any more. Progress: wait-free, linear in the elements.
 */
#define bide_channel_destroy(channel_) \
    bide_channel_destroy_(             \
        &(channel_)->channel,          \
        BIDE_MISUSE_("a channel is destroyed while it is waited for", #channel_))

/*
 * Why it is correct: it is a ring (mpmc_ring.h) with two event counts (event_count.h) for the
 * waiters, `not_full` and `not_empty`.
 *
 * 1. Waiting holds nothing, neither a slot nor an element: an operation is attempted until it is
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
 * 5. A permit is a slot that is reserved (mpmc_ring.md, 9). Sends and reservations wait for the same
 *    slot, the one behind the reserved slots; so they may wait in one line, and each
 *    notification is for either. Three changes let such an operation go: a pop, a release, and the
 *    closing. Each notifies after it. Sending by a permit leaves that slot where it is.
 * 6. A receiver that waits while the channel is closed waits for the last permit, too. Sending by it
 *    notifies one, and so does its release; for the rest see 4.
 * 7. A receive of several elements makes room for as many, and notifies at least one sender. Each
 *    that then sends sees that there is more, and the next is attempted (event_count.md, 4). A
 *    reservation of several is as many reservations, one after the other, each of which is
 *    independent. It takes the room that they were notified of from others that wait; if all go
 *    back, each release notifies one.
 *
 * 8. The last sender, or receiver, that is dropped acquires what the others have released, and
 *    closing releases: an end with -EPIPE sees what all of them have written. A sender is added by a
 *    thread that knows of another that was not dropped, or before any is.
 * 9. An element that is dropped is popped where it is, so each is taken once: by a receiver, or by
 *    the one thread that then gives it to `undelivered`. While that runs the pop is under way. The
 *    last receiver sets `abandoned` before it closes. So a permit's send that finds CLOSED sees it,
 *    and takes out what nobody else will. A push that claimed its slot before may be too late for
 *    either; its element is there when the channel is destroyed.
 *
 * Source: Go's channels, which also do what the other side waits for. Permits: Tokio's mpsc.
 */

BIDE_EXTERN_C_END

#endif
