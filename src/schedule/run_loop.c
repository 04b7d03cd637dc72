/*
 * The run loop: a scheduler of one thread. Any thread may post to it.
 *
 *     posted   EMPTY (0)    nothing was posted since the loop last took everything
 *              pointer      the posted awaiters, newest first, by `link`
 *              PARKED (1)   nothing was posted, and the loop's thread sleeps, or is about to
 *              POLLED (3)   nothing was posted, and a foreign loop polls the descriptor, whose
 *                           number is above these two bits
 *
 *     post, other threads:  EMPTY, pointer -> pointer    PARKED -> pointer, and wake the thread
 *                           POLLED -> pointer, and make the descriptor readable
 *     the loop's thread:    EMPTY -> PARKED before it sleeps; pointer -> EMPTY to take everything
 *                           EMPTY -> POLLED when it has run everything, POLLED -> EMPTY when it runs
 *                           again
 *
 * The loop's own thread, while it runs, posts to the plain chain `ready` without an atomic operation.
 *
 * 1. A push releases and the take acquires: the loop's thread sees the frames that it resumes. All
 *    modifications are exchanges, so one take synchronises with every push that it takes
 *    (waiter_list.h, 4). ABA is harmless, for the reasons given there.
 * 2. No wake-up is lost, because sleeping and posting modify one word. If the push comes first, EMPTY
 *    -> PARKED fails. If PARKED comes first, the push finds it and wakes the thread. No seq_cst is
 *    needed.
 * 3. Only the poster that replaces PARKED wakes the thread: one wake for many posts.
 * 4. After the push the loop may run, end and be freed. So the poster then uses only the address of
 *    the word, or the number of the descriptor, which was in the word. The descriptor is never
 *    closed, so its number is not that of another file (descriptors.h). The thread sleeps on the word
 *    itself, on the half that holds its low 32 bits (futex_word.h).
 * 5. Awaiters run in the order of their posts, if one post happened before the other. Among pushes
 *    this is the order of the word's modifications, which a take keeps. A post of the loop's own
 *    thread goes behind everything that was taken. The thread first takes what was pushed before, as
 *    far as it knows: the load in run_loop_take_posted cannot miss a push that happened before it.
 *
 * 5a. A foreign loop misses nothing either. While the loop has a descriptor and does not run, the word
 *    is POLLED, or the descriptor is readable or about to be. Each run ends with EMPTY -> POLLED; if
 *    something is left, or was posted meanwhile, the run raises the descriptor instead. A poster that
 *    finds POLLED raises it after its push. The next run lowers the descriptor before it takes what
 *    was posted. A poster that raises it late costs one empty run.
 *
 * Timers are under a lock, since any thread may clear one and has to know at once whether it was in
 * time. The loop's thread takes the lock to set a timer, and when one is due. Otherwise it compares
 * the clock with its own `deadline`: the due time of the earliest timer, or earlier if that timer was
 * cleared.
 *
 * 6. No timer is missed. The loop's thread advances its deadline when it sets a timer. Another thread
 *    that sets the earliest timer posts `hint`, which makes the loop's thread read the deadline anew;
 *    by 2 the loop does not sleep over that. If the hint is posted already, it will be resumed and
 *    take the lock after this, so it finds this timer too.
 * 6a. Of many timers that are due, the loop takes some, and the next when those have run, so that they are in the
 *    processor's cache when they run. The deadline stays that of the earliest timer that is left, which is due. So the
 *    loop does not sleep, and takes more at the latest when nothing is ready; while something always is, at the first
 *    look after as many resumptions as it has taken timers, less the awaiters that were taken back meanwhile.
 * 7. While there is something to run, the clock is read once in CLOCK_TURNS resumptions, because
 *    reading it costs as much as several of them. It is read more often if they are long (look_pace.h).
 * 8. A loop with events (run_loop_events.h) sleeps as its events do: on the word, or in the poll of
 *    the descriptor. It parks by the same exchange before, so 2 and 5a hold for it too.
 *
 * Nothing starves. Of a loop that runs, each source is looked at within a bound, whatever the others do:
 *
 *     posts      before each resumption (run_loop_take), and each goes to the end of the chain
 *     ready      a coroutine waits for the coroutines before it in the chain
 *     timers     within L
 *     events     within E
 *
 * 9. L is BIDE_LOOK_TIME_ and a turn, or CLOCK_TURNS turns (7). While the chain is not empty, run_loop_look comes so
 *    often, and takes timers at once or within the bound of 6a. If the chain is empty, the loop compares the clock with
 *    its deadline before anything else.
 * 9a. E is BIDE_LOOK_TIME_ / 4 and L. Four cases follow each other in any order:
 *    - The chain stays filled. Then look_turns grows to CLOCK_TURNS in a few looks unless turns are long, and either
 *      has run_loop_look look at the events. It takes 4 + 4 + 8 + 16 + 32 turns at most.
 *    - The chain is empty, and a timer is due. Each such poll forgets the pace, so the first case may not be reached.
 *      It reads the clock, and looks at the events if the last look is BIDE_LOOK_TIME_ / 4 ago.
 *    - The chain is empty, and no timer is due. The loop sleeps in its events, which looks at them.
 *    - The same, but something was posted before it parks, or a coroutine of the inline scheduler ran. Then it does not
 *      sleep. It reads the clock as in the second case.
 *    So each poll that finds the chain empty looks at the events or has compared the time of the last look, and between
 *    two such polls the first case holds.
 * 9b. Blocking calls, signals and other threads arrive as posts or as events. So they have those bounds.
 */
