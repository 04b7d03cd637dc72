/*
 * A channel from one to all: each subscriber sees every element, and a subscriber that is too slow
 * learns how many it has missed. Floor: queue.
 *
 *     bide_broadcast_slot(struct event) memory[100];
 *     bide_broadcast(struct event) broadcast;
 *     bide_broadcast_init(&broadcast, memory, 100);       it keeps the last 100; at least 1
 *     bide_broadcast_send(&broadcast, &event);            the sender: 0, or -EPIPE (closed)
 *
 *     bide_broadcast_subscriber(struct event) subscriber;
 *     bide_broadcast_subscribe(&subscriber, &broadcast);  from now on
 *     while (bide_broadcast_recv_blocking(&subscriber, &event, BIDE_FOREVER) == 0)
 *         if (subscriber.missed != 0) ...                 so many were lost just before this one
 *
 * One thread at a time is the sender: it sends and closes. The role passes to another thread by
 * something that orders the two, such as a mutex. If it is made by bide_broadcast_init_shared, any
 * thread is a sender at any time. A subscriber is a position, and belongs to one
 * thread at a time. Any number of subscribers may come and go; there is no list of them. A copy of
 * a subscriber is another one that continues from there. A subscriber in two waits at once is
 * misuse, which is detected if BIDE_DEBUG is 1.
 *
 * Nothing is lost when a receive is raced: as a case of a select it takes nothing unless it wins.
 * If its coroutine is destroyed before it resumes, the subscriber stays where it was.
 *
 * Sending is wait-free while nothing waits, and otherwise lock-free and linear in the waiters that
 * it wakes. Receiving is lock-free: it retries only if the element was overwritten in the meantime,
 * and then further on. A suspended sender blocks no other thread, except other senders.
 *
 * Nothing allocates. Elements are copied as by memcpy: any type in C; in C++ trivially copyable
 * ones. In the macros `broadcast_`, `memory` and `subscriber_` may be evaluated more than once, the
 * other arguments once. Why it is correct: docs/internals/broadcast.md. The numbers below refer to
 * that.
 */
#ifndef BIDE_BROADCAST_H
#define BIDE_BROADCAST_H

#include "bide/detail/shared_words.h"
#include "bide/errors.h"
#include "bide/sequence_barrier.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_broadcast_ {
    bide_sequence_barrier barrier;
    /* constant while it is shared */
    size_t capacity;
    bide_shared_word_ *slots; /* places 0 to capacity - 1 */
    bide_shared_word_ *spare; /* place `capacity` */
    /* the sender's; where there are several, under the lock */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) size_t place; /* of what is sent next */
    uint8_t sending;                            /* one of those below; SHARED is constant */
    bool closed;                                /* SHARED: whether it was closed */
    bide_atomic(uint32_t) lock;
    bide_atomic(size_t) origin; /* the position that was last in place 0 */
} bide_broadcast_;

enum {
    BIDE_BROADCAST_OPEN_,   /* one sender */
    BIDE_BROADCAST_CLOSED_, /* one sender, which has closed it */
    BIDE_BROADCAST_SHARED_  /* several senders */
};

/* The element type of the memory's array: it holds one `type`. Each use is a type of its own. */
#define bide_broadcast_slot(type)                                  \
    struct {                                                       \
        bide_shared_word_ words[BIDE_SHARED_WORDS_(sizeof(type))]; \
    }

/*
 * A broadcast of elements of `type`, aligned to BIDE_CACHE_LINE. Each use is a type of its own:
 * give it a name by a typedef, or declare one where it is used.
 */
#define bide_broadcast(type)                                       \
    struct {                                                       \
        bide_broadcast_ broadcast;                                 \
        bide_shared_word_ spare[BIDE_SHARED_WORDS_(sizeof(type))]; \
        BIDE_SHARED_TYPE_(type) * typed_;                          \
    }

