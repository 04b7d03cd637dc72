/*
 * Pools of threads for blocking calls. Each pool has one queue under one lock, and a condition on
 * which idle threads sleep. This file has the threads, blocking_call.c the operations.
 *
 *     call     queued --a thread takes it--> made --> ended, its caller is woken
 *                     --cancelled--> ended, and not made
 *     thread   unused --a call finds no idle thread--> alive --idle for long--> ended --joined-->
 *              unused
 *
 * 1. The lock orders everything. The queue owns a call from its suspend until a thread takes it; then
 *    the thread owns it until it wakes the caller, and does not touch it after that.
 * 2. Every queued call has a thread that will take it: when it is appended, a thread is idle, or
 *    another is started, or the maximum is alive. If none can be started and none is alive, the call
 *    is not queued, and ends with the error. A thread ends only if it finds nothing queued, under the
 *    lock.
 * 3. A thread that ends joins the thread that ended before it. So at most one thread waits to be
 *    joined, and the destruction of the pool joins it.
 *
 * A call is interrupted by a signal to its thread. The handler does nothing; a system call returns
 * EINTR.
 *
 * 4. The signal may arrive before the system call starts, and then interrupts nothing. So the
 *    interrupter, a thread of the pool's, sends it again at growing intervals until the call has
 *    ended. It sleeps while there is nothing to send.
 * 5. A signal reaches no other call. It is sent under the lock, while the thread's `call` is the
 *    interrupted one. The thread blocks the signal before it clears `call` under the lock, so none is
 *    sent after that; then it discards a pending one.
 * 6. A cancellation may touch the call under the lock although the call may end: the operation exists
 *    until `cancel` has returned (stop.h), and the thread's `call` tells whether the call has ended.
 *
 * `interrupt_fd` is an eventfd. It becomes readable once, and stays so. So an interruption of all
 * reads is not lost between a check of a flag and the sleep.
 */
#define _GNU_SOURCE
#include "blocking_pool.h"

#include "../system/descriptors.h"
#include "../system/fork.h"
#include "../system/threads.h"

#include "bide/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* The intervals of the interrupter: nanoseconds, doubled from the first up to the last. */
#define FIRST_INTERVAL UINT64_C(1000000)
#define MAX_INTERVAL   UINT64_C(16000000)

/* The calling thread's pool, and the interruptible call that it makes; or NULL. */
static BIDE_THREAD_LOCAL const bide_blocking *own_pool;
static BIDE_THREAD_LOCAL bide_blocking_call *own_call;

/* Waits on the condition, under the lock. False: timed out. */
static bool blocking_wait(bide_blocking *blocking, pthread_cond_t *condition, uint64_t nanoseconds)
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

static sigset_t interrupt_set(const bide_blocking *blocking)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, blocking->interrupt_signal);
    return set;
}

/* Blocks or unblocks the signal. */
static void mask_interrupt(const bide_blocking *blocking, int how)
{
    sigset_t set = interrupt_set(blocking);
    pthread_sigmask(how, &set, NULL);
}

static void discard_pending_interrupt(const bide_blocking *blocking)
{
    static const struct timespec none = {0, 0};
    sigset_t set = interrupt_set(blocking);
    while (sigtimedwait(&set, NULL, &none) >= 0)
        ;
}

/* Under the lock, which it releases for the call. */
static void make_interruptible_call(blocking_thread *self, bide_blocking_call *call)
{
    bide_blocking *blocking = self->blocking;
    call->at.thread = self;
    self->call = call;
    own_call = call;
    pthread_mutex_unlock(&blocking->lock);
    mask_interrupt(blocking, SIG_UNBLOCK);
    int status = call->interruptible(call->argument);
    mask_interrupt(blocking, SIG_BLOCK);
    pthread_mutex_lock(&blocking->lock);
    bide_assert(self->call == call && own_call == call); /* 5 */
    own_call = NULL;
    self->call = NULL;
    bool interrupted = call->interrupted;
    pthread_mutex_unlock(&blocking->lock);
    if (interrupted)
        discard_pending_interrupt(blocking); /* 5 */
    call->status = status;
    if (interrupted && status == -EINTR)
        bide_awaiter_finish_cancelled(&call->awaiter);
    bide_wake_one(&call->awaiter);
    pthread_mutex_lock(&blocking->lock);
}

void bide_blocking_make_here_(void *argument)
{
    bide_blocking_call *call = argument;
    if (call->interruptible != NULL)
        call->status = call->interruptible(call->argument);
    else
        call->function(call->argument);
}

