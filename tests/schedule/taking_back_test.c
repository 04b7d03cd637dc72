/*
 * Coroutines that were woken, and are destroyed before they run: each leaves the queue of its scheduler in some steps,
 * however many are queued; the others run, in their order. The steps are counted (chain_steps.h).
 */
#include "schedule_testing.h"

#include "chain_steps.h"

#include "../../src/schedule/chain_cursor.h"

#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/spawn.h"
#include "bide/strand.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

bide_atomic(size_t) chain_steps;

static const size_t sizes[] = {10, 1000, 100000};

enum { SIZES = sizeof sizes / sizeof sizes[0] };

typedef enum order { NEWEST_FIRST, OLDEST_FIRST, OUTWARDS, SHUFFLED } order;

enum { SHUFFLED_COUNT = 1000 };

static size_t shuffled[SHUFFLED_COUNT]; /* the places of that order */

/* The place of the i-th of `count` in an order. */
static size_t place(order order, size_t count, size_t i)
{
    switch (order) {
    case NEWEST_FIRST:
        return count - 1 - i;
    case OUTWARDS: /* from the middle: a step to one side, two to the other, ... */
        return i % 2 == 0 ? count / 2 + i / 2 : count / 2 - 1 - i / 2;
    case SHUFFLED:
        return shuffled[i];
    case OLDEST_FIRST:
    default:
        return i;
    }
}

/* ---- A chain with a cursor ---- */

static bide_awaiter *make_chain(bide_awaiter_chain *chain, size_t count)
{
    bide_awaiter *awaiters = calloc(count, sizeof *awaiters);
    assert_non_null(awaiters);
    chain->first = NULL;
    for (size_t i = 0; i < count; i++)
        bide_awaiter_chain_append(chain, &awaiters[i], &awaiters[i]);
    return awaiters;
}

static void removing_in_order_costs_some_steps_each(void **state)
{
    (void)state;
    for (unsigned s = 0; s < SIZES; s++) {
        for (order order = 0; order < OUTWARDS; order++) {
            size_t count = sizes[s];
            bide_awaiter_chain chain;
            bide_awaiter *passed = NULL;
            bide_awaiter *awaiters = make_chain(&chain, count);
            bide_atomic_store(&chain_steps, 0, relaxed);
            for (size_t i = 0; i < count; i++) {
                assert_non_null(chain.first);
                assert_true(bide_chain_remove_(&chain, &passed, &awaiters[place(order, count, i)]));
            }
            assert_null(chain.first);
            assert_null(passed);
            assert_true(bide_atomic_load(&chain_steps, relaxed) <= 4 * count);
            free(awaiters);
        }
    }
}

/* Against a plain array, with appends, takes and awaiters that are not there. */
static void a_chain_with_a_cursor_keeps_its_order(void **state)
{
    (void)state;
    enum { MANY = 40, TURNS = 20000 };
    uint64_t random = testing_seed();
    bide_awaiter awaiters[MANY];
    bide_awaiter *there[MANY]; /* in their order */
    size_t count = 0;
    bide_awaiter_chain chain = {NULL, NULL};
    bide_awaiter *passed = NULL;
    bool is_there[MANY] = {false};
    for (int turn = 0; turn < TURNS; turn++) {
        size_t at = testing_random(&random) % MANY;
        bide_awaiter *one = &awaiters[at];
        unsigned what = (unsigned)(testing_random(&random) % 8);
        if (what < 4 && !is_there[at]) {
            one->link = NULL;
            bide_awaiter_chain_append(&chain, one, one);
            there[count++] = one;
            is_there[at] = true;
        } else if (what < 7) {
            assert_int_equal(bide_chain_remove_(&chain, &passed, one), is_there[at]);
            size_t kept = 0;
            for (size_t i = 0; i < count; i++) {
                if (there[i] != one)
                    there[kept++] = there[i];
            }
            count = kept;
            is_there[at] = false;
        } else {
            bide_chain_rewind_(&chain, &passed);
            bide_awaiter *first = bide_awaiter_chain_take(&chain);
            assert_ptr_equal(first, count != 0 ? there[0] : NULL);
            if (count == 0)
                continue;
            memmove(there, there + 1, --count * sizeof there[0]);
            is_there[first - awaiters] = false;
        }
        assert_int_equal(chain.first == NULL, count == 0);
    }
    bide_chain_rewind_(&chain, &passed);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(bide_awaiter_chain_take(&chain), there[i]);
    assert_null(chain.first);
}

/* ---- A scope whose coroutines are woken ---- */

struct one {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
    bide_branch branch;
    bide_spawned spawned;
    struct owner *owner;
    size_t place; /* in the order in which they ran, from 1 on; 0: it did not */
};

/* Every second one is of the scope, which is destroyed when all are woken; the others are not. */
struct owner {
    bide_task task;
    order order; /* in which they are woken */
    size_t count, begun, ran, steps;
    struct one *ones;
    bide_scope scope;
    bide_schedule_operation turn;
};

