/*
 * Closing an event for one waiter, from any thread, and giving a set back. The states, the orders and their numbers: the end
 * of single_consumer_event.h.
 */
#include "bide/single_consumer_event.h"

#include "../coroutine/internal.h"

void bide_single_consumer_close_(bide_single_consumer_word_ *state)
{
    uintptr_t word = BIDE_SINGLE_NOT_SET_;
    uintptr_t closed = BIDE_SINGLE_CLOSED_;
    /* release: 2, partners are the acquires that find it closed. acquire: 3, partner is enlist's
     * release. */
    while (!bide_atomic_compare_exchange(&state->word, &word, closed, acq_rel, relaxed)) {
        if (word == BIDE_SINGLE_CLOSED_ || word == BIDE_SINGLE_SET_FOR_GOOD_)
            return;
        closed = word == BIDE_SINGLE_SET_ ? BIDE_SINGLE_SET_FOR_GOOD_ : BIDE_SINGLE_CLOSED_;
    }
    if (bide_single_consumer_is_waiter_(word)) {
        bide_awaiter *awaiter = (bide_awaiter *)word;
        bide_awaiter_finish_closed(awaiter);
        bide_wake_one(awaiter);
    }
}

/*
 * The set that was handed to the waiter, or that it has taken, is there again: also if the event was
 * closed meanwhile, because it was set before that.
 */
bool bide_single_consumer_auto_event_withdraw_(bide_awaiter *awaiter)
{
    bide_single_consumer_word_ *state = bide_single_consumer_of_(awaiter);
    uintptr_t closed = BIDE_SINGLE_CLOSED_;
    if (bide_single_consumer_withdraw_(awaiter))
        return true;
    /* relaxed: 2; all changes are read-modify-writes, so a wait that takes the set acquires what its
     * setter has released. */
    if (!bide_single_consumer_set_(state, BIDE_SINGLE_NOT_SET_))
        bide_atomic_compare_exchange(&state->word, &closed, BIDE_SINGLE_SET_FOR_GOOD_, relaxed,
                                     relaxed);
    return false;
}

void bide_single_consumer_misused_(const bide_awaiter *awaiter)
{
    bide_misused_by_("two wait at once on an event for one", awaiter->frame, NULL);
}
