/*
 * Pools of threads for blocking calls: each has one queue under one lock, and a condition on which
 * idle threads sleep.
 *
 *     call     queued --a thread takes it--> made --> ended, its caller is woken
 *                     --cut short--> ended, and not made
 *     thread   unused --a call finds no thread idle--> alive --idle for long--> ended --joined-->
 *              unused
 *
 * 1. The lock orders everything: a call is the queue's from suspend until a thread takes it, that
 *    thread's until it wakes the caller, and is not touched after that.
 * 2. A call that is queued has a thread that will take it: when it is appended there is an idle one
 *    for it, or another is started, or as many as there may be are alive. If none can be started
 *    and none is alive, it is not queued, but ends with the error. A thread ends only if it finds
 *    nothing queued, under the lock.
 * 3. Each thread that ends joins the one that ended before it, so at most one waits to be joined,
 *    and destroying the pool joins that.
 *
 * To interrupt a call is to send its thread a signal whose handler does nothing, so that a system
 * call returns EINTR.
 *
 * 4. The signal may come before the system call begins, and then nothing is interrupted. So it is
 *    sent again, after growing intervals, until the call has ended: by a thread of the pool's, the
 *    interrupter, which sleeps while there is nothing to send.
 * 5. A signal reaches no other call. It is sent under the lock, while the thread's `call` is the
 *    one that is to be interrupted. The thread blocks the signal before it takes `call` off, under
 *    the lock, so none is sent after that; and then takes off what is pending.
 * 6. The request may touch the call under the lock although the call may end: the operation stays
 *    until `cancel` has returned (stop.h), and `call` of the thread says whether it has ended.
 *
 * `interrupt_fd` is an eventfd. It becomes readable once, for good, so a poll sees it whenever it
 * comes. That is why an interrupt of all reads cannot fall between a look at a flag and the sleep.
 */
#define _GNU_SOURCE
#include "bide/blocking.h"

#include "../system/descriptors.h"
#include "../system/threads.h"

#include "bide/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)

enum { NAME_SIZE = 16 /* as the system has it */ };

/* How often a signal is sent again: after this, doubled up to that. */
static const uint64_t first_interval = MILLISECOND;
static const uint64_t longest_interval = 16 * MILLISECOND;

/* A thread of a pool; or room for one. */
typedef struct bide_blocking_thread_ {
    pthread_t thread;
    bide_blocking *blocking;
    struct bide_blocking_thread_ *next; /* unused */
    bide_blocking_call *call;           /* that it makes, and that may be interrupted; or NULL */
} blocking_thread;

struct bide_blocking {
    pthread_mutex_t lock;
    pthread_cond_t condition;
    bide_awaiter_chain calls; /* to be made, oldest first */
    size_t queued;            /* how many */
    unsigned alive;
    unsigned idle; /* of those, on the condition */
    bool ending;
    pthread_cond_t ended;        /* a thread has ended */
    blocking_thread *unused;     /* that were threads once */
    blocking_thread *to_join;    /* has ended, or NULL */
    unsigned used;               /* of `threads`: those behind were never one */
    pthread_cond_t to_interrupt; /* there is something to send, or the pool ends */
    pthread_t interrupter;

    /* constant */
    char name[NAME_SIZE]; /* or empty */
    unsigned max, min;
    uint64_t idle_time;
    int interrupt_signal;
    int interrupt_fd;
    blocking_thread threads[]; /* `max` */
};

/* The pool whose thread this is; and the call that this thread makes, if it may be interrupted. */
static BIDE_THREAD_LOCAL const bide_blocking *own_pool;
static BIDE_THREAD_LOCAL bide_blocking_call *own_call;

/* Waits, with the lock held, for so long at most. False: it has passed. */
static bool wait_for(bide_blocking *blocking, pthread_cond_t *condition, uint64_t nanoseconds)
{
    if (nanoseconds == BIDE_FOREVER) {
        pthread_cond_wait(condition, &blocking->lock);
        return true;
    }
    uint64_t now = bide_platform.now();
    uint64_t until = nanoseconds < BIDE_FOREVER - now ? now + nanoseconds : BIDE_FOREVER;
    uint64_t seconds = until / 1000000000u;
    uint64_t max = sizeof(time_t) < 8 ? INT32_MAX : INT64_MAX;
    struct timespec time = {(time_t)(seconds < max ? seconds : max), (long)(until % 1000000000u)};
    return pthread_cond_timedwait(condition, &blocking->lock, &time) != ETIMEDOUT;
}

