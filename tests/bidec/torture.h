/*
 * The operation that a tortured program awaits: seven of eight suspend, and are resumed at once.
 */
#pragma GCC system_header
#include "bide/async.h"
#include "bide/sync_wait.h"

typedef struct bide_torture_waiter {
    bide_awaiter awaiter;
} bide_torture_waiter;

static unsigned bide_torture_count;

static bool bide_torture_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return ++bide_torture_count % 8 == 0;
}

static bide_frame *bide_torture_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)frame;
    bide_wake_one(awaiter);
    return NULL;
}

static int bide_torture_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static inline bide_awaiter *bide_torture_pause(bide_torture_waiter *waiter, int unused)
{
    static const bide_awaiter_ops ops = {.ready = bide_torture_ready,
                                         .suspend = bide_torture_suspend,
                                         .resume = bide_torture_resume,
                                         .name = "pause"};
    (void)unused;
    waiter->awaiter.ops = &ops;
    return &waiter->awaiter;
}
