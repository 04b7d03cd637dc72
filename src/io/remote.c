/*
 * Remote requests: requests of other threads to the owner thread of an io. Each is one of these:
 *
 *     REMOTE_STOP    stop an operation that waits on the io
 *     REMOTE_BEGIN   begin an operation that was awaited on another thread of the io's group
 *     REMOTE_CALL    call a function, for whose return the sender waits
 *
 * Threads: any thread sends a request. The owner thread runs them, in `remote_frame`, a frame that
 * is posted to the io's scheduler.
 *
 * 1. A sender pushes its request onto `remote_requests` (release), and the frame takes them all
 *    (acquire). So the owner sees what was written before the request was sent. The gate of a wait
 *    that is to stop is shut until the owner has confirmed that the operation has left (stop.h,
 *    5a). So the operation stays, even if it ends before the frame runs.
 * 2. The push that finds the list empty posts the frame. The frame takes the list when it runs, and
 *    is in no queue then, so the next push that finds the list empty may post it again. That push
 *    writes the frame anew. It has acquired what the take released: the frame was read before. If a
 *    push finds the list not empty, the frame is posted, or about to be, and has not taken the list
 *    yet.
 * 3. An operation ends once. Its back end alone calls bide_io_finish_waiting, when it needs the
 *    operation's memory no longer.
 * 4. Requests run in the order of their pushes. An operation of a group can be requested to stop
 *    only after its suspend has returned, and so after it was pushed. In a group the owner thread
 *    itself sends its stop requests too, because the operation may not have begun.
 * 5. A remote call belongs to its sender until it is done, which the owner releases and the sender
 *    acquires. A sender that is the owner of an io of the group runs its own requests while it
 *    waits. So two that wait for each other continue.
 */
#include "bide/extend/io.h"

#include "../coroutine/observe.h"
#include "../system/fork.h"

#include <errno.h>

#include "operation.h"

/* The kind of a request: the low bits of its address. */
enum { REMOTE_STOP = 0, REMOTE_BEGIN = 1, REMOTE_CALL = 2, REMOTE_KINDS = 3 };

typedef struct remote_call {
    uintptr_t next;
    void (*run)(bide_io *io, void *argument);
    void *argument;
    bide_atomic(uint32_t) is_done;
} remote_call;

static bide_awaiter *awaiter_of_request(uintptr_t request)
{
    return (bide_awaiter *)(request & ~(uintptr_t)REMOTE_KINDS);
}

static bide_io_operation *operation_of_request(uintptr_t request)
{
    return bide_container_of(awaiter_of_request(request), bide_io_operation, awaiter);
}

static remote_call *call_of_request(uintptr_t request)
{
    return (remote_call *)(request & ~(uintptr_t)REMOTE_KINDS);
}

static uintptr_t next_request(uintptr_t request)
{
    switch (request & REMOTE_KINDS) {
    case REMOTE_STOP:
        return (uintptr_t)*bide_awaiter_next_leaving_(awaiter_of_request(request));
    case REMOTE_BEGIN:
        return (uintptr_t)awaiter_of_request(request)->link;
    default:
        return call_of_request(request)->next;
    }
}

static void set_next_request(uintptr_t request, uintptr_t next)
{
    switch (request & REMOTE_KINDS) {
    case REMOTE_STOP:
        *bide_awaiter_next_leaving_(awaiter_of_request(request)) = (bide_awaiter *)next;
        break;
    case REMOTE_BEGIN:
        awaiter_of_request(request)->link = (bide_awaiter *)next;
        break;
    default:
        call_of_request(request)->next = next;
        break;
    }
}

/* ---- On the owner thread ---- */

static void run_remote_stop(bide_io *io, bide_io_operation *operation)
{
    if ((operation->state & IO_WAITING) != 0) {
        operation->state |= IO_STOP_REQUESTED;
        io->table->cancel(io, operation);
    } else if (bide_awaiter_has_left_(&operation->awaiter)) {
        bide_wake_one(&operation->awaiter);
    }
}

static void run_remote_begin(bide_io *io, bide_io_operation *operation)
{
    bide_frame *frame = operation->awaiter.frame;
    bide_assert(operation->io == io);
    if (bide_io_begin_(io, operation, frame) == frame)
        bide_wake_one(&operation->awaiter);
}

static void run_remote_call(bide_io *io, remote_call *call)
{
    bide_atomic(uint32_t) *is_done = &call->is_done;
    call->run(io, call->argument);
    /* release: 5. Its memory may be reused from here on: only its address is used. */
    bide_atomic_store(is_done, 1, release);
    bide_platform.wake(is_done, 1);
}

static void run_remote_request(bide_io *io, uintptr_t request)
{
    switch (request & REMOTE_KINDS) {
    case REMOTE_STOP:
        run_remote_stop(io, operation_of_request(request));
        break;
    case REMOTE_BEGIN:
        run_remote_begin(io, operation_of_request(request));
        break;
    default:
        run_remote_call(io, call_of_request(request));
        break;
    }
}

