/*
 * Interrupted calls of a pool for blocking calls: an interrupted call ends, even if the signal comes
 * before its system call. A call that is done keeps its result. No signal reaches another call, and
 * nothing refers to a call that has ended.
 *
 * Signals are modelled (blocking_signals.h). A thread is in one of these states:
 *
 *     MASKED --kill--> PENDING          it is taken, or delivered when the thread unmasks it: OPEN_LOST
 *     OPEN --kill--> OPEN_LOST          the handler runs: the signal is lost
 *     IN_CALL --kill--> INTERRUPTED     the system call returns EINTR
 *
 * Time passes when nothing else can happen: a timed wait ends when a thread is in a system call and a
 * signal to it was lost.
 */
#include "bide/blocking.h"
#include "bide/check.h"
#include "bide/check_pthread.h"

#include "../src/schedule/blocking_pool.h"

#include <errno.h>
#include <signal.h>

#include "blocking_signals.h"

enum { MASKED, PENDING, OPEN, OPEN_LOST, IN_CALL, INTERRUPTED };

enum { CALLS = 2, THREADS = 8 };

struct caller {
    bide_frame relay; /* runs when the call has ended, as in offload.c */
    bide_context context;
    bide_blocking_call *call; /* freed when it has ended */
    bide_atomic(uint32_t) ended;
    int status;
    bool has_begun, is_done; /* the function was called, and has returned 0 */
};

typedef struct state {
    bide_blocking *blocking;
    struct caller callers[CALLS];
    bide_atomic(uint32_t) signals[THREADS]; /* the states above */
    pthread_cond_t *timed;                  /* of a timed wait, under the pool's lock; or NULL */
    bool time_has_passed;
    bide_atomic(uint32_t) released;
} state;

static state *only;

/* ---- Signals ---- */

static bide_atomic(uint32_t) * signals_of(unsigned thread)
{
    bide_check_assert(thread < THREADS);
    return &only->signals[thread];
}

void model_mask(int how)
{
    bide_atomic(uint32_t) *signals = signals_of(bide_check_thread());
    uint32_t masked = MASKED;
    if (how == SIG_UNBLOCK) {
        if (!bide_atomic_compare_exchange(signals, &masked, OPEN, seq_cst, seq_cst))
            bide_atomic_store(signals, OPEN_LOST, seq_cst); /* it was pending */
    } else if (how == SIG_BLOCK) {
        bide_atomic_store(signals, MASKED, seq_cst);
    }
}

/* (called under the pool's lock: one at a time) */
int model_kill(pthread_t thread)
{
    static const uint32_t next[] = {
        [MASKED] = PENDING,      [PENDING] = PENDING,     [OPEN] = OPEN_LOST,
        [OPEN_LOST] = OPEN_LOST, [IN_CALL] = INTERRUPTED, [INTERRUPTED] = INTERRUPTED};
    bide_atomic(uint32_t) *signals = signals_of((unsigned)thread);
    uint32_t found = bide_atomic_load(signals, seq_cst);
    while (next[found] != found &&
           !bide_atomic_compare_exchange(signals, &found, next[found], seq_cst, seq_cst))
        ;
    if (found == IN_CALL)
        bide_platform.wake(signals, 1);
    return 0;
}

int model_action(struct sigaction *old)
{
    if (old != NULL)
        *old = (struct sigaction){.sa_handler = SIG_DFL};
    return 0;
}

/* Each call is slow at once. */
uint64_t model_slow_call(void)
{
    return 0;
}

int model_name(pthread_t thread)
{
    (void)thread;
    return 0;
}

int model_take_pending(void)
{
    uint32_t pending = PENDING;
    return bide_atomic_compare_exchange(signals_of(bide_check_thread()), &pending, MASKED, seq_cst,
                                        seq_cst)
               ? SIGURG
               : -1;
}

int model_timed_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    only->timed = condition;
    only->time_has_passed = false;
    pthread_cond_wait(condition, mutex);
    only->timed = NULL;
    return only->time_has_passed ? ETIMEDOUT : 0;
}

/* A signal was lost, and the thread waits: a timed wait ends. */
static void pass_time(void)
{
    pthread_mutex_lock(&only->blocking->lock);
    if (only->timed != NULL) {
        only->time_has_passed = true;
        pthread_cond_signal(only->timed);
    }
    pthread_mutex_unlock(&only->blocking->lock);
}

/* ---- Calls ---- */

/* Enters a system call that waits for a signal. */
static int wait_in_system(void)
{
    bide_atomic(uint32_t) *signals = signals_of(bide_check_thread());
    uint32_t found = bide_atomic_exchange(signals, IN_CALL, seq_cst);
    bide_check_assert(found == OPEN || found == OPEN_LOST);
    if (found == OPEN_LOST)
        pass_time();
    while ((found = bide_atomic_load(signals, seq_cst)) == IN_CALL)
        bide_platform.wait(signals, IN_CALL, BIDE_FOREVER);
    bide_atomic_store(signals, OPEN, seq_cst);
    return -EINTR;
}

static int call_that_waits(void *argument)
{
    struct caller *caller = argument;
    int result;
    caller->has_begun = true;
    while ((result = wait_in_system()) != 0 && !bide_blocking_is_interrupted())
        bide_check_assert(false); /* there are no other signals: 5 */
    return result;
}

