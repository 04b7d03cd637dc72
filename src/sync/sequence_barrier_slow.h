/* For one type of sequence. The model, the argument and the letters are in sequence_barrier.h. */

#define BARRIER_     BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define WAITER_      BIDE_CONCAT2(bide_sequence_waiter, BIDE_SEQUENCE_BITS)
#define FOLLOWER_    BIDE_CONCAT2(bide_sequence_follower, BIDE_SEQUENCE_BITS)
#define COUNTER_     BIDE_COUNTER_OF_(BIDE_SEQUENCE_BITS)
#define F_(name)     BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define TRAIT_(name) BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, name)

/* What a sifter judges by: argument 3. */
typedef struct F_(_sifter) {
    BARRIER_ *barrier;
    BIDE_SEQUENCE published;
} F_(_sifter);

static void F_(_look)(void *context)
{
    F_(_sifter) *sifter = context;
    sifter->published = bide_atomic_load(&sifter->barrier->published, seq_cst); /* B */
}

static BIDE_SEQUENCE F_(_target)(const bide_awaiter *awaiter)
{
    const WAITER_ *waiter = (const WAITER_ *)(const void *)awaiter;
    return waiter->follows ? F_(_followed_)((const FOLLOWER_ *)(const void *)awaiter)
                           : waiter->target;
}

static bool F_(_is_due)(const void *context, const bide_awaiter *awaiter)
{
    const F_(_sifter) *sifter = context;
    return !TRAIT_(_precedes)(sifter->published, F_(_target)(awaiter));
}

/* The nearest target: 6. */

static void F_(_forget)(void *context)
{
    ((F_(_sifter) *)context)->barrier->has_nearest = false;
}

static bool F_(_reaches)(const void *context)
{
    const F_(_sifter) *sifter = context;
    const BARRIER_ *barrier = sifter->barrier;
    return barrier->has_nearest && !TRAIT_(_precedes)(sifter->published, barrier->nearest);
}

static void F_(_keep)(void *context, const bide_awaiter *awaiter)
{
    const F_(_sifter) *sifter = context;
    BARRIER_ *barrier = sifter->barrier;
    BIDE_SEQUENCE target = F_(_target)(awaiter);
    if (F_(_reaches)(context)) /* nothing is nearer than what is reached */
        return;
    /* Neither is reached, or only the target is: then it lies behind, so it counts as the nearest. */
    if (!barrier->has_nearest || !TRAIT_(_precedes)(sifter->published, target) ||
        (BIDE_SEQUENCE)(target - sifter->published) <
            (BIDE_SEQUENCE)(barrier->nearest - sifter->published))
        barrier->nearest = target;
    barrier->has_nearest = true;
}

static void F_(_end)(void *context, bide_awaiter *awaiter)
{
    ((WAITER_ *)(void *)awaiter)->published = ((F_(_sifter) *)context)->published;
}

static const bide_sift_rules F_(_rules) = {.look = F_(_look),
                                           .is_due = F_(_is_due),
                                           .end = F_(_end),
                                           .forget = F_(_forget),
                                           .keep = F_(_keep),
                                           .reaches = F_(_reaches),
                                           .looks_again = true};

void F_(_wake_)(BARRIER_ *barrier, uintptr_t word)
{
    F_(_sifter) sifter = {barrier, 0};
    bide_waiter_list_announce(&barrier->waiters, word, &F_(_rules), &sifter);
}

bide_frame *F_(_suspend_)(bide_awaiter *awaiter, bide_frame *frame)
{
    WAITER_ *own = (WAITER_ *)(void *)awaiter;
    F_(_sifter) sifter = {own->barrier, 0};
    return bide_waiter_list_suspend(&sifter.barrier->waiters, &own->waiting, frame, &F_(_rules),
                                    &sifter);
}

void F_(_cancel_)(bide_awaiter *awaiter)
{
    WAITER_ *waiter = (WAITER_ *)(void *)awaiter;
    F_(_sifter) sifter = {waiter->barrier, 0};
    bide_waiter_list_sift_canceled(&sifter.barrier->waiters.list, &waiter->waiting.listed,
                                   &F_(_rules), &sifter);
}

bool F_(_withdraw_)(bide_awaiter *awaiter)
{
    WAITER_ *waiter = (WAITER_ *)(void *)awaiter;
    F_(_sifter) sifter = {waiter->barrier, 0};
    return bide_waiter_list_sift_out(&sifter.barrier->waiters.list, &waiter->waiting.listed,
                                     &F_(_rules), &sifter);
}

void F_(_close)(BARRIER_ *barrier)
{
    F_(_sifter) sifter = {barrier, 0};
    bide_waiter_list_close(&barrier->waiters.list, &F_(_rules), &sifter);
}

#undef BARRIER_
#undef WAITER_
#undef FOLLOWER_
#undef COUNTER_
#undef F_
#undef TRAIT_
