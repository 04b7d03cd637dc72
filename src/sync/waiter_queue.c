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

/* Moves from the line to `swept` the one that is withdrawn, and those that were asked to stop. */
static void sweep(bide_waiter_queue *queue, const bide_queue_rules *rules, uintptr_t *value,
                  const bide_awaiter *withdrawn, bide_awaiter_chain *swept)
{
    bide_awaiter_chain line = queue->line;
    queue->line.first = NULL;
    for (bide_awaiter *a; (a = bide_awaiter_chain_take(&line)) != NULL;) {
        bool leaves = a == withdrawn || bide_awaiter_is_canceled(a);
        a->link = NULL;
        if (leaves && rules->leave != NULL)
            rules->leave(waiter_of(a), value);
        bide_awaiter_chain_append(leaves ? swept : &queue->line, a, a);
    }
}

/* They have left. True if `withdrawn` is among them. */
static bool end_swept(bide_awaiter_chain *swept, const bide_awaiter *withdrawn,
                      bide_awaiter_chain *ended)
{
    bool found = false;
    for (bide_awaiter *a; (a = bide_awaiter_chain_take(swept)) != NULL;) {
        a->link = NULL;
        found = found || a == withdrawn;
        if (a == withdrawn)
            continue;
        bide_awaiter_end_canceled(a);
        bide_awaiter_chain_append(ended, a, a);
    }
    return found;
}

/* They have not, after all. */
static void put_back(bide_waiter_queue *queue, bide_awaiter_chain *swept)
{
    bide_awaiter_chain line = queue->line;
    queue->line = *swept;
    if (line.first != NULL)
        bide_awaiter_chain_append(&queue->line, line.first, line.last);
    swept->first = NULL;
}

/* Moves from the front of the line to `ended` all whose time has come; if it is closed, the others too. */
static void admit(bide_waiter_queue *queue, const bide_queue_rules *rules, uintptr_t *value,
                  bool closed, bide_awaiter_chain *ended)
{
    bide_awaiter *a;
    bool refused = false;
    while ((a = queue->line.first) != NULL) {
        refused = refused || !rules->admit(waiter_of(a), value);
        if (refused && !closed)
            return;
        if (refused) {
            if (rules->leave != NULL)
                rules->leave(waiter_of(a), value);
            bide_awaiter_end_closed(a);
        }
        queue->line.first = a->link;
        a->link = NULL;
        bide_awaiter_chain_append(ended, a, a);
    }
}

/*
 * Serves, and leaves. `state` is what the server has put, with SERVING; `wishes` (NEW, CANCEL) what it has taken out
 * of it. Those that have ended are in `ended`, in the order in which they came. Returns whether `withdrawn` was there.
 * The queue is not touched afterwards.
 */
static bool serve(bide_waiter_queue *queue, const bide_queue_rules *rules, uintptr_t state,
                  uintptr_t wishes, const bide_awaiter *withdrawn, bide_awaiter_chain *ended)
{
    uintptr_t taken = 0; /* from the value: 5 */
    bool found = false;
    bide_awaiter_chain swept = {NULL, NULL};
    for (;;) {
        uintptr_t value = BIDE_QUEUE_VALUE(state) - taken;
        bool closed = (state & CLOSED) != 0;
        if ((wishes & NEW) != 0)
            take_arrivals(queue, rules);
        if (rules->admits_canceled) {
            admit(queue, rules, &value, false, ended);
            taken = BIDE_QUEUE_VALUE(state) - value;
        }
        if ((wishes & CANCEL) != 0 || (withdrawn != NULL && !found))
            sweep(queue, rules, &value, withdrawn, &swept);
        if (!rules->admits_canceled || closed) {
            found = end_swept(&swept, withdrawn, ended) || found;
            admit(queue, rules, &value, closed, ended);
            taken = BIDE_QUEUE_VALUE(state) - value;
        }

        uintptr_t left =
            value | (state & CLOSED) | (queue->line.first != NULL ? WAITING : (uintptr_t)0);
        /* release: 3. acquire: 4, of all that has been put meanwhile. */
        if (bide_atomic_compare_exchange(&queue->state, &state, left, acq_rel, relaxed))
            return end_swept(&swept, withdrawn, ended) || found;
        wishes = state & (NEW | CANCEL);
        if (wishes != 0) {
            /* acquire: 2, of those that have come since; and why they were asked to stop. */
            state = bide_atomic_fetch_and(&queue->state, ~(NEW | CANCEL), acquire);
            wishes = state & (NEW | CANCEL);
            state &= ~(NEW | CANCEL);
        }
        if (swept.first != NULL) {
            put_back(queue, &swept);
            wishes |= CANCEL;
        }
    }
}

