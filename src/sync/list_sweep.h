/*
 * A sweep of a waiter list: one thread takes the whole chain, ends some of its waiters, and puts the
 * others back. waiter_list.c has the sweep, biased_list.c uses it too. Floor: sync.
 *
 * The thread that has set BIDE_LIST_SWEEPING_ is the sweeper. It alone holds the chain, until it has
 * put it back. The states of the list's word, the memory orders and the numbers in the comments are
 * those of docs/internals/waiter_list.md.
 */
#ifndef BIDE_SYNC_LIST_SWEEP_H
#define BIDE_SYNC_LIST_SWEEP_H

#include "bide/extend/waiter_list.h"
#include "bide/stop.h"

/* One sweep, on the stack of its sweeper. */
typedef struct bide_list_sweep {
    bide_waiter_list *list;
    const bide_sweep_ops *rules;
    void *context;
    bool makes_plain;            /* puts the chain back without links to newer waiters */
    bide_awaiter *kept;          /* the chain that is held; newest first */
    bide_awaiter_chain detached; /* waiters that were held when the list was shut; newest first */
    bide_awaiter_chain ended;    /* oldest first */
    bide_awaiter *woken;         /* had ended before they were removed: woken without a handshake */
    uintptr_t left;              /* the list's word, as it was put back */
} bide_list_sweep;

BIDE_INLINE bide_list_sweep bide_list_sweep_of_(bide_waiter_list *list, const bide_sweep_ops *rules,
                                                void *context)
{
    return (bide_list_sweep){.list = list, .rules = rules, .context = context};
}

BIDE_INLINE void bide_list_sweep_look_(const bide_list_sweep *s)
{
    if (s->rules->look != NULL)
        s->rules->look(s->context);
}

BIDE_INLINE bool bide_list_sweep_is_due_(const bide_list_sweep *s, const bide_awaiter *awaiter)
{
    return s->rules->is_due != NULL && s->rules->is_due(s->context, awaiter);
}

BIDE_INLINE void bide_list_sweep_take_result_(const bide_list_sweep *s, bide_awaiter *awaiter)
{
    if (s->rules->end != NULL)
        s->rules->end(s->context, awaiter);
}

/* Ends a waiter because the list was shut. */
BIDE_INLINE void bide_list_sweep_end_shut_(const bide_list_sweep *s, bide_awaiter *awaiter)
{
    bide_list_sweep_take_result_(s, awaiter);
    if (s->rules->is_due != NULL && !s->rules->is_due(s->context, awaiter))
        bide_awaiter_finish_closed(awaiter);
}

/* Takes over the chain of `word`, which the caller has replaced by BIDE_LIST_SWEEPING_. */
void bide_list_sweep_hold_(bide_list_sweep *s, uintptr_t word);

/*
 * Takes the waiters. Returns false if there are none, or if another thread sweeps; that thread has
 * then been asked to look again. `word` is the list's word as the caller last saw it. Lock-free.
 */
bool bide_list_sweep_begin_(bide_list_sweep *s, uintptr_t word);

/* Judges every waiter that is kept, and ends it if it is due or cancelled. */
void bide_list_sweep_partition_(bide_list_sweep *s);

/* Puts the chain back, and judges it again for as long as it is asked to. Does not touch the list
 * afterwards. */
void bide_list_sweep_finish_(bide_list_sweep *s);

/* Wakes the waiters that have ended. If they look again, a waiter whose suspend is still running
 * resumes by itself instead: 12. */
void bide_list_sweep_wake_(const bide_list_sweep *s);

#endif