#define _GNU_SOURCE
#include "bide/run_loop.h"

#include "leak_check.h"
#include "look_pace.h"
#include "loop_waiter.h"
#include "futex_word.h"
#include "run_loop_events.h"
#include "spin_pace.h"
#include "../system/descriptors.h"
#include "../system/processors.h"
#include "../system/pthreads.h"

#include "../coroutine/blocked_thread.h"
#include "../coroutine/chain_cursor.h"
#include "../coroutine/internal.h"
#include "../coroutine/observe.h"
#include "../coroutine/roots.h"
#include "../coroutine/timers_some.h"

#include "bide/extend/root.h"
#include "bide/extend/waiter_list.h"

#include <errno.h>

#define LOOP_EMPTY  ((uintptr_t)0)
#define LOOP_PARKED ((uintptr_t)1)
#define LOOP_POLLED ((uintptr_t)3)

enum { LOOP_FD_SHIFT = 2 };

/* Resumptions between two reads of the clock, at most. */
enum { CLOCK_TURNS = 32 };

/* Nanoseconds between two looks at whether all has ended, at first and at most (bide_run_loop_shutdown). */
enum { LOOP_SHUTDOWN_PAUSE_MIN = 50000, LOOP_SHUTDOWN_PAUSE_MAX = 10000000 };

/* The innermost loop that runs on this thread, or NULL. */
static BIDE_THREAD_LOCAL bide_run_loop *loop_here;

/* The value of the word while the loop's descriptor is polled. */
static uintptr_t polled_word(const bide_run_loop *loop)
{
    return (uintptr_t)(unsigned)loop->fd << LOOP_FD_SHIFT | LOOP_POLLED;
}

static bool word_is_posted(uintptr_t word)
{
    return word != LOOP_EMPTY && (word & LOOP_PARKED) == 0;
}

/* Moves the posts of other threads to the end of the plain chain. */
BIDE_INLINE void run_loop_take_posted(bide_run_loop *loop)
{
    /* relaxed: a hint; but a post that happened before is not missed (5). */
    if (BIDE_LIKELY(!word_is_posted(bide_atomic_load(&loop->posted, relaxed))))
        return;
    /* acquire: 1. Only this thread takes, so the word still holds a pointer. */
    bide_awaiter *newest = (bide_awaiter *)bide_atomic_exchange(&loop->posted, LOOP_EMPTY, acquire);
    bide_awaiter_chain_append(&loop->ready, bide_awaiter_reverse(newest), newest);
}

