/*
 * Coroutines that were woken, and are destroyed before they run: each leaves the queue of its scheduler in some steps,
 * however many are queued; the others run, in their order. The steps are counted (chain_steps.h).
 */
#include "schedule_testing.h"

#include "chain_steps.h"

#include "../../src/base/thread_sanitizer.h"
#include "../../src/coroutine/chain_cursor.h"

#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/loop.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/sim_loop.h"
#include "bide/spawn.h"
#include "bide/strand.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

bide_atomic(size_t) chain_steps;

static const size_t sizes[] = {10, 1000,
                               BIDE_UNDER_TSAN_ ? 10000 : 100000}; /* (which takes 40 s there) */

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

/* ---- Schedulers ---- */

static bide_run_loop run_loop;
static bide_loop *loop;
static bide_thread_pool *pool;
static bide_strand strand;
static bide_sim_loop test_loop;

static int wait_on_run_loop(const bide_context *context, bide_awaiter *awaiter)
{
    (void)context;
    return bide_run_loop_wait(&run_loop, awaiter);
}

static int wait_on_loop(const bide_context *context, bide_awaiter *awaiter)
{
    (void)context;
    return bide_loop_wait(loop, awaiter);
}

static int wait_on_test_loop(const bide_context *context, bide_awaiter *awaiter)
{
    (void)context;
    return bide_sim_loop_wait(&test_loop, awaiter);
}

static bide_context begin_run_loop(void)
{
    bide_run_loop_init(&run_loop);
    return run_loop.context;
}

static void end_run_loop(void)
{
    bide_run_loop_destroy(&run_loop);
}

static bide_context begin_loop(void)
{
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    return *bide_loop_context(loop);
}

static void end_loop(void)
{
    bide_loop_destroy(loop);
}

static bide_context begin_pool(void)
{
    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    return (bide_context){.scheduler = bide_thread_pool_scheduler(pool)};
}

static void end_pool(void)
{
    bide_thread_pool_destroy(pool);
}

static bide_context begin_strand_of_pool(void)
{
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
    return strand.context;
}

static void end_strand_of_pool(void)
{
    bide_strand_destroy(&strand);
    bide_thread_pool_destroy(pool);
}

static bide_context begin_strand_of_run_loop(void)
{
    bide_run_loop_init(&run_loop);
    bide_strand_init(&strand, &run_loop.scheduler);
    return strand.context;
}

static void end_strand_of_run_loop(void)
{
    bide_strand_destroy(&strand);
    bide_run_loop_destroy(&run_loop);
}

/* In a task of the run loop, so that the loop runs while the strand's coroutine is waited for. */
static int wait_on_strand_of_run_loop(const bide_context *context, bide_awaiter *awaiter)
{
    bide_schedule_on_operation there;
    return bide_run_loop_wait(&run_loop, bide_schedule_on(&there, context->scheduler, awaiter));
}

static bide_context begin_strand_of_inline(void)
{
    bide_strand_init(&strand, &bide_inline_scheduler);
    return strand.context;
}

static void end_strand_of_inline(void)
{
    bide_strand_destroy(&strand);
}

static bide_context begin_inline(void)
{
    return bide_default_context;
}

static void end_inline(void)
{
}

/* A seed that runs the first, or holds one back: drawing any of 100,000 takes long walks. */
enum { PLAIN_SEED = 5 };

static bide_context begin_test_loop(void)
{
    bide_sim_loop_init(&test_loop, PLAIN_SEED);
    return test_loop.context;
}

static void end_test_loop(void)
{
    bide_sim_loop_destroy(&test_loop);
}

