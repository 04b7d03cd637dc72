/*
 * The run loop.
 *
 *     posted   EMPTY (0)    nothing was posted since the loop last took everything
 *              pointer      what was posted, newest first, by `link`
 *              PARKED (1)   nothing was posted, and the loop's thread sleeps, or is about to
 *              POLLED (3)   nothing was posted, and a foreign loop polls the descriptor, whose
 *                           number stands above these two bits
 *
 *     post, other threads:  EMPTY, pointer -> pointer    PARKED -> pointer, and wake the thread
 *                           POLLED -> pointer, and make the descriptor readable
 *     the loop's thread:    EMPTY -> PARKED before it sleeps; pointer -> EMPTY to take everything
 *                           EMPTY -> POLLED when it has run what there was, POLLED -> EMPTY when it
 *                           runs again
 *
 * The loop's own thread, while it runs, posts to the plain chain `ready` without an atomic.
 *
 * 1. A push releases and the take acquires: the loop's thread sees the frames that it is to resume.
 *    All modifications are exchanges, so one take synchronises with every push that it takes
 *    (waiter_list.h, 4). ABA does no harm, for the reasons given there.
 * 2. No wake-up is lost, because sleeping and posting modify one word. Either the push comes first,
 *    and EMPTY -> PARKED fails; or PARKED comes first, and the push finds it and wakes. No seq_cst
 *    is needed.
 * 3. The poster that pushes onto PARKED wakes, and no other: one wake for many posts.
 * 4. Once the push is done the loop may run, end and be freed. So after it post uses the address of
 *    the word only, or the number of the descriptor, which stood in the word. That one is never
 *    closed, so the number is not another file's by then (descriptors.h). The thread sleeps on the
 *    word itself, on the half that holds its low 32 bits (low_half.h).
 * 5. What is posted runs in the order of the posts, where one happened before the other. Among the
 *    pushes that is the order of the word's modifications, which a take keeps. A post of the loop's
 *    own thread comes behind all that was taken. What was pushed before it, as far as that thread
 *    knows, it takes first: the load in take_posted cannot overlook a push that happened before it.
 *
 * 5a. A foreign loop misses nothing either. While the loop has a descriptor and does not run, the
 *    word is POLLED, or the descriptor is readable, or about to be. For each run ends by EMPTY ->
 *    POLLED; where something is left, or was posted meanwhile, it raises the descriptor instead. A
 *    poster that finds POLLED raises it after its push. Lowering it is the first that the next run
 *    does, before it takes what was posted. A poster that is late with raising it costs one run
 *    for nothing.
 *
 * Timers stand under a lock, since any thread may clear one and has to know at once whether it came
 * in time. The loop's thread takes the lock to set one and when one is due. Otherwise it only
 * compares a time of its own, `deadline`: when the earliest is due, or earlier, if that one was
 * cleared.
 *
 * 6. A timer is never missed. The loop's thread puts forward its deadline when it sets one. Any
 *    other thread that sets the earliest one posts `hint`, which makes the loop's thread read the
 *    deadline anew, and by 2 the loop does not sleep over that. If the hint is posted already, it
 *    is going to be resumed and to take the lock after this, so that it finds this timer too.
 * 7. While there is something to run the clock is read once in so many resumptions, because a look
 *    at it costs as much as several of them.
 * 8. A loop with events (run_loop_events.h) sleeps as its events say: on the word, or in the poll of
 *    the descriptor. It parks by the same exchange before, so 2 and 5a hold for it too.
 */
#define _GNU_SOURCE
#include "bide/run_loop.h"

#include "leak_check.h"
#include "loop_waiter.h"
#include "futex_word.h"
#include "run_loop_events.h"
#include "../system/descriptors.h"
#include "../system/processors.h"

#include "../coroutine/internal.h"
#include "../coroutine/observe.h"

#include "bide/extend/root.h"
#include "bide/extend/waiter_list.h"

#define EMPTY  ((uintptr_t)0)
#define PARKED ((uintptr_t)1)
#define POLLED ((uintptr_t)3)

enum { NUMBER_SHIFT = 2 };