typedef struct bide_broadcast_cursor_ {
    bide_broadcast_ *broadcast;
    size_t position;     /* of the next */
    size_t place;        /* that of `position` */
    size_t seen;         /* what was published when it looked last; position - 1 or later */
    const void *waiting; /* in debug builds: itself while it waits, and a copy of it does not */
} bide_broadcast_cursor_;

/*
 * A subscriber to elements of `type`. Each receive that has an element sets `missed`: how many were
 * overwritten between the one before and this. Nothing refers to a subscriber but its own wait.
 */
#define bide_broadcast_subscriber(type)   \
    struct {                              \
        size_t missed;                    \
        bide_broadcast_cursor_ cursor;    \
        BIDE_SHARED_TYPE_(type) * typed_; \
    }

/*
 * One wait. Its memory, and that of the element's place, is the caller's until the wait has ended.
 */
typedef struct bide_broadcast_waiter {
    bide_sequence_waiter wait; /* the head */
    bide_broadcast_cursor_ *cursor;
    size_t *missed;
    void *to;
    size_t size;
} bide_broadcast_waiter;

/* `pointer`, which must be one to an element of a broadcast, or of a subscriber; and its size. */
#define BIDE_BROADCAST_ELEMENT_(typed, pointer) (1 ? (pointer) : &(typed)->typed_->value)
#define BIDE_BROADCAST_SIZE_(typed)             (sizeof(typed)->typed_->value)

/*
 * Makes `broadcast_` an empty one over the array `memory` of `capacity` slots, 1 to SIZE_MAX / 4,
 * which stay the caller's and must outlive it: it keeps the last `capacity` elements. The memory of
 * both may go when the sender's last call has returned and nobody subscribes, receives or waits.
 * Threads: before it is shared.
 */
#define bide_broadcast_init(broadcast_, memory, capacity)                                 \
    ((void)sizeof(*(1 ? &(memory)->words : &(broadcast_)->spare)),                        \
     bide_broadcast_init_(&(broadcast_)->broadcast, (memory)->words, (broadcast_)->spare, \
                          (capacity), BIDE_BROADCAST_SIZE_(broadcast_), BIDE_BROADCAST_OPEN_))

/*
 * The same for several senders: any thread sends and closes. Elements have one order, the same for
 * all subscribers. Senders take turns under a lock, which one holds while it copies an element. So
 * a sender that is suspended in the middle of a send blocks other senders, but no subscriber.
 * Threads: before it is shared.
 */
#define bide_broadcast_init_shared(broadcast_, memory, capacity)                          \
    ((void)sizeof(*(1 ? &(memory)->words : &(broadcast_)->spare)),                        \
     bide_broadcast_init_(&(broadcast_)->broadcast, (memory)->words, (broadcast_)->spare, \
                          (capacity), BIDE_BROADCAST_SIZE_(broadcast_), BIDE_BROADCAST_SHARED_))

BIDE_INLINE void bide_broadcast_init_(bide_broadcast_ *broadcast, bide_shared_word_ *slots,
                                      bide_shared_word_ *spare, size_t capacity, size_t size,
                                      uint8_t sending)
{
    bide_sequence_barrier_init(&broadcast->barrier, bide_sequence_initial());
    broadcast->capacity = capacity;
    broadcast->slots = slots;
    broadcast->spare = spare;
    broadcast->place = 0;
    broadcast->sending = sending;
    broadcast->closed = false;
    bide_atomic_init(&broadcast->lock, 0);
    bide_atomic_init(&broadcast->origin, (size_t)0);
    bide_shared_words_init_(slots, capacity * BIDE_SHARED_WORDS_(size));
    bide_shared_words_init_(spare, BIDE_SHARED_WORDS_(size));
}

BIDE_INLINE bide_shared_word_ *bide_broadcast_at_(const bide_broadcast_ *broadcast, size_t place,
                                                  size_t size)
{
    return place < broadcast->capacity ? broadcast->slots + place * BIDE_SHARED_WORDS_(size)
                                       : broadcast->spare;
}

/* `place`, some places further: at most `capacity`. */
BIDE_INLINE size_t bide_broadcast_after_(const bide_broadcast_ *broadcast, size_t place,
                                         size_t count)
{
    size_t after = place + count;
    return after <= broadcast->capacity ? after : after - broadcast->capacity - 1;
}