static void run_loop_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
    if (loop_here == loop) {
        run_loop_take_posted(loop); /* 5 */
        bide_awaiter_chain_append(&loop->ready, first, last);
        return;
    }
    /* The word holds the newest first. */
    bide_awaiter *oldest = first;
    if (first != last)
        first = bide_awaiter_reverse(first);
    bide_atomic(uint32_t) *half = bide_low_half_(&loop->posted);
    uintptr_t head = bide_atomic_load(&loop->posted, relaxed);
    do {
        oldest->link = word_is_posted(head) ? (bide_awaiter *)head : NULL;
    } while (!bide_atomic_compare_exchange_weak(&loop->posted, &head, (uintptr_t)first, release,
                                                relaxed)); /* 1: partner is take's acquire */
    if (head == LOOP_PARKED)
        bide_platform.wake(half, 1);
    else if (!word_is_posted(head) && head != LOOP_EMPTY)
        bide_descriptor_raise_((int)(head >> LOOP_FD_SHIFT)); /* 4 */
}

/* On the loop's thread. */
static bool run_loop_is_idle(bide_scheduler *scheduler)
{
    bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
    return loop->may_spin && loop->ready.first == NULL &&
           bide_atomic_load(&loop->posted, relaxed) == LOOP_EMPTY;
}

/*
 * Takes what was posted; true if there is something to run. Done before each resumption, not only
 * when the plain chain is empty: coroutines that wake each other could keep it filled forever.
 */
static bool run_loop_take(bide_run_loop *loop)
{
    if (BIDE_UNLIKELY(loop->passed != NULL))
        bide_chain_rewind_(&loop->ready, &loop->passed);
    run_loop_take_posted(loop);
    return loop->ready.first != NULL;
}

static bool run_loop_take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
    run_loop_take_posted(loop);
    if (!bide_chain_remove_(&loop->ready, &loop->passed, awaiter))
        return false;
    if (loop->timers_after > loop->runs) /* 6a: it may have been a timer's */
        loop->timers_after--;
    return true;
}

/* With the lock: queues timers that are due at `now`, and no more once it has queued `few`: 6a. */
static void run_loop_take_some(bide_run_loop *loop, uint64_t now, size_t few)
{
    size_t count = bide_timers_take_some_(&loop->timers, now, &loop->ready, few);
    loop->deadline = bide_timers_next(&loop->timers);
    loop->timers_left = count >= few;
    loop->timers_after = loop->runs + count;
}

/* Queues timers that are due at `now`. If the hint runs, it may be posted again from here on. */
static void run_loop_take_timers(bide_run_loop *loop, uint64_t now, bool is_hint)
{
    bide_assert(loop_here == loop);
    pthread_mutex_lock(&loop->timers_lock);
    run_loop_take_some(loop, now, BIDE_LOOP_TIMERS_);
    bide_assert(!is_hint || loop->hint_posted);
    if (is_hint)
        loop->hint_posted = false;
    pthread_mutex_unlock(&loop->timers_lock);
}

static void run_loop_take_due(bide_run_loop *loop, uint64_t now)
{
    run_loop_take_timers(loop, now, false);
}

/* How long turns are is not known. */
static void run_loop_forget_pace(bide_run_loop *loop)
{
    loop->turns = loop->look_turns = BIDE_LOOK_FIRST_;
    loop->looked = 0;
}

static void run_loop_look_at_events(bide_run_loop *loop, uint64_t now)
{
    loop->events_looked = now;
    loop->events->look(loop);
}

/* While the loop is out of work again and again, and does not sleep: 9. */
static void run_loop_look_in_time(bide_run_loop *loop, uint64_t now)
{
    if (loop->events != NULL && now - loop->events_looked >= BIDE_LOOK_TIME_ / 4)
        run_loop_look_at_events(loop, now);
}

/* After look_turns resumptions: looks at events and at the clock, and sets the next look. Returns the time. */
static uint64_t run_loop_look(bide_run_loop *loop)
{
    uint64_t now = bide_platform.now();
    uint64_t time = loop->looked != 0 ? now - loop->looked : 0;
    /* (looking at events may be a call of the system: not after a few short turns) */
    if (loop->events != NULL && (loop->look_turns == CLOCK_TURNS || time >= BIDE_LOOK_TIME_ / 4))
        run_loop_look_at_events(loop, now);
    if (loop->looked != 0)
        loop->look_turns = bide_look_turns_(loop->look_turns, CLOCK_TURNS, time);
    loop->turns = loop->look_turns;
    loop->looked = now;
    return now;
}

