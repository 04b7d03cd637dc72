/*
 * Stop requests, the tree of sources, and the gate in front of a coroutine whose wait can be cancelled.
 * Any thread may request; the coroutine's thread starts waits; any thread may end an operation. The
 * states of the word, and the numbers that the comments below refer to: docs/internals/stop.md.
 */
#include "bide/stop.h"

#include "internal.h"
#include "lock.h"

#include "bide/errors.h"

enum { REASON = BIDE_STOP_REQUESTED_ | BIDE_STOP_TIMED_OUT_ };

/* ---- The tables of a cancelled wait, and of one whose object was closed ---- */

static bool ended_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static bide_frame *ended_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter;
    return frame;
}

static int cancelled_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return -ECANCELED;
}

static int timed_out_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return -ETIMEDOUT;
}

static int closed_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return -EPIPE;
}

/* It was posted, or has run. */
static bool ended_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

static const bide_awaiter_ops cancelled_ops = {
    .ready = ended_ready,
    .suspend = ended_suspend,
    .resume = cancelled_resume,
    .withdraw = ended_withdraw,
    .name = "(cancelled)",
};
static const bide_awaiter_ops timed_out_ops = {
    .ready = ended_ready,
    .suspend = ended_suspend,
    .resume = timed_out_resume,
    .withdraw = ended_withdraw,
    .name = "(timed out)",
};

static const bide_awaiter_ops closed_ops = {
    .ready = ended_ready,
    .suspend = ended_suspend,
    .resume = closed_resume,
    .withdraw = ended_withdraw,
    .name = "(closed)",
};

static const bide_awaiter_ops *ops_for(uint32_t word)
{
    return (word & BIDE_STOP_TIMED_OUT_) != 0 ? &timed_out_ops : &cancelled_ops;
}

/* It is never called: bide_stop_suspend_. */
void bide_cancel_inside_(bide_awaiter *awaiter)
{
    (void)awaiter;
}

/* The end of a frame that has not begun. It is ready as often as it is looked at. */
static const bide_point cut_point = {
    .ops = {.ready = ended_ready, .suspend = bide_frame_started_, .withdraw = bide_frame_withdraw_},
    .line = __LINE__,
    .state = BIDE_AT_END,
};

bool bide_stop_cut_(bide_awaiter *awaiter, bide_stop_source *source)
{
    const bide_wrapper_ops *wrapper;
    while ((wrapper = bide_wrapper_of(awaiter)) != NULL && wrapper->is_ready_as_inner)
        awaiter = wrapper->inner(awaiter, 0);
    if (awaiter->ops->cancel != NULL) {
        /* relaxed: the caller has acquired REQUESTED. */
        awaiter->ops = ops_for(bide_atomic_load(&source->word, relaxed));
        return true;
    }
    if (bide_awaiter_is_frame(awaiter) && awaiter->ops->ready != NULL) {
        awaiter->ops = &cut_point.ops;
        ((bide_frame *)(void *)awaiter)->error = bide_stop_reason(source);
        return true;
    }
    return false;
}

int bide_stop_reason(bide_stop_source *source)
{
    if (BIDE_LIKELY(!bide_stop_requested(source)))
        return 0;
    /* relaxed: TIMED_OUT came with REQUESTED, which has been acquired. */
    uint32_t word = bide_atomic_load(&source->word, relaxed);
    return (word & BIDE_STOP_TIMED_OUT_) != 0 ? -ETIMEDOUT : -ECANCELED;
}

/* ---- The gate ---- */

