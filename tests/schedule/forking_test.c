/*
 * Forks of coroutines: each child runs once, beside its parent or before it; the children's writes are visible
 * after the join; frames are on stacks that end with their strands; and nothing is lost when memory runs
 * out, or when the family is cancelled.
 */
#define _GNU_SOURCE
#include "faults.h"
#include "misuse.h"
#include "forking_fib.h"
#include "schedule_testing.h"

#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/fork.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/spawn.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"
#include "bide/with_stop.h"

#include <errno.h>
#include <pthread.h>

static bide_thread_pool *create(unsigned threads)
{
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
    return pool;
}

/* Runs the first of a family in a pool of so many threads; 0: under the default context. */
static int run(unsigned threads, bide_stop_source *stop, bide_awaiter *first)
{
    bide_context context = bide_default_context;
    bide_thread_pool *pool = threads != 0 ? create(threads) : NULL;
    context.stop = stop;
    if (pool != NULL)
        context.scheduler = bide_thread_pool_scheduler(pool);
    int status = bide_sync_wait_in(&context, first);
    if (pool != NULL)
        bide_thread_pool_destroy(pool);
    return status;
}

/* ---- Recursion ---- */

static void forks_nest_on_one_worker_and_on_several(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 4; threads++) {
        uint64_t result = 0;
        struct fib all = {.n = 20, .result = &result};
        assert_int_equal(run(threads, NULL, bide_fork_task_init(&all.forking, &fib_body)), 0);
        assert_int_equal(result, 6765);
    }
}

static void a_run_loop_runs_forks_too(void **state)
{
    (void)state;
    bide_run_loop loop;
    uint64_t result = 0;
    struct fib all = {.n = 15, .result = &result};
    bide_run_loop_init(&loop);
    assert_int_equal(bide_run_loop_wait(&loop, bide_fork_task_init(&all.forking, &fib_body)), 0);
    assert_int_equal(result, 610);
    bide_run_loop_destroy(&loop);
}

/* Forks, or calls, one inside the other. */
struct deep {
    bide_fork_task forking;
    uint32_t depth;
    bool calls;
    uint32_t *count;
    uint32_t inner;
};

bide_fork_coroutine(deep_body)
{
    bide_begin(deep_body, struct deep * self);
    *self->count = 1;
    if (self->depth == 0)
        bide_return(0);
    if (self->calls)
        bide_try(bide_fork_call(self, struct deep, &deep_body, depth = self->depth - 1,
                                calls = self->calls, count = &self->inner));
    else
        bide_await(bide_fork(self, struct deep, &deep_body, depth = self->depth - 1,
                             calls = self->calls, count = &self->inner));
    bide_try(bide_fork_join(self));
    *self->count += self->inner;
    bide_end();
}

static void recursion_goes_300000_deep(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 2; threads++) {
        for (int calls = 0; calls <= 1; calls++) {
            uint32_t count = 0;
            struct deep deep = {.depth = 300000, .calls = calls, .count = &count};
            assert_int_equal(run(threads, NULL, bide_fork_task_init(&deep.forking, &deep_body)), 0);
            assert_int_equal(count, 300001);
        }
    }
}

/* ---- In which order, and where ---- */

struct order {
    bide_fork_task forking;
    unsigned name, depth;
    unsigned *noted;
};

bide_fork_coroutine(order_body)
{
    bide_begin(order_body, struct order * self);
    self->noted[++self->noted[0]] = self->name;
    if (self->depth != 0) {
        bide_await(bide_fork(self, struct order, &order_body, name = 2 * self->name,
                             depth = self->depth - 1, noted = self->noted));
        self->noted[++self->noted[0]] = 100 + self->name;
        bide_await(bide_fork(self, struct order, &order_body, name = 2 * self->name + 1,
                             depth = self->depth - 1, noted = self->noted));
        bide_try(bide_fork_join(self));
    }
    bide_end();
}

