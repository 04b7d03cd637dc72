/* The sequence barrier for one type of sequence; the model and the argument are in sequence_barrier.h. */

#define BARRIER_     BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define WAITER_      BIDE_CONCAT2(bide_sequence_waiter, BIDE_SEQUENCE_BITS)
#define FOLLOWER_    BIDE_CONCAT2(bide_sequence_follower, BIDE_SEQUENCE_BITS)
#define COUNTER_     BIDE_COUNTER_OF_(BIDE_SEQUENCE_BITS)
#define F_(name)     BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define TRAIT_(name) BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, name)

typedef struct BARRIER_ {
    /* the publisher writes it, everybody reads it */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(BIDE_SEQUENCE) published;
    /* who waits writes it, the publisher reads it */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_biased_list waiters;
    /* of whoever sifts them: 6 */
    BIDE_SEQUENCE nearest;
    bool has_nearest;
} BARRIER_;

/* One wait. The caller's until the wait has ended; then `published` is its result. */
typedef struct WAITER_ {
    bide_list_waiter waiting; /* the head */
    BARRIER_ *barrier;
    BIDE_SEQUENCE target;
    BIDE_SEQUENCE published; /* what was published when the wait ended */
    bool follows;            /* it is a follower's */
} WAITER_;

/* A wait whose target follows a counter: what lies `behind` it, whenever somebody judges that. See argument 5. */
typedef struct FOLLOWER_ {
    WAITER_ wait; /* the head */
    bide_atomic(COUNTER_) * counter;
    BIDE_SEQUENCE behind;
} FOLLOWER_;

/* The slow halves, in src/sync/sequence_barrier.c. */
void F_(_wake_)(BARRIER_ *barrier, uintptr_t word);
bide_frame *F_(_suspend_)(bide_awaiter *awaiter, bide_frame *frame);
void F_(_cancel_)(bide_awaiter *awaiter);
bool F_(_withdraw_)(bide_awaiter *awaiter);

/*
 * Makes a barrier whose last published sequence is `initial` (bide_sequence_initial() and its like: the
 * one before 0). A barrier is aligned to BIDE_CACHE_LINE, and so is what contains one (for allocated
 * memory: aligned_alloc).
 * Before it is shared. The memory may go when no wait is under way and no call of publish or close runs.
 * A close that found nobody to end touches nothing once others can see that the barrier is closed, so
 * whoever ends because of the close may free it; a publish gives no such promise.
 */
BIDE_INLINE void F_(_init)(BARRIER_ *barrier, BIDE_SEQUENCE initial)
{
    bide_atomic_init(&barrier->published, initial);
    bide_biased_list_init(&barrier->waiters);
    barrier->has_nearest = false;
}

/*
 * The sequence that was published last; what was written before it was published is visible. Any thread;
 * wait-free.
 */
BIDE_INLINE BIDE_SEQUENCE F_(_last_published)(BARRIER_ *barrier)
{
    return bide_atomic_load(&barrier->published, acquire); /* argument 3 */
}

/*
 * Publishes `sequence`, and with it all before it: those who wait for it or less are woken, each on its
 * own scheduler, in the order in which they came. The one publisher only; less than half the range ahead of the last.
 * Does not suspend. Wait-free while nobody waits (a store and a load, or, for a while after somebody has waited, a full
 * fence too); otherwise lock-free, and linear in the waiters.
 */
BIDE_INLINE void F_(_publish)(BARRIER_ *barrier, BIDE_SEQUENCE sequence)
{
    bide_atomic_store(&barrier->published, sequence, release); /* N */
    uintptr_t word = bide_biased_list_look(&barrier->waiters);
    if (BIDE_UNLIKELY(word > BIDE_LIST_SHUT))
        F_(_wake_)(barrier, word);
}

/*
 * Says that nothing more will be published. Who waits, now and later, for a sequence that is published
 * ends with 0, for any other with -EPIPE. Any thread, more than once; does not suspend; wait-free but
 * for the waking.
 */
void F_(_close)(BARRIER_ *barrier);

