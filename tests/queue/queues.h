/*
 * Every queue, as rows of one table: the facts that the tests of the contract of all queues (contract_test.c and
 * others) need for each. A new queue is a new row, in queues.c. Elements are numbers of 64 bits.
 *
 * The contract:
 *
 *     push        0; -ENOBUFS full, if bounded; -ENOMEM no memory, if unbounded; -EPIPE closed
 *     pop         0; -EAGAIN empty; -EPIPE closed and empty
 *     batches     the number moved, in the order of the array, perhaps fewer than requested; or one of the above if
 *                 none was. 0 only if none was requested
 *     close       idempotent
 */
#ifndef BIDE_TESTS_QUEUES_H
#define BIDE_TESTS_QUEUES_H

#include "testing.h"

#include "bide/compiler.h"
#include "bide/errors.h"

enum {
    QUEUE_BOUNDED = 1,
    QUEUE_ONE_PRODUCER = 2, /* at a time; the producer closes, too */
    QUEUE_ONE_CONSUMER = 4, /* at a time */
    QUEUE_EXACT_EMPTY =
        8, /* -EAGAIN means empty, not that a push in progress hides later elements */
    QUEUE_ANY_ORDER = 16, /* a bag; for steps.h only */
};

enum { QUEUE_THREADS = 8 /* the maximum of joined threads */ };

typedef struct queue_kind {
    const char *name;
    unsigned traits;
    uint32_t
        slowness; /* the divisor of the number of moved elements in the long tests; usually 1 */

    /* Creates a queue of `capacity` elements; an unbounded one never holds more. Without memory the test ends. */
    void *(*create)(size_t capacity);

    /* Destroys it, after its last use, with its elements. */
    void (*destroy)(void *queue);

    /* A thread joins: the result is its own, until it leaves. */
    void *(*enter)(void *queue);
    void (*leave)(void *queue, void *seat);

    int (*push)(void *queue, void *seat, const uint64_t *value);
    int (*pop)(void *queue, void *seat, uint64_t *value);
    ptrdiff_t (*push_many)(void *queue, void *seat, const uint64_t *values, size_t count);
    ptrdiff_t (*pop_many)(void *queue, void *seat, uint64_t *values, size_t count);
    void (*close)(void *queue);
} queue_kind;

extern const queue_kind *const queues[];
extern const size_t queues_count;

static inline bool queue_is(const queue_kind *kind, unsigned traits)
{
    return (kind->traits & traits) == traits;
}

/* Whether a push with this status may be retried, after some pops. */
static inline bool queue_is_full(const queue_kind *kind, ptrdiff_t answer)
{
    return answer == (queue_is(kind, QUEUE_BOUNDED) ? -ENOBUFS : -ENOMEM);
}

/* The number of threads that use a queue at a time. */
typedef struct queue_crew {
    unsigned producers, consumers;
} queue_crew;

static const queue_crew queue_crews[] = {{1, 1}, {2, 2}, {4, 1}, {1, 4}, {3, 3}};
enum { QUEUE_CREWS = sizeof queue_crews / sizeof queue_crews[0] };

static inline bool queue_allows(const queue_kind *kind, const queue_crew *crew)
{
    return (crew->producers == 1 || !queue_is(kind, QUEUE_ONE_PRODUCER)) &&
           (crew->consumers == 1 || !queue_is(kind, QUEUE_ONE_CONSUMER));
}

/* Memory for a row, aligned to a cache line; released by free(). */
static inline void *queue_memory(size_t size)
{
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (memory == NULL)
        abort();
    return memory;
}

/* ---- Tests of all of them ---- */

/*
 * A failed expectation is reported with its place, and the function returns false: tests of queues that are known to be
 * wrong continue.
 */
#define expect(condition)                                    \
    do {                                                     \
        if (!(condition)) {                                  \
            printf("# not so: %s:%d\n", __FILE__, __LINE__); \
            return false;                                    \
        }                                                    \
    } while (0)

/* The cases for each queue. */
typedef struct queue_case {
    const char *name;
    void (*function)(void **state); /* *state is the row */
    unsigned needs;                 /* traits */
} queue_case;

/* Runs each case for each row that supports it, or for the row named by the environment's BIDE_QUEUE; the end of main. */
int queue_cases_run(const char *group, const queue_case *cases, size_t count);

#endif
