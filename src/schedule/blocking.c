/*
 * Pools of threads for blocking calls. Each pool has one queue under one lock, and a condition on
 * which idle threads sleep. This file has the threads, blocking_call.c the operations.
 *
 *     call     queued --a thread takes it--> made --> ended, its caller is woken
 *                     --cancelled--> ended, and not made
 *     thread   unused --a call finds no idle thread--> alive --idle for long--> ended --joined, or
 *              detached--> unused
 *
 * 1. The lock orders everything. The queue owns a call from its suspend until a thread takes it; then
 *    the thread owns it until it wakes the caller, and does not touch it after that.
 * 2. Every queued call has a thread that will take it: when it is appended, a thread is idle, or
 *    another is started, or the maximum is alive. If none can be started and none is alive, the call
 *    is not queued, and ends with the error. A thread ends only if it finds nothing queued, under the
 *    lock.
 * 3. A thread that ends joins the thread that ended before it. So at most one thread waits to be
 *    joined, and the destruction of the pool joins it. The threads of a pool that is never destroyed
 *    detach themselves instead.
 *
 * A call is interrupted by a signal to its thread. The handler does nothing; a system call returns
 * EINTR.
 *
 * 4. The signal may arrive before the system call starts, and then interrupts nothing. So the
 *    supervisor, a thread of the pool's, sends it again at growing intervals until the call has
 *    ended. It sleeps while there is nothing to do.
 * 5. A signal reaches no other call. It is sent under the lock, while the thread's `call` is the
 *    interrupted one. The thread blocks the signal before it clears `call` under the lock, so none is
 *    sent after that; then it discards a pending one.
 * 6. A cancellation may touch the call under the lock although the call may end: the operation exists
 *    until `cancel` has returned (stop.h), and the thread's `call` tells whether the call has ended.
 *
 * A call may take for ever, such as the open of a FIFO. If there are spare threads, such calls do not
 * hold up others.
 *
 * 7. A call is slow if it takes longer than SLOW_CALL while others are queued. The supervisor notes that
 *    (`is_slow`), and a spare thread may be alive in place of the slow one: of all threads alive, at most
 *    `max` are not slow. When a slow call has ended, its thread ends if there is one in its place.
 * 8. While calls are queued that no idle thread takes, the supervisor will look at each call that is not
 *    slow when that has taken SLOW_CALL (`is_watched`). It is woken for that by the append of a call, and
 *    by a thread that takes one and leaves others. If all calls are slow, and there are no more spare
 *    threads, queued calls wait until one of them has ended.
 *
 * `interrupt_fd` is a descriptor of descriptors.h. It becomes readable once, and stays so. So an interruption of all
 * reads is not lost between a check of a flag and the sleep.
 */
#define _GNU_SOURCE
#include "blocking_pool.h"

#include "../system/descriptors.h"
#include "../system/fork.h"
#include "../system/monotonic_condition.h"
#include "../system/portable.h"
#include "../system/threads.h"

#include "bide/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The intervals between signals to a call: nanoseconds, doubled from the first up to the last. */
#define FIRST_INTERVAL UINT64_C(1000000)
#define MAX_INTERVAL   UINT64_C(16000000)

/* A call that takes longer is slow: nanoseconds. (Where time does not pass, a scenario sets it.) */
#ifndef SLOW_CALL
#define SLOW_CALL UINT64_C(10000000)
#endif

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
    return wait_monotonic_condition(condition, &blocking->lock, &time) != ETIMEDOUT;
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
    sigset_t set = interrupt_set(blocking);
    while (portable_take_pending(&set) >= 0)
        ;
}

