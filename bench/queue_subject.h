/*
 * A subject of the benchmark `queue`: a queue of 64-bit numbers that can be created, used by a
 * producer and a consumer for their whole work, and destroyed. The two loops have the same text for
 * all (queue_loops.h), compiled around each queue's push and pop, so that the figure is the queue's
 * and not that of an indirect call.
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
    QUEUE_CAPACITY = 16384, /* of bounded queues */
    QUEUE_MOST_BATCH = 16,
    QUEUE_PAUSES = 16, /* processor pauses before a thread yields */
    QUEUE_LINE = 64,
};

/* One run: the data that its threads share. The numbers are atomic. */
struct queue_run {
    void *queue;                                 /* constant, as is `batch` */
    size_t batch;                                /* 1: a push and a pop for each element */
    BIDE_ALIGNAS(QUEUE_LINE) unsigned stops;     /* 1 when producers have to stop */
    BIDE_ALIGNAS(QUEUE_LINE) unsigned producing; /* producers still running */
    size_t pushed;                               /* by finished producers */
    size_t taken;                                /* by consumers, added when the queue is empty */
};

enum queue_role { QUEUE_PRODUCER, QUEUE_CONSUMER };

/* The number of producers and consumers, and whether the queue is bounded. */
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
    void (*destroy)(void *queue);                            /* the queue is empty and unused */
    /*
     * Runs on its own thread: pushes numbers from `first` on until the run stops; returns how many.
     */
    size_t (*produce)(struct queue_run *run, uint64_t first);
    /*
     * Runs on its own thread: pops until the producers have stopped and everything is consumed;
     * returns the sum.
     */
    uint64_t (*consume)(struct queue_run *run);
};

/* A queue created by MADE_create, used by LOOPS_produce and LOOPS_consume. */
#define QUEUE_SUBJECT(name, kind, made, loops)                                      \
    {                                                                               \
        name, kind, made##_create, made##_destroy, loops##_produce, loops##_consume \
    }

/* For queues without per-thread state: the handle is a pointer to the queue. */
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

/* After a failed push or pop: pauses, or now and then yields. */
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

/* Records that a producer has finished, with the number of its pushes. */
static inline void queue_end_producer(struct queue_run *run, size_t pushed)
{
    __atomic_fetch_add(&run->pushed, pushed, __ATOMIC_RELAXED);
    /*
     * release: pairs with the acquire in queue_is_over. A consumer that sees no producer left sees
     * all pushed elements.
     */
    __atomic_fetch_sub(&run->producing, 1, __ATOMIC_RELEASE);
}

/*
 * As queue_give_way, for a consumer with *seen popped elements that are not counted yet. Returns
 * true when the run has finished.
 */
static inline bool queue_is_over(struct queue_run *run, size_t *seen, unsigned *misses)
{
    if (queue_still_pauses(misses))
        return false;
    *misses = 0;
    if (*seen != 0)
        __atomic_fetch_add(&run->taken, *seen, __ATOMIC_RELAXED);
    *seen = 0;
    /* acquire: pairs with the release in queue_end_producer. */
    if (__atomic_load_n(&run->producing, __ATOMIC_ACQUIRE) == 0 &&
        __atomic_load_n(&run->taken, __ATOMIC_RELAXED) ==
            __atomic_load_n(&run->pushed, __ATOMIC_RELAXED))
        return true;
    sched_yield();
    return false;
}

/* Allocates memory for a queue on its own cache lines. Returns NULL if memory is exhausted. */
static inline void *queue_allocate(size_t bytes)
{
    return aligned_alloc(QUEUE_LINE, (bytes + QUEUE_LINE - 1) / QUEUE_LINE * QUEUE_LINE);
}

/* ---- The subjects ---- */

/*
 * Each array is terminated by a subject without a name. Arrays of other libraries exist if the
 * library is installed.
 */
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