/* ---- Making calls ---- */

/* The signal that interrupts, and no other. */
static sigset_t signals(const bide_blocking *blocking)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, blocking->interrupt_signal);
    return set;
}

/* Lets the signal in, or keeps it out. */
static void mask(const bide_blocking *blocking, int how)
{
    sigset_t set = signals(blocking);
    pthread_sigmask(how, &set, NULL);
}

static void take_pending(const bide_blocking *blocking)
{
    static const struct timespec none = {0, 0};
    sigset_t set = signals(blocking);
    while (sigtimedwait(&set, NULL, &none) >= 0)
        ;
}

/* With the lock held, which it gives up meanwhile. */
static void make_interruptible(blocking_thread *self, bide_blocking_call *call)
{
    bide_blocking *blocking = self->blocking;
    call->thread = self;
    self->call = call;
    own_call = call;
    pthread_mutex_unlock(&blocking->lock);
    mask(blocking, SIG_UNBLOCK);
    int status = call->interruptible(call->argument);
    mask(blocking, SIG_BLOCK);
    pthread_mutex_lock(&blocking->lock);
    own_call = NULL;
    self->call = NULL;
    bool interrupted = call->interrupted;
    pthread_mutex_unlock(&blocking->lock);
    if (interrupted)
        take_pending(blocking); /* 5 */
    call->status = status;
    if (interrupted && status == -EINTR)
        bide_awaiter_finish_cancelled(&call->awaiter);
    bide_wake_one(&call->awaiter);
    pthread_mutex_lock(&blocking->lock);
}

/* On this thread, not to be interrupted; `argument` is the call. */
static void make_here(void *argument)
{
    bide_blocking_call *call = argument;
    if (call->interruptible != NULL)
        call->status = call->interruptible(call->argument);
    else
        call->function(call->argument);
}

static void make(blocking_thread *self, bide_blocking_call *call)
{
    bide_blocking *blocking = self->blocking;
    if (call->interruptible != NULL && blocking->interrupt_signal != 0) {
        make_interruptible(self, call);
        return;
    }
    pthread_mutex_unlock(&blocking->lock);
    make_here(call);
    bide_wake_one(&call->awaiter);
    pthread_mutex_lock(&blocking->lock);
}

/* ---- Threads. All of this with the lock held ---- */

static void join_ended(bide_blocking *blocking)
{
    blocking_thread *ended = blocking->to_join;
    if (ended == NULL)
        return;
    pthread_join(ended->thread, NULL); /* it has given up the lock, and does nothing more */
    blocking->to_join = NULL;
    ended->next = blocking->unused;
    blocking->unused = ended;
}

/* A call to be made, or NULL: the thread is to end. */
static bide_awaiter *await_call(bide_blocking *blocking)
{
    bool in_time = true;
    while (blocking->calls.first == NULL) {
        bool may_end = blocking->alive > blocking->min;
        if (blocking->ending || (!in_time && may_end))
            return NULL;
        blocking->idle++;
        in_time =
            wait_for(blocking, &blocking->condition, may_end ? blocking->idle_time : BIDE_FOREVER);
        blocking->idle--;
    }
    blocking->queued--;
    return bide_awaiter_chain_take(&blocking->calls);
}

static void *worker(void *argument)
{
    blocking_thread *self = argument;
    bide_blocking *blocking = self->blocking;
    bide_awaiter *awaiter;
    own_pool = blocking;
    if (blocking->name[0] != '\0')
        pthread_setname_np(pthread_self(), blocking->name);
    pthread_mutex_lock(&blocking->lock);
    while ((awaiter = await_call(blocking)) != NULL)
        make(self, bide_container_of(awaiter, bide_blocking_call, awaiter));
    join_ended(blocking); /* 3 */
    blocking->to_join = self;
    blocking->alive--;
    pthread_cond_signal(&blocking->ended);
    pthread_mutex_unlock(&blocking->lock);
    return NULL;
}

static void nothing(void *argument)
{
    (void)argument;
}

