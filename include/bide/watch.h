/*
 * A channel that has one value, the latest: a configuration, a position, a price. A slow receiver
 * misses the values in between. Floor: queue.
 *
 *     bide_watch(struct config) watch;
 *     bide_watch_init(&watch, &config);               there is a value from the beginning
 *     bide_watch_send(&watch, &config);               the sender: 0, or -EPIPE (closed)
 *     bide_watch_read(&watch, &config);               any thread: the latest value
 *
 *     bide_watch_receiver(struct config) receiver;
 *     bide_watch_receiver_init(&receiver, &watch);    it has seen nothing yet
 *     while (bide_watch_recv_blocking(&receiver, &config, BIDE_FOREVER) == 0)
 *         apply(&config);                             the first, and each that is new by then
 *
 *     bide_watch_send_if_modified(&watch, &config, change, argument);      changes it in place
 *     bide_watch_wait_for_blocking(&receiver, is_ready, argument, &config, BIDE_FOREVER);
 *
 * One thread at a time is the sender: it sends and closes. The role passes to another thread by
 * something that orders the two, such as a mutex. If it is made by bide_watch_init_shared, any
 * thread is a sender at any time. Any number of threads may read. A receiver belongs to one thread
 * at a time. Any number of receivers may come and go; there is no list of them. A receiver in two
 * waits at once is misuse, which is detected if BIDE_DEBUG is 1.
 *
 * No change is lost when a receive is raced: as a case of a select it sees nothing unless it wins.
 * If its coroutine is destroyed before it resumes, the value is still new to the receiver.
 *
 * Sending is wait-free while nothing waits, and otherwise lock-free and linear in the waiters that
 * it wakes. Reading is lock-free: it retries only if three values were sent in the meantime. A
 * suspended sender blocks no other thread, except other senders.
 *
 * Nothing allocates. Values are copied as by memcpy: any type in C; in C++ trivially copyable ones.
 * In the macros `watch_` and `receiver_` may be evaluated more than once, the other arguments once.
 * Why it is correct: docs/internals/watch.md. The numbers below refer to that.
 */
#ifndef BIDE_WATCH_H
#define BIDE_WATCH_H

#include "bide/detail/shared_words.h"
#include "bide/errors.h"
#include "bide/sequence_barrier.h"
#include "bide/stop.h"

BIDE_EXTERN_C_BEGIN

/*
 * A power of two. More of them make reading begin again less often; to the model checker more are
 * like two.
 */
#if BIDE_CHECK
enum { BIDE_WATCH_BUFFERS_ = 2 };
#else
enum { BIDE_WATCH_BUFFERS_ = 4 };
#endif

/* The words of all buffers, for values of `type`. */
#define BIDE_WATCH_WORDS_(type) (BIDE_WATCH_BUFFERS_ * BIDE_SHARED_WORDS_(sizeof(type)))

typedef struct bide_watch_ {
    bide_sequence_barrier barrier;
    bide_shared_word_ *words; /* constant */
    /* the sender's; where there are several, under the lock */
    uint8_t sending; /* one of those below; SHARED is constant */
    bool closed;     /* SHARED: whether it was closed */
    bide_atomic(uint32_t) lock;
    bide_atomic(uintptr_t) changer; /* in debug builds: the thread that runs such a function */
} bide_watch_;

enum {
    BIDE_WATCH_OPEN_,     /* one sender */
    BIDE_WATCH_CLOSED_,   /* one sender, which has closed it */
    BIDE_WATCH_CHANGING_, /* one sender, which runs a function that changes the value */
    BIDE_WATCH_SHARED_    /* several senders */
};

/*
 * A watch for values of `type`, aligned to BIDE_CACHE_LINE. Each use is a type of its own: give it
 * a name by a typedef, or declare one where it is used. It has BIDE_WATCH_BUFFERS_ copies of the
 * value inside.
 */
#define bide_watch(type)                                                     \
    struct {                                                                 \
        bide_watch_ watch;                                                   \
        BIDE_ALIGNAS(BIDE_CACHE_LINE)                                        \
        bide_shared_word_ words[BIDE_WATCH_WORDS_(type)]; /* the sender's */ \
        BIDE_SHARED_TYPE_(type) * typed_;                                    \
    }

typedef struct bide_watch_receiver_ {
    bide_watch_ *watch;
    size_t seen;         /* the version */
    const void *waiting; /* in debug builds: itself while it waits, and a copy of it does not */
} bide_watch_receiver_;