/* The call has forked, and returns in the child, where the lock may be held for ever. */
static void check_process_after_call(const bide_blocking *blocking)
{
    if (BIDE_UNLIKELY(bide_is_inherited_(blocking->generation)))
        bide_misuse_("a blocking call has returned in a child of the process that created its "
                     "threads",
                     __func__, __FILE__, __LINE__);
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
    check_process_after_call(blocking);
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

/* Whether the supervisor has to be woken: calls are queued, and it will not look for slow ones (8). */
static bool needs_watch(const bide_blocking *blocking)
{
    return blocking->spare != 0 && !blocking->is_watched && blocking->queued > blocking->idle;
}

static void note_begin_of_call(blocking_thread *self)
{
    bide_blocking *blocking = self->blocking;
    if (blocking->spare == 0)
        return;
    self->is_calling = true;
    self->began = bide_platform.now();
    if (needs_watch(blocking))
        pthread_cond_signal(&blocking->to_supervise);
}

static void note_end_of_call(blocking_thread *self)
{
    bide_blocking *blocking = self->blocking;
    self->is_calling = false;
    if (!self->is_slow)
        return;
    self->is_slow = false;
    bide_assert(blocking->slow != 0);
    blocking->slow--;
}

/* Under the lock, which it releases for the call. */
static void make_call(blocking_thread *self, bide_blocking_call *call)
{
    bide_blocking *blocking = self->blocking;
    note_begin_of_call(self);
    if (call->interruptible != NULL && blocking->interrupt_signal != 0) {
        make_interruptible_call(self, call);
    } else {
        pthread_mutex_unlock(&blocking->lock);
        bide_blocking_make_here_(call);
        check_process_after_call(blocking);
        bide_wake_one(&call->awaiter);
        pthread_mutex_lock(&blocking->lock);
    }
    note_end_of_call(self);
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

/* The calling thread ends: it leaves its memory to another one. */
static void end_thread(bide_blocking *blocking, blocking_thread *self)
{
    join_ended_thread(blocking); /* 3 */
    bide_assert(blocking->to_join == NULL && blocking->alive != 0);
    if (blocking->is_for_good) {
        (void)pthread_detach(self->thread);
        self->next = blocking->unused;
        blocking->unused = self;
    } else {
        blocking->to_join = self;
    }
    blocking->alive--;
    pthread_cond_signal(&blocking->ended);
}

/* The number of threads alive whose calls are not slow. At most `max` (7). */
static unsigned swift_threads(const bide_blocking *blocking)
{
    bide_assert(blocking->slow <= blocking->alive);
    return blocking->alive - blocking->slow;
}

static bool may_start_thread(const bide_blocking *blocking)
{
    return swift_threads(blocking) < blocking->max &&
           blocking->alive < blocking->max + blocking->spare;
}

/* The next call to make; NULL: the thread has to end. */
static bide_blocking_call *next_call(bide_blocking *blocking)
{
    bool in_time = true;
    if (swift_threads(blocking) > blocking->max)
        return NULL; /* 7 */
    bide_assert(swift_threads(blocking) <= blocking->max);
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
        portable_name_this_thread(blocking->name);
    pthread_mutex_lock(&blocking->lock);
    while ((call = next_call(blocking)) != NULL)
        make_call(self, call);
    end_thread(blocking, self);
    pthread_mutex_unlock(&blocking->lock);
    return NULL;
}

static void nothing_to_undo(void *argument)
{
    (void)argument;
}

static void *supervisor_main(void *argument);

/* Starts the supervisor before the first thread whose calls it may have to interrupt or replace. */
static int need_supervisor(bide_blocking *blocking)
{
    bool has_work = blocking->interrupt_signal != 0 || blocking->spare != 0;
    if (!has_work || blocking->has_supervisor)
        return 0;
    int error =
        bide_threads_start_(&blocking->supervisor, 1, supervisor_main, blocking, nothing_to_undo);
    blocking->has_supervisor = error == 0;
    return error;
}

static int start_blocking_thread(bide_blocking *blocking)
{
    bide_assert(may_start_thread(blocking));
    int error = need_supervisor(blocking);
    if (error != 0)
        return error;
    blocking_thread *thread = blocking->unused;
    if (thread == NULL) {
        if (blocking->used == blocking->max + blocking->spare)
            join_ended_thread(blocking); /* there is one, since fewer are alive */
        thread = blocking->unused != NULL ? blocking->unused : &blocking->threads[blocking->used];
    }
    thread->blocking = blocking;
    thread->call = NULL;
    thread->is_calling = false;
    thread->is_slow = false;
    error = bide_threads_start_sized_(&thread->thread, 1, blocking->stack_size, make_calls, thread,
                                      nothing_to_undo);
    if (error != 0)
        return error;
    if (thread == blocking->unused)
        blocking->unused = thread->next;
    else
        blocking->used++;
    blocking->alive++;
    return 0;
}

/* ---- The supervisor ---- */

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

/* Notes which calls are slow, and returns for how long no other will be. */
static uint64_t note_slow_calls(bide_blocking *blocking)
{
    uint64_t now = bide_platform.now();
    uint64_t soonest = BIDE_FOREVER;
    for (unsigned i = 0; i < blocking->used; i++) {
        blocking_thread *thread = &blocking->threads[i];
        if (!thread->is_calling || thread->is_slow)
            continue;
        uint64_t taken = now - thread->began;
        if (taken >= SLOW_CALL) {
            thread->is_slow = true;
            blocking->slow++;
        } else if (SLOW_CALL - taken < soonest) {
            soonest = SLOW_CALL - taken;
        }
    }
    return soonest;
}

/* If calls wait for threads, starts some in place of slow ones. Returns when to look again (8). */
static uint64_t replace_slow_threads(bide_blocking *blocking)
{
    uint64_t interval = BIDE_FOREVER;
    if (blocking->spare != 0 && blocking->queued > blocking->idle) {
        interval = note_slow_calls(blocking);
        size_t needed = blocking->queued - blocking->idle;
        for (; needed != 0 && may_start_thread(blocking); needed--) {
            if (start_blocking_thread(blocking) != 0) {
                interval = SLOW_CALL < interval ? SLOW_CALL : interval;
                break;
            }
        }
    }
    blocking->is_watched = interval != BIDE_FOREVER;
    return interval;
}

static void *supervisor_main(void *argument)
{
    bide_blocking *blocking = argument;
    uint64_t interval = FIRST_INTERVAL;
    pthread_mutex_lock(&blocking->lock);
    /* A call that runs while the pool is destroyed can still be interrupted. */
    while (!blocking->ending || blocking->alive > 0) {
        uint64_t wait = replace_slow_threads(blocking);
        bool sends = send_interrupts(blocking);
        if (!sends)
            interval = FIRST_INTERVAL;
        else if (interval < wait)
            wait = interval;
        if (!blocking_wait(blocking, &blocking->to_supervise, wait) && interval < MAX_INTERVAL)
            interval *= 2;
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
    bide_assert(blocking->alive == 0 && blocking->idle == 0 && blocking->slow == 0);
    bide_assert(blocking->to_join == NULL);
    bide_assert(blocking->queued == 0 && blocking->calls.first == NULL);
    pthread_cond_destroy(&blocking->to_supervise);
    pthread_cond_destroy(&blocking->ended);
    pthread_cond_destroy(&blocking->condition);
    pthread_mutex_destroy(&blocking->lock);
    bide_descriptor_close_(blocking->interrupt_fd);
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
    pthread_cond_signal(&blocking->to_supervise);
    pthread_mutex_unlock(&blocking->lock);
    if (blocking->has_supervisor)
        pthread_join(blocking->supervisor, NULL);
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
    pthread_mutex_init(&blocking->lock, NULL);
    init_monotonic_condition(&blocking->condition);
    init_monotonic_condition(&blocking->to_supervise);
    pthread_cond_init(&blocking->ended, NULL);
    blocking->calls.first = NULL;
    blocking->queued = 0;
    blocking->alive = 0;
    blocking->idle = 0;
    blocking->slow = 0;
    blocking->is_watched = false;
    blocking->ending = false;
    blocking->unused = NULL;
    blocking->to_join = NULL;
    blocking->used = 0;
    blocking->has_supervisor = false;
    blocking->name[0] = '\0';
    if (options->name != NULL)
        strncat(blocking->name, options->name, BLOCKING_NAME_SIZE - 1);
    blocking->max = options->max_threads;
    blocking->min = options->min_threads;
    blocking->spare = options->spare_threads;
    blocking->stack_size = options->stack_size;
    blocking->is_for_good = options->is_for_good;
    blocking->idle_time = options->idle_timeout != 0 ? options->idle_timeout : BIDE_BLOCKING_IDLE;
    blocking->generation = bide_generation_;
    blocking->interrupt_signal = options->interrupt_signal;
}

int bide_blocking_create_with(bide_blocking **created, const bide_blocking_options *options)
{
    unsigned threads = options->max_threads;
    if (threads == 0 || threads > BIDE_THREADS_MAX_ || options->min_threads > threads ||
        options->spare_threads > BIDE_THREADS_MAX_ - threads)
        return -EINVAL;
    int error = bide_threads_check_stack_(options->stack_size);
    if (error == 0 && options->interrupt_signal != 0)
        error = install_interrupt_handler(options->interrupt_signal);
    if (error != 0)
        return error;
    size_t count = (size_t)threads + options->spare_threads;
    bide_blocking *blocking = malloc(sizeof *blocking + count * sizeof blocking->threads[0]);
    if (blocking == NULL)
        return -ENOMEM;
    blocking->interrupt_fd = bide_descriptor_create_();
    if (blocking->interrupt_fd < 0) {
        error = blocking->interrupt_fd;
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
    if (bide_is_inherited_(blocking->generation))
        bide_misuse_(
            "threads for blocking calls are destroyed in a child of the process that created them",
            function, file, line);
    if (blocking->is_for_good)
        bide_misuse_(
            "threads for blocking calls are destroyed, and their options say that they stay "
            "for good",
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
    bool starts = blocking->idle < blocking->queued && may_start_thread(blocking);
    int error = starts ? start_blocking_thread(blocking) : 0;
    if ((!starts || error != 0) && needs_watch(blocking))
        pthread_cond_signal(&blocking->to_supervise); /* 8 */
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