static bide_next gate_step(bide_frame *gate, unsigned depth)
{
    bide_stop_source *source = bide_container_of(gate, bide_stop_source, gate);
    bide_frame *frame = gate->awaiter.frame;
    uint32_t word = bide_atomic_load(&source->word, relaxed);
    (void)depth;
    for (;;) {
        bide_assert((word & BIDE_STOP_ENDED_) == 0); /* the operation ends once */
        bide_assert((word & BIDE_STOP_WAITING_) == 0 ||
                    (word & (BIDE_STOP_CANCELLING_ | BIDE_STOP_LEAVING_)) == 0);
        if ((word & BIDE_STOP_WAITING_) != 0) {
            /* acquire: partner is the release of WAITING, by the starter or a canceller; 2. */
            if (bide_atomic_compare_exchange(&source->word, &word, word & REASON, acquire, relaxed))
                return bide_next_frame(frame);
        } else {
            /* release: partner is the acquire of the thread that finds ENDED; 3. */
            if (bide_atomic_compare_exchange(&source->word, &word, word | BIDE_STOP_ENDED_, release,
                                             relaxed))
                return bide_next_none();
        }
    }
}

static const bide_coroutine_code gate_code = {gate_step, "(stop source)", __FILE__, NULL, NULL};
static const bide_point gate_point = BIDE_POINT(&gate_code, NULL, 0, BIDE_AT_AWAIT);

bool bide_stop_holds_(const bide_frame *frame)
{
    return frame->awaiter.ops == &gate_point.ops;
}

/* The source in which `awaiter` is waited for; NULL if in none. */
static bide_stop_source *source_of(const bide_awaiter *awaiter)
{
    bide_frame *frame = awaiter->frame;
    return bide_stop_holds_(frame) ? bide_container_of(frame, bide_stop_source, gate) : NULL;
}

bool bide_awaiter_is_cancelled(bide_awaiter *awaiter)
{
    return bide_stop_requested(source_of(awaiter));
}

void bide_awaiter_finish_cancelled(bide_awaiter *awaiter)
{
    bide_stop_source *source = source_of(awaiter);
    /* relaxed: a hint for the thread that is about to cancel it, and nothing else. */
    uint32_t word =
        source != NULL ? bide_atomic_fetch_or(&source->word, BIDE_STOP_CUT_, relaxed) : 0;
    awaiter->ops = ops_for(word);
}

void bide_awaiter_finish_closed(bide_awaiter *awaiter)
{
    awaiter->ops = &closed_ops;
}

/*
 * The starter or the canceller has finished with the wait. Returns true if the operation has ended in
 * the meantime: the caller continues with the coroutine. Returns false if the gate is open, or the
 * remover will open it: the caller touches nothing any more.
 */
static bool end_cancelling(bide_stop_source *source)
{
    uint32_t word = bide_atomic_load(&source->word, relaxed);
    for (;;) {
        bide_assert((word & BIDE_STOP_WAITING_) == 0); /* the gate is shut */
        uint32_t done = word & ~(uint32_t)BIDE_STOP_CANCELLING_;
        if ((word & (BIDE_STOP_ENDED_ | BIDE_STOP_LEAVING_)) == BIDE_STOP_ENDED_) {
            /* acquire: partners are the gate's release, 3, and the remover's, 5a. */
            if (bide_atomic_compare_exchange(&source->word, &word, word & REASON, acquire, relaxed))
                return true;
        } else {
            if ((word & BIDE_STOP_LEAVING_) == 0)
                done |= BIDE_STOP_WAITING_;
            /* release: 2, partner is the gate's acquire; or 5a, the remover's. */
            if (bide_atomic_compare_exchange(&source->word, &word, done, release, relaxed))
                return false;
        }
    }
}

/*
 * The operation was started, and the word has changed in the meantime. The gate is still shut.
 * Returns the frame that runs next.
 */
static bide_frame *start_late(bide_stop_source *source, bide_awaiter *awaiter, bide_frame *frame,
                              bide_frame *next, uint32_t word)
{
    if ((word & (BIDE_STOP_ENDED_ | BIDE_STOP_CUT_)) == 0) {
        /* It was requested. relaxed: it keeps the remover, which comes after it, from opening the
         * gate. */
        bide_atomic_fetch_or(&source->word, (uint32_t)BIDE_STOP_CANCELLING_, relaxed);
        source->cancel(awaiter);
    }
    if (!end_cancelling(source))
        return next;
    awaiter->frame = frame;
    if (next == NULL)
        return frame;
    bide_wake_one(awaiter);
    return next;
}

/* ---- Requested removals: 5a ---- */

