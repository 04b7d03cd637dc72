/*
 * Pools of nodes: each node is handed out once, up to the maximum; caches; growing and trimming; and allocation
 * failures.
 */
#include "queue/counting_allocator.h"
#include "sync/meeting.h"

#include "bide/node_pool.h"

#include <errno.h>
#include <pthread.h>

enum { CHUNK = 64, MANY = 10000 };

static void bad_sizes_are_refused(void **state)
{
    (void)state;
    bide_node_pool pool;
    assert_int_equal(bide_node_pool_init(&pool, &bide_heap, 0, CHUNK, 100), -EINVAL);
    assert_int_equal(bide_node_pool_init(&pool, &bide_heap, 8, 0, 100), -EINVAL);
    assert_int_equal(bide_node_pool_init(&pool, &bide_heap, 8, 16, 100), -EINVAL);
    assert_int_equal(bide_node_pool_init(&pool, &bide_heap, 8, 96, 100), -EINVAL);
    assert_int_equal(bide_node_pool_init(&pool, &bide_heap, 8, CHUNK, 0), -EINVAL);
    assert_int_equal(bide_node_pool_init(&pool, &bide_heap, 8, CHUNK, (UINT32_C(1) << 31) + 1),
                     -EINVAL);
    assert_int_equal(bide_node_pool_init(&pool, &bide_heap, SIZE_MAX - 3, CHUNK, 100), -EINVAL);
    assert_int_equal(bide_node_pool_init(&pool, &bide_heap, SIZE_MAX / CHUNK, CHUNK, 100), -EINVAL);
}

/* Exactly so many, each once, aligned, for any size of the chunks. */
static void there_are_as_many_nodes_as_the_maximum(void **state)
{
    (void)state;
    const uint32_t maxima[] = {1, 31, 32, 33, 63, 64, 65, 127, 128, 1000};
    static unsigned char seen[2048];
    for (size_t i = 0; i < sizeof maxima / sizeof maxima[0]; i++) {
        bide_node_pool pool;
        bide_node_cache cache;
        memset(seen, 0, sizeof seen);
        assert_int_equal(bide_node_pool_init(&pool, &bide_heap, 24, CHUNK, maxima[i]), 0);
        bide_node_cache_init(&cache, &pool);
        assert_true(bide_node_pool_size(&pool) == 0);
        for (uint32_t n = 0; n < maxima[i]; n++) {
            uint32_t index = bide_node_get(&cache);
            assert_true(index != 0 && index < sizeof seen && !seen[index]);
            seen[index] = 1;
            void *node = bide_node_at(&pool, index);
            assert_true((uintptr_t)node % BIDE_ALLOCATOR_ALIGN == 0);
            memset(node, (int)index, 24);
        }
        assert_int_equal(bide_node_get(&cache), 0);
        assert_int_equal(bide_node_get(&cache), 0);
        assert_true(bide_node_pool_size(&pool) == maxima[i]);
        for (uint32_t index = 1; index < sizeof seen; index++) {
            if (!seen[index])
                continue;
            const unsigned char *node = bide_node_at(&pool, index);
            for (size_t byte = 0; byte < 24; byte++)
                assert_int_equal(node[byte], index & 255);
            bide_node_put(&cache, index);
        }
        for (uint32_t n = 0; n < maxima[i]; n++)
            assert_int_not_equal(bide_node_get(&cache), 0);
        assert_int_equal(bide_node_get(&cache), 0);
        bide_node_pool_destroy(&pool);
    }
}

