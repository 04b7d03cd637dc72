/*
 * Offloaded operations.
 *
 *     loop: begin --> file pool: makes the calls --> loop: the relay runs, and the operation ends
 *
 * 1. From the start of its call until the relay runs, the operation belongs to the thread of the
 *    file pool, except its links, `io` and `state`. That thread reads the state of no operation but
 *    a connect (operation.c), which is never offloaded.
 * 2. The operation ends on the loop's thread: in the relay, or when its blocking call could be
 *    withdrawn before it started.
 */
#include "offload.h"

#include <errno.h>

static bide_file_operation *offload_of(bide_io_operation *operation)
{
    bide_assert(operation->is_file);
    return bide_container_of(operation, bide_file_operation, operation);
}

/* On a thread of the file pool: makes all calls of the operation. */
static void offload_run(void *argument)
{
    bide_io_operation *operation = argument;
    bool again;
    while (!bide_io_take_result(operation, bide_io_call(operation), &again)) {
        if (again) { /* a device in non-blocking mode */
            struct pollfd polled = {io_fd(operation),
                                    io_direction(operation) == BIDE_IO_INPUT ? POLLIN : POLLOUT, 0};
            poll(&polled, 1, -1);
        }
    }
}

/* On the loop's thread: the calls were made, or could not be. */
static bide_next offload_relay_step(bide_frame *frame, unsigned depth)
{
    bide_file_operation *file = bide_container_of(frame, bide_file_operation, relay);
    bide_io_operation *operation = &file->operation;
    int error = bide_awaiter_resume(&file->call.awaiter, file->call.awaiter.ops);
    (void)depth;
    bide_assert(bide_loop_is_offloaded_(operation));
    if (error != 0)
        operation->status = error;
    loop_of(operation->io)->counts.completions++;
    bide_io_remove(operation->io, operation);
    bide_io_finish_waiting(operation, BIDE_IO_DONE);
    return bide_next_none();
}

static const bide_coroutine_code offload_relay_code = {offload_relay_step, "(a call that blocks)",
                                                       __FILE__, NULL, NULL};
static const bide_point offload_relay_point = BIDE_POINT_START(&offload_relay_code);

static int need_file_pool(bide_loop *loop)
{
    if (loop->files != NULL)
        return 0;
    bide_blocking_options options = {.name = "files", .max_threads = MAX_FILE_THREADS};
    int error = bide_blocking_create_with(&loop->files, &options);
    loop->owns_files = error == 0;
    return error;
}

bide_frame *bide_loop_offload_(bide_loop *loop, bide_io_operation *operation, bide_frame *frame)
{
    bide_file_operation *file = offload_of(operation);
    bide_assert(bide_io_row_of_(operation)->blocks != IO_BLOCKS_NEVER);
    int error = need_file_pool(loop);
    if (error != 0) {
        operation->status = error;
        return frame;
    }
    if (operation->descriptor != NULL && (operation->descriptor->bits & IO_PROBED) == 0)
        bide_io_probe_(operation->descriptor);
    bide_frame_init_in(&file->relay, &offload_relay_point, &loop->io.context);
    bide_io_enlist(&loop->io, operation);
    operation->state |= IO_OFFLOADED;
    bide_await_later(bide_blocking_run(&file->call, loop->files, offload_run, operation));
    file->call.awaiter.frame = &file->relay;
    if (file->call.awaiter.ops->suspend(&file->call.awaiter, &file->relay) == NULL)
        return NULL;
    operation->status = bide_awaiter_resume(&file->call.awaiter, file->call.awaiter.ops);
    bide_io_remove(&loop->io, operation);
    operation->state = 0;
    return frame;
}

void bide_loop_cancel_offloaded_(bide_loop *loop, bide_io_operation *operation)
{
    bide_awaiter *call = &offload_of(operation)->call.awaiter;
    bide_assert(bide_loop_is_offloaded_(operation));
    if (!call->ops->withdraw(call))
        return; /* it has started: the relay ends it */
    bide_io_remove(&loop->io, operation);
    bide_io_finish_waiting(operation, BIDE_IO_CANCELLED);
}

void bide_loop_discard_offloaded_(bide_loop *loop, bide_io_operation *operation)
{
    bide_awaiter *call = &offload_of(operation)->call.awaiter;
    bide_assert(bide_loop_is_offloaded_(operation));
    if (!call->ops->withdraw(call)) {
        while (!loop->run.scheduler.take_back(&loop->run.scheduler, call))
            bide_cpu_relax();
        if (operation->status == 0)
            bide_io_release(operation);
    }
    bide_io_remove(&loop->io, operation);
}

void bide_loop_release_offloaded_(bide_loop *loop, bide_io_operation *operation)
{
    bide_loop_discard_offloaded_(loop, operation);
    bide_io_finish_waiting(operation, operation->count != 0 ? BIDE_IO_DONE : BIDE_IO_CLOSED);
}