bool bide_awaiter_leaves_(bide_awaiter *awaiter)
{
    bide_stop_source *source = source_of(awaiter);
    if (source == NULL)
        return false;
    /* relaxed: the removal request comes after this, and releases. */
    bide_atomic_fetch_or(&source->word, (uint32_t)BIDE_STOP_LEAVING_, relaxed);
    return true;
}

bide_awaiter **bide_awaiter_next_leaving_(bide_awaiter *awaiter)
{
    return &source_of(awaiter)->next_leaving;
}

bool bide_awaiter_has_left_(bide_awaiter *awaiter)
{
    bide_stop_source *source = source_of(awaiter);
    bide_frame *frame = source->gate.awaiter.frame;
    uint32_t word = bide_atomic_load(&source->word, relaxed);
    for (;;) {
        uint32_t left = word & ~(uint32_t)BIDE_STOP_LEAVING_;
        bool last = (word & BIDE_STOP_CANCELLING_) == 0;
        if (last && (word & BIDE_STOP_ENDED_) != 0) {
            /* acquire: partners are the gate's release, 3, and the canceller's, 5a. */
            if (bide_atomic_compare_exchange(&source->word, &word, word & REASON, acquire,
                                             relaxed)) {
                awaiter->frame = frame;
                return true;
            }
        } else {
            if (last)
                left |= BIDE_STOP_WAITING_;
            /* release: 2, partner is the gate's acquire; or 5a, the canceller's. */
            if (bide_atomic_compare_exchange(&source->word, &word, left, release, relaxed))
                return false;
        }
    }
}

bide_frame *bide_stop_suspend_in_(bide_stop_source *source, bide_awaiter *awaiter,
                                  const bide_awaiter_ops *ops, bide_frame *frame)
{
    /* acquire: partner is the request's release; 4. */
    uint32_t word = bide_atomic_load(&source->word, acquire);
    if ((word & BIDE_STOP_REQUESTED_) != 0) {
        awaiter->ops = ops_for(word);
        return frame;
    }
    if (BIDE_UNLIKELY(word != 0)) {
        bide_misused_by_("two waits at once in one stop source", frame, NULL);
        return frame;
    }
    bide_frame *gate = &source->gate;
    gate->awaiter.ops = &gate_point.ops;
    gate->awaiter.link = awaiter;
    gate->awaiter.frame = frame;
    gate->context = frame->context;
    source->cancel = ops->cancel;
    awaiter->frame = gate;

    bide_frame *next = ops->suspend(awaiter, gate);
    if (next == gate) {
        awaiter->frame = frame; /* ended at once, and no other thread has it */
        return frame;
    }
    word = 0;
    /* release: 2, partners are the acquires of gate and request. relaxed if it fails: the thread that
     * continues with the coroutine acquires. */
    if (BIDE_LIKELY(bide_atomic_compare_exchange(&source->word, &word, BIDE_STOP_WAITING_, release,
                                                 relaxed)))
        return next;
    return start_late(source, awaiter, frame, next, word);
}

bide_frame *bide_stop_suspend_(bide_awaiter *awaiter, const bide_awaiter_ops *ops,
                               bide_frame *frame)
{
    if (ops->cancel == bide_cancel_inside_)
        return ops->suspend(awaiter, frame);
    return bide_stop_suspend_in_(frame->context->stop, awaiter, ops, frame);
}

void bide_stop_discard_(bide_frame *frame)
{
    bide_stop_source *source = frame->context->stop;
    if (source == NULL)
        return;
    /* acquire: as the gate's. */
    uint32_t word = bide_atomic_fetch_and(&source->word, (uint32_t)REASON, acquire);
    if (BIDE_UNLIKELY((word & (BIDE_STOP_CANCELLING_ | BIDE_STOP_LEAVING_)) != 0)) {
        bide_misused_by_("a coroutine was destroyed while it is asked to stop", frame, NULL);
    }
}

/* ---- Requests ---- */

