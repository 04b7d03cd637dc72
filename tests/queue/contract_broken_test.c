/*
 * The tests of the contract of queues, tried on broken queues: each fault is found by the test that is meant to find
 * it. The queue is under a mutex and has one fault; all faults share one set of functions, and a variable selects the
 * fault.
 */
#include "queue/contract_cases.h"
#include "queue/histories.h"
#include "queue/locked_queue.h"
#include "queue/moves.h"

static enum {
    /* by one thread */
    FULL_EARLY,
    FULL_LATE,
    OVERTAKES,       /* now and then the second is popped first */
    BACKWARDS,       /* a batch */
    COUNTS_ONE_MORE, /* of a batch that does not fit */
    ALL_OR_NOTHING,  /* of a batch */
    WRITES_NOTHING,  /* a pop of an empty queue writes a value */
    CLOSE_LOSES,
    CLOSE_OPENS, /* the second time */
    TAKES_CLOSED,
    ENDS_EARLY, /* closed, although elements are left */
    NEVER_ENDS,
    /* by threads */
    POPS_TWICE,  /* one may be popped by two, and another by none */
    GIVES_UP,    /* a pop that meets another thread reports an empty queue */
    SHARDED,     /* first in, first out, but only of each producer */
    TAKES_LATE,  /* a push checks for the close, and pushes some time later */
    ENDS_IN_GAP, /* a pop checks for empty, and then for closed */
} fault;

typedef struct broken_queue {
    locked_queue *whole;
    locked_queue *shards[8];
    bide_atomic(uint32_t) next;
} broken_queue;

static void *broken_create(size_t capacity)
{
    broken_queue *q = calloc(1, sizeof *q);
    assert_non_null(q);
    q->whole = locked_queue_create(capacity + (fault == FULL_LATE), false);
    if (fault == FULL_EARLY && capacity > 1)
        q->whole->capacity--;
    for (int i = 0; i < 8 && fault == SHARDED; i++)
        q->shards[i] = locked_queue_create(capacity, false);
    bide_atomic_init(&q->next, 0);
    return q;
}

static void broken_destroy(void *queue)
{
    broken_queue *q = queue;
    locked_queue_destroy(q->whole);
    for (int i = 0; i < 8 && fault == SHARDED; i++)
        locked_queue_destroy(q->shards[i]);
    free(q);
}

static void *broken_enter(void *queue)
{
    return queue;
}

static void broken_leave(void *queue, void *seat)
{
    (void)queue;
    (void)seat;
}

static bool is_closed(locked_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    bool closed = q->closed;
    pthread_mutex_unlock(&q->mutex);
    return closed;
}

/* Pushes even after a close, if it was not closed before. */
static ptrdiff_t push_late(locked_queue *q, const uint64_t *values, size_t count, bool was_closed)
{
    size_t done = 0;
    int answer = 0;
    bide_platform.yield();
    pthread_mutex_lock(&q->mutex);
    bool closed = q->closed;
    q->closed = was_closed;
    while (done < count && (answer = locked_queue_put(q, values[done])) == 0)
        done++;
    q->closed = closed;
    pthread_mutex_unlock(&q->mutex);
    return done != 0 ? (ptrdiff_t)done : answer;
}

static ptrdiff_t push_backwards(locked_queue *q, const uint64_t *values, size_t count)
{
    uint64_t backwards[MOVES_BATCH + CONTRACT_BATCH];
    for (size_t i = 0; i < count; i++)
        backwards[i] = values[count - 1 - i];
    return locked_queue_push_many(q, NULL, backwards, count);
}

static ptrdiff_t broken_push_many(void *queue, void *seat, const uint64_t *values, size_t count)
{
    broken_queue *q = queue;
    if (fault == SHARDED && count != 0)
        return locked_queue_push_many(q->shards[values[0] >> 32 & 7], seat, values, count);
    if (fault == BACKWARDS)
        return push_backwards(q->whole, values, count);
    if (fault == ALL_OR_NOTHING && count > q->whole->capacity - q->whole->count)
        return q->whole->closed ? -EPIPE : -ENOBUFS;
    if (fault == TAKES_CLOSED)
        return push_late(q->whole, values, count, false);
    if (fault == TAKES_LATE)
        return push_late(q->whole, values, count, is_closed(q->whole));
    ptrdiff_t moved = locked_queue_push_many(q->whole, seat, values, count);
    return moved + (fault == COUNTS_ONE_MORE && moved > 0 && (size_t)moved < count);
}

