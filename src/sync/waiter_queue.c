/*
 * Serving a waiter queue: one thread at a time, the server, takes the arrivals into the line and ends
 * waiters from its front. Any thread may put, enlist, cancel, withdraw and close. If there are
 * waiters, it becomes the server, or leaves its request (NEW, CANCEL) in the state for the present
 * one, and returns; withdrawing waits instead. The server owns the line until it leaves by a
 * compare-exchange that finds no new request. States, argument and numbers:
 * docs/internals/waiter_queue.md.
 */
#include "bide/extend/waiter_queue.h"

#include "list.h"

#include "bide/stop.h"

#define QUEUE_SERVING ((uintptr_t)BIDE_QUEUE_SERVING_)
#define QUEUE_NEW     ((uintptr_t)BIDE_QUEUE_NEW_)
#define QUEUE_WAITING ((uintptr_t)BIDE_QUEUE_WAITING_)
#define QUEUE_CANCEL  ((uintptr_t)BIDE_QUEUE_CANCEL_)
#define QUEUE_CLOSED  ((uintptr_t)BIDE_QUEUE_CLOSED_)

/* Of `leaving`. */
#define QUEUE_SWEEP ((uintptr_t)1)

static bide_queue_waiter *queue_waiter_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_queue_waiter, awaiter);
}

/* ---- The line (list.h): oldest first ---- */

static bide_awaiter **before_of(bide_awaiter *awaiter)
{
    return &queue_waiter_of(awaiter)->before;
}

static bool is_in_line(bide_awaiter *awaiter)
{
    return queue_waiter_of(awaiter)->before != NULL;
}

/* Appends the chain from `newest` to an oldest. */
static void line_append_reversed(bide_waiter_queue *queue, bide_awaiter *newest)
{
    bide_awaiter *later = NULL;
    bide_awaiter *oldest = newest;
    for (bide_awaiter *a = newest; a != NULL;) {
        bide_awaiter *before = a->link;
        a->link = later;
        queue_waiter_of(a)->before = before;
        oldest = later = a;
        a = before;
    }
    bide_awaiter *first = queue->line;
    if (first == NULL) {
        queue->line = first = oldest;
    } else {
        bide_awaiter *last = queue_waiter_of(first)->before;
        last->link = oldest;
        queue_waiter_of(oldest)->before = last;
    }
    queue_waiter_of(first)->before = newest;
}

static void line_prepend(bide_waiter_queue *queue, bide_awaiter *awaiter)
{
    bide_awaiter *first = queue->line;
    awaiter->link = first;
    queue_waiter_of(awaiter)->before = first != NULL ? queue_waiter_of(first)->before : awaiter;
    if (first != NULL)
        queue_waiter_of(first)->before = awaiter;
    queue->line = awaiter;
}

static void line_remove_waiter(bide_waiter_queue *queue, bide_awaiter *awaiter)
{
    line_remove(&queue->line, awaiter, before_of);
}

static void line_take_arrivals(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules)
{
    /* acquire: partner is the push's release, 2. */
    bide_awaiter *newest = (bide_awaiter *)bide_atomic_exchange(&queue->arrivals, 0, acquire);
    if (newest == NULL)
        return;
    if (rules->goes_first == NULL) {
        line_append_reversed(queue, newest);
        return;
    }
    for (bide_awaiter *a = bide_awaiter_reverse(newest), *next; a != NULL; a = next) {
        next = a->link;
        a->link = NULL;
        if (rules->goes_first(queue_waiter_of(a)))
            line_prepend(queue, a);
        else
            line_append_reversed(queue, a);
    }
}

/* ---- Serving ---- */

/* One stay of a server, on its stack. */
typedef struct serving {
    bide_waiter_queue *queue;
    const bide_waiter_queue_ops *rules;
    bide_awaiter *own;              /* the server's own waiter, to be removed; or NULL */
    bool withdraws;                 /* `own` is not to be ended */
    bool is_aside;                  /* `own` was unlinked, and may be reinserted */
    bool found;                     /* `own` was in line, and was removed */
    bool sweeps;                    /* the whole line is to be looked through */
    uintptr_t taken;                /* from the value, for admitted waiters: 5 */
    bide_awaiter *remove_requested; /* linked by next_leaving */
    bide_awaiter_chain leaving;     /* removed, but judged again until the server leaves */
    bide_awaiter_chain ended;
    bide_awaiter *woken; /* had ended before they were removed: woken without a handshake */
} serving;

