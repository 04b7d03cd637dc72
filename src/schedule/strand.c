/*
 * The strand.
 *
 *     posted   IDLE (0)      nothing was posted, and nobody runs the strand
 *              BUSY (1)      the runner is posted, or runs; nothing was posted since it last took
 *              AWAITED (3)   the same, and a thread sleeps until it is IDLE, to destroy the strand
 *              pointer       as BUSY, and what was posted, newest first, by `link`
 *
 *     post:     IDLE -> pointer, and the runner is posted to the underlying scheduler
 *               BUSY, pointer -> pointer
 *     runner:   pointer -> BUSY to take everything; BUSY -> IDLE when there is nothing to run;
 *               AWAITED -> IDLE, and wake
 *     destroy:  BUSY -> AWAITED before it sleeps
 *
 * The runner is a frame of the underlying scheduler. It steps the strand's coroutines by itself, so
 * that what they wake inline is left to the resume loop that has stepped the runner: strands on the
 * inline scheduler do not nest in each other, and the stack does not grow with them. While it runs,
 * a post on its own thread appends to the plain chain `ready`.
 *
 * 1. There is one runner at a time, because the poster that makes the word leave IDLE posts it, and
 *    only the runner makes it IDLE again. What is posted meanwhile is found by the exchange that
 *    would make it IDLE, which fails. So nothing that is posted is left lying.
 * 2. A push releases and the take acquires: the runner sees the frames that it is to resume. All
 *    modifications are exchanges, so one take synchronises with every push that it takes.
 * 3. What one coroutine of the strand has written the next one sees, on whichever threads. In one
 *    turn they run on one thread. From turn to turn the post of the runner gives the order. From
 *    one runner to the next, the first releases with IDLE. The poster that finds IDLE acquires, and
 *    then posts the runner, which hands that on. It acquires for itself too: it writes the runner's
 *    link.
 * 4. After a push onto anything but IDLE the strand may run, end and go: post touches nothing more.
 *    The poster that found IDLE may use the strand until it has posted the runner, because nobody
 *    else can run what it has pushed.
 * 5. A coroutine that suspends is resumed after its suspend has returned, from whichever thread it
 *    is posted: it is the runner that steps it, and the runner takes the next one after that. So
 *    one_thread is true. The end of the suspend comes before the resumption by 3.
 * 6. What is posted runs in the order of the posts, where one happened before the other, as in
 *    run_loop.c, 5.
 * 7. Making the word IDLE is the last that a runner does to the strand; the wake after it uses the
 *    address of the word alone. Destroying it acquires IDLE. So then the memory may go. No wake-up
 *    is lost, because going to sleep and IDLE modify one word.
 *
 * Where all runs on one thread, nobody else would run a runner that is queued there while that
 * thread destroys the strand. So then it is taken back: the caller of bide_strand_destroy is that
 * thread, or none runs the scheduler.
 *
 * Timers stand in a heap of the strand's own, under a lock, since what is due is to be posted to
 * the strand. For the earliest of them a timer is set in the underlying scheduler, the alarm:
 *
 *     alarm_state   OFF --set--> SET --its time has come--> RINGING --alarm_step--> OFF, SET
 *                                SET --cleared--> OFF
 *
 * 8. SET becomes RINGING when somebody fails to clear it; the alarm's step comes by then, and until
 *    then nobody sets it. Under the lock it queues what is due, and sets the alarm for the next. So
 *    no timer is missed, and whoever fails to clear one finds it posted.
 * 9. Without timers the alarm is not set. So all that can be left of it when a strand is destroyed
 *    is a step that is on its way, and destroying waits for that under the lock, or takes it back.
 */
#define _GNU_SOURCE
#include "bide/strand.h"

#include "leak_check.h"
#include "futex_word.h"

#include "../coroutine/internal.h"

#include "bide/sleep.h"
#include "bide/extend/waiter_list.h"

#define IDLE    ((uintptr_t)0)
#define BUSY    ((uintptr_t)1)
#define AWAITED ((uintptr_t)3)

enum { OFF, SET, RINGING };

/* The strand whose coroutines this thread steps; others that it steps besides are its `outer`. */
static BIDE_THREAD_LOCAL bide_strand *running;

static bide_strand *strand_of(bide_scheduler *scheduler)
{
    return bide_container_of(scheduler, bide_strand, scheduler);
}