/* Timers and, if `is_ready`, events. */
static BIDE_NOINLINE bool run_loop_poll_all(bide_run_loop *loop, bool is_ready)
{
    uint64_t now = 0;
    if (is_ready) {
        now = run_loop_look(loop);
    } else {
        run_loop_forget_pace(loop);
        if (loop->deadline != BIDE_FOREVER)
            now = bide_platform.now();
    }
    bool is_early = is_ready && loop->timers_left && loop->runs < loop->timers_after; /* 6a */
    if (loop->deadline != BIDE_FOREVER && now >= loop->deadline && !is_early) {
        if (!is_ready)
            run_loop_look_in_time(loop, now);
        run_loop_take_due(loop, now);
    }
    return loop->ready.first != NULL;
}

/* As run_loop_take; now and then, or if nothing is ready, also checks timers and events. */
static bool run_loop_poll(bide_run_loop *loop)
{
    bool is_ready = run_loop_take(loop);
    bide_assert(loop->turns != 0 && loop->turns <= CLOCK_TURNS);
    if (BIDE_LIKELY(loop->deadline == BIDE_FOREVER && loop->events == NULL) ||
        (is_ready && --loop->turns != 0))
        return is_ready;
    return run_loop_poll_all(loop, is_ready);
}

static bide_next run_loop_hint_step(bide_frame *frame, unsigned depth)
{
    bide_run_loop *loop = bide_container_of(frame, bide_run_loop, hint);
    (void)depth;
    run_loop_take_timers(loop, bide_platform.now(), true);
    return bide_next_none();
}

static const bide_coroutine_code run_loop_hint_code = {run_loop_hint_step, "(timers of a run loop)",
                                                       __FILE__, NULL, NULL};
static const bide_point run_loop_hint_point = BIDE_POINT_START(&run_loop_hint_code);

static int run_loop_set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
    bool is_own = loop_here == loop;
    uint64_t time = timer->time;
    pthread_mutex_lock(&loop->timers_lock);
    bool is_earliest = bide_timers_insert(&loop->timers, timer);
    bool post_hint = is_earliest && !is_own && !loop->hint_posted;
    if (post_hint)
        loop->hint_posted = true;
    pthread_mutex_unlock(&loop->timers_lock);
    if (is_own && is_earliest)
        loop->deadline = time;
    if (post_hint) {
        bide_awaiter *hint = &loop->hint.awaiter;
        hint->ops = &run_loop_hint_point.ops;
        hint->frame = &loop->hint;
        hint->link = NULL;
        run_loop_post(scheduler, hint, hint);
    }
    return 0;
}

static bool run_loop_clear_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
    pthread_mutex_lock(&loop->timers_lock);
    bool cleared = bide_timers_remove(&loop->timers, timer);
    pthread_mutex_unlock(&loop->timers_lock);
    return cleared;
}

static BIDE_NOINLINE void run_loop_run_timed(bide_run_loop *loop, bide_frame *frame)
{
    uint64_t begin = bide_platform.now();
    bide_resume(frame);
    uint64_t time = bide_platform.now() - begin;
    if (time > loop->longest)
        loop->longest = time;
}

static void run_loop_run_one(bide_run_loop *loop)
{
    bide_assert(loop_here == loop && loop->passed == NULL);
    bide_awaiter *awaiter = bide_awaiter_chain_take(&loop->ready);
    if (loop->ready.first != NULL)
        bide_awaiter_prefetch(loop->ready.first); /* while this one runs */
    loop->runs++;
    if (BIDE_UNLIKELY(loop->times_runs))
        run_loop_run_timed(loop, awaiter->frame);
    else
        bide_resume(awaiter->frame);
}

static bool is_deadline_past(const bide_run_loop *loop)
{
    return loop->deadline != BIDE_FOREVER && bide_platform.now() >= loop->deadline;
}

bool bide_run_loop_park_(bide_run_loop *loop)
{
    uintptr_t empty = LOOP_EMPTY;
    /* relaxed: as below. */
    return bide_atomic_compare_exchange(
        &loop->posted, &empty, loop->fd >= 0 ? polled_word(loop) : LOOP_PARKED, relaxed, relaxed);
}

bool bide_run_loop_unpark_(bide_run_loop *loop)
{
    uintptr_t word = loop->fd >= 0 ? polled_word(loop) : LOOP_PARKED;
    /* relaxed: as below; if it fails, something was posted. */
    return bide_atomic_compare_exchange(&loop->posted, &word, LOOP_EMPTY, relaxed, relaxed);
}

