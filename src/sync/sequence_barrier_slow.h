/* For one type of sequence. The model, the argument and the letters are in sequence_barrier.h. */

#define BARRIER_     BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define WAITER_      BIDE_CONCAT2(bide_sequence_waiter, BIDE_SEQUENCE_BITS)
#define SORTED_      BIDE_CONCAT2(sorted, BIDE_SEQUENCE_BITS)
#define F_(name)     BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define TRAIT_(name) BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, name)

/* Waiters that were taken from the list, sorted. `waiting` keeps the order of the list, newest first. */
typedef struct SORTED_ {
    bide_awaiter_chain waiting;
    bide_awaiter *ended;    /* oldest first; statuses and results are written */
    BIDE_SEQUENCE earliest; /* how far ahead the nearest target of `waiting` lies */
} SORTED_;

static void F_(_end)(SORTED_ *sorted, WAITER_ *waiter, BIDE_SEQUENCE published, int status)
{
    waiter->published = published;
    waiter->status = status;
    waiter->awaiter.link = sorted->ended;
    sorted->ended = &waiter->awaiter;
}

/* Sorts what was taken by whether `published` has reached it. `if_not` is 0 to let the others wait, or
 * the status to end them with. */
static void F_(_sort)(SORTED_ *sorted, bide_awaiter *taken, BIDE_SEQUENCE published, int if_not)
{
    sorted->waiting.first = NULL;
    sorted->earliest = 0;
    while (taken != NULL) {
        bide_awaiter *next = taken->link;
        WAITER_ *waiter = bide_container_of(taken, WAITER_, awaiter);
        BIDE_SEQUENCE ahead = TRAIT_(_distance)(published, waiter->target);
        if (ahead == 0 || if_not != 0) {
            F_(_end)(sorted, waiter, published, ahead == 0 ? 0 : if_not);
        } else {
            taken->link = NULL;
            bide_awaiter_chain_append(&sorted->waiting, taken, taken);
            if (sorted->earliest == 0 || ahead < sorted->earliest)
                sorted->earliest = ahead;
        }
        taken = next;
    }
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

void F_(_wake_)(BARRIER_ *barrier, BIDE_SEQUENCE published)
{
    SORTED_ sorted = {.ended = NULL};
    F_(_sort)(&sorted, bide_waiter_list_take(&barrier->waiters), published, 0);
    if (sorted.waiting.first != NULL) {
        bool pushed;
        bide_waiter_list_push(&barrier->waiters, sorted.waiting.first, sorted.waiting.last, release,
                              pushed); /* arguments 3 and 7 */
        if (!pushed) {
            sorted.waiting.last->link = NULL;
            F_(_sort)(&sorted, sorted.waiting.first, published, -EPIPE); /* argument 4 */
        }
    }
    F_(_wake_ended)(sorted.ended, NULL);
}

bide_frame *F_(_suspend_)(bide_awaiter *awaiter, bide_frame *frame)
{
    if (bide_look(awaiter, frame))
        return frame;

    WAITER_ *own = bide_container_of(awaiter, WAITER_, awaiter);
    BARRIER_ *barrier = own->barrier;
    bide_atomic_init(&own->handshake, BIDE_WAIT_BEGUN_);

    SORTED_ sorted = {.ended = NULL};
    awaiter->link = NULL;
    bide_awaiter_chain_append(&sorted.waiting, awaiter, awaiter);
    BIDE_SEQUENCE target = own->target;
    do {
        bool pushed;
        bide_waiter_list_push(&barrier->waiters, sorted.waiting.first, sorted.waiting.last, seq_cst,
                              pushed); /* A */
        if (!pushed) {
            /* Shut: a refused push has acquired what close released, the last publish among it. */
            BIDE_SEQUENCE last = bide_atomic_load(&barrier->published, acquire);
            sorted.waiting.last->link = NULL;
            F_(_sort)(&sorted, sorted.waiting.first, last, -EPIPE);
            break;
        }
        BIDE_SEQUENCE published = bide_atomic_load(&barrier->published, seq_cst); /* B */
        if (TRAIT_(_precedes)(published, target))
            break; /* not one of them is reached; the next publish will see them (argument 1) */
        /* What is taken may have been enlisted after B, by who saw a later number: so look again
         * (argument 5: the take has acquired each push, so this is no older than what they saw). */
        bide_awaiter *taken = bide_waiter_list_take(&barrier->waiters);
        published = bide_atomic_load(&barrier->published, acquire);
        F_(_sort)(&sorted, taken, published, 0);
        target = (BIDE_SEQUENCE)(published + sorted.earliest);
    } while (sorted.waiting.first != NULL);

    if (F_(_wake_ended)(sorted.ended, awaiter))
        return frame;
    /* From here on the barrier is not touched (argument 6). */
    if (bide_atomic_exchange(&own->handshake, BIDE_WAIT_ARMED_, acq_rel) == BIDE_WAIT_ENDED_)
        return frame;
    return NULL;
}

void F_(_close)(BARRIER_ *barrier)
{
    SORTED_ sorted = {.ended = NULL};
    bide_awaiter *taken = bide_waiter_list_shut(&barrier->waiters);
    if (taken == NULL)
        return; /* the barrier may be gone by now: see whoever found it shut */
    F_(_sort)(&sorted, taken, bide_atomic_load(&barrier->published, acquire), -EPIPE);
    F_(_wake_ended)(sorted.ended, NULL);
}

#undef BARRIER_
#undef WAITER_
#undef SORTED_
#undef F_
#undef TRAIT_