/* How many resumptions may pass before a loop that has timers looks at the clock. */
enum { TURNS = 32 };

/* The loop that runs on this thread. */
static BIDE_THREAD_LOCAL bide_run_loop *running;

/* What stands in the word while the loop's descriptor is polled. */
static uintptr_t polled(const bide_run_loop *loop)
{
    return (uintptr_t)(unsigned)loop->fd << NUMBER_SHIFT | POLLED;
}

static bool is_posted(uintptr_t word)
{
    return word != EMPTY && (word & PARKED) == 0;
}

/* Moves what other threads have posted behind the plain chain. */
BIDE_INLINE void take_posted(bide_run_loop *loop)
{
    /* relaxed: a look. Of what was posted before anything the caller has seen, it sees that
     * something is there. */
    if (BIDE_LIKELY(!is_posted(bide_atomic_load(&loop->posted, relaxed))))
        return;
    /* acquire: 1. Only this thread takes, so what was seen to be there still is. */
    bide_awaiter *newest = (bide_awaiter *)bide_atomic_exchange(&loop->posted, EMPTY, acquire);
    bide_awaiter_chain_append(&loop->ready, bide_awaiter_reverse(newest), newest);
}

static void post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
    if (running == loop) {
        take_posted(loop); /* 5 */
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
        oldest->link = is_posted(head) ? (bide_awaiter *)head : NULL;
    } while (!bide_atomic_compare_exchange_weak(&loop->posted, &head, (uintptr_t)first, release,
                                                relaxed)); /* 1: partner is take's acquire */
    if (head == PARKED)
        bide_platform.wake(half, 1);
    else if (!is_posted(head) && head != EMPTY)
        bide_descriptor_raise_((int)(head >> NUMBER_SHIFT)); /* 4 */
}

/* Called on the loop's thread, like `take`. */
static bool idle(bide_scheduler *scheduler)
{
    bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
    return loop->may_spin && loop->ready.first == NULL &&
           bide_atomic_load(&loop->posted, relaxed) == EMPTY;
}

/*
 * Takes what was posted. Is there anything to run? Done before each resumption, not only when the
 * plain chain is empty: coroutines that hand a turn to each other would keep it from being empty
 * for ever.
 */
static bool take(bide_run_loop *loop)
{
    take_posted(loop);
    return loop->ready.first != NULL;
}

static bool take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
    take(loop);
    return bide_awaiter_chain_remove(&loop->ready, awaiter);
}

/* Queues what is due at `now`. The hint, if it is what runs, may be posted again from here on. */
static void take_due_and(bide_run_loop *loop, uint64_t now, bool is_hint)
{
    pthread_mutex_lock(&loop->timers_lock);
    bide_timers_take_due(&loop->timers, now, &loop->ready);
    loop->deadline = bide_timers_next(&loop->timers);
    if (is_hint)
        loop->hint_posted = false;
    pthread_mutex_unlock(&loop->timers_lock);
}

static void take_due(bide_run_loop *loop, uint64_t now)
{
    take_due_and(loop, now, false);
}

/* As `take`, and now and then, or when there is nothing to run, looks for timers that are due. */
static bool take_or_look(bide_run_loop *loop)
{
    bool is_ready = take(loop);
    if (BIDE_LIKELY(loop->deadline == BIDE_FOREVER && loop->events == NULL) ||
        (is_ready && --loop->turns != 0))
        return is_ready;
    loop->turns = TURNS;
    if (is_ready && loop->events != NULL)
        loop->events->look(loop);
    if (loop->deadline == BIDE_FOREVER)
        return loop->ready.first != NULL;
    uint64_t now = bide_platform.now();
    if (now >= loop->deadline)
        take_due(loop, now);
    return loop->ready.first != NULL;
}

static bide_next hint_step(bide_frame *frame, unsigned depth)
{
    bide_run_loop *loop = bide_container_of(frame, bide_run_loop, hint);
    (void)depth;
    take_due_and(loop, bide_platform.now(), true);
    return bide_next_none();
}

static const bide_coroutine_code hint_code = {hint_step, "(timers of a run loop)", __FILE__, NULL,
                                              NULL};