static int start_thread(bide_blocking *blocking)
{
    blocking_thread *thread = blocking->unused;
    if (thread == NULL) {
        if (blocking->used == blocking->max)
            join_ended(blocking); /* there is one: fewer than may be are alive */
        thread = blocking->unused != NULL ? blocking->unused : &blocking->threads[blocking->used];
    }
    thread->blocking = blocking;
    thread->call = NULL;
    int error = bide_threads_start_(&thread->thread, 1, worker, thread, nothing);
    if (error != 0)
        return error;
    if (thread == blocking->unused)
        blocking->unused = thread->next;
    else
        blocking->used++;
    blocking->alive++;
    return 0;
}

/* ---- The interrupter ---- */

/* Sends each call that is to be interrupted a signal. Was there any? */
static bool send_signals(bide_blocking *blocking)
{
    bool any = false;
    for (unsigned i = 0; i < blocking->used; i++) {
        blocking_thread *thread = &blocking->threads[i];
        if (thread->call == NULL || !thread->call->interrupted)
            continue;
        pthread_kill(thread->thread, blocking->interrupt_signal);
        any = true;
    }
    return any;
}

static void *interrupter(void *argument)
{
    bide_blocking *blocking = argument;
    uint64_t interval = first_interval;
    pthread_mutex_lock(&blocking->lock);
    /* What is being made when the pool ends can be interrupted still. */
    while (!blocking->ending || blocking->alive > 0) {
        if (!send_signals(blocking)) {
            pthread_cond_wait(&blocking->to_interrupt, &blocking->lock);
            interval = first_interval;
        } else if (!wait_for(blocking, &blocking->to_interrupt, interval)) {
            interval = interval < longest_interval ? 2 * interval : longest_interval;
        }
    }
    pthread_mutex_unlock(&blocking->lock);
    return NULL;
}

/* (interrupting a system call is all that it is for) */
static void on_signal(int number)
{
    (void)number;
}

/* The signal gets a handler that does nothing, for good. */
static int prepare_signal(int number)
{
    struct sigaction before;
    struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART */
    if (sigaction(number, NULL, &before) != 0)
        return -errno;
    if ((before.sa_flags & SA_SIGINFO) != 0 ||
        (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN &&
         before.sa_handler != on_signal))
        return -EBUSY;
    sigemptyset(&action.sa_mask);
    return sigaction(number, &action, NULL) == 0 ? 0 : -errno;
}

/* ---- Beginning and end ---- */

static void free_blocking(bide_blocking *blocking)
{
    pthread_cond_destroy(&blocking->to_interrupt);
    pthread_cond_destroy(&blocking->ended);
    pthread_cond_destroy(&blocking->condition);
    pthread_mutex_destroy(&blocking->lock);
    close(blocking->interrupt_fd);
    free(blocking);
}

static void end_threads(bide_blocking *blocking)
{
    pthread_mutex_lock(&blocking->lock);
    blocking->ending = true;
    pthread_cond_broadcast(&blocking->condition);
    while (blocking->alive > 0)
        pthread_cond_wait(&blocking->ended, &blocking->lock);
    join_ended(blocking);
    pthread_cond_signal(&blocking->to_interrupt);
    pthread_mutex_unlock(&blocking->lock);
}

static int start_all(bide_blocking *blocking)
{
    int error = 0;
    pthread_mutex_lock(&blocking->lock);
    while (blocking->alive < blocking->min && error == 0)
        error = start_thread(blocking);
    pthread_mutex_unlock(&blocking->lock);
    if (error == 0 && blocking->interrupt_signal != 0)
        error = bide_threads_start_(&blocking->interrupter, 1, interrupter, blocking, nothing);
    if (error != 0)
        end_threads(blocking);
    return error;
}

static void init(bide_blocking *blocking, const bide_blocking_options *options)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&blocking->lock, NULL);
    pthread_cond_init(&blocking->condition, &monotonic);
    pthread_cond_init(&blocking->to_interrupt, &monotonic);
    pthread_cond_init(&blocking->ended, NULL);
    pthread_condattr_destroy(&monotonic);
    blocking->calls.first = NULL;
    blocking->queued = 0;
    blocking->alive = 0;
    blocking->idle = 0;
    blocking->ending = false;
    blocking->unused = NULL;
    blocking->to_join = NULL;
    blocking->used = 0;
    blocking->name[0] = '\0';
    if (options->name != NULL)
        strncat(blocking->name, options->name, NAME_SIZE - 1);
    blocking->max = options->max_threads;
    blocking->min = options->min_threads;
    blocking->idle_time = options->idle_timeout != 0 ? options->idle_timeout : BIDE_BLOCKING_IDLE;
    blocking->interrupt_signal = options->interrupt_signal;
}

