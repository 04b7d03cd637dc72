/*
 * Blocking a thread until an operation has ended.
 *
 *     word   RUNNING --the thread goes to sleep--> PARKED
 *            RUNNING, PARKED --the end--> ENDED
 *
 * The waiting thread owns the struct, on its stack, and leaves once it has seen ENDED, so:
 *   1. The exchange for ENDED is the other side's last access to the struct; the wake after it uses
 *      the address alone.
 *   2. It releases and the waiter's load acquires: the waiter sees the status, and everything that the
 *      operation wrote. Otherwise it could read an old status.
 *   3. No wake-up is missed, because the end and the going to sleep modify one word: either the end
 *      finds PARKED, and wakes, or the thread finds ENDED. The platform's wait compares the word
 *      under the same lock as wake, so either it finds ENDED or it is woken.
 *
 * At the deadline the thread requests a stop, in the source of its own root, and then waits for the
 * end, as before. The struct stays during the request, because it is that thread's own. The request
 * is a frame, which this thread resumes:
 *   4. Coroutines that it ends inline run here, at once, even if the thread is inside a coroutine:
 *      that one's resume loop would run them only when the coroutine has suspended, which waits for
 *      this function.
 *   5. The same holds, before the thread waits, for the coroutines in that resume loop's queue. No
 *      other thread runs them, and one of them may end the operation, for example if a mutex was
 *      handed to a coroutine that is queued here.
 *
 * In the meantime the thread keeps time for coroutines of the inline scheduler (inline_timers.c):
 *   6. Due timers run here, at once, as in 4; also those of an outer wait on this thread, which cannot
 *      run them before this wait has ended, although this wait may depend on them.
 *   7. So the thread may be woken because of an earlier timer. PARKED is RUNNING again then; it is
 *      stored anew before each sleep.
 *   8. A coroutine whose operations are always ready never lets the thread sleep. At its give-ways the
 *      deadlines of this thread's waits, and due timers, request their stops (inline_timers.c).
 */
#include "bide/sync_wait.h"

#include "blocked_thread.h"
#include "flights.h"
#include "inline_timers.h"
#include "internal.h"

#include "bide/coroutine.h"
#include "bide/create.h"
#include "bide/errors.h"
#include "bide/extend/root.h"

#undef bide_sync_wait
#undef bide_sync_wait_in
#undef bide_sync_wait_until
#undef bide_sync_wait_until_in

enum { RUNNING = BIDE_KEEPER_AWAKE_, WAITER_PARKED = BIDE_KEEPER_PARKED_, ENDED };

/* Where a call that blocks stands in the source. */
typedef struct call_place {
    const char *function; /* NULL: unknown */
    const char *file;
    unsigned line;
} call_place;

typedef struct thread_waiter {
    bide_root root;
    bide_atomic(uint32_t) word;
    bide_frame late; /* requests a stop on `root` */
#if BIDE_DEBUG
    const call_place *place;
#endif
} thread_waiter;

static void thread_waiter_ended(bide_root *root)
{
    bide_atomic(uint32_t) *word = &bide_container_of(root, thread_waiter, root)->word;
    /* release: 1 and 2, partners are the loads of has_ended. */
    if (bide_atomic_exchange(word, ENDED, release) == WAITER_PARKED)
        bide_platform.wake(word, 1);
}

static bool sync_wait_has_ended(thread_waiter *waiter)
{
    return bide_atomic_load(&waiter->word, acquire) == ENDED; /* 2, partner is the exchange above */
}

/* ---- Polling ---- */

#if BIDE_CHECK

/* For the model checker a second poll is like the first. */
static bool sync_wait_poll(thread_waiter *waiter)
{
    return sync_wait_has_ended(waiter);
}

#else

/*
 * The number of polls before a thread sleeps. It doubles when polling paid, and is halved when not. Now
 * and then a thread polls as long as if it always paid: otherwise two threads that wait for each other
 * would never discover that neither needs to sleep. A hint of the whole process, so all accesses are
 * relaxed.
 */
static bide_atomic(uint32_t) patience = BIDE_SYNC_SPINS_MAX_;
static bide_atomic(uint32_t) sleeps;

/* Polls for a while. Returns true if the operation has ended. */
static bool sync_wait_poll(thread_waiter *waiter)
{
    uint32_t usual = bide_atomic_load(&patience, relaxed);
    bool is_trial = bide_atomic_load(&sleeps, relaxed) % BIDE_SYNC_SLEEPS_TO_TRY_ == 0;
    uint32_t looks = is_trial ? BIDE_SYNC_SPINS_MAX_ : usual;
    for (uint32_t i = 0; i < looks; i++) {
        if (sync_wait_has_ended(waiter)) {
            if (usual < BIDE_SYNC_SPINS_MAX_)
                bide_atomic_store(&patience, is_trial ? BIDE_SYNC_SPINS_MAX_ : usual * 2, relaxed);
            return true;
        }
        bide_cpu_relax();
    }
    if (usual > BIDE_SYNC_SPINS_MIN_)
        bide_atomic_store(&patience, usual / 2, relaxed);
    bide_atomic_store(&sleeps, bide_atomic_load(&sleeps, relaxed) + 1, relaxed);
    return false;
}