/* ---- The sender ---- */

/*
 * One of several senders begins its turn, which fails if the broadcast is closed; publishes, and
 * ends its turn; closes. In src/queue/broadcast.c: 7.
 */
int bide_broadcast_begin_send_(bide_broadcast_ *broadcast);
void bide_broadcast_finish_send_(bide_broadcast_ *broadcast, size_t position);
void bide_broadcast_close_shared_(bide_broadcast_ *broadcast);

/*
 * Sends a copy of the element at `from` to all subscribers, in place of the oldest, and wakes the
 * waiters. Each resumes on its own scheduler, but not on the caller's stack while a coroutine is
 * running on it.
 * Threads: the sender's; any if it was made by bide_broadcast_init_shared. Errors: -EPIPE (closed;
 * nothing is done). Suspends: never. Progress: wait-free while nothing waits, otherwise lock-free
 * and linear in the waiters; if there are several senders it blocks while another one copies an
 * element.
 */
#define bide_broadcast_send(broadcast_, from)                                                     \
    bide_broadcast_send_(&(broadcast_)->broadcast, BIDE_BROADCAST_ELEMENT_((broadcast_), (from)), \
                         BIDE_BROADCAST_SIZE_(broadcast_))

/* Writes the next element; returns its position, which is to be published. */
BIDE_INLINE size_t bide_broadcast_write_(bide_broadcast_ *broadcast, const void *from, size_t size)
{
    size_t position = bide_atomic_load(&broadcast->barrier.published, relaxed) + 1; /* 1 */
    size_t place = broadcast->place;
    broadcast->place = bide_broadcast_after_(broadcast, place, 1);
    if (place == 0)
        bide_atomic_store(&broadcast->origin, position, relaxed); /* 6 */
    bide_atomic_fence(release); /* 3, partner is the fence of _take_ */
    bide_shared_words_store_(bide_broadcast_at_(broadcast, place, size), from, size);
    return position;
}

/* `from` goes to no function that is not inlined, so that an element may stay in registers. */
BIDE_INLINE int bide_broadcast_send_(bide_broadcast_ *broadcast, const void *from, size_t size)
{
    if (BIDE_UNLIKELY(broadcast->sending != BIDE_BROADCAST_OPEN_)) {
        if (bide_broadcast_begin_send_(broadcast) != 0)
            return -EPIPE;
        bide_broadcast_finish_send_(broadcast, bide_broadcast_write_(broadcast, from, size));
        return 0;
    }
    size_t position = bide_broadcast_write_(broadcast, from, size);
    bide_sequence_barrier_publish(&broadcast->barrier, position); /* 2 */
    return 0;
}

/*
 * Closes it: what is kept is still received, and after that receives end with -EPIPE, now and
 * later. Sends answer -EPIPE. More than once is once.
 * Threads: the sender's; any if it was made by bide_broadcast_init_shared. Suspends: never.
 * Progress: wait-free, except for waking the waiters, linear in them; as a send if there are
 * several senders.
 */
#define bide_broadcast_close(broadcast_) bide_broadcast_close_(&(broadcast_)->broadcast)

BIDE_INLINE void bide_broadcast_close_(bide_broadcast_ *broadcast)
{
    if (broadcast->sending == BIDE_BROADCAST_SHARED_) {
        bide_broadcast_close_shared_(broadcast);
        return;
    }
    broadcast->sending = BIDE_BROADCAST_CLOSED_;
    bide_sequence_barrier_close(&broadcast->barrier);
}

/* ---- Subscribing ---- */

/*
 * Makes a subscriber to elements of the same type, which receives what is sent from now on: all
 * that comes after the last that the caller knows of, at least. The memory may be freed when it does not
 * wait.
 * Threads: any. Progress: wait-free.
 */