static bide_next remote_step(bide_frame *frame, unsigned depth)
{
    bide_io *io = bide_container_of(frame, bide_io, remote_frame);
    uintptr_t oldest = 0;
    (void)depth;
    /* acquire: 1. release: 2, partner is the next push */
    uintptr_t newest = bide_atomic_exchange(&io->remote_requests, 0, acq_rel);
    bide_assert(newest != 0); /* 2 */
    for (uintptr_t request = newest, next; request != 0; request = next) {
        next = next_request(request);
        set_next_request(request, oldest);
        oldest = request;
    }
    for (uintptr_t request = oldest, next; request != 0; request = next) {
        next = next_request(request);
        run_remote_request(io, request);
    }
    return bide_next_none();
}

static const bide_coroutine_code remote_code = {remote_step, "(remote requests to an io)", __FILE__,
                                                NULL, NULL};
static const bide_point remote_point = BIDE_POINT_START(&remote_code);

void bide_io_init(bide_io *io, const bide_io_table *table, bide_scheduler *scheduler)
{
    io->table = table;
    io->scheduler = scheduler;
    io->context.scheduler = scheduler;
    io->context.stop = NULL;
    io->context.name = NULL;
    io->context.on_unhandled_error = NULL;
    io->context.values = NULL;
    io->descriptors = NULL;
    io->in_flight = 0;
    io->begun = 0;
    io->generation = bide_generation_;
    io->group = NULL;
    bide_atomic_init(&io->remote_requests, 0);
}

/* ---- On any thread ---- */

/* The sender does not touch the request afterwards. */
static void send_remote_request(bide_io *io, uintptr_t request)
{
    uintptr_t newest = bide_atomic_load(&io->remote_requests, relaxed);
    do {
        set_next_request(request, newest);
        /* release: 1. acquire: 2 */
    } while (!bide_atomic_compare_exchange_weak(&io->remote_requests, &newest, request, acq_rel,
                                                relaxed));
    if (newest == 0) {
        bide_frame_init_in(&io->remote_frame, &remote_point, &io->context);
        io->remote_frame.awaiter.frame = &io->remote_frame;
        io->scheduler->post(io->scheduler, &io->remote_frame.awaiter, &io->remote_frame.awaiter);
    }
}

void bide_io_cancel(bide_awaiter *awaiter)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    bide_io *io = operation->io;
    if (io->group == NULL && bide_io_on_owner_thread_(io)) {
        if ((operation->state & IO_WAITING) != 0)
            io->table->cancel(io, operation);
        return;
    }
    if (bide_awaiter_leaves_(awaiter))
        send_remote_request(io, (uintptr_t)awaiter | REMOTE_STOP);
}

bide_frame *bide_io_forward_(bide_io *io, bide_io_operation *operation)
{
    operation->io = io;
    send_remote_request(io, (uintptr_t)&operation->awaiter | REMOTE_BEGIN);
    return NULL;
}

void bide_io_call_remote_(bide_io *io, void (*run)(bide_io *io, void *argument), void *argument)
{
    const struct bide_io_group_ *group = io->group;
    if (group == NULL || bide_is_inherited_(io->generation) || bide_io_on_owner_thread_(io)) {
        run(io, argument);
        return;
    }
    remote_call call;
    call.run = run;
    call.argument = argument;
    bide_atomic_init(&call.is_done, 0);
    send_remote_request(io, (uintptr_t)&call | REMOTE_CALL);
    /* acquire: 5 */
    while (bide_atomic_load(&call.is_done, acquire) == 0) {
        if (group->serve(group))
            bide_platform.yield();
        else
            bide_platform.wait(&call.is_done, 0, BIDE_FOREVER);
    }
}

/* ---- The end of an operation ---- */

void bide_io_finish_waiting(bide_io_operation *operation, bide_io_outcome outcome)
{
    bide_awaiter *awaiter = &operation->awaiter;
    unsigned state = operation->state;
    bide_assert((state & IO_WAITING) != 0); /* 3 */
    bide_assert((state & (IO_IN_RING | IO_CANCEL_IN_RING | IO_IS_FILE_JOB)) == 0);
    operation->state = 0;
    if ((state & IO_OPENED) != 0) /* it did not connect */
        bide_io_release(operation);
    if (outcome != BIDE_IO_DONE)
        operation->status = outcome == BIDE_IO_CLOSED ? -EPIPE : -ECANCELED;
    if (outcome == BIDE_IO_CANCELLED)
        bide_awaiter_finish_cancelled(awaiter);
    if ((state & IO_STOP_REQUESTED) != 0) {
        /* Confirms that it has left. It has not ended, so the gate cannot have been stepped. */
        bool has_stepped = bide_awaiter_has_left_(awaiter);
        (void)has_stepped;
    }
    BIDE_OBSERVE_(operation_ends, (awaiter, operation->count, operation->status));
    bide_wake_one(awaiter);
}
