/*
 * Serving a queue. States, orders and their numbers: waiter_queue.h. A request that is left in the
 * state is a `wish` here: NEW or CANCEL.
 */
#include "bide/extend/waiter_queue.h"

#include "list.h"

#include "bide/stop.h"

#define SERVING ((uintptr_t)BIDE_QUEUE_SERVING_)
#define NEW     ((uintptr_t)BIDE_QUEUE_NEW_)
#define WAITING ((uintptr_t)BIDE_QUEUE_WAITING_)
#define CANCEL  ((uintptr_t)BIDE_QUEUE_CANCEL_)
#define CLOSED  ((uintptr_t)BIDE_QUEUE_CLOSED_)

/* Of `leaving`. */
#define SWEEP ((uintptr_t)1)

static bide_queue_waiter *waiter_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_queue_waiter, awaiter);
}

/* ---- The line (line.h): oldest first ---- */

static bide_awaiter **before_of(bide_awaiter *awaiter)
{
    return &waiter_of(awaiter)->before;
}

static bool is_in_line(bide_awaiter *awaiter)
{
    return waiter_of(awaiter)->before != NULL;
}

/* Puts the chain from `newest` to an oldest behind the line. */
static void append_reversed(bide_waiter_queue *queue, bide_awaiter *newest)
{
    bide_awaiter *later = NULL;
    bide_awaiter *oldest = newest;
    for (bide_awaiter *a = newest; a != NULL;) {
        bide_awaiter *before = a->link;
        a->link = later;
        waiter_of(a)->before = before;
        oldest = later = a;
        a = before;
    }
    bide_awaiter *first = queue->line;
    if (first == NULL) {
        queue->line = first = oldest;
    } else {
        bide_awaiter *last = waiter_of(first)->before;
        last->link = oldest;
        waiter_of(oldest)->before = last;
    }
    waiter_of(first)->before = newest;
}

static void prepend(bide_waiter_queue *queue, bide_awaiter *awaiter)
{
    bide_awaiter *first = queue->line;
    awaiter->link = first;
    waiter_of(awaiter)->before = first != NULL ? waiter_of(first)->before : awaiter;
    if (first != NULL)
        waiter_of(first)->before = awaiter;
    queue->line = awaiter;
}

static void take_out(bide_waiter_queue *queue, bide_awaiter *awaiter)
{
    line_take_out(&queue->line, awaiter, before_of);
}

static void take_arrivals(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules)
{
    /* acquire: partner is the push's release, 2. */
    bide_awaiter *newest = (bide_awaiter *)bide_atomic_exchange(&queue->arrivals, 0, acquire);
    if (newest == NULL)
        return;
    if (rules->goes_first == NULL) {
        append_reversed(queue, newest);
        return;
    }
    for (bide_awaiter *a = bide_awaiter_reverse(newest), *next; a != NULL; a = next) {
        next = a->link;
        a->link = NULL;
        if (rules->goes_first(waiter_of(a)))
            prepend(queue, a);
        else
            append_reversed(queue, a);
    }
}

/* ---- Serving ---- */

/* One time of serving. */
typedef struct serving {
    bide_waiter_queue *queue;
    const bide_waiter_queue_ops *rules;
    bide_awaiter *own;          /* to be removed, or NULL */
    bool withdraws;             /* and not ended */
    bool is_aside;              /* it has stepped out of the line */
    bool found;                 /* it was in line, was removed, and is not any more */
    bool sweeps;                /* the whole line is to be looked through */
    uintptr_t taken;            /* from the value, for those that were admitted: 5 */
    bide_awaiter *named;        /* to be removed too; by next_leaving */
    bide_awaiter_chain leaving; /* not in line now; stay so if nothing comes before the leaving */
    bide_awaiter_chain ended;
    bide_awaiter *woken; /* were named, but had ended: to be woken as they stand */
} serving;

static bool is_due(const serving *s, bide_awaiter *awaiter, uintptr_t value)
{
    return s->rules->is_due != NULL && s->rules->is_due(waiter_of(awaiter), value);
}

static void leave(const serving *s, bide_awaiter *awaiter, uintptr_t *value)
{
    if (s->rules->leave != NULL)
        s->rules->leave(waiter_of(awaiter), value);
}