#define bide_broadcast_subscribe(subscriber_, broadcast_)                               \
    ((void)sizeof(*(1 ? &(subscriber_)->typed_->value : &(broadcast_)->typed_->value)), \
     (subscriber_)->missed = 0, (subscriber_)->typed_ = NULL,                           \
     bide_broadcast_subscribe_(&(subscriber_)->cursor, &(broadcast_)->broadcast))

BIDE_INLINE void bide_broadcast_subscribe_(bide_broadcast_cursor_ *cursor,
                                           bide_broadcast_ *broadcast)
{
    /* relaxed, both: nothing is read that they lead to; and 6. */
    size_t published = bide_atomic_load(&broadcast->barrier.published, relaxed);
    size_t origin = bide_atomic_load(&broadcast->origin, relaxed);
    size_t position = published + 1;
    size_t places = broadcast->capacity + 1;
    size_t behind = (origin - position) % places; /* if the origin is the later one */
    cursor->broadcast = broadcast;
    cursor->position = position;
    cursor->seen = published;
    cursor->waiting = NULL;
    if (position - origin <= SIZE_MAX / 2)
        cursor->place = (position - origin) % places;
    else
        cursor->place = behind == 0 ? 0 : places - behind;
}

/* ---- Receiving ---- */

/* How many elements are available, or were; if that seems fewer than `wanted`, looks again. */
BIDE_INLINE size_t bide_broadcast_available_(bide_broadcast_cursor_ *cursor, size_t wanted)
{
    if (cursor->seen - cursor->position + 1 < wanted)
        /* acquire: 2, partner is the publishing. */
        cursor->seen = bide_atomic_load(&cursor->broadcast->barrier.published, acquire);
    return cursor->seen - cursor->position + 1;
}

/*
 * If the next is not kept any more, by what was seen, skips to the oldest that is, and `margin`
 * further. Returns how many were skipped.
 */
BIDE_INLINE size_t bide_broadcast_skip_(bide_broadcast_cursor_ *cursor, size_t margin)
{
    const bide_broadcast_ *broadcast = cursor->broadcast;
    size_t ahead = cursor->seen - cursor->position;
    if (BIDE_LIKELY(ahead < broadcast->capacity))
        return 0;
    size_t skipped = ahead - broadcast->capacity + 1 + margin;
    cursor->position += skipped;
    cursor->place =
        bide_broadcast_after_(broadcast, cursor->place, skipped % (broadcast->capacity + 1));
    return skipped;
}

/*
 * So many were sent while some were copied: how far to stay away from the oldest next time. Less
 * than the capacity; and so far that this does not come again soon.
 */
BIDE_INLINE size_t bide_broadcast_margin_(const bide_broadcast_ *broadcast, size_t sent)
{
    size_t max = broadcast->capacity - (broadcast->capacity + 3) / 4;
    size_t min = broadcast->capacity / 8;
    if (sent >= max / 2)
        return max;
    return 2 * sent > min ? 2 * sent : min;
}

/*
 * Takes what there is, up to `count`; returns how many. One is taken by what was seen before; for
 * more a look at what is published now costs little.
 */
BIDE_INLINE size_t bide_broadcast_take_(bide_broadcast_cursor_ *cursor, size_t *missed, void *to,
                                        size_t count, size_t size)
{
    bide_broadcast_ *broadcast = cursor->broadcast;
    size_t margin = 0, lost = 0;
    for (bool is_fresh = count != 1;; is_fresh = true) {
        if (bide_broadcast_available_(cursor, count == 1 ? 1 : SIZE_MAX) == 0)
            return 0;
        lost += bide_broadcast_skip_(cursor, margin);
        size_t seen = cursor->seen, place = cursor->place;
        if (count > seen - cursor->position + 1)
            count = seen - cursor->position + 1;
        for (size_t i = 0; i < count; i++) {
            bide_shared_words_load_((char *)to + i * size,
                                    bide_broadcast_at_(broadcast, place, size), size);
            place = bide_broadcast_after_(broadcast, place, 1);
        }
        bide_atomic_fence(acquire); /* 3, partner is the fence of _send_ */
        /* acquire: 2, partner is the publishing; for what is read next. */
        cursor->seen = bide_atomic_load(&broadcast->barrier.published, acquire);
        if (BIDE_LIKELY(cursor->seen - cursor->position < broadcast->capacity)) {
            *missed = lost;
            cursor->position += count;
            cursor->place = place;
            return count;
        }
        if (is_fresh)
            margin = bide_broadcast_margin_(broadcast, cursor->seen - seen);
    }
}