static const bide_point hint_point = BIDE_POINT_START(&hint_code);

static int set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
    bool is_own = running == loop;
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
        hint->ops = &hint_point.ops;
        hint->frame = &loop->hint;
        hint->link = NULL;
        post(scheduler, hint, hint);
    }
    return 0;
}

static bool clear_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
    pthread_mutex_lock(&loop->timers_lock);
    bool cleared = bide_timers_remove(&loop->timers, timer);
    pthread_mutex_unlock(&loop->timers_lock);
    return cleared;
}

static BIDE_NOINLINE void run_timed(bide_run_loop *loop, bide_frame *frame)
{
    uint64_t begin = bide_platform.now();
    bide_resume(frame);
    uint64_t time = bide_platform.now() - begin;
    if (time > loop->longest)
        loop->longest = time;
}

static void run_one(bide_run_loop *loop)
{
    bide_awaiter *awaiter = bide_awaiter_chain_take(&loop->ready);
    if (loop->ready.first != NULL)
        bide_awaiter_prefetch(loop->ready.first); /* while this one runs */
    loop->runs++;
    if (BIDE_UNLIKELY(loop->times_runs))
        run_timed(loop, awaiter->frame);
    else
        bide_resume(awaiter->frame);
}

static bool is_deadline_past(const bide_run_loop *loop)
{
    return loop->deadline != BIDE_FOREVER && bide_platform.now() >= loop->deadline;
}

bool bide_run_loop_park_(bide_run_loop *loop)
{
    uintptr_t empty = EMPTY;
    /* relaxed: as below. */
    return bide_atomic_compare_exchange(&loop->posted, &empty,
                                        loop->fd >= 0 ? polled(loop) : PARKED, relaxed, relaxed);
}

bool bide_run_loop_unpark_(bide_run_loop *loop)
{
    uintptr_t word = loop->fd >= 0 ? polled(loop) : PARKED;
    /* relaxed: as below; if it fails, something was posted. */
    return bide_atomic_compare_exchange(&loop->posted, &word, EMPTY, relaxed, relaxed);
}

bide_atomic(uint32_t) * bide_run_loop_word_(bide_run_loop *loop, uint32_t *parked)
{
    *parked = (uint32_t)PARKED;
    return bide_low_half_(&loop->posted);
}

bool bide_run_loop_is_posted_(bide_run_loop *loop)
{
    return is_posted(bide_atomic_load(&loop->posted, relaxed));
}

/*
 * The same for a loop that sleeps in the kernel for its events too: 8. It looks only while other
 * threads post to it again and again: what comes from the kernel comes with the sleep.
 */
static void await_events(bide_run_loop *loop)
{
    if (loop->spins > BIDE_LOOP_SPINS_MIN_) {
        loop->events->look(loop);
        for (uint32_t i = 0; i < loop->spins && loop->ready.first == NULL; i++) {
            if (bide_atomic_load(&loop->posted, relaxed) != EMPTY || is_deadline_past(loop))
                return;
            bide_cpu_relax();
        }
        loop->spins /= 2;
        if (loop->ready.first != NULL)
            return;
    }
    loop->events->sleep(loop);
    loop->events->take(loop);
    if (loop->ready.first == NULL && bide_run_loop_is_posted_(loop) && loop->scheduler.idle != NULL)
        loop->spins = BIDE_LOOP_EVENTS_SPINS_;
    if (is_deadline_past(loop))
        take_due(loop, bide_platform.now());
}