#endif

/* ---- The deadline ---- */

static bide_next late_step(bide_frame *frame, unsigned depth)
{
    thread_waiter *waiter = bide_container_of(frame, thread_waiter, late);
    (void)depth;
    bide_stop_request_with(&waiter->root.stop, -ETIMEDOUT);
    return bide_next_none();
}

static const bide_coroutine_code late_code = {late_step, "bide_sync_wait_until", __FILE__, NULL,
                                              NULL};
static const bide_point late_point = BIDE_POINT_START(&late_code);

static void ask_to_stop(thread_waiter *waiter)
{
    waiter->late.awaiter.ops = &late_point.ops;
    bide_resume(&waiter->late); /* 4 */
}

/* ---- The place of the call, for reports ---- */

#if BIDE_DEBUG && !BIDE_CHECK

/* Of the call that this thread is about to make; taken by the next wait. */
static BIDE_THREAD_LOCAL call_place sync_wait_call;

void bide_blocks_here_(const char *function, const char *file, unsigned line)
{
    if (sync_wait_call.function == NULL) /* otherwise this is part of that call */
        sync_wait_call = (call_place){function, file, line};
}

int bide_blocked_(int status)
{
    sync_wait_call.function = NULL; /* if it has not waited */
    return status;
}

static call_place take_call_place(void)
{
    call_place place = sync_wait_call;
    sync_wait_call.function = NULL;
    return place;
}

#else

/* (called by other files, which may be debug builds) */
void bide_blocks_here_(const char *function, const char *file, unsigned line)
{
    (void)function, (void)file, (void)line;
}

int bide_blocked_(int status)
{
    return status;
}

static call_place take_call_place(void)
{
    return (call_place){NULL, NULL, 0};
}

#endif

/* Reports misuse by the call; the words end with NULL. */
BIDE_COLD static void call_is_misuse(const char *const *words, const call_place *place)
{
    if (place->function != NULL)
        bide_misuse_in_words_(words, place->function, place->file, place->line);
    bide_misuse_in_words_(words, "bide_sync_wait", __FILE__, __LINE__);
}

/* ---- Reports of threads that must not wait: blocked_thread.h ---- */

typedef struct blocked_watch {
    uint64_t at; /* when to look again */
    bide_blocked_pool_ *pool;
    uint32_t changes;
} blocked_watch;

#if BIDE_REPORTS_BLOCKED_

/* Names the coroutine that waits, and what for. */
BIDE_COLD static void report_blocked(const char *what, const thread_waiter *waiter)
{
    const bide_point *point = bide_running_point_();
    const bide_frame *frame = bide_awaited_frame(waiter->root.awaited);
    const char *name =
        frame != NULL ? bide_point_name_(bide_frame_point(frame)) : waiter->root.awaited->ops->name;
    const char *const words[] = {what, name != NULL ? name : "bide_sync_wait",
                                 point != NULL ? ", in the coroutine " : NULL,
                                 point != NULL ? bide_point_name_(point) : NULL, NULL};
    call_is_misuse(words, waiter->place);
}

static void watch_begins(blocked_watch *watch, const thread_waiter *waiter)
{
    const bide_runs_here_ *here = &bide_runs_on_this_thread_;
    watch->at = BIDE_FOREVER;
    watch->pool = here->pool;
    watch->changes = 0;
    if (here->loops != 0 && here->excused == 0)
        report_blocked("the thread of a loop blocks for ", waiter);
    if (watch->pool == NULL)
        return;
    watch->pool->begins(watch->pool);
    watch->changes = watch->pool->changes(watch->pool);
    watch->at = bide_platform.now() + BIDE_BLOCKED_PERIOD_;
}

static void watch_looks(blocked_watch *watch, const thread_waiter *waiter)
{
    uint32_t changes = watch->pool->changes(watch->pool);
    if (changes == watch->changes && watch->pool->is_stuck(watch->pool))
        report_blocked(
            "all threads of a pool block although it has coroutines to run; one does for ", waiter);
    watch->changes = changes;
    watch->at = bide_platform.now() + BIDE_BLOCKED_PERIOD_;
}

static void watch_ends(blocked_watch *watch)
{
    if (watch->pool != NULL)
        watch->pool->ends(watch->pool);
}

#else

static void watch_begins(blocked_watch *watch, const thread_waiter *waiter)
{
    (void)waiter;
    watch->at = BIDE_FOREVER;
}

static void watch_looks(blocked_watch *watch, const thread_waiter *waiter)
{
    (void)watch, (void)waiter;
}

static void watch_ends(blocked_watch *watch)
{
    (void)watch;
}

#endif

/* ---- Waiting ---- */

