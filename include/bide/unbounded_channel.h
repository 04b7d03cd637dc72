/*
 * An unbounded channel: elements go from any number of senders, which never wait, to any number of
 * receivers, each element to one. A receiver that finds it empty waits. It allocates, a segment at
 * a time. Floor: queue.
 *
 *     bide_unbounded_channel(struct job) jobs;
 *     bide_unbounded_channel_init_own(&jobs, &bide_heap, 1024);
 *     status = bide_unbounded_channel_send(&jobs, NULL, &job);
 *     bide_try(bide_unbounded_channel_recv(&self->receive, &jobs, NULL, &self->job));
 *
 *     send       0: it is in the channel     -EPIPE: closed     -ENOMEM: nothing was sent
 *     receive    0: it is the receiver's     -EPIPE: closed, and everything sent is received
 *     cancelled  -ECANCELED, -ETIMEDOUT      nothing was received
 *
 * Any thread may use it. Each call needs a seat (hazard.h) for its time. With NULL for the seat the
 * channel finds one: bide_unbounded_channel_init_own makes 32. Operations are lock-free as long as
 * not more threads than that are inside of calls; further threads wait for them.
 *
 * For control, or a few nanoseconds less, the seats may be yours (bide_unbounded_channel_init). Then
 * one thread at a time uses a seat. So a seat belongs to a thread, for all coroutines that run only
 * there; or to a coroutine, if different threads may resume it. A receive uses its seat when it begins, and each
 * time its scheduler resumes it; not while it waits, nor when it is cancelled. A waiting seat
 * protects the segment that it has looked at last. segment_queue.h has the bound of the memory.
 *
 * A receiver gets one sender's elements in order. Waiters are notified first come, first served,
 * but a receiver that arrives at that moment may be faster. Operations are lock-free, except for
 * the allocator. Closing is final: receivers drain the channel, and then get -EPIPE.
 *
 * The last of several senders closes it if they are counted (bide_unbounded_channel_sender_add), and
 * so does the last receiver. A function may be called for each element that no receiver gets
 * (bide_unbounded_channel_set_undelivered).
 *
 * Elements are copied as by memcpy. In the macros `channel_` may be evaluated more than once, the
 * other arguments once.
 */
#ifndef BIDE_UNBOUNDED_CHANNEL_H
#define BIDE_UNBOUNDED_CHANNEL_H

#include "bide/extend/event_count.h"
#include "bide/segment_queue.h"

BIDE_EXTERN_C_BEGIN

/* A channel without its type. */
typedef struct bide_unbounded_channel_ {
    bide_segment_queue_ queue;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_event_count not_empty;
    struct bide_unbounded_channel_own_ *own; /* its domain and seats; NULL: they are the user's */
    void (*undelivered)(void *argument, void *element); /* NULL: nothing is called; constant */
    void *argument;
    bide_atomic(uint32_t) senders;   /* that were added, and not dropped */
    bide_atomic(uint32_t) receivers; /* likewise */
} bide_unbounded_channel_;

/*
 * A channel of elements of `type`, aligned to BIDE_CACHE_LINE at most. Each use is a type of its
 * own: give it a name by a typedef.
 */
#define bide_unbounded_channel(type)       \
    struct {                               \
        bide_unbounded_channel_ channel;   \
        BIDE_SEGMENT_CELL_(type) * typed_; \
    }

/* One receive. The caller's memory until the wait has ended. */
typedef struct bide_unbounded_channel_waiter {
    bide_event_count_own_waiter own; /* at the head: it is the awaiter */
    bide_unbounded_channel_ *channel;
    bide_hazard_seat *seat;
    void *element;
} bide_unbounded_channel_waiter;

/* One receive of several elements. The caller's memory until the wait has ended. */
typedef struct bide_unbounded_channel_many_waiter {
    bide_unbounded_channel_waiter one; /* at the head: it is the awaiter */
    size_t max;
    size_t *count;
} bide_unbounded_channel_many_waiter;

extern const bide_event_count_ops bide_unbounded_channel_recv_ops_;
extern const bide_event_count_ops bide_unbounded_channel_recv_many_ops_;

int bide_unbounded_channel_recv_many_blocking_(bide_unbounded_channel_ *channel,
                                               bide_hazard_seat *seat, void *to, size_t max,
                                               size_t *count, uint64_t deadline);