/*
 * A receiver for values of `type`: what it has seen of a watch. Nothing refers to it but its own
 * wait.
 */
#define bide_watch_receiver(type)         \
    struct {                              \
        bide_watch_receiver_ receiver;    \
        BIDE_SHARED_TYPE_(type) * typed_; \
    }

/* One wait. Its memory, and that of the value's place, is the caller's until the wait has ended. */
typedef struct bide_watch_waiter {
    bide_sequence_waiter wait; /* the head */
    bide_watch_receiver_ *receiver;
    void *to;
    size_t size;
} bide_watch_waiter;

/* `pointer`, which must be one to a value of a watch, or of a receiver; and its size. */
#define BIDE_WATCH_VALUE_(typed, pointer) (1 ? (pointer) : &(typed)->typed_->value)
#define BIDE_WATCH_SIZE_(typed)           (sizeof(typed)->typed_->value)

BIDE_INLINE bide_shared_word_ *bide_watch_buffer_(bide_watch_ *watch, size_t version, size_t size)
{
    return watch->words + version % BIDE_WATCH_BUFFERS_ * BIDE_SHARED_WORDS_(size);
}

/*
 * Makes a watch that has the value at `from`. The memory may be freed when the sender's last call
 * has returned and nobody reads, receives or waits.
 * Threads: before it is shared.
 */
#define bide_watch_init(watch_, from)                                                        \
    bide_watch_init_(&(watch_)->watch, (watch_)->words, BIDE_WATCH_VALUE_((watch_), (from)), \
                     BIDE_WATCH_SIZE_(watch_), BIDE_WATCH_OPEN_)

/*
 * The same for several senders: any thread sends and closes, and any changes the value by
 * bide_watch_send_if_modified. Senders take turns under a lock, which one holds while it copies a
 * value or runs such a function. So a sender that is suspended in the middle of a send blocks other
 * senders, but no reader or receiver.
 * Threads: before it is shared.
 */
#define bide_watch_init_shared(watch_, from)                                                 \
    bide_watch_init_(&(watch_)->watch, (watch_)->words, BIDE_WATCH_VALUE_((watch_), (from)), \
                     BIDE_WATCH_SIZE_(watch_), BIDE_WATCH_SHARED_)

BIDE_INLINE void bide_watch_init_(bide_watch_ *watch, bide_shared_word_ *words, const void *from,
                                  size_t size, uint8_t sending)
{
    bide_sequence_barrier_init(&watch->barrier, 0);
    watch->words = words;
    watch->sending = sending;
    watch->closed = false;
    bide_atomic_init(&watch->lock, 0);
    bide_atomic_init(&watch->changer, (uintptr_t)0);
    bide_shared_words_init_(words, BIDE_WATCH_BUFFERS_ * BIDE_SHARED_WORDS_(size));
    bide_shared_words_store_(bide_watch_buffer_(watch, 0, size), from, size);
}

/* ---- The sender ---- */

/*
 * A sender begins its turn, which fails if the watch is closed; publishes, and ends its turn;
 * closes. For several senders, for one that has closed it, and for a change in place. In
 * src/queue/watch.c: 7.
 */
int bide_watch_begin_send_(bide_watch_ *watch);
void bide_watch_finish_send_(bide_watch_ *watch, size_t version);
void bide_watch_close_shared_(bide_watch_ *watch);

/*
 * Makes a copy of the value at `from` the latest, and wakes the waiters, each on its own scheduler,
 * but not on the caller's stack while a coroutine is running on it.
 * Threads: the sender's; any if it was made by bide_watch_init_shared. Errors: -EPIPE (closed;
 * nothing is done). Suspends: never. Progress: wait-free while nothing waits, otherwise lock-free
 * and linear in the waiters; if there are several senders it blocks while another one copies a
 * value.
 */
#define bide_watch_send(watch_, from)                                       \
    bide_watch_send_(&(watch_)->watch, BIDE_WATCH_VALUE_((watch_), (from)), \
                     BIDE_WATCH_SIZE_(watch_))

/* Writes the next value; returns its version, which is to be published. */
BIDE_INLINE size_t bide_watch_write_(bide_watch_ *watch, const void *from, size_t size)
{
    size_t version = bide_atomic_load(&watch->barrier.published, relaxed) + 1; /* 1 */
    bide_atomic_fence(release); /* 3, partner is the fence of _copy_ */
    bide_shared_words_store_(bide_watch_buffer_(watch, version, size), from, size);
    return version;
}

