/*
 * The table of queues. The first two are the reference: straightforward queues under a mutex. The pools and domains of
 * bide's queues are created here and nowhere else.
 */
#include "queue/queues.h"
#include "queue/locked_queue.h"

#include "bide/counted_queue.h"
#include "bide/linked_queue.h"
#include "bide/mpmc_ring.h"
#include "bide/segment_queue.h"
#include "bide/spsc_ring.h"

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

/* For queues without per-thread state. */
static inline void *enter_nothing(void *queue)
{
    return queue;
}

static inline void leave_nothing(void *queue, void *seat)
{
    (void)queue;
    (void)seat;
}

/* ---- The reference ---- */

static void *locked_create(size_t capacity)
{
    return locked_queue_create(capacity, false);
}

static void *locked_create_unbounded(size_t capacity)
{
    return locked_queue_create(capacity, true);
}

static const queue_kind locked = {
    .name = "locked",
    .traits = QUEUE_BOUNDED | QUEUE_EXACT_EMPTY,
    .slowness = 100,
    .create = locked_create,
    .destroy = locked_queue_destroy,
    .enter = enter_nothing,
    .leave = leave_nothing,
    .push = locked_queue_push,
    .pop = locked_queue_pop,
    .push_many = locked_queue_push_many,
    .pop_many = locked_queue_pop_many,
    .close = locked_queue_close,
};

static const queue_kind locked_unbounded = {
    .name = "locked, unbounded",
    .traits = QUEUE_EXACT_EMPTY,
    .slowness = 100,
    .create = locked_create_unbounded,
    .destroy = locked_queue_destroy,
    .enter = enter_nothing,
    .leave = leave_nothing,
    .push = locked_queue_push,
    .pop = locked_queue_pop,
    .push_many = locked_queue_push_many,
    .pop_many = locked_queue_pop_many,
    .close = locked_queue_close,
};

/* ---- bide's ---- */

/* The functions of a row, from bide's macros: `object` has the member `queue`. */
#define FUNCTIONS(row, object)                                                               \
    static int row##_push(void *queue, void *seat, const uint64_t *value)                    \
    {                                                                                        \
        (void)seat;                                                                          \
        return bide_##row##_push(&((object *)queue)->queue, value);                          \
    }                                                                                        \
    static int row##_pop(void *queue, void *seat, uint64_t *value)                           \
    {                                                                                        \
        (void)seat;                                                                          \
        return bide_##row##_pop(&((object *)queue)->queue, value);                           \
    }                                                                                        \
    static ptrdiff_t row##_push_many(void *queue, void *seat, const uint64_t *values,        \
                                     size_t count)                                           \
    {                                                                                        \
        (void)seat;                                                                          \
        return bide_##row##_push_many(&((object *)queue)->queue, values, count);             \
    }                                                                                        \
    static ptrdiff_t row##_pop_many(void *queue, void *seat, uint64_t *values, size_t count) \
    {                                                                                        \
        (void)seat;                                                                          \
        return bide_##row##_pop_many(&((object *)queue)->queue, values, count);              \
    }                                                                                        \
    static void row##_close(void *queue)                                                     \
    {                                                                                        \
        bide_##row##_close(&((object *)queue)->queue);                                       \
    }

/* The same for threads with a seat, or a cache. */
#define FUNCTIONS_WITH_SEAT(row, object, seat_type)                                                \
    static int row##_push(void *queue, void *seat, const uint64_t *value)                          \
    {                                                                                              \
        return bide_##row##_push(&((object *)queue)->queue, (seat_type *)seat, value);             \
    }                                                                                              \
    static int row##_pop(void *queue, void *seat, uint64_t *value)                                 \
    {                                                                                              \
        return bide_##row##_pop(&((object *)queue)->queue, (seat_type *)seat, value);              \
    }                                                                                              \
    static ptrdiff_t row##_push_many(void *queue, void *seat, const uint64_t *values,              \
                                     size_t count)                                                 \
    {                                                                                              \
        return bide_##row##_push_many(&((object *)queue)->queue, (seat_type *)seat, values,        \
                                      count);                                                      \
    }                                                                                              \
    static ptrdiff_t row##_pop_many(void *queue, void *seat, uint64_t *values, size_t count)       \
    {                                                                                              \
        return bide_##row##_pop_many(&((object *)queue)->queue, (seat_type *)seat, values, count); \
    }

#define ROW(row, row_traits, row_slowness, row_enter, row_leave) \
    static const queue_kind row = {                              \
        .name = #row,                                            \
        .traits = (row_traits),                                  \
        .slowness = (row_slowness),                              \
        .create = row##_create,                                  \
        .destroy = row##_destroy,                                \
        .enter = (row_enter),                                    \
        .leave = (row_leave),                                    \
        .push = row##_push,                                      \
        .pop = row##_pop,                                        \
        .push_many = row##_push_many,                            \
        .pop_many = row##_pop_many,                              \
        .close = row##_close,                                    \
    }

typedef struct spsc_object {
    bide_spsc_ring(uint64_t) queue;
    uint64_t *memory;
} spsc_object;

