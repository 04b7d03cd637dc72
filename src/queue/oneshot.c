/*
 * A oneshot's receive where another operation is chosen, or its coroutine is destroyed: the value
 * is there for another receive. On the receiver's thread. Why it is correct: the end of oneshot.h,
 * 5.
 */
#include "bide/oneshot.h"

#include "../coroutine/internal.h"

#include "bide/extend/choice.h"

void bide_oneshot_begin_wait_(bide_oneshot_ *oneshot, const bide_frame *frame)
{
    if (bide_single_consumer_is_waiter_(bide_atomic_load(&oneshot->event.state.word, relaxed)))
        bide_misused_by_("two receive at once from a oneshot", frame, NULL);
}

bool bide_oneshot_withdraw_(bide_awaiter *awaiter)
{
    bide_oneshot_waiter *waiter = (bide_oneshot_waiter *)(void *)awaiter;
    if (bide_single_consumer_withdraw_(awaiter))
        return true;
    if (waiter->to == NULL)
        waiter->oneshot->received = false;
    return false;
}

int bide_oneshot_attempt_(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_awaiter_ops wait = {
        .ready = bide_oneshot_ready_,
        .suspend = bide_oneshot_suspend_,
        .resume = bide_single_consumer_resume_,
        .cancel = bide_single_consumer_cancel_,
        .withdraw = bide_single_consumer_withdraw_, /* also if an attempt after it succeeds */
        .name = "bide_oneshot_recv",
        .undo = BIDE_UNDO_WITHDRAW,
    };
    int status = bide_oneshot_resume_(awaiter);
    if (status == -EAGAIN) {
        awaiter->ops = &wait;
        choice->wait = awaiter;
    }
    return status;
}
