/*
 * The strand: a scheduler on top of another, which runs its coroutines one at a time.
 *
 *     posted   IDLE (0)      nothing was posted, and nobody runs the strand
 *              BUSY (1)      the runner is posted, or runs; nothing was posted since it last took
 *              AWAITED (3)   as BUSY, and a thread sleeps until it is IDLE, to destroy the strand
 *              pointer       as BUSY, and the posted awaiters, newest first, by `link`
 *
 *     post:     IDLE -> pointer, and the runner is posted to the underlying scheduler
 *               BUSY, pointer -> pointer
 *     runner:   pointer -> BUSY to take everything; BUSY -> IDLE when there is nothing to run;
 *               AWAITED -> IDLE, and wake
 *     destroy:  BUSY -> AWAITED before it sleeps
 *
 * The runner is a frame of the underlying scheduler. It steps the strand's coroutines itself, and
 * leaves the coroutines that they wake inline to the resume loop that has stepped the runner. So
 * strands on the inline scheduler do not nest, and the stack does not grow with them. While the
 * runner runs, a post on its own thread appends to the plain chain `ready`.
 *
 * 1. There is one runner at a time. The poster that makes the word leave IDLE posts it, and only the
 *    runner makes the word IDLE again. If something was posted meanwhile, the exchange to IDLE fails.
 *    So no post is forgotten.
 * 2. A push releases and the take acquires: the runner sees the frames that it resumes. All
 *    modifications are exchanges, so one take synchronises with every push that it takes.
 * 3. The writes of one coroutine of the strand are visible to the next, on whichever threads. In one
 *    turn they run on one thread. From turn to turn the post of the runner gives the order. From one
 *    runner to the next, the first releases with IDLE; the poster that finds IDLE acquires it, and
 *    then posts the runner, which passes it on. The poster needs it too: it writes the runner's link.
 * 4. After a push onto anything but IDLE the strand may run, end and be freed: the poster touches
 *    nothing more. The poster that found IDLE may use the strand until it has posted the runner,
 *    because nobody else can run what it has pushed.
 * 5. A coroutine that suspends is resumed after its suspend has returned, from whichever thread it is
 *    posted: the runner steps it, and takes the next one after that. So one_thread is true. The end
 *    of the suspend comes before the resumption by 3.
 * 6. Awaiters run in the order of their posts, if one post happened before the other, as in
 *    run_loop.c, 5.
 * 7. IDLE is the runner's last write to the strand; the wake after it uses only the address of the
 *    word. The destroying thread acquires IDLE, and then may free the memory. No wake-up is lost,
 *    because going to sleep and IDLE modify one word.
 *
 * If the base scheduler has one thread, nobody could run a queued runner while that thread destroys
 * the strand. So the runner is taken back then: the caller of bide_strand_destroy is that thread, or
 * no thread runs the scheduler.
 *
 * Timers are in the strand's own heap, under a lock, since due timers have to be posted to the strand.
 * For the earliest, a timer is set in the underlying scheduler, the alarm:
 *
 *     alarm_state   OFF --set--> SET --due, and a clear has failed--> RINGING --alarm step--> OFF, SET
 *                                SET --cleared--> OFF
 *                                SET --alarm step--> OFF, SET
 *
 * 8. SET becomes RINGING when a thread fails to clear the alarm. Its step is then certain to run, and
 *    nobody sets the alarm until then. Under the lock the step queues the due timers, and sets the
 *    alarm for the next. So no timer is missed, and a thread that fails to clear a timer finds it
 *    posted.
 * 9. Without timers the alarm is not set. So when a strand is destroyed, all that can be left of the
 *    alarm is a step on its way; the destroying thread waits for it under the lock, or takes it back.
 */
#define _GNU_SOURCE
#include "bide/strand.h"

#include "leak_check.h"
#include "futex_word.h"

#include "../coroutine/chain_cursor.h"
#include "../coroutine/internal.h"
#include "../system/fork.h"
#include "../system/pthreads.h"

#include "bide/sleep.h"
#include "bide/extend/waiter_list.h"