/* Was it closed? Then the sender's last position is seen. */
BIDE_INLINE bool bide_broadcast_is_closed_(const bide_broadcast_cursor_ *cursor)
{
    /* acquire: 4, partner is the close. */
    uintptr_t word = bide_atomic_load(&cursor->broadcast->barrier.waiters.list.word, acquire);
    return bide_waiter_list_word_is_shut(word);
}

/* As _take_; if there is nothing, says why. */
BIDE_INLINE ptrdiff_t bide_broadcast_try_take_(bide_broadcast_cursor_ *cursor, size_t *missed,
                                               void *to, size_t count, size_t size)
{
    if (count == 0)
        return 0;
    for (;;) {
        size_t taken = bide_broadcast_take_(cursor, missed, to, count, size);
        if (BIDE_LIKELY(taken != 0))
            return (ptrdiff_t)taken;
        if (BIDE_LIKELY(!bide_broadcast_is_closed_(cursor)))
            return -EAGAIN;
        if (bide_broadcast_available_(cursor, 1) == 0)
            return -EPIPE;
    }
}

/*
 * Receives at once, or not at all; `missed` says how many were lost before the element.
 * Threads: the subscriber's. Errors: -EAGAIN (there is none yet), -EPIPE (closed, and all was
 * seen). Progress: lock-free.
 */
#define bide_broadcast_try_recv(subscriber_, to)                             \
    bide_broadcast_try_recv_(&(subscriber_)->cursor, &(subscriber_)->missed, \
                             BIDE_BROADCAST_ELEMENT_((subscriber_), (to)),   \
                             BIDE_BROADCAST_SIZE_(subscriber_))

BIDE_INLINE int bide_broadcast_try_recv_(bide_broadcast_cursor_ *cursor, size_t *missed, void *to,
                                         size_t size)
{
    ptrdiff_t taken = bide_broadcast_try_take_(cursor, missed, to, 1, size);
    return taken < 0 ? (int)taken : 0;
}

/*
 * Receives elements, as many of `count` as there are, to the array `to`, in order;
 * `missed` says how many were lost before the first, and none were after that. Returns how many, at
 * least 1, or an error; 0 only if count is 0. The rest of the array may have been written to.
 * Threads: the subscriber's. Errors: -EAGAIN (there is none yet), -EPIPE (closed, and all was
 * seen). Progress: lock-free.
 */
#define bide_broadcast_try_recv_many(subscriber_, to, count)                        \
    bide_broadcast_try_take_(&(subscriber_)->cursor, &(subscriber_)->missed,        \
                             BIDE_BROADCAST_ELEMENT_((subscriber_), (to)), (count), \
                             BIDE_BROADCAST_SIZE_(subscriber_))

/* In src/queue/broadcast.c: 5. */
void bide_broadcast_begin_wait_(bide_broadcast_cursor_ *cursor, bide_frame *frame);
void bide_broadcast_cancel_(bide_awaiter *awaiter);
bool bide_broadcast_withdraw_(bide_awaiter *awaiter);
int bide_broadcast_attempt_(bide_awaiter *awaiter, bide_choice *choice);

/* Keeps the subscriber's position until the operation has ended: `withdraw` restores it. */
BIDE_INLINE bool bide_broadcast_ready_(bide_awaiter *awaiter)
{
    bide_broadcast_waiter *waiter = (bide_broadcast_waiter *)(void *)awaiter;
    bide_broadcast_cursor_ *cursor = waiter->cursor;
    waiter->wait.target = cursor->position;
    return bide_broadcast_available_(cursor, 1) != 0 || bide_broadcast_is_closed_(cursor);
}