BIDE_INLINE bool F_(_ready_)(bide_awaiter *awaiter)
{
    WAITER_ *waiter = (WAITER_ *)(void *)awaiter;
    waiter->published = F_(_last_published)(waiter->barrier);
    return !TRAIT_(_precedes)(waiter->published, waiter->target);
}

BIDE_INLINE int F_(_resume_)(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0; /* who ends otherwise has other operations: stop.h */
}

/*
 * Waits until `target` is published. `waiter` is the caller's until the wait has ended; its member
 * `published` is then the last published sequence, `target` or later. A target that does not lie ahead
 * of the last published sequence by 1 to half the range has been published already.
 * Ends with 0, or -EPIPE if the barrier was closed before `target`, or, cut short, with -ECANCELED or
 * -ETIMEDOUT (stop.h); `published` is then the last that was seen.
 * Any thread; suspends if `target` is not published; lock-free, but for the system call of a heavy fence (fence.h) if
 * nobody has waited for some time.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *F_(_wait_until_published)(WAITER_ *waiter, BARRIER_ *barrier,
                                                    BIDE_SEQUENCE target)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = F_(_ready_),
        .suspend = F_(_suspend_),
        .resume = F_(_resume_),
        .cancel = F_(_cancel_),
        .withdraw = F_(_withdraw_),
        .name = "bide_sequence_barrier_wait",
    };
    waiter->waiting.listed.awaiter.ops = &ops;
    waiter->barrier = barrier;
    waiter->target = target;
    waiter->follows = false;
    return &waiter->waiting.listed.awaiter;
}

BIDE_INLINE BIDE_SEQUENCE F_(_followed_)(const FOLLOWER_ *waiter)
{
    /* relaxed: 5; what it must not be older than happened before. */
    return (BIDE_SEQUENCE)(bide_atomic_load(waiter->counter, relaxed) - waiter->behind);
}

/*
 * Waits until what lies `behind` the counter is published, or has been for a moment: the counter may have gone on.
 * `counter` is another's, which changes it, and stays until the wait has ended. For who waits at a gate for room in a
 * ring: argument 5 says what must hold. Otherwise as _wait_until_published.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *F_(_follow_)(FOLLOWER_ *waiter, BARRIER_ *barrier,
                                       bide_atomic(COUNTER_) * counter, BIDE_SEQUENCE behind)
{
    waiter->counter = counter;
    waiter->behind = behind;
    bide_await_later(F_(_wait_until_published)(&waiter->wait, barrier, F_(_followed_)(waiter)));
    waiter->wait.follows = true;
    return &waiter->wait.waiting.listed.awaiter;
}

/*
 * The same for a plain thread, until `deadline` (nanoseconds of bide_platform.now(), or BIDE_FOREVER): returns what the
 * wait ends with, -ETIMEDOUT when the deadline has come. *published, unless that is NULL, is what the waiter's member
 * would be. See bide_sync_wait_until. Blocks.
 */
BIDE_INLINE int F_(_wait_until_published_blocking)(BARRIER_ *barrier, BIDE_SEQUENCE target,
                                                   uint64_t deadline, BIDE_SEQUENCE *published)
{
    WAITER_ waiter;
    int status =
        bide_sync_wait_until(F_(_wait_until_published)(&waiter, barrier, target), deadline);
    if (published != NULL)
        *published = waiter.published;
    return status;
}

/* See bide_sequence_barrier_destroy. */
BIDE_INLINE void F_(_destroy_)(BARRIER_ *barrier, const char *what, const char *where,
                               const char *file, unsigned line)
{
#if BIDE_DEBUG
    if (!bide_waiter_list_word_is_idle(bide_atomic_load(&barrier->waiters.list.word, relaxed)))
        bide_misuse_(what, where, file, line);
#else
    (void)barrier, (void)what, (void)where, (void)file, (void)line;
#endif
}

#undef BARRIER_
#undef WAITER_
#undef FOLLOWER_
#undef COUNTER_
#undef F_
#undef TRAIT_