/* It makes a system call, which does not wait. */
static int call_that_is_short(void *argument)
{
    bide_atomic(uint32_t) *signals = signals_of(bide_check_thread());
    struct caller *caller = argument;
    caller->has_begun = true;
    bide_check_assert(bide_atomic_exchange(signals, IN_CALL, seq_cst) >= OPEN);
    bool was_interrupted = bide_atomic_exchange(signals, OPEN, seq_cst) == INTERRUPTED;
    if (was_interrupted)
        bide_check_assert(caller->call->interrupted && bide_blocking_is_interrupted()); /* 5 */
    caller->is_done = !was_interrupted;
    return was_interrupted ? -EINTR : 0;
}

static bide_next relay_step(bide_frame *frame, unsigned depth)
{
    struct caller *caller = bide_container_of(frame, struct caller, relay);
    (void)depth;
    bide_atomic_store(&caller->ended, 1, release);
    bide_platform.wake(&caller->ended, 1);
    return bide_next_none();
}

static const bide_coroutine_code relay_code = {relay_step, "relay", __FILE__, NULL, NULL};
static const bide_point relay_point = BIDE_POINT_START(&relay_code);

static void begin(state *s, unsigned number, int (*function)(void *argument))
{
    struct caller *caller = &s->callers[number];
    caller->call = bide_check_alloc(sizeof *caller->call);
    caller->context.scheduler = &bide_inline_scheduler;
    bide_frame_init_in(&caller->relay, &relay_point, &caller->context);
    bide_awaiter *awaiter =
        bide_blocking_run_interruptible(caller->call, s->blocking, function, caller);
    awaiter->frame = &caller->relay;
    bide_check_assert(awaiter->ops->suspend(awaiter, &caller->relay) == NULL);
}

static void request(state *s)
{
    bide_awaiter *awaiter = &s->callers[0].call->awaiter;
    awaiter->ops->cancel(awaiter);
}

static void end(state *s, unsigned number)
{
    struct caller *caller = &s->callers[number];
    while (bide_atomic_load(&caller->ended, acquire) == 0)
        bide_platform.wait(&caller->ended, 0, BIDE_FOREVER);
    caller->status = caller->call->status;
    bide_check_free(caller->call);
}

/* ---- Scenarios ---- */

static void setup(void *p)
{
    state *s = only = p;
    bide_blocking_options options = {.max_threads = 1, .interrupt_signal = SIGURG};
    bide_check_assert(bide_blocking_create_with(&s->blocking, &options) == 0);
}

/* Nobody else ends it: it ends by the request, wherever the request finds it. */
static void interrupt_one(void *p)
{
    state *s = p;
    begin(s, 0, call_that_waits);
    request(s);
    end(s, 0);
    bide_check_assert(s->callers[0].status == (s->callers[0].has_begun ? -EINTR : 0));
    bide_blocking_destroy(s->blocking);
}

/*
 * A request to the first reaches the second in no way. (Without a supervisor, which sends signals as the
 * request does, there are few enough executions.)
 */
static void interrupt_first_of_two(void *p)
{
    state *s = p;
    s->blocking->has_supervisor = true;
    begin(s, 0, call_that_is_short);
    begin(s, 1, call_that_is_short);
    request(s);
    end(s, 0);
    end(s, 1);
    const struct caller *first = &s->callers[0];
    bide_check_assert(first->status == (first->is_done || !first->has_begun ? 0 : -EINTR));
    bide_check_assert(s->callers[1].status == 0 && s->callers[1].is_done);
    s->blocking->has_supervisor = false;
    bide_blocking_destroy(s->blocking);
}

/* Waits for the second call, for which there is only a spare thread. */
static int call_that_needs_another(void *argument)
{
    (void)argument;
    while (bide_atomic_load(&only->released, acquire) == 0)
        bide_platform.wait(&only->released, 0, BIDE_FOREVER);
    return 0;
}

static int call_that_releases(void *argument)
{
    (void)argument;
    bide_atomic_store(&only->released, 1, release);
    bide_platform.wake(&only->released, 1);
    return 0;
}

static void make_call_that_needs_another(void *p)
{
    state *s = p;
    begin(s, 0, call_that_needs_another);
    begin(s, 1, call_that_releases);
    end(s, 0);
    end(s, 1);
    bide_blocking_destroy(s->blocking);
}

static void setup_spare(void *p)
{
    bide_blocking_options options = {.max_threads = 1, .spare_threads = 1};
    only = p;
    bide_check_assert(bide_blocking_create_with(&only->blocking, &options) == 0);
}

static const bide_check_scenario spare = {
    .name = "a_call_that_waits_holds_up_no_other",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_spare,
    .threads = {make_call_that_needs_another},
    .never_spurious = true,
};

static const bide_check_scenario interrupted = {
    .name = "a_call_that_waits_is_interrupted",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {interrupt_one},
    .never_spurious = true,
};

static const bide_check_scenario two = {
    .name = "an_interruption_reaches_no_other_call",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {interrupt_first_of_two},
    .never_spurious = true,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&interrupted, &two, &spare, NULL};
    static const char *const files[] = {"blocking.c", "blocking_call.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
