/*
 * A watch's receive where another operation is chosen, or its coroutine is destroyed: what it has seen
 * is again what it had seen before. On the receiver's thread; only a canceller is on any. Why it is
 * correct: docs/internals/watch.md, 5.
 */
#include "bide/watch.h"

#include "../coroutine/internal.h"

#include "bide/extend/choice.h"

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
