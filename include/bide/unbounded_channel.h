/*
 * An unbounded channel: elements go from any number of senders, who never wait, to any number of receivers, each to
 * one; who finds it empty waits. It allocates, a segment at a time. Floor: queue.
 *
 *     bide_unbounded_channel(struct job) jobs;
 *     bide_hazard_init(&domain, seats, 16);
 *     bide_unbounded_channel_init(&jobs, &domain, &bide_heap, 1024);
 *     status = bide_unbounded_channel_send(&jobs, seat, &job);
 *     bide_await_status(status, bide_unbounded_channel_receive(&self->receive, &jobs, self->seat, &self->job));
 *
 * It is a queue of segments (segment_queue.h), and an event count (event_count.h) for who waits: `not_empty`.
 *
 *     open --close--> closed, and drained by receivers --> closed, empty
 *
 *     send       0: it is in the channel         -EPIPE: it is closed         -ENOMEM: nothing was sent
 *     receive    0: it is the receiver's         -EPIPE: it is closed, and all that was sent has been received
 *     cut short  -ECANCELED, -ETIMEDOUT          nothing was received
 *
 * Who uses it has a seat in the queue's domain (hazard.h). A seat is used by one thread at a time: so it is a thread's,
 * for all that coroutines which run there only do with it; or a coroutine's own, if it may be resumed by one thread or
 * another. A receive uses it when it begins, and each time its coroutine's scheduler has it go on; while it waits it
 * does not, nor as it is cut short. Meanwhile the seat keeps the segment that it has looked at last from going.
 * How much memory what was received keeps, for all seats together, segment_queue.h says: with 512 seats and segments of
 * 1,024 elements of 8 bytes 4.2 MB, and a segment for each seat that waits in one of its own.
 *
 * 1. Waiting reserves nothing: a receive that is notified attempts, by itself because of its seat, and is done or waits
 *    on (bide_own_retry). So one that is cut short or destroyed loses nothing, and what was notified to it goes to the
 *    next.
 * 2. Each push notifies one receiver, after it: N and L of event_count.h. Who waits looks at how many cells of the
 *    first segment were given to producers, and to consumers (bide_segment_queue_may_pop_); the former a push, or the
 *    closing, changes before N. An element that is there still is in a cell that no consumer was given, of that
 *    segment or one behind it; then all cells of the first were given to producers, and who has pushed behind it
 *    acquired that.
 * 3. A push that has a cell and has not filled it lets that look say yes, and the attempt fail. But that has given the
 *    cell up, so the push takes another, and notifies then.
 * 4. Closing notifies all. It is closed for good, and drained for good, so each that ends because of that finds that
 *    the next would end too.
 *
 * Order: the queue's: what one sender sends is received in its order. Who waits is notified first come, first served;
 * but one who comes at that moment may be faster.
 *
 * Threads: any, each with its seat. Progress: lock-free but for the allocator. Source: Go's channels; Java's
 * LinkedTransferQueue; what waits and attempts again is crossbeam's.
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
} bide_unbounded_channel_;

/* A channel of elements of `type`, aligned to BIDE_CACHE_LINE at most. Each use is a type of its own: give it a name by
 * a typedef. */
#define bide_unbounded_channel(type)       \
    struct {                               \
        bide_unbounded_channel_ channel;   \
        BIDE_SEGMENT_CELL_(type) * typed_; \
    }

/* One receive. The caller's, for the time of the wait. */
typedef struct bide_unbounded_channel_waiter {
    bide_own_retry own; /* at the head: it is the awaiter */
    bide_unbounded_channel_ *channel;
    bide_hazard_seat *seat;
    void *element;
} bide_unbounded_channel_waiter;

extern const bide_retry_rules bide_unbounded_channel_receive_rules_;

int bide_unbounded_channel_receive_blocking_(bide_unbounded_channel_ *channel,
                                             bide_hazard_seat *seat, void *to, uint64_t deadline);
int bide_unbounded_channel_init_(bide_unbounded_channel_ *channel, bide_hazard_domain *domain,
                                 bide_allocator *allocator, size_t cells, size_t stride,
                                 size_t size);
void bide_unbounded_channel_close_(bide_unbounded_channel_ *channel, bide_hazard_seat *seat);
bool bide_unbounded_channel_is_idle_(bide_unbounded_channel_ *channel);

BIDE_INLINE int bide_unbounded_channel_send_(bide_unbounded_channel_ *channel,
                                             bide_hazard_seat *seat, const void *from,
                                             size_t stride, size_t size)
{
    ptrdiff_t moved = bide_segment_queue_push_many_(&channel->queue, seat, from, stride, size, 1);
    if (BIDE_LIKELY(moved > 0))
        bide_event_count_notify(&channel->not_empty, 1);
    return bide_segment_queue_one_(moved);
}