/* One after the other, of all shards. */
static ptrdiff_t pop_of_shards(broken_queue *q, void *seat, uint64_t *values, size_t count)
{
    ptrdiff_t answer = -EAGAIN;
    uint32_t next = bide_atomic_fetch_add(&q->next, 1, relaxed);
    for (uint32_t i = 0; i < 8 && answer == -EAGAIN; i++)
        answer = locked_queue_pop_many(q->shards[(next + i) % 8], seat, values, count);
    return answer;
}

/* With a gap in the middle. */
static ptrdiff_t pop_in_two_steps(locked_queue *q, uint64_t *value)
{
    pthread_mutex_lock(&q->mutex);
    bool empty = q->count == 0, closed = q->closed;
    if (!empty)
        *value = *locked_queue_at(q, 0);
    pthread_mutex_unlock(&q->mutex);
    bide_platform.yield();
    pthread_mutex_lock(&q->mutex);
    if (fault == ENDS_IN_GAP)
        closed = q->closed;
    if (!empty && q->count != 0) {
        q->head = (q->head + 1) % q->capacity;
        q->count--;
    }
    pthread_mutex_unlock(&q->mutex);
    return !empty ? 1 : closed ? -EPIPE : -EAGAIN;
}

static ptrdiff_t pop_if_no_other_is_there(locked_queue *q, uint64_t *value)
{
    if (pthread_mutex_trylock(&q->mutex) != 0)
        return -EAGAIN;
    bide_platform.yield(); /* so that threads meet on one processor too */
    int answer = locked_queue_take(q, value);
    pthread_mutex_unlock(&q->mutex);
    return answer == 0 ? 1 : answer;
}

/* Exchanges the first two elements. */
static void swap(locked_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    if (q->count > 1) {
        uint64_t first = *locked_queue_at(q, 0);
        *locked_queue_at(q, 0) = *locked_queue_at(q, 1);
        *locked_queue_at(q, 1) = first;
    }
    pthread_mutex_unlock(&q->mutex);
}

static ptrdiff_t broken_pop_many(void *queue, void *seat, uint64_t *values, size_t count)
{
    broken_queue *q = queue;
    if (fault == SHARDED)
        return pop_of_shards(q, seat, values, count);
    if (fault == POPS_TWICE)
        return pop_in_two_steps(q->whole, values);
    if (fault == GIVES_UP)
        return pop_if_no_other_is_there(q->whole, values);
    if (fault == ENDS_EARLY && is_closed(q->whole))
        return -EPIPE;
    if (fault == OVERTAKES && bide_atomic_fetch_add(&q->next, 1, relaxed) % 16 == 15)
        swap(q->whole);
    ptrdiff_t answer = locked_queue_pop_many(q->whole, seat, values, count);
    if (fault == ENDS_IN_GAP && answer == -EAGAIN)
        return pop_in_two_steps(q->whole, values);
    if (fault == WRITES_NOTHING && answer < 0)
        values[0] = 0;
    return fault == NEVER_ENDS && answer == -EPIPE ? -EAGAIN : answer;
}

static int broken_push(void *queue, void *seat, const uint64_t *value)
{
    ptrdiff_t moved = broken_push_many(queue, seat, value, 1);
    return moved > 0 ? 0 : (int)moved;
}

static int broken_pop(void *queue, void *seat, uint64_t *value)
{
    ptrdiff_t moved = broken_pop_many(queue, seat, value, 1);
    return moved > 0 ? 0 : (int)moved;
}

static void broken_close(void *queue)
{
    broken_queue *q = queue;
    if (fault == CLOSE_OPENS && q->whole->closed) {
        q->whole->closed = false;
        return;
    }
    if (fault == CLOSE_LOSES) {
        pthread_mutex_lock(&q->whole->mutex);
        q->whole->count = 0;
        pthread_mutex_unlock(&q->whole->mutex);
    }
    locked_queue_close(q->whole);
    for (int i = 0; i < 8 && fault == SHARDED; i++)
        locked_queue_close(q->shards[i]);
}

static const queue_kind broken = {
    .name = "broken",
    .traits = QUEUE_BOUNDED | QUEUE_EXACT_EMPTY,
    .slowness = 1,
    .create = broken_create,
    .destroy = broken_destroy,
    .enter = broken_enter,
    .leave = broken_leave,
    .push = broken_push,
    .pop = broken_pop,
    .push_many = broken_push_many,
    .pop_many = broken_pop_many,
    .close = broken_close,
};

