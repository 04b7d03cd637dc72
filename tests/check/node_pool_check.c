/*
 * The pool of nodes: batches that are taken and returned concurrently, and come back as the first
 * (ABA); chunks that two threads make at once; a thread that releases chunks while others take and
 * return nodes.
 */
#include "queue_nodes.h"

typedef struct state {
    queue_nodes nodes;
    uint32_t early[BIDE_CHECK_THREADS + 1]; /* a node for each thread, since the setup */
    uint32_t got[BIDE_CHECK_THREADS + 1];
    int reserved[BIDE_CHECK_THREADS + 1];
    bool was_there; /* when memory was refused, there was a chunk */
} state;

static void use(state *s, uint32_t index)
{
    /* plain: a race if another thread has the node, or had it without synchronization */
    if (index != 0)
        bide_plain_store((uint64_t *)bide_node_at(&s->nodes.pool, index), index);
}

static void get(void *p)
{
    state *s = p;
    unsigned me = bide_check_thread();
    s->got[me] = bide_node_get(nodes_cache(&s->nodes));
    use(s, s->got[me]);
}

/* Returns all nodes of this thread at once. */
static void flush(void *p)
{
    state *s = p;
    unsigned me = bide_check_thread();
    use(s, s->early[me]);
    if (s->early[me] != 0)
        bide_node_put(nodes_cache(&s->nodes), s->early[me]);
    bide_node_cache_flush(nodes_cache(&s->nodes));
}

/* Batches of one node, so that lists are short: each thread has one, which is in no list. */
static void setup_apart(state *s, uint32_t maximum)
{
    nodes_init_pool(&s->nodes, sizeof(uint64_t), maximum);
    for (unsigned i = 1; i <= BIDE_CHECK_THREADS; i++)
        s->early[i] = bide_node_get(nodes_cache(&s->nodes));
    /* the rest goes to a cache that the scenario does not use */
}

static void share(state *s, unsigned thread)
{
    bide_node_put(&s->nodes.caches[thread], s->early[thread]);
    bide_node_cache_flush(&s->nodes.caches[thread]);
    s->early[thread] = 0;
}

/* No thread has the node of another. */
static void finish(void *p)
{
    state *s = p;
    for (unsigned i = 1; i <= BIDE_CHECK_THREADS; i++) {
        for (unsigned j = 1; j < i; j++)
            bide_check_assert(s->got[i] == 0 || s->got[i] != s->got[j]);
    }
    bide_node_pool_destroy(&s->nodes.pool);
}

#define SCENARIO(id, text, ...)                                             \
    static const bide_check_scenario id = {.name = text,                    \
                                           .size = sizeof(state),           \
                                           .cxx20_release_sequences = true, \
                                           .finish = finish,                \
                                           __VA_ARGS__}

/* ---- Nodes are returned and taken ---- */

static void setup_none(void *p)
{
    setup_apart(p, QUEUE_NODES - 1);
}

static void setup_one(void *p)
{
    setup_none(p);
    share(p, 4);
}

static void setup_two(void *p)
{
    setup_one(p);
    share(p, 3);
}

SCENARIO(handed, "what_a_thread_gives_back_another_gets", .setup = setup_none,
         .threads = {flush, get});
SCENARIO(both_put, "two_give_back_and_a_third_gets", .setup = setup_none,
         .threads = {flush, flush, get});
SCENARIO(both_get, "two_get", .setup = setup_two, .threads = {get, get});
SCENARIO(last, "two_get_the_last", .setup = setup_one, .threads = {get, get});

/* ---- ABA ---- */

static void get_two_and_give_the_first_back(void *p)
{
    state *s = p;
    unsigned me = bide_check_thread();
    bide_node_cache *cache = nodes_cache(&s->nodes);
    uint32_t first = bide_node_get(cache);
    s->got[me] = bide_node_get(cache);
    use(s, first);
    use(s, s->got[me]);
    if (first == 0)
        return;
    bide_node_put(cache, first);
    bide_node_cache_flush(cache);
}

static void get_two(void *p)
{
    state *s = p;
    get(p);
    s->got[3] = bide_node_get(nodes_cache(&s->nodes)); /* no thread has this number */
    use(s, s->got[3]);
}

SCENARIO(aba, "a_batch_comes_back_while_a_thread_looks_at_it", .setup = setup_two,
         .threads = {get_two, get_two_and_give_the_first_back});

/* ---- Growing ---- */

static void setup_empty(void *p)
{
    state *s = p;
    nodes_init_pool(&s->nodes, sizeof(uint64_t), 2 * QUEUE_NODES - 1);
}

static void finish_grown(void *p)
{
    state *s = p;
    bide_check_assert(s->got[1] != 0 && s->got[2] != 0);
    finish(p);
}