/* Under the lock, which it releases for the call. */
static void make_call(blocking_thread *self, bide_blocking_call *call)
{
    bide_blocking *blocking = self->blocking;
    if (call->interruptible != NULL && blocking->interrupt_signal != 0) {
        make_interruptible_call(self, call);
        return;
    }
    pthread_mutex_unlock(&blocking->lock);
    bide_blocking_make_here_(call);
    bide_wake_one(&call->awaiter);
    pthread_mutex_lock(&blocking->lock);
}

/* ---- Threads; all under the lock ---- */

static void join_ended_thread(bide_blocking *blocking)
{
    blocking_thread *ended = blocking->to_join;
    if (ended == NULL)
        return;
    pthread_join(ended->thread, NULL); /* it has released the lock, and only returns */
    blocking->to_join = NULL;
    ended->next = blocking->unused;
    blocking->unused = ended;
}

/* The next call to make; NULL: the thread has to end. */
static bide_blocking_call *next_call(bide_blocking *blocking)
{
    bool in_time = true;
    while (blocking->calls.first == NULL) {
        bool may_end = blocking->alive > blocking->min;
        if (blocking->ending || (!in_time && may_end))
            return NULL;
        blocking->idle++;
        in_time = blocking_wait(blocking, &blocking->condition,
                                may_end ? blocking->idle_time : BIDE_FOREVER);
        bide_assert(blocking->idle != 0 && blocking->idle <= blocking->alive);
        blocking->idle--;
    }
    bide_blocking_call *call =
        bide_container_of(blocking->calls.first, bide_blocking_call, awaiter);
    bide_blocking_dequeue_(blocking, call);
    return call;
}

static void *make_calls(void *argument)
{
    blocking_thread *self = argument;
    bide_blocking *blocking = self->blocking;
    bide_blocking_call *call;
    own_pool = blocking;
    if (blocking->name[0] != '\0')
        pthread_setname_np(pthread_self(), blocking->name);
    pthread_mutex_lock(&blocking->lock);
    while ((call = next_call(blocking)) != NULL)
        make_call(self, call);
    join_ended_thread(blocking); /* 3 */
    bide_assert(blocking->to_join == NULL && blocking->alive != 0);
    blocking->to_join = self;
    blocking->alive--;
    pthread_cond_signal(&blocking->ended);
    pthread_mutex_unlock(&blocking->lock);
    return NULL;
}

static void nothing_to_undo(void *argument)
{
    (void)argument;
}

static void *interrupter_main(void *argument);

/* Starts the interrupter before the first thread whose calls it may have to interrupt. */
static int need_interrupter(bide_blocking *blocking)
{
    if (blocking->interrupt_signal == 0 || blocking->has_interrupter)
        return 0;
    int error =
        bide_threads_start_(&blocking->interrupter, 1, interrupter_main, blocking, nothing_to_undo);
    blocking->has_interrupter = error == 0;
    return error;
}