static void a_cache_keeps_no_more_than_two_batches(void **state)
{
    (void)state;
    static uint32_t nodes[MANY];
    bide_node_pool pool;
    bide_node_cache cache, other;
    assert_int_equal(bide_node_pool_init(&pool, &bide_heap, 16, CHUNK, MANY), 0);
    bide_node_cache_init(&cache, &pool);
    bide_node_cache_init(&other, &pool);
    for (size_t i = 0; i < MANY; i++)
        nodes[i] = bide_node_get(&cache);
    assert_int_equal(bide_node_get(&other), 0);
    for (size_t i = 0; i < MANY; i++)
        bide_node_put(&cache, nodes[i]);
    uint32_t count = 0;
    while (bide_node_get(&other) != 0)
        count++;
    assert_true(count >= MANY - 2 * BIDE_NODE_BATCH);
    bide_node_cache_flush(&cache);
    while (bide_node_get(&other) != 0)
        count++;
    assert_int_equal(count, MANY);
    bide_node_pool_destroy(&pool);
}

static void what_was_reserved_is_there_without_the_allocator(void **state)
{
    (void)state;
    counting counting;
    bide_node_pool pool;
    bide_node_cache cache;
    counting_init(&counting, 0);
    assert_int_equal(bide_node_pool_init(&pool, &counting.allocator, 40, CHUNK, 500), 0);
    assert_int_equal(bide_node_pool_reserve(&pool, 300), 0);
    assert_true(bide_node_pool_size(&pool) >= 300);
    counting.failing = 1;
    bide_node_cache_init(&cache, &pool);
    for (uint32_t i = 0; i < 300; i++)
        assert_int_not_equal(bide_node_get(&cache), 0);
    counting.failing = 0;
    assert_int_equal(bide_node_pool_reserve(&pool, 500), 0);
    assert_int_equal(bide_node_pool_reserve(&pool, 501), -ENOMEM);
    bide_node_pool_destroy(&pool);
    assert_true(out_of(&counting) == 0);
}

/* After a burst all memory is released, except for the table and the links. */
static void memory_goes_back_after_a_burst(void **state)
{
    (void)state;
    static uint32_t nodes[MANY];
    counting counting;
    bide_node_pool pool;
    bide_node_cache cache;
    counting_init(&counting, 0);
    assert_int_equal(bide_node_pool_init(&pool, &counting.allocator, 256, CHUNK, MANY), 0);
    bide_node_cache_init(&cache, &pool);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < MANY; i++)
            nodes[i] = bide_node_get(&cache);
        assert_true(out_of(&counting) >= (size_t)MANY * 256);
        /* one is kept: its chunk stays */
        for (size_t i = MANY; i-- > 1;)
            bide_node_put(&cache, nodes[i]);
        bide_node_cache_flush(&cache);
        size_t kept = bide_node_pool_size(&pool) - bide_node_pool_trim(&pool);
        assert_true(kept == bide_node_pool_size(&pool));
        assert_true(kept <= CHUNK);
        bide_node_put(&cache, nodes[0]);
        bide_node_cache_flush(&cache);
        assert_true(bide_node_pool_trim(&pool) == kept);
        assert_true(bide_node_pool_size(&pool) == 0);
        assert_true(out_of(&counting) <= (size_t)MANY * 16);
        assert_true(bide_node_pool_trim(&pool) == 0);
    }
    bide_node_pool_destroy(&pool);
    assert_true(out_of(&counting) == 0);
}

/* Nodes that a trim leaves can be used. */
static void what_a_trim_leaves_is_given_out_again(void **state)
{
    (void)state;
    enum { COUNT = 640 };
    uint32_t nodes[COUNT];
    static unsigned char seen[2 * COUNT];
    bide_node_pool pool;
    bide_node_cache cache;
    assert_int_equal(bide_node_pool_init(&pool, &bide_heap, 16, CHUNK, COUNT), 0);
    bide_node_cache_init(&cache, &pool);
    for (size_t i = 0; i < COUNT; i++)
        nodes[i] = bide_node_get(&cache);
    for (size_t i = 0; i < COUNT; i++)
        if (nodes[i] % CHUNK != 5) /* one of each chunk stays in use */
            bide_node_put(&cache, nodes[i]);
    bide_node_cache_flush(&cache);
    assert_true(bide_node_pool_trim(&pool) <= 1); /* (the last has one node only) */
    memset(seen, 0, sizeof seen);
    uint32_t count = 0;
    for (uint32_t index; (index = bide_node_get(&cache)) != 0; count++) {
        assert_true(index % CHUNK != 5 && !seen[index]);
        seen[index] = 1;
    }
    assert_int_equal(count, COUNT - COUNT / CHUNK);
    bide_node_pool_destroy(&pool);
}

