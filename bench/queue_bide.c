/*
 * bide's queues in the benchmark `queue`, for each header that exists.
 *
 *     bide-spsc                    spsc_ring.h
 *     bide-mpmc, bide-mpmc-single  mpmc_ring.h; the latter's single consumer pops without a
 *                                  compare-exchange
 *     bide-linked                  linked_queue.h
 *     bide-counted                 counted_queue.h
 *     bide-segment                 segment_queue.h
 */
#include "queue_subject.h"

/* The number of elements moved, from the result of push_many or pop_many. */
static inline size_t moved(ptrdiff_t answer)
{
    return answer < 0 ? 0 : (size_t)answer;
}

/*
 * The functions of a queue whose handle is a pointer to a struct with the member `queue`. `pop` and
 * `pop_many` are its pop functions.
 */
#define RING_FUNCTIONS(prefix, api, pop, pop_many)                                              \
    static inline bool prefix##_push(prefix##_handle *handle, uint64_t value)                   \
    {                                                                                           \
        return api##_push(&(*handle)->queue, &value) == 0;                                      \
    }                                                                                           \
    static inline size_t prefix##_push_many(prefix##_handle *handle, const uint64_t *from,      \
                                            size_t count)                                       \
    {                                                                                           \
        return moved(api##_push_many(&(*handle)->queue, from, count));                          \
    }                                                                                           \
    static inline bool prefix##_pop(prefix##_handle *handle, uint64_t *to)                      \
    {                                                                                           \
        return api##_##pop(&(*handle)->queue, to) == 0;                                         \
    }                                                                                           \
    static inline size_t prefix##_pop_many(prefix##_handle *handle, uint64_t *to, size_t count) \
    {                                                                                           \
        return moved(api##_##pop_many(&(*handle)->queue, to, count));                           \
    }

/* The same for a queue whose functions also take a thread's own state: `own`. */
#define NODE_FUNCTIONS(prefix, api, own)                                                        \
    static inline bool prefix##_push(prefix##_handle *handle, uint64_t value)                   \
    {                                                                                           \
        return api##_push(&handle->of->queue, own, &value) == 0;                                \
    }                                                                                           \
    static inline size_t prefix##_push_many(prefix##_handle *handle, const uint64_t *from,      \
                                            size_t count)                                       \
    {                                                                                           \
        return moved(api##_push_many(&handle->of->queue, own, from, count));                    \
    }                                                                                           \
    static inline bool prefix##_pop(prefix##_handle *handle, uint64_t *to)                      \
    {                                                                                           \
        return api##_pop(&handle->of->queue, own, to) == 0;                                     \
    }                                                                                           \
    static inline size_t prefix##_pop_many(prefix##_handle *handle, uint64_t *to, size_t count) \
    {                                                                                           \
        return moved(api##_pop_many(&handle->of->queue, own, to, count));                       \
    }

/* ---- Rings ---- */

#include "bide/spsc_ring.h"

struct spsc {
    bide_spsc_ring(uint64_t) queue;
    BIDE_ALIGNAS(QUEUE_LINE) uint64_t memory[QUEUE_CAPACITY];
};

static void *spsc_create(unsigned producers, unsigned consumers)
{
    (void)producers, (void)consumers;
    struct spsc *spsc = queue_allocate(sizeof *spsc);
    if (spsc != NULL)
        bide_spsc_ring_init(&spsc->queue, spsc->memory, QUEUE_CAPACITY);
    return spsc;
}

static void spsc_destroy(void *queue)
{
    free(queue);
}

QUEUE_POINTER_HANDLE(spsc, struct spsc)
RING_FUNCTIONS(spsc, bide_spsc_ring, pop, pop_many)
#define QUEUE spsc
#include "queue_loops.h"

#include "bide/mpmc_ring.h"

struct mpmc {
    bide_mpmc_ring(uint64_t) queue;
    BIDE_ALIGNAS(QUEUE_LINE) bide_mpmc_ring_slot(uint64_t) memory[QUEUE_CAPACITY];
};

static void *mpmc_create(unsigned producers, unsigned consumers)
{
    (void)producers, (void)consumers;
    struct mpmc *mpmc = queue_allocate(sizeof *mpmc);
    if (mpmc != NULL)
        bide_mpmc_ring_init(&mpmc->queue, mpmc->memory, QUEUE_CAPACITY);
    return mpmc;
}

static void mpmc_destroy(void *queue)
{
    free(queue);
}

QUEUE_POINTER_HANDLE(mpmc, struct mpmc)
RING_FUNCTIONS(mpmc, bide_mpmc_ring, pop, pop_many)
#define QUEUE mpmc
#include "queue_loops.h"

QUEUE_POINTER_HANDLE(mpmc_single, struct mpmc)
RING_FUNCTIONS(mpmc_single, bide_mpmc_ring, pop_single, pop_many_single)
#define QUEUE mpmc_single
#include "queue_loops.h"

/* ---- Queues of nodes from a pool ---- */

#include "bide/node_pool.h"

enum { CHUNK_NODES = 1024, MAX_NODES = 1 << 24 };

#define POOLED(prefix, api)                                                                      \
    struct prefix {                                                                              \
        BIDE_ALIGNAS(QUEUE_LINE) api(uint64_t) queue;                                            \
        BIDE_ALIGNAS(QUEUE_LINE) bide_node_pool pool;                                            \
        bide_node_cache cache; /* of the thread that creates and destroys the queue */           \
    };                                                                                           \
                                                                                                 \
    static void *prefix##_create(unsigned producers, unsigned consumers)                         \
    {                                                                                            \
        (void)producers, (void)consumers;                                                        \
        struct prefix *made = queue_allocate(sizeof *made);                                      \
        if (made == NULL)                                                                        \
            return NULL;                                                                         \
        if (bide_node_pool_init(&made->pool, &bide_heap, api##_node_size(uint64_t), CHUNK_NODES, \
                                MAX_NODES) != 0)                                                \
            return NULL;                                                                         \
        bide_node_cache_init(&made->cache, &made->pool);                                         \
        return api##_init(&made->queue, &made->cache) == 0 ? made : NULL;                        \
    }                                                                                            \
                                                                                                 \
    static void prefix##_destroy(void *queue)                                                    \
    {                                                                                            \
        struct prefix *made = queue;                                                             \
        api##_destroy(&made->queue, &made->cache);                                               \
        bide_node_pool_destroy(&made->pool);                                                     \
        free(made);                                                                              \
    }                                                                                            \
                                                                                                 \
    typedef struct prefix##_handle {                                                             \
        struct prefix *of;                                                                       \
        bide_node_cache cache;                                                                   \
    } prefix##_handle;                                                                           \
                                                                                                 \
    static void prefix##_enter(prefix##_handle *handle, void *queue, enum queue_role role)       \
    {                                                                                            \
        (void)role;                                                                              \
        handle->of = queue;                                                                      \
        bide_node_cache_init(&handle->cache, &handle->of->pool);                                 \
    }                                                                                            \
                                                                                                 \
    static void prefix##_leave(prefix##_handle *handle)                                          \
    {                                                                                            \
        bide_node_cache_flush(&handle->cache);                                                   \
    }                                                                                            \
                                                                                                 \
    NODE_FUNCTIONS(prefix, api, &handle->cache)

#include "bide/linked_queue.h"

POOLED(linked, bide_linked_queue)
#define QUEUE linked
#include "queue_loops.h"

#include "bide/counted_queue.h"

POOLED(counted, bide_counted_queue)
#define QUEUE counted
#include "queue_loops.h"

/* ---- Queue of segments ---- */

#include "bide/segment_queue.h"

enum { MAX_SEATS = 32, SEGMENT_CELLS = 1024 };

struct segment {
    BIDE_ALIGNAS(QUEUE_LINE) bide_segment_queue(uint64_t) queue;
    bide_hazard_domain domain;
    bide_hazard_seat seats[MAX_SEATS];
};

static void *segment_create(unsigned producers, unsigned consumers)
{
    struct segment *segment = queue_allocate(sizeof *segment);
    if (segment == NULL)
        return NULL;
    bide_hazard_init(&segment->domain, segment->seats, producers + consumers);
    return bide_segment_queue_init(&segment->queue, &segment->domain, &bide_heap, SEGMENT_CELLS) ==
                   0
               ? segment
               : NULL;
}

static void segment_destroy(void *queue)
{
    struct segment *segment = queue;
    bide_segment_queue_destroy(&segment->queue);
    bide_hazard_destroy(&segment->domain);
    free(segment);
}

typedef struct segment_handle {
    struct segment *of;
    bide_hazard_seat *seat;
} segment_handle;

static void segment_enter(segment_handle *handle, void *queue, enum queue_role role)
{
    (void)role;
    handle->of = queue;
    handle->seat = bide_hazard_join(&handle->of->domain);
}

static void segment_leave(segment_handle *handle)
{
    bide_hazard_leave(&handle->of->domain, handle->seat);
}

NODE_FUNCTIONS(segment, bide_segment_queue, handle->seat)
#define QUEUE segment
#include "queue_loops.h"

const struct queue_subject queues_bide[] = {
    QUEUE_SUBJECT("bide-spsc", QUEUE_SPSC_BOUNDED, spsc, spsc),
    QUEUE_SUBJECT("bide-mpmc-single", QUEUE_MPSC_BOUNDED, mpmc, mpmc_single),
    QUEUE_SUBJECT("bide-mpmc", QUEUE_MPMC_BOUNDED, mpmc, mpmc),
    QUEUE_SUBJECT("bide-linked", QUEUE_SPSC_UNBOUNDED, linked, linked),
    QUEUE_SUBJECT("bide-counted", QUEUE_MPMC_UNBOUNDED, counted, counted),
    QUEUE_SUBJECT("bide-segment", QUEUE_MPMC_UNBOUNDED, segment, segment),
    {0},
};
