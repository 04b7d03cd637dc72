/* A root whose end stops a loop: for bide_run_loop_wait and the like. Floor: schedule. */
#ifndef BIDE_SCHEDULE_LOOP_WAITER_H
#define BIDE_SCHEDULE_LOOP_WAITER_H

#include "bide/extend/root.h"

typedef struct loop_waiter {
    bide_root root;
    bool ended;
} loop_waiter;

/* Runs on the loop's thread, where the root belongs. */
static void loop_waiter_ended(bide_root *root)
{
    bide_container_of(root, loop_waiter, root)->ended = true;
}

static inline void loop_waiter_begin(loop_waiter *waiter, const bide_context *context,
                                     bide_awaiter *awaiter)
{
    waiter->ended = false;
    bide_root_start(&waiter->root, context, awaiter, loop_waiter_ended);
}

#endif
