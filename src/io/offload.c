/*
 * Offloaded operations.
 *
 *     loop: begin --> file pool: makes the calls --> loop: the relay runs, and the operation ends
 *
 * 1. From the start of its call until the relay runs, the operation belongs to the thread of the
 *    file pool, except its links, `io` and `state`. That thread reads the state of no operation but
 *    a connect (operation.c), which is never offloaded; and of the descriptor only the number.
 * 2. The operation ends on the loop's thread: in the relay, or when its blocking call could be
 *    withdrawn before it started.
 * 3. A cancelled call is interrupted (blocking.c). Then the thread makes no further system call, and the
 *    blocking call ends with -EINTR, which is no status of the operation. So no error of a system call
 *    is taken for an interruption, and the relay ends the operation as cancelled. A call that is done
 *    before the interruption counts: the operation ends with its result. So an open gives its
 *    descriptor to the operation, or there is none.
 * 4. If the coroutine is destroyed, or the descriptor closed, the loop's thread interrupts the call and
 *    sleeps until the thread has posted the relay, which it takes back. By 3 a call that is done then
 *    counts: a close ends its operation with its result, as on the ring, and a destroyed coroutine's is
 *    undone.
 * 5. Operations of a line run one after the other: only the first of a line is in the file pool.
 */
#include "offload.h"

#include <errno.h>
#include <signal.h>

static bide_file_operation *offload_of(bide_io_operation *operation)
{
    bide_assert(operation->is_file);
    return bide_container_of(operation, bide_file_operation, operation);
}

/* On a thread of the file pool: makes all calls of the operation. -EINTR: it was interrupted (3). */
static int offload_run(void *argument)
{
    bide_io_operation *operation = argument;
    bool again;
    while (!bide_io_take_result(operation, bide_io_call(operation), &again)) {
        if (again && !bide_blocking_is_interrupted()) { /* a device in non-blocking mode */
            struct pollfd polled = {io_fd(operation),
                                    io_direction(operation) == BIDE_IO_INPUT ? POLLIN : POLLOUT, 0};
            poll(&polled, 1, -1);
        }
        if (bide_blocking_is_interrupted())
            return -EINTR;
    }
    return 0;
}

static void offload_continue_line(bide_io *io, bide_descriptor *descriptor, int direction)
{
    bide_loop *loop = loop_of(io);
    if (descriptor != NULL && direction != BIDE_IO_FREE && loop->ops->continue_line != NULL)
        loop->ops->continue_line(loop, descriptor, direction);
}

/* Ends an operation that nothing refers to, on the loop's thread. */
static void offload_end(bide_io_operation *operation, bide_io_outcome outcome)
{
    bide_io *io = operation->io;
    bide_descriptor *descriptor = operation->descriptor;
    int direction = io_direction(operation);
    bide_io_remove(io, operation);
    bide_io_finish_waiting(operation, outcome);
    offload_continue_line(io, descriptor, direction);
}

/* Whether a thread has made all calls of the operation, which has a status then: 3. */
static bool offload_is_done(const bide_file_operation *file)
{
    return file->call.status == 0;
}

/* On the loop's thread: the calls were made, or interrupted. */
static bide_next offload_relay_step(bide_frame *frame, unsigned depth)
{
    bide_file_operation *file = bide_container_of(frame, bide_file_operation, relay);
    bide_io_operation *operation = &file->operation;
    (void)depth;
    bide_assert(bide_loop_is_offloaded_(operation));
    loop_of(operation->io)->counts.completions++;
    offload_end(operation, offload_is_done(file) ? BIDE_IO_DONE : BIDE_IO_CANCELLED);
    return bide_next_none();
}

static const bide_coroutine_code offload_relay_code = {offload_relay_step, "(a call that blocks)",
                                                       __FILE__, NULL, NULL};
static const bide_point offload_relay_point = BIDE_POINT_START(&offload_relay_code);

int bide_loop_create_file_pool_(bide_blocking **files)
{
    bide_blocking_options options = {.name = "files",
                                     .max_threads = MAX_FILE_THREADS,
                                     .spare_threads = SPARE_FILE_THREADS,
                                     .interrupt_signal = SIGURG};
    int error = bide_blocking_create_with(files, &options);
    if (error != -EBUSY)
        return error;
    options.interrupt_signal = 0; /* the program has another use for it */
    return bide_blocking_create_with(files, &options);
}