#define STRAND_IDLE    ((uintptr_t)0)
#define STRAND_BUSY    ((uintptr_t)1)
#define STRAND_AWAITED ((uintptr_t)3)

enum { ALARM_OFF, ALARM_SET, ALARM_RINGING };

/* The innermost strand whose coroutines this thread steps; the next one outwards is its `outer`. */
static BIDE_THREAD_LOCAL bide_strand *strand_here;

static bide_strand *strand_of(bide_scheduler *scheduler)
{
    return bide_container_of(scheduler, bide_strand, scheduler);
}

/* In a child of fork the threads of a pool are not there, and the strand may be busy, or locked, for ever. */
static void strand_check_process(const bide_strand *strand, const char *what, const char *function,
                                 const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(bide_is_inherited_(strand->generation)) && !strand->base->one_thread &&
        strand->base != &bide_inline_scheduler)
        bide_misuse_(what, function, file, line);
}

static bool strand_steps_here(const bide_strand *strand)
{
    const bide_strand *inner = strand_here;
    while (inner != NULL && inner != strand)
        inner = inner->outer;
    return inner != NULL;
}

/* ---- The runner ---- */

/* The runner's: moves what was posted to the end of the plain chain. */
static void strand_take_posted(bide_strand *strand)
{
    /* relaxed: a hint, as in run_loop.c. */
    if (bide_atomic_load(&strand->posted, relaxed) <= STRAND_AWAITED)
        return;
    /* acquire: 2, partner is post's release. Only the runner takes, so the word still holds a
     * pointer. */
    bide_awaiter *newest =
        (bide_awaiter *)bide_atomic_exchange(&strand->posted, STRAND_BUSY, acquire);
    bide_awaiter_chain_append(&strand->ready, bide_awaiter_reverse(newest), newest);
}

/*
 * The runner's, while the plain chain is empty. True: the strand is idle, and must not be touched
 * any more. False: something may have been posted.
 */
static bool strand_try_leave(bide_strand *strand)
{
    bide_atomic(uint32_t) *half = bide_low_half_(&strand->posted);
    uintptr_t word = bide_atomic_load(&strand->posted, relaxed);
    bide_assert(word != STRAND_IDLE && strand->ready.first == NULL); /* 1 */
    /* release: 3, partner is post's acquire, and 7, partner is the load in strand_await_idle. */
    if (word > STRAND_AWAITED ||
        !bide_atomic_compare_exchange(&strand->posted, &word, STRAND_IDLE, release, relaxed))
        return false;
    if (word == STRAND_AWAITED)
        bide_platform.wake(half, 1); /* 7 */
    return true;
}

static bide_next strand_runner_step(bide_frame *frame, unsigned depth);
static const bide_coroutine_code strand_runner_code = {strand_runner_step, "(strand)", __FILE__,
                                                       NULL, NULL};
static const bide_point strand_runner_point = BIDE_POINT_START(&strand_runner_code);

/* The runner as an operation that has ended: it starts again. */
static bide_awaiter *strand_runner(bide_strand *strand)
{
    bide_frame *runner = &strand->runner;
    runner->awaiter.ops = &strand_runner_point.ops;
    runner->awaiter.link = NULL;
    runner->awaiter.frame = runner;
    return &runner->awaiter;
}

static void strand_post_runner(bide_strand *strand)
{
    bide_awaiter *runner = strand_runner(strand);
    strand->under->post(strand->under, runner, runner);
}

/* After a turn: behind everything that is ready there. */
static void strand_post_runner_again(bide_strand *strand)
{
    bide_post_last_(strand->under, strand_runner(strand));
}