static void on_one_thread_all_runs_in_the_order_of_the_program(void **state)
{
    (void)state;
    static const unsigned expected[] = {1, 2, 4, 102, 5, 101, 3, 6, 103, 7};
    for (unsigned threads = 0; threads <= 1; threads++) {
        unsigned noted[32] = {0};
        struct order first = {.name = 1, .depth = 2, .noted = noted};
        assert_int_equal(run(threads, NULL, bide_fork_task_init(&first.forking, &order_body)), 0);
        assert_int_equal(noted[0], sizeof expected / sizeof expected[0]);
        assert_memory_equal(noted + 1, expected, sizeof expected);
    }
}

struct meeting {
    bide_fork_task forking;
    pthread_barrier_t *barrier;
    pthread_t *thread;
    pthread_t threads[2];
};

bide_fork_coroutine(met_body)
{
    bide_begin(met_body, struct meeting * self);
    *self->thread = pthread_self();
    pthread_barrier_wait(self->barrier);
    bide_end();
}

bide_fork_coroutine(meet_body)
{
    bide_begin(meet_body, struct meeting * self);
    bide_await(bide_fork(self, struct meeting, &met_body, barrier = self->barrier,
                         thread = &self->threads[0]));
    self->threads[1] = pthread_self();
    pthread_barrier_wait(self->barrier);
    bide_try(bide_fork_join(self));
    bide_end();
}

/* The other worker sleeps, or is about to: it is woken to continue the parent. */
static void a_sleeping_worker_goes_on_with_a_parent(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(2);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    for (uint32_t i = 0; i < rounds_of(300); i++) {
        pthread_barrier_t barrier;
        struct meeting first = {.barrier = &barrier};
        pthread_barrier_init(&barrier, NULL, 2);
        assert_int_equal(
            bide_sync_wait_in(&context, bide_fork_task_init(&first.forking, &meet_body)), 0);
        assert_false(pthread_equal(first.threads[0], first.threads[1]));
        pthread_barrier_destroy(&barrier);
    }
    bide_thread_pool_destroy(pool);
}

/* ---- Other awaits ---- */

struct waiting {
    bide_fork_task forking;
    bide_event *event;
    unsigned *ended;
    bide_event_waiter wait;
    unsigned children;
};

bide_fork_coroutine(waiting_child_body)
{
    bide_begin(waiting_child_body, struct waiting * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    ++*self->ended;
    bide_end();
}

/* The parent ends the wait of its child. */
bide_fork_coroutine(waiting_body)
{
    bide_begin(waiting_body, struct waiting * self);
    bide_await(bide_fork(self, struct waiting, &waiting_child_body, event = self->event,
                         ended = &self->children));
    bide_event_set(self->event);
    bide_try(bide_fork_join(self));
    *self->ended = self->children;
    bide_end();
}

static void a_child_that_waits_leaves_its_parent_to_the_worker(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 2; threads++) {
        for (uint32_t i = 0; i < rounds_of(100); i++) {
            bide_event event;
            unsigned ended = 0;
            struct waiting first = {.event = &event, .ended = &ended};
            bide_event_init(&event, false);
            assert_int_equal(run(threads, NULL, bide_fork_task_init(&first.forking, &waiting_body)),
                             0);
            assert_int_equal(ended, 1);
        }
    }
}

/* ---- Loops ---- */

struct looping {
    bide_fork_task forking;
    uint32_t count;
    bide_atomic(uint32_t) * alive;
    bide_atomic(uint32_t) * max;
    bide_atomic(uint32_t) * ran;
    uint32_t i;
};

bide_fork_coroutine(looped_body)
{
    bide_begin(looped_body, struct looping * self);
    uint32_t alive = bide_atomic_fetch_add(self->alive, 1, relaxed) + 1;
    uint32_t max = bide_atomic_load(self->max, relaxed);
    while (alive > max && !bide_atomic_compare_exchange(self->max, &max, alive, relaxed, relaxed)) {
    }
    bide_atomic_fetch_add(self->ran, 1, relaxed);
    bide_atomic_fetch_sub(self->alive, 1, relaxed);
    bide_end();
}

