/*
 * Threads for blocking calls: one queue under one lock, and a condition on which idle threads
 * sleep. The lock orders everything: a call is the queue's from suspend until a thread takes it,
 * that thread's until it wakes the caller, and is not touched after that.
 *
 * `interrupt_fd` is an eventfd. It becomes readable once, for good, so a poll sees it whenever it
 * comes. That is why an interrupt cannot fall between a look at a flag and the sleep.
 */
#define _GNU_SOURCE
#include "bide/blocking.h"

#include "../system/threads.h"

#include "bide/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct bide_blocking {
    pthread_mutex_t lock;
    pthread_cond_t condition;
    bide_awaiter_chain calls; /* to be made, oldest first */
    bool ending;
    int interrupt_fd; /* constant */
    unsigned count;   /* constant */
    pthread_t threads[];
};

static void *worker(void *argument)
{
    bide_blocking *blocking = argument;
    pthread_mutex_lock(&blocking->lock);
    for (;;) {
        while (blocking->calls.first == NULL && !blocking->ending)
            pthread_cond_wait(&blocking->condition, &blocking->lock);
        bide_awaiter *awaiter = bide_awaiter_chain_take(&blocking->calls);
        if (awaiter == NULL)
            break;
        pthread_mutex_unlock(&blocking->lock);
        bide_blocking_call *call = bide_container_of(awaiter, bide_blocking_call, awaiter);
        call->function(call->argument);
        bide_wake_one(awaiter);
        pthread_mutex_lock(&blocking->lock);
    }
    pthread_mutex_unlock(&blocking->lock);
    return NULL;
}

static void end(void *argument)
{
    bide_blocking *blocking = argument;
    pthread_mutex_lock(&blocking->lock);
    blocking->ending = true;
    pthread_cond_broadcast(&blocking->condition);
    pthread_mutex_unlock(&blocking->lock);
}

static void free_blocking(bide_blocking *blocking)
{
    pthread_cond_destroy(&blocking->condition);
    pthread_mutex_destroy(&blocking->lock);
    close(blocking->interrupt_fd);
    free(blocking);
}

int bide_blocking_create(bide_blocking **created, unsigned threads)
{
    if (threads == 0 || threads > BIDE_THREADS_MOST_)
        return -EINVAL;
    bide_blocking *blocking = malloc(sizeof *blocking + threads * sizeof blocking->threads[0]);
    if (blocking == NULL)
        return -ENOMEM;
    blocking->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (blocking->interrupt_fd < 0) {
        int error = -errno;
        free(blocking);
        return error;
    }
    pthread_mutex_init(&blocking->lock, NULL);
    pthread_cond_init(&blocking->condition, NULL);
    blocking->calls.first = NULL;
    blocking->ending = false;
    blocking->count = threads;
    int error = bide_threads_start_(blocking->threads, threads, worker, blocking, end);
    if (error != 0) {
        free_blocking(blocking);
        return error;
    }
    *created = blocking;
    return 0;
}

void bide_blocking_destroy(bide_blocking *blocking)
{
    if (bide_threads_have_this_(blocking->threads, blocking->count))
        bide_platform.misuse("threads for blocking calls are destroyed on one of them", __func__,
                             __FILE__, __LINE__);
    end(blocking);
    bide_threads_join_(blocking->threads, blocking->count);
    free_blocking(blocking);
}

void bide_blocking_interrupt(bide_blocking *blocking)
{
    int saved = errno;
    uint64_t one = 1;
    /* It can only fail when the count is full, and then it is readable. */
    ssize_t written = write(blocking->interrupt_fd, &one, sizeof one);
    (void)written;
    errno = saved;
}

static bool call_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

static bide_frame *call_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_blocking *blocking = bide_container_of(awaiter, bide_blocking_call, awaiter)->blocking;
    (void)frame;
    pthread_mutex_lock(&blocking->lock);
    awaiter->link = NULL;
    bide_awaiter_chain_append(&blocking->calls, awaiter, awaiter);
    pthread_cond_signal(&blocking->condition);
    pthread_mutex_unlock(&blocking->lock);
    return NULL;
}

/* Takes a call that no thread has begun out of the queue; false if one has, or it has been made. */
static bool call_withdraw(bide_awaiter *awaiter)
{
    bide_blocking *blocking = bide_container_of(awaiter, bide_blocking_call, awaiter)->blocking;
    pthread_mutex_lock(&blocking->lock);
    bool found = bide_awaiter_chain_remove(&blocking->calls, awaiter);
    pthread_mutex_unlock(&blocking->lock);
    return found;
}

static void call_cancel(bide_awaiter *awaiter)
{
    if (!call_withdraw(awaiter))
        return;
    bide_awaiter_end_cancelled(awaiter);
    bide_wake_one(awaiter);
}

static int call_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

bide_awaiter *bide_blocking_run(bide_blocking_call *call, bide_blocking *blocking,
                                void (*function)(void *argument), void *argument)
{
    static const bide_awaiter_ops ops = {
        .ready = call_ready,
        .suspend = call_suspend,
        .resume = call_resume,
        .cancel = call_cancel,
        .withdraw = call_withdraw,
        .name = "bide_blocking_run",
    };
    call->awaiter.ops = &ops;
    call->blocking = blocking;
    call->function = function;
    call->argument = argument;
    return &call->awaiter;
}

static ptrdiff_t read_or_errno(bide_blocking_reader *reader)
{
    /* poll passes over a negative descriptor, and waits for ever on one that is open for writing
     * only. */
    int flags = fcntl(reader->fd, F_GETFL);
    if (flags < 0)
        return -errno;
    if ((flags & O_ACCMODE) == O_WRONLY)
        return -EBADF;
    for (;;) {
        struct pollfd fds[2] = {{reader->fd, POLLIN, 0},
                                {reader->call.blocking->interrupt_fd, POLLIN, 0}};
        int ready = poll(fds, 2, -1);
        if (ready < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        if (fds[1].revents != 0)
            return -ECANCELED;
        ssize_t count = read(reader->fd, reader->buffer, reader->size);
        if (count >= 0)
            return count;
        if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
            return -errno;
    }
}

static void read_function(void *argument)
{
    bide_blocking_reader *reader = argument;
    reader->result = read_or_errno(reader);
}

static int read_resume(bide_awaiter *awaiter)
{
    bide_blocking_reader *reader = bide_container_of(awaiter, bide_blocking_reader, call.awaiter);
    return reader->result < 0 ? (int)reader->result : 0;
}

bide_awaiter *bide_blocking_read(bide_blocking_reader *reader, bide_blocking *blocking, int fd,
                                 void *buffer, size_t size)
{
    static const bide_awaiter_ops ops = {
        .ready = call_ready,
        .suspend = call_suspend,
        .resume = read_resume,
        .cancel = call_cancel,
        .withdraw = call_withdraw,
        .name = "bide_blocking_read",
    };
    bide_await_later(bide_blocking_run(&reader->call, blocking, read_function, reader));
    reader->call.awaiter.ops = &ops;
    reader->fd = fd;
    reader->buffer = buffer;
    reader->size = size;
    reader->result = -ECANCELED; /* unless it is begun */
    return &reader->call.awaiter;
}
