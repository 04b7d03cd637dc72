/*
 * A scheduler that runs nothing: woken coroutines stay woken, and may be destroyed. For scenarios
 * in which a coroutine is destroyed before it runs.
 */
#ifndef KEPT_H
#define KEPT_H

#include "bide/frame.h"

static inline void kept_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    (void)scheduler, (void)first, (void)last;
}

static inline bool kept_take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    (void)scheduler, (void)awaiter;
    return true;
}

static bide_scheduler kept = {.post = kept_post, .take_back = kept_take_back};

#endif