bide_fork_coroutine(looping_body)
{
    bide_begin(looping_body, struct looping * self);
    for (self->i = 0; self->i < self->count; self->i++)
        bide_await(bide_fork(self, struct looping, &looped_body, alive = self->alive,
                             max = self->max, ran = self->ran));
    bide_try(bide_fork_join(self));
    bide_end();
}

static void a_loop_has_no_more_children_at_once_than_workers(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 3; threads++) {
        bide_atomic(uint32_t) alive, max, ran;
        bide_atomic_init(&alive, 0);
        bide_atomic_init(&max, 0);
        bide_atomic_init(&ran, 0);
        struct looping first = {
            .count = rounds_of(100000), .alive = &alive, .max = &max, .ran = &ran};
        assert_int_equal(run(threads, NULL, bide_fork_task_init(&first.forking, &looping_body)), 0);
        assert_int_equal(bide_atomic_load(&ran, relaxed), first.count);
        assert_true(bide_atomic_load(&max, relaxed) <= (threads != 0 ? threads : 1));
    }
}

/* ---- Errors ---- */

struct failing {
    bide_fork_task forking;
    int error;
    int child_error, call_error;
    bool joins;
    int *joined; /* receives the status of the join, and of the call */
};

bide_fork_coroutine(failed_body)
{
    bide_begin(failed_body, struct failing * self);
    bide_return(self->error);
    bide_end();
}

bide_fork_coroutine(failing_body)
{
    bide_begin(failing_body, struct failing * self);
    bide_await(bide_fork(self, struct failing, &failed_body, error = self->child_error));
    bide_await(bide_fork(self, struct failing, &failed_body, error = 0));
    bide_await_status(self->joined[1],
                      bide_fork_call(self, struct failing, &failed_body, error = self->call_error));
    if (self->joins) {
        bide_await_status(self->joined[0], bide_fork_join(self));
        bide_await_status(self->joined[2], bide_fork_join(self)); /* it was reported once */
    }
    bide_return(self->error);
    bide_end();
}

static void a_childs_error_is_the_joins_and_a_calls_its_own(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 3; threads++) {
        for (uint32_t i = 0; i < rounds_of(threads > 1 ? 100 : 1); i++) {
            int joined[3] = {1, 1, 1};
            struct failing first = {
                .child_error = -EIO, .call_error = -EBUSY, .joins = true, .joined = joined};
            assert_int_equal(run(threads, NULL, bide_fork_task_init(&first.forking, &failing_body)),
                             0);
            assert_int_equal(joined[0], -EIO);
            assert_int_equal(joined[1], -EBUSY);
            assert_int_equal(joined[2], 0);
        }
    }
}

static void an_error_that_was_not_joined_is_that_of_the_end(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 3; threads++) {
        int joined[3];
        struct failing first = {.child_error = -EIO, .joined = joined};
        assert_int_equal(run(threads, NULL, bide_fork_task_init(&first.forking, &failing_body)),
                         -EIO);
        struct failing other = {.child_error = -EIO, .error = -EPERM, .joined = joined};
        assert_int_equal(run(threads, NULL, bide_fork_task_init(&other.forking, &failing_body)),
                         -EPERM);
    }
}

/* ---- Cancellation ---- */

struct stopping {
    bide_fork_task forking;
    bide_stop_source *stop;
    unsigned *ran;
    int *joined;
    bool *has_source;
};

bide_fork_coroutine(stopped_body)
{
    bide_begin(stopped_body, struct stopping * self);
    ++*self->ran;
    *self->has_source = bide_this_context()->stop != NULL;
    bide_end();
}