static void append(bide_awaiter_chain *chain, bide_awaiter *awaiter)
{
    awaiter->link = NULL;
    bide_awaiter_chain_append(chain, awaiter, awaiter);
}

/* One that is not in line any more leaves, or has ended by the value that is there by now. */
static void judge(serving *s, bide_awaiter *awaiter, uintptr_t now, uintptr_t *value)
{
    if (is_due(s, awaiter, now)) {
        append(&s->ended, awaiter);
    } else {
        leave(s, awaiter, value);
        append(&s->leaving, awaiter);
    }
}

/* Those that were about to leave are judged anew. */
static void judge_again(serving *s, uintptr_t *value)
{
    bide_awaiter_chain chain = s->leaving;
    uintptr_t now = *value;
    s->leaving.first = NULL;
    for (bide_awaiter *a; (a = bide_awaiter_chain_take(&chain)) != NULL;)
        judge(s, a, now, value);
}

/* Takes the names of those that are to be removed. */
static void take_named(serving *s)
{
    /* acquire: partners are the releases of names and SWEEP, 10 and 11. */
    uintptr_t word = bide_atomic_exchange(&s->queue->leaving, 0, acquire);
    s->sweeps = s->sweeps || (word & SWEEP) != 0;
    for (bide_awaiter *a = (bide_awaiter *)(word & ~SWEEP), *next; a != NULL; a = next) {
        next = *bide_awaiter_next_leaving_(a);
        *bide_awaiter_next_leaving_(a) = s->named;
        s->named = a;
    }
}

/*
 * Removes from the line those that are to be removed. All of it is looked through if that was asked
 * for.
 */
static void remove_named(serving *s, uintptr_t *value)
{
    uintptr_t now = *value;
    if (s->own != NULL && is_in_line(s->own)) {
        take_out(s->queue, s->own);
        judge(s, s->own, now, value);
    }
    for (bide_awaiter *a = s->named, *next; a != NULL; a = next) {
        next = *bide_awaiter_next_leaving_(a);
        if (is_in_line(a)) {
            take_out(s->queue, a);
            judge(s, a, now, value);
        }
        say_has_left(a, &s->woken);
    }
    s->named = NULL;
    if (!s->sweeps)
        return;
    for (bide_awaiter *a = s->queue->line, *next; a != NULL; a = next) {
        next = a->link;
        if (is_due(s, a, now) || bide_awaiter_is_cancelled(a)) {
            take_out(s->queue, a);
            judge(s, a, now, value);
        }
    }
}

/*
 * The same for rules that admit a cancelled waiter, as the last thing before the server leaves.
 * Such waiters step out of the line, and step in again if the server does not leave.
 */
static void step_aside(serving *s, uintptr_t *value)
{
    bide_awaiter *outside = NULL; /* the last to step out first */
    for (bide_awaiter *a = s->named, *next; a != NULL; a = next) {
        bide_awaiter **link = bide_awaiter_next_leaving_(a);
        next = *link;
        if (!is_in_line(a)) { /* it was admitted */
            say_has_left(a, &s->woken);
            continue;
        }
        line_step_out(&s->queue->line, a, before_of);
        leave(s, a, value);
        *link = outside;
        outside = a;
    }
    s->named = outside;
    if (s->own != NULL && is_in_line(s->own)) {
        line_step_out(&s->queue->line, s->own, before_of);
        leave(s, s->own, value);
        s->is_aside = true;
    }
}

static void step_back(serving *s)
{
    if (s->is_aside)
        line_step_in(&s->queue->line, s->own, before_of);
    s->is_aside = false;
    for (bide_awaiter *a = s->named; a != NULL; a = *bide_awaiter_next_leaving_(a))
        line_step_in(&s->queue->line, a, before_of);
}

/*
 * They have left with the server. Its own waiter, if it has not stepped aside, may be in line again
 * by now, of this queue or another: it is not looked at.
 */
static void stay_outside(serving *s)
{
    if (s->is_aside) {
        waiter_of(s->own)->before = NULL;
        append(&s->leaving, s->own);
    }
    for (bide_awaiter *a = s->named, *next; a != NULL; a = next) {
        next = *bide_awaiter_next_leaving_(a);
        waiter_of(a)->before = NULL;
        append(&s->leaving, a);
        say_has_left(a, &s->woken);
    }
}