BIDE_INLINE int bide_unbounded_channel_try_receive_(bide_unbounded_channel_ *channel,
                                                    bide_hazard_seat *seat, void *to, size_t stride,
                                                    size_t size)
{
    return bide_segment_queue_one_(
        bide_segment_queue_pop_many_(&channel->queue, seat, to, stride, size, 1, false));
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_unbounded_channel_receive_(bide_unbounded_channel_waiter *waiter,
                                                          bide_unbounded_channel_ *channel,
                                                          bide_hazard_seat *seat, void *to)
{
    static const bide_awaiter_ops ops =
        BIDE_OWN_RETRY_OPS(bide_own_retry_ready_, "bide_unbounded_channel_receive");
    waiter->channel = channel;
    waiter->seat = seat;
    waiter->element = to;
    return bide_own_retry_init_(&waiter->own, &ops, &bide_unbounded_channel_receive_rules_,
                                &channel->not_empty);
}

/* `pointer`, which must be one to an element. */
#define BIDE_UNBOUNDED_CHANNEL_ELEMENT_(sent, pointer) (1 ? (pointer) : &(sent)->typed_->element_)

/*
 * Makes an empty channel: a segment of `cells` (1 to SIZE_MAX / 4) elements at a time, from `allocator`, which any
 * thread calls that has a seat in `domain`; that protects them. Both outlive the channel, and `allocator` the domain.
 * Returns 0 or -ENOMEM: it needs a segment at once. Before it is shared.
 */
#define bide_unbounded_channel_init(made, domain, allocator, cells)                \
    bide_unbounded_channel_init_(&(made)->channel, (domain), (allocator), (cells), \
                                 BIDE_SEGMENT_STRIDE_(made), BIDE_SEGMENT_SIZE_(made))

/*
 * Sends a copy of the element at `from`. Returns 0; -EPIPE, it is closed; or -ENOMEM. `seat` is the caller's, of the
 * channel's domain. Any thread; does not suspend; lock-free but for the allocator.
 */
#define bide_unbounded_channel_send(sent, seat, from)                             \
    bide_unbounded_channel_send_(&(sent)->channel, (seat),                        \
                                 BIDE_UNBOUNDED_CHANNEL_ELEMENT_((sent), (from)), \
                                 BIDE_SEGMENT_STRIDE_(sent), BIDE_SEGMENT_SIZE_(sent))

/*
 * Receives the first element, to where `to` points. Waits while the channel is empty. Ends with 0; -EPIPE, it is closed
 * and drained; or -ECANCELED or -ETIMEDOUT (stop.h). `to` and `waiter` are the operation's until it has ended; `seat`
 * is the coroutine's, as said above. Any thread; suspends if it has to wait; cancel-safe: yes, no element was taken
 * then; lock-free.
 */
#define bide_unbounded_channel_receive(waiter, received, seat, to)          \
    bide_unbounded_channel_receive_((waiter), &(received)->channel, (seat), \
                                    BIDE_UNBOUNDED_CHANNEL_ELEMENT_((received), (to)))

/* The same at once: 0, -EPIPE, or -EAGAIN: it is empty. Any thread; does not suspend. */
#define bide_unbounded_channel_try_receive(received, seat, to)                           \
    bide_unbounded_channel_try_receive_(                                                 \
        &(received)->channel, (seat), BIDE_UNBOUNDED_CHANNEL_ELEMENT_((received), (to)), \
        BIDE_SEGMENT_STRIDE_(received), BIDE_SEGMENT_SIZE_(received))

/* The same for a plain thread, until `deadline` (nanoseconds of bide_platform.now(), or BIDE_FOREVER): returns what the
 * wait ends with, -ETIMEDOUT when the deadline has come. See bide_sync_wait_until. Blocks. */
#define bide_unbounded_channel_receive_blocking(received, seat, to, deadline)                   \
    bide_unbounded_channel_receive_blocking_(&(received)->channel, (seat),                      \
                                             BIDE_UNBOUNDED_CHANNEL_ELEMENT_((received), (to)), \
                                             (deadline))

/* Closes it for good: sends fail with -EPIPE from now on; what is in it is received. Any thread, more than once; does
 * not suspend; lock-free. */
#define bide_unbounded_channel_close(closed, seat) \
    bide_unbounded_channel_close_(&(closed)->channel, (seat))

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
    bide_segment_queue_destroy_(&channel->queue);
}

/* Gives the segments back, with the elements that are in them. Nobody uses the channel any more; where BIDE_DEBUG is 1,
 * tells if it is waited for. */
#define bide_unbounded_channel_destroy(destroyed) \
    bide_unbounded_channel_destroy_(              \
        &(destroyed)->channel,                    \
        BIDE_MISUSE_("a channel is destroyed that is waited for", #destroyed))

BIDE_EXTERN_C_END

#endif