bide_fork_coroutine(stopping_body)
{
    bide_begin(stopping_body, struct stopping * self);
    bide_await(bide_fork(self, struct stopping, &stopped_body, ran = self->ran,
                         has_source = self->has_source));
    bide_await_status(self->joined[0], bide_fork_join(self));
    bide_stop_request(self->stop);
    bide_await(bide_fork(self, struct stopping, &stopped_body, ran = self->ran,
                         has_source = self->has_source));
    bide_await_status(self->joined[1], bide_fork_join(self));
    bide_await_status(self->joined[2],
                      bide_fork_call(self, struct stopping, &stopped_body, ran = self->ran,
                                     has_source = self->has_source));
    bide_end();
}

static void what_is_forked_after_a_request_to_stop_does_not_run(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 2; threads++) {
        bide_stop_source stop;
        unsigned ran = 0;
        int joined[3] = {1, 1, 1};
        bool has_source = false;
        struct stopping first = {
            .stop = &stop, .ran = &ran, .joined = joined, .has_source = &has_source};
        bide_stop_source_init(&stop);
        assert_int_equal(run(threads, &stop, bide_fork_task_init(&first.forking, &stopping_body)),
                         0);
        assert_int_equal(joined[0], 0);
        assert_int_equal(joined[1], -ECANCELED);
        assert_int_equal(joined[2], 0);
        assert_int_equal(ran, 2);
        assert_true(has_source);
    }
}

/* A tree of coroutines whose leaves wait for an event that is never set, or until it is. */
typedef struct crowd {
    bide_event event;
    bide_stop_source *asked; /* by the leaf that is the last to begin; or NULL */
    bide_atomic(uint32_t) began;
    bide_atomic(uint32_t) stopped;
    uint32_t leaves;
    bide_atomic(uint32_t) own_sources; /* among the leaves */
    bide_stop_source *first_source;
    int reason;
} crowd;

struct member {
    bide_fork_task forking;
    crowd *of;
    unsigned depth;
    bide_event_waiter wait;
    int status;
};

enum { CHILDREN = 3 };

bide_fork_coroutine(member_body)
{
    bide_begin(member_body, struct member * self);
    if (self->depth != 0) {
        bide_await(
            bide_fork(self, struct member, &member_body, of = self->of, depth = self->depth - 1));
        bide_await(
            bide_fork(self, struct member, &member_body, of = self->of, depth = self->depth - 1));
        bide_await_status(self->status, bide_fork_call(self, struct member, &member_body,
                                                       of = self->of, depth = self->depth - 1));
        bide_try(bide_fork_join(self));
        bide_return(self->status);
    }
    if (bide_this_context()->stop != self->of->first_source)
        bide_atomic_fetch_add(&self->of->own_sources, 1, relaxed);
    if (bide_atomic_fetch_add(&self->of->began, 1, relaxed) + 1 == self->of->leaves &&
        self->of->asked != NULL)
        bide_stop_request_with(self->of->asked, self->of->reason);
    bide_await_status(self->status, bide_event_wait(&self->wait, &self->of->event));
    if (self->status == self->of->reason)
        bide_atomic_fetch_add(&self->of->stopped, 1, relaxed);
    bide_return(self->status);
    bide_end();
}

static void crowd_init(crowd *self, unsigned depth, bide_stop_source *source,
                       bide_stop_source *asked)
{
    memset(self, 0, sizeof *self);
    bide_event_init(&self->event, false);
    self->first_source = source;
    self->asked = asked;
    self->reason = -ECANCELED;
    self->leaves = 1;
    while (depth-- != 0)
        self->leaves *= CHILDREN;
}

