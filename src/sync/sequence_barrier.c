/*
 * The slow halves of the sequence barrier: the rules by which a sweep of its list judges waiters,
 * waiting, and closing. Any thread may wait and close; one publisher at a time. Numbers and letters
 * are those of docs/internals/sequence_barrier.md. sequence8.c and its like include this file again,
 * for their widths.
 */
#include "bide/sequence_barrier.h"

/* The value by which a sweep judges: 3. */
typedef struct barrier_sweep {
    bide_sequence_barrier *barrier;
    bide_sequence published;
} barrier_sweep;

static void barrier_look(void *context)
{
    barrier_sweep *sweep = context;
    sweep->published = bide_atomic_load(&sweep->barrier->published, seq_cst); /* B */
}

static bide_sequence barrier_target(const bide_awaiter *awaiter)
{
    const bide_sequence_waiter *waiter = (const bide_sequence_waiter *)(const void *)awaiter;
    return waiter->follows ? bide_sequence_barrier_followed_(
                                 (const bide_sequence_follower *)(const void *)awaiter)
                           : waiter->target;
}

static bool barrier_is_due(const void *context, const bide_awaiter *awaiter)
{
    const barrier_sweep *sweep = context;
    return !bide_sequence_precedes(sweep->published, barrier_target(awaiter));
}

/* The nearest target: 6. */

static void barrier_discard(void *context)
{
    ((barrier_sweep *)context)->barrier->has_nearest = false;
}

static bool barrier_reaches(const void *context)
{
    const barrier_sweep *sweep = context;
    const bide_sequence_barrier *barrier = sweep->barrier;
    return barrier->has_nearest && !bide_sequence_precedes(sweep->published, barrier->nearest);
}

static void barrier_keep(void *context, const bide_awaiter *awaiter)
{
    const barrier_sweep *sweep = context;
    bide_sequence_barrier *barrier = sweep->barrier;
    bide_sequence target = barrier_target(awaiter);
    if (barrier_reaches(context)) /* no target is nearer than one that is reached */
        return;
    /* Neither is reached, or only the target is: then it is behind, and the nearest. */
    if (!barrier->has_nearest || !bide_sequence_precedes(sweep->published, target) ||
        (bide_sequence)(target - sweep->published) <
            (bide_sequence)(barrier->nearest - sweep->published))
        barrier->nearest = target;
    barrier->has_nearest = true;
}

static void barrier_end(void *context, bide_awaiter *awaiter)
{
    ((bide_sequence_waiter *)(void *)awaiter)->published = ((barrier_sweep *)context)->published;
}

static const bide_sweep_ops barrier_rules = {.look = barrier_look,
                                             .is_due = barrier_is_due,
                                             .end = barrier_end,
                                             .discard = barrier_discard,
                                             .keep = barrier_keep,
                                             .reaches = barrier_reaches,
                                             .looks_again = true};

void bide_sequence_barrier_wake_(bide_sequence_barrier *barrier, uintptr_t word)
{
    barrier_sweep sweep = {barrier, 0};
    bide_waiter_list_announce(&barrier->waiters, word, &barrier_rules, &sweep);
}

bide_frame *bide_sequence_barrier_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_sequence_waiter *own = (bide_sequence_waiter *)(void *)awaiter;
    barrier_sweep sweep = {own->barrier, 0};
    return bide_waiter_list_suspend(&sweep.barrier->waiters, &own->waiting, frame, &barrier_rules,
                                    &sweep);
}

void bide_sequence_barrier_cancel_(bide_awaiter *awaiter)
{
    bide_sequence_waiter *waiter = (bide_sequence_waiter *)(void *)awaiter;
    barrier_sweep sweep = {waiter->barrier, 0};
    bide_waiter_list_sweep_cancelled(&sweep.barrier->waiters.list, &waiter->waiting.listed,
                                     &barrier_rules, &sweep);
}

bool bide_sequence_barrier_withdraw_(bide_awaiter *awaiter)
{
    bide_sequence_waiter *waiter = (bide_sequence_waiter *)(void *)awaiter;
    barrier_sweep sweep = {waiter->barrier, 0};
    return bide_waiter_list_sweep(&sweep.barrier->waiters.list, &waiter->waiting.listed,
                                  &barrier_rules, &sweep);
}

void bide_sequence_barrier_close(bide_sequence_barrier *barrier)
{
    barrier_sweep sweep = {barrier, 0};
    bide_waiter_list_close(&barrier->waiters.list, &barrier_rules, &sweep);
}