/* Each call of the allocator fails in turn: nothing is lost, and nodes that were obtained work. */
static void a_call_that_fails_loses_nothing(void **state)
{
    (void)state;
    for (uint32_t failing = 1; failing < 12; failing++) {
        counting counting;
        bide_node_pool pool;
        bide_node_cache cache;
        counting_init(&counting, failing);
        int status = bide_node_pool_init(&pool, &counting.allocator, 32, CHUNK, 1000);
        assert_int_equal(status, failing == 1 ? -ENOMEM : 0);
        if (status != 0) {
            assert_true(out_of(&counting) == 0);
            continue;
        }
        bide_node_cache_init(&cache, &pool);
        uint32_t count = 0;
        while (bide_node_get(&cache) != 0)
            count++;
        /* two calls a chunk after the table's; node 0 is none */
        uint32_t chunks = (failing - 2) / 2;
        assert_int_equal(count, chunks == 0 ? 0 : chunks * CHUNK - 1);
        counting.failing = 0;
        while (bide_node_get(&cache) != 0)
            count++;
        assert_int_equal(count, 1000);
        bide_node_pool_destroy(&pool);
        assert_true(out_of(&counting) == 0);
    }
}

/* ---- Many threads ---- */

enum { THREADS = 4, HELD = 200 };

typedef struct sharing {
    bide_node_pool pool;
    bide_atomic(uint32_t) trimming; /* one thread trims until this is 0 */
    bide_atomic(uint32_t) wrong;    /* how often another thread had the node too */
    uint32_t rounds;
    uint64_t seed;
} sharing;

typedef struct user {
    sharing *sharing;
    uint32_t number;
} user;

static void *use_nodes(void *argument)
{
    user *user = argument;
    sharing *sharing = user->sharing;
    uint64_t random = sharing->seed + user->number;
    uint32_t held[HELD];
    uint32_t count = 0;
    bide_node_cache cache;
    bide_node_cache_init(&cache, &sharing->pool);
    for (uint32_t round = 0; round < sharing->rounds; round++) {
        uint32_t chosen = (uint32_t)(testing_random(&random) % HELD);
        if (chosen >= count) {
            uint32_t index = bide_node_get(&cache);
            if (index != 0) {
                *(uint32_t *)bide_node_at(&sharing->pool, index) = user->number;
                held[count++] = index;
            }
        } else {
            uint32_t index = held[chosen];
            if (*(uint32_t *)bide_node_at(&sharing->pool, index) != user->number)
                bide_atomic_fetch_add(&sharing->wrong, 1, relaxed);
            held[chosen] = held[--count];
            bide_node_put(&cache, index);
        }
        if (testing_random(&random) % 1000 == 0)
            bide_node_cache_flush(&cache);
    }
    while (count > 0)
        bide_node_put(&cache, held[--count]);
    bide_node_cache_flush(&cache);
    return NULL;
}

static void *go_on_trimming(void *argument)
{
    sharing *sharing = argument;
    while (bide_atomic_load(&sharing->trimming, relaxed) != 0)
        bide_node_pool_trim(&sharing->pool);
    return NULL;
}

