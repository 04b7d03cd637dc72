/*
 * Checks that operations of threads on a queue are linearizable: each operation can be given a moment between its
 * beginning and its end, such that a sequential first-in-first-out queue returns the same results in the order of these
 * moments.
 *
 *     clock     issues stamps, for all threads
 *     log       the operations of one thread, in its order
 *     check     finds faults in the operations of all threads
 *
 * Every operation has ended, and no value is pushed twice. The operations of a batch have the same two stamps, and are
 * in the order of the array: a batch is not one step, but the elements of one keep their order.
 */
#ifndef BIDE_TESTS_FIFO_HISTORY_H
#define BIDE_TESTS_FIFO_HISTORY_H

#include "testing.h"

#include "bide/atomic.h"

typedef enum fifo_kind { FIFO_PUSH, FIFO_POP, FIFO_EMPTY /* a pop that found nothing */ } fifo_kind;

typedef struct fifo_operation {
    uint64_t value; /* of a push or a pop */
    uint64_t began, ended;
    fifo_kind kind;
} fifo_operation;

/* ---- Recording ---- */

/*
 * A stamp is drawn before an operation, and one after. A later draw gets the higher stamp. acq_rel: the operation stays
 * between the two; and an operation that ended before another began, by the stamps, happened before it. (So a clock
 * orders more than the queue does: tests for races run without one.)
 */
typedef struct fifo_clock {
    bide_atomic(uint64_t) next;
} fifo_clock;

static inline void fifo_clock_init(fifo_clock *clock)
{
    bide_atomic_init(&clock->next, 1);
}

static inline uint64_t fifo_stamp(fifo_clock *clock)
{
    return bide_atomic_fetch_add(&clock->next, 1, acq_rel);
}

/* One thread's. */
typedef struct fifo_log {
    fifo_operation *operations;
    size_t count, max;
} fifo_log;

static inline bool fifo_log_has_room(const fifo_log *log, size_t count)
{
    return log->max - log->count >= count;
}

/*
 * Records a push or a pop of `count` values, from first to last; or an empty pop: no values, and a count of 1. There is
 * room.
 */
static inline void fifo_log_add(fifo_log *log, fifo_kind kind, const uint64_t *values, size_t count,
                                uint64_t began, uint64_t ended)
{
    for (size_t i = 0; i < count; i++)
        log->operations[log->count++] = (fifo_operation){
            .value = values != NULL ? values[i] : 0, .began = began, .ended = ended, .kind = kind};
}

/* ---- Checking ---- */

typedef enum fifo_fault {
    FIFO_GOOD,
    FIFO_PUSHED_TWICE, /* a fault of the test, not of the queue */
    FIFO_NEVER_PUSHED,
    FIFO_POPPED_TWICE,
    FIFO_POPPED_EARLY,
    FIFO_OUT_OF_ORDER,
    FIFO_NOT_EMPTY,
} fifo_fault;

typedef struct fifo_verdict {
    fifo_fault fault;
    fifo_operation first, second; /* two of its operations; twice the same if there is only one */
} fifo_verdict;

/* Checks a history. O(n log n), and memory for as much again. */
fifo_verdict fifo_history_check(const fifo_operation *operations, size_t count);

/* Whether `x` comes before `y` for every choice of their moments. For two of one kind, in one array. */
static inline bool fifo_precedes(const fifo_operation *x, const fifo_operation *y)
{
    return x->ended < y->began || (x->began == y->began && x < y);
}

/* Prints the verdict, as a TAP comment; nothing if the history is good. */
void fifo_verdict_print(const fifo_verdict *verdict);

#endif