/* `from` goes to no function that is not inlined, so that a value may stay in registers. */
BIDE_INLINE int bide_watch_send_(bide_watch_ *watch, const void *from, size_t size)
{
    if (BIDE_UNLIKELY(watch->sending != BIDE_WATCH_OPEN_)) {
        if (bide_watch_begin_send_(watch) != 0)
            return -EPIPE;
        bide_watch_finish_send_(watch, bide_watch_write_(watch, from, size));
        return 0;
    }
    size_t version = bide_watch_write_(watch, from, size);
    bide_sequence_barrier_publish(&watch->barrier, version); /* 2 */
    return 0;
}

/*
 * Changes the value in place, in its turn among all sends: copies the latest to `value`, which is
 * the caller's, calls function(value, argument), and sends what is at `value` if that returns true.
 * So no change by any of several senders is lost. Returns 1 if it has sent, and 0 if the function
 * returned false: then nothing is sent, no waiter is woken, and the watch's value stays. The
 * function runs on the caller's thread and may read the watch. Sending to it or closing it there is
 * misuse, which is detected if BIDE_DEBUG is 1.
 * Threads: as bide_watch_send. Errors: -EPIPE (closed; the function is not called). Suspends:
 * never. Progress: as bide_watch_send, and that of the function.
 */
#define bide_watch_send_if_modified(watch_, value, function, argument)                   \
    bide_watch_send_if_modified_(&(watch_)->watch, BIDE_WATCH_VALUE_((watch_), (value)), \
                                 BIDE_WATCH_SIZE_(watch_), (function), (argument))

int bide_watch_send_if_modified_(bide_watch_ *watch, void *value, size_t size,
                                 bool (*function)(void *value, void *argument), void *argument);

/*
 * Closes it: the latest value can still be read, and received once by each receiver that has not
 * seen it; after that waits end with -EPIPE, now and later. Sends answer -EPIPE. More than once is
 * once.
 * Threads: the sender's; any if it was made by bide_watch_init_shared. Suspends: never. Progress:
 * wait-free, except for waking the waiters, linear in them; as a send if there are several senders.
 */
#define bide_watch_close(watch_) bide_watch_close_(&(watch_)->watch)

BIDE_INLINE void bide_watch_close_(bide_watch_ *watch)
{
    if (watch->sending != BIDE_WATCH_OPEN_) {
        bide_watch_close_shared_(watch);
        return;
    }
    watch->sending = BIDE_WATCH_CLOSED_;
    bide_sequence_barrier_close(&watch->barrier);
}

/* ---- Reading ---- */

/* Copies the latest value; returns its version. */
BIDE_INLINE size_t bide_watch_copy_(bide_watch_ *watch, void *to, size_t size)
{
    /* acquire: 2, partner is the publishing. */
    size_t version = bide_atomic_load(&watch->barrier.published, acquire);
    for (;;) {
        bide_shared_words_load_(to, bide_watch_buffer_(watch, version, size), size);
        bide_atomic_fence(acquire); /* 3, partner is the fence of _send_ */
        /* acquire: 2, partner is the publishing; for another round. */
        size_t now = bide_atomic_load(&watch->barrier.published, acquire);
        if (BIDE_LIKELY(now - version < BIDE_WATCH_BUFFERS_ - 1))
            return version;
        version = now;
    }
}

/*
 * Copies the latest value to `to`, also after the close. Writes made before it was sent are
 * visible. Always 0.
 * Threads: any. Errors: none. Suspends: never. Progress: lock-free.
 */
#define bide_watch_read(watch_, to) \
    bide_watch_read_(&(watch_)->watch, BIDE_WATCH_VALUE_((watch_), (to)), BIDE_WATCH_SIZE_(watch_))

BIDE_INLINE int bide_watch_read_(bide_watch_ *watch, void *to, size_t size)
{
    (void)bide_watch_copy_(watch, to, size);
    return 0;
}

/* ---- Receiving ---- */

/*
 * Makes a receiver of a watch for values of the same type. It has seen nothing, so the latest value
 * is new to it. The memory may be freed when it does not wait.
 * Threads: any. Progress: wait-free.
 */
#define bide_watch_receiver_init(receiver_, watch_)                               \
    ((void)sizeof(*(1 ? &(receiver_)->typed_->value : &(watch_)->typed_->value)), \
     bide_watch_receiver_init_(&(receiver_)->receiver, &(watch_)->watch))

