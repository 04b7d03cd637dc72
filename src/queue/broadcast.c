/*
 * A broadcast: the sends of several senders, from any thread; and a receive where another operation
 * is chosen, or its coroutine is destroyed: the subscriber goes back to where it was. That is on
 * the subscriber's thread; only a canceller is on any. Why it is correct:
 * docs/internals/broadcast.md, 5 and 7.
 */
#include "bide/broadcast.h"

#include "../coroutine/internal.h"
#include "../coroutine/lock.h"

#include "bide/extend/choice.h"

/* ---- Several senders: 7 ---- */

int bide_broadcast_begin_send_(bide_broadcast_ *broadcast)
{
    if (broadcast->sending != BIDE_BROADCAST_SHARED_) /* one sender, which has closed it */
        return -EPIPE;
    lock_take(&broadcast->lock);
    if (!broadcast->closed)
        return 0;
    lock_free(&broadcast->lock);
    return -EPIPE;
}

void bide_broadcast_finish_send_(bide_broadcast_ *broadcast, size_t position)
{
    /* release: 2, partner is the acquire of _available_ and _take_. N of waiter_list.md. */
    bide_atomic_store(&broadcast->barrier.published, position, release);
    lock_free(&broadcast->lock);
    /* A coroutine that runs meanwhile may send. */
    uintptr_t word = bide_biased_list_peek(&broadcast->barrier.waiters);
    if (BIDE_UNLIKELY(word > BIDE_LIST_SHUT))
        bide_sequence_barrier_wake_(&broadcast->barrier, word);
}

void bide_broadcast_close_shared_(bide_broadcast_ *broadcast)
{
    lock_take(&broadcast->lock);
    broadcast->closed = true;
    lock_free(&broadcast->lock);
    bide_sequence_barrier_close(&broadcast->barrier);
}

/* ---- A receive that is not chosen: 5 ---- */

static bide_broadcast_waiter *broadcast_waiter_of(bide_awaiter *awaiter)
{
    return (bide_broadcast_waiter *)(void *)awaiter;
}

void bide_broadcast_begin_wait_(bide_broadcast_cursor_ *cursor, bide_frame *frame)
{
    /* A wait that a close has ended leaves its mark. */
    if (cursor->waiting == cursor && !bide_broadcast_is_closed_(cursor))
        bide_misused_by_("a subscriber of a broadcast is in two waits at once", frame, NULL);
    cursor->waiting = cursor;
}

void bide_broadcast_cancel_(bide_awaiter *awaiter)
{
    broadcast_waiter_of(awaiter)->cursor->waiting = NULL; /* it stays: the wait has not ended */
    bide_sequence_barrier_cancel_(awaiter);
}

bool bide_broadcast_withdraw_(bide_awaiter *awaiter)
{
    bide_broadcast_waiter *waiter = broadcast_waiter_of(awaiter);
    bide_broadcast_cursor_ *cursor = waiter->cursor;
    cursor->waiting = NULL;
    if (bide_sequence_barrier_withdraw_(awaiter))
        return true;
    size_t places = cursor->broadcast->capacity + 1;
    size_t back = (cursor->position - waiter->wait.target) % places;
    cursor->position = waiter->wait.target;
    cursor->place = cursor->place >= back ? cursor->place - back : cursor->place + places - back;
    return false;
}

/* ---- A wait that takes nothing: of a select, which attempts the receive ---- */

static int broadcast_wait_resume(bide_awaiter *awaiter)
{
    broadcast_waiter_of(awaiter)->cursor->waiting = NULL;
    return 0;
}

/* Also called if the attempt after it has succeeded. */
static bool broadcast_wait_withdraw(bide_awaiter *awaiter)
{
    broadcast_waiter_of(awaiter)->cursor->waiting = NULL;
    return bide_sequence_barrier_withdraw_(awaiter);
}

int bide_broadcast_attempt_(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_awaiter_ops wait = {
        .ready = bide_broadcast_ready_,
        .suspend = bide_broadcast_suspend_,
        .resume = broadcast_wait_resume,
        .cancel = bide_broadcast_cancel_,
        .withdraw = broadcast_wait_withdraw,
        .name = "bide_broadcast_recv",
        .undo = BIDE_UNDO_WITHDRAW,
    };
    bide_broadcast_waiter *waiter = broadcast_waiter_of(awaiter);
    waiter->wait.target = waiter->cursor->position;
    int status = bide_broadcast_try_recv_(waiter->cursor, waiter->missed, waiter->to, waiter->size);
    if (status == -EAGAIN) {
        awaiter->ops = &wait;
        choice->wait = awaiter;
    }
    return status;
}