static void *spsc_ring_create(size_t capacity)
{
    spsc_object *object = queue_memory(sizeof *object);
    object->memory = must(calloc(capacity, sizeof *object->memory));
    bide_spsc_ring_init(&object->queue, object->memory, capacity);
    return object;
}

static void spsc_ring_destroy(void *queue)
{
    spsc_object *object = queue;
    free(object->memory);
    free(object);
}

FUNCTIONS(spsc_ring, spsc_object)
ROW(spsc_ring, QUEUE_BOUNDED | QUEUE_ONE_PRODUCER | QUEUE_ONE_CONSUMER | QUEUE_EXACT_EMPTY, 1,
    enter_nothing, leave_nothing);

typedef bide_mpmc_ring_slot(uint64_t) mpmc_slot;

typedef struct mpmc_object {
    bide_mpmc_ring(uint64_t) queue;
    mpmc_slot *memory;
} mpmc_object;

static void *mpmc_ring_create(size_t capacity)
{
    mpmc_object *object = queue_memory(sizeof *object);
    object->memory = must(calloc(capacity, sizeof *object->memory));
    bide_mpmc_ring_init(&object->queue, object->memory, capacity);
    return object;
}

static void mpmc_ring_destroy(void *queue)
{
    mpmc_object *object = queue;
    free(object->memory);
    free(object);
}

FUNCTIONS(mpmc_ring, mpmc_object)
ROW(mpmc_ring, QUEUE_BOUNDED, 1, enter_nothing, leave_nothing);

static int mpmc_ring_pop_single(void *queue, void *seat, uint64_t *value)
{
    (void)seat;
    return bide_mpmc_ring_pop_single(&((mpmc_object *)queue)->queue, value);
}

static ptrdiff_t mpmc_ring_pop_many_single(void *queue, void *seat, uint64_t *values, size_t count)
{
    (void)seat;
    return bide_mpmc_ring_pop_many_single(&((mpmc_object *)queue)->queue, values, count);
}

static const queue_kind mpmc_ring_single = {
    .name = "mpmc_ring, one consumer",
    .traits = QUEUE_BOUNDED | QUEUE_ONE_CONSUMER,
    .slowness = 1,
    .create = mpmc_ring_create,
    .destroy = mpmc_ring_destroy,
    .enter = enter_nothing,
    .leave = leave_nothing,
    .push = mpmc_ring_push,
    .pop = mpmc_ring_pop_single,
    .push_many = mpmc_ring_push_many,
    .pop_many = mpmc_ring_pop_many_single,
    .close = mpmc_ring_close,
};

/* ---- bide's queues with nodes from a pool; a thread has a cache of them ---- */

/* (no queue of the tests ever holds so many) */
enum { CHUNK_NODES = 64, MAX_NODES = 1 << 22 };

