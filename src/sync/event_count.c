/* The event count's slow half; states, argument and letters are in event_count.h. */
#include "bide/event_count.h"

#include "bide/handle.h"

/* How many notifications may find nobody, in a row, before it is no longer watched. */
#if BIDE_CHECK
enum { UNNEEDED_MOST = 1 };
#else
enum { UNNEEDED_MOST = 24 };
#endif

enum { UNWATCHED = BIDE_EVENT_COUNT_UNWATCHED_, ARMING, WATCHED };

/* ---- The line: its value is how many may go ---- */

static bool admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    (void)waiter;
    if (*value == 0)
        return false;
    *value -= BIDE_QUEUE_ONE;
    return true;
}

static uintptr_t settle(uintptr_t value)
{
    (void)value;
    return 0; /* 5 */
}

static const bide_queue_rules rules = {.admit = admit, .settle = settle};

/* Does somebody wait, or is on his way out of the line? */
static bool has_waiters(uintptr_t state)
{
    return (state & (BIDE_QUEUE_WAITING_ | BIDE_QUEUE_SERVING_)) != 0;
}

/* Lets the first `count` in line go. */
static void let_go(bide_event_count *event_count, size_t count)
{
    const uintptr_t most = BIDE_QUEUE_MOST / 2 * BIDE_QUEUE_ONE;
    /* relaxed: what is found is compared by put. */
    uintptr_t state = bide_atomic_load(&event_count->line.state, relaxed);
    while (has_waiters(state)) {
        uintptr_t value = BIDE_QUEUE_VALUE(state);
        value = value < most && count < (most - value) / BIDE_QUEUE_ONE
                    ? value + count * BIDE_QUEUE_ONE
                    : most;
        if (bide_waiter_queue_put(&event_count->line, &rules, &state, value))
            return;
        bide_atomic_retry();
    }
}

/* Nobody waits: S was in vain. */
static void count_unneeded(bide_event_count *event_count)
{
    /* relaxed, both: only a hint. */
    uint32_t unneeded = bide_atomic_load(&event_count->unneeded, relaxed) + 1;
    uint32_t watch = WATCHED;
    if (unneeded < UNNEEDED_MOST) {
        bide_atomic_store(&event_count->unneeded, unneeded, relaxed);
        return;
    }
    bide_atomic_store(&event_count->unneeded, 0, relaxed);
    /* relaxed: the fence orders it. */
    if (bide_atomic_compare_exchange(&event_count->watch, &watch, UNWATCHED, relaxed, relaxed)) {
        bide_atomic_fence(seq_cst); /* 3; partners: F', H */
        let_go(event_count, SIZE_MAX);
    }
}

void bide_event_count_look_(bide_event_count *event_count, size_t count)
{
    bide_atomic_fence(seq_cst); /* F; partners: F', H */
    /* relaxed: S. */
    if (!has_waiters(bide_atomic_load(&event_count->line.state, relaxed))) {
        count_unneeded(event_count);
        return;
    }
    bide_atomic_store(&event_count->unneeded, 0, relaxed); /* a hint */
    let_go(event_count, count);
}

/* ---- One wait ---- */

static bide_retry *retry_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_retry, waiter.awaiter);
}

void bide_event_count_watch_(bide_event_count *event_count)
{
    for (;;) {
        uint32_t found = bide_atomic_load(&event_count->watch, relaxed);
        if (found == UNWATCHED) {
            if (!bide_atomic_compare_exchange(&event_count->watch, &found, ARMING, relaxed,
                                              relaxed))
                continue;
            bide_atomic_fence_heavy(); /* H; partner: L */
            /* relaxed: H, in front of it, is a fence, so it releases; partner is the last load. 2 */
            bide_atomic_store(&event_count->watch, WATCHED, relaxed);
            return;
        }
        if (found == ARMING)
            bide_atomic_fence_heavy(); /* H; partner: L */
        else
            bide_atomic_fence(seq_cst); /* F'; partners: F, and the fence of 3 */
        uint32_t now = bide_atomic_load(&event_count->watch, acquire); /* 2 */
        if (now != UNWATCHED && (now != ARMING || found == ARMING))
            return;
    }
}

static bool line_ready(bide_awaiter *awaiter)
{
    bide_retry *retry = retry_of(awaiter);
    return retry->rules->is_possible(retry);
}

static bide_frame *line_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_retry *retry = retry_of(awaiter);
    bide_event_count *event_count = retry->event_count;
    if (bide_look(awaiter, frame))
        return frame;
    bide_waiter_queue_enlist(&retry->waiter, &rules); /* A */
    bide_event_count_watch_(event_count);
    if (retry->rules->is_possible(retry)) /* B */
        let_go(event_count, 1);
    return bide_waiter_queue_arm(&retry->waiter) ? frame : NULL;
}

static int line_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static void line_cancel(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel(&retry_of(awaiter)->event_count->line, &rules);
}

static bool line_withdraw(bide_awaiter *awaiter)
{
    bide_event_count *event_count = retry_of(awaiter)->event_count;
    if (bide_waiter_queue_withdraw(awaiter, &rules))
        return true;
    bide_event_count_notify(event_count, 1); /* what was its turn goes to the next */
    return false;
}

static const bide_awaiter_ops line_ops = {line_ready,  line_suspend,  line_resume,
                                          line_cancel, line_withdraw, "bide_event_count"};

/* ---- The operation: a coroutine that attempts and waits ---- */

static bide_frame *step(bide_frame *frame, unsigned depth);

static const bide_coroutine_code code = {step, "bide_event_count_retry", __FILE__, NULL, NULL};
static const bide_point at_await = BIDE_POINT(&code, NULL, 0, BIDE_AT_AWAIT);

bide_awaiter *bide_retry_wait_(bide_retry *retry)
{
    retry->waiter.awaiter.ops = &line_ops;
    retry->waiter.queue = &retry->event_count->line;
    retry->waiter.wants = 1;
    return &retry->waiter.awaiter;
}

static bide_frame *wait_in_line(bide_retry *retry)
{
    retry->frame.awaiter.ops = &at_await.ops;
    return bide_frame_await(&retry->frame, bide_retry_wait_(retry));
}

static bide_frame *step(bide_frame *frame, unsigned depth)
{
    bide_retry *retry = bide_container_of(frame, bide_retry, frame);
    (void)depth;
    int status = bide_awaiter_resume(&retry->waiter.awaiter, retry->waiter.awaiter.ops);
    if (status == 0) {
        status = retry->rules->attempt(retry);
        if (status == -EAGAIN)
            return wait_in_line(retry);
        if (retry->rules->is_possible(retry))
            bide_event_count_notify(retry->event_count, 1); /* 4 */
    }
    retry->status = status;
    frame->awaiter.ops = &bide_point_finished.ops;
    return frame->awaiter.frame;
}

bide_frame *bide_retry_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_retry *retry = (bide_retry *)(void *)awaiter;
    retry->frame.awaiter.frame = frame;
    retry->frame.context = frame->context;
    return wait_in_line(retry);
}

bool bide_retry_withdraw_(bide_awaiter *awaiter)
{
    bide_retry *retry = (bide_retry *)(void *)awaiter;
    if (bide_done(&retry->frame))
        return false;
    bide_destroy(&retry->frame);
    return true;
}