static int need_file_pool(bide_loop *loop)
{
    if (loop->files != NULL)
        return 0;
    int error = bide_loop_create_file_pool_(&loop->files);
    loop->owns_files = error == 0;
    return error;
}

/* Gives an enlisted operation, the first of its line, to the file pool. Or a negative errno. */
static int offload_start(bide_loop *loop, bide_io_operation *operation)
{
    bide_file_operation *file = offload_of(operation);
    int error = need_file_pool(loop);
    if (error != 0)
        return error;
    bide_frame_init_in(&file->relay, &offload_relay_point, &loop->io.context);
    operation->state |= IO_OFFLOADED;
    if (bide_io_row_of_(operation)->blocks == IO_BLOCKS_ON_FILE)
        operation->flags |= IO_CALL_MAY_WAIT;
    bide_await_later(
        bide_blocking_run_interruptible(&file->call, loop->files, offload_run, operation));
    file->call.awaiter.frame = &file->relay;
    if (file->call.awaiter.ops->suspend(&file->call.awaiter, &file->relay) == NULL)
        return 0;
    return bide_awaiter_resume(&file->call.awaiter, file->call.awaiter.ops);
}

bide_frame *bide_loop_offload_(bide_loop *loop, bide_io_operation *operation, bide_frame *frame)
{
    bide_assert(bide_io_row_of_(operation)->blocks != IO_BLOCKS_NEVER);
    if (operation->descriptor != NULL && (operation->descriptor->bits & IO_PROBED) == 0)
        bide_io_probe_(operation->descriptor);
    bide_io_enlist(&loop->io, operation);
    if (!bide_io_is_first_(operation))
        return NULL; /* 5 */
    int error = offload_start(loop, operation);
    if (error == 0)
        return NULL;
    operation->status = error;
    bide_io_remove(&loop->io, operation);
    operation->state = 0;
    return frame;
}

bool bide_loop_offload_waiting_(bide_loop *loop, bide_io_operation *operation)
{
    bide_assert(bide_io_is_first_(operation) && !bide_loop_is_offloaded_(operation));
    int error = offload_start(loop, operation);
    if (error == 0)
        return true;
    operation->status = error;
    bide_io_remove(&loop->io, operation);
    bide_io_finish_waiting(operation, BIDE_IO_DONE);
    return false;
}

void bide_loop_cancel_offloaded_(bide_loop *loop, bide_io_operation *operation)
{
    bide_awaiter *call = &offload_of(operation)->call.awaiter;
    (void)loop;
    bide_assert(bide_loop_is_offloaded_(operation));
    if (call->ops->withdraw(call))
        offload_end(operation, BIDE_IO_CANCELLED);
    else
        call->ops->cancel(call); /* it has started: the relay ends it */
}

/* Interrupts a call that has started, and sleeps until its thread has posted the relay: 4. */
static void offload_take_back(bide_loop *loop, bide_awaiter *call)
{
    enum { FIRST = 1000, LAST = 1000000 }; /* nanoseconds */
    bide_atomic(uint32_t) never;
    uint64_t interval = FIRST;
    bide_atomic_init(&never, 0);
    call->ops->cancel(call);
    while (!loop->run.scheduler.take_back(&loop->run.scheduler, call)) {
        bide_platform.wait(&never, 0, bide_platform.now() + interval);
        interval = interval < LAST ? 2 * interval : LAST;
    }
}

/*
 * Takes an operation out of its line, when nothing refers to it. True: its call is done, with a result;
 * false: it was interrupted, or did not start.
 */
static bool offload_forget(bide_loop *loop, bide_io_operation *operation)
{
    bide_awaiter *call = &offload_of(operation)->call.awaiter;
    bide_assert(bide_loop_is_offloaded_(operation));
    bool has_started = !call->ops->withdraw(call);
    if (has_started)
        offload_take_back(loop, call);
    bide_io_remove(&loop->io, operation);
    return has_started && offload_is_done(offload_of(operation));
}

void bide_loop_discard_offloaded_(bide_loop *loop, bide_io_operation *operation)
{
    if (offload_forget(loop, operation) && operation->status == 0)
        bide_io_release(operation);
    offload_continue_line(&loop->io, operation->descriptor, io_direction(operation));
}

void bide_loop_release_offloaded_(bide_loop *loop, bide_io_operation *operation)
{
    bool is_done = offload_forget(loop, operation);
    bide_io_finish_waiting(operation, is_done ? BIDE_IO_DONE : BIDE_IO_CLOSED);
}
