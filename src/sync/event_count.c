/*
 * The event count's slow half: placing an operation that waits, taking it, and attempting it on the
 * waiter's behalf.
 *
 *     place     FREE, an operation that waits, or one that is about to (BEGUN)
 *     line      a waiter queue for the others
 *     watch     how closely a notifier looks: UNWATCHED, ARMING, a thread, WATCHED
 *
 * Any thread may notify, and wait. The thread that has taken an operation owns it until it has ended
 * or placed it again. The states, the argument, and the numbers and letters of the comments below:
 * docs/internals/event_count.md.
 */
#include "bide/extend/event_count.h"

#include "bide/extend/choice.h"
#include "bide/handle.h"
#include "bide/stop.h"

/* Of `watch`; anything else is a thread. */
enum { UNWATCHED = BIDE_EVENT_COUNT_UNWATCHED_, ARMING, WATCHED };

/* Of `place`, beside an operation. */
enum { PLACE_FREE = BIDE_EVENT_COUNT_FREE_, PLACE_BEGUN = 1 };

static bide_event_count_waiter *retry_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_event_count_waiter, waiter.awaiter);
}

static bool is_possible(bide_event_count_waiter *retry)
{
    return retry->rules->is_possible(retry);
}

/* ---- The line: its value is the number of operations to release ---- */

/* The rules, for one use of the line: operations that leave it are appended to `taken`. */
typedef struct line_rules {
    bide_waiter_queue_ops rules;
    bide_awaiter_chain *taken;
} line_rules;

static bool retry_line_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    (void)waiter;
    if (*value == 0)
        return false;
    *value -= BIDE_QUEUE_ONE;
    return true;
}

static uintptr_t retry_line_settle(uintptr_t value)
{
    (void)value;
    return 0; /* 6 */
}

static void retry_line_hand(const bide_waiter_queue_ops *rules, const bide_awaiter_chain *chain)
{
    const line_rules *own = bide_container_of(rules, const line_rules, rules);
    bide_awaiter_chain_append(own->taken, chain->first, chain->last);
}

static line_rules rules_for(bide_awaiter_chain *taken)
{
    return (line_rules){
        {.admit = retry_line_admit, .settle = retry_line_settle, .hand = retry_line_hand}, taken};
}

/* Takes the first `count` operations in line. */
static void take_from_line(bide_event_count *event_count, size_t count, bide_awaiter_chain *taken)
{
    const uintptr_t max = BIDE_QUEUE_MAX / 2 * BIDE_QUEUE_ONE;
    line_rules rules = rules_for(taken);
    /* relaxed: put validates it. */
    uintptr_t state = bide_atomic_load(&event_count->line.state, relaxed);
    while (bide_event_count_is_line_(state)) {
        uintptr_t value = BIDE_QUEUE_VALUE(state);
        value = value < max && count < (max - value) / BIDE_QUEUE_ONE
                    ? value + count * BIDE_QUEUE_ONE
                    : max;
        if (bide_waiter_queue_put(&event_count->line, &rules.rules, &state, value))
            return;
        bide_atomic_retry();
    }
}

/* ---- Taking waiting operations ---- */

static void retry_chain_append(bide_awaiter_chain *chain, bide_awaiter *awaiter)
{
    awaiter->link = NULL;
    bide_awaiter_chain_append(chain, awaiter, awaiter);
}