static const struct ground {
    const char *name;
    bide_context (*begin)(void);
    int (*wait)(const bide_context *context, bide_awaiter *awaiter); /* NULL: bide_sync_wait_in */
    void (*end)(void);
    bool keeps_order; /* coroutines run in the order in which they were woken */
    size_t max_steps; /* for each coroutine */
} grounds[] = {
    {"run loop", begin_run_loop, wait_on_run_loop, end_run_loop, true, 4},
    {"loop", begin_loop, wait_on_loop, end_loop, true, 4},
    {"pool", begin_pool, NULL, end_pool, false, 16}, /* (a full ring is injected by halves) */
    {"strand of a pool", begin_strand_of_pool, NULL, end_strand_of_pool, true, 4},
    {"strand of a run loop", begin_strand_of_run_loop, wait_on_strand_of_run_loop,
     end_strand_of_run_loop, true, 4},
    {"strand of the inline scheduler", begin_strand_of_inline, NULL, end_strand_of_inline, true, 4},
    {"inline scheduler", begin_inline, NULL, end_inline, true, 4},
    {"test loop", begin_test_loop, wait_on_test_loop, end_test_loop, false, 4},
};

/* Waits for the end of all. */
static void destroy_woken(struct owner *owner, const struct ground *ground)
{
    bide_context context = ground->begin();
    owner->ones = calloc(owner->count, sizeof *owner->ones);
    assert_non_null(owner->ones);
    bide_awaiter *task = bide_task_init(&owner->task, &owner_body);
    assert_int_equal(
        ground->wait != NULL ? ground->wait(&context, task) : bide_sync_wait_in(&context, task), 0);
    for (size_t i = 1; i < owner->count; i += 2) {
        bide_event_waiter wait;
        bide_awaiter *ended = bide_event_wait(&wait, &owner->ones[i].spawned.ended);
        assert_int_equal(
            ground->wait != NULL ? ground->wait(&context, ended) : bide_sync_wait(ended), 0);
    }
    ground->end();
    for (size_t i = 0; i < owner->count; i++) {
        assert_int_equal(owner->ones[i].place != 0, i % 2 != 0);
        bide_event_destroy(&owner->ones[i].event);
    }
    assert_int_equal(owner->ran, owner->count / 2);
}

static void check_order(const struct owner *owner)
{
    size_t before = 0;
    for (size_t i = 0; i < owner->count; i++) {
        size_t ran = owner->ones[place(owner->order, owner->count, i)].place;
        assert_true(ran == 0 || ran == before + 1);
        before += ran != 0;
    }
}

static void a_scope_of_woken_coroutines_is_destroyed_in_some_steps_each(void **state)
{
    (void)state;
    for (size_t g = 0; g < sizeof grounds / sizeof *grounds; g++) {
        for (unsigned s = 0; s < SIZES; s++) {
            for (order order = 0; order < OUTWARDS; order++) {
                struct owner owner = {.order = order, .count = sizes[s]};
                destroy_woken(&owner, &grounds[g]);
                /* (ten fit in the ring of a worker, where none is counted) */
                if (owner.steps > grounds[g].max_steps * owner.count ||
                    (s != 0 && owner.steps == 0))
                    fail_msg("%s: %zu steps for %zu coroutines", grounds[g].name, owner.steps,
                             owner.count);
                if (grounds[g].keeps_order)
                    check_order(&owner);
                free(owner.ones);
            }
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

static void woken_in_another_order_they_are_destroyed_too(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    shuffle(&random);
    for (size_t g = 0; g < sizeof grounds / sizeof *grounds; g++) {
        for (order order = OUTWARDS; order <= SHUFFLED; order++) {
            struct owner owner = {.order = order, .count = SHUFFLED_COUNT};
            destroy_woken(&owner, &grounds[g]);
            if (grounds[g].keeps_order)
                check_order(&owner);
            free(owner.ones);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removing_in_order_costs_some_steps_each),
        cmocka_unit_test(a_chain_with_a_cursor_keeps_its_order),
        cmocka_unit_test(a_scope_of_woken_coroutines_is_destroyed_in_some_steps_each),
        cmocka_unit_test(woken_in_another_order_they_are_destroyed_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