BIDE_INLINE bide_frame *bide_broadcast_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_broadcast_waiter *waiter = (bide_broadcast_waiter *)(void *)awaiter;
    waiter->wait.target = waiter->cursor->position;
#if BIDE_DEBUG
    bide_broadcast_begin_wait_(waiter->cursor, frame);
#endif
    return bide_sequence_barrier_suspend_(awaiter, frame);
}

BIDE_INLINE int bide_broadcast_resume_(bide_awaiter *awaiter)
{
    bide_broadcast_waiter *waiter = (bide_broadcast_waiter *)(void *)awaiter;
#if BIDE_DEBUG
    waiter->cursor->waiting = NULL;
#endif
    return bide_broadcast_try_recv_(waiter->cursor, waiter->missed, waiter->to,
                                    waiter->size); /* 5 */
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_broadcast_recv_(bide_broadcast_waiter *waiter,
                                               bide_broadcast_cursor_ *cursor, size_t *missed,
                                               void *to, size_t size)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_broadcast_ready_,
        .suspend = bide_broadcast_suspend_,
        .resume = bide_broadcast_resume_,
        .cancel = bide_broadcast_cancel_,
        .withdraw = bide_broadcast_withdraw_,
        .name = "bide_broadcast_recv",
        .attempt = bide_broadcast_attempt_,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->cursor = cursor;
    waiter->missed = missed;
    waiter->to = to;
    waiter->size = size;
    bide_awaiter *awaiter = bide_sequence_barrier_wait_until_published(
        &waiter->wait, &cursor->broadcast->barrier, cursor->position);
    awaiter->ops = &ops;
    return awaiter;
}

/*
 * Receives the next element, to where `to` points; waits while there is none. `missed` says how many
 * were lost before it. Writes made before the element was sent are visible. `waiter` (a
 * bide_broadcast_waiter), the subscriber and `to` must stay until the wait has ended.
 * Threads: the subscriber's. Errors: -EPIPE (closed, and all was seen), -ECANCELED, -ETIMEDOUT.
 * Suspends: if there is none yet. Cancel-safe: yes. Progress: lock-free, except for the system call
 * of a heavy fence (fence.h) if nobody has waited for some time.
 */
#define bide_broadcast_recv(waiter, subscriber_, to) BIDE_BROADCAST_RECV_(waiter, subscriber_, to)
#define BIDE_BROADCAST_RECV_(waiter, subscriber_, to)                              \
    bide_broadcast_recv_((waiter), &(subscriber_)->cursor, &(subscriber_)->missed, \
                         BIDE_BROADCAST_ELEMENT_((subscriber_), (to)),             \
                         BIDE_BROADCAST_SIZE_(subscriber_))

/*
 * The same for a plain thread, which it blocks until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: the subscriber's, but not that of a loop (sync_wait.h). Errors: as bide_broadcast_recv;
 * -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_broadcast_recv_blocking(subscriber_, to, deadline)                                \
    BIDE_BLOCKS_(bide_broadcast_recv_blocking_(&(subscriber_)->cursor, &(subscriber_)->missed, \
                                               BIDE_BROADCAST_ELEMENT_((subscriber_), (to)),   \
                                               BIDE_BROADCAST_SIZE_(subscriber_), (deadline)))

BIDE_INLINE int bide_broadcast_recv_blocking_(bide_broadcast_cursor_ *cursor, size_t *missed,
                                              void *to, size_t size, uint64_t deadline)
{
    bide_broadcast_waiter waiter;
    return bide_sync_wait_until(bide_broadcast_recv_(&waiter, cursor, missed, to, size), deadline);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is under
 * way.
 * Threads: any. Progress: wait-free.
 */
#define bide_broadcast_destroy(broadcast_)                                                      \
    BIDE_END_OF_LIFE_(bide_sequence_barrier_destroy_checked_, &(broadcast_)->broadcast.barrier, \
                      "a broadcast is destroyed while it is waited for", #broadcast_)

BIDE_EXTERN_C_END

#endif