static bool steps_here(const bide_strand *strand)
{
    const bide_strand *inner = running;
    while (inner != NULL && inner != strand)
        inner = inner->outer;
    return inner != NULL;
}

/* ---- The runner ---- */

/* The runner's: moves what was posted behind the plain chain. */
static void take_posted(bide_strand *strand)
{
    /* relaxed: a look, as in run_loop.c. */
    if (bide_atomic_load(&strand->posted, relaxed) <= AWAITED)
        return;
    /* acquire: 2, partner is post's release. Only the runner takes, so what was seen to be there
     * still is. */
    bide_awaiter *newest = (bide_awaiter *)bide_atomic_exchange(&strand->posted, BUSY, acquire);
    bide_awaiter_chain_append(&strand->ready, bide_awaiter_reverse(newest), newest);
}

/*
 * The runner's, with nothing in the plain chain. True: the strand is idle, and is not touched any
 * more. False: something may have been posted.
 */
static bool try_leave(bide_strand *strand)
{
    bide_atomic(uint32_t) *half = bide_low_half_(&strand->posted);
    uintptr_t word = bide_atomic_load(&strand->posted, relaxed);
    /* release: 3, partner is post's acquire, and 7, partner is settle's load. */
    if (word > AWAITED ||
        !bide_atomic_compare_exchange(&strand->posted, &word, IDLE, release, relaxed))
        return false;
    if (word == AWAITED)
        bide_platform.wake(half, 1); /* 7 */
    return true;
}

static bide_next runner_step(bide_frame *frame, unsigned depth);
static const bide_coroutine_code runner_code = {runner_step, "(strand)", __FILE__, NULL, NULL};
static const bide_point runner_point = BIDE_POINT_START(&runner_code);

/* The runner as an operation that has ended: it begins anew. */
static bide_awaiter *runner_to_post(bide_strand *strand)
{
    bide_frame *runner = &strand->runner;
    runner->awaiter.ops = &runner_point.ops;
    runner->awaiter.link = NULL;
    runner->awaiter.frame = runner;
    return &runner->awaiter;
}

static void post_runner(bide_strand *strand)
{
    bide_awaiter *runner = runner_to_post(strand);
    strand->under->post(strand->under, runner, runner);
}

/* After a turn: what else is ready there goes first. */
static void post_runner_again(bide_strand *strand)
{
    bide_post_last_(strand->under, runner_to_post(strand));
}

/* One turn: it ends when there is nothing to run, or after so many resumptions. */
static bide_next runner_step(bide_frame *frame, unsigned depth)
{
    bide_strand *strand = bide_container_of(frame, bide_strand, runner);
    bide_strand *outer = running;
    (void)depth;
    for (unsigned left = BIDE_STRAND_TURN_;;) {
        take_posted(strand);
        bide_awaiter *awaiter = bide_awaiter_chain_take(&strand->ready);
        if (awaiter == NULL) {
            if (try_leave(strand))
                break;
            continue;
        }
        strand->outer = outer;
        running = strand;
        bide_run_on_(awaiter->frame);
        running = outer;
        if (--left == 0) {
            if (strand->ready.first != NULL || !try_leave(strand))
                post_runner_again(strand);
            break;
        }
    }
    return bide_next_none();
}

/* ---- The scheduler ---- */

static void post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_strand *strand = strand_of(scheduler);
    if (running == strand) {
        take_posted(strand); /* 6 */
        bide_awaiter_chain_append(&strand->ready, first, last);
        return;
    }
    /* The word holds the newest first. */
    bide_awaiter *oldest = first;
    if (first != last)
        first = bide_awaiter_reverse(first);
    uintptr_t head = bide_atomic_load(&strand->posted, relaxed);
    do {
        oldest->link = head <= AWAITED ? NULL : (bide_awaiter *)head;
    } while (!bide_atomic_compare_exchange_weak(
        &strand->posted, &head, (uintptr_t)first, acq_rel,
        relaxed)); /* release: 2, partner is take_posted's; acquire: 3, partner is try_leave's */
    if (head == IDLE)
        post_runner(strand); /* 4 */
}

/* Called inside one of its coroutines, so by the runner, which is one of those of `under`. */
static bool idle(bide_scheduler *scheduler)
{
    bide_strand *strand = strand_of(scheduler);
    return strand->ready.first == NULL && bide_atomic_load(&strand->posted, relaxed) <= AWAITED &&
           strand->under->idle(strand->under);
}

