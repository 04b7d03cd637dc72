/* For one type of sequence. The model, the argument and the letters are in sequence_barrier.h. */

#define BARRIER_     BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define WAITER_      BIDE_CONCAT2(bide_sequence_waiter, BIDE_SEQUENCE_BITS)
#define F_(name)     BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define TRAIT_(name) BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, name)

/* Ends those of a chain (newest first) that `published` has reached with 0, the others with -EPIPE. They go to
 * `ended`, oldest first. */
static void F_(_end_all)(bide_awaiter_chain *ended, bide_awaiter *first, BIDE_SEQUENCE published)
{
    bide_awaiter_chain these = {NULL, NULL};
    for (bide_awaiter *a = first, *next; a != NULL; a = next) {
        next = a->link;
        WAITER_ *waiter = bide_container_of(a, WAITER_, awaiter);
        waiter->published = published;
        waiter->status = TRAIT_(_precedes)(published, waiter->target) ? -EPIPE : 0;
        bide_awaiter_chain_prepend(&these, a);
    }
    if (these.first != NULL)
        bide_awaiter_chain_append(ended, these.first, these.last);
}

/*
 * Looks at those that were taken, and those that come meanwhile, and puts back who is to stay. Who was reached, was
 * asked to stop or is let go by the closing goes to `ended`, oldest first. Removes `withdrawn`; true if it was there.
 * The barrier is not touched afterwards.
 */
static bool F_(_sift)(BARRIER_ *barrier, bide_sift *sift, bide_awaiter_chain *ended,
                      const bide_awaiter *withdrawn)
{
    bool found = false;
    do {
        /* acquire: partner is C, or the publish that whoever asked to look again had seen (argument 5). */
        BIDE_SEQUENCE published = bide_atomic_load(&barrier->published, acquire);
        bide_awaiter_chain these = {NULL, NULL};
        for (bide_awaiter *a = sift->taken, *next; a != NULL; a = next) {
            next = a->link;
            WAITER_ *waiter = bide_container_of(a, WAITER_, awaiter);
            bool reached = !TRAIT_(_precedes)(published, waiter->target);
            if (a == withdrawn) {
                found = true;
            } else if (reached || bide_awaiter_is_canceled(a)) {
                waiter->published = published;
                waiter->status = 0;
                if (!reached)
                    bide_awaiter_end_canceled(a);
                bide_awaiter_chain_prepend(&these, a);
            } else {
                bide_awaiter_chain_append(&sift->kept, a, a);
            }
        }
        if (these.first != NULL)
            bide_awaiter_chain_append(ended, these.first, these.last);
    } while (!bide_sift_end(sift, &barrier->waiters));
    if (sift->let_go.first !=
        NULL) /* argument 4; acquire: 5, what came before the closing is seen */
        F_(_end_all)(ended, sift->let_go.first, bide_atomic_load(&barrier->published, acquire));
    return found;
}

/*
 * Finishes the handshake (argument 6) of each ended waiter but `own`: wakes those whose suspend has
 * armed them; the others' suspends will go on by themselves. Returns whether `own` was among them.
 */
static bool F_(_wake_ended)(bide_awaiter *ended, const bide_awaiter *own)
{
    bide_awaiter_chain armed = {NULL, NULL};
    bool own_ended = false;
    while (ended != NULL) {
        bide_awaiter *next = ended->link;
        if (ended == own) {
            own_ended = true;
        } else {
            WAITER_ *waiter = bide_container_of(ended, WAITER_, awaiter);
            /* release: the results, to suspend's exchange; acquire: that suspend is done with the
             * barrier. Not armed: it is resumed there from now on, and not touched here. */
            if (bide_atomic_exchange(&waiter->handshake, BIDE_WAIT_ENDED_, acq_rel) ==
                BIDE_WAIT_ARMED_) {
                ended->link = NULL;
                bide_awaiter_chain_append(&armed, ended, ended);
            }
        }
        ended = next;
    }
    bide_wake(armed.first);
    return own_ended;
}

/* Sifts, unless there is nobody or another does. Returns whether `own` was among those that it ended. */
static bool F_(_end_reached)(BARRIER_ *barrier, uintptr_t word, const bide_awaiter *own)
{
    bide_sift sift;
    if (!bide_sift_begin(&sift, &barrier->waiters, word))
        return false;
    bide_awaiter_chain ended = {NULL, NULL};
    F_(_sift)(barrier, &sift, &ended, NULL);
    return F_(_wake_ended)(ended.first, own);
}

void F_(_wake_)(BARRIER_ *barrier, uintptr_t word)
{
    F_(_end_reached)(barrier, word, NULL);
}

bide_frame *F_(_suspend_)(bide_awaiter *awaiter, bide_frame *frame)
{
    if (bide_look(awaiter, frame))
        return frame;

    WAITER_ *own = bide_container_of(awaiter, WAITER_, awaiter);
    BARRIER_ *barrier = own->barrier;
    BIDE_SEQUENCE target = own->target;
    bide_atomic_init(&own->handshake, BIDE_WAIT_BEGUN_);
    bool pushed;
    bide_waiter_list_push(&barrier->waiters, awaiter, awaiter, seq_cst, pushed); /* A */
    if (!pushed) {
        /* Shut: a refused push has acquired what close released, the last publish among it. */
        own->published = bide_atomic_load(&barrier->published, acquire);
        own->status = TRAIT_(_precedes)(own->published, target) ? -EPIPE : 0;
        return frame;
    }
    BIDE_SEQUENCE published = bide_atomic_load(&barrier->published, seq_cst); /* B */
    if (!TRAIT_(_precedes)(published, target) &&
        F_(_end_reached)(barrier, (uintptr_t)awaiter, awaiter))
        return frame;
    /* From here on the barrier is not touched (argument 6). */
    if (bide_atomic_exchange(&own->handshake, BIDE_WAIT_ARMED_, acq_rel) == BIDE_WAIT_ENDED_)
        return frame;
    return NULL;
}

void F_(_cancel_)(bide_awaiter *awaiter)
{
    BARRIER_ *barrier = bide_container_of(awaiter, WAITER_, awaiter)->barrier;
    /* relaxed: the waiter's push is seen, or something later. */
    F_(_end_reached)(barrier, bide_atomic_load(&barrier->waiters.word, relaxed), NULL);
}

bool F_(_withdraw_)(bide_awaiter *awaiter)
{
    BARRIER_ *barrier = bide_container_of(awaiter, WAITER_, awaiter)->barrier;
    bide_sift sift;
    if (!bide_sift_begin_alone(&sift, &barrier->waiters))
        return false;
    bide_awaiter_chain ended = {NULL, NULL};
    bool found = F_(_sift)(barrier, &sift, &ended, awaiter);
    F_(_wake_ended)(ended.first, NULL);
    return found;
}

void F_(_close)(BARRIER_ *barrier)
{
    bide_awaiter_chain ended = {NULL, NULL};
    bide_awaiter *taken = bide_waiter_list_shut(&barrier->waiters);
    if (taken == NULL)
        return; /* the barrier may be gone by now: see whoever found it shut */
    F_(_end_all)(&ended, taken, bide_atomic_load(&barrier->published, acquire));
    F_(_wake_ended)(ended.first, NULL);
}

#undef BARRIER_
#undef WAITER_
#undef F_
#undef TRAIT_
