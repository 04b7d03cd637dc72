/*
 * The slow halves of the sequence barrier. Numbers and letters are those of sequence_barrier.h.
 * sequence8.c and its like read this once more, for their widths.
 */
#include "bide/sequence_barrier.h"

/* What a sifter judges by: argument 3. */
typedef struct barrier_sifter {
    bide_sequence_barrier *barrier;
    bide_sequence published;
} barrier_sifter;

static void barrier_look(void *context)
{
    barrier_sifter *sifter = context;
    sifter->published = bide_atomic_load(&sifter->barrier->published, seq_cst); /* B */
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
    const barrier_sifter *sifter = context;
    return !bide_sequence_precedes(sifter->published, barrier_target(awaiter));
}

/* The nearest target: 6. */

static void barrier_forget(void *context)
{
    ((barrier_sifter *)context)->barrier->has_nearest = false;
}

static bool barrier_reaches(const void *context)
{
    const barrier_sifter *sifter = context;
    const bide_sequence_barrier *barrier = sifter->barrier;
    return barrier->has_nearest && !bide_sequence_precedes(sifter->published, barrier->nearest);
}

static void barrier_keep(void *context, const bide_awaiter *awaiter)
{
    const barrier_sifter *sifter = context;
    bide_sequence_barrier *barrier = sifter->barrier;
    bide_sequence target = barrier_target(awaiter);
    if (barrier_reaches(context)) /* nothing is nearer than what is reached */
        return;
    /* Neither is reached, or only the target is: then it lies behind: it is the nearest. */
    if (!barrier->has_nearest || !bide_sequence_precedes(sifter->published, target) ||
        (bide_sequence)(target - sifter->published) <
            (bide_sequence)(barrier->nearest - sifter->published))
        barrier->nearest = target;
    barrier->has_nearest = true;
}

static void barrier_end(void *context, bide_awaiter *awaiter)
{
    ((bide_sequence_waiter *)(void *)awaiter)->published = ((barrier_sifter *)context)->published;
}

static const bide_sweep_ops barrier_rules = {.look = barrier_look,
                                              .is_due = barrier_is_due,
                                              .end = barrier_end,
                                              .forget = barrier_forget,
                                              .keep = barrier_keep,
                                              .reaches = barrier_reaches,
                                              .looks_again = true};

void bide_sequence_barrier_wake_(bide_sequence_barrier *barrier, uintptr_t word)
{
    barrier_sifter sifter = {barrier, 0};
    bide_waiter_list_announce(&barrier->waiters, word, &barrier_rules, &sifter);
}

bide_frame *bide_sequence_barrier_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_sequence_waiter *own = (bide_sequence_waiter *)(void *)awaiter;
    barrier_sifter sifter = {own->barrier, 0};
    return bide_waiter_list_suspend(&sifter.barrier->waiters, &own->waiting, frame, &barrier_rules,
                                    &sifter);
}

void bide_sequence_barrier_cancel_(bide_awaiter *awaiter)
{
    bide_sequence_waiter *waiter = (bide_sequence_waiter *)(void *)awaiter;
    barrier_sifter sifter = {waiter->barrier, 0};
    bide_waiter_list_sweep_cancelled(&sifter.barrier->waiters.list, &waiter->waiting.listed,
                                    &barrier_rules, &sifter);
}

bool bide_sequence_barrier_withdraw_(bide_awaiter *awaiter)
{
    bide_sequence_waiter *waiter = (bide_sequence_waiter *)(void *)awaiter;
    barrier_sifter sifter = {waiter->barrier, 0};
    return bide_waiter_list_sweep(&sifter.barrier->waiters.list, &waiter->waiting.listed,
                                     &barrier_rules, &sifter);
}

void bide_sequence_barrier_close(bide_sequence_barrier *barrier)
{
    barrier_sifter sifter = {barrier, 0};
    bide_waiter_list_close(&barrier->waiters.list, &barrier_rules, &sifter);
}
