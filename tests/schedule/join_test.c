/*
 * Joins of plain functions, and loops of them: each half runs once, on the pool's workers, and the writes of
 * both are visible when the join returns.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "schedule_testing.h"

#include "bide/join.h"
#include "bide/parallel.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static bide_thread_pool *create(unsigned threads)
{
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
    return pool;
}

struct fib {
    unsigned n, result;
};

static void fib(void *argument)
{
    struct fib *self = argument, one, other;
    self->result = self->n;
    if (self->n < 2)
        return;
    one.n = self->n - 1;
    other.n = self->n - 2;
    bide_join(fib, &one, fib, &other);
    self->result = one.result + other.result;
}

static void joins_nest_on_one_worker_and_on_several(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 4; threads++) {
        bide_thread_pool *pool = create(threads);
        struct fib all = {.n = 20};
        bide_call_in(pool, fib, &all);
        assert_int_equal(all.result, 6765);
        bide_thread_pool_destroy(pool);
    }
}

/* ---- Threads ---- */

struct witness_of_thread {
    pthread_t thread;
    unsigned order;
    unsigned *count;
};

static void note_thread(void *argument)
{
    struct witness_of_thread *self = argument;
    self->thread = pthread_self();
    self->order = (*self->count)++;
}

static void outside_a_pool_the_halves_run_in_turn(void **state)
{
    (void)state;
    unsigned count = 0;
    struct witness_of_thread one = {.count = &count}, other = {.count = &count};
    bide_join(note_thread, &one, note_thread, &other);
    assert_true(pthread_equal(one.thread, pthread_self()));
    assert_true(pthread_equal(other.thread, pthread_self()));
    assert_int_equal(one.order, 0);
    assert_int_equal(other.order, 1);
}

static void a_call_runs_on_the_pools_thread(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(1);
    unsigned count = 0;
    struct witness_of_thread one = {.count = &count}, other = {.count = &count};
    bide_join_in(pool, note_thread, &one, note_thread, &other);
    assert_false(pthread_equal(one.thread, pthread_self()));
    assert_true(pthread_equal(one.thread, other.thread));
    assert_int_equal(count, 2);
    bide_thread_pool_destroy(pool);
}

struct nested_call {
    bide_thread_pool *pool;
    pthread_t outer, inner;
};

static void note_inner(void *argument)
{
    ((struct nested_call *)argument)->inner = pthread_self();
}

static void call_again(void *argument)
{
    struct nested_call *self = argument;
    self->outer = pthread_self();
    bide_call_in(self->pool, note_inner, self);
}

static void a_call_on_the_pools_own_worker_is_a_call(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(1);
    struct nested_call call = {.pool = pool};
    bide_call_in(pool, call_again, &call);
    assert_true(pthread_equal(call.outer, call.inner));
    bide_thread_pool_destroy(pool);
}

/* ---- Both at once: each half waits for the other ---- */

struct meeting {
    pthread_barrier_t barrier;
    pthread_t threads[2];
};

static void meet_first(void *argument)
{
    struct meeting *self = argument;
    self->threads[0] = pthread_self();
    pthread_barrier_wait(&self->barrier);
}

static void meet_second(void *argument)
{
    struct meeting *self = argument;
    self->threads[1] = pthread_self();
    pthread_barrier_wait(&self->barrier);
}

static void meet(bide_thread_pool *pool)
{
    struct meeting meeting;
    pthread_barrier_init(&meeting.barrier, NULL, 2);
    bide_join_in(pool, meet_first, &meeting, meet_second, &meeting);
    assert_false(pthread_equal(meeting.threads[0], meeting.threads[1]));
    pthread_barrier_destroy(&meeting.barrier);
}

/* The other worker sleeps, or is about to: it is woken to take the second half. */
static void a_sleeping_worker_is_woken_for_a_half(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(2);
    for (uint32_t i = 0; i < rounds_of(200); i++)
        meet(pool);
    bide_thread_pool_destroy(pool);
}

/* The joiner waits for the second half, which the thief runs; that half forks inside, late. */
struct late {
    pthread_barrier_t barrier;
    struct meeting meeting;
    bide_atomic(uint32_t) first_ended;
};

static void late_first(void *argument)
{
    struct late *self = argument;
    pthread_barrier_wait(&self->barrier); /* so the other was stolen */
    bide_atomic_store(&self->first_ended, 1, relaxed);
}

static void late_second(void *argument)
{
    struct late *self = argument;
    pthread_barrier_wait(&self->barrier);
    while (bide_atomic_load(&self->first_ended, relaxed) == 0)
        sched_yield();
    bide_join(meet_first, &self->meeting, meet_second, &self->meeting);
}