BIDE_INLINE void bide_watch_receiver_init_(bide_watch_receiver_ *receiver, bide_watch_ *watch)
{
    receiver->watch = watch;
    receiver->waiting = NULL;
    /* relaxed: it is another number than any that is looked at next. */
    receiver->seen = bide_atomic_load(&watch->barrier.published, relaxed) - 1;
}

/*
 * Takes the latest value as seen: only what is sent later is new.
 * Threads: the receiver's. Progress: wait-free.
 */
#define bide_watch_mark_seen(receiver_) bide_watch_mark_seen_(&(receiver_)->receiver)

BIDE_INLINE void bide_watch_mark_seen_(bide_watch_receiver_ *receiver)
{
    /* relaxed: nothing is read that it leads to. */
    receiver->seen = bide_atomic_load(&receiver->watch->barrier.published, relaxed);
}

/* Whether there is a version that was not seen. */
BIDE_INLINE bool bide_watch_is_new_(const bide_watch_receiver_ *receiver)
{
    /* relaxed: reading the value looks again. */
    return bide_atomic_load(&receiver->watch->barrier.published, relaxed) != receiver->seen;
}

/*
 * Receives at once, or not at all: not if this receiver has seen the latest value.
 * Threads: the receiver's. Errors: -EAGAIN (there is nothing new), -EPIPE (closed, and there will
 * not be). Progress: lock-free.
 */
#define bide_watch_try_recv(receiver_, to)                                             \
    bide_watch_try_recv_(&(receiver_)->receiver, BIDE_WATCH_VALUE_((receiver_), (to)), \
                         BIDE_WATCH_SIZE_(receiver_))

/* Was it closed? Then the sender's last version is seen. */
BIDE_INLINE bool bide_watch_is_closed_(const bide_watch_receiver_ *receiver)
{
    /* acquire: 4, partner is the close. */
    uintptr_t word = bide_atomic_load(&receiver->watch->barrier.waiters.list.word, acquire);
    return bide_waiter_list_word_is_shut(word);
}

BIDE_INLINE int bide_watch_try_recv_(bide_watch_receiver_ *receiver, void *to, size_t size)
{
    if (!bide_watch_is_new_(receiver)) {
        if (BIDE_LIKELY(!bide_watch_is_closed_(receiver)))
            return -EAGAIN;
        if (!bide_watch_is_new_(receiver))
            return -EPIPE;
    }
    receiver->seen = bide_watch_copy_(receiver->watch, to, size);
    return 0;
}

/* In src/queue/watch.c: 5. */
void bide_watch_begin_wait_(bide_watch_receiver_ *receiver, bide_frame *frame);
void bide_watch_cancel_(bide_awaiter *awaiter);
bool bide_watch_withdraw_(bide_awaiter *awaiter);
int bide_watch_attempt_(bide_awaiter *awaiter, bide_choice *choice);

/* The target says what was seen when the operation began: `withdraw` goes back there. */
BIDE_INLINE bool bide_watch_ready_(bide_awaiter *awaiter)
{
    bide_watch_waiter *waiter = (bide_watch_waiter *)(void *)awaiter;
    const bide_watch_receiver_ *receiver = waiter->receiver;
    waiter->wait.target = receiver->seen + 1;
    return bide_watch_is_new_(receiver) || bide_watch_is_closed_(receiver);
}

BIDE_INLINE bide_frame *bide_watch_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_watch_waiter *waiter = (bide_watch_waiter *)(void *)awaiter;
    waiter->wait.target = waiter->receiver->seen + 1;
#if BIDE_DEBUG
    bide_watch_begin_wait_(waiter->receiver, frame);
#endif
    return bide_sequence_barrier_suspend_(awaiter, frame);
}

BIDE_INLINE int bide_watch_resume_(bide_awaiter *awaiter)
{
    bide_watch_waiter *waiter = (bide_watch_waiter *)(void *)awaiter;
#if BIDE_DEBUG
    waiter->receiver->waiting = NULL;
#endif
    return bide_watch_try_recv_(waiter->receiver, waiter->to, waiter->size); /* 5 */
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_watch_recv_(bide_watch_waiter *waiter,
                                           bide_watch_receiver_ *receiver, void *to, size_t size)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_watch_ready_,
        .suspend = bide_watch_suspend_,
        .resume = bide_watch_resume_,
        .cancel = bide_watch_cancel_,
        .withdraw = bide_watch_withdraw_,
        .name = "bide_watch_recv",
        .attempt = bide_watch_attempt_,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->receiver = receiver;
    waiter->to = to;
    waiter->size = size;
    bide_awaiter *awaiter = bide_sequence_barrier_wait_until_published(
        &waiter->wait, &receiver->watch->barrier, receiver->seen + 1);
    awaiter->ops = &ops;
    return awaiter;
}