static bool serving_is_due(const serving *s, bide_awaiter *awaiter, uintptr_t value)
{
    return s->rules->is_due != NULL && s->rules->is_due(queue_waiter_of(awaiter), value);
}

static void serving_leave(const serving *s, bide_awaiter *awaiter, uintptr_t *value)
{
    if (s->rules->leave != NULL)
        s->rules->leave(queue_waiter_of(awaiter), value);
}

static void chain_append_one(bide_awaiter_chain *chain, bide_awaiter *awaiter)
{
    awaiter->link = NULL;
    bide_awaiter_chain_append(chain, awaiter, awaiter);
}

/* A waiter that was removed leaves, or has ended if it is due by the value `now`. */
static void serving_judge(serving *s, bide_awaiter *awaiter, uintptr_t now, uintptr_t *value)
{
    if (serving_is_due(s, awaiter, now)) {
        chain_append_one(&s->ended, awaiter);
    } else {
        serving_leave(s, awaiter, value);
        chain_append_one(&s->leaving, awaiter);
    }
}

static void serving_judge_again(serving *s, uintptr_t *value)
{
    bide_awaiter_chain chain = s->leaving;
    uintptr_t now = *value;
    s->leaving.first = NULL;
    for (bide_awaiter *a; (a = bide_awaiter_chain_take(&chain)) != NULL;)
        serving_judge(s, a, now, value);
}

static void serving_take_removals(serving *s)
{
    /* acquire: partners are the releases of removal requests and SWEEP, 10 and 11. */
    uintptr_t word = bide_atomic_exchange(&s->queue->leaving, 0, acquire);
    s->sweeps = s->sweeps || (word & QUEUE_SWEEP) != 0;
    for (bide_awaiter *a = (bide_awaiter *)(word & ~QUEUE_SWEEP), *next; a != NULL; a = next) {
        next = *bide_awaiter_next_leaving_(a);
        *bide_awaiter_next_leaving_(a) = s->remove_requested;
        s->remove_requested = a;
    }
}

/* Removes the waiters whose removal was requested. For a sweep, looks through the whole line. */
static void serving_remove_requested(serving *s, uintptr_t *value)
{
    uintptr_t now = *value;
    if (s->own != NULL && is_in_line(s->own)) {
        line_remove_waiter(s->queue, s->own);
        serving_judge(s, s->own, now, value);
    }
    for (bide_awaiter *a = s->remove_requested, *next; a != NULL; a = next) {
        next = *bide_awaiter_next_leaving_(a);
        if (is_in_line(a)) {
            line_remove_waiter(s->queue, a);
            serving_judge(s, a, now, value);
        }
        complete_removal(a, &s->woken);
    }
    s->remove_requested = NULL;
    if (!s->sweeps)
        return;
    for (bide_awaiter *a = s->queue->line, *next; a != NULL; a = next) {
        next = a->link;
        if (serving_is_due(s, a, now) || bide_awaiter_is_cancelled(a)) {
            line_remove_waiter(s->queue, a);
            serving_judge(s, a, now, value);
        }
    }
}

/* The same for rules that admit a cancelled waiter, as the last step before the server leaves. The
 * waiters are unlinked, and reinserted if the server does not leave. */
static void serving_unlink_cancelled(serving *s, uintptr_t *value)
{
    bide_awaiter *outside = NULL; /* the last one unlinked first */
    for (bide_awaiter *a = s->remove_requested, *next; a != NULL; a = next) {
        bide_awaiter **link = bide_awaiter_next_leaving_(a);
        next = *link;
        if (!is_in_line(a)) { /* it was admitted */
            complete_removal(a, &s->woken);
            continue;
        }
        line_unlink(&s->queue->line, a, before_of);
        serving_leave(s, a, value);
        *link = outside;
        outside = a;
    }
    s->remove_requested = outside;
    if (s->own != NULL && is_in_line(s->own)) {
        line_unlink(&s->queue->line, s->own, before_of);
        serving_leave(s, s->own, value);
        s->is_aside = true;
    }
}