/* In a pool all begin, each forked one in a source of its own. Elsewhere the first one waits. */
static void a_request_ends_the_waits_of_all_that_was_forked(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 4; threads++) {
        for (unsigned depth = 1; depth <= 3; depth++) {
            for (int reason = 0; reason < 2; reason++) {
                bide_stop_source stop;
                crowd all;
                bide_stop_source_init(&stop);
                crowd_init(&all, depth, &stop, &stop);
                all.reason = reason ? -ETIMEDOUT : -ECANCELED;
                if (threads == 0)
                    all.leaves = 1;
                struct member first = {.of = &all, .depth = depth};
                assert_int_equal(
                    run(threads, &stop, bide_fork_task_init(&first.forking, &member_body)),
                    all.reason);
                uint32_t began = bide_atomic_load(&all.began, relaxed);
                assert_int_equal(bide_atomic_load(&all.stopped, relaxed), began);
                if (threads != 0)
                    assert_int_equal(began, all.leaves);
                assert_null(stop.first_child);
            }
        }
    }
}

/* A join in another source than the coroutine's, and then another join. */
typedef enum { JOIN_TOKEN, JOIN_TOKEN_BEFORE, JOIN_DEADLINE, JOIN_LATE, JOIN_WAYS } join_way;

struct joining {
    bide_fork_task forking;
    crowd *of;
    join_way way;
    bide_stop_source token;
    bide_with_stop_operation under;
    bide_with_deadline_operation limited;
    int statuses[2];
};

static bide_awaiter *join_by(struct joining *self)
{
    bide_awaiter *join = bide_fork_join(self);
    switch (self->way) {
    case JOIN_TOKEN_BEFORE:
        bide_stop_request(&self->token);
        return bide_with_stop(&self->under, &self->token, join);
    case JOIN_DEADLINE:
        return bide_with_deadline(&self->limited, 1, join);
    case JOIN_LATE:
        bide_event_set(&self->of->event);
        return bide_with_deadline(&self->limited, BIDE_FOREVER - 1, join);
    default:
        return bide_with_stop(&self->under, &self->token, join);
    }
}

bide_fork_coroutine(joining_body)
{
    bide_begin(joining_body, struct joining * self);
    bide_await(bide_fork(self, struct member, &member_body, of = self->of, depth = 0));
    bide_await(bide_fork(self, struct member, &member_body, of = self->of, depth = 1));
    bide_await_status(self->statuses[0], join_by(self));
    bide_event_set(&self->of->event);
    bide_await(bide_fork(self, struct member, &member_body, of = self->of, depth = 1));
    bide_await_status(self->statuses[1], bide_fork_join(self));
    bide_end();
}

static void what_asks_a_join_asks_what_was_forked_and_no_other(void **state)
{
    (void)state;
    static const int expected[] = {-ECANCELED, -ECANCELED, -ETIMEDOUT, 0};
    for (unsigned threads = 1; threads <= 4; threads++) {
        for (unsigned way = 0; way < JOIN_WAYS; way++) {
            bide_stop_source stop;
            crowd all;
            struct joining first = {.of = &all, .way = (join_way)way};
            bide_stop_source_init(&stop);
            bide_stop_source_init(&first.token);
            crowd_init(&all, 0, &stop, way == JOIN_TOKEN ? &first.token : NULL);
            all.leaves = 1 + CHILDREN;
            all.reason = expected[way];
            assert_int_equal(
                run(threads, &stop, bide_fork_task_init(&first.forking, &joining_body)), 0);
            assert_int_equal(first.statuses[0], expected[way]);
            assert_int_equal(first.statuses[1], 0);
            /* (a request may come before the second child has forked all of its own) */
            uint32_t began = bide_atomic_load(&all.began, relaxed);
            if (way == JOIN_TOKEN || way == JOIN_LATE)
                assert_int_equal(began, 1 + 2 * CHILDREN);
            assert_true(began >= CHILDREN && began <= 1 + 2 * CHILDREN);
            assert_false(bide_stop_requested(&stop));
            assert_null(stop.first_child);
            assert_null(first.token.first_child);
        }
    }
}