bide_atomic(uint32_t) * bide_run_loop_word_(bide_run_loop *loop, uint32_t *parked)
{
    *parked = (uint32_t)LOOP_PARKED;
    return bide_low_half_(&loop->posted);
}

bool bide_run_loop_is_posted_(bide_run_loop *loop)
{
    return word_is_posted(bide_atomic_load(&loop->posted, relaxed));
}

/*
 * run_loop_await_work for a loop that also sleeps for its events: 8. It spins only while other threads
 * post to it again and again; the kernel's events arrive with the sleep.
 */
static void run_loop_await_events(bide_run_loop *loop)
{
    if (loop->pace.spins > BIDE_LOOP_SPINS_MIN_) {
        loop->events->look(loop);
        for (uint32_t i = 0; i < loop->pace.spins && loop->ready.first == NULL; i++) {
            if (bide_atomic_load(&loop->posted, relaxed) != LOOP_EMPTY || is_deadline_past(loop))
                return;
            bide_cpu_relax();
        }
        loop->pace.spins /= 2;
        if (loop->ready.first != NULL)
            return;
    }
    bool has_slept = loop->events->sleep(loop);
    loop->events->take(loop);
    uint64_t now = !has_slept || loop->deadline != BIDE_FOREVER ? bide_platform.now() : 0;
    if (!has_slept)
        run_loop_look_in_time(loop, now);
    if (loop->ready.first == NULL && bide_run_loop_is_posted_(loop) && loop->scheduler.idle != NULL)
        loop->pace.spins = BIDE_LOOP_EVENTS_SPINS_;
    if (loop->deadline != BIDE_FOREVER && now >= loop->deadline)
        run_loop_take_due(loop, now);
}

/* Looks for a while whether something was posted. True: it was, or the deadline has passed. */
static bool run_loop_spin(bide_run_loop *loop)
{
    uint32_t looks = bide_spin_pace_looks_(&loop->pace, BIDE_LOOP_SPINS_MIN_, BIDE_LOOP_SPINS_MAX_);
    bool paid = false;
    for (uint32_t i = 0; i < looks && !paid; i++) {
        paid = bide_atomic_load(&loop->posted, relaxed) != LOOP_EMPTY;
        if (!paid && is_deadline_past(loop))
            return true;
        if (!paid)
            bide_cpu_relax();
    }
    bide_spin_pace_note_(&loop->pace, looks, paid, BIDE_LOOP_SPINS_MIN_, BIDE_LOOP_SPINS_MAX_);
    return paid;
}

/* Spins for a while, then sleeps until something is posted, or until the deadline. */
static void run_loop_await_work(bide_run_loop *loop)
{
    /* If a coroutine of the inline scheduler runs the loop, the loop may wait for a coroutine that is
     * queued behind that one. */
    if (bide_run_queued_()) {
        if (loop->events != NULL)
            run_loop_look_in_time(loop, bide_platform.now());
        return;
    }
    if (loop->events != NULL) {
        run_loop_await_events(loop);
        return;
    }
    if (run_loop_spin(loop))
        return;
    uintptr_t empty = LOOP_EMPTY;
    /* relaxed: no read depends on it; run_loop_take_posted acquires. */
    if (!bide_atomic_compare_exchange(&loop->posted, &empty, LOOP_PARKED, relaxed, relaxed))
        return;
    while (bide_atomic_load(&loop->posted, relaxed) == LOOP_PARKED) {
        BIDE_OBSERVE_(thread, (BIDE_OBSERVED_SLEEP));
        int error = bide_platform.wait(bide_low_half_(&loop->posted), (uint32_t)LOOP_PARKED,
                                       loop->deadline);
        BIDE_OBSERVE_(thread, (BIDE_OBSERVED_WAKE));
        if (error == 0)
            continue;
        uintptr_t parked = LOOP_PARKED;
        /* relaxed: as above; if it fails, something was posted. */
        bide_atomic_compare_exchange(&loop->posted, &parked, LOOP_EMPTY, relaxed, relaxed);
        run_loop_take_due(loop, loop->deadline); /* it has passed */
        return;
    }
}

