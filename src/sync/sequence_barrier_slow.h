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

static bool F_(_is_due)(const void *context, const bide_awaiter *awaiter)
{
    const F_(_sifter) *sifter = context;
    const WAITER_ *waiter = (const WAITER_ *)(const void *)awaiter;
    BIDE_SEQUENCE target =
        waiter->follows ? F_(_followed_)((const FOLLOWER_ *)(const void *)awaiter) : waiter->target;
    return !TRAIT_(_precedes)(sifter->published, target);
}

static void F_(_end)(void *context, bide_awaiter *awaiter)
{
    ((WAITER_ *)(void *)awaiter)->published = ((F_(_sifter) *)context)->published;
}

static const bide_sift_rules F_(_rules) = {F_(_look), F_(_is_due), F_(_end), true};

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