/* Without a source there is nothing to ask; the wrapper goes on when the children have ended. */
static void a_wrapper_around_a_join_goes_on_without_a_source_too(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 4; threads++) {
        crowd all;
        struct joining first = {.of = &all, .way = JOIN_LATE};
        crowd_init(&all, 0, NULL, NULL);
        if (threads == 0)
            bide_event_set(&all.event);
        assert_int_equal(run(threads, NULL, bide_fork_task_init(&first.forking, &joining_body)), 0);
        assert_int_equal(first.statuses[0], 0);
        assert_int_equal(first.statuses[1], 0);
        assert_int_equal(bide_atomic_load(&all.own_sources, relaxed), 0);
    }
}

/* ---- Without memory ---- */

/* So large that each segment holds one, or two. */
struct large {
    bide_fork_task forking;
    unsigned depth;
    bide_atomic(uint32_t) * began;
    bide_atomic(uint32_t) * ended;
    unsigned char room[200000];
};

bide_fork_coroutine(large_body)
{
    bide_begin(large_body, struct large * self);
    bide_atomic_fetch_add(self->began, 1, relaxed);
    self->room[0] = self->room[sizeof self->room - 1] = 1;
    if (self->depth != 0) {
        bide_await(bide_fork(self, struct large, &large_body, depth = self->depth - 1,
                             began = self->began, ended = self->ended));
        bide_await(bide_fork(self, struct large, &large_body, depth = self->depth - 1,
                             began = self->began, ended = self->ended));
        bide_try(bide_fork_call(self, struct large, &large_body, depth = self->depth - 1,
                                began = self->began, ended = self->ended));
        bide_try(bide_fork_join(self));
    }
    bide_finally();
    bide_atomic_fetch_add(self->ended, 1, relaxed);
    bide_end();
}

/* All children that started have ended, no matter which allocation fails. */
static int run_large(void *argument)
{
    bide_thread_pool *pool = NULL;
    bide_context context = bide_default_context;
    bide_atomic(uint32_t) began, ended;
    static struct large first;
    unsigned threads = *(const unsigned *)argument;
    bide_atomic_init(&began, 0);
    bide_atomic_init(&ended, 0);
    if (threads != 0) {
        int error = bide_thread_pool_create(&pool, threads);
        if (error < 0)
            return error;
        context.scheduler = bide_thread_pool_scheduler(pool);
    }
    first.depth = 3;
    first.began = &began;
    first.ended = &ended;
    int status = bide_sync_wait_in(&context, bide_fork_task_init(&first.forking, &large_body));
    assert_int_equal(bide_atomic_load(&began, relaxed), bide_atomic_load(&ended, relaxed));
    if (status == 0)
        assert_int_equal(bide_atomic_load(&began, relaxed), 40);
    if (pool != NULL)
        bide_thread_pool_destroy(pool);
    return status;
}

static void without_memory_a_join_ends_with_ENOMEM_and_nothing_is_lost(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 1; threads++)
        assert_true(faults_for_each_n(FAULT_MALLOC, ENOMEM, run_large, &threads) >= 4);
    unsigned several = 3; /* the number of allocations is not determined */
    for (unsigned n = 2; n < 8; n++) {
        faults_clear();
        faults_fail(FAULT_MALLOC, n, 1, ENOMEM);
        int status = run_large(&several);
        assert_true(status == 0 || status == -ENOMEM);
        faults_clear();
    }
}

/* ---- Misuse ---- */

static void destroy_while_it_waits(void)
{
    bide_event event;
    unsigned ended = 0;
    struct waiting first = {.event = &event, .ended = &ended};
    bide_event_init(&event, false);
    bide_await_later(bide_fork_task_init(&first.forking, &waiting_body));
    bide_start(&first.forking.frame, &waiting_body, &bide_default_context);
    bide_resume(&first.forking.frame);
    bide_destroy(&first.forking.frame);
}

