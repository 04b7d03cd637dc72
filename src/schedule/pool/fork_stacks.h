/* The functions of fork.c that the other files of the pool call. */
#ifndef BIDE_SCHEDULE_POOL_FORK_STACKS_H
#define BIDE_SCHEDULE_POOL_FORK_STACKS_H

#include "worker.h"

/* Frees the stacks that the worker keeps, after the pool's threads were joined. */
void bide_fork_task_free_stacks_(bide_pool_worker *worker);

/*
 * Resumes a coroutine that was taken off another worker's deque (bide_join_is_fork_).
 * Threads: the workers'.
 */
void bide_fork_task_continue_(bide_join_half_ *taken);

/*
 * At the end of a turn: moves parents that are still on the worker's deque, because their children wait
 * for something else, to the worker's ring.
 * Threads: the worker's.
 */
void bide_fork_task_take_all_(bide_pool_worker *worker);

BIDE_INLINE void bide_fork_task_leave_(bide_pool_worker *worker)
{
    if (BIDE_UNLIKELY(!bide_join_deque_is_empty_(&worker->join)))
        bide_fork_task_take_all_(worker);
}

#endif