/* Whether the loop runs on this thread, or has a coroutine that runs another. */
static bool run_loop_runs_here_only(bide_scheduler *scheduler)
{
    bide_run_loop *inner = loop_here;
    while (inner != NULL && &inner->scheduler != scheduler)
        inner = inner->outer;
    return inner != NULL;
}

static void run_loop_enter(bide_run_loop *loop)
{
    loop->outer = loop_here;
    loop_here = loop;
    bide_loops_here_change_(1);
    if (loop->events != NULL)
        loop->events->enter(loop);
    if (loop->fd >= 0) {
        uintptr_t word = polled_word(loop);
        /* relaxed: no read depends on it. */
        bide_atomic_compare_exchange(&loop->posted, &word, LOOP_EMPTY, relaxed, relaxed);
        bide_descriptor_lower_(loop->fd); /* 5a */
    }
}

/* EMPTY -> POLLED; false: something was posted. */
static bool try_polled(bide_run_loop *loop)
{
    uintptr_t empty = LOOP_EMPTY;
    /* relaxed: as above. */
    return loop->ready.first == NULL &&
           bide_atomic_compare_exchange(&loop->posted, &empty, polled_word(loop), relaxed, relaxed);
}

static void run_loop_leave(bide_run_loop *loop)
{
    bide_assert(loop_here == loop);
    loop_here = loop->outer;
    bide_loops_here_change_(-1);
    if (loop->fd >= 0 && !try_polled(loop))
        bide_descriptor_raise_(loop->fd); /* 5a */
}

void bide_run_loop_enter_(bide_run_loop *loop)
{
    run_loop_enter(loop);
}

void bide_run_loop_leave_(bide_run_loop *loop)
{
    if (loop->events->leave != NULL)
        loop->events->leave(loop);
    run_loop_leave(loop);
}

bool bide_run_loop_run_posted_(bide_run_loop *loop)
{
    int count = 0;
    for (; count < CLOCK_TURNS && run_loop_take(loop); count++)
        run_loop_run_one(loop);
    return count != 0;
}

bool bide_run_loop_is_ready_(bide_run_loop *loop)
{
    return run_loop_take(loop);
}

void bide_run_loop_init(bide_run_loop *loop)
{
    bool several = bide_processors_() > 1;
    loop->scheduler.post = run_loop_post;
    loop->scheduler.one_thread = true;
    loop->scheduler.idle = several ? run_loop_is_idle : NULL;
    loop->scheduler.take_back = run_loop_take_back;
    loop->scheduler.set_timer = run_loop_set_timer;
    loop->scheduler.clear_timer = run_loop_clear_timer;
    loop->scheduler.runs_here_only = run_loop_runs_here_only;
    loop->scheduler.post_last = NULL;
    loop->scheduler.environment = NULL;
    loop->scheduler.real_time = true;
    loop->scheduler.io = NULL;
    bide_atomic_init(&loop->scheduler.patience, BIDE_PATIENCE_MAX);
    loop->context.scheduler = &loop->scheduler;
    loop->context.stop = NULL;
    loop->context.name = NULL;
    loop->context.on_unhandled_error = NULL;
    loop->context.values = NULL;
    loop->ready.first = NULL;
    loop->passed = NULL;
    bide_spin_pace_init_(&loop->pace, several ? BIDE_LOOP_SPINS_MAX_ / 2 : 0);
    loop->may_spin = true;
    loop->stopping = false;
    loop->fd = -1;
    loop->events = NULL;
    bide_atomic_init(&loop->stop_posted, 0);
    loop->deadline = BIDE_FOREVER;
    run_loop_forget_pace(loop);
    loop->events_looked = 0;
    loop->runs = loop->timers_after = 0;
    loop->timers_left = false;
    loop->longest = 0;
    loop->times_runs = false;
    pthread_mutex_init(&loop->timers_lock, NULL);
    bide_timers_init(&loop->timers);
    bide_timers_take_due(&loop->timers, bide_platform.now(),
                         &loop->ready); /* sets the heap's time */
    loop->hint_posted = false;
    bide_atomic_init(&loop->posted, LOOP_EMPTY);
}