/* Takes up to `count` waiting operations, to be attempted or woken. Returns false if none waited. */
static bool event_count_take(bide_event_count *event_count, size_t count, bide_awaiter_chain *taken)
{
    bool found = false;
    if (count == 0)
        return false;
    uintptr_t place = bide_atomic_load(&event_count->place, relaxed); /* S */
    while (place != PLACE_FREE && !found) {
        uintptr_t expected = place;
        /* acquire: the operation; partner: `stand_in_place`. 5 */
        found = bide_atomic_compare_exchange(&event_count->place, &expected, PLACE_FREE, acquire,
                                             relaxed);
        if (!found) {
            place = expected;
            bide_atomic_retry();
        }
    }
    if (found) {
        bide_assert((place & ~(uintptr_t)PLACE_BEGUN) != 0);
        count--;
        if ((place & PLACE_BEGUN) == 0)
            retry_chain_append(taken, &((bide_event_count_waiter *)place)->waiter.awaiter);
    }
    if (count != 0 && bide_event_count_has_line_(event_count)) {
        take_from_line(event_count, count, taken);
        found = true;
    }
    return found;
}

/* No operation waits: S found nothing. */
static void count_unneeded(bide_event_count *event_count, uintptr_t watch,
                           bide_awaiter_chain *taken)
{
    /* relaxed, both: only a hint. */
    uint32_t unneeded = bide_atomic_load(&event_count->unneeded, relaxed) + 1;
    if (unneeded < BIDE_EVENT_COUNT_UNNEEDED_MAX_) {
        bide_atomic_store(&event_count->unneeded, unneeded, relaxed);
        return;
    }
    bide_atomic_store(&event_count->unneeded, 0, relaxed);
    /* relaxed: the fence orders it. */
    if (watch != ARMING &&
        bide_atomic_compare_exchange(&event_count->watch, &watch, UNWATCHED, relaxed, relaxed)) {
        bide_atomic_fence(seq_cst); /* 3; partners: F', H */
        event_count_take(event_count, SIZE_MAX, taken);
    }
}

static void retry_look(bide_event_count *event_count, size_t count, uintptr_t watch,
                       bide_awaiter_chain *taken)
{
    if (watch == bide_this_thread_()) {
        event_count_take(event_count, count, taken);
        return;
    }
    bide_atomic_fence(seq_cst); /* F; partners: F', H */
    if (!event_count_take(event_count, count, taken))
        count_unneeded(event_count, watch, taken);
    else if (bide_atomic_load(&event_count->unneeded, relaxed) != 0) /* a hint */
        bide_atomic_store(&event_count->unneeded, 0, relaxed);
}

/* As bide_event_count_notify, for one operation, which is the caller's then. */
static void notify_into(bide_event_count *event_count, bide_awaiter_chain *taken)
{
    uintptr_t watch;
    if (bide_event_count_must_poll_(event_count, &watch))
        retry_look(event_count, 1, watch, taken);
}

/* ---- Placing an operation: in the place, or in the line ---- */

void bide_event_count_watch_(bide_event_count *event_count)
{
    const uintptr_t here = bide_this_thread_();
    uintptr_t found = bide_atomic_load(&event_count->watch, relaxed);
    for (;;) {
        if (found == here || found == WATCHED) {
            bide_atomic_fence_after_rmw(); /* F'; partners: F, and the fence of 3 */
            uintptr_t before = found;
            found = bide_atomic_load(&event_count->watch, relaxed); /* W */
            if (found == before)
                return;
        } else if (found == ARMING) {
            bide_atomic_fence_heavy();                              /* H; partner: L */
            found = bide_atomic_load(&event_count->watch, relaxed); /* W */
            if (found != UNWATCHED)
                return;
        } else if (bide_atomic_compare_exchange(&event_count->watch, &found, ARMING, relaxed,
                                                relaxed)) {
            bide_atomic_fence_heavy(); /* H; partner: L */
            /* relaxed: H, in front of it, is a fence, so it releases; partner is F'. 2 */
            bide_atomic_store(&event_count->watch, found == UNWATCHED ? here : WATCHED, relaxed);
            return;
        }
    }
}

/*
 * Puts the operation in the place. *waits: it waits there; otherwise it is still, or again, the
 * caller's. Returns false if the place is not free. `held`: whatever ends the operation, its
 * coroutine does not continue before the caller has returned.
 */
