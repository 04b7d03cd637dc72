/*
 * A watch: the sends of several senders, and changes of its value, from any thread; a receive where
 * another operation is chosen, or its coroutine is destroyed: what was seen is then what it was
 * before; and waits for a value of some kind. The latter two are on the receiver's thread; only a
 * canceller is on any. Why it is correct: docs/internals/watch.md, 5, 7 and 8.
 */
#include "bide/watch.h"

#include "../coroutine/internal.h"
#include "../coroutine/lock.h"

#include "bide/detail/this_thread.h"
#include "bide/handle.h"
#include "bide/extend/choice.h"

/* ---- Sending, and changing the value: 7 ---- */

static void watch_misused(void)
{
    bide_platform.misuse("a function that changes the value of a watch sends to it or closes it",
                         "bide_watch_send_if_modified", __FILE__, __LINE__);
}

int bide_watch_begin_send_(bide_watch_ *watch)
{
    if (watch->sending != BIDE_WATCH_SHARED_) {
        if (watch->sending == BIDE_WATCH_CHANGING_)
            watch_misused();
        return watch->sending == BIDE_WATCH_OPEN_ ? 0 : -EPIPE;
    }
#if BIDE_DEBUG && !BIDE_CHECK
    /* relaxed: only this thread stores what is looked for. */
    if (bide_atomic_load(&watch->changer, relaxed) == bide_this_thread_())
        watch_misused();
#endif
    lock_take(&watch->lock);
    if (!watch->closed)
        return 0;
    lock_free(&watch->lock);
    return -EPIPE;
}

void bide_watch_finish_send_(bide_watch_ *watch, size_t version)
{
    if (watch->sending != BIDE_WATCH_SHARED_) {
        bide_sequence_barrier_publish(&watch->barrier, version); /* 2 */
        return;
    }
    /* release: 2, partner is the acquire of _copy_. N of waiter_list.md. */
    bide_atomic_store(&watch->barrier.published, version, release);
    lock_free(&watch->lock);
    /* A coroutine that runs meanwhile may send. */
    uintptr_t word = bide_biased_list_peek(&watch->barrier.waiters);
    if (BIDE_UNLIKELY(word > BIDE_LIST_SHUT))
        bide_sequence_barrier_wake_(&watch->barrier, word);
}

void bide_watch_close_shared_(bide_watch_ *watch)
{
    if (bide_watch_begin_send_(watch) == 0) { /* there are several senders */
        watch->closed = true;
        lock_free(&watch->lock);
    }
    bide_sequence_barrier_close(&watch->barrier);
}

/* Calls the function of the user's, which must not send. */
static bool watch_change(bide_watch_ *watch, void *value,
                         bool (*function)(void *value, void *argument), void *argument)
{
    if (watch->sending != BIDE_WATCH_SHARED_) {
        watch->sending = BIDE_WATCH_CHANGING_;
        bool is_modified = function(value, argument);
        watch->sending = BIDE_WATCH_OPEN_;
        return is_modified;
    }
#if BIDE_DEBUG && !BIDE_CHECK
    bide_atomic_store(&watch->changer, bide_this_thread_(), relaxed);
    bool is_modified = function(value, argument);
    bide_atomic_store(&watch->changer, (uintptr_t)0, relaxed);
    return is_modified;
#else
    return function(value, argument);
#endif
}

int bide_watch_send_if_modified_(bide_watch_ *watch, void *value, size_t size,
                                 bool (*function)(void *value, void *argument), void *argument)
{
    int status = bide_watch_begin_send_(watch);
    if (status != 0)
        return status;
    /* relaxed, and the words too: 1, nobody else writes them. */
    size_t version = bide_atomic_load(&watch->barrier.published, relaxed);
    bide_shared_words_load_(value, bide_watch_buffer_(watch, version, size), size);
    if (watch_change(watch, value, function, argument)) {
        bide_watch_finish_send_(watch, bide_watch_write_(watch, value, size));
        return 1;
    }
    if (watch->sending == BIDE_WATCH_SHARED_)
        lock_free(&watch->lock);
    return 0;
}

/* ---- A receive that is not chosen: 5 ---- */