/* Looks for work for a while, then sleeps until there is some, or until the deadline. */
static void await_work(bide_run_loop *loop)
{
    /* A coroutine of the inline scheduler may run the loop. What is queued behind it may be what
     * the loop waits for. */
    if (bide_run_queued_())
        return;
    if (loop->events != NULL) {
        await_events(loop);
        return;
    }
    for (uint32_t i = 0; i < loop->spins; i++) {
        if (bide_atomic_load(&loop->posted, relaxed) != EMPTY) {
            if (loop->spins < BIDE_LOOP_SPINS_MAX_)
                loop->spins *= 2;
            return;
        }
        if (is_deadline_past(loop))
            return;
        bide_cpu_relax();
    }
    if (loop->spins > BIDE_LOOP_SPINS_MIN_)
        loop->spins /= 2;
    uintptr_t empty = EMPTY;
    /* relaxed: nothing is read on the strength of it; `take` acquires. */
    if (!bide_atomic_compare_exchange(&loop->posted, &empty, PARKED, relaxed, relaxed))
        return;
    while (bide_atomic_load(&loop->posted, relaxed) == PARKED) {
        BIDE_OBSERVE_(thread, (BIDE_OBSERVED_SLEEP));
        int error =
            bide_platform.wait(bide_low_half_(&loop->posted), (uint32_t)PARKED, loop->deadline);
        BIDE_OBSERVE_(thread, (BIDE_OBSERVED_WAKE));
        if (error == 0)
            continue;
        uintptr_t parked = PARKED;
        /* relaxed: as above; if it fails, something was posted. */
        bide_atomic_compare_exchange(&loop->posted, &parked, EMPTY, relaxed, relaxed);
        take_due(loop, loop->deadline); /* which has come */
        return;
    }
}

/*
 * The scheduler's coroutines run here, or in another loop that they run. (`outer` means something
 * while it runs.)
 */
static bool runs_here_only(bide_scheduler *scheduler)
{
    bide_run_loop *inner = running;
    while (inner != NULL && &inner->scheduler != scheduler)
        inner = inner->outer;
    return inner != NULL;
}

static void enter(bide_run_loop *loop)
{
    loop->outer = running;
    running = loop;
    if (loop->events != NULL)
        loop->events->enter(loop);
    if (loop->fd >= 0) {
        uintptr_t word = polled(loop);
        /* relaxed: nothing is read on the strength of it. */
        bide_atomic_compare_exchange(&loop->posted, &word, EMPTY, relaxed, relaxed);
        bide_descriptor_lower_(loop->fd); /* 5a */
    }
}

/* Lets the descriptor be polled, if nothing was posted. */
static bool try_polled(bide_run_loop *loop)
{
    uintptr_t empty = EMPTY;
    /* relaxed: as above. */
    return loop->ready.first == NULL &&
           bide_atomic_compare_exchange(&loop->posted, &empty, polled(loop), relaxed, relaxed);
}

static void leave(bide_run_loop *loop)
{
    running = loop->outer;
    if (loop->fd >= 0 && !try_polled(loop))
        bide_descriptor_raise_(loop->fd); /* 5a */
}

void bide_run_loop_enter_(bide_run_loop *loop)
{
    enter(loop);
}

void bide_run_loop_leave_(bide_run_loop *loop)
{
    if (loop->events->leave != NULL)
        loop->events->leave(loop);
    leave(loop);
}

bool bide_run_loop_run_posted_(bide_run_loop *loop)
{
    int count = 0;
    for (; count < TURNS && take(loop); count++)
        run_one(loop);
    return count != 0;
}

bool bide_run_loop_is_ready_(bide_run_loop *loop)
{
    return take(loop);
}

void bide_run_loop_init(bide_run_loop *loop)
{
    bool several = bide_processors_() > 1;
    loop->scheduler.post = post;
    loop->scheduler.one_thread = true;
    loop->scheduler.idle = several ? idle : NULL;
    loop->scheduler.take_back = take_back;
    loop->scheduler.set_timer = set_timer;
    loop->scheduler.clear_timer = clear_timer;
    loop->scheduler.runs_here_only = runs_here_only;
    loop->scheduler.post_last = NULL;
    loop->scheduler.environment = NULL;
    loop->scheduler.io = NULL;
    bide_atomic_init(&loop->scheduler.patience, BIDE_PATIENCE_MAX);
    loop->context.scheduler = &loop->scheduler;
    loop->context.stop = NULL;
    loop->context.name = NULL;
    loop->context.on_unhandled_error = NULL;
    loop->ready.first = NULL;
    loop->spins = several ? BIDE_LOOP_SPINS_MAX_ / 2 : 0;
    loop->may_spin = true;
    loop->stopping = false;
    loop->fd = -1;
    loop->events = NULL;
    bide_atomic_init(&loop->stop_posted, 0);
    loop->deadline = BIDE_FOREVER;
    loop->turns = TURNS;
    loop->runs = 0;
    loop->longest = 0;
    loop->times_runs = false;
    pthread_mutex_init(&loop->timers_lock, NULL);
    bide_timers_init(&loop->timers);
    bide_timers_take_due(&loop->timers, bide_platform.now(), &loop->ready); /* it knows the time */
    loop->hint_posted = false;
    bide_atomic_init(&loop->posted, EMPTY);
}