static void a_joiner_that_waits_takes_what_is_forked_inside(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(2);
    for (uint32_t i = 0; i < rounds_of(200); i++) {
        struct late late;
        bide_atomic_init(&late.first_ended, 0);
        pthread_barrier_init(&late.barrier, NULL, 2);
        pthread_barrier_init(&late.meeting.barrier, NULL, 2);
        bide_join_in(pool, late_first, &late, late_second, &late);
        assert_false(pthread_equal(late.meeting.threads[0], late.meeting.threads[1]));
        pthread_barrier_destroy(&late.barrier);
        pthread_barrier_destroy(&late.meeting.barrier);
    }
    bide_thread_pool_destroy(pool);
}

/* ---- Depth ---- */

struct deep {
    unsigned depth;
    unsigned ended;
};

static void count_one(void *argument)
{
    ((struct deep *)argument)->ended++;
}

/* More halves wait at once than a deque holds. */
static void go_deep(void *argument)
{
    struct deep *self = argument, inner = {.depth = self->depth - 1}, leaf = {0};
    if (self->depth == 0)
        return;
    bide_join(go_deep, &inner, count_one, &leaf);
    self->ended = inner.ended + leaf.ended;
}

static void more_halves_than_a_deque_holds_run_in_turn(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 2; threads++) {
        bide_thread_pool *pool = create(threads);
        struct deep deep = {.depth = 5000};
        bide_call_in(pool, go_deep, &deep);
        assert_int_equal(deep.ended, 5000);
        bide_thread_pool_destroy(pool);
    }
}

/* Descends along second halves. */
static void go_deep_second(void *argument)
{
    struct deep *self = argument, inner = {.depth = self->depth - 1}, leaf = {0};
    if (self->depth == 0)
        return;
    bide_join(count_one, &leaf, go_deep_second, &inner);
    self->ended = inner.ended + leaf.ended;
}

/* The same while other halves wait: the bottom of the deque stays at their number. */
static void go_deep_beside(void *argument)
{
    struct deep leaf = {0};
    bide_join(go_deep_second, argument, count_one, &leaf);
}

/* Many times the stack, on 4 to 20 threads. */
enum { DEEP = 40000, DEEP_STACK = 1 << 20, DEEP_THREADS = 40 };

static void pass_nothing(void *argument)
{
    (void)argument;
}

static bool may_have_threads(void)
{
    return schedule_may_have_threads(DEEP_THREADS, DEEP_STACK);
}

static uint64_t count_deep_joins(bide_thread_pool *pool)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < bide_thread_pool_threads(pool); i++) {
        bide_thread_pool_worker_stats stats;
        assert_int_equal(bide_thread_pool_get_worker_stats(pool, i, &stats), 0);
        count += stats.deep_joins;
    }
    return count;
}

static void joins_nest_deeper_than_a_stack(void **state)
{
    static void (*const descents[])(void *argument) = {go_deep, go_deep_second, go_deep_beside};
    (void)state;
    if (!may_have_threads())
        skip();
    for (size_t i = 0; i < sizeof descents / sizeof *descents; i++) {
        for (unsigned threads = 1; threads <= 2; threads++) {
            bide_thread_pool *pool;
            const bide_thread_pool_options options = {.threads = threads, .stack_size = DEEP_STACK};
            struct deep deep = {.depth = DEEP};
            assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
            bide_call_in(pool, descents[i], &deep);
            assert_int_equal(deep.ended, DEEP);
            assert_true(count_deep_joins(pool) > 0);
            deep = (struct deep){.depth = 10};
            uint64_t before = count_deep_joins(pool);
            bide_call_in(pool, descents[i], &deep);
            assert_int_equal(deep.ended, 10);
            assert_int_equal(count_deep_joins(pool),
                             before); /* it is on the worker's own stack again */
            bide_thread_pool_destroy(pool);
        }
    }
}

static void joins_nest_on_small_stacks(void **state)
{
    (void)state;
    enum { DEPTH = 3000, STACK = 512 << 10 };
    if (!may_have_threads())
        skip();
    bide_thread_pool *pool;
    const bide_thread_pool_options options = {.threads = 3, .stack_size = STACK};
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
    for (int i = 0; i < 3; i++) {
        struct deep first = {.depth = DEPTH}, second = {.depth = DEPTH};
        bide_join_in(pool, go_deep, &first, go_deep_second, &second);
        assert_int_equal(first.ended, DEPTH);
        assert_int_equal(second.ended, DEPTH);
    }
    bide_thread_pool_destroy(pool);
}