/* Finishes the handshakes (6) of those that have ended: wakes whose suspend is done with the queue. */
static void hand_over(bide_awaiter *ended)
{
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
    bide_wake(armed.first);
}

/* Serves a queue whose state was `state` (WAITING, not SERVING) and is `value` and SERVING now. */
static void serve_and_wake(bide_waiter_queue *queue, const bide_queue_rules *rules, uintptr_t state,
                           uintptr_t wishes)
{
    bide_awaiter_chain ended = {NULL, NULL};
    serve(queue, rules, state, wishes & (NEW | CANCEL), NULL, &ended);
    hand_over(ended.first);
}

bool bide_waiter_queue_put(bide_waiter_queue *queue, const bide_queue_rules *rules,
                           uintptr_t *state, uintptr_t value)
{
    uintptr_t found = *state;
    if ((found & (WAITING | SERVING)) == WAITING) {
        uintptr_t serving = value | (found & CLOSED) | SERVING;
        /* acquire: 1, 2 and 3. (The leaving releases what was written before.) */
        if (!bide_atomic_compare_exchange(&queue->state, state, serving, acquire, relaxed))
            return false;
        serve_and_wake(queue, rules, serving, found);
        return true;
    }
    uintptr_t put = value | (found & (BIDE_QUEUE_ONE - 1));
    /* release: 4. */
    return bide_atomic_compare_exchange(&queue->state, state, put, release, relaxed);
}

/* ---- Waiting ---- */

/* Says that somebody has arrived. */
static bool announce(bide_waiter_queue *queue, uintptr_t *state)
{
    /* release: 2 */
    return bide_atomic_compare_exchange(&queue->state, state, *state | NEW | WAITING, release,
                                        relaxed);
}

void bide_waiter_queue_enlist(bide_queue_waiter *waiter, const bide_queue_rules *rules)
{
    bide_waiter_queue *queue = waiter->queue;
    bide_awaiter *awaiter = &waiter->awaiter;
    bool pushed;
    bide_atomic_init(&waiter->handshake, BEGUN);
    /* release: waiter_list.h, 3. (It is never shut.) */
    bide_waiter_list_push(&queue->arrivals, awaiter, awaiter, release, pushed);
    (void)pushed;

    /* relaxed: what is found is compared by what follows. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    for (;;) {
        uintptr_t value = BIDE_QUEUE_VALUE(state);
        bool serves = (state & (WAITING | SERVING)) == 0 &&
                      ((state & CLOSED) != 0 || rules->admit(waiter, &value));
        if (serves) {
            /* acquire: 3 and 4. */
            if (bide_atomic_compare_exchange(&queue->state, &state, state | SERVING, acquire,
                                             relaxed)) {
                serve_and_wake(queue, rules, state | SERVING, NEW);
                return;
            }
        } else if (announce(queue, &state)) {
            return;
        }
        bide_atomic_retry();
    }
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
    bide_awaiter_chain ended = {NULL, NULL};
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    while ((state & (WAITING | SERVING)) != 0) {
        uintptr_t serving = (state | SERVING) & ~(NEW | CANCEL | WAITING);
        if ((state & SERVING) != 0) {
            bide_platform.yield();
            state = bide_atomic_load(&queue->state, relaxed);
            /* acquire: 2 and 3. */
        } else if (bide_atomic_compare_exchange(&queue->state, &state, serving, acquire, relaxed)) {
            bool found = serve(queue, rules, serving, state & (NEW | CANCEL), awaiter, &ended);
            hand_over(ended.first);
            return found;
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
            /* acquire: 2 and 3. (The leaving releases.) */
            if (bide_atomic_compare_exchange(&queue->state, &state, serving, acquire, relaxed)) {
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
