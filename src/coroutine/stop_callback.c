/*
 * Stop callbacks. A callback is a frame, written by hand, that waits in a stop source of its own,
 * attached to the given one. What it waits for ends only by being cancelled. So `cancel` takes the
 * gate's part (stop.h), marks the wait as ENDED, and the canceller, which finds that, posts the
 * frame as the last thing that it does.
 *
 *     state   SET       the function has not returned
 *             pointer   the same, and a waiter for it
 *             ENDED     it has
 *
 *     the frame, last:  SET -> ENDED       pointer -> ENDED, and wake
 *     wait:             SET -> pointer, or find ENDED
 *
 * 1. It is posted at most once: one request gets to put REQUESTED in the source's word, and that
 *    one cancels.
 * 2. Once it is detached, no request on the given source can reach it: a request goes through the
 *    children under the lock that detaching takes, and one from init has ended with init. So what
 *    REQUESTED says then, it says for good. If it is not there, nobody has used the callback but
 *    under that lock.
 * 3. If it is there, the request may still be at the callback, but no longer than until it has
 *    posted the frame. So nobody is there when the frame has put ENDED, after which it touches
 *    nothing of the callback.
 * 4. The frame releases with ENDED what the function did, and the waiter acquires that, before the
 *    memory goes. The waiter releases itself, and the frame acquires that.
 */
#include "bide/stop_callback.h"

#define SET   BIDE_STOP_CALLBACK_SET
#define ENDED BIDE_STOP_CALLBACK_ENDED

/* ---- The frame ---- */

static bide_next call_step(bide_frame *frame, unsigned depth)
{
    bide_stop_callback *callback = bide_container_of(frame, bide_stop_callback, frame);
    (void)depth;
    callback->function(callback->argument);
    /* release, acquire: 4. Partners are wait_ready's load and wait_suspend's exchange. */
    uintptr_t waiter = bide_atomic_exchange(&callback->state, ENDED, acq_rel);
    if (waiter != SET) {
        bide_awaiter *awaiter = (bide_awaiter *)waiter;
        bide_wake_one(awaiter);
    }
    return bide_next_none();
}

static const bide_coroutine_code call_code = {call_step, "bide_stop_callback", __FILE__, NULL,
                                              NULL};
static const bide_point call_point = BIDE_POINT(&call_code, NULL, 0, BIDE_AT_AWAIT);

static bide_frame *request_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter;
    (void)frame;
    return NULL;
}

static void request_cancel(bide_awaiter *awaiter)
{
    bide_stop_callback *callback = bide_container_of(awaiter, bide_stop_callback, request);
    /* relaxed: the canceller is also the one that finds it. */
    bide_atomic_fetch_or(&callback->source.word, BIDE_STOP_ENDED_, relaxed);
}

static const bide_awaiter_ops request_ops = {
    .suspend = request_suspend,
    .cancel = request_cancel,
    .name = "bide_stop_request",
};

void bide_stop_callback_init(bide_stop_callback *callback, bide_stop_source *source,
                             const bide_context *context, void (*function)(void *argument),
                             void *argument)
{
    bide_stop_source_init(&callback->source);
    callback->request.ops = &request_ops;
    callback->frame.awaiter.ops = &call_point.ops;
    callback->frame.awaiter.link = &callback->request;
    callback->frame.awaiter.frame = NULL;
    callback->context = *context;
    callback->frame.context = &callback->context;
    callback->function = function;
    callback->argument = argument;
    bide_atomic_init(&callback->state, SET);
    bide_stop_suspend_in_(&callback->source, &callback->request, &request_ops, &callback->frame);
    if (source != NULL)
        bide_stop_source_attach(&callback->source, source);
}

bool bide_stop_callback_remove(bide_stop_callback *callback)
{
    bide_stop_source_detach(&callback->source);
    return !bide_stop_requested(&callback->source); /* 2 */
}

/* ---- Waiting for it to have run ---- */

static bide_stop_callback *callback_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_stop_callback_waiter, awaiter)->callback;
}

static bool wait_ready(bide_awaiter *awaiter)
{
    /* acquire: 4, partner is call_step's exchange. */
    return bide_atomic_load(&callback_of(awaiter)->state, acquire) == ENDED;
}

static bide_frame *wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    uintptr_t state = SET;
    /* release: 4, partner is call_step's exchange. acquire if it fails: 4, the same. */
    bool waits = bide_atomic_compare_exchange(&callback_of(awaiter)->state, &state,
                                              (uintptr_t)awaiter, release, acquire);
    return waits ? NULL : frame;
}

static int wait_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bool wait_withdraw(bide_awaiter *awaiter)
{
    uintptr_t state = (uintptr_t)awaiter;
    /* relaxed: if it fails, the waiter was posted; otherwise it goes back to its coroutine. */
    return bide_atomic_compare_exchange(&callback_of(awaiter)->state, &state, SET, relaxed,
                                        relaxed);
}

bide_awaiter *bide_stop_callback_wait(bide_stop_callback_waiter *waiter,
                                      bide_stop_callback *callback)
{
    static const bide_awaiter_ops ops = {
        .ready = wait_ready,
        .suspend = wait_suspend,
        .resume = wait_resume,
        .withdraw = wait_withdraw,
        .name = "bide_stop_callback_wait",
    };
    waiter->awaiter.ops = &ops;
    waiter->callback = callback;
    return &waiter->awaiter;
}