static void a_node_is_one_threads_at_a_time(void **state)
{
    (void)state;
    sharing sharing = {.rounds = rounds_of(300000), .seed = testing_seed()};
    user users[THREADS];
    pthread_t threads[THREADS], trimmer;
    counting counting;
    counting_init(&counting, 0);
    assert_int_equal(bide_node_pool_init(&sharing.pool, &counting.allocator, 16, CHUNK,
                                         THREADS * (HELD + 2 * BIDE_NODE_BATCH)),
                     0);
    bide_atomic_init(&sharing.trimming, 1);
    bide_atomic_init(&sharing.wrong, 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        users[i] = (user){&sharing, i};
        assert_int_equal(pthread_create(&threads[i], NULL, use_nodes, &users[i]), 0);
    }
    assert_int_equal(pthread_create(&trimmer, NULL, go_on_trimming, &sharing), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    bide_atomic_store(&sharing.trimming, 0, relaxed);
    pthread_join(trimmer, NULL);
    assert_int_equal(bide_atomic_load(&sharing.wrong, relaxed), 0);
    bide_node_pool_trim(&sharing.pool);
    assert_true(bide_node_pool_size(&sharing.pool) == 0);
    bide_node_pool_destroy(&sharing.pool);
    assert_true(out_of(&counting) == 0);
}

/* ---- As the last chunk is made ---- */

typedef struct getter {
    bide_node_pool *pool;
    meeting *begin;
    uint32_t missed;
} getter;

static void *get_some(void *argument)
{
    getter *self = argument;
    bide_node_cache cache;
    bide_node_cache_init(&cache, self->pool);
    meet(self->begin);
    for (int i = 0; i < 40; i++)
        self->missed += bide_node_get(&cache) == 0;
    return NULL;
}

/* Nearly all are free: no thread gets 0 because another has not finished the chunk yet. */
static void a_get_as_another_makes_the_last_chunk_has_a_node(void **state)
{
    (void)state;
    uint32_t rounds = rounds_of(200), missed = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        bide_node_pool pool;
        getter getters[THREADS];
        pthread_t threads[THREADS];
        meeting begin;
        counting counting;
        counting_init(&counting, 0);
        meeting_init(&begin, THREADS);
        assert_int_equal(bide_node_pool_init(&pool, &counting.allocator, 16, 65536, 65535), 0);
        for (uint32_t i = 0; i < THREADS; i++) {
            getters[i] = (getter){&pool, &begin, 0};
            start_thread(&threads[i], get_some, &getters[i]);
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            join_thread(threads[i]);
            missed += getters[i].missed;
        }
        bide_node_pool_destroy(&pool);
    }
    assert_int_equal(missed, 0);
}

/* Unused nodes are released too. */
static void what_was_reserved_and_not_used_is_given_back(void **state)
{
    (void)state;
    bide_node_pool pool;
    bide_node_cache cache;
    counting counting;
    counting_init(&counting, 0);
    assert_int_equal(bide_node_pool_init(&pool, &counting.allocator, 16, CHUNK, 4 * CHUNK), 0);
    bide_node_cache_init(&cache, &pool);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(bide_node_pool_reserve(&pool, 2 * CHUNK), 0);
        uint32_t node = bide_node_get(&cache);
        assert_true(node != 0);
        size_t size = bide_node_pool_size(&pool);
        size_t given_back = bide_node_pool_trim(&pool);
        assert_in_range(given_back, 1, size - 1);
        assert_true(bide_node_pool_size(&pool) == size - given_back);
        bide_node_put(&cache, node);
        bide_node_cache_flush(&cache);
        assert_true(bide_node_pool_trim(&pool) == size - given_back);
        assert_true(bide_node_pool_size(&pool) == 0);
    }
    bide_node_pool_destroy(&pool);
    assert_true(out_of(&counting) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(there_are_as_many_nodes_as_the_maximum),
        cmocka_unit_test(a_cache_keeps_no_more_than_two_batches),
        cmocka_unit_test(what_was_reserved_is_there_without_the_allocator),
        cmocka_unit_test(memory_goes_back_after_a_burst),
        cmocka_unit_test(what_a_trim_leaves_is_given_out_again),
        cmocka_unit_test(a_call_that_fails_loses_nothing),
        cmocka_unit_test(a_node_is_one_threads_at_a_time),
        cmocka_unit_test(a_get_as_another_makes_the_last_chunk_has_a_node),
        cmocka_unit_test(what_was_reserved_and_not_used_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