/* Inside one of its coroutines, or while no runner runs. */
static bool take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_strand *strand = strand_of(scheduler);
    take_posted(strand);
    return bide_awaiter_chain_remove(&strand->ready, awaiter);
}

static bool runs_here_only(bide_scheduler *scheduler)
{
    bide_strand *strand = strand_of(scheduler);
    bide_scheduler *under = strand->under;
    return steps_here(strand) || (under->runs_here_only != NULL && under->runs_here_only(under));
}

/* ---- Timers; with the lock held ---- */

static bide_next alarm_step(bide_frame *frame, unsigned depth);
static const bide_coroutine_code alarm_code = {alarm_step, "(timers of a strand)", __FILE__, NULL,
                                               NULL};
static const bide_point alarm_point = BIDE_POINT_START(&alarm_code);
static const bide_awaiter_ops alarm_ops = {
    .name = "(timers of a strand)",
};

static void clear_alarm(bide_strand *strand)
{
    if (strand->alarm_state == SET)
        strand->alarm_state =
            strand->under->clear_timer(strand->under, &strand->alarm) ? OFF : RINGING; /* 8 */
}

/* Sets the alarm, which is OFF or RINGING, for the earliest timer, if there is one. */
static int set_alarm(bide_strand *strand)
{
    uint64_t time = bide_timers_next(&strand->timers);
    if (strand->alarm_state == RINGING || strand->timers.first == NULL)
        return 0;
    bide_timer_init(&strand->alarm, time);
    strand->alarm.awaiter.ops = &alarm_ops;
    strand->alarm.awaiter.frame = &strand->alarm_frame;
    strand->alarm_frame.awaiter.ops = &alarm_point.ops;
    strand->alarm_frame.awaiter.frame = NULL;
    strand->alarm_state = SET;
    int error = strand->under->set_timer(strand->under, &strand->alarm);
    if (error != 0)
        strand->alarm_state = OFF;
    return error;
}

static bide_next alarm_step(bide_frame *frame, unsigned depth)
{
    bide_strand *strand = bide_container_of(frame, bide_strand, alarm_frame);
    bide_awaiter_chain due = {NULL, NULL};
    (void)depth;
    pthread_mutex_lock(&strand->timers_lock);
    strand->alarm_state = OFF;
    bide_timers_take_due(&strand->timers, bide_scheduler_now_(strand->under), &due);
    set_alarm(strand); /* what it was set for is there no more, so there is room for it */
    if (due.first != NULL)
        post(&strand->scheduler, due.first, due.last); /* under the lock: 8 */
    pthread_cond_signal(&strand->rang);
    pthread_mutex_unlock(&strand->timers_lock);
    return bide_next_none();
}

static int set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_strand *strand = strand_of(scheduler);
    int error = 0;
    pthread_mutex_lock(&strand->timers_lock);
    if (bide_timers_insert(&strand->timers, timer)) {
        clear_alarm(strand);
        error = set_alarm(strand);
        if (error != 0) {
            bide_timers_remove(&strand->timers, timer);
            set_alarm(strand); /* as it was */
        }
    }
    pthread_mutex_unlock(&strand->timers_lock);
    return error;
}

static bool clear_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_strand *strand = strand_of(scheduler);
    pthread_mutex_lock(&strand->timers_lock);
    bool cleared = bide_timers_remove(&strand->timers, timer);
    if (strand->timers.first == NULL)
        clear_alarm(strand); /* 9 */
    pthread_mutex_unlock(&strand->timers_lock);
    return cleared;
}

/* ---- The world, where the underlying scheduler has one ---- */

static uint64_t now(bide_scheduler *scheduler)
{
    return bide_scheduler_now_(strand_of(scheduler)->under);
}

static void begin_call(bide_scheduler *scheduler, bide_awaiter *call,
                       void (*function)(void *argument), void *argument)
{
    bide_scheduler *under = strand_of(scheduler)->under;
    under->environment->begin_call(under, call, function, argument);
}

static bool take_call_back(bide_scheduler *scheduler, bide_awaiter *call)
{
    bide_scheduler *under = strand_of(scheduler)->under;
    return under->environment->take_call_back(under, call);
}