static const bide_check_scenario grown = {.name = "two_make_a_chunk",
                                          .size = sizeof(state),
                                          .cxx20_release_sequences = true,
                                          .setup = setup_empty,
                                          .threads = {get, get},
                                          .finish = finish_grown};

/* There may be one chunk, of two batches, so no thread runs out of nodes while another makes it. */
static void setup_one_chunk(void *p)
{
    state *s = p;
    nodes_init_chunks(&s->nodes, sizeof(uint64_t), 2 * QUEUE_NODES, 2 * QUEUE_NODES - 1);
}

static const bide_check_scenario last_chunk = {.name = "two_get_as_the_last_chunk_is_made",
                                               .size = sizeof(state),
                                               .cxx20_release_sequences = true,
                                               .setup = setup_one_chunk,
                                               .threads = {get, get},
                                               .finish = finish_grown};

/* ---- Releasing memory ---- */

static void trim(void *p)
{
    state *s = p;
    bide_node_pool_trim(&s->nodes.pool);
}

static void trim_all(void *p)
{
    bide_check_assert(bide_node_pool_trim(&((state *)p)->nodes.pool) <= QUEUE_NODES - 1);
}

static void get_and_get_again(void *p)
{
    state *s = p;
    get(p);
    if (s->got[2] != 0)
        bide_node_put(nodes_cache(&s->nodes), s->got[2]);
    bide_node_cache_flush(nodes_cache(&s->nodes));
    get(p);
}

/* All nodes are in the pool's list, in one batch. */
static void setup_all_free(void *p)
{
    state *s = p;
    nodes_init_pool(&s->nodes, sizeof(uint64_t), QUEUE_NODES - 1);
    bide_node_put(&s->nodes.caches[1], bide_node_get(&s->nodes.caches[1]));
    bide_node_cache_flush(&s->nodes.caches[1]);
}

/* Half of them have never been taken. */
static void setup_half_is_fresh(void *p)
{
    state *s = p;
    setup_one_chunk(p);
    s->early[1] = bide_node_get(&s->nodes.caches[1]);
    bide_node_put(&s->nodes.caches[1], s->early[1]);
    bide_node_cache_flush(&s->nodes.caches[1]);
    s->early[1] = 0;
}

static void setup_reserved(void *p)
{
    state *s = p;
    setup_one_chunk(p);
    bide_check_assert(bide_node_pool_reserve(&s->nodes.pool, 2 * QUEUE_NODES - 1) == 0);
}

static void finish_trimmed(void *p)
{
    state *s = p;
    for (unsigned i = 1; i <= BIDE_CHECK_THREADS; i++) {
        if (s->got[i] != 0)
            bide_node_put(&s->nodes.caches[i], s->got[i]);
        bide_node_cache_flush(&s->nodes.caches[i]);
    }
    /* all memory is released in the end, whichever thread was first */
    bide_node_pool_trim(&s->nodes.pool);
    bide_check_assert(bide_node_pool_size(&s->nodes.pool) == 0);
    bide_node_pool_destroy(&s->nodes.pool);
}

#define TRIMMED(id, text, ...)                                              \
    static const bide_check_scenario id = {.name = text,                    \
                                           .size = sizeof(state),           \
                                           .cxx20_release_sequences = true, \
                                           .finish = finish_trimmed,        \
                                           __VA_ARGS__}

TRIMMED(trim_get, "a_trim_beside_a_get", .setup = setup_all_free, .threads = {trim_all, get});
TRIMMED(trim_half, "a_trim_of_a_half_fresh_chunk_beside_a_get", .setup = setup_half_is_fresh,
        .threads = {trim, get});
TRIMMED(trim_fresh, "a_trim_of_fresh_chunks_beside_a_get", .setup = setup_reserved,
        .threads = {trim, get});
TRIMMED(trim_regrow, "a_trim_beside_two_gets", .setup = setup_all_free,
        .threads = {trim, get_and_get_again}, .preemptions = 1);
TRIMMED(trim_made, "a_trim_beside_the_making_of_a_chunk", .setup = setup_empty,
        .threads = {trim, get});
TRIMMED(trim_trim, "two_trim", .setup = setup_all_free, .threads = {trim, trim});

/* One thread has a node of the chunk, and returns it. */
static void setup_one_is_used(void *p)
{
    state *s = p;
    setup_all_free(p);
    s->early[2] = bide_node_get(&s->nodes.caches[2]);
}

TRIMMED(trim_put, "a_trim_beside_a_give_back", .setup = setup_one_is_used,
        .threads = {trim, flush});

/* ---- No node is lost ---- */

/* The nodes that both have returned are available. */
static void finish_both_are_there(void *p)
{
    state *s = p;
    for (unsigned i = 1; i <= 2; i++) {
        s->got[i] = bide_node_get(&s->nodes.caches[i]);
        bide_check_assert(s->got[i] != 0);
    }
    finish(p);
}