/*
 * Receives the latest value, to where `to` points, and takes it as seen; waits while this receiver
 * has seen it. Writes made before the value was sent are visible. `waiter` (a
 * bide_watch_waiter), the receiver and `to` must stay until the wait has ended.
 * Threads: the receiver's. Errors: -EPIPE (closed, and the last version was seen), -ECANCELED,
 * -ETIMEDOUT. Suspends: if there is nothing new. Cancel-safe: yes. Progress: lock-free, except for
 * the system call of a heavy fence (fence.h) if nobody has waited for some time.
 */
#define bide_watch_recv(waiter, receiver_, to) BIDE_WATCH_RECV_(waiter, receiver_, to)
#define BIDE_WATCH_RECV_(waiter, receiver_, to)                                              \
    bide_watch_recv_((waiter), &(receiver_)->receiver, BIDE_WATCH_VALUE_((receiver_), (to)), \
                     BIDE_WATCH_SIZE_(receiver_))

/*
 * The same for a plain thread, which it blocks until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: the receiver's, but not that of a loop (sync_wait.h). Errors: as bide_watch_recv;
 * -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_watch_recv_blocking(receiver_, to, deadline)                        \
    BIDE_BLOCKS_(bide_watch_recv_blocking_(&(receiver_)->receiver,               \
                                           BIDE_WATCH_VALUE_((receiver_), (to)), \
                                           BIDE_WATCH_SIZE_(receiver_), (deadline)))

BIDE_INLINE int bide_watch_recv_blocking_(bide_watch_receiver_ *receiver, void *to, size_t size,
                                          uint64_t deadline)
{
    bide_watch_waiter waiter;
    return bide_sync_wait_until(bide_watch_recv_(&waiter, receiver, to, size), deadline);
}

/* ---- Waiting for a value of some kind ---- */

/*
 * One wait for a value of which a predicate is true. Its memory, and that of the value's place, is
 * the caller's until the wait has ended.
 */
typedef struct bide_watch_predicate_waiter {
    bide_awaiter awaiter;         /* the head */
    bide_frame frame;             /* waits for changes */
    bide_sequence_waiter changed; /* of the version after `tested` */
    bide_watch_receiver_ *receiver;
    void *to;
    size_t size;
    bool (*predicate)(const void *value, void *argument);
    void *argument;
    size_t tested; /* the version that was tested last */
    size_t before; /* what the receiver had seen when the wait began */
    int status;
} bide_watch_predicate_waiter;

bool bide_watch_predicate_ready_(bide_awaiter *awaiter);
bide_frame *bide_watch_predicate_suspend_(bide_awaiter *awaiter, bide_frame *frame);
bool bide_watch_predicate_withdraw_(bide_awaiter *awaiter);
int bide_watch_predicate_attempt_(bide_awaiter *awaiter, bide_choice *choice);

BIDE_INLINE int bide_watch_predicate_resume_(bide_awaiter *awaiter)
{
    return ((bide_watch_predicate_waiter *)(void *)awaiter)->status;
}

typedef bool bide_watch_predicate_(const void *value, void *argument);

BIDE_INLINE bide_watch_predicate_ *bide_watch_predicate_given_(bide_watch_predicate_ *predicate,
                                                               const char *what,
                                                               const char *function,
                                                               const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(predicate == NULL))
        bide_misuse_(what, function, file, line);
    return predicate;
}

#if BIDE_DEBUG
#define BIDE_WATCH_PREDICATE_(predicate, name) \
    bide_watch_predicate_given_((predicate), BIDE_NULL_FUNCTION_(name))