static bide_watch_waiter *watch_waiter_of(bide_awaiter *awaiter)
{
    return (bide_watch_waiter *)(void *)awaiter;
}

void bide_watch_begin_wait_(bide_watch_receiver_ *receiver, bide_frame *frame)
{
    /* A wait that a close has ended leaves its mark. */
    if (receiver->waiting == receiver && !bide_watch_is_closed_(receiver))
        bide_misused_by_("a receiver of a watch is in two waits at once", frame, NULL);
    receiver->waiting = receiver;
}

void bide_watch_cancel_(bide_awaiter *awaiter)
{
    watch_waiter_of(awaiter)->receiver->waiting = NULL; /* it stays: the wait has not ended */
    bide_sequence_barrier_cancel_(awaiter);
}

bool bide_watch_withdraw_(bide_awaiter *awaiter)
{
    bide_watch_waiter *waiter = watch_waiter_of(awaiter);
    waiter->receiver->waiting = NULL;
    if (bide_sequence_barrier_withdraw_(awaiter))
        return true;
    waiter->receiver->seen = waiter->wait.target - 1;
    return false;
}

/* ---- A wait that takes nothing: of a select, which attempts the receive ---- */

static int watch_wait_resume(bide_awaiter *awaiter)
{
    watch_waiter_of(awaiter)->receiver->waiting = NULL;
    return 0;
}

/* Also called if the attempt after it has succeeded. */
static bool watch_wait_withdraw(bide_awaiter *awaiter)
{
    watch_waiter_of(awaiter)->receiver->waiting = NULL;
    return bide_sequence_barrier_withdraw_(awaiter);
}

int bide_watch_attempt_(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_awaiter_ops wait = {
        .ready = bide_watch_ready_,
        .suspend = bide_watch_suspend_,
        .resume = watch_wait_resume,
        .cancel = bide_watch_cancel_,
        .withdraw = watch_wait_withdraw,
        .name = "bide_watch_recv",
        .undo = BIDE_UNDO_WITHDRAW,
    };
    bide_watch_waiter *waiter = watch_waiter_of(awaiter);
    waiter->wait.target = waiter->receiver->seen + 1;
    int status = bide_watch_try_recv_(waiter->receiver, waiter->to, waiter->size);
    if (status == -EAGAIN) {
        awaiter->ops = &wait;
        choice->wait = awaiter;
    }
    return status;
}

/* ---- Waiting for a value of some kind: a coroutine that waits for changes, and tests: 8 ---- */

static bide_watch_predicate_waiter *watch_predicate_of(bide_awaiter *awaiter)
{
    return (bide_watch_predicate_waiter *)(void *)awaiter;
}

/* Tests the latest value. -EAGAIN: not true of it. */
static int watch_test(bide_watch_predicate_waiter *waiter)
{
    bide_watch_receiver_ *receiver = waiter->receiver;
    for (;;) {
        waiter->tested = bide_watch_copy_(receiver->watch, waiter->to, waiter->size);
        if (waiter->predicate(waiter->to, waiter->argument)) {
            receiver->seen = waiter->tested;
            return 0;
        }
        if (BIDE_LIKELY(!bide_watch_is_closed_(receiver)))
            return -EAGAIN;
        /* relaxed: 4, the close was acquired. */
        if (bide_atomic_load(&receiver->watch->barrier.published, relaxed) == waiter->tested)
            return -EPIPE;
    }
}

static bide_awaiter *watch_change_wait(bide_watch_predicate_waiter *waiter)
{
    return bide_sequence_barrier_wait_until_published(
        &waiter->changed, &waiter->receiver->watch->barrier, waiter->tested + 1);
}

static bide_next watch_predicate_step(bide_frame *frame, unsigned depth);

static const bide_coroutine_code watch_predicate_code = {
    watch_predicate_step, "bide_watch_wait_for", __FILE__, NULL, NULL};
static const bide_point watch_predicate_await =
    BIDE_POINT(&watch_predicate_code, NULL, 0, BIDE_AT_AWAIT);

static bide_frame *watch_await_change(bide_watch_predicate_waiter *waiter)
{
    waiter->frame.awaiter.ops = &watch_predicate_await.ops;
    return bide_frame_await(&waiter->frame, watch_change_wait(waiter));
}