static const bide_check_scenario both_are_there = {.name = "two_give_back",
                                                   .size = sizeof(state),
                                                   .cxx20_release_sequences = true,
                                                   .setup = setup_none,
                                                   .threads = {flush, flush},
                                                   .finish = finish_both_are_there};

/* ---- No memory ---- */

static state *of_allocator(bide_allocator *allocator)
{
    return bide_container_of(allocator, state, nodes.allocator);
}

/* The second thread gets no memory. */
static void *refuse_second(bide_allocator *allocator, size_t size)
{
    state *s = of_allocator(allocator);
    if (bide_check_thread() != 2)
        return checked_allocate(allocator, size);
    if (bide_node_pool_size(&s->nodes.pool) != 0)
        s->was_there = true;
    return NULL;
}

/* No thread gets memory. */
static void *refuse(bide_allocator *allocator, size_t size)
{
    return bide_check_thread() == 0 ? checked_allocate(allocator, size) : NULL;
}

static void reserve(void *p)
{
    state *s = p;
    s->reserved[bide_check_thread()] = bide_node_pool_reserve(&s->nodes.pool, 1);
}

static void setup_second_has_none(void *p)
{
    state *s = p;
    setup_empty(p);
    s->nodes.allocator.allocate = refuse_second;
}

/* The second may fail, but not if there was a node before it was refused memory. */
static void finish_reserved(void *p)
{
    state *s = p;
    bide_check_assert(s->reserved[1] == 0);
    bide_check_assert(s->reserved[2] == 0 || !s->was_there);
    finish(p);
}

static const bide_check_scenario luck = {.name =
                                             "a_thread_has_no_memory_as_another_makes_the_chunk",
                                         .size = sizeof(state),
                                         .cxx20_release_sequences = true,
                                         .setup = setup_second_has_none,
                                         .threads = {reserve, reserve},
                                         .finish = finish_reserved};

/*
 * The first chunk is fresh, and the newest; a thread has half of the second chunk, whose other half
 * is fresh.
 */
static void setup_half_of_second(void *p)
{
    state *s = p;
    nodes_init_chunks(&s->nodes, sizeof(uint64_t), 2 * QUEUE_NODES, 4 * QUEUE_NODES - 1);
    bide_check_assert(bide_node_pool_reserve(&s->nodes.pool, 4 * QUEUE_NODES - 1) == 0);
    s->early[4] = bide_node_get(&s->nodes.caches[4]);
    bide_check_assert(s->early[4] >= 2 * QUEUE_NODES);
    bide_node_pool_trim(&s->nodes.pool);
    reserve(p);
    bide_check_assert(s->reserved[0] == 0);
}

static void setup_half_of_second_and_no_memory(void *p)
{
    state *s = p;
    setup_half_of_second(p);
    s->nodes.allocator.allocate = refuse;
}

static void finish_got_first(void *p)
{
    bide_check_assert(((state *)p)->got[1] != 0);
    finish(p);
}

static const bide_check_scenario behind = {.name = "a_trim_leaves_what_is_behind_to_be_found",
                                           .size = sizeof(state),
                                           .cxx20_release_sequences = true,
                                           .setup = setup_half_of_second_and_no_memory,
                                           .threads = {get, trim},
                                           .finish = finish_got_first};

/* ---- There is always a node ---- */

/*
 * The second has a batch before the first chunk is released, and afterwards the first chunk may be
 * made again.
 */
static void setup_first_is_given_back(void *p)
{
    state *s = p;
    setup_half_of_second(p);
    s->nodes.allocator.allocate = refuse_second;
}

static void trim_and_get(void *p)
{
    trim(p);
    get(p);
}

static const bide_check_scenario given_back = {
    .name = "a_thread_gives_the_first_chunk_back_and_uses_the_second_up",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_first_is_given_back,
    .threads = {get, trim_and_get},
    .finish = finish_got_first};

/* No node is free: neither thread releases memory, nor adds to the list. */
static void setup_all_used(void *p)
{
    state *s = p;
    setup_empty(p);
    s->early[3] = bide_node_get(&s->nodes.caches[3]);
}

SCENARIO(trim_used, "two_trim_where_nothing_is_free", .setup = setup_all_used,
         .threads = {trim, trim});

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &handed,         &both_put,  &both_get,   &last,        &aba,       &grown,     &last_chunk,
        &trim_get,       &trim_half, &trim_fresh, &trim_regrow, &trim_made, &trim_trim, &trim_put,
        &both_are_there, &luck,      &behind,     &given_back,  &trim_used, NULL};
    static const char *const files[] = {"node_pool.h", "node_pool.c", NULL};
    static const bide_check_reason reasons[] = {
        {"pop_batch", "compare_exchange", "&pool->shared", "relaxed",
         "C11 asks that the order if failed is no stronger"},
        {0}};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