/* Cancels the wait in a source that is CANCELLING. The source may be freed afterwards. */
static void cancel_wait(bide_stop_source *source)
{
    bide_awaiter *awaiter = source->gate.awaiter.link;
    bide_frame *frame = source->gate.awaiter.frame;
    if ((bide_atomic_load(&source->word, relaxed) & BIDE_STOP_CUT_) == 0)
        source->cancel(awaiter);
    if (end_cancelling(source)) {
        awaiter->frame = frame;
        bide_wake_one(awaiter);
    }
}

/* Requests a stop on one source. Returns false if it was requested before. If the source has a wait,
 * adds it to *cancelling. */
static bool stop_source_ask(bide_stop_source *source, uint32_t reason,
                            bide_stop_source **cancelling)
{
    uint32_t word = bide_atomic_load(&source->word, relaxed);
    uint32_t asked;
    do {
        if ((word & BIDE_STOP_REQUESTED_) != 0)
            return false;
        asked = word | reason;
        if ((word & BIDE_STOP_WAITING_) != 0)
            asked ^= BIDE_STOP_WAITING_ | BIDE_STOP_CANCELLING_;
        /* release: 4, partners are all acquires of REQUESTED. acquire: 2, of WAITING. */
    } while (!bide_atomic_compare_exchange(&source->word, &word, asked, acq_rel, relaxed));
    if ((asked & BIDE_STOP_CANCELLING_) != 0) {
        source->next_cancelling = *cancelling;
        *cancelling = source;
    }
    return true;
}

/*
 * Requests a stop on all sources below `top`, which has its request and is locked; frees its lock. In a
 * loop, because a tree may have any depth. Only the path from `top` to `at` is locked.
 */
static void ask_all_below(bide_stop_source *top, uint32_t reason, bide_stop_source **cancelling)
{
    bide_stop_source *at = top;
    bide_stop_source *child = top->first_child;
    for (;;) {
        while (child != NULL && !stop_source_ask(child, reason, cancelling))
            child = child->next;
        if (child != NULL) {
            lock_take(&child->lock);
            at = child;
            child = at->first_child;
            continue;
        }
        if (at == top)
            break;
        bide_stop_source *done = at;
        at = done->parent;
        child = done->next;
        lock_free(&done->lock);
    }
    lock_free(&top->lock);
}

static void stop_source_request(bide_stop_source *source, uint32_t reason)
{
    bide_stop_source *cancelling = NULL;
    lock_take(&source->lock);
    if (stop_source_ask(source, reason, &cancelling))
        ask_all_below(source, reason, &cancelling);
    else
        lock_free(&source->lock);
    while (cancelling != NULL) {
        bide_stop_source *next = cancelling->next_cancelling;
        cancel_wait(cancelling);
        cancelling = next;
    }
}

void bide_stop_request(bide_stop_source *source)
{
    stop_source_request(source, BIDE_STOP_REQUESTED_);
}

void bide_stop_request_with(bide_stop_source *source, int reason)
{
    stop_source_request(source, reason == -ETIMEDOUT ? (uint32_t)REASON : BIDE_STOP_REQUESTED_);
}

/* ---- The tree ---- */

void bide_stop_source_attach(bide_stop_source *source, bide_stop_source *parent)
{
    lock_take(&parent->lock);
    source->parent = parent;
    source->before = &parent->first_child;
    source->next = parent->first_child;
    if (source->next != NULL)
        source->next->before = &source->next;
    parent->first_child = source;
    /* acquire: partner is the request's release; 4. */
    uint32_t word = bide_atomic_load(&parent->word, acquire);
    lock_free(&parent->lock);
    if (BIDE_UNLIKELY((word & BIDE_STOP_REQUESTED_) != 0))
        stop_source_request(source, word & REASON);
}

void bide_stop_source_detach(bide_stop_source *source)
{
    bide_stop_source *parent = source->parent;
    if (parent == NULL)
        return;
    lock_take(&parent->lock);
    bide_assert(*source->before == source);
    bide_assert(source->next == NULL || source->next->before == &source->next);
    *source->before = source->next;
    if (source->next != NULL)
        source->next->before = source->before;
    lock_free(&parent->lock);
    source->parent = NULL;
}
