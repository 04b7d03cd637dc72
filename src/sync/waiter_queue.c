/*
 * Serving a queue. States, orders and their numbers: waiter_queue.h.
 */
#include "bide/waiter_queue.h"

#include "bide/stop.h"

#define SERVING ((uintptr_t)BIDE_QUEUE_SERVING_)
#define NEW     ((uintptr_t)BIDE_QUEUE_NEW_)
#define WAITING ((uintptr_t)BIDE_QUEUE_WAITING_)
#define CANCEL  ((uintptr_t)BIDE_QUEUE_CANCEL_)
#define CLOSED  ((uintptr_t)BIDE_QUEUE_CLOSED_)

enum { BEGUN, ARMED, ENDED };

static bide_queue_waiter *waiter_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_queue_waiter, awaiter);
}

/* ---- Serving ---- */

/* Puts those from `oldest` on into the line, each where it belongs. */
static void line_up(bide_waiter_queue *queue, const bide_queue_rules *rules, bide_awaiter *oldest)
{
    while (oldest != NULL) {
        bide_awaiter *next = oldest->link;
        oldest->link = NULL;
        if (rules->goes_first(waiter_of(oldest)))
            bide_awaiter_chain_prepend(&queue->line, oldest);
        else
            bide_awaiter_chain_append(&queue->line, oldest, oldest);
        oldest = next;
    }
}

static void take_arrivals(bide_waiter_queue *queue, const bide_queue_rules *rules)
{
    /* acquire: partner is the push's release (waiter_list.h, 3). */
    bide_awaiter *newest =
        (bide_awaiter *)bide_atomic_exchange(&queue->arrivals.word, BIDE_LIST_EMPTY, acquire);
    if (newest == NULL)
        return;
    bide_awaiter *oldest = bide_awaiter_reverse(newest);
    if (rules->goes_first != NULL)
        line_up(queue, rules, oldest);
    else
        bide_awaiter_chain_append(&queue->line, oldest, newest);
}