/*
 * What a function uses between two joins: almost a tenth of the stack. The stack is large, because thread-local
 * variables stand on it too: those of ThreadSanitizer have most of a megabyte.
 */
enum { HUNGRY_STACK = 4 << 20 };

struct hungry {
    unsigned depth, ended;
};

static void go_down_hungrily(void *argument)
{
    struct hungry *self = argument;
    char stack[HUNGRY_STACK / 11];
    stack[0] = stack[sizeof stack - 1] = 1;
    __asm__ volatile(""
                     :
                     : "r"(stack)
                     : "memory"); /* (clang keeps only the elements that are used, otherwise) */
    if (self->depth-- != 0)
        bide_join(go_down_hungrily, self, pass_nothing, NULL);
    self->ended += (unsigned)stack[0] * (unsigned)stack[sizeof stack - 1];
}

static void functions_between_joins_may_use_almost_a_tenth_of_the_stack(void **state)
{
    enum { DEPTH = 40 };
    (void)state;
    if (!may_have_threads())
        skip();
    for (unsigned threads = 1; threads <= 2; threads++) {
        bide_thread_pool *pool;
        const bide_thread_pool_options options = {.threads = threads, .stack_size = HUNGRY_STACK};
        struct hungry hungry = {.depth = DEPTH};
        assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
        bide_call_in(pool, go_down_hungrily, &hungry);
        assert_int_equal(hungry.ended, DEPTH + 1);
        assert_true(count_deep_joins(pool) > 0);
        bide_thread_pool_destroy(pool);
    }
}

/*
 * The outer half and the inner one were stolen, the outer first. After both were joined, the next pushed half can be
 * stolen too. (This failed once: the worker computed alone from then on.)
 */
static void halves_that_were_stolen_leave_an_empty_deque(void **state)
{
    (void)state;
    static bide_join_deque_ deque;
    bide_join_half_ outer, inner, next;
    bide_join_deque_init_(&deque, 0);
    assert_true(bide_join_push_(&deque, 0, &outer));
    assert_true(bide_join_push_(&deque, 1, &inner));
    assert_ptr_equal(bide_join_steal_(&deque, NULL), &outer);
    assert_ptr_equal(bide_join_steal_(&deque, NULL), &inner);
    assert_false(bide_join_pop_(&deque, 1));
    assert_false(bide_join_pop_(&deque, 0));
    assert_true(bide_join_deque_is_empty_(&deque));
    size_t bottom = bide_atomic_load(&deque.bottom, relaxed);
    assert_true(bide_join_push_(&deque, bottom, &next));
    assert_ptr_equal(bide_join_steal_(&deque, NULL), &next);
    assert_false(bide_join_pop_(&deque, bottom));
}

/* ---- In coroutines ---- */

struct joining {
    bide_task task;
    struct fib fib;
};

bide_coroutine(joining_body)
{
    bide_begin(joining_body, struct joining * self);
    fib(&self->fib);
    bide_end();
}

static void coroutines_of_the_pool_join_too(void **state)
{
    (void)state;
    enum { TASKS = 8 };
    bide_thread_pool *pool = create(3);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    struct joining tasks[TASKS];
    bide_spawned spawned[TASKS];
    for (unsigned i = 0; i < TASKS; i++) {
        tasks[i].fib.n = 15;
        bide_spawn(&spawned[i], &context, bide_task_init(&tasks[i].task, &joining_body));
    }
    for (unsigned i = 0; i < TASKS; i++) {
        bide_event_waiter wait;
        assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &spawned[i].ended)), 0);
        assert_int_equal(tasks[i].fib.result, 610);
    }
    bide_thread_pool_destroy(pool);
}

/* ---- Misuse ---- */

struct held {
    pthread_barrier_t barrier;
    bide_thread_pool *pool;
};

static void hold(void *argument)
{
    pthread_barrier_wait(&((struct held *)argument)->barrier);
    pause();
}

static void *call_and_hold(void *argument)
{
    struct held *self = argument;
    bide_call_in(self->pool, hold, self);
    return NULL;
}

static void destroy_while_a_call_runs(void)
{
    struct held held = {.pool = create(1)};
    pthread_t thread;
    pthread_barrier_init(&held.barrier, NULL, 2);
    pthread_create(&thread, NULL, call_and_hold, &held);
    pthread_barrier_wait(&held.barrier);
    bide_thread_pool_destroy(held.pool);
}

static void a_pool_that_is_destroyed_while_a_call_runs_is_told(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(destroy_while_a_call_runs, "a call runs in it", "join_test.c"));
}