static void serving_reinsert_cancelled(serving *s)
{
    if (s->is_aside)
        line_reinsert(&s->queue->line, s->own, before_of);
    s->is_aside = false;
    for (bide_awaiter *a = s->remove_requested; a != NULL; a = *bide_awaiter_next_leaving_(a))
        line_reinsert(&s->queue->line, a, before_of);
}

/* The server has left, and so have the unlinked waiters. Its own waiter, if it was not unlinked, may
 * be in a line again: it is not touched. */
static void serving_complete_cancelled(serving *s)
{
    bide_assert(s->leaving.first == NULL || !s->is_aside);
    if (s->is_aside) {
        queue_waiter_of(s->own)->before = NULL;
        chain_append_one(&s->leaving, s->own);
    }
    for (bide_awaiter *a = s->remove_requested, *next; a != NULL; a = next) {
        next = *bide_awaiter_next_leaving_(a);
        queue_waiter_of(a)->before = NULL;
        chain_append_one(&s->leaving, a);
        complete_removal(a, &s->woken);
    }
}

/* Ends waiters from the front of the line: all that are admitted, and if it is closed the others. */
static void serving_admit(serving *s, uintptr_t *value, bool closed)
{
    bide_awaiter *a;
    uintptr_t before = *value;
    bool refused = false;
    while ((a = s->queue->line) != NULL) {
        refused = refused || !s->rules->admit(queue_waiter_of(a), value);
        if (refused && !closed)
            break;
        line_remove_waiter(s->queue, a);
        if (refused && !serving_is_due(s, a, *value)) {
            serving_leave(s, a, value);
            bide_awaiter_finish_closed(a);
        } else if (s->rules->admitted != NULL) {
            s->rules->admitted(queue_waiter_of(a), *value);
        }
        chain_append_one(&s->ended, a);
    }
    s->taken += before - *value;
}

/* The server has left: ends the leaving waiters, in front of the others. */
static void serving_end_leaving(serving *s)
{
    bide_awaiter_chain others = s->ended;
    s->ended.first = NULL;
    for (bide_awaiter *a; (a = bide_awaiter_chain_take(&s->leaving)) != NULL;) {
        if (a == s->own && s->withdraws) {
            a->link = NULL;
            s->found = true;
        } else {
            bide_awaiter_finish_cancelled(a);
            chain_append_one(&s->ended, a);
        }
    }
    if (others.first != NULL)
        bide_awaiter_chain_append(&s->ended, others.first, others.last);
}

/* The state that the server leaves, given the value. */
static uintptr_t serving_final_state(const serving *s, uintptr_t state, uintptr_t value)
{
    if (s->queue->line != NULL)
        return value | (state & QUEUE_CLOSED) | QUEUE_WAITING;
    return (s->rules->settle != NULL ? s->rules->settle(value) : value) | (state & QUEUE_CLOSED);
}

/*
 * Serves, and leaves. `state` has been set, with SERVING; `requests` (NEW, CANCEL) were taken out of
 * it. Ended waiters are in `ended`, by arrival, but cancelled ones first. Does not touch the queue
 * afterwards.
 */