/* One time of serving. */
typedef struct serving {
    bide_waiter_queue *queue;
    const bide_queue_rules *rules;
    bide_awaiter *withdrawn; /* to be removed, or NULL */
    bool found;              /* it was in line, and is not any more */
    uintptr_t taken;         /* from the value, for those that were admitted: 5 */
    bide_awaiter_chain
        leaving; /* not in line any more, unless something comes before the server leaves */
    bide_awaiter_chain ended;
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

/* Puts those that were about to leave back where they stood when the line was swept. */
static void put_back(serving *s)
{
    bide_awaiter_chain others = s->queue->line;
    s->queue->line.first = NULL;
    while (others.first != NULL || s->leaving.first != NULL) {
        bool other = s->leaving.first == NULL ||
                     (others.first != NULL &&
                      waiter_of(others.first)->wants < waiter_of(s->leaving.first)->wants);
        append(&s->queue->line, bide_awaiter_chain_take(other ? &others : &s->leaving));
    }
}

/*
 * Judges anew, by the value that is there by now, those that were about to leave. Returns CANCEL if they are in line
 * again, to be looked for there.
 */
static uintptr_t leave_again(serving *s, uintptr_t *value)
{
    bide_awaiter_chain chain = s->leaving;
    uintptr_t now = *value;
    if (chain.first != NULL && s->rules->admits_canceled) {
        put_back(s);
        return CANCEL;
    }
    s->leaving.first = NULL;
    for (bide_awaiter *a; (a = bide_awaiter_chain_take(&chain)) != NULL;) {
        if (is_due(s, a, now)) {
            append(&s->ended, a);
        } else {
            leave(s, a, value);
            append(&s->leaving, a);
        }
    }
    return 0;
}

/* Removes from the line those that are due, those that were asked to stop, and the one that is withdrawn. */
static void sweep(serving *s, uintptr_t *value)
{
    bide_awaiter_chain line = s->queue->line;
    uintptr_t now = *value;
    uint32_t place = 0;
    s->queue->line.first = NULL;
    for (bide_awaiter *a; (a = bide_awaiter_chain_take(&line)) != NULL;) {
        if (s->rules->admits_canceled)
            waiter_of(a)->wants = place++;
        if (is_due(s, a, now)) {
            append(&s->ended, a);
        } else if (a == s->withdrawn || bide_awaiter_is_canceled(a)) {
            leave(s, a, value);
            append(&s->leaving, a);
        } else {
            append(&s->queue->line, a);
        }
    }
}

/* Takes from the front of the line all whose time has come; if it is closed, the others too. */
static void admit(serving *s, uintptr_t *value, bool closed)
{
    bide_awaiter *a;
    uintptr_t before = *value;
    bool refused = false;
    while ((a = s->queue->line.first) != NULL) {
        refused = refused || !s->rules->admit(waiter_of(a), value);
        if (refused && !closed)
            break;
        s->queue->line.first = a->link;
        if (refused && !is_due(s, a, *value)) {
            leave(s, a, value);
            bide_awaiter_end_closed(a);
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
        if (a == s->withdrawn) {
            a->link = NULL;
            s->found = true;
        } else {
            bide_awaiter_end_canceled(a);
            append(&s->ended, a);
        }
    }
    if (others.first != NULL)
        bide_awaiter_chain_append(&s->ended, others.first, others.last);
}

/* With what state the server leaves, if it has changed nothing but the value to `value`. */
static uintptr_t left_with(const serving *s, uintptr_t state, uintptr_t value)
{
    if (s->queue->line.first != NULL)
        return value | (state & CLOSED) | WAITING;
    return (s->rules->settle != NULL ? s->rules->settle(value) : value) | (state & CLOSED);
}

/*
 * Serves, and leaves. `state` is what the server has put, with SERVING; `wishes` (NEW, CANCEL) what it has taken out
 * of it. Those that have ended are in `ended`, in the order in which they came, but first those that were asked to
 * stop. The queue is not touched afterwards.
 */
static void serve(serving *s, uintptr_t state, uintptr_t wishes)
{
    bide_waiter_queue *queue = s->queue;
    for (;;) {
        uintptr_t value = BIDE_QUEUE_VALUE(state) - s->taken;
        bool closed = (state & CLOSED) != 0;
        wishes |= leave_again(s, &value);
        if ((wishes & NEW) != 0)
            take_arrivals(queue, s->rules);
        if (s->rules->admits_canceled)
            admit(s, &value, false);
        if ((wishes & CANCEL) != 0)
            sweep(s, &value);
        if (closed || !s->rules->admits_canceled)
            admit(s, &value, closed);

        uintptr_t left = left_with(s, state, value);
        /* release: 3. acquire: 4, of all that has been put meanwhile. */
        if (bide_atomic_compare_exchange(&queue->state, &state, left, acq_rel, relaxed)) {
            end_leaving(s);
            return;
        }
        wishes = state & (NEW | CANCEL);
        if (wishes != 0) {
            /* acquire: 2, of those that have come since; and why they were asked to stop. */
            state = bide_atomic_fetch_and(&queue->state, ~(NEW | CANCEL), acquire);
            wishes = state & (NEW | CANCEL);
            state &= ~(NEW | CANCEL);
        }
    }
}

static serving serving_of(bide_waiter_queue *queue, const bide_queue_rules *rules,
                          bide_awaiter *withdrawn)
{
    return (serving){queue, rules, withdrawn, false, 0, {NULL, NULL}, {NULL, NULL}};
}

/* Finishes the handshakes (6) of those that have ended: wakes whose suspend is done with the queue. */
static void hand_over(const serving *s)
{
    bide_awaiter *ended = s->ended.first;
    bide_awaiter_chain armed = {NULL, NULL};
    while (ended != NULL) {
        bide_awaiter *next = ended->link;
        /* release: what its end has written. acquire: what its suspend has done. */
        if (bide_atomic_exchange(&waiter_of(ended)->handshake, ENDED, acq_rel) == ARMED) {
            ended->link = NULL;
            bide_awaiter_chain_append(&armed, ended, ended);
        }
        ended = next;
    }
    if (s->rules->hand == NULL)
        bide_wake(armed.first);
    else if (armed.first != NULL)
        s->rules->hand(s->rules, &armed);
}

/* Serves a queue whose state was `state` (WAITING, not SERVING) and is `value` and SERVING now. */
static void serve_and_wake(bide_waiter_queue *queue, const bide_queue_rules *rules, uintptr_t state,
                           uintptr_t wishes)
{
    serving s = serving_of(queue, rules, NULL);
    serve(&s, state, wishes & (NEW | CANCEL));
    hand_over(&s);
}

bool bide_waiter_queue_put(bide_waiter_queue *queue, const bide_queue_rules *rules,
                           uintptr_t *state, uintptr_t value)
{
    uintptr_t found = *state;
    if ((found & (WAITING | SERVING)) == WAITING) {
        uintptr_t serving = value | (found & CLOSED) | SERVING;
        /* acquire: 1, 2 and 3. release: 4, for who reads the value before the server has left. */
        if (!bide_atomic_compare_exchange(&queue->state, state, serving, acq_rel, relaxed))
            return false;
        serve_and_wake(queue, rules, serving, found);
        return true;
    }
    uintptr_t put = value | (found & (BIDE_QUEUE_ONE - 1));
    /* release: 4. */
    return bide_atomic_compare_exchange(&queue->state, state, put, release, relaxed);
}

/* ---- Waiting ---- */

/* Says that somebody has arrived: `wishes`. */
static bool announce(bide_waiter_queue *queue, uintptr_t *state, uintptr_t wishes)
{
    /* release: 2 */
    return bide_atomic_compare_exchange(&queue->state, state, *state | WAITING | wishes, release,
                                        relaxed);
}

/* The same, and serves him if that is to be done. False: the state is another, now in *state. */
static bool arrive(bide_queue_waiter *waiter, const bide_queue_rules *rules, uintptr_t *state)
{
    bide_waiter_queue *queue = waiter->queue;
    uintptr_t found = *state;
    uintptr_t value = BIDE_QUEUE_VALUE(found);
    bool due = rules->is_due != NULL && rules->is_due(waiter, value); /* perhaps out of turn: 9 */
    bool serves = (found & SERVING) == 0 &&
                  (due || ((found & WAITING) == 0 &&
                           ((found & CLOSED) != 0 || rules->admit(waiter, &value))));
    uintptr_t wishes = due ? NEW | CANCEL : NEW;
    uintptr_t serving = (found | SERVING) & ~(NEW | CANCEL | WAITING);
    if (!serves)
        return announce(queue, state, wishes);
    /* acquire: 3 and 4. */
    if (!bide_atomic_compare_exchange(&queue->state, state, serving, acquire, relaxed))
        return false;
    serve_and_wake(queue, rules, serving, found | wishes);
    return true;
}

void bide_waiter_queue_enlist(bide_queue_waiter *waiter, const bide_queue_rules *rules)
{
    bide_waiter_queue *queue = waiter->queue;
    bide_awaiter *awaiter = &waiter->awaiter;
    bide_atomic_init(&waiter->handshake, BEGUN);
    uintptr_t newest = bide_atomic_load(&queue->arrivals.word, relaxed);
    for (;;) {
        awaiter->link = (bide_awaiter *)newest;
        /* release: 2; partner is the server's acquire. */
        if (bide_atomic_compare_exchange_weak(&queue->arrivals.word, &newest, (uintptr_t)awaiter,
                                              release, relaxed))
            break;
        bide_atomic_retry();
    }

    /* relaxed: what is found is compared by what follows. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while (!arrive(waiter, rules, &state))
        bide_atomic_retry();
}

bool bide_waiter_queue_arm(bide_queue_waiter *waiter)
{
    /* release: the queue is used no more. acquire: the results. 6. */
    return bide_atomic_exchange(&waiter->handshake, ARMED, acq_rel) == ENDED;
}

bide_frame *bide_waiter_queue_suspend(bide_queue_waiter *waiter, const bide_queue_rules *rules,
                                      bide_frame *frame)
{
    /* acquire: partner is the closing's release; what was written before it is seen. */
    if ((bide_atomic_load(&waiter->queue->state, acquire) & CLOSED) != 0) {
        if (!bide_awaiter_ready(&waiter->awaiter, waiter->awaiter.ops))
            bide_awaiter_end_closed(&waiter->awaiter);
        return frame;
    }
    if (bide_look(&waiter->awaiter, frame))
        return frame;
    bide_waiter_queue_enlist(waiter, rules);
    return bide_waiter_queue_arm(waiter) ? frame : NULL;
}

/* ---- Ending it ---- */

void bide_waiter_queue_cancel(bide_waiter_queue *queue, const bide_queue_rules *rules)
{
    /* relaxed: its arrival is seen, or something later. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while ((state & (WAITING | SERVING)) != 0) {
        if ((state & SERVING) != 0) {
            /* release: the server must see who was asked to stop. */
            if (bide_atomic_compare_exchange(&queue->state, &state, state | CANCEL, release,
                                             relaxed))
                return;
        } else {
            uintptr_t serving = (state | SERVING) & ~(NEW | CANCEL | WAITING);
            /* acquire: 2 and 3. */
            if (bide_atomic_compare_exchange(&queue->state, &state, serving, acquire, relaxed)) {
                serve_and_wake(queue, rules, serving, (state & NEW) | CANCEL);
                return;
            }
        }
        bide_atomic_retry();
    }
}