int bide_unbounded_channel_recv_blocking_(bide_unbounded_channel_ *channel, bide_hazard_seat *seat,
                                          void *to, uint64_t deadline);
int bide_unbounded_channel_init_(bide_unbounded_channel_ *channel, bide_hazard_domain *domain,
                                 bide_allocator *allocator, size_t cells, size_t stride,
                                 size_t size);
int bide_unbounded_channel_init_own_(bide_unbounded_channel_ *channel, bide_allocator *allocator,
                                     size_t cells, size_t stride, size_t size);
void bide_unbounded_channel_destroy_own_(bide_unbounded_channel_ *channel);
void bide_unbounded_channel_close_(bide_unbounded_channel_ *channel, bide_hazard_seat *seat);
bool bide_unbounded_channel_is_idle_(bide_unbounded_channel_ *channel);

/* The seat of a call: the caller's, or if it has none one that is borrowed. 5 */
BIDE_INLINE bide_hazard_seat *bide_unbounded_channel_sit_(bide_unbounded_channel_ *channel,
                                                          bide_hazard_seat *seat)
{
    return seat != NULL ? seat : bide_hazard_borrow_(channel->queue.domain);
}

BIDE_INLINE void bide_unbounded_channel_rise_(bide_unbounded_channel_ *channel,
                                              bide_hazard_seat *seat, bide_hazard_seat *taken)
{
    if (seat == NULL)
        bide_hazard_release_(channel->queue.domain, taken);
}

BIDE_INLINE int bide_unbounded_channel_send_(bide_unbounded_channel_ *channel,
                                             bide_hazard_seat *seat, const void *from,
                                             size_t stride, size_t size)
{
    bide_hazard_seat *taken = bide_unbounded_channel_sit_(channel, seat);
    ptrdiff_t moved = bide_segment_queue_push_many_(&channel->queue, taken, from, stride, size, 1);
    bide_unbounded_channel_rise_(channel, seat, taken);
    if (BIDE_LIKELY(moved > 0))
        bide_event_count_notify(&channel->not_empty, 1);
    return bide_segment_queue_one_(moved);
}