static void run_loop_until(bide_run_loop *loop, const bool *ended)
{
    run_loop_enter(loop);
    while (!*ended) {
        if (run_loop_poll(loop))
            run_loop_run_one(loop);
        else
            run_loop_await_work(loop);
    }
    run_loop_leave(loop);
}

static bide_next run_loop_stop_step(bide_frame *frame, unsigned depth)
{
    (void)depth;
    bide_container_of(frame, bide_run_loop, stop_frame)->stopping = true;
    return bide_next_none();
}

static const bide_coroutine_code run_loop_stop_code = {run_loop_stop_step, "bide_run_loop_stop",
                                                       __FILE__, NULL, NULL};
static const bide_point run_loop_stop_point = BIDE_POINT_START(&run_loop_stop_code);

void bide_run_loop_run(bide_run_loop *loop)
{
    run_loop_until(loop, &loop->stopping);
    loop->stopping = false;
    /* release: partner is stop's acquire; the next stop writes the frame again. */
    bide_atomic_store(&loop->stop_posted, 0, release);
}

void bide_run_loop_stop(bide_run_loop *loop)
{
    if (bide_atomic_exchange(&loop->stop_posted, 1, acquire) != 0) /* partner: run's release */
        return;
    bide_awaiter *stop = &loop->stop_frame.awaiter;
    stop->ops = &run_loop_stop_point.ops;
    stop->link = NULL;
    stop->frame = &loop->stop_frame;
    run_loop_post(&loop->scheduler, stop, stop);
}

int bide_run_loop_wait(bide_run_loop *loop, bide_awaiter *awaiter)
{
    loop_waiter waiter;
    loop_waiter_begin(&waiter, &loop->context, awaiter);
    run_loop_until(loop, &waiter.ended);
    return waiter.root.status;
}

/* ---- The shutdown ---- */

/* Without the loop's own hint and stop. */
static size_t run_loop_count_ready(bide_run_loop *loop)
{
    size_t count = 0;
    run_loop_take(loop);
    for (const bide_awaiter *awaiter = loop->ready.first; awaiter != NULL; awaiter = awaiter->link)
        count += awaiter != &loop->hint.awaiter && awaiter != &loop->stop_frame.awaiter;
    return count;
}

static int run_loop_count_remaining(bide_run_loop *loop, bide_run_loop_remaining *remaining)
{
    remaining->tasks = bide_roots_count_(&loop->scheduler, SIZE_MAX);
    remaining->ready = run_loop_count_ready(loop);
    remaining->has_timers = bide_run_loop_next_deadline(loop) != BIDE_FOREVER;
    bool is_none = remaining->tasks == 0 && remaining->ready == 0 && !remaining->has_timers;
    return is_none ? 0 : -ETIMEDOUT;
}

/*
 * Of a loop without anything to run: whether nothing else is left. Posts are looked at last, because a task makes its
 * posts before it ends, and its end takes the lock of the roots.
 */
static bool run_loop_is_done(bide_run_loop *loop)
{
    return bide_run_loop_next_deadline(loop) == BIDE_FOREVER &&
           bide_roots_count_(&loop->scheduler, 1) == 0 && !bide_run_loop_is_posted_(loop);
}

/* Sleeps until there is something to run, but not longer than `pause`, or until `deadline`. */
static void run_loop_await_end(bide_run_loop *loop, uint64_t now, uint64_t pause, uint64_t deadline)
{
    uint64_t look = deadline - now < pause ? deadline : now + pause;
    if (look < loop->deadline) /* (it may be earlier than that of the first timer) */
        loop->deadline = look;
    run_loop_await_work(loop);
}

int bide_run_loop_shutdown(bide_run_loop *loop, uint64_t deadline,
                           bide_run_loop_remaining *remaining)
{
    bide_run_loop_remaining unused;
    uint64_t pause = LOOP_SHUTDOWN_PAUSE_MIN;
    if (run_loop_runs_here_only(&loop->scheduler))
        bide_misuse_("a run loop is shut down by one of its coroutines", __func__, __FILE__,
                     __LINE__);
    run_loop_enter(loop);
    for (uint64_t now; (now = bide_platform.now()) < deadline;) {
        if (run_loop_poll(loop)) {
            run_loop_run_one(loop);
            pause = LOOP_SHUTDOWN_PAUSE_MIN;
            continue;
        }
        if (run_loop_is_done(loop))
            break;
        run_loop_await_end(loop, now, pause, deadline);
        pause = pause < LOOP_SHUTDOWN_PAUSE_MAX / 2 ? 2 * pause : LOOP_SHUTDOWN_PAUSE_MAX;
    }
    int status = run_loop_count_remaining(loop, remaining != NULL ? remaining : &unused);
    run_loop_leave(loop);
    return status;
}