bool bide_waiter_queue_withdraw(bide_awaiter *awaiter, const bide_queue_rules *rules)
{
    bide_waiter_queue *queue = waiter_of(awaiter)->queue;
    serving s = serving_of(queue, rules, awaiter);
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while ((state & (WAITING | SERVING)) != 0) {
        uintptr_t serving = (state | SERVING) & ~(NEW | CANCEL | WAITING);
        if ((state & SERVING) != 0) {
            bide_platform.yield();
            state = bide_atomic_load(&queue->state, relaxed);
            /* acquire: 2 and 3. */
        } else if (bide_atomic_compare_exchange(&queue->state, &state, serving, acquire, relaxed)) {
            serve(&s, serving, (state & NEW) | CANCEL);
            hand_over(&s);
            return s.found;
        }
    }
    return false;
}

void bide_waiter_queue_close(bide_waiter_queue *queue, const bide_queue_rules *rules)
{
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while ((state & CLOSED) == 0) {
        if ((state & (WAITING | SERVING)) == WAITING) {
            uintptr_t serving = BIDE_QUEUE_VALUE(state) | CLOSED | SERVING;
            /* acquire: 2 and 3. release: as below. */
            if (bide_atomic_compare_exchange(&queue->state, &state, serving, acq_rel, relaxed)) {
                serve_and_wake(queue, rules, serving, state);
                return;
            }
        } else if (bide_atomic_compare_exchange(&queue->state, &state, state | CLOSED, release,
                                                relaxed)) {
            return; /* release: partners are all who find CLOSED */
        }
        bide_atomic_retry();
    }
}