bide_coroutine(one_body)
{
    bide_begin(one_body, struct one * self);
    self->owner->begun++;
    bide_await(bide_event_wait(&self->wait, &self->event));
    self->place = ++self->owner->ran;
    bide_end();
}

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    bide_scope_init(&self->scope, bide_this_frame());
    for (size_t i = 0; i < self->count; i++) {
        struct one *one = &self->ones[i];
        bide_awaiter *task = bide_task_init(&one->task, &one_body);
        bide_event_init(&one->event, false);
        one->owner = self;
        if (i % 2 == 0)
            bide_scope_spawn(&self->scope, &one->branch, task);
        else
            bide_spawn(&one->spawned, bide_this_context(), task);
    }
    while (self->begun < self->count)
        bide_await(bide_schedule(&self->turn, bide_this_context()->scheduler));
    for (size_t i = 0; i < self->count; i++)
        bide_event_set(&self->ones[place(self->order, self->count, i)].event);
    bide_return(0);
    bide_finally();
    bide_atomic_store(&chain_steps, 0, relaxed);
    bide_scope_destroy(&self->scope);
    self->steps = bide_atomic_load(&chain_steps, relaxed);
    bide_end();
}

/* Waits for the end of all; returns the steps. */
static size_t destroy_woken(struct owner *owner, const bide_context *context, bide_run_loop *loop)
{
    owner->begun = owner->ran = 0;
    owner->ones = calloc(owner->count, sizeof *owner->ones);
    assert_non_null(owner->ones);
    bide_awaiter *task = bide_task_init(&owner->task, &owner_body);
    assert_int_equal(
        loop != NULL ? bide_run_loop_wait(loop, task) : bide_sync_wait_in(context, task), 0);
    for (size_t i = 1; i < owner->count; i += 2) {
        bide_event_waiter wait;
        bide_awaiter *ended = bide_event_wait(&wait, &owner->ones[i].spawned.ended);
        assert_int_equal(loop != NULL ? bide_run_loop_wait(loop, ended) : bide_sync_wait(ended), 0);
    }
    for (size_t i = 0; i < owner->count; i++) {
        assert_int_equal(owner->ones[i].place != 0, i % 2 != 0);
        bide_event_destroy(&owner->ones[i].event);
    }
    return owner->steps;
}

static void a_scope_of_woken_coroutines_of_a_run_loop_is_destroyed_in_some_steps_each(void **state)
{
    (void)state;
    static bide_run_loop loop;
    for (unsigned s = 0; s < SIZES; s++) {
        for (order order = 0; order < OUTWARDS; order++) {
            struct owner owner = {.order = order, .count = sizes[s]};
            bide_run_loop_init(&loop);
            size_t steps = destroy_woken(&owner, &loop.context, &loop);
            assert_true(steps <= 4 * owner.count);
            size_t before = 0;
            for (size_t i = 0; i < owner.count; i++) {
                size_t ran = owner.ones[place(order, owner.count, i)].place;
                assert_true(ran == 0 || ran == before + 1);
                before += ran != 0;
            }
            free(owner.ones);
            bide_run_loop_destroy(&loop);
        }
    }
}

static void a_scope_of_woken_coroutines_of_a_pool_is_destroyed_in_some_steps_each(void **state)
{
    (void)state;
    for (unsigned s = 0; s < SIZES; s++) {
        for (order order = 0; order < OUTWARDS; order++) {
            struct owner owner = {.order = order, .count = sizes[s]};
            bide_thread_pool *pool;
            assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
            bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
            size_t steps = destroy_woken(&owner, &context, NULL);
            /* (a full ring is injected by halves: not quite in order) */
            assert_true(steps <= 16 * owner.count);
            assert_int_equal(owner.ran, owner.count / 2);
            free(owner.ones);
            bide_thread_pool_destroy(pool);
        }
    }
}

static void shuffle(uint64_t *random)
{
    for (size_t i = 0; i < SHUFFLED_COUNT; i++) {
        size_t at = testing_random(random) % (i + 1);
        shuffled[i] = shuffled[at];
        shuffled[at] = i;
    }
}

static void destroy_woken_in(const bide_context *context, bide_run_loop *loop)
{
    for (order order = OUTWARDS; order <= SHUFFLED; order++) {
        struct owner owner = {.order = order, .count = SHUFFLED_COUNT};
        destroy_woken(&owner, context, loop);
        assert_int_equal(owner.ran, owner.count / 2);
        free(owner.ones);
    }
}

static void woken_in_another_order_they_are_destroyed_too(void **state)
{
    (void)state;
    static bide_run_loop loop;
    static bide_strand strand;
    bide_thread_pool *pool;
    uint64_t random = testing_seed();
    shuffle(&random);
    bide_run_loop_init(&loop);
    destroy_woken_in(&loop.context, &loop);
    bide_run_loop_destroy(&loop);

    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    destroy_woken_in(&context, NULL);
    bide_thread_pool_destroy(pool);

    for (unsigned threads = 1; threads <= 2; threads++) {
        assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
        bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
        context.scheduler = &strand.scheduler;
        destroy_woken_in(&context, NULL);
        bide_strand_destroy(&strand);
        bide_thread_pool_destroy(pool);
    }

    destroy_woken_in(&bide_default_context, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removing_in_order_costs_some_steps_each),
        cmocka_unit_test(a_chain_with_a_cursor_keeps_its_order),
        cmocka_unit_test(a_scope_of_woken_coroutines_of_a_run_loop_is_destroyed_in_some_steps_each),
        cmocka_unit_test(a_scope_of_woken_coroutines_of_a_pool_is_destroyed_in_some_steps_each),
        cmocka_unit_test(woken_in_another_order_they_are_destroyed_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