/* ---- By one thread ---- */

static const struct {
    int fault;
    contract_case *finds;
} finds[] = {
    {FULL_EARLY, it_is_full_at_its_capacity},
    {FULL_LATE, it_is_full_at_its_capacity},
    {OVERTAKES, what_is_pushed_first_is_popped_first},
    {OVERTAKES, after_heavy_use_a_burst_comes_out_whole},
    {OVERTAKES, at_random_it_answers_what_it_must},
    {BACKWARDS, a_batch_keeps_its_order},
    {BACKWARDS, at_random_it_answers_what_it_must},
    {COUNTS_ONE_MORE, a_batch_may_be_moved_in_part},
    {COUNTS_ONE_MORE, at_random_it_answers_what_it_must},
    {ALL_OR_NOTHING, a_batch_may_be_moved_in_part},
    {WRITES_NOTHING, an_empty_queue_has_nothing},
    {CLOSE_LOSES, closed_it_takes_no_more_and_what_is_in_it_is_popped},
    {CLOSE_LOSES, closed_it_gives_batches_to_the_end},
    {CLOSE_OPENS, closed_it_takes_no_more_and_what_is_in_it_is_popped},
    {TAKES_CLOSED, closed_it_takes_no_more_and_what_is_in_it_is_popped},
    {ENDS_EARLY, closed_it_takes_no_more_and_what_is_in_it_is_popped},
    {ENDS_EARLY, closed_it_gives_batches_to_the_end},
    {NEVER_ENDS, closed_it_takes_no_more_and_what_is_in_it_is_popped},
};

static void what_one_thread_can_find_is_found(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    for (size_t i = 0; i < sizeof finds / sizeof finds[0]; i++) {
        fault = finds[i].fault;
        assert_false(contract_run(&broken, finds[i].finds, seed));
    }
}

/* ---- By threads ---- */

enum { TRIALS = 100, ROUNDS = 20, OPERATIONS = 50, ELEMENTS = 10000 };

static bool history_finds(bool closes, uint64_t seed)
{
    for (uint64_t trial = 0; trial < TRIALS; trial++)
        if (!history_run(&broken, ROUNDS, OPERATIONS, closes, seed + trial))
            return true;
    return false;
}

static bool moves_find(uint64_t seed)
{
    for (uint64_t trial = 0; trial < TRIALS; trial++)
        if (!moves_run(&broken, ELEMENTS, seed + trial))
            return true;
    return false;
}

static void what_is_popped_twice_is_found(void **state)
{
    (void)state;
    fault = POPS_TWICE;
    uint64_t seed = testing_seed();
    assert_true(moves_find(seed));
    assert_true(history_finds(false, seed));
    assert_true(history_finds(true, seed));
}

static void what_is_empty_for_no_reason_is_found(void **state)
{
    (void)state;
    fault = GIVES_UP;
    assert_true(history_finds(false, testing_seed()));
}

static void what_keeps_only_the_order_of_each_producer_is_found(void **state)
{
    (void)state;
    fault = SHARDED;
    assert_true(history_finds(false, testing_seed()));
}

static void what_is_taken_after_the_end_is_found(void **state)
{
    (void)state;
    fault = TAKES_LATE;
    assert_true(history_finds(true, testing_seed()));
}

static void what_ends_before_all_is_popped_is_found(void **state)
{
    (void)state;
    fault = ENDS_IN_GAP;
    assert_true(history_finds(true, testing_seed()));
    fault = ENDS_EARLY;
    assert_true(history_finds(true, testing_seed()));
}

static void what_overtakes_or_is_lost_is_found(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    fault = OVERTAKES;
    assert_true(moves_find(seed));
    assert_true(history_finds(false, seed));
    fault = CLOSE_LOSES;
    assert_true(history_finds(true, seed));
    fault = COUNTS_ONE_MORE;
    assert_true(moves_find(seed));
    assert_true(history_finds(false, seed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_thread_can_find_is_found),
        cmocka_unit_test(what_is_popped_twice_is_found),
        cmocka_unit_test(what_is_empty_for_no_reason_is_found),
        cmocka_unit_test(what_keeps_only_the_order_of_each_producer_is_found),
        cmocka_unit_test(what_is_taken_after_the_end_is_found),
        cmocka_unit_test(what_ends_before_all_is_popped_is_found),
        cmocka_unit_test(what_overtakes_or_is_lost_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