/* Waits for something other than its child; the child's event is set after the child's end. */
struct elsewhere {
    bide_fork_task forking;
    bide_event *child_event;
    bide_event *event;
    bide_event_waiter wait;
    unsigned children;
    bool joins;
    bool waits;
};

bide_fork_coroutine(elsewhere_body)
{
    bide_begin(elsewhere_body, struct elsewhere * self);
    bide_await(bide_fork(self, struct waiting, &waiting_child_body, event = self->child_event,
                         ended = &self->children));
    if (self->joins)
        bide_try(bide_fork_join(self));
    self->waits = true;
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_try(bide_fork_join(self));
    bide_end();
}

/* On the pool's one worker. */
struct destroying {
    bide_task task;
    struct elsewhere *first;
    bide_spawned spawned;
    bide_schedule_operation yield;
};

bide_coroutine(destroying_body)
{
    bide_begin(destroying_body, struct destroying * self);
    bide_spawn(&self->spawned, bide_this_context(),
               bide_fork_task_init(&self->first->forking, &elsewhere_body));
    while (!self->first->waits)
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    bide_destroy(&self->spawned.root.frame);
    bide_end();
}

static void destroy_elsewhere(bool joins)
{
    bide_event child_event, event;
    struct elsewhere first = {.child_event = &child_event, .event = &event, .joins = joins};
    struct destroying destroying = {.first = &first};
    bide_event_init(&child_event, joins);
    bide_event_init(&event, false);
    run(1, NULL, bide_task_init(&destroying.task, &destroying_body));
}

static void destroy_while_its_child_waits(void)
{
    destroy_elsewhere(false);
}

static void destroy_when_its_child_has_ended(void)
{
    destroy_elsewhere(true);
}

struct moving {
    bide_fork_task forking;
    bide_scheduler *to;
    bide_schedule_operation move;
};

bide_fork_coroutine(moved_body)
{
    bide_begin(moved_body, struct moving * self);
    bide_await(bide_schedule(&self->move, self->to));
    bide_end();
}

bide_fork_coroutine(moving_body)
{
    bide_begin(moving_body, struct moving * self);
    bide_await(bide_fork(self, struct moving, &moved_body, to = self->to));
    bide_try(bide_fork_join(self));
    bide_end();
}

static void move_to_another_pool(void)
{
    bide_thread_pool *other = create(1);
    struct moving first = {.to = bide_thread_pool_scheduler(other)};
    run(1, NULL, bide_fork_task_init(&first.forking, &moving_body));
}

static void a_forked_coroutine_that_goes_to_another_pool_is_told(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(move_to_another_pool, "gone to another scheduler", "bide_fork"));
}

static void a_coroutine_that_waits_for_its_children_is_not_destroyed(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(destroy_while_it_waits, "waits for what it has forked", "bide_fork"));
}

static void a_coroutine_that_has_forked_and_waits_for_something_else_is_not_destroyed(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_while_its_child_waits, "destroyed that has forked",
                                     "elsewhere_body"));
    assert_true(misuse_aborts_naming(destroy_when_its_child_has_ended, "destroyed that has forked",
                                     "elsewhere_body"));
}

/* ---- Stress: trees at random ---- */

struct tree {
    bide_fork_task forking;
    uint64_t seed;
    unsigned depth;
    bide_atomic(uint32_t) * leaves;
    uint32_t *expected; /* counted on the way up */
    uint32_t children[4];
    unsigned i, count;
    bide_schedule_operation yield;
    struct fib fib;
    uint64_t fib_result;
};