static bide_io *io(bide_scheduler *scheduler)
{
    bide_scheduler *under = bide_container_of(scheduler, bide_strand, scheduler)->under;
    return under->io(under);
}

static const bide_environment world = {
    .now = now,
    .begin_call = begin_call,
    .take_call_back = take_call_back,
};

/* ---- Beginning and end ---- */

void bide_strand_init(bide_strand *strand, bide_scheduler *under)
{
    bool has_timers = under->set_timer != NULL;
    strand->scheduler.post = post;
    strand->scheduler.one_thread = true; /* 5 */
    strand->scheduler.idle = under->idle != NULL ? idle : NULL;
    strand->scheduler.take_back = take_back;
    strand->scheduler.set_timer = has_timers ? set_timer : NULL;
    strand->scheduler.clear_timer = has_timers ? clear_timer : NULL;
    strand->scheduler.runs_here_only = runs_here_only;
    strand->scheduler.post_last = NULL;
    strand->scheduler.environment = under->environment != NULL ? &world : NULL;
    strand->scheduler.io = under->io != NULL ? io : NULL;
    bide_atomic_init(&strand->scheduler.patience, BIDE_PATIENCE_MAX);
    strand->context = (bide_context){.scheduler = &strand->scheduler};
    strand->under = under;
    strand->base = under->post == post ? strand_of(under)->base : under;
    strand->there = (bide_context){.scheduler = under};
    strand->ready.first = NULL;
    strand->outer = NULL;
    strand->runner.context = &strand->there;
    pthread_mutex_init(&strand->timers_lock, NULL);
    pthread_cond_init(&strand->rang, NULL);
    bide_timers_init(&strand->timers);
    strand->alarm_state = OFF;
    strand->alarm_frame.context = &strand->there;
    bide_atomic_init(&strand->posted, IDLE);
}

static bool take_back_from_under(bide_strand *strand, bide_awaiter *awaiter)
{
    return bide_take_back_from_(strand->under, awaiter);
}

/* Waits until no runner is posted or runs. */
static void await_idle(bide_strand *strand)
{
    uintptr_t word;
    bide_run_queued_(); /* what nobody else would run: on the inline scheduler the runner, perhaps */
    while ((word = bide_atomic_load(&strand->posted, acquire)) != IDLE) { /* 7, try_leave's */
        /* relaxed: nothing is read on the strength of it. */
        if (word == BUSY &&
            bide_atomic_compare_exchange(&strand->posted, &word, AWAITED, relaxed, relaxed))
            word = AWAITED;
        if (word == AWAITED)
            bide_platform.wait(bide_low_half_(&strand->posted), (uint32_t)AWAITED, BIDE_FOREVER);
        else
            bide_cpu_relax();
    }
}

/* The same for the alarm. */
static void await_alarm(bide_strand *strand)
{
    pthread_mutex_lock(&strand->timers_lock);
    if (strand->alarm_state == RINGING && strand->base->one_thread &&
        take_back_from_under(strand, &strand->alarm.awaiter))
        strand->alarm_state = OFF;
    while (strand->alarm_state == RINGING)
        pthread_cond_wait(&strand->rang, &strand->timers_lock);
    pthread_mutex_unlock(&strand->timers_lock);
}

void bide_strand_destroy(bide_strand *strand)
{
    static const char in_use[] = "a strand is destroyed while it is in use";
    if (steps_here(strand))
        bide_platform.misuse("a strand is destroyed in one of its coroutines", __func__, __FILE__,
                             __LINE__);
    if (strand->base->one_thread) {
        take_posted(strand);
        if (strand->ready.first != NULL)
            bide_platform.misuse(in_use, __func__, __FILE__, __LINE__);
        if (bide_atomic_load(&strand->posted, relaxed) != IDLE &&
            !take_back_from_under(strand, &strand->runner.awaiter))
            bide_platform.misuse(in_use, __func__, __FILE__, __LINE__);
    } else {
        await_idle(strand);
    }
    bide_tell_what_is_left_(&strand->scheduler, &strand->timers,
                            "a strand is destroyed while a timer of it is set",
                            "a strand is destroyed while a task of it waits");
    await_alarm(strand);
    pthread_cond_destroy(&strand->rang);
    pthread_mutex_destroy(&strand->timers_lock);
}
