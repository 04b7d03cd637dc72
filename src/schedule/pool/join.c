/*
 * Joins on the workers of a pool: how a half is stolen, and how its joiner waits. The deque, the
 * numbered argument, and what a joiner may run are in bide/detail/join_deque.h.
 *
 * To the pool the halves are its other kind of work (worker.h). A push does not check whether workers
 * sleep, as posting a coroutine does. It checks `alert` of its own deque. Why some worker wakes for a
 * half, if any sleeps:
 *
 * A. A worker that is about to sleep, or has found something and leaves others asleep, calls
 *    join_has_work: it sets POOL in the `alert` of all deques, passes a heavy fence if that was new,
 *    and checks the deques. So either it sees the half, or the owner sees POOL, by 8. If POOL was
 *    set already, the pool's own heavy fence came before the load of `alert`: an owner that clears
 *    POOL later sees that the worker sleeps.
 * B. The owner that clears POOL announces work to the pool, as if it had posted (bide_pool_tell_). It
 *    acquires `alert`, so it sees which workers sleep. If it leaves the waking to a searching worker,
 *    that worker comes to A again before it could miss POOL.
 * C. A deque starts with POOL set. So its first push tells the pool that this kind of work exists.
 */
#include "bide/join.h"

#include "fork_stacks.h"
#include "worker.h"

#include "../../system/threads.h"

#include "bide/coroutine.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#undef bide_join
#undef bide_call_in
#undef bide_join_in

BIDE_THREAD_LOCAL bide_join_deque_ *bide_join_here_;

/* ---- The deque ---- */

bool bide_join_pop_last_(bide_join_deque_ *deque, size_t bottom)
{
    size_t top = bottom;
    /* relaxed: the owner has pushed the half itself */
    bool is_own = bide_atomic_compare_exchange(&deque->top, &top, bottom + 1, relaxed, relaxed);
    bide_assert(is_own || (ptrdiff_t)(top - bottom) > 0);
    /* relaxed: the deque is empty: the halves above this one were stolen, which has advanced
     * `top`. */
    bide_atomic_store(&deque->bottom, is_own ? bottom + 1 : top, relaxed);
    return is_own;
}

bide_join_half_ *bide_join_steal_(bide_join_deque_ *victim, const bide_join_half_ *awaited)
{
    if (bide_join_deque_is_empty_(victim))
        return NULL;
    size_t top = bide_atomic_load(&victim->top, relaxed);
    bide_atomic_fence_heavy(); /* 2; partner: the light fence in pop */
    /* acquire: partner is the release in push and pop; the slot and the half are written (3) */
    size_t bottom = bide_atomic_load(&victim->bottom, acquire);
    if ((ptrdiff_t)(bottom - top) <= 0)
        return NULL;
    bide_join_half_ *half = bide_atomic_load(&victim->slots[top % BIDE_JOIN_SLOTS_], relaxed);
    if (awaited != NULL && bide_atomic_load(&awaited->state, relaxed) == BIDE_JOIN_DONE_)
        return NULL; /* 5 */
    /* release: partner is the owner's acquire in push; the slot has been read */
    if (!bide_atomic_compare_exchange(&victim->top, &top, top + 1, release, relaxed))
        return NULL;
    return half;
}

/* ---- A new stack ---- */

/* A join that a thread of its own makes in the worker's place. */
struct join_piece {
    bide_pool_worker *worker;
    void (*functions[2])(void *argument);
    void *arguments[2];
};

/*
 * The worker's thread waits, and uses nothing of the worker until this thread has ended. Starting and joining the
 * thread orders what the two do.
 */
static void *join_piece_main(void *argument)
{
    const struct join_piece *piece = argument;
    bide_pool_worker *worker = piece->worker;
    uintptr_t low = worker->join.stack_low;
    size_t reserve = worker->join.stack_reserve;
    bide_pool_enter_(worker);
    bide_pool_measure_stack_(worker);
    bide_join(piece->functions[0], piece->arguments[0], piece->functions[1], piece->arguments[1]);
    bide_pool_enter_(NULL);
    worker->join.stack_low = low;
    worker->join.stack_reserve = reserve;
    return NULL;
}

static void join_nothing_to_undo(void *argument)
{
    (void)argument;
}

void bide_join_on_new_stack_(void (*first)(void *argument), void *first_argument,
                             void (*second)(void *argument), void *second_argument)
{
    bide_pool_worker *worker = bide_pool_this_worker_();
    struct join_piece piece = {worker, {first, second}, {first_argument, second_argument}};
    pthread_t thread;
    if (bide_threads_start_sized_(&thread, 1, worker->pool->stack_size, join_piece_main, &piece,
                                  join_nothing_to_undo) != 0) {
        bide_join_in_turn_(first, first_argument, second, second_argument);
        return;
    }
    bide_threads_join_(&thread, 1);
    bide_atomic_store(&worker->deep_joins, bide_atomic_load(&worker->deep_joins, relaxed) + 1,
                      relaxed);
}

void bide_join_in_turn_(void (*first)(void *argument), void *first_argument,
                        void (*second)(void *argument), void *second_argument)
{
    first(first_argument);
    second(second_argument);
}

/* ---- Stealing, and waiting for what was stolen ---- */

void bide_join_run_(bide_join_deque_ *own, bide_join_deque_ *victim, bide_join_half_ *half)
{
    if (bide_join_is_fork_(half)) {
        bide_fork_task_continue_(half);
        return;
    }
    bide_atomic_store(&half->state, (uintptr_t)own, relaxed);
    bide_join_tell_(victim);
    half->function(half->argument);
    /* release: partner is the joiner's load in wait; what the half has written */
    bide_atomic_store(&half->state, BIDE_JOIN_DONE_, release);
    bide_join_tell_(own); /* the half may be gone */
}