/* Takes from the front of the line all that are admitted; if it is closed, the others too. */
static void admit(serving *s, uintptr_t *value, bool closed)
{
    bide_awaiter *a;
    uintptr_t before = *value;
    bool refused = false;
    while ((a = s->queue->line) != NULL) {
        refused = refused || !s->rules->admit(waiter_of(a), value);
        if (refused && !closed)
            break;
        take_out(s->queue, a);
        if (refused && !is_due(s, a, *value)) {
            leave(s, a, value);
            bide_awaiter_finish_closed(a);
        } else if (s->rules->admitted != NULL) {
            s->rules->admitted(waiter_of(a), *value);
        }
        append(&s->ended, a);
    }
    s->taken += before - *value;
}

/* The server has left: those that were leaving have ended, in front of the others. */
static void end_leaving(serving *s)
{
    bide_awaiter_chain others = s->ended;
    s->ended.first = NULL;
    for (bide_awaiter *a; (a = bide_awaiter_chain_take(&s->leaving)) != NULL;) {
        if (a == s->own && s->withdraws) {
            a->link = NULL;
            s->found = true;
        } else {
            bide_awaiter_finish_cancelled(a);
            append(&s->ended, a);
        }
    }
    if (others.first != NULL)
        bide_awaiter_chain_append(&s->ended, others.first, others.last);
}

/* With what state the server leaves, if it has changed nothing but the value to `value`. */
static uintptr_t left_with(const serving *s, uintptr_t state, uintptr_t value)
{
    if (s->queue->line != NULL)
        return value | (state & CLOSED) | WAITING;
    return (s->rules->settle != NULL ? s->rules->settle(value) : value) | (state & CLOSED);
}

/*
 * Serves, and leaves. `state` is what the server has put, with SERVING; `wishes` (NEW, CANCEL) what
 * it has taken out of it. Those that have ended are in `ended`, in the order in which they came,
 * but first those that were asked to stop. The queue is not touched afterwards.
 */
static void serve(serving *s, uintptr_t state, uintptr_t wishes)
{
    bide_waiter_queue *queue = s->queue;
    for (;;) {
        uintptr_t value = BIDE_QUEUE_VALUE(state) - s->taken;
        bool closed = (state & CLOSED) != 0;
        bool steps_aside = s->rules->admits_cancelled && !closed;
        judge_again(s, &value);
        if ((wishes & CANCEL) != 0)
            take_named(s);
        if ((wishes & NEW) != 0 || s->named != NULL || s->sweeps) /* 10 */
            take_arrivals(queue, s->rules);
        /* Also of a queue that was closed after something was put. */
        if (s->rules->admits_cancelled)
            admit(s, &value, false);
        if (steps_aside) {
            step_aside(s, &value);
        } else {
            remove_named(s, &value);
            admit(s, &value, closed);
        }

        uintptr_t left = left_with(s, state, value);
        /* release: 3. acquire: 4, of all that has been put meanwhile. */
        if (bide_atomic_compare_exchange(&queue->state, &state, left, acq_rel, relaxed)) {
            stay_outside(s);
            end_leaving(s);
            return;
        }
        if (steps_aside)
            step_back(s);
        wishes = state & (NEW | CANCEL);
        if (wishes != 0) {
            /* acquire: 2, of those that have come since; and why they were asked to stop. */
            state = bide_atomic_fetch_and(&queue->state, ~(NEW | CANCEL), acquire);
            wishes = state & (NEW | CANCEL);
            state &= ~(NEW | CANCEL);
        }
    }
}

static serving serving_of(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules)
{
    return (serving){.queue = queue, .rules = rules};
}

static bide_handshake *handshake_of(bide_awaiter *awaiter)
{
    return &waiter_of(awaiter)->handshake;
}

/* Wakes the waiters that have ended and that their suspend is done with (6), or hands them over. */
static void hand_over(const serving *s)
{
    bide_awaiter_chain armed = bide_handshake_finish_all(s->ended.first, handshake_of);
    bide_wake(s->woken);
    if (s->rules->hand == NULL)
        bide_wake(armed.first);
    else if (armed.first != NULL)
        s->rules->hand(s->rules, &armed);
}

