/*
 * What the benchmark `queue` asks of a queue of 64-bit numbers: to be made, to let a producer and a consumer do their
 * whole work, to go. The two loops are the same text for all (queue_loops.h), compiled around each queue's own push and
 * pop, so that the figure is the queue's and not that of a call through a pointer.
 */
#ifndef BENCH_QUEUE_SUBJECT_H
#define BENCH_QUEUE_SUBJECT_H

#include "bide/atomic.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    QUEUE_CAPACITY = 16384, /* of those that are bounded */
    QUEUE_MOST_BATCH = 16,
    QUEUE_PAUSES = 16, /* of the processor, before a thread gives way to others */
    QUEUE_LINE = 64,
};

/* One run: what its threads share. The numbers are atomic. */
struct queue_run {
    void *queue;                                 /* constant, as is `batch` */
    size_t batch;                                /* 1: a push and a pop for each element */
    BIDE_ALIGNAS(QUEUE_LINE) unsigned stops;     /* 1 when producers are to end */
    BIDE_ALIGNAS(QUEUE_LINE) unsigned producing; /* how many have not ended */
    size_t pushed;                               /* by those who have */
    size_t taken;                                /* by consumers, counted when they find nothing */
};

enum queue_role { QUEUE_PRODUCER, QUEUE_CONSUMER };

/* How many may push and pop, and whether it is ever full. */
enum queue_kind {
    QUEUE_SPSC_BOUNDED,
    QUEUE_MPSC_BOUNDED,
    QUEUE_MPMC_BOUNDED,
    QUEUE_SPSC_UNBOUNDED,
    QUEUE_MPSC_UNBOUNDED,
    QUEUE_MPMC_UNBOUNDED,
};

struct queue_subject {
    const char *name; /* NULL: the end of an array of subjects */
    enum queue_kind kind;
    void *(*create)(unsigned producers, unsigned consumers); /* NULL if there is no memory */
    void (*destroy)(void *queue);                            /* it is empty, and nobody uses it */
    /* On a thread of its own: pushes numbers from `first` on until the run stops; returns how many. */
    size_t (*produce)(struct queue_run *run, uint64_t first);
    /* The same: pops until producers have ended and all is taken; returns the sum of what it took. */
    uint64_t (*consume)(struct queue_run *run);
};

/* A queue that MADE_create makes, used by LOOPS_produce and LOOPS_consume. */
#define QUEUE_SUBJECT(name, kind, made, loops)                                      \
    {                                                                               \
        name, kind, made##_create, made##_destroy, loops##_produce, loops##_consume \
    }

/* For the loops, of a queue where a thread has nothing of its own: the handle is a pointer to the queue. */
#define QUEUE_POINTER_HANDLE(prefix, type)                                                 \
    typedef __typeof__(type) *prefix##_handle;                                             \
    static void prefix##_enter(prefix##_handle *handle, void *queue, enum queue_role role) \
    {                                                                                      \
        (void)role;                                                                        \
        *handle = queue;                                                                   \
    }                                                                                      \
    static void prefix##_leave(prefix##_handle *handle)                                    \
    {                                                                                      \
        (void)handle;                                                                      \
    }

/* ---- For the loops ---- */

/* When a push or a pop did not succeed: pauses, or now and then gives way. */
static inline bool queue_still_pauses(unsigned *misses)
{
    if (++*misses >= QUEUE_PAUSES)
        return false;
    bide_cpu_relax();
    return true;
}

static inline void queue_give_way(unsigned *misses)
{
    if (queue_still_pauses(misses))
        return;
    *misses = 0;
    sched_yield();
}

static inline bool queue_stops(const struct queue_run *run)
{
    return __atomic_load_n(&run->stops, __ATOMIC_RELAXED) != 0;
}

/* A producer has ended, who has pushed so many. */
static inline void queue_end_producer(struct queue_run *run, size_t pushed)
{
    __atomic_fetch_add(&run->pushed, pushed, __ATOMIC_RELAXED);
    /* release: partner is queue_is_over; who sees that nobody produces sees what was pushed. */
    __atomic_fetch_sub(&run->producing, 1, __ATOMIC_RELEASE);
}

/* What queue_give_way does, for a consumer, who has popped *seen elements not counted yet. True: it is over. */
static inline bool queue_is_over(struct queue_run *run, size_t *seen, unsigned *misses)
{
    if (queue_still_pauses(misses))
        return false;
    *misses = 0;
    if (*seen != 0)
        __atomic_fetch_add(&run->taken, *seen, __ATOMIC_RELAXED);
    *seen = 0;
    /* acquire: partner is queue_end_producer. */
    if (__atomic_load_n(&run->producing, __ATOMIC_ACQUIRE) == 0 &&
        __atomic_load_n(&run->taken, __ATOMIC_RELAXED) ==
            __atomic_load_n(&run->pushed, __ATOMIC_RELAXED))
        return true;
    sched_yield();
    return false;
}

/* Memory for a queue, on cache lines of its own; NULL if there is none. */
static inline void *queue_allocate(size_t bytes)
{
    return aligned_alloc(QUEUE_LINE, (bytes + QUEUE_LINE - 1) / QUEUE_LINE * QUEUE_LINE);
}

/* ---- The subjects ---- */

/* Each array ends with a subject without a name; those of libraries are there if the library is. */
extern const struct queue_subject queues_bide[];         /* queue_bide.c */
extern const struct queue_subject queues_plain[];        /* peers/queue_plain.c */
extern const struct queue_subject queues_std[];          /* peers/queue_std.cpp */
extern const struct queue_subject queues_boost[];        /* peers/queue_boost.cpp */
extern const struct queue_subject queues_ck[];           /* peers/queue_ck.c */
extern const struct queue_subject queues_moodycamel[];   /* peers/queue_moodycamel.cpp */
extern const struct queue_subject queues_readerwriter[]; /* peers/queue_readerwriter.cpp */
extern const struct queue_subject queues_tbb[];          /* peers/queue_tbb.cpp */
extern const struct queue_subject queues_urcu[];         /* peers/queue_urcu.c */

#ifdef __cplusplus
}
#endif

#endif