/* Sleeps until the deque signals a change; `state` is the last known one of the half. */
static void join_sleep_on(bide_join_deque_ *deque, const bide_join_half_ *half, uintptr_t state)
{
    uint32_t signal = bide_atomic_load(&deque->signal, relaxed);
    /* release: partner is the exchange in alerted, which adds to what was read here (8) */
    bide_atomic_fetch_or(&deque->alert, BIDE_JOIN_SLEEPERS_, release);
    bide_atomic_fence_heavy(); /* 8; partner: the light fence in tell */
    if (bide_atomic_load(&half->state, relaxed) == state && bide_join_deque_is_empty_(deque))
        bide_platform.wait(&deque->signal, signal, BIDE_FOREVER);
}

void bide_join_wait_(bide_join_deque_ *own, bide_join_half_ *half)
{
    for (int looks = 0;;) {
        /* acquire: partner is the release in run */
        uintptr_t state = bide_atomic_load(&half->state, acquire);
        if (state == BIDE_JOIN_DONE_)
            return;
        bide_join_deque_ *thief = state == BIDE_JOIN_WAITS_ ? NULL : (bide_join_deque_ *)state;
        bide_join_half_ *inside = thief != NULL ? bide_join_steal_(thief, half) : NULL;
        if (inside != NULL) {
            bide_join_run_(own, thief, inside);
            looks = 0;
        } else if (looks++ < BIDE_JOIN_SPINS_) {
            bide_cpu_relax();
        } else {
            join_sleep_on(thief != NULL ? thief : own, half, state);
        }
    }
}

/* ---- The pool ---- */

/* Steals a half from another worker, and runs it. */
static bool join_steal_and_run(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    if (!bide_join_deque_is_empty_(&worker->join))
        return false; /* 5; the worker runs coroutines inside a half that waits */
    unsigned at = (worker->random >> 8) % pool->places;
    for (unsigned i = 0; i < pool->places; i++, at = at + 1 == pool->places ? 0 : at + 1) {
        bide_pool_worker *victim = &pool->workers[at];
        bide_join_half_ *half = victim != worker ? bide_join_steal_(&victim->join, NULL) : NULL;
        if (half == NULL)
            continue;
        bide_atomic_store(&worker->steals, bide_atomic_load(&worker->steals, relaxed) + 1, relaxed);
        bide_pool_found_(worker);
        bide_join_run_(&worker->join, &victim->join, half);
        return true;
    }
    return false;
}

static bool join_has_work(bide_thread_pool *pool)
{
    bool is_new = false;
    for (unsigned i = 0; i < pool->places; i++) {
        bide_join_deque_ *deque = &pool->workers[i].join;
        if ((bide_atomic_load(&deque->alert, relaxed) & BIDE_JOIN_POOL_) != 0)
            continue;
        /* release: partner is the exchange in alerted; the sleepers (B) */
        bide_atomic_fetch_or(&deque->alert, BIDE_JOIN_POOL_, release);
        is_new = true;
    }
    if (is_new)
        bide_atomic_fence_heavy(); /* A; partner: the light fence in tell */
    for (unsigned i = 0; i < pool->places; i++) {
        if (!bide_join_deque_is_empty_(&pool->workers[i].join))
            return true;
    }
    return false;
}

void bide_join_alerted_(bide_join_deque_ *deque)
{
    static const bide_pool_deque_hooks halves = {join_steal_and_run, join_has_work};
    /* acquire: partners are the releases in sleep_on and is_there */
    uint32_t alert = bide_atomic_exchange(&deque->alert, 0, acquire);
    if ((alert & BIDE_JOIN_SLEEPERS_) != 0) {
        bide_atomic_fetch_add(&deque->signal, 1, relaxed);
        bide_platform.wake(&deque->signal, UINT32_MAX);
    }
    if ((alert & BIDE_JOIN_POOL_) != 0) {
        bide_thread_pool *pool = bide_container_of(deque, bide_pool_worker, join)->pool;
        bide_pool_set_deque_hooks_(pool, &halves);
        bide_pool_tell_(pool);
    }
}

/* ---- From outside ---- */

struct join_call {
    bide_task task;
    void (*function)(void *argument);
    void *argument;
};

bide_coroutine(join_call_body)
{
    bide_begin(join_call_body, struct join_call * self);
    self->function(self->argument);
    bide_end();
}

void bide_call_in(bide_thread_pool *pool, void (*function)(void *argument), void *argument)
{
    if (bide_pool_worker_of_(pool) != NULL) {
        function(argument);
        return;
    }
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    struct join_call call = {.function = function, .argument = argument};
    bide_atomic_fetch_add(&pool->calls, 1, relaxed);
    bide_excused_here_change_(1);
    bide_sync_wait_in(&context, bide_task_init(&call.task, &join_call_body));
    bide_excused_here_change_(-1);
    bide_atomic_fetch_sub(&pool->calls, 1, relaxed);
}

struct join {
    void (*functions[2])(void *argument);
    void *arguments[2];
};

static void join_both(void *argument)
{
    struct join *self = argument;
    bide_join(self->functions[0], self->arguments[0], self->functions[1], self->arguments[1]);
}

void bide_join_in(bide_thread_pool *pool, void (*first)(void *argument), void *first_argument,
                  void (*second)(void *argument), void *second_argument)
{
    struct join both = {{first, second}, {first_argument, second_argument}};
    bide_call_in(pool, join_both, &both);
}