#define POOLED_QUEUE(row)                                                                    \
    typedef struct row##_object {                                                            \
        bide_##row(uint64_t) queue;                                                          \
        bide_node_pool pool;                                                                 \
        bide_node_cache first; /* whoever makes it */                                        \
    } row##_object;                                                                          \
                                                                                             \
    static void *row##_create(size_t capacity)                                               \
    {                                                                                        \
        row##_object *object = queue_memory(sizeof *object);                                 \
        (void)capacity;                                                                      \
        if (bide_node_pool_init(&object->pool, &bide_heap, bide_##row##_node_size(uint64_t), \
                                CHUNK_NODES, MAX_NODES) != 0)                               \
            abort();                                                                         \
        bide_node_cache_init(&object->first, &object->pool);                                 \
        if (bide_##row##_init(&object->queue, &object->first) != 0)                          \
            abort();                                                                         \
        return object;                                                                       \
    }                                                                                        \
                                                                                             \
    /* All nodes are released: the last byte of memory is returned. */                       \
    static void row##_destroy(void *queue)                                                   \
    {                                                                                        \
        row##_object *object = queue;                                                        \
        bide_##row##_destroy(&object->queue, &object->first);                                \
        bide_node_cache_flush(&object->first);                                               \
        bide_node_pool_trim(&object->pool);                                                  \
        if (bide_node_pool_size(&object->pool) != 0)                                         \
            abort();                                                                         \
        bide_node_pool_destroy(&object->pool);                                               \
        free(object);                                                                        \
    }                                                                                        \
                                                                                             \
    static void *row##_enter(void *queue)                                                    \
    {                                                                                        \
        row##_object *object = queue;                                                        \
        bide_node_cache *cache = queue_memory(sizeof *cache);                                \
        bide_node_cache_init(cache, &object->pool);                                          \
        return cache;                                                                        \
    }                                                                                        \
                                                                                             \
    static void row##_leave(void *queue, void *seat)                                         \
    {                                                                                        \
        (void)queue;                                                                         \
        bide_node_cache_flush(seat);                                                         \
        free(seat);                                                                          \
    }

POOLED_QUEUE(linked_queue)
FUNCTIONS_WITH_SEAT(linked_queue, linked_queue_object, bide_node_cache)

static void linked_queue_close(void *queue)
{
    bide_linked_queue_close(&((linked_queue_object *)queue)->queue);
}

ROW(linked_queue, QUEUE_ONE_PRODUCER | QUEUE_ONE_CONSUMER | QUEUE_EXACT_EMPTY, 1,
    linked_queue_enter, linked_queue_leave);

POOLED_QUEUE(counted_queue)
FUNCTIONS_WITH_SEAT(counted_queue, counted_queue_object, bide_node_cache)

static void counted_queue_close(void *queue)
{
    bide_node_cache *cache = counted_queue_enter(queue);
    bide_counted_queue_close(&((counted_queue_object *)queue)->queue, cache);
    counted_queue_leave(queue, cache);
}

ROW(counted_queue, QUEUE_EXACT_EMPTY, 10, counted_queue_enter, counted_queue_leave);

/* ---- bide's queues of segments; a thread has a hazard seat ---- */

enum { CELLS = 16, SEATS = QUEUE_THREADS + 2 }; /* (one for the closing thread) */

typedef struct segment_object {
    bide_segment_queue(uint64_t) queue;
    bide_hazard_domain domain;
    bide_hazard_seat seats[SEATS];
} segment_object;

static void *segment_queue_create(size_t capacity)
{
    segment_object *object = queue_memory(sizeof *object);
    (void)capacity;
    bide_hazard_init(&object->domain, object->seats, SEATS);
    if (bide_segment_queue_init(&object->queue, &object->domain, &bide_heap, CELLS) != 0)
        abort();
    return object;
}

static void segment_queue_destroy(void *queue)
{
    segment_object *object = queue;
    bide_segment_queue_destroy(&object->queue);
    bide_hazard_destroy(&object->domain);
    free(object);
}

static void *segment_queue_enter(void *queue)
{
    return must(bide_hazard_join(&((segment_object *)queue)->domain));
}

static void segment_queue_leave(void *queue, void *seat)
{
    bide_hazard_leave(&((segment_object *)queue)->domain, seat);
}

static void segment_queue_close(void *queue)
{
    bide_hazard_seat *seat = segment_queue_enter(queue);
    bide_segment_queue_close(&((segment_object *)queue)->queue, seat);
    segment_queue_leave(queue, seat);
}

FUNCTIONS_WITH_SEAT(segment_queue, segment_object, bide_hazard_seat)
ROW(segment_queue, QUEUE_EXACT_EMPTY, 1, segment_queue_enter, segment_queue_leave);

static int segment_queue_pop_single(void *queue, void *seat, uint64_t *value)
{
    return bide_segment_queue_pop_single(&((segment_object *)queue)->queue,
                                         (bide_hazard_seat *)seat, value);
}

static ptrdiff_t segment_queue_pop_many_single(void *queue, void *seat, uint64_t *values,
                                               size_t count)
{
    return bide_segment_queue_pop_many_single(&((segment_object *)queue)->queue,
                                              (bide_hazard_seat *)seat, values, count);
}

static const queue_kind segment_queue_single = {
    .name = "segment_queue, one consumer",
    .traits = QUEUE_EXACT_EMPTY | QUEUE_ONE_CONSUMER,
    .slowness = 1,
    .create = segment_queue_create,
    .destroy = segment_queue_destroy,
    .enter = segment_queue_enter,
    .leave = segment_queue_leave,
    .push = segment_queue_push,
    .pop = segment_queue_pop_single,
    .push_many = segment_queue_push_many,
    .pop_many = segment_queue_pop_many_single,
    .close = segment_queue_close,
};

/* ---- The table ---- */

const queue_kind *const queues[] = {
    &locked,        &locked_unbounded, &spsc_ring,
    &mpmc_ring,     &mpmc_ring_single, &linked_queue,
    &counted_queue, &segment_queue,    &segment_queue_single,
};
const size_t queues_count = sizeof queues / sizeof queues[0];

/* A test for each case and each row that supports it. */
int queue_cases_run(const char *group, const queue_case *cases, size_t count)
{
    const char *only = getenv("BIDE_QUEUE");
    struct CMUnitTest *tests = must(calloc(queues_count * count, sizeof *tests));
    char(*names)[160] = must(calloc(queues_count * count, sizeof *names));
    size_t made = 0;
    for (size_t i = 0; i < queues_count; i++) {
        for (size_t j = 0; j < count; j++) {
            if (!queue_is(queues[i], cases[j].needs) ||
                (only != NULL && strcmp(queues[i]->name, only) != 0))
                continue;
            snprintf(names[made], sizeof names[made], "%s: %s", queues[i]->name, cases[j].name);
            tests[made] = (struct CMUnitTest)cmocka_unit_test_prestate(
                cases[j].function, (void *)(uintptr_t)queues[i]);
            tests[made].name = names[made];
            made++;
        }
    }
    int failed = _cmocka_run_group_tests(group, tests, made, NULL, NULL);
    free(tests);
    free(names);
    return failed;
}
