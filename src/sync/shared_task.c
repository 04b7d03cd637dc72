/* The beginning and the end of a shared task: the first waiter, on any thread, starts it; its end ends
 * all waits. The states and memory orders: the end of shared_task.h. */
#include "bide/shared_task.h"

bide_frame *bide_shared_task_start_(bide_shared_task_waiter *waiter, bide_frame *frame)
{
    bide_shared_task *shared = waiter->shared;
    bide_frame *task = &shared->frame;
    bide_scheduler *scheduler = task->context->scheduler;
    bool here = frame->context->scheduler == scheduler;
    bool pushed; /* always true: the task, which shuts the list, has not started */
    /* release: see 4. From here on the caller's frame is not touched, and the task's until it is
     * started. */
    bide_waiter_list_push(&shared->waiters, &waiter->listed, release, pushed);
    (void)pushed;
    task->awaiter.frame = NULL; /* it has no continuation */
    if (here)
        return task;
    task->awaiter.link = NULL;
    task->awaiter.frame = task; /* while it is posted: what takes it from the queue resumes this */
    scheduler->post(scheduler, &task->awaiter, &task->awaiter);
    return NULL;
}

bide_frame *bide_shared_task_final_(bide_frame *frame, const bide_context *context)
{
    bide_shared_task *shared = bide_promise(bide_shared_task, frame);
    (void)context;
    bide_wake_reversed(bide_waiter_list_shut(&shared->waiters));
    return NULL;
}
