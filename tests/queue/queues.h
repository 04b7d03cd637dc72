/*
 * Every queue, as rows of one table: what the tests of the contract that all queues share (contract_test.c and its
 * like) need to know of each. A new queue is a new row, in queues.c. Elements are numbers of 64 bits.
 *
 * The contract:
 *
 *     push        0; -ENOBUFS full, where it is bounded; -ENOMEM no memory, where it is not; -EPIPE closed
 *     pop         0; -EAGAIN empty; -EPIPE closed, and all that was pushed has been taken
 *     batches     how many were moved, in the order of the array, perhaps fewer than asked for; or one of the above if
 *                 none was. 0 only if none was asked for
 *     close       again and again: the same
 */
#ifndef BIDE_TESTS_QUEUES_H
#define BIDE_TESTS_QUEUES_H

#include "testing.h"

#include "bide/compiler.h"
#include "bide/errors.h"

enum {
    QUEUE_BOUNDED = 1,
    QUEUE_ONE_PRODUCER = 2, /* at a time; it is who closes, too */
    QUEUE_ONE_CONSUMER = 4, /* at a time */
    QUEUE_EXACT_EMPTY =
        8, /* -EAGAIN: it was empty, and not that a push under way holds up what is behind it */
    QUEUE_ANY_ORDER = 16, /* a bag; only steps.h knows what to do with it */
};

enum { QUEUE_THREADS = 8 /* may take part at a time */ };

typedef struct queue_kind {
    const char *name;
    unsigned traits;
    uint32_t
        slowness; /* it moves so many times fewer elements in the long tests; 1: as many as others */

    /* Makes one of `capacity` elements; an unbounded one never holds more. Without memory the test ends. */
    void *(*create)(size_t capacity);

    /* Destroys it, after its last use, with its elements. */
    void (*destroy)(void *queue);

    /* A thread takes part: what it gets is its own, until it leaves. */
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

/* Memory for a row, aligned to a cache line; free() takes it back. */
static inline void *queue_memory(size_t size)
{
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (memory == NULL)
        abort();
    return memory;
}

/* ---- Tests of all of them ---- */

/* A failed expectation is reported with its place, and the function returns false: tests of queues that are known to be
 * wrong continue. */
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