/*
 * Of run_ready: the number of the next timer that will be set. Timers that are due are taken now. At the end of a call
 * that is not limited, no due timer with a lower number is left; timers that are set later may be.
 */
static uint64_t run_loop_begin_ready(bide_run_loop *loop)
{
    pthread_mutex_lock(&loop->timers_lock);
    uint64_t number = loop->timers.inserted;
    pthread_mutex_unlock(&loop->timers_lock);
    if (loop->deadline != BIDE_FOREVER)
        run_loop_take_due(loop, bide_platform.now());
    else
        loop->timers_left = false;
    return number;
}

/*
 * As run_loop_take; if nothing is ready, queues what is left of the timers that are due (6a): all of it if the earliest
 * was set meanwhile, so that timers that are set again and again do not keep it here.
 */
static bool run_loop_take_or_left(bide_run_loop *loop, uint64_t number)
{
    if (!run_loop_take(loop) && loop->timers_left) {
        uint64_t now = bide_platform.now();
        pthread_mutex_lock(&loop->timers_lock);
        const bide_awaiter *first = loop->timers.first;
        bool is_new =
            first == NULL || bide_container_of(first, bide_timer, awaiter)->number >= number;
        run_loop_take_some(loop, now, is_new ? SIZE_MAX : BIDE_LOOP_TIMERS_);
        pthread_mutex_unlock(&loop->timers_lock);
    }
    return loop->ready.first != NULL;
}

size_t bide_run_loop_run_ready(bide_run_loop *loop)
{
    size_t count = 0;
    run_loop_enter(loop);
    loop->may_spin = false;
    uint64_t number = run_loop_begin_ready(loop);
    for (; run_loop_take_or_left(loop, number) && (loop->fd < 0 || count < BIDE_LOOP_TURN_);
         count++)
        run_loop_run_one(loop);
    loop->may_spin = true;
    run_loop_leave(loop);
    return count;
}

uint64_t bide_run_loop_next_deadline(bide_run_loop *loop)
{
    pthread_mutex_lock(&loop->timers_lock);
    uint64_t next = bide_timers_next(&loop->timers);
    pthread_mutex_unlock(&loop->timers_lock);
    return next;
}

int bide_run_loop_fd(bide_run_loop *loop)
{
    if (loop->fd >= 0)
        return loop->fd;
    int fd = bide_descriptor_take_();
    if (fd < 0)
        return fd;
    loop->fd = fd;
    bide_descriptor_raise_(fd); /* for a first run: the word is LOOP_EMPTY, whatever was posted */
    return fd;
}

void bide_run_loop_close_fd(bide_run_loop *loop)
{
    uintptr_t word = polled_word(loop);
    if (loop->fd < 0)
        return;
    /* relaxed: as above. If it fails, something was posted. */
    bide_atomic_compare_exchange(&loop->posted, &word, LOOP_EMPTY, relaxed, relaxed);
    bide_descriptor_lower_(loop->fd);
    bide_descriptor_give_(loop->fd);
    loop->fd = -1;
}

void bide_run_loop_destroy_checked_(bide_run_loop *loop, const char *what, const char *function,
                                    const char *file, unsigned line)
{
    if (loop->scheduler.post == NULL) /* zeros */
        return;
    if (run_loop_runs_here_only(&loop->scheduler))
        bide_platform.misuse(what, function, file, line);
    if (loop->fd >= 0)
        bide_platform.misuse("a run loop is destroyed while its descriptor is open", function, file,
                             line);
    bide_report_leaked_waiters_(&loop->scheduler, &loop->timers,
                                "a run loop is destroyed while a timer of it is set",
                                "a run loop is destroyed while a task of it waits", file, line);
    if (run_loop_count_ready(loop) != 0)
        bide_platform.misuse(what, function, file, line);
}
