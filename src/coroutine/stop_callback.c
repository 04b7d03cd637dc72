/*
 * Stop callbacks. A callback is a frame, written by hand, that waits in a stop source of its own,
 * attached to the given one. Its wait ends only by being cancelled. So `cancel` does the gate's part
 * (stop.md): it marks the wait as ENDED. The canceller finds that, and posts the frame as its last
 * action.
 *
 *     state   SET       the function has not returned
 *             pointer   the same, and a waiter for it
 *             ENDED     it has returned
 *
 *     the frame, last:  SET -> ENDED       pointer -> ENDED, and wake
 *     wait:             SET -> pointer, or find ENDED
 *
 * 1. It is posted at most once: one request stores REQUESTED in the source's word, and that
 *    one cancels.
 * 2. Once it is detached, no request on the given source can reach it: a request visits the children
 *    under the lock that detaching takes, and a request from init has ended with init. So REQUESTED
 *    does not change any more. If it is not set, no thread has used the callback except under that
 *    lock.
 * 3. If it is set, the request may still use the callback, until it has posted the frame. So no thread
 *    uses it when the frame has stored ENDED; the frame does not touch the callback after that.
 * 4. The frame releases the function's work with ENDED, and the waiter acquires it, before the memory
 *    is freed. The waiter releases itself, and the frame acquires that.
 */
#include "bide/stop_callback.h"

#undef bide_stop_callback_init

#define CALLBACK_SET   BIDE_STOP_CALLBACK_SET
#define CALLBACK_ENDED BIDE_STOP_CALLBACK_ENDED

/* ---- The frame ---- */

static bide_next stop_callback_step(bide_frame *frame, unsigned depth)
{
    bide_stop_callback *callback = bide_container_of(frame, bide_stop_callback, frame);
    (void)depth;
    callback->function(callback->argument);
    /* release, acquire: 4. Partners are wait_ready's load and wait_suspend's exchange. */
    uintptr_t waiter = bide_atomic_exchange(&callback->state, CALLBACK_ENDED, acq_rel);
    if (waiter != CALLBACK_SET) {
        bide_awaiter *awaiter = (bide_awaiter *)waiter;
        bide_wake_one(awaiter);
    }
    return bide_next_none();
}

static const bide_coroutine_code stop_callback_code = {stop_callback_step, "bide_stop_callback",
                                                       __FILE__, NULL, NULL};
static const bide_point stop_callback_point =
    BIDE_POINT(&stop_callback_code, NULL, 0, BIDE_AT_AWAIT);

static bide_frame *request_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter;
    (void)frame;
    return NULL;
}

static void request_cancel(bide_awaiter *awaiter)
{
    bide_stop_callback *callback = bide_container_of(awaiter, bide_stop_callback, request);
    /* relaxed: the canceller itself finds it. */
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
    callback->frame.awaiter.ops = &stop_callback_point.ops;
    callback->frame.awaiter.link = &callback->request;
    callback->frame.awaiter.frame = NULL;
    callback->context = *context;
    callback->frame.context = &callback->context;
    callback->function = function;
    callback->argument = argument;
    bide_atomic_init(&callback->state, CALLBACK_SET);
    bide_stop_suspend_in_(&callback->source, &callback->request, &request_ops, &callback->frame);
    if (source != NULL)
        bide_stop_source_attach(&callback->source, source);
}

bool bide_stop_callback_remove(bide_stop_callback *callback)
{
    bide_stop_source_detach(&callback->source);
    return !bide_stop_requested(&callback->source); /* 2 */
}

/* ---- Waiting for the function to return ---- */

static bide_stop_callback *callback_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_stop_callback_waiter, awaiter)->callback;
}

static bool stop_callback_wait_ready(bide_awaiter *awaiter)
{
    /* acquire: 4, partner is call_step's exchange. */
    return bide_atomic_load(&callback_of(awaiter)->state, acquire) == CALLBACK_ENDED;
}

static bide_frame *stop_callback_wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    uintptr_t state = CALLBACK_SET;
    /* release: 4, partner is call_step's exchange. acquire if it fails: 4, the same. */
    bool waits = bide_atomic_compare_exchange(&callback_of(awaiter)->state, &state,
                                              (uintptr_t)awaiter, release, acquire);
    return waits ? NULL : frame;
}

static int stop_callback_wait_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bool stop_callback_wait_withdraw(bide_awaiter *awaiter)
{
    uintptr_t state = (uintptr_t)awaiter;
    /* relaxed: if it fails, the waiter was posted; otherwise it goes back to its coroutine. */
    return bide_atomic_compare_exchange(&callback_of(awaiter)->state, &state, CALLBACK_SET, relaxed,
                                        relaxed);
}

bide_awaiter *bide_stop_callback_wait(bide_stop_callback_waiter *waiter,
                                      bide_stop_callback *callback)
{
    static const bide_awaiter_ops ops = {
        .ready = stop_callback_wait_ready,
        .suspend = stop_callback_wait_suspend,
        .resume = stop_callback_wait_resume,
        .withdraw = stop_callback_wait_withdraw,
        .name = "bide_stop_callback_wait",
    };
    waiter->awaiter.ops = &ops;
    waiter->callback = callback;
    return &waiter->awaiter;
}