static void serving_run(serving *s, uintptr_t state, uintptr_t requests)
{
    bide_waiter_queue *queue = s->queue;
    for (;;) {
        /* Only the server takes these off. */
        bide_assert((state & (QUEUE_SERVING | QUEUE_NEW | QUEUE_CANCEL)) == QUEUE_SERVING);
        uintptr_t value = BIDE_QUEUE_VALUE(state) - s->taken;
        bool closed = (state & QUEUE_CLOSED) != 0;
        bool steps_aside = s->rules->admits_cancelled && !closed;
        serving_judge_again(s, &value);
        if ((requests & QUEUE_CANCEL) != 0)
            serving_take_removals(s);
        if ((requests & QUEUE_NEW) != 0 || s->remove_requested != NULL || s->sweeps) /* 10 */
            line_take_arrivals(queue, s->rules);
        /* Also if the queue was closed after a put. */
        if (s->rules->admits_cancelled)
            serving_admit(s, &value, false);
        if (steps_aside) {
            serving_unlink_cancelled(s, &value);
        } else {
            serving_remove_requested(s, &value);
            serving_admit(s, &value, closed);
        }

        bide_assert(BIDE_QUEUE_VALUE(value) == value); /* the rules change no flag */
        uintptr_t left = serving_final_state(s, state, value);
        /* release: 3. acquire: 4, of all puts in the meantime. */
        if (bide_atomic_compare_exchange(&queue->state, &state, left, acq_rel, relaxed)) {
            serving_complete_cancelled(s);
            serving_end_leaving(s);
            return;
        }
        if (steps_aside)
            serving_reinsert_cancelled(s);
        requests = state & (QUEUE_NEW | QUEUE_CANCEL);
        if (requests != 0) {
            /* acquire: 2, of new arrivals; and the reason of cancellations. */
            state = bide_atomic_fetch_and(&queue->state, ~(QUEUE_NEW | QUEUE_CANCEL), acquire);
            requests = state & (QUEUE_NEW | QUEUE_CANCEL);
            state &= ~(QUEUE_NEW | QUEUE_CANCEL);
        }
    }
}

static bide_handshake *handshake_of_queued(bide_awaiter *awaiter)
{
    return &queue_waiter_of(awaiter)->handshake;
}

/* Wakes the ended waiters whose suspend has finished (6), or passes them to `hand`. */
static void serving_hand_over(const serving *s)
{
    bide_awaiter_chain armed = bide_handshake_finish_all(s->ended.first, handshake_of_queued);
    bide_wake(s->woken);
    if (s->rules->hand == NULL)
        bide_wake(armed.first);
    else if (armed.first != NULL)
        s->rules->hand(s->rules, &armed);
}

static void serving_run_and_wake(serving *s, uintptr_t state, uintptr_t requests)
{
    serving_run(s, state, requests & (QUEUE_NEW | QUEUE_CANCEL));
    serving_hand_over(s);
}

bool bide_waiter_queue_put(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules,
                           uintptr_t *state, uintptr_t value)
{
    uintptr_t found = *state;
    bide_assert(BIDE_QUEUE_VALUE(value) == value);
    if ((found & (QUEUE_WAITING | QUEUE_SERVING)) == QUEUE_WAITING) {
        uintptr_t served = value | (found & QUEUE_CLOSED) | QUEUE_SERVING;
        /* acquire: 1, 2 and 3. release: 4, for a take that reads the value before the server leaves. */
        if (!bide_atomic_compare_exchange(&queue->state, state, served, acq_rel, relaxed))
            return false;
        serving s = {.queue = queue, .rules = rules};
        serving_run_and_wake(&s, served, found);
        return true;
    }
    uintptr_t put = value | (found & (BIDE_QUEUE_ONE - 1));
    /* release: 4. */
    return bide_atomic_compare_exchange(&queue->state, state, put, release, relaxed);
}

/* ---- Waiting ---- */

static bool queue_announce(bide_waiter_queue *queue, uintptr_t *state, uintptr_t requests)
{
    /* release: 2 */
    return bide_atomic_compare_exchange(&queue->state, state, *state | QUEUE_WAITING | requests,
                                        release, relaxed);
}

/* Has the server that finds CANCEL look through the whole line. */
static void queue_request_sweep(bide_waiter_queue *queue)
{
    /* release: 11; partner is the server's acquire. */
    bide_atomic_fetch_or(&queue->leaving, QUEUE_SWEEP, release);
}