/* Serves a queue that has the state `state`, with SERVING, by now; `wishes` as in serve. */
static void serve_and_wake(serving *s, uintptr_t state, uintptr_t wishes)
{
    serve(s, state, wishes & (NEW | CANCEL));
    hand_over(s);
}

bool bide_waiter_queue_put(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules,
                           uintptr_t *state, uintptr_t value)
{
    uintptr_t found = *state;
    if ((found & (WAITING | SERVING)) == WAITING) {
        uintptr_t served = value | (found & CLOSED) | SERVING;
        /*
         * acquire: 1, 2 and 3. release: 4, for a take that reads the value before the server has
         * left.
         */
        if (!bide_atomic_compare_exchange(&queue->state, state, served, acq_rel, relaxed))
            return false;
        serving s = serving_of(queue, rules);
        serve_and_wake(&s, served, found);
        return true;
    }
    uintptr_t put = value | (found & (BIDE_QUEUE_ONE - 1));
    /* release: 4. */
    return bide_atomic_compare_exchange(&queue->state, state, put, release, relaxed);
}

/* ---- Waiting ---- */

/* Says that a waiter has arrived: `wishes`. */
static bool announce(bide_waiter_queue *queue, uintptr_t *state, uintptr_t wishes)
{
    /* release: 2 */
    return bide_atomic_compare_exchange(&queue->state, state, *state | WAITING | wishes, release,
                                        relaxed);
}

/* The whole line is to be looked through, by the server that finds CANCEL. */
static void ask_for_sweep(bide_waiter_queue *queue)
{
    /* release: 11; partner is the server's acquire. */
    bide_atomic_fetch_or(&queue->leaving, SWEEP, release);
}