/* One turn: until there is nothing to run, or BIDE_STRAND_TURN_ resumptions. */
static bide_next strand_runner_step(bide_frame *frame, unsigned depth)
{
    bide_strand *strand = bide_container_of(frame, bide_strand, runner);
    bide_strand *outer = strand_here;
    (void)depth;
    bide_assert(!strand_steps_here(strand)); /* 1 */
    for (unsigned left = BIDE_STRAND_TURN_;;) {
        if (BIDE_UNLIKELY(strand->passed != NULL))
            bide_chain_rewind_(&strand->ready, &strand->passed);
        strand_take_posted(strand);
        bide_awaiter *awaiter = bide_awaiter_chain_take(&strand->ready);
        if (awaiter == NULL) {
            if (strand_try_leave(strand))
                break;
            continue;
        }
        strand->outer = outer;
        strand_here = strand;
        bide_run_on_(awaiter->frame);
        bide_assert(strand_here == strand);
        strand_here = outer;
        if (--left == 0) {
            if (strand->ready.first != NULL || !strand_try_leave(strand))
                strand_post_runner_again(strand);
            break;
        }
    }
    return bide_next_none();
}

/* ---- The scheduler ---- */

static void strand_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_strand *strand = strand_of(scheduler);
    if (strand_here == strand) {
        strand_take_posted(strand); /* 6 */
        bide_awaiter_chain_append(&strand->ready, first, last);
        return;
    }
    strand_check_process(strand,
                         "a coroutine is posted to a strand of a thread pool in a child of the "
                         "process that created it",
                         __func__, __FILE__, __LINE__);
    /* The word holds the newest first. */
    bide_awaiter *oldest = first;
    if (first != last)
        first = bide_awaiter_reverse(first);
    uintptr_t head = bide_atomic_load(&strand->posted, relaxed);
    do {
        oldest->link = head <= STRAND_AWAITED ? NULL : (bide_awaiter *)head;
    } while (!bide_atomic_compare_exchange_weak(
        &strand->posted, &head, (uintptr_t)first, acq_rel,
        relaxed)); /* release: 2, partner is take_posted's; acquire: 3, partner is try_leave's */
    if (head == STRAND_IDLE)
        strand_post_runner(strand); /* 4 */
}

/* Called inside one of its coroutines, so by the runner, on a thread of `under`. */
static bool strand_is_idle(bide_scheduler *scheduler)
{
    bide_strand *strand = strand_of(scheduler);
    return strand->ready.first == NULL &&
           bide_atomic_load(&strand->posted, relaxed) <= STRAND_AWAITED &&
           strand->under->idle(strand->under);
}

/* Called inside one of its coroutines, or while no runner runs. */
static bool strand_take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_strand *strand = strand_of(scheduler);
    strand_take_posted(strand);
    return bide_chain_remove_(&strand->ready, &strand->passed, awaiter);
}

static bool strand_runs_here_only(bide_scheduler *scheduler)
{
    bide_strand *strand = strand_of(scheduler);
    bide_scheduler *under = strand->under;
    return strand_steps_here(strand) ||
           (under->runs_here_only != NULL && under->runs_here_only(under));
}

/* ---- Timers; under the lock ---- */

static bide_next strand_alarm_step(bide_frame *frame, unsigned depth);
static const bide_coroutine_code strand_alarm_code = {strand_alarm_step, "(timers of a strand)",
                                                      __FILE__, NULL, NULL};
static const bide_point strand_alarm_point = BIDE_POINT_START(&strand_alarm_code);
static const bide_awaiter_ops strand_alarm_ops = {
    .name = "(timers of a strand)",
};

static void strand_clear_alarm(bide_strand *strand)
{
    if (strand->alarm_state == ALARM_SET)
        strand->alarm_state = strand->under->clear_timer(strand->under, &strand->alarm)
                                  ? ALARM_OFF
                                  : ALARM_RINGING; /* 8 */
}

/* Sets the alarm, which is ALARM_OFF or ALARM_RINGING, for the earliest timer, if there is one. */
static int strand_set_alarm(bide_strand *strand)
{
    uint64_t time = bide_timers_next(&strand->timers);
    bide_assert(strand->alarm_state != ALARM_SET);
    if (strand->alarm_state == ALARM_RINGING || strand->timers.first == NULL)
        return 0;
    bide_timer_init(&strand->alarm, time);
    strand->alarm.awaiter.ops = &strand_alarm_ops;
    strand->alarm.awaiter.frame = &strand->alarm_frame;
    strand->alarm_frame.awaiter.ops = &strand_alarm_point.ops;
    strand->alarm_frame.awaiter.frame = NULL;
    strand->alarm_state = ALARM_SET;
    int error = strand->under->set_timer(strand->under, &strand->alarm);
    if (error != 0)
        strand->alarm_state = ALARM_OFF;
    return error;
}