static int start_blocking_thread(bide_blocking *blocking)
{
    bide_assert(blocking->alive < blocking->max);
    int error = need_interrupter(blocking);
    if (error != 0)
        return error;
    blocking_thread *thread = blocking->unused;
    if (thread == NULL) {
        if (blocking->used == blocking->max)
            join_ended_thread(blocking); /* there is one, since fewer than `max` are alive */
        thread = blocking->unused != NULL ? blocking->unused : &blocking->threads[blocking->used];
    }
    thread->blocking = blocking;
    thread->call = NULL;
    error = bide_threads_start_(&thread->thread, 1, make_calls, thread, nothing_to_undo);
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

/* Sends a signal to the thread of each interrupted call. False: there was none. */
static bool send_interrupts(bide_blocking *blocking)
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

static void *interrupter_main(void *argument)
{
    bide_blocking *blocking = argument;
    uint64_t interval = FIRST_INTERVAL;
    pthread_mutex_lock(&blocking->lock);
    /* A call that runs while the pool is destroyed can still be interrupted. */
    while (!blocking->ending || blocking->alive > 0) {
        if (!send_interrupts(blocking)) {
            pthread_cond_wait(&blocking->to_interrupt, &blocking->lock);
            interval = FIRST_INTERVAL;
        } else if (!blocking_wait(blocking, &blocking->to_interrupt, interval)) {
            interval = interval < MAX_INTERVAL ? 2 * interval : MAX_INTERVAL;
        }
    }
    pthread_mutex_unlock(&blocking->lock);
    return NULL;
}

static void on_interrupt(int number)
{
    (void)number;
}

/* Installs a handler that does nothing, for good. */
static int install_interrupt_handler(int number)
{
    struct sigaction before;
    struct sigaction action = {.sa_handler = on_interrupt}; /* without SA_RESTART */
    if (sigaction(number, NULL, &before) != 0)
        return -errno;
    if ((before.sa_flags & SA_SIGINFO) != 0 ||
        (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN &&
         before.sa_handler != on_interrupt))
        return -EBUSY;
    sigemptyset(&action.sa_mask);
    return sigaction(number, &action, NULL) == 0 ? 0 : -errno;
}

/* ---- Create and destroy ---- */

static void free_blocking(bide_blocking *blocking)
{
    bide_assert(blocking->alive == 0 && blocking->idle == 0 && blocking->to_join == NULL);
    bide_assert(blocking->queued == 0 && blocking->calls.first == NULL);
    pthread_cond_destroy(&blocking->to_interrupt);
    pthread_cond_destroy(&blocking->ended);
    pthread_cond_destroy(&blocking->condition);
    pthread_mutex_destroy(&blocking->lock);
    close(blocking->interrupt_fd);
    free(blocking);
}

static void stop_blocking_threads(bide_blocking *blocking)
{
    pthread_mutex_lock(&blocking->lock);
    blocking->ending = true;
    pthread_cond_broadcast(&blocking->condition);
    while (blocking->alive > 0)
        pthread_cond_wait(&blocking->ended, &blocking->lock);
    join_ended_thread(blocking);
    pthread_cond_signal(&blocking->to_interrupt);
    pthread_mutex_unlock(&blocking->lock);
    if (blocking->has_interrupter)
        pthread_join(blocking->interrupter, NULL);
}

static int start_min_threads(bide_blocking *blocking)
{
    int error = 0;
    pthread_mutex_lock(&blocking->lock);
    while (blocking->alive < blocking->min && error == 0)
        error = start_blocking_thread(blocking);
    pthread_mutex_unlock(&blocking->lock);
    if (error != 0)
        stop_blocking_threads(blocking);
    return error;
}

static void init_blocking(bide_blocking *blocking, const bide_blocking_options *options)
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
    blocking->has_interrupter = false;
    blocking->name[0] = '\0';
    if (options->name != NULL)
        strncat(blocking->name, options->name, BLOCKING_NAME_SIZE - 1);
    blocking->max = options->max_threads;
    blocking->min = options->min_threads;
    blocking->idle_time = options->idle_timeout != 0 ? options->idle_timeout : BIDE_BLOCKING_IDLE;
    blocking->generation = bide_generation_;
    blocking->interrupt_signal = options->interrupt_signal;
}

int bide_blocking_create_with(bide_blocking **created, const bide_blocking_options *options)
{
    unsigned threads = options->max_threads;
    if (threads == 0 || threads > BIDE_THREADS_MAX_ || options->min_threads > threads)
        return -EINVAL;
    int error =
        options->interrupt_signal != 0 ? install_interrupt_handler(options->interrupt_signal) : 0;
    if (error != 0)
        return error;
    bide_blocking *blocking = malloc(sizeof *blocking + threads * sizeof blocking->threads[0]);
    if (blocking == NULL)
        return -ENOMEM;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    blocking->interrupt_fd = fd >= 0 ? bide_descriptor_not_standard_(fd) : -errno;
    if (blocking->interrupt_fd < 0) {
        error = blocking->interrupt_fd;
        if (fd >= 0)
            close(fd);
        free(blocking);
        return error;
    }
    init_blocking(blocking, options);
    error = start_min_threads(blocking);
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

void bide_blocking_destroy_in_(bide_blocking *blocking, const char *function, const char *file,
                               unsigned line)
{
    if (blocking == NULL)
        return;
    if (blocking->generation != bide_generation_)
        bide_misuse_(
            "threads for blocking calls are destroyed in a child of the process that created them",
            function, file, line);
    if (own_pool == blocking)
        bide_misuse_("threads for blocking calls are destroyed on one of them", function, file,
                     line);
    stop_blocking_threads(blocking);
    free_blocking(blocking);
}

#undef bide_blocking_destroy

void bide_blocking_destroy(bide_blocking *blocking)
{
    bide_blocking_destroy_in_(blocking, __func__, __FILE__, __LINE__);
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

int bide_blocking_find_thread_(bide_blocking *blocking)
{
    int error = 0;
    if (blocking->idle < blocking->queued && blocking->alive < blocking->max)
        error = start_blocking_thread(blocking);
    if (blocking->idle > 0)
        pthread_cond_signal(&blocking->condition);
    return blocking->alive == 0 ? error : 0;
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