#else
#define BIDE_WATCH_PREDICATE_(predicate, name) (predicate)
#endif

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_watch_wait_for_(bide_watch_predicate_waiter *waiter,
                                               bide_watch_receiver_ *receiver,
                                               bool (*predicate)(const void *value, void *argument),
                                               void *argument, void *to, size_t size)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_watch_predicate_ready_,
        .suspend = bide_watch_predicate_suspend_,
        .resume = bide_watch_predicate_resume_,
        .cancel = bide_cancel_inside_,
        .withdraw = bide_watch_predicate_withdraw_,
        .name = "bide_watch_wait_for",
        .attempt = bide_watch_predicate_attempt_,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->awaiter.ops = &ops;
    waiter->receiver = receiver;
    waiter->to = to;
    waiter->size = size;
    waiter->predicate = predicate;
    waiter->argument = argument;
    waiter->before = receiver->seen;
    /* relaxed: the version after it is there, and is tested. */
    waiter->tested = bide_atomic_load(&receiver->watch->barrier.published, relaxed) - 1;
    return &waiter->awaiter;
}

/*
 * Waits until predicate(value, argument) is true of the latest value, which is then at `to`, and
 * seen by the receiver. A value that the receiver has seen already is tested too, so the wait may
 * end at once. Each version that is the latest when the coroutine looks is tested once; versions in
 * between are missed. The predicate runs on the coroutine's thread, with a copy at `to`, and must
 * not wait. Unless the wait ends with 0, what the receiver has seen does not change; what is at
 * `to` may. `waiter` (a bide_watch_predicate_waiter), the receiver and `to` must stay until the
 * wait has ended. NULL for the predicate is misuse, which is detected if BIDE_DEBUG is 1.
 * Threads: the receiver's. Errors: -EPIPE (closed, and not true of the last version), -ECANCELED,
 * -ETIMEDOUT. Suspends: if the predicate is not true of the latest value. Cancel-safe: yes.
 * Progress: as bide_watch_recv, and that of the predicate.
 */
#define bide_watch_wait_for(waiter, receiver_, predicate, argument, to) \
    BIDE_WATCH_WAIT_FOR_(waiter, receiver_, predicate, argument, to)
#define BIDE_WATCH_WAIT_FOR_(waiter, receiver_, predicate, argument, to)                      \
    bide_watch_wait_for_((waiter), &(receiver_)->receiver,                                    \
                         BIDE_WATCH_PREDICATE_(predicate, "bide_watch_wait_for"), (argument), \
                         BIDE_WATCH_VALUE_((receiver_), (to)), BIDE_WATCH_SIZE_(receiver_))

/*
 * The same at once, or not at all.
 * Threads: the receiver's. Errors: -EAGAIN (not true of the latest value), -EPIPE (and it is
 * closed). Progress: lock-free, and that of the predicate.
 */
#define bide_watch_try_wait_for(receiver_, predicate, argument, to)                          \
    bide_watch_try_wait_for_(                                                                \
        &(receiver_)->receiver, BIDE_WATCH_PREDICATE_(predicate, "bide_watch_try_wait_for"), \
        (argument), BIDE_WATCH_VALUE_((receiver_), (to)), BIDE_WATCH_SIZE_(receiver_))

int bide_watch_try_wait_for_(bide_watch_receiver_ *receiver,
                             bool (*predicate)(const void *value, void *argument), void *argument,
                             void *to, size_t size);

/*
 * The same for a plain thread, which it blocks until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: the receiver's. Errors: as bide_watch_wait_for; -ETIMEDOUT (the deadline has come).
 * Progress: blocks.
 */
#define bide_watch_wait_for_blocking(receiver_, predicate, argument, to, deadline)                \
    BIDE_BLOCKS_(bide_watch_wait_for_blocking_(                                                   \
        &(receiver_)->receiver, BIDE_WATCH_PREDICATE_(predicate, "bide_watch_wait_for_blocking"), \
        (argument), BIDE_WATCH_VALUE_((receiver_), (to)), BIDE_WATCH_SIZE_(receiver_),            \
        (deadline)))

BIDE_INLINE int bide_watch_wait_for_blocking_(bide_watch_receiver_ *receiver,
                                              bool (*predicate)(const void *value, void *argument),
                                              void *argument, void *to, size_t size,
                                              uint64_t deadline)
{
    bide_watch_predicate_waiter waiter;
    return bide_sync_wait_until(
        bide_watch_wait_for_(&waiter, receiver, predicate, argument, to, size), deadline);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is under
 * way.
 * Threads: any. Progress: wait-free.
 */
#define bide_watch_destroy(watch_)                                                      \
    BIDE_END_OF_LIFE_(bide_sequence_barrier_destroy_checked_, &(watch_)->watch.barrier, \
                      "a watch is destroyed while it is waited for", #watch_)

BIDE_EXTERN_C_END

#endif