static bide_next strand_alarm_step(bide_frame *frame, unsigned depth)
{
    bide_strand *strand = bide_container_of(frame, bide_strand, alarm_frame);
    bide_awaiter_chain due = {NULL, NULL};
    (void)depth;
    pthread_mutex_lock(&strand->timers_lock);
    bide_assert(strand->alarm_state != ALARM_OFF);
    strand->alarm_state = ALARM_OFF;
    bide_timers_take_due(&strand->timers, bide_scheduler_now_(strand->under), &due);
    strand_set_alarm(
        strand); /* cannot fail: the underlying scheduler has room for the expired alarm */
    if (due.first != NULL)
        strand_post(&strand->scheduler, due.first, due.last); /* under the lock: 8 */
    pthread_cond_signal(&strand->rang);
    pthread_mutex_unlock(&strand->timers_lock);
    return bide_next_none();
}

static int strand_set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_strand *strand = strand_of(scheduler);
    int error = 0;
    strand_check_process(strand,
                         "a timer of a strand of a thread pool is set in a child of the process "
                         "that created it",
                         __func__, __FILE__, __LINE__);
    pthread_mutex_lock(&strand->timers_lock);
    if (bide_timers_insert(&strand->timers, timer)) {
        strand_clear_alarm(strand);
        error = strand_set_alarm(strand);
        if (error != 0) {
            bide_timers_remove(&strand->timers, timer);
            strand_set_alarm(strand); /* as it was */
        }
    }
    pthread_mutex_unlock(&strand->timers_lock);
    return error;
}

static bool strand_clear_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_strand *strand = strand_of(scheduler);
    strand_check_process(strand,
                         "a timer of a strand of a thread pool is cleared in a child of the "
                         "process that created it",
                         __func__, __FILE__, __LINE__);
    pthread_mutex_lock(&strand->timers_lock);
    bool cleared = bide_timers_remove(&strand->timers, timer);
    if (strand->timers.first == NULL)
        strand_clear_alarm(strand); /* 9 */
    pthread_mutex_unlock(&strand->timers_lock);
    return cleared;
}

/* ---- The simulated environment, if the underlying scheduler has one ---- */

static uint64_t strand_now(bide_scheduler *scheduler)
{
    return bide_scheduler_now_(strand_of(scheduler)->under);
}

static void strand_begin_call(bide_scheduler *scheduler, bide_awaiter *call,
                              void (*function)(void *argument), void *argument)
{
    bide_scheduler *under = strand_of(scheduler)->under;
    under->environment->begin_call(under, call, function, argument);
}

static bool strand_take_call_back(bide_scheduler *scheduler, bide_awaiter *call)
{
    bide_scheduler *under = strand_of(scheduler)->under;
    return under->environment->take_call_back(under, call);
}

static bide_io *strand_io(bide_scheduler *scheduler)
{
    bide_scheduler *under = bide_container_of(scheduler, bide_strand, scheduler)->under;
    return under->io(under);
}

static const bide_environment strand_environment = {
    .now = strand_now,
    .begin_call = strand_begin_call,
    .take_call_back = strand_take_call_back,
};

/* ---- Init and destroy ---- */