static bool stand_in_place(bide_event_count *event_count, bide_event_count_waiter *retry, bool held,
                           bool *waits)
{
    uintptr_t place = PLACE_FREE;
    uintptr_t own = (uintptr_t)retry | (held ? 0 : (uintptr_t)PLACE_BEGUN);
    /* release: the operation, if it has not BEGUN; partners: `take`, `take_out`. 5 */
    if (bide_event_count_has_line_(event_count) ||
        !bide_atomic_compare_exchange(&event_count->place, &place, own, release, relaxed)) /* A */
        return false;
    bide_event_count_watch_(event_count);
    if (is_possible(retry) || bide_awaiter_is_cancelled(&retry->waiter.awaiter)) { /* B, and 7 */
        /*
         * acquire: of a taker that has placed it again in the meantime; partner: as below. 5
         */
        bool taken_back =
            bide_atomic_compare_exchange(&event_count->place, &own, PLACE_FREE, acquire, relaxed);
        *waits = held && !taken_back;
    } else {
        /* release: the operation; partners: `take`, `take_out`. 5 */
        *waits = held || bide_atomic_compare_exchange(&event_count->place, &own, (uintptr_t)retry,
                                                      release, relaxed);
    }
    return true;
}

/* Puts the operation in the line; otherwise as above. */
static bool stand_in_line(bide_event_count *event_count, bide_event_count_waiter *retry,
                          bide_awaiter_chain *taken)
{
    line_rules rules = rules_for(taken);
    bide_waiter_queue_enlist(&retry->waiter, &rules.rules); /* A */
    bide_event_count_watch_(event_count);
    if (is_possible(retry)) /* B */
        event_count_take(event_count, 1, taken);
    if (bide_awaiter_is_cancelled(&retry->waiter.awaiter)) /* 7 */
        bide_waiter_queue_sweep(&event_count->line, &rules.rules);
    return !bide_waiter_queue_arm(&retry->waiter);
}

/*
 * Places the operation. Returns true if it waits; it is not the caller's any more then. Returns false
 * if it is to be attempted, or was cancelled.
 */
static bool retry_place(bide_event_count_waiter *retry, bool held, bide_awaiter_chain *taken)
{
    bide_event_count *event_count = bide_event_count_of_waiter_(retry);
    bool waits;
    return stand_in_place(event_count, retry, held, &waits)
               ? waits
               : stand_in_line(event_count, retry, taken);
}

/* ---- Attempting, on the waiter's behalf ---- */

/* Whether the operation is attempted, and has not ended. A cancelled one has another table. */
static bool is_tried(const bide_awaiter *awaiter)
{
    return awaiter->ops->suspend == bide_event_count_waiter_suspend_;
}

/* Whether one of the taken operations attempts the same, and then lets the next one go. */
static bool is_followed(const bide_event_count_waiter *retry, const bide_awaiter_chain *taken)
{
    for (bide_awaiter *a = taken->first; a != NULL; a = a->link) {
        if (is_tried(a) && retry_of(a)->waiter.queue == retry->waiter.queue)
            return true;
    }
    return false;
}

/* Attempts until the operation is done, or placed again. Returns true if it is done. */
static bool try_on(bide_event_count_waiter *retry, bool held, bide_awaiter_chain *taken)
{
    bide_awaiter *awaiter = &retry->waiter.awaiter;
    while (is_tried(awaiter)) {
        retry->status = retry->rules->attempt(retry);
        if (retry->status != -EAGAIN) {
            if (!is_followed(retry, taken) && is_possible(retry))
                notify_into(bide_event_count_of_waiter_(retry), taken); /* 4 */
            if (retry->status == 0 && retry->rules->then != NULL)
                notify_into(retry->rules->then(retry), taken); /* 8 */
            return true;
        }
        if (bide_awaiter_is_cancelled(awaiter))
            bide_awaiter_finish_cancelled(awaiter);
        else if (retry_place(retry, held, taken))
            return false;
    }
    return true;
}