/* Says that a waiter has arrived, or serves. False: the state is another, now in *state. */
static bool arrive(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules, uintptr_t *state)
{
    bide_waiter_queue *queue = waiter->queue;
    uintptr_t found = *state;
    uintptr_t value = BIDE_QUEUE_VALUE(found);
    bool due = rules->is_due != NULL && rules->is_due(waiter, value); /* perhaps out of turn: 9 */
    bool serves = (found & SERVING) == 0 &&
                  (due || ((found & WAITING) == 0 &&
                           ((found & CLOSED) != 0 || rules->admit(waiter, &value))));
    uintptr_t wishes = due ? NEW | CANCEL : NEW;
    uintptr_t served = (found | SERVING) & ~(NEW | CANCEL | WAITING);
    if (!serves) {
        if (due)
            ask_for_sweep(queue);
        if (announce(queue, state, wishes))
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
    serving s = serving_of(queue, rules);
    s.sweeps = due;
    serve_and_wake(&s, served, found | NEW);
    return true;
}

void bide_waiter_queue_enlist(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules)
{
    bide_waiter_queue *queue = waiter->queue;
    bide_awaiter *awaiter = &waiter->awaiter;
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

    /* relaxed: what is found is compared by what follows. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while (!arrive(waiter, rules, &state)) {
    }
}

bool bide_waiter_queue_arm(bide_queue_waiter *waiter)
{
    return bide_handshake_arm(&waiter->handshake);
}

bide_frame *bide_waiter_queue_suspend(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules,
                                      bide_frame *frame)
{
    /* acquire: partner is the closing's release; what was written before it is seen. */
    if ((bide_atomic_load(&waiter->queue->state, acquire) & CLOSED) != 0) {
        if (!bide_awaiter_ready(&waiter->awaiter, waiter->awaiter.ops))
            bide_awaiter_finish_closed(&waiter->awaiter);
        return frame;
    }
    if (bide_spin_until_ready(&waiter->awaiter, frame))
        return frame;
    bide_queue_waiter_begin(waiter);
    bide_waiter_queue_enlist(waiter, rules);
    return bide_waiter_queue_arm(waiter) ? frame : NULL;
}

/* ---- Ending it ---- */

/* Names one that is to be removed; 10. False: it cannot be. */
static bool name(bide_waiter_queue *queue, bide_awaiter *awaiter)
{
    if (!bide_awaiter_leaves_(awaiter))
        return false;
    bide_awaiter **link = bide_awaiter_next_leaving_(awaiter);
    uintptr_t word = bide_atomic_load(&queue->leaving, relaxed);
    for (;;) {
        *link = (bide_awaiter *)(word & ~SWEEP);
        /* release: 10 */
        if (bide_atomic_compare_exchange(&queue->leaving, &word,
                                         (uintptr_t)awaiter | (word & SWEEP), release, relaxed))
            return true;
        bide_atomic_retry();
    }
}

void bide_waiter_queue_cancel(bide_queue_waiter *waiter, const bide_waiter_queue_ops *rules)
{
    bide_waiter_queue *queue = waiter->queue;
    bool named = false;
    bool again = false;
    /* relaxed: its arrival is seen, or something later. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while (named || (state & (WAITING | SERVING)) != 0) {
        if ((state & SERVING) != 0) {
            if (!named) {
                named = name(queue, &waiter->awaiter);
                if (!named)
                    return;
                again = false;
            }
            /* release: the server must see which waiter was named. */
            if (bide_atomic_compare_exchange(&queue->state, &state, state | CANCEL, release,
                                             relaxed))
                return;
        } else {
            uintptr_t served = (state | SERVING) & ~(NEW | CANCEL | WAITING);
            /* acquire: 2 and 3. */
            if (bide_atomic_compare_exchange(&queue->state, &state, served, acquire, relaxed)) {
                serving s = serving_of(queue, rules);
                s.own = named ? NULL : &waiter->awaiter;
                serve_and_wake(&s, served, (state & NEW) | (named ? CANCEL : 0));
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
    /* relaxed: what the caller has enlisted is seen, or something later. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while ((state & (WAITING | SERVING)) != 0) {
        if ((state & SERVING) != 0) {
            ask_for_sweep(queue);
            /* release: the server must see what was asked to stop. */
            if (bide_atomic_compare_exchange(&queue->state, &state, state | CANCEL, release,
                                             relaxed))
                return;
        } else {
            uintptr_t served = (state | SERVING) & ~(NEW | CANCEL | WAITING);
            /* acquire: 2 and 3. */
            if (bide_atomic_compare_exchange(&queue->state, &state, served, acquire, relaxed)) {
                serving s = serving_of(queue, rules);
                s.sweeps = true;
                serve_and_wake(&s, served, state);
                return;
            }
        }
    }
}

bool bide_waiter_queue_withdraw(bide_awaiter *awaiter, const bide_waiter_queue_ops *rules)
{
    if (!bide_awaiter_suspended(awaiter))
        return false;
    bide_waiter_queue *queue = waiter_of(awaiter)->queue;
    serving s = serving_of(queue, rules);
    s.own = awaiter;
    s.withdraws = true;
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while ((state & (WAITING | SERVING)) != 0) {
        uintptr_t served = (state | SERVING) & ~(NEW | CANCEL | WAITING);
        if ((state & SERVING) != 0) {
            bide_platform.yield();
            state = bide_atomic_load(&queue->state, relaxed);
            /* acquire: 2 and 3. */
        } else if (bide_atomic_compare_exchange(&queue->state, &state, served, acquire, relaxed)) {
            serve_and_wake(&s, served, state);
            return s.found;
        }
    }
    return false;
}

void bide_waiter_queue_close(bide_waiter_queue *queue, const bide_waiter_queue_ops *rules)
{
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while ((state & CLOSED) == 0) {
        if ((state & (WAITING | SERVING)) == WAITING) {
            uintptr_t served = BIDE_QUEUE_VALUE(state) | CLOSED | SERVING;
            /* acquire: 2 and 3. release: as below. */
            if (bide_atomic_compare_exchange(&queue->state, &state, served, acq_rel, relaxed)) {
                serving s = serving_of(queue, rules);
                serve_and_wake(&s, served, state);
                return;
            }
        } else if (bide_atomic_compare_exchange(&queue->state, &state, state | CLOSED, release,
                                                relaxed)) {
            return; /* release: partners are all that find CLOSED */
        }
        bide_atomic_retry();
    }
}