/* Announces that a waiter has arrived, or serves. Returns false if the state changed: *state. */
static bool queue_arrive(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules,
                         uintptr_t *state)
{
    bide_waiter_queue *queue = waiter->queue;
    uintptr_t found = *state;
    uintptr_t value = BIDE_QUEUE_VALUE(found);
    bool due = rules->is_due != NULL && rules->is_due(waiter, value); /* perhaps out of turn: 9 */
    bool serves = (found & QUEUE_SERVING) == 0 &&
                  (due || ((found & QUEUE_WAITING) == 0 &&
                           ((found & QUEUE_CLOSED) != 0 || rules->admit(waiter, &value))));
    uintptr_t requests = due ? QUEUE_NEW | QUEUE_CANCEL : QUEUE_NEW;
    uintptr_t served = (found | QUEUE_SERVING) & ~(QUEUE_NEW | QUEUE_CANCEL | QUEUE_WAITING);
    if (!serves) {
        if (due)
            queue_request_sweep(queue);
        if (queue_announce(queue, state, requests))
            return true;
        if (!due)
            bide_atomic_retry();
        return false;
    }
    /* acquire: 3 and 4. */
    if (!bide_atomic_compare_exchange(&queue->state, state, served, acquire, relaxed)) {
        bide_atomic_retry();
        return false;
    }
    serving s = {.queue = queue, .rules = rules};
    s.sweeps = due;
    serving_run_and_wake(&s, served, found | QUEUE_NEW);
    return true;
}

void bide_waiter_queue_enlist(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules)
{
    bide_waiter_queue *queue = waiter->queue;
    bide_awaiter *awaiter = &waiter->awaiter;
    bide_assert(waiter->before == NULL); /* it is in no line */
    bide_assert(((uintptr_t)awaiter & QUEUE_SWEEP) == 0);
    bide_handshake_init(&waiter->handshake);
    uintptr_t newest = bide_atomic_load(&queue->arrivals, relaxed);
    for (;;) {
        awaiter->link = (bide_awaiter *)newest;
        /* release: 2 */
        if (bide_atomic_compare_exchange_weak(&queue->arrivals, &newest, (uintptr_t)awaiter,
                                              release, relaxed))
            break;
        bide_atomic_retry();
    }

    /* relaxed: the compare-exchange that follows validates it. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while (!queue_arrive(waiter, rules, &state)) {
    }
}

bool bide_waiter_queue_arm(bide_queue_waiter *waiter)
{
    return bide_handshake_arm(&waiter->handshake);
}

bide_frame *bide_waiter_queue_suspend(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules,
                                      bide_frame *frame)
{
    bide_queue_waiter_start(waiter); /* also if it ends here: it may be withdrawn after that */
    /* acquire: partner is close's release; writes from before it are visible. */
    if ((bide_atomic_load(&waiter->queue->state, acquire) & QUEUE_CLOSED) != 0) {
        if (!bide_awaiter_ready(&waiter->awaiter, waiter->awaiter.ops))
            bide_awaiter_finish_closed(&waiter->awaiter);
        return frame;
    }
    if (bide_spin_until_ready(&waiter->awaiter, frame))
        return frame;
    bide_waiter_queue_enlist(waiter, rules);
    return bide_waiter_queue_arm(waiter) ? frame : NULL;
}

/* ---- Cancelling, withdrawing, closing ---- */

/* Requests the removal of a waiter; 10. Returns false if it is ending already. */
static bool queue_request_removal(bide_waiter_queue *queue, bide_awaiter *awaiter)
{
    if (!bide_awaiter_leaves_(awaiter))
        return false;
    bide_awaiter **link = bide_awaiter_next_leaving_(awaiter);
    uintptr_t word = bide_atomic_load(&queue->leaving, relaxed);
    for (;;) {
        *link = (bide_awaiter *)(word & ~QUEUE_SWEEP);
        /* release: 10 */
        if (bide_atomic_compare_exchange(&queue->leaving, &word,
                                         (uintptr_t)awaiter | (word & QUEUE_SWEEP), release,
                                         relaxed))
            return true;
        bide_atomic_retry();
    }
}