static void sleep_until(thread_waiter *waiter, uint64_t deadline)
{
    blocked_watch watch;
    watch_begins(&watch, waiter);
    for (;;) {
        uint64_t next = bide_timekeeper_park_(&waiter->word);
        if (sync_wait_has_ended(waiter))
            break;
        uint64_t until = next < deadline ? next : deadline;
        if (watch.at < until)
            until = watch.at;
        if (bide_platform.wait(&waiter->word, WAITER_PARKED, until) != -ETIMEDOUT)
            continue;
        if (until == deadline) {
            deadline = BIDE_FOREVER;
            ask_to_stop(waiter);
        }
        if (until == next)
            bide_timekeeper_run_due_(next); /* 6 */
        if (until == watch.at)
            watch_looks(&watch, waiter);
    }
    bide_timekeeper_unpark_();
    watch_ends(&watch);
}

/* Starts the prepared root, and waits for its end. */
static void start_and_wait(thread_waiter *waiter, uint64_t deadline)
{
    /* Not posted: inside a coroutine, an inline post would wait for that one, which waits for this
     * function. */
    if (waiter->root.frame.context->scheduler == &bide_inline_scheduler)
        bide_resume(&waiter->root.frame);
    else
        bide_root_post(&waiter->root);
    if (sync_wait_has_ended(waiter))
        return;
    bide_run_queued_(); /* 5 */
    if (!sync_wait_poll(waiter))
        sleep_until(waiter, deadline);
}

/* Reports a wait that would never end. */
BIDE_COLD static void tell_misuse(bide_awaiter *awaiter, const call_place *place)
{
    static const char what[] = "a thread blocks for what only it could run";
    const bide_frame *frame = bide_awaited_frame(awaiter);
    const char *name = awaiter->ops->name != NULL ? awaiter->ops->name : "bide_sync_wait";
    if (frame != NULL)
        name = bide_point_name_(bide_frame_point(frame));
    if (place->function != NULL)
        call_is_misuse((const char *const[]){what, ": ", name, NULL}, place);
    else if (frame != NULL)
        bide_misused_(what, bide_frame_point(frame));
    else
        bide_platform.misuse(what, name, __FILE__, __LINE__);
}

/* In debug builds: reports misuse by the arguments. */
static void check_call(const bide_awaiter *awaiter, uint64_t deadline, const call_place *place)
{
    bool known = place->function != NULL;
    bide_check_given_(awaiter, known ? place->function : "bide_sync_wait",
                      known ? place->file : __FILE__, known ? place->line : __LINE__);
    if (BIDE_UNLIKELY(bide_is_duration_(&bide_inline_scheduler, deadline)))
        call_is_misuse((const char *const[]){BIDE_IS_DURATION_, NULL}, place);
}

/* In debug builds: reports of misuse by what `waiter` waits for have the place of the call. */
static void call_attaches(thread_waiter *waiter, const bide_awaiter *awaiter,
                          const call_place *place)
{
#if BIDE_DEBUG
    waiter->place = place;
#endif
#if BIDE_FLIGHTS_
    if (place->function != NULL)
        bide_flights_attach_(awaiter, &waiter->root.frame, place->function, place->file,
                             place->line);
#else
    (void)waiter, (void)awaiter, (void)place;
#endif
}

int bide_sync_wait_until_in(const bide_context *context, bide_awaiter *awaiter, uint64_t deadline)
{
    const call_place place = take_call_place();
    thread_waiter waiter;
    bide_timekeeper_ timekeeper;
    bide_limited_wait_ limited;
    bide_scheduler *scheduler = context->scheduler;
    bool has_deadline = deadline != BIDE_FOREVER;
    if (BIDE_DEBUG)
        check_call(awaiter, deadline, &place);
    if (scheduler == &bide_inline_scheduler && bide_awaiter_ready(awaiter, awaiter->ops))
        return bide_awaiter_resume(awaiter, awaiter->ops);
    if (scheduler->runs_here_only != NULL && BIDE_UNLIKELY(scheduler->runs_here_only(scheduler)))
        tell_misuse(awaiter, &place);
    call_attaches(&waiter, awaiter, &place);
    bide_atomic_init(&waiter.word, RUNNING);
    bide_root_prepare(&waiter.root, context, awaiter, thread_waiter_ended, has_deadline);
    if (has_deadline && bide_platform.now() >= deadline) {
        bide_stop_request_with(&waiter.root.stop, -ETIMEDOUT);
        deadline = BIDE_FOREVER;
    }
    bool keeps_time = bide_keep_time_(&timekeeper);
    has_deadline = deadline != BIDE_FOREVER && scheduler == &bide_inline_scheduler;
    if (has_deadline)
        bide_limited_wait_begin_(&limited, &waiter.root.stop, deadline);
    start_and_wait(&waiter, deadline);
    if (has_deadline)
        bide_limited_wait_end_(&limited);
    if (keeps_time)
        bide_stop_keeping_time_(&timekeeper);
    return waiter.root.status;
}

int bide_sync_wait_until(bide_awaiter *awaiter, uint64_t deadline)
{
    return bide_sync_wait_until_in(&bide_default_context, awaiter, deadline);
}

int bide_sync_wait_in(const bide_context *context, bide_awaiter *awaiter)
{
    return bide_sync_wait_until_in(context, awaiter, BIDE_FOREVER);
}

int bide_sync_wait(bide_awaiter *awaiter)
{
    return bide_sync_wait_until_in(&bide_default_context, awaiter, BIDE_FOREVER);
}