BIDE_INLINE int bide_unbounded_channel_try_recv_(bide_unbounded_channel_ *channel,
                                                 bide_hazard_seat *seat, void *to, size_t stride,
                                                 size_t size)
{
    bide_hazard_seat *taken = bide_unbounded_channel_sit_(channel, seat);
    ptrdiff_t moved =
        bide_segment_queue_pop_many_(&channel->queue, taken, to, stride, size, 1, false);
    bide_unbounded_channel_rise_(channel, seat, taken);
    return bide_segment_queue_one_(moved);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_unbounded_channel_recv_(bide_unbounded_channel_waiter *waiter,
                                                       bide_unbounded_channel_ *channel,
                                                       bide_hazard_seat *seat, void *to)
{
    static const bide_awaiter_ops ops = BIDE_EVENT_COUNT_OWN_WAITER_OPS(
        bide_event_count_own_waiter_ready_, "bide_unbounded_channel_recv");
    waiter->channel = channel;
    waiter->seat = seat;
    waiter->element = to;
    return bide_event_count_own_waiter_init_(&waiter->own, &ops, &bide_unbounded_channel_recv_ops_,
                                             &channel->not_empty);
}

BIDE_INLINE int bide_unbounded_channel_try_recv_many_(bide_unbounded_channel_ *channel,
                                                      bide_hazard_seat *seat, void *to, size_t max,
                                                      size_t *count, size_t stride, size_t size)
{
    bide_hazard_seat *own = bide_unbounded_channel_sit_(channel, seat);
    ptrdiff_t taken =
        max != 0 ? bide_segment_queue_pop_many_(&channel->queue, own, to, stride, size, max, false)
                 : -EINVAL;
    bide_unbounded_channel_rise_(channel, seat, own);
    *count = taken > 0 ? (size_t)taken : 0;
    return taken > 0 ? 0 : (int)taken;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_unbounded_channel_recv_many_(bide_unbounded_channel_many_waiter *waiter,
                                  bide_unbounded_channel_ *channel, bide_hazard_seat *seat,
                                  void *to, size_t max, size_t *count)
{
    static const bide_awaiter_ops ops = BIDE_EVENT_COUNT_OWN_WAITER_OPS(
        bide_event_count_own_waiter_ready_, "bide_unbounded_channel_recv_many");
    waiter->one.channel = channel;
    waiter->one.seat = seat;
    waiter->one.element = to;
    waiter->max = max;
    waiter->count = count;
    return bide_event_count_own_waiter_init_(
        &waiter->one.own, &ops, &bide_unbounded_channel_recv_many_ops_, &channel->not_empty);
}

/* `pointer`, which must be one to an element. */
#define BIDE_UNBOUNDED_CHANNEL_ELEMENT_(channel_, pointer) \
    (1 ? (pointer) : &(channel_)->typed_->element_)

/*
 * Makes an empty channel that takes a segment of `cells` (1 to SIZE_MAX / 4) elements at a time
 * from `allocator`, the first one now. Any thread that has a seat in `domain` calls the allocator;
 * the domain protects the segments. Both outlive the channel, and `allocator` the domain.
 * Threads: before it is shared. Errors: -ENOMEM.
 */
#define bide_unbounded_channel_init(channel_, domain, allocator, cells)                \
    bide_unbounded_channel_init_(&(channel_)->channel, (domain), (allocator), (cells), \
                                 BIDE_SEGMENT_STRIDE_(channel_), BIDE_SEGMENT_SIZE_(channel_))

/*
 * The same with a domain and 32 seats of the channel's own, from `allocator` too, so that each call
 * has NULL for the seat.
 * Threads: before it is shared. Errors: -ENOMEM.
 */
#define bide_unbounded_channel_init_own(channel_, allocator, cells)              \
    bide_unbounded_channel_init_own_(&(channel_)->channel, (allocator), (cells), \
                                     BIDE_SEGMENT_STRIDE_(channel_), BIDE_SEGMENT_SIZE_(channel_))

/*
 * Sends a copy of the element at `from`. `seat` is the caller's, of the channel's
 * domain, or NULL.
 * Threads: any. Errors: -EPIPE (closed), -ENOMEM. Suspends: never. Progress: lock-free, except for
 * the allocator.
 */
#define bide_unbounded_channel_send(channel_, seat, from)                             \
    bide_unbounded_channel_send_(&(channel_)->channel, (seat),                        \
                                 BIDE_UNBOUNDED_CHANNEL_ELEMENT_((channel_), (from)), \
                                 BIDE_SEGMENT_STRIDE_(channel_), BIDE_SEGMENT_SIZE_(channel_))

/*
 * Receives the first element, to where `to` points; waits while the channel is empty. `to` and
 * `waiter` must stay until the wait has ended; `seat` is the coroutine's, as said above.
 * Threads: any. Errors: -EPIPE (closed and drained), -ECANCELED, -ETIMEDOUT. Suspends: if it is
 * empty. Cancel-safe: yes, no element was taken. Progress: lock-free.
 */
#define bide_unbounded_channel_recv(waiter, channel_, seat, to) \
    BIDE_UNBOUNDED_CHANNEL_RECV_(waiter, channel_, seat, to)
#define BIDE_UNBOUNDED_CHANNEL_RECV_(waiter, channel_, seat, to)         \
    bide_unbounded_channel_recv_((waiter), &(channel_)->channel, (seat), \
                                 BIDE_UNBOUNDED_CHANNEL_ELEMENT_((channel_), (to)))

/*
 * Receives elements, the first `max` at most, to the array `to`; waits while the channel is empty,
 * and then takes what is there. *count is how many: at least 1 if it ends with 0, otherwise 0. `to`,
 * `count` and `waiter`, a bide_unbounded_channel_many_waiter, must stay until the wait has ended;
 * `seat` is the coroutine's, as said above. A `max` of 0 is misuse, which is reported where
 * BIDE_DEBUG is 1.
 * Threads: any. Errors: -EPIPE (closed and drained), -EINVAL (`max` is 0), -ECANCELED, -ETIMEDOUT.
 * Suspends: if it is empty. Cancel-safe: yes, no element was taken. Progress: lock-free.
 */
#define bide_unbounded_channel_recv_many(waiter, channel_, seat, to, max, count) \
    BIDE_UNBOUNDED_CHANNEL_RECV_MANY_(waiter, channel_, seat, to, max, count)
#define BIDE_UNBOUNDED_CHANNEL_RECV_MANY_(waiter, channel_, seat, to, max, count)        \
    bide_unbounded_channel_recv_many_((waiter), &(channel_)->channel, (seat),            \
                                      BIDE_UNBOUNDED_CHANNEL_ELEMENT_((channel_), (to)), \
                                      BIDE_ELEMENT_MAX_((max), #channel_), (count))

/*
 * The same at once, or not at all.
 * Threads: any. Errors: -EPIPE (closed and drained), -EAGAIN (empty), -EINVAL (`max` is 0).
 * Suspends: never. Progress: lock-free.
 */
#define bide_unbounded_channel_try_recv_many(channel_, seat, to, max, count)             \
    bide_unbounded_channel_try_recv_many_(                                               \
        &(channel_)->channel, (seat), BIDE_UNBOUNDED_CHANNEL_ELEMENT_((channel_), (to)), \
        BIDE_ELEMENT_MAX_((max), #channel_), (count), BIDE_SEGMENT_STRIDE_(channel_),    \
        BIDE_SEGMENT_SIZE_(channel_))

/*
 * Receives at once, or not at all.
 * Threads: any. Errors: -EPIPE (closed and drained), -EAGAIN (empty). Suspends: never. Progress:
 * lock-free.
 */
#define bide_unbounded_channel_try_recv(channel_, seat, to)                             \
    bide_unbounded_channel_try_recv_(&(channel_)->channel, (seat),                      \
                                     BIDE_UNBOUNDED_CHANNEL_ELEMENT_((channel_), (to)), \
                                     BIDE_SEGMENT_STRIDE_(channel_), BIDE_SEGMENT_SIZE_(channel_))

/*
 * The receives for a plain thread, which they block until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any but that of a loop (sync_wait.h). Errors: those of the operations, except -ECANCELED. Progress: blocks.
 */
#define bide_unbounded_channel_recv_many_blocking(channel_, seat, to, max, count, deadline) \
    BIDE_BLOCKS_(bide_unbounded_channel_recv_many_blocking_(                                \
        &(channel_)->channel, (seat), BIDE_UNBOUNDED_CHANNEL_ELEMENT_((channel_), (to)),    \
        BIDE_ELEMENT_MAX_((max), #channel_), (count), (deadline)))
#define bide_unbounded_channel_recv_blocking(channel_, seat, to, deadline)               \
    BIDE_BLOCKS_(bide_unbounded_channel_recv_blocking_(                                  \
        &(channel_)->channel, (seat), BIDE_UNBOUNDED_CHANNEL_ELEMENT_((channel_), (to)), \
        (deadline)))

/*
 * Closes the channel for good: sends fail with -EPIPE from now on; what is in it is received. More
 * than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
#define bide_unbounded_channel_close(channel_, seat) \
    bide_unbounded_channel_close_(&(channel_)->channel, (seat))

/*
 * Names a function that is called once, with `argument`, for each element that no receiver gets, which
 * is in the channel when that is destroyed. It is called on the thread that destroys. `element` is to
 * be read during the call only, which must not use the channel. A send that fails still has its
 * element.
 * Threads: before it is shared. Progress: wait-free. Source: Kotlin's onUndeliveredElement.
 */
#define bide_unbounded_channel_set_undelivered(channel_, function, argument_) \
    ((void)((channel_)->channel.undelivered = (function),                     \
            (channel_)->channel.argument = (argument_)))

/*
 * Counts a sender, which is to be dropped once. When the last is dropped the channel is closed. If
 * none is added the channel is closed by bide_unbounded_channel_close only; that may also be called
 * before. Add senders before the threads or coroutines begin that are to drop them: a channel that
 * was closed stays so.
 * Threads: any. Progress: wait-free.
 */
#define bide_unbounded_channel_sender_add(channel_) \
    ((void)bide_atomic_fetch_add(&(channel_)->channel.senders, 1, relaxed)) /* 6 */

/*
 * A sender that was added will send no more. The last one closes the channel, with `seat`. More than
 * were added is misuse, which is reported where BIDE_DEBUG is 1.
 * Threads: any. Suspends: never. Progress: wait-free; the last is as bide_unbounded_channel_close.
 */
#define bide_unbounded_channel_sender_drop(channel_, seat)          \
    bide_unbounded_channel_drop_(                                   \
        &(channel_)->channel, &(channel_)->channel.senders, (seat), \
        BIDE_MISUSE_("more senders are dropped than were added", #channel_))

/*
 * Counts a receiver, as bide_unbounded_channel_sender_add a sender.
 * Threads: any. Progress: wait-free.
 */
#define bide_unbounded_channel_receiver_add(channel_) \
    ((void)bide_atomic_fetch_add(&(channel_)->channel.receivers, 1, relaxed)) /* 6 */

/*
 * A receiver that was added will receive no more. The last one closes the channel, so that sends end
 * with -EPIPE; what is in it stays there until it is destroyed. More than were added is misuse, which
 * is reported where BIDE_DEBUG is 1.
 * Threads: any. Suspends: never. Progress: wait-free; the last is as bide_unbounded_channel_close.
 */
#define bide_unbounded_channel_receiver_drop(channel_, seat)          \
    bide_unbounded_channel_drop_(                                     \
        &(channel_)->channel, &(channel_)->channel.receivers, (seat), \
        BIDE_MISUSE_("more receivers are dropped than were added", #channel_))

BIDE_INLINE void bide_unbounded_channel_drop_(bide_unbounded_channel_ *channel,
                                              bide_atomic(uint32_t) * ends, bide_hazard_seat *seat,
                                              const char *what, const char *function,
                                              const char *file, unsigned line)
{
    /* acquire and release: 6. */
    uint32_t left = bide_atomic_fetch_sub(ends, 1, acq_rel);
#if BIDE_DEBUG
    if (left == 0)
        bide_misuse_(what, function, file, line);
#else
    (void)what, (void)function, (void)file, (void)line;
#endif
    if (left == 1)
        bide_unbounded_channel_close_(channel, seat);
}

BIDE_INLINE void bide_unbounded_channel_destroy_(bide_unbounded_channel_ *channel, const char *what,
                                                 const char *function, const char *file,
                                                 unsigned line)
{
#if BIDE_DEBUG
    if (!bide_unbounded_channel_is_idle_(channel))
        bide_misuse_(what, function, file, line);
#else
    (void)what, (void)function, (void)file, (void)line;
#endif
    if (channel->undelivered != NULL)
        bide_segment_queue_visit_(&channel->queue, channel->undelivered, channel->argument);
    bide_segment_queue_destroy_(&channel->queue);
    if (channel->own != NULL)
        bide_unbounded_channel_destroy_own_(channel);
}

/*
 * The end of its life: gives the elements that are in it to the function of
 * bide_unbounded_channel_set_undelivered, if there is one, and the segments back. Where BIDE_DEBUG is
 * 1 it reports misuse if a wait is under way.
 * Threads: one at a time.
 */
#define bide_unbounded_channel_destroy(channel_) \
    bide_unbounded_channel_destroy_(             \
        &(channel_)->channel,                    \
        BIDE_MISUSE_("a channel is destroyed while it is waited for", #channel_))

/*
 * Why it is correct: it is a queue of segments (segment_queue.h) with an event count (event_count.h)
 * for the waiters, `not_empty`.
 *
 * 1. Waiting reserves nothing. A notified receive attempts by itself, because of its seat, and is
 *    done or waits on (bide_event_count_own_waiter). So one that is cancelled or destroyed loses nothing, and
 *    its notification goes to the next.
 * 2. Each push notifies one receiver, after it: N and L of event_count.md. The waiter looks at how
 *    many cells of the first segment were given to producers, and how many to consumers
 *    (bide_segment_queue_may_pop_). A push, or the closing, changes the former before N. An element
 *    that is still there is in a cell that no consumer was given, in that segment or one behind it.
 *    In the latter case all cells of the first were given to producers, and the producer that
 *    pushed behind it acquired that.
 * 3. A push that has a cell and has not filled it lets that look say yes, and the attempt fail. But
 *    the attempt has given the cell up, so the push takes another, and notifies then.
 * 4. Closing notifies all. A channel is closed for good and drained for good, so each receive that
 *    ends because of that finds that the next would end too.
 * 5. A call without a seat takes a free one of the domain, as joining does, and gives it back, as
 *    leaving does (hazard.md, 4). But its hazards stay set: they still protect what they did, so the
 *    next that takes the seat, which acquires what this one released, may use them as its own.
 *    Nothing is left in the seat's list of retired segments, since the domain has to find them.
 * 6. The thread that drops the last sender acquires what the other drops released. So its close
 *    comes after all their sends, and each of those is received before a receive ends with -EPIPE. Nothing else is ordered by such an end. Adding orders nothing: it comes before
 *    the thread begins that drops.
 *
 * Source: Go's channels; Java's LinkedTransferQueue; waiting and attempting again is crossbeam's.
 */

BIDE_EXTERN_C_END

#endif