int bide_blocking_create_with(bide_blocking **created, const bide_blocking_options *options)
{
    unsigned threads = options->max_threads;
    if (threads == 0 || threads > BIDE_THREADS_MAX_ || options->min_threads > threads)
        return -EINVAL;
    int error = options->interrupt_signal != 0 ? prepare_signal(options->interrupt_signal) : 0;
    if (error != 0)
        return error;
    bide_blocking *blocking = malloc(sizeof *blocking + threads * sizeof blocking->threads[0]);
    if (blocking == NULL)
        return -ENOMEM;
    blocking->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (blocking->interrupt_fd < 0) {
        error = -errno;
        free(blocking);
        return error;
    }
    init(blocking, options);
    error = start_all(blocking);
    if (error != 0) {
        free_blocking(blocking);
        return error;
    }
    *created = blocking;
    return 0;
}

int bide_blocking_create(bide_blocking **blocking, unsigned threads)
{
    bide_blocking_options options = {.max_threads = threads, .min_threads = threads};
    return bide_blocking_create_with(blocking, &options);
}

void bide_blocking_destroy(bide_blocking *blocking)
{
    if (own_pool == blocking)
        bide_platform.misuse("threads for blocking calls are destroyed on one of them", __func__,
                             __FILE__, __LINE__);
    end_threads(blocking);
    if (blocking->interrupt_signal != 0)
        pthread_join(blocking->interrupter, NULL);
    free_blocking(blocking);
}

void bide_blocking_get_stats(bide_blocking *blocking, bide_blocking_stats *counts)
{
    pthread_mutex_lock(&blocking->lock);
    counts->threads = blocking->alive;
    counts->idle = blocking->idle;
    counts->queued = blocking->queued;
    pthread_mutex_unlock(&blocking->lock);
}

void bide_blocking_interrupt(bide_blocking *blocking)
{
    bide_descriptor_raise_(blocking->interrupt_fd);
}

static bool call_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

/* With the lock held: sees to it that a thread takes the call that was appended; or an error. 2 */
static int find_thread(bide_blocking *blocking)
{
    int error = 0;
    if (blocking->idle < blocking->queued && blocking->alive < blocking->max)
        error = start_thread(blocking);
    if (blocking->idle > 0)
        pthread_cond_signal(&blocking->condition);
    return blocking->alive == 0 ? error : 0;
}

/* With the lock held: takes a call that no thread has begun out of the queue; false otherwise. */
static bool take_out(bide_blocking *blocking, bide_awaiter *awaiter)
{
    bool found = bide_awaiter_chain_remove(&blocking->calls, awaiter);
    if (found)
        blocking->queued--;
    return found;
}

static bide_frame *call_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_blocking_call *call = bide_container_of(awaiter, bide_blocking_call, awaiter);
    bide_blocking *blocking = call->blocking;
    bide_scheduler *scheduler = frame->context->scheduler;
    if (BIDE_UNLIKELY(scheduler->environment != NULL)) {
        call->in_place = scheduler;
        scheduler->environment->begin_call(scheduler, awaiter, make_here, call);
        return NULL;
    }
    pthread_mutex_lock(&blocking->lock);
    awaiter->link = NULL;
    bide_awaiter_chain_append(&blocking->calls, awaiter, awaiter);
    blocking->queued++;
    int error = find_thread(blocking);
    if (error != 0) {
        take_out(blocking, awaiter);
        call->status = error;
    }
    pthread_mutex_unlock(&blocking->lock);
    return error != 0 ? frame : NULL;
}

static bool call_withdraw(bide_awaiter *awaiter)
{
    bide_blocking_call *call = bide_container_of(awaiter, bide_blocking_call, awaiter);
    bide_blocking *blocking = call->blocking;
    if (BIDE_UNLIKELY(call->in_place != NULL))
        return call->in_place->environment->take_call_back(call->in_place, awaiter);
    pthread_mutex_lock(&blocking->lock);
    bool found = take_out(blocking, awaiter);
    pthread_mutex_unlock(&blocking->lock);
    return found;
}