static bide_next watch_predicate_step(bide_frame *frame, unsigned depth)
{
    bide_watch_predicate_waiter *waiter =
        bide_container_of(frame, bide_watch_predicate_waiter, frame);
    bide_awaiter *changed = &waiter->changed.waiting.listed.awaiter;
    (void)depth;
    int status = bide_awaiter_resume(changed, changed->ops);
    if (status == 0)
        status = watch_test(waiter);
    if (status == -EAGAIN)
        return bide_next_frame(watch_await_change(waiter));
    waiter->status = status;
    waiter->receiver->waiting = NULL;
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(frame->awaiter.frame);
}

bool bide_watch_predicate_ready_(bide_awaiter *awaiter)
{
    bide_watch_predicate_waiter *waiter = watch_predicate_of(awaiter);
    waiter->before = waiter->receiver->seen;
    waiter->status = watch_test(waiter);
    return waiter->status != -EAGAIN;
}

bide_frame *bide_watch_predicate_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_watch_predicate_waiter *waiter = watch_predicate_of(awaiter);
    bide_frame *own = &waiter->frame;
#if BIDE_DEBUG
    bide_watch_begin_wait_(waiter->receiver, frame);
#endif
    own->awaiter.frame = frame;
    own->context = frame->context;
    bide_frame *next = watch_await_change(waiter);
    return next == own ? watch_predicate_step(own, 0).frame : next;
}

bool bide_watch_predicate_withdraw_(bide_awaiter *awaiter)
{
    bide_watch_predicate_waiter *waiter = watch_predicate_of(awaiter);
    bool is_waiting = bide_awaiter_suspended(awaiter) && !bide_done(&waiter->frame);
    waiter->receiver->waiting = NULL;
    if (is_waiting)
        bide_destroy(&waiter->frame);
    else
        waiter->receiver->seen = waiter->before;
    return is_waiting;
}

/* In a select: a wait for the change, which is a wait of the receiver's too. */

static bide_watch_predicate_waiter *watch_predicate_of_wait(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_watch_predicate_waiter, changed.waiting.listed.awaiter);
}

static bide_frame *watch_predicate_wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
#if BIDE_DEBUG
    bide_watch_begin_wait_(watch_predicate_of_wait(awaiter)->receiver, frame);
#endif
    return bide_sequence_barrier_suspend_(awaiter, frame);
}

static int watch_predicate_wait_resume(bide_awaiter *awaiter)
{
    watch_predicate_of_wait(awaiter)->receiver->waiting = NULL;
    return bide_sequence_barrier_resume_(awaiter);
}

static void watch_predicate_wait_cancel(bide_awaiter *awaiter)
{
    watch_predicate_of_wait(awaiter)->receiver->waiting = NULL; /* as bide_watch_cancel_ */
    bide_sequence_barrier_cancel_(awaiter);
}

static bool watch_predicate_wait_withdraw(bide_awaiter *awaiter)
{
    watch_predicate_of_wait(awaiter)->receiver->waiting = NULL;
    return bide_sequence_barrier_withdraw_(awaiter);
}

int bide_watch_predicate_attempt_(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_awaiter_ops wait = {
        .ready = bide_sequence_barrier_ready_,
        .suspend = watch_predicate_wait_suspend,
        .resume = watch_predicate_wait_resume,
        .cancel = watch_predicate_wait_cancel,
        .withdraw = watch_predicate_wait_withdraw,
        .name = "bide_watch_wait_for",
        .undo = BIDE_UNDO_WITHDRAW,
    };
    bide_watch_predicate_waiter *waiter = watch_predicate_of(awaiter);
    waiter->before = waiter->receiver->seen;
    int status = watch_test(waiter);
    if (status == -EAGAIN) {
        choice->wait = watch_change_wait(waiter);
        choice->wait->ops = &wait;
    }
    return status;
}

int bide_watch_try_wait_for_(bide_watch_receiver_ *receiver,
                             bool (*predicate)(const void *value, void *argument), void *argument,
                             void *to, size_t size)
{
    bide_watch_predicate_waiter waiter;
    bide_await_later(bide_watch_wait_for_(&waiter, receiver, predicate, argument, to, size));
    return watch_test(&waiter);
}
