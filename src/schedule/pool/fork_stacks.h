/* What the pool's other files ask of fork.c. */
#ifndef BIDE_SCHEDULE_POOL_FORK_STACKS_H
#define BIDE_SCHEDULE_POOL_FORK_STACKS_H

#include "worker.h"

/* Frees the stacks that the worker keeps. None of its pool's threads runs any more. */
void bide_fork_task_free_stacks_(bide_pool_worker *worker);

/*
 * Goes on with a coroutine that was taken off another's deque (bide_join_is_fork_).
 * Threads: the workers'.
 */
void bide_fork_task_go_on_(bide_join_half_ *taken);

/*
 * A turn of the worker is over: what has forked, and stands on its deque yet because a child waits for
 * something else, goes into its ring.
 * Threads: the worker's.
 */
void bide_fork_task_take_all_(bide_pool_worker *worker);

BIDE_INLINE void bide_fork_task_leave_(bide_pool_worker *worker)
{
    if (BIDE_UNLIKELY(!bide_join_deque_is_empty_(&worker->join)))
        bide_fork_task_take_all_(worker);
}

#endif
