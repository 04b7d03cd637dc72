/*
 * A receive as a select runs it, in the checker: it is attempted, and it waits for that by a wait that
 * takes nothing. And one that has completed and is given back.
 */
#ifndef BIDE_TESTS_CHECK_GIVEN_BACK_H
#define BIDE_TESTS_CHECK_GIVEN_BACK_H

#include "bide/check.h"
#include "bide/sync_wait.h"
#include "bide/extend/choice.h"

/* The receive is ended by `status`, and then its coroutine is destroyed. */
static inline void give_back(bide_awaiter *awaiter)
{
    bide_check_assert(!awaiter->ops->withdraw(awaiter));
}

/*
 * One round of a select: returns what the attempt ended with, 0 at last. -EAGAIN: another case has won
 * after the wait; -ECANCELED: the wait was cancelled. Without a
 * context it cannot be.
 */
static inline int select_by_hand(bide_awaiter *awaiter, const bide_context *context)
{
    const bide_awaiter_ops *ops = awaiter->ops;
    bide_choice choice;
    bide_choice_init(&choice);
    choice.number = 1;
    int status = ops->attempt(awaiter, &choice);
    if (status != -EAGAIN)
        return status;
    bide_awaiter *wait = choice.wait;
    const bide_awaiter_ops *wait_ops = wait->ops;
    if (bide_awaiter_had(wait))
        status = bide_awaiter_resume(wait, wait_ops);
    else
        status = context != NULL ? bide_sync_wait_in(context, wait) : bide_check_await(wait);
    if (status == -ECANCELED)
        return status;
    bool another_wins = bide_check_choose(2) == 1;
    int attempted = another_wins ? -EAGAIN : ops->attempt(awaiter, &choice);
    if (status == 0)
        bide_check_assert(!wait_ops->withdraw(awaiter)); /* in each of these cases */
    if (!another_wins)
        bide_check_assert(attempted != -EAGAIN);
    return attempted;
}

#endif