/* ---- Loops ---- */

enum { NUMBERS = 10000 };

struct marks {
    size_t grain;
    unsigned char counts[NUMBERS];
};

static void mark(void *argument, size_t begin, size_t end)
{
    struct marks *self = argument;
    assert_true(begin < end && end - begin <= (self->grain != 0 ? self->grain : 1));
    for (size_t i = begin; i < end; i++)
        self->counts[i]++;
}

struct marking {
    struct marks marks;
    size_t begin, end;
};

static void mark_all(void *argument)
{
    struct marking *self = argument;
    bide_parallel_for(self->begin, self->end, self->marks.grain, mark, &self->marks);
}

static void check_marks(const struct marking *self)
{
    for (size_t i = 0; i < NUMBERS; i++)
        assert_int_equal(self->marks.counts[i], i >= self->begin && i < self->end);
}

static void a_loop_takes_each_number_once(void **state)
{
    (void)state;
    static const struct {
        size_t begin, end, grain;
    } cases[] = {
        {0, NUMBERS, 1}, {0, NUMBERS, 7}, {3, NUMBERS - 5, 100}, {0, NUMBERS, NUMBERS}, {5, 5, 3},
        {9, 4, 3},       {0, 1, 1},       {0, 1000, 0},          {0, 100, SIZE_MAX}};
    for (unsigned threads = 1; threads <= 3; threads++) {
        bide_thread_pool *pool = create(threads);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct marking marking = {
                .marks.grain = cases[i].grain, .begin = cases[i].begin, .end = cases[i].end};
            bide_call_in(pool, mark_all, &marking);
            check_marks(&marking);
        }
        bide_thread_pool_destroy(pool);
    }
}

static void a_loop_outside_a_pool_runs_here(void **state)
{
    (void)state;
    struct marking marking = {.marks.grain = 11, .begin = 2, .end = NUMBERS};
    mark_all(&marking);
    check_marks(&marking);
}

/* A loop whose parts need both workers: each of two parts waits for the other. */
static void meet_in_loop(void *argument, size_t begin, size_t end)
{
    struct meeting *self = argument;
    (void)end;
    self->threads[begin] = pthread_self();
    pthread_barrier_wait(&self->barrier);
}

static void loop_to_meet(void *argument)
{
    bide_parallel_for(0, 2, 1, meet_in_loop, argument);
}

static void a_loop_is_shared(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(2);
    struct meeting meeting;
    pthread_barrier_init(&meeting.barrier, NULL, 2);
    bide_call_in(pool, loop_to_meet, &meeting);
    assert_false(pthread_equal(meeting.threads[0], meeting.threads[1]));
    pthread_barrier_destroy(&meeting.barrier);
    bide_thread_pool_destroy(pool);
}

/* Not commutative: the range of numbers, which must have no gap. */
struct span {
    size_t begin, end;
    uint64_t sum;
};

static const struct span no_span = {0, 0, 0};

static void join_spans(void *argument, void *left, const void *right)
{
    struct span *one = left;
    const struct span *other = right;
    (void)argument;
    if (other->begin == other->end)
        return;
    if (one->begin == one->end)
        one->begin = other->begin;
    else
        assert_int_equal(one->end, other->begin);
    one->end = other->end;
    one->sum += other->sum;
}

static void add_span(void *argument, size_t begin, size_t end, void *accumulator)
{
    struct span span = {begin, end, 0};
    for (size_t i = begin; i < end; i++)
        span.sum += i;
    join_spans(argument, accumulator, &span);
}

static const bide_reduction spans = {sizeof(struct span), &no_span, add_span, join_spans};

struct summing {
    struct span range, result;
    size_t grain;
    int status;
};

static void sum(void *argument)
{
    struct summing *self = argument;
    self->status = bide_parallel_reduce(self->range.begin, self->range.end, self->grain, &spans,
                                        NULL, &self->result);
}

static void a_reduction_combines_in_order(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        bide_thread_pool *pool = create(threads);
        for (uint32_t i = 0; i < rounds_of(50); i++) {
            struct summing summing = {.range = {17, 100000, 0}, .grain = 1 + i};
            bide_call_in(pool, sum, &summing);
            assert_int_equal(summing.status, 0);
            assert_int_equal(summing.result.begin, 17);
            assert_int_equal(summing.result.end, 100000);
            assert_int_equal(summing.result.sum, UINT64_C(100000) * 99999 / 2 - 136);
        }
        bide_thread_pool_destroy(pool);
    }
}