void bide_waiter_queue_cancel(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules)
{
    bide_waiter_queue *queue = waiter->queue;
    bool requested = false;
    bool again = false;
    /* relaxed: its arrival is seen, or something later. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while (requested || (state & (QUEUE_WAITING | QUEUE_SERVING)) != 0) {
        if ((state & QUEUE_SERVING) != 0) {
            if (!requested) {
                requested = queue_request_removal(queue, &waiter->awaiter);
                if (!requested)
                    return;
                again = false;
            }
            /* release: the server must see the removal request. */
            if (bide_atomic_compare_exchange(&queue->state, &state, state | QUEUE_CANCEL, release,
                                             relaxed))
                return;
        } else {
            uintptr_t served =
                (state | QUEUE_SERVING) & ~(QUEUE_NEW | QUEUE_CANCEL | QUEUE_WAITING);
            /* acquire: 2 and 3. */
            if (bide_atomic_compare_exchange(&queue->state, &state, served, acquire, relaxed)) {
                serving s = {.queue = queue, .rules = rules};
                s.own = requested ? NULL : &waiter->awaiter;
                serving_run_and_wake(&s, served,
                                     (state & QUEUE_NEW) | (requested ? QUEUE_CANCEL : 0));
                return;
            }
        }
        if (again)
            bide_atomic_retry();
        again = true;
    }
}

void bide_waiter_queue_sweep(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules)
{
    /* relaxed: the caller's own enlisting is seen, or something later. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while ((state & (QUEUE_WAITING | QUEUE_SERVING)) != 0) {
        if ((state & QUEUE_SERVING) != 0) {
            queue_request_sweep(queue);
            /* release: the server must see which waiters were cancelled. */
            if (bide_atomic_compare_exchange(&queue->state, &state, state | QUEUE_CANCEL, release,
                                             relaxed))
                return;
        } else {
            uintptr_t served =
                (state | QUEUE_SERVING) & ~(QUEUE_NEW | QUEUE_CANCEL | QUEUE_WAITING);
            /* acquire: 2 and 3. */
            if (bide_atomic_compare_exchange(&queue->state, &state, served, acquire, relaxed)) {
                serving s = {.queue = queue, .rules = rules};
                s.sweeps = true;
                serving_run_and_wake(&s, served, state);
                return;
            }
        }
    }
}

bool bide_waiter_queue_withdraw(bide_awaiter *awaiter, const bide_waiter_queue_ops *rules)
{
    if (!bide_awaiter_suspended(awaiter))
        return false;
    bide_waiter_queue *queue = queue_waiter_of(awaiter)->queue;
    serving s = {.queue = queue, .rules = rules};
    s.own = awaiter;
    s.withdraws = true;
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while ((state & (QUEUE_WAITING | QUEUE_SERVING)) != 0) {
        uintptr_t served = (state | QUEUE_SERVING) & ~(QUEUE_NEW | QUEUE_CANCEL | QUEUE_WAITING);
        if ((state & QUEUE_SERVING) != 0) {
            bide_platform.yield();
            state = bide_atomic_load(&queue->state, relaxed);
            /* acquire: 2 and 3. */
        } else if (bide_atomic_compare_exchange(&queue->state, &state, served, acquire, relaxed)) {
            serving_run_and_wake(&s, served, state);
            return s.found;
        }
    }
    return false;
}

void bide_waiter_queue_close(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules)
{
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while ((state & QUEUE_CLOSED) == 0) {
        if ((state & (QUEUE_WAITING | QUEUE_SERVING)) == QUEUE_WAITING) {
            uintptr_t served = BIDE_QUEUE_VALUE(state) | QUEUE_CLOSED | QUEUE_SERVING;
            /* acquire: 2 and 3. release: as below. */
            if (bide_atomic_compare_exchange(&queue->state, &state, served, acq_rel, relaxed)) {
                serving s = {.queue = queue, .rules = rules};
                serving_run_and_wake(&s, served, state);
                return;
            }
        } else if (bide_atomic_compare_exchange(&queue->state, &state, state | QUEUE_CLOSED,
                                                release, relaxed)) {
            return; /* release: partners are all that find CLOSED */
        }
        bide_atomic_retry();
    }
}
