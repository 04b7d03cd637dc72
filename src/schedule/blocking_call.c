/*
 * Operations on a pool for blocking calls: a call of a function, an interruptible call, a read. The
 * argument, and the numbers that comments refer to, are in blocking.c.
 */
#define _GNU_SOURCE
#include "blocking_pool.h"

#include "../coroutine/internal.h"
#include "../system/fork.h"

#include "bide/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#undef bide_blocking_run
#undef bide_blocking_run_interruptible

/* ---- Calls ---- */

static bool blocking_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

/* Removes a call from the queue; false: a thread has taken it. Under the lock. */
static bool dequeue_call(bide_blocking *blocking, bide_blocking_call *call)
{
    bool is_queued = call->is_queued;
    if (is_queued)
        bide_blocking_dequeue_(blocking, call);
    return is_queued;
}

static bide_frame *blocking_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_blocking_call *call = bide_container_of(awaiter, bide_blocking_call, awaiter);
    bide_blocking *blocking = call->blocking;
    bide_scheduler *scheduler = frame->context->scheduler;
    if (BIDE_UNLIKELY(scheduler->environment != NULL)) {
        call->in_place = scheduler;
        scheduler->environment->begin_call(scheduler, awaiter, bide_blocking_make_here_, call);
        return NULL;
    }
    if (BIDE_UNLIKELY(bide_is_inherited_(blocking->generation)))
        bide_misused_by_("a blocking call in a child of the process that created its threads",
                         frame, NULL);
    pthread_mutex_lock(&blocking->lock);
    bide_blocking_enqueue_(blocking, call);
    int error = bide_blocking_find_thread_(blocking);
    if (error != 0) {
        bide_blocking_dequeue_(blocking, call);
        call->status = error;
    }
    pthread_mutex_unlock(&blocking->lock);
    return error != 0 ? frame : NULL;
}

static bool blocking_withdraw(bide_awaiter *awaiter)
{
    bide_blocking_call *call = bide_container_of(awaiter, bide_blocking_call, awaiter);
    bide_blocking *blocking = call->blocking;
    if (BIDE_UNLIKELY(call->in_place != NULL))
        return call->in_place->environment->take_call_back(call->in_place, awaiter);
    pthread_mutex_lock(&blocking->lock);
    bool found = dequeue_call(blocking, call);
    pthread_mutex_unlock(&blocking->lock);
    return found;
}

/* Removes a call from the queue, or interrupts it if it can be. False: a thread has taken it. */
static bool dequeue_or_interrupt(bide_blocking_call *call)
{
    bide_blocking *blocking = call->blocking;
    pthread_mutex_lock(&blocking->lock);
    bool found = dequeue_call(blocking, call);
    blocking_thread *thread = found ? NULL : call->at.thread;
    if (thread != NULL && thread->call == call) {
        call->interrupted = true; /* 6 */
        pthread_cond_signal(&blocking->to_supervise);
        pthread_kill(thread->thread, blocking->interrupt_signal);
    }
    pthread_mutex_unlock(&blocking->lock);
    return found;
}

static void blocking_cancel(bide_awaiter *awaiter)
{
    bide_blocking_call *call = bide_container_of(awaiter, bide_blocking_call, awaiter);
    bool found = call->in_place != NULL ? blocking_withdraw(awaiter) : dequeue_or_interrupt(call);
    if (found) {
        bide_awaiter_finish_cancelled(awaiter);
        bide_wake_one(awaiter);
    }
}

static int blocking_resume(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_blocking_call, awaiter)->status;
}

/* The operations of a kind of call. */
#define BLOCKING_OPS(resume_, name_)                                               \
    {                                                                              \
        .ready = blocking_ready, .suspend = blocking_suspend, .resume = (resume_), \
        .cancel = blocking_cancel, .withdraw = blocking_withdraw, .name = (name_), \
    }

static void init_call(bide_blocking_call *call, const bide_awaiter_ops *ops,
                      bide_blocking *blocking, void *argument)
{
    call->awaiter.ops = ops;
    call->blocking = blocking;
    call->function = NULL;
    call->interruptible = NULL;
    call->argument = argument;
    call->status = 0;
    call->in_place = NULL;
    call->at.thread = NULL;
    call->is_queued = false;
    call->interrupted = false;
}

bide_awaiter *bide_blocking_run(bide_blocking_call *call, bide_blocking *blocking,
                                void (*function)(void *argument), void *argument)
{
    static const bide_awaiter_ops ops = BLOCKING_OPS(blocking_resume, "bide_blocking_run");
    init_call(call, &ops, blocking, argument);
    call->function = function;
    return &call->awaiter;
}

bide_awaiter *bide_blocking_run_interruptible(bide_blocking_call *call, bide_blocking *blocking,
                                              int (*function)(void *argument), void *argument)
{
    static const bide_awaiter_ops ops =
        BLOCKING_OPS(blocking_resume, "bide_blocking_run_interruptible");
    init_call(call, &ops, blocking, argument);
    call->interruptible = function;
    return &call->awaiter;
}

/* ---- Reads ---- */

static ptrdiff_t blocking_read_or_errno(bide_blocking_reader *reader)
{
    const bide_blocking *blocking = reader->call.blocking; /* NULL: it may be made in place */
    /* poll ignores a negative descriptor, and waits forever on one that is write-only. */
    int flags = fcntl(reader->fd, F_GETFL);
    if (flags < 0)
        return -errno;
    if ((flags & O_ACCMODE) == O_WRONLY)
        return -EBADF;
    for (;;) {
        struct pollfd fds[2] = {{reader->fd, POLLIN, 0},
                                {blocking != NULL ? blocking->interrupt_fd : -1, POLLIN, 0}};
        int ready = poll(fds, 2, -1);
        if (ready < 0) {
            if (errno == EINTR && !bide_blocking_is_interrupted())
                continue;
            return -errno;
        }
        if (fds[1].revents != 0)
            return -ECANCELED;
        ssize_t count = read(reader->fd, reader->buffer, reader->size);
        if (count >= 0)
            return count;
        if (errno == EINTR && bide_blocking_is_interrupted())
            return -EINTR;
        if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
            return -errno;
    }
}

static int blocking_read_call(void *argument)
{
    bide_blocking_reader *reader = argument;
    ptrdiff_t result = blocking_read_or_errno(reader);
    reader->result = result == -EINTR ? -ECANCELED : result;
    return result < 0 ? (int)result : 0;
}

static int blocking_read_resume(bide_awaiter *awaiter)
{
    bide_blocking_reader *reader = bide_container_of(awaiter, bide_blocking_reader, call.awaiter);
    if (reader->call.status != 0)
        reader->result = reader->call.status;
    return reader->call.status;
}

bide_awaiter *bide_blocking_read(bide_blocking_reader *reader, bide_blocking *blocking, int fd,
                                 void *buffer, size_t size)
{
    static const bide_awaiter_ops ops = BLOCKING_OPS(blocking_read_resume, "bide_blocking_read");
    init_call(&reader->call, &ops, blocking, reader);
    reader->call.interruptible = blocking_read_call;
    reader->fd = fd;
    reader->buffer = buffer;
    reader->size = size;
    reader->result = -ECANCELED; /* if it is never made */
    return &reader->call.awaiter;
}