/*
 * Attempts the taken operations, and further operations taken because of that. Wakes the ended ones.
 */
static void retry_serve(bide_awaiter_chain *taken)
{
    bide_awaiter_chain ended = {NULL, NULL};
    for (bide_awaiter *a; (a = bide_awaiter_chain_take(taken)) != NULL;) {
        if (!is_tried(a) || try_on(retry_of(a), false, taken))
            retry_chain_append(&ended, a);
    }
    bide_wake(ended.first);
}

void bide_event_count_poll_(bide_event_count *event_count, size_t count, uintptr_t watch)
{
    bide_awaiter_chain taken = {NULL, NULL};
    retry_look(event_count, count, watch, &taken);
    if (taken.first != NULL)
        retry_serve(&taken);
}

bide_event_count_waiter *bide_event_count_take_(bide_event_count *event_count)
{
    bide_awaiter_chain taken = {NULL, NULL};
    bide_event_count_waiter *retry = NULL;
    event_count_take(event_count, 1, &taken);
    bide_awaiter *first = taken.first;
    if (first != NULL && is_tried(first)) {
        retry = retry_of(first);
        taken.first = first->link;
    }
    if (taken.first != NULL)
        retry_serve(&taken);
    return retry;
}

/* ---- An operation ---- */

bide_frame *bide_event_count_waiter_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_event_count_waiter *retry = retry_of(awaiter);
    bide_awaiter_chain taken = {NULL, NULL};
    if (bide_spin_until_ready(awaiter, frame))
        return frame;
    bide_queue_waiter_start(&retry->waiter);
    bool held = frame->context->scheduler->one_thread || bide_stop_holds_(frame);
    bool waits = retry_place(retry, held, &taken) || !try_on(retry, held, &taken);
    if (taken.first != NULL)
        retry_serve(&taken);
    return waits ? NULL : frame;
}

/* Removes the operation from the place. Returns false if it is not there. */
static bool event_count_remove(bide_event_count_waiter *retry, uintptr_t *place)
{
    bide_event_count *event_count = bide_event_count_of_waiter_(retry);
    *place = bide_atomic_load(&event_count->place, relaxed);
    while ((*place & ~(uintptr_t)PLACE_BEGUN) == (uintptr_t)retry) {
        /* acquire: the operation; partner: `stand_in_place`. 5 */
        if (bide_atomic_compare_exchange(&event_count->place, place, PLACE_FREE, acquire, relaxed))
            return true;
    }
    return false;
}

void bide_event_count_waiter_cancel_(bide_awaiter *awaiter)
{
    bide_event_count_waiter *retry = retry_of(awaiter);
    bide_awaiter_chain taken = {NULL, NULL};
    uintptr_t place;
    bide_atomic_fence(seq_cst); /* 7; partners: F', H */
    if (!event_count_remove(retry, &place)) {
        line_rules rules = rules_for(&taken);
        bide_waiter_queue_cancel(&retry->waiter, &rules.rules);
    } else if ((place & PLACE_BEGUN) == 0) {
        bide_awaiter_finish_cancelled(awaiter);
        retry_chain_append(&taken, awaiter);
    }
    retry_serve(&taken);
}

bool bide_event_count_waiter_withdraw_(bide_awaiter *awaiter)
{
    bide_awaiter_chain taken = {NULL, NULL};
    line_rules rules = rules_for(&taken);
    uintptr_t place;
    if (!bide_awaiter_suspended(awaiter))
        return false;
    bool found = event_count_remove(retry_of(awaiter), &place) ||
                 bide_waiter_queue_withdraw(awaiter, &rules.rules);
    retry_serve(&taken);
    return found;
}

/* ---- A wait alone ---- */

static bool retry_wait_ready(bide_awaiter *awaiter)
{
    return is_possible(retry_of(awaiter));
}