/* The same; if a thread makes it, it is interrupted. */
static bool take_out_or_interrupt(bide_blocking_call *call)
{
    bide_blocking *blocking = call->blocking;
    pthread_mutex_lock(&blocking->lock);
    bool found = take_out(blocking, &call->awaiter);
    if (!found && call->thread != NULL && call->thread->call == call) {
        call->interrupted = true; /* 6 */
        pthread_cond_signal(&blocking->to_interrupt);
        pthread_kill(call->thread->thread, blocking->interrupt_signal);
    }
    pthread_mutex_unlock(&blocking->lock);
    return found;
}

static void call_cancel(bide_awaiter *awaiter)
{
    bide_blocking_call *call = bide_container_of(awaiter, bide_blocking_call, awaiter);
    bool found = call->in_place != NULL ? call_withdraw(awaiter) : take_out_or_interrupt(call);
    if (found) {
        bide_awaiter_finish_cancelled(awaiter);
        bide_wake_one(awaiter);
    }
}

static int call_resume(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_blocking_call, awaiter)->status;
}

/* The table of an operation that is a call. */
#define CALL_OPS(resume_, name_)                                                                  \
    {                                                                                             \
        .ready = call_ready, .suspend = call_suspend, .resume = (resume_), .cancel = call_cancel, \
        .withdraw = call_withdraw, .name = (name_),                                               \
    }

static void call_init(bide_blocking_call *call, const bide_awaiter_ops *ops,
                      bide_blocking *blocking, void *argument)
{
    call->awaiter.ops = ops;
    call->blocking = blocking;
    call->function = NULL;
    call->interruptible = NULL;
    call->argument = argument;
    call->status = 0;
    call->in_place = NULL;
    call->thread = NULL;
    call->interrupted = false;
}

bide_awaiter *bide_blocking_run(bide_blocking_call *call, bide_blocking *blocking,
                                void (*function)(void *argument), void *argument)
{
    static const bide_awaiter_ops ops = CALL_OPS(call_resume, "bide_blocking_run");
    call_init(call, &ops, blocking, argument);
    call->function = function;
    return &call->awaiter;
}

bide_awaiter *bide_blocking_run_interruptible(bide_blocking_call *call, bide_blocking *blocking,
                                              int (*function)(void *argument), void *argument)
{
    static const bide_awaiter_ops ops = CALL_OPS(call_resume, "bide_blocking_run_interruptible");
    call_init(call, &ops, blocking, argument);
    call->interruptible = function;
    return &call->awaiter;
}

bool bide_blocking_is_interrupted(void)
{
    bide_blocking_call *call = own_call;
    if (call == NULL)
        return false;
    pthread_mutex_lock(&call->blocking->lock);
    bool interrupted = call->interrupted;
    pthread_mutex_unlock(&call->blocking->lock);
    return interrupted;
}

static ptrdiff_t read_or_errno(bide_blocking_reader *reader)
{
    const bide_blocking *blocking = reader->call.blocking; /* NULL: made in place, perhaps */
    /* poll passes over a negative descriptor, and waits for ever on one that is open for writing
     * only. */
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

static int read_function(void *argument)
{
    bide_blocking_reader *reader = argument;
    ptrdiff_t result = read_or_errno(reader);
    reader->result = result == -EINTR ? -ECANCELED : result;
    return result < 0 ? (int)result : 0;
}

static int read_resume(bide_awaiter *awaiter)
{
    bide_blocking_reader *reader = bide_container_of(awaiter, bide_blocking_reader, call.awaiter);
    if (reader->call.status != 0)
        reader->result = reader->call.status;
    return reader->call.status;
}

bide_awaiter *bide_blocking_read(bide_blocking_reader *reader, bide_blocking *blocking, int fd,
                                 void *buffer, size_t size)
{
    static const bide_awaiter_ops ops = CALL_OPS(read_resume, "bide_blocking_read");
    call_init(&reader->call, &ops, blocking, reader);
    reader->call.interruptible = read_function;
    reader->fd = fd;
    reader->buffer = buffer;
    reader->size = size;
    reader->result = -ECANCELED; /* unless it is begun */
    return &reader->call.awaiter;
}