static void run_until(bide_run_loop *loop, const bool *ended)
{
    enter(loop);
    while (!*ended) {
        if (take_or_look(loop))
            run_one(loop);
        else
            await_work(loop);
    }
    leave(loop);
}

static bide_next stop_step(bide_frame *frame, unsigned depth)
{
    (void)depth;
    bide_container_of(frame, bide_run_loop, stop_frame)->stopping = true;
    return bide_next_none();
}

static const bide_coroutine_code stop_code = {stop_step, "bide_run_loop_stop", __FILE__, NULL,
                                              NULL};
static const bide_point stop_point = BIDE_POINT_START(&stop_code);

void bide_run_loop_run(bide_run_loop *loop)
{
    run_until(loop, &loop->stopping);
    loop->stopping = false;
    /* release: partner is stop's acquire; the next stop may write the frame anew. */
    bide_atomic_store(&loop->stop_posted, 0, release);
}

void bide_run_loop_stop(bide_run_loop *loop)
{
    if (bide_atomic_exchange(&loop->stop_posted, 1, acquire) != 0) /* partner: run's release */
        return;
    bide_awaiter *stop = &loop->stop_frame.awaiter;
    stop->ops = &stop_point.ops;
    stop->link = NULL;
    stop->frame = &loop->stop_frame;
    post(&loop->scheduler, stop, stop);
}

int bide_run_loop_wait(bide_run_loop *loop, bide_awaiter *awaiter)
{
    loop_waiter waiter;
    loop_waiter_begin(&waiter, &loop->context, awaiter);
    run_until(loop, &waiter.ended);
    return waiter.root.status;
}

size_t bide_run_loop_run_ready(bide_run_loop *loop)
{
    size_t count = 0;
    enter(loop);
    loop->may_spin = false;
    if (loop->deadline != BIDE_FOREVER)
        take_due(loop, bide_platform.now());
    for (; take(loop) && (loop->fd < 0 || count < BIDE_LOOP_TURN_); count++)
        run_one(loop);
    loop->may_spin = true;
    leave(loop);
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
    bide_descriptor_raise_(fd); /* for a first run: the word is EMPTY, whatever was posted */
    return fd;
}

void bide_run_loop_close_fd(bide_run_loop *loop)
{
    uintptr_t word = polled(loop);
    if (loop->fd < 0)
        return;
    /* relaxed: as above. If it fails, something was posted. */
    bide_atomic_compare_exchange(&loop->posted, &word, EMPTY, relaxed, relaxed);
    bide_descriptor_lower_(loop->fd);
    bide_descriptor_give_(loop->fd);
    loop->fd = -1;
}

/* Is anything queued but what the loop posts to itself? */
static bool has_queued(bide_run_loop *loop)
{
    take(loop);
    bide_awaiter *awaiter = loop->ready.first;
    while (awaiter == &loop->hint.awaiter || awaiter == &loop->stop_frame.awaiter)
        awaiter = awaiter->link;
    return awaiter != NULL;
}

void bide_run_loop_destroy_checked_(bide_run_loop *loop, const char *what, const char *function,
                                    const char *file, unsigned line)
{
    if (runs_here_only(&loop->scheduler))
        bide_platform.misuse(what, function, file, line);
    if (loop->fd >= 0)
        bide_platform.misuse("a run loop is destroyed while its descriptor is open", function, file,
                             line);
    bide_tell_what_is_left_(&loop->scheduler, &loop->timers,
                            "a run loop is destroyed while a timer of it is set",
                            "a run loop is destroyed while a task of it waits");
    if (has_queued(loop))
        bide_platform.misuse(what, function, file, line);
}