bide_fork_coroutine(tree_body)
{
    bide_begin(tree_body, struct tree * self);
    *self->expected = 0;
    memset(self->children, 0, sizeof self->children);
    if (self->depth == 0 || testing_random(&self->seed) % 8 == 0) {
        if (testing_random(&self->seed) % 4 == 0)
            bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
        bide_atomic_fetch_add(self->leaves, 1, relaxed);
        *self->expected = 1;
        bide_return(0);
    }
    self->count = 1 + (unsigned)(testing_random(&self->seed) % 4);
    for (self->i = 0; self->i < self->count; self->i++) {
        switch (testing_random(&self->seed) % 8) {
        case 0:
            bide_try(bide_fork_call(self, struct tree, &tree_body,
                                    seed = testing_random(&self->seed), depth = self->depth - 1,
                                    leaves = self->leaves, expected = &self->children[self->i]));
            break;
        case 1:
            bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
            break;
        case 2:
            bide_try(bide_fork_join(self));
            break;
        case 3:
            self->fib.n = 5;
            self->fib.result = &self->fib_result;
            bide_try(bide_fork_task_init(&self->fib.forking, &fib_body)); /* a family of its own */
            if (self->fib_result != 5)
                bide_return(-EPROTO);
            break;
        default:
            bide_await(bide_fork(self, struct tree, &tree_body, seed = testing_random(&self->seed),
                                 depth = self->depth - 1, leaves = self->leaves,
                                 expected = &self->children[self->i]));
        }
    }
    bide_try(bide_fork_join(self));
    for (self->i = 0; self->i < self->count; self->i++)
        *self->expected += self->children[self->i];
    bide_end();
}

static void trees_at_random_several_at_once(void **state)
{
    (void)state;
    enum { TREES = 4 };
    uint64_t seed = testing_seed();
    for (uint32_t i = 0; i < rounds_of(100); i++) {
        bide_thread_pool *pool = create(1 + (unsigned)(testing_random(&seed) % 4));
        bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
        struct tree trees[TREES];
        bide_atomic(uint32_t) leaves[TREES];
        uint32_t expected[TREES];
        bide_spawned spawned[TREES];
        for (unsigned j = 0; j < TREES; j++) {
            trees[j] = (struct tree){.seed = testing_random(&seed),
                                     .depth = 7,
                                     .leaves = &leaves[j],
                                     .expected = &expected[j]};
            bide_atomic_init(&leaves[j], 0);
            bide_spawn(&spawned[j], &context, bide_fork_task_init(&trees[j].forking, &tree_body));
        }
        for (unsigned j = 0; j < TREES; j++) {
            bide_event_waiter wait;
            assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &spawned[j].ended)), 0);
            assert_int_equal(bide_atomic_load(&leaves[j], relaxed), expected[j]);
        }
        bide_thread_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_nest_on_one_worker_and_on_several),
        cmocka_unit_test(a_run_loop_runs_forks_too),
        cmocka_unit_test(recursion_goes_300000_deep),
        cmocka_unit_test(on_one_thread_all_runs_in_the_order_of_the_program),
        cmocka_unit_test(a_sleeping_worker_goes_on_with_a_parent),
        cmocka_unit_test(a_child_that_waits_leaves_its_parent_to_the_worker),
        cmocka_unit_test(a_loop_has_no_more_children_at_once_than_workers),
        cmocka_unit_test(a_childs_error_is_the_joins_and_a_calls_its_own),
        cmocka_unit_test(an_error_that_was_not_joined_is_that_of_the_end),
        cmocka_unit_test(what_is_forked_after_a_request_to_stop_does_not_run),
        cmocka_unit_test(a_request_ends_the_waits_of_all_that_was_forked),
        cmocka_unit_test(what_asks_a_join_asks_what_was_forked_and_no_other),
        cmocka_unit_test(a_wrapper_around_a_join_goes_on_without_a_source_too),
        cmocka_unit_test(without_memory_a_join_ends_with_ENOMEM_and_nothing_is_lost),
        cmocka_unit_test(a_coroutine_that_waits_for_its_children_is_not_destroyed),
        cmocka_unit_test(a_coroutine_that_has_forked_and_waits_for_something_else_is_not_destroyed),
        cmocka_unit_test(a_forked_coroutine_that_goes_to_another_pool_is_told),
        cmocka_unit_test(trees_at_random_several_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
