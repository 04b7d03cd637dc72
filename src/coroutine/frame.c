/*
 * The resume loop and waking.
 *
 * Each call of bide_resume keeps a queue of operations that ended under the inline scheduler while it
 * runs; `innermost` is the queue of the innermost call on this thread. Only this thread touches it, so
 * nothing here is atomic.
 *
 *     no loop on this thread:  a post starts one and returns when all of it has run
 *     a loop runs:             a post appends; the loop takes it up when its frame has suspended
 */
#include "bide/frame.h"

#include "bide/coroutine.h"

static BIDE_THREAD_LOCAL bide_awaiter_chain *innermost;

const bide_point bide_point_finished = {{NULL, bide_frame_started_, NULL}, NULL, NULL, 0, 0};

bide_frame *bide_frame_started_(bide_awaiter *awaiter, bide_frame *frame)
{
    const bide_point *point = bide_frame_point((bide_frame *)(void *)awaiter);
    (void)frame;
    bide_platform.misuse("a coroutine was awaited that had started already",
                         point->code != NULL ? point->code->name : "(finished)",
                         point->code != NULL ? point->code->file : __FILE__, point->line);
    return NULL;
}

static void run(bide_frame *frame, bide_awaiter_chain *queue)
{
    bide_awaiter_chain *outer = innermost;
    innermost = queue;
    for (;;) {
        while (frame != NULL) {
            const bide_coroutine_code *code = bide_frame_point(frame)->code;
            if (BIDE_UNLIKELY(code == NULL)) {
                bide_platform.misuse("a finished coroutine was resumed", __func__, __FILE__,
                                     __LINE__);
                break; /* (if it returns, which it should not) */
            }
            frame = code->step(frame, BIDE_DIRECT_DEPTH);
        }
        bide_awaiter *awaiter = bide_awaiter_chain_take(queue);
        if (awaiter == NULL)
            break;
        frame = awaiter->frame;
    }
    innermost = outer;
}

void bide_resume(bide_frame *frame)
{
    bide_awaiter_chain queue = {NULL, NULL};
    run(frame, &queue);
}

static void inline_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    (void)scheduler;
    if (innermost == NULL) {
        bide_awaiter_chain queue = {first, last};
        run(NULL, &queue);
        return;
    }
    bide_awaiter_chain_append(innermost, first, last);
}

bide_scheduler bide_inline_scheduler = {inline_post, NULL, 0};

const bide_context bide_default_context = {&bide_inline_scheduler, NULL, NULL};

void bide_wake(bide_awaiter *first)
{
    while (first != NULL) {
        bide_scheduler *scheduler = first->frame->context->scheduler;
        bide_awaiter *last = first;
        bide_awaiter *next;
        while ((next = last->link) != NULL && next->frame->context->scheduler == scheduler)
            last = next;
        last->link = NULL;
        scheduler->post(scheduler, first, last);
        first = next;
    }
}

bool bide_look(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_scheduler *scheduler = frame->context->scheduler;
    if (scheduler->idle == NULL)
        return false;
    uint32_t patience = bide_atomic_load(&scheduler->patience, relaxed);
    bool ended = false;
    for (uint32_t i = 0; i < patience && !ended; i++) {
        if ((innermost != NULL && innermost->first != NULL) || !scheduler->idle(scheduler))
            return false;
        bide_cpu_relax();
        ended = bide_awaiter_ready(awaiter, awaiter->ops);
    }
    /* What paid is done for longer the next time, what did not for less. */
    if (ended && patience < BIDE_PATIENCE_MOST)
        bide_atomic_store(&scheduler->patience, patience * 2, relaxed);
    else if (!ended && patience > BIDE_PATIENCE_LEAST)
        bide_atomic_store(&scheduler->patience, patience / 2, relaxed);
    return ended;
}