void(bide_strand_init)(bide_strand *strand, bide_scheduler *under)
{
    bool has_timers = under->set_timer != NULL;
    strand->scheduler.post = strand_post;
    strand->scheduler.one_thread = true; /* 5 */
    strand->scheduler.idle = under->idle != NULL ? strand_is_idle : NULL;
    strand->scheduler.take_back = strand_take_back;
    strand->scheduler.set_timer = has_timers ? strand_set_timer : NULL;
    strand->scheduler.clear_timer = has_timers ? strand_clear_timer : NULL;
    strand->scheduler.runs_here_only = strand_runs_here_only;
    strand->scheduler.post_last = NULL;
    strand->scheduler.real_time = under->real_time;
    strand->scheduler.environment = under->environment != NULL ? &strand_environment : NULL;
    strand->scheduler.io = under->io != NULL ? strand_io : NULL;
    bide_atomic_init(&strand->scheduler.patience, BIDE_PATIENCE_MAX);
    strand->context = (bide_context){.scheduler = &strand->scheduler};
    strand->under = under;
    strand->base = under->post == strand_post ? strand_of(under)->base : under;
    strand->there = (bide_context){.scheduler = under};
    strand->generation = bide_generation_;
    strand->ready.first = NULL;
    strand->passed = NULL;
    strand->outer = NULL;
    strand->runner.context = &strand->there;
    pthread_mutex_init(&strand->timers_lock, NULL);
    pthread_cond_init(&strand->rang, NULL);
    bide_timers_init(&strand->timers);
    strand->alarm_state = ALARM_OFF;
    strand->alarm_frame.context = &strand->there;
    bide_atomic_init(&strand->posted, STRAND_IDLE);
}

static bool strand_take_back_from_under(bide_strand *strand, bide_awaiter *awaiter)
{
    return bide_take_back_from_(strand->under, awaiter);
}

/* Waits until no runner is posted or runs. */
static void strand_await_idle(bide_strand *strand)
{
    uintptr_t word;
    bide_run_queued_(); /* on the inline scheduler nobody else would run the runner */
    while ((word = bide_atomic_load(&strand->posted, acquire)) !=
           STRAND_IDLE) { /* 7, try_leave's */
        /* relaxed: no read depends on it. */
        if (word == STRAND_BUSY &&
            bide_atomic_compare_exchange(&strand->posted, &word, STRAND_AWAITED, relaxed, relaxed))
            word = STRAND_AWAITED;
        if (word == STRAND_AWAITED)
            bide_platform.wait(bide_low_half_(&strand->posted), (uint32_t)STRAND_AWAITED,
                               BIDE_FOREVER);
        else
            bide_cpu_relax();
    }
}

/* Waits until no step of the alarm is on its way, or takes it back. */
static void strand_await_alarm(bide_strand *strand)
{
    pthread_mutex_lock(&strand->timers_lock);
    if (strand->alarm_state == ALARM_RINGING && strand->base->one_thread &&
        strand_take_back_from_under(strand, &strand->alarm.awaiter))
        strand->alarm_state = ALARM_OFF;
    while (strand->alarm_state == ALARM_RINGING)
        pthread_cond_wait(&strand->rang, &strand->timers_lock);
    pthread_mutex_unlock(&strand->timers_lock);
}

void bide_strand_destroy_in_(bide_strand *strand, const char *function, const char *file,
                             unsigned line)
{
    static const char in_use[] = "a strand is destroyed while it is in use";
    if (strand->base == NULL) /* zeros */
        return;
    strand_check_process(strand,
                         "a strand of a thread pool is destroyed in a child of the process that "
                         "created it",
                         function, file, line);
    if (strand_steps_here(strand))
        bide_misuse_("a strand is destroyed in one of its coroutines", function, file, line);
    if (strand->base->one_thread) {
        strand_take_posted(strand);
        if (strand->ready.first != NULL)
            bide_misuse_(in_use, function, file, line);
        if (bide_atomic_load(&strand->posted, relaxed) != STRAND_IDLE &&
            !strand_take_back_from_under(strand, &strand->runner.awaiter))
            bide_misuse_(in_use, function, file, line);
    } else {
        strand_await_idle(strand);
    }
    bide_report_leaked_waiters_(&strand->scheduler, &strand->timers,
                                "a strand is destroyed while a timer of it is set",
                                "a strand is destroyed while a task of it waits", file, line);
    strand_await_alarm(strand);
    bide_assert(strand->alarm_state == ALARM_OFF); /* 9 */
    pthread_cond_destroy(&strand->rang);
    pthread_mutex_destroy(&strand->timers_lock);
}

#undef bide_strand_destroy

void bide_strand_destroy(bide_strand *strand)
{
    bide_strand_destroy_in_(strand, __func__, __FILE__, __LINE__);
}