/* A function of its own, which distinguishes it from an operation that is attempted. */
static bide_frame *retry_wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    return bide_event_count_waiter_suspend_(awaiter, frame);
}

static int retry_wait_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bool retry_wait_withdraw(bide_awaiter *awaiter)
{
    bide_event_count *event_count = bide_event_count_of_waiter_(retry_of(awaiter));
    if (bide_event_count_waiter_withdraw_(awaiter))
        return true;
    if (is_possible(retry_of(awaiter)))
        bide_event_count_notify(event_count,
                                1); /* the notification goes to the next operation: 4 */
    return false;
}

/*
 * Makes `retry` a wait for a notification, or until an attempt may succeed; it attempts nothing.
 */
static bide_awaiter *wait_only(bide_event_count_waiter *retry)
{
    static const bide_awaiter_ops ops = {
        .ready = retry_wait_ready,
        .suspend = retry_wait_suspend,
        .resume = retry_wait_resume,
        .cancel = bide_event_count_waiter_cancel_,
        .withdraw = retry_wait_withdraw,
        .name = "bide_event_count",
    };
    retry->waiter.awaiter.ops = &ops;
    return &retry->waiter.awaiter;
}

/* ---- A case of a select ---- */

static int retry_choose(bide_event_count_waiter *retry, bide_choice *choice)
{
    int status = bide_event_count_waiter_attempt_(retry);
    if (status == -EAGAIN)
        choice->wait = wait_only(retry);
    return status;
}

int bide_event_count_waiter_choose_(bide_awaiter *awaiter, bide_choice *choice)
{
    return retry_choose(retry_of(awaiter), choice);
}

int bide_event_count_own_waiter_choose_(bide_awaiter *awaiter, bide_choice *choice)
{
    return retry_choose(&((bide_event_count_own_waiter *)(void *)awaiter)->retry, choice);
}

/* ---- An operation that only its own coroutine may attempt: a coroutine in a loop ---- */

static bide_next retry_own_step(bide_frame *frame, unsigned depth);

static const bide_coroutine_code retry_own_code = {retry_own_step, "bide_event_count_wait_own",
                                                   __FILE__, NULL, NULL};
static const bide_point retry_own_await = BIDE_POINT(&retry_own_code, NULL, 0, BIDE_AT_AWAIT);

static bide_frame *retry_own_wait(bide_event_count_own_waiter *own)
{
    own->frame.awaiter.ops = &retry_own_await.ops;
    return bide_frame_await(&own->frame, wait_only(&own->retry));
}

static bide_next retry_own_step(bide_frame *frame, unsigned depth)
{
    bide_event_count_own_waiter *own = bide_container_of(frame, bide_event_count_own_waiter, frame);
    bide_awaiter *awaiter = &own->retry.waiter.awaiter;
    (void)depth;
    int status = bide_awaiter_resume(awaiter, awaiter->ops);
    if (status == 0) {
        status = bide_event_count_waiter_attempt_(&own->retry);
        if (status == -EAGAIN)
            return bide_next_frame(retry_own_wait(own));
        if (is_possible(&own->retry))
            bide_event_count_notify(bide_event_count_of_waiter_(&own->retry), 1); /* 4 */
    }
    own->retry.status = status;
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(frame->awaiter.frame);
}

bide_frame *bide_event_count_own_waiter_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_event_count_own_waiter *own = (bide_event_count_own_waiter *)(void *)awaiter;
    own->frame.awaiter.frame = frame;
    own->frame.context = frame->context;
    return retry_own_wait(own);
}

bool bide_event_count_own_waiter_withdraw_(bide_awaiter *awaiter)
{
    bide_event_count_own_waiter *own = (bide_event_count_own_waiter *)(void *)awaiter;
    if (!bide_awaiter_suspended(awaiter) || bide_done(&own->frame))
        return false;
    bide_destroy(&own->frame);
    return true;
}