static void an_empty_reduction_is_the_identity(void **state)
{
    (void)state;
    struct summing summing = {.range = {5, 5, 0}, .result = {1, 2, 3}, .grain = 1};
    sum(&summing);
    assert_int_equal(summing.status, 0);
    assert_memory_equal(&summing.result, &no_span, sizeof no_span);
}

static void an_accumulator_that_is_too_large_is_EINVAL(void **state)
{
    (void)state;
    bide_reduction large = spans;
    struct span result;
    large.size = BIDE_PARALLEL_ACCUMULATOR_MAX + 1;
    assert_int_equal(bide_parallel_reduce(0, 1, 1, &large, NULL, &result), -EINVAL);
}

/* ---- Stress: trees at random, with loops and threads from outside ---- */

struct tree {
    uint64_t seed;
    unsigned depth;
    uint64_t leaves, expected;
};

static void count_leaves(void *argument, size_t begin, size_t end)
{
    bide_atomic_fetch_add((bide_atomic(uint64_t) *)argument, end - begin, relaxed);
}

static void grow(void *argument)
{
    struct tree *self = argument;
    uint64_t random = testing_random(&self->seed);
    self->leaves = self->expected = 1;
    if (self->depth == 0 || random % 8 == 0)
        return;
    if (random % 8 == 1) {
        bide_atomic(uint64_t) leaves;
        bide_atomic_init(&leaves, 0);
        self->expected = random / 8 % 1000;
        bide_parallel_for(0, self->expected, 1 + random / 8000 % 50, count_leaves, &leaves);
        self->leaves = bide_atomic_load(&leaves, relaxed);
        return;
    }
    struct tree one = {.seed = testing_random(&self->seed), .depth = self->depth - 1};
    struct tree other = {.seed = testing_random(&self->seed), .depth = self->depth - 1};
    bide_join(grow, &one, grow, &other);
    self->leaves = one.leaves + other.leaves;
    self->expected = one.expected + other.expected;
}

struct outsider {
    bide_thread_pool *pool;
    struct tree tree;
};

static void *grow_in_pool(void *argument)
{
    struct outsider *self = argument;
    bide_call_in(self->pool, grow, &self->tree);
    return NULL;
}

static void trees_at_random_from_several_threads(void **state)
{
    (void)state;
    enum { OUTSIDERS = 3 };
    uint64_t seed = testing_seed();
    for (uint32_t i = 0; i < rounds_of(60); i++) {
        bide_thread_pool *pool = create(1 + (unsigned)(testing_random(&seed) % 4));
        struct outsider outsiders[OUTSIDERS];
        pthread_t threads[OUTSIDERS];
        for (unsigned j = 0; j < OUTSIDERS; j++) {
            outsiders[j] = (struct outsider){pool, {.seed = testing_random(&seed), .depth = 10}};
            assert_int_equal(pthread_create(&threads[j], NULL, grow_in_pool, &outsiders[j]), 0);
        }
        for (unsigned j = 0; j < OUTSIDERS; j++) {
            pthread_join(threads[j], NULL);
            assert_int_equal(outsiders[j].tree.leaves, outsiders[j].tree.expected);
        }
        bide_thread_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_nest_on_one_worker_and_on_several),
        cmocka_unit_test(outside_a_pool_the_halves_run_in_turn),
        cmocka_unit_test(a_call_runs_on_the_pools_thread),
        cmocka_unit_test(a_call_on_the_pools_own_worker_is_a_call),
        cmocka_unit_test(a_sleeping_worker_is_woken_for_a_half),
        cmocka_unit_test(a_joiner_that_waits_takes_what_is_forked_inside),
        cmocka_unit_test(more_halves_than_a_deque_holds_run_in_turn),
        cmocka_unit_test(joins_nest_deeper_than_a_stack),
        cmocka_unit_test(joins_nest_on_small_stacks),
        cmocka_unit_test(functions_between_joins_may_use_almost_a_tenth_of_the_stack),
        cmocka_unit_test(halves_that_were_stolen_leave_an_empty_deque),
        cmocka_unit_test(coroutines_of_the_pool_join_too),
        cmocka_unit_test(a_pool_that_is_destroyed_while_a_call_runs_is_told),
        cmocka_unit_test(a_loop_takes_each_number_once),
        cmocka_unit_test(a_loop_outside_a_pool_runs_here),
        cmocka_unit_test(a_loop_is_shared),
        cmocka_unit_test(a_reduction_combines_in_order),
        cmocka_unit_test(an_empty_reduction_is_the_identity),
        cmocka_unit_test(an_accumulator_that_is_too_large_is_EINVAL),
        cmocka_unit_test(trees_at_random_from_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
