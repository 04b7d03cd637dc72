/*
 * Whom the library tells what it does, while somebody wants to know: a trace (trace.h), a watch over
 * turns (turn_watch.h). Where nobody does, each place that tells costs a load and a branch that is
 * foreseen. Under the model checker nothing is told. Floor: coroutine.
 *
 * The tables are constants, so a table may still be called after it was replaced: what it does then
 * is for the observer to settle (src/inspect/observer.c).
 */
#ifndef BIDE_COROUTINE_OBSERVE_H
#define BIDE_COROUTINE_OBSERVE_H

#include "bide/extend/root.h"

#if BIDE_CHECK
#define BIDE_OBSERVED 0
#else
#define BIDE_OBSERVED 1
#endif

/* What a thread does beside running coroutines. */
typedef enum bide_observed_ {
    BIDE_OBSERVED_STEAL, /* it has taken coroutines from another worker */
    BIDE_OBSERVED_SLEEP, /* it is about to sleep */
    BIDE_OBSERVED_WAKE,  /* it sleeps no more */
} bide_observed_;

typedef struct bide_observer_ {
    /* A scheduler, or who wakes inline, is about to resume `frame`, which is its to resume; and: it
     * has suspended, or ended, with all that it has transferred to. On one thread, nested. */
    void (*turn)(const bide_frame *frame);
    void (*turn_ends)(void);

    /* A root is about to begin, or to be told that it has ended. */
    void (*task)(const bide_root *root);
    void (*task_ends)(const bide_root *root);

    /* An operation on a descriptor waits from now on; it has ended, and its waiter does not run yet. */
    void (*operation)(const bide_awaiter *operation, int fd);
    void (*operation_ends)(const bide_awaiter *operation, size_t count, int status);

    void (*thread)(bide_observed_ what);
} bide_observer_;

#if BIDE_OBSERVED

extern bide_atomic(const bide_observer_ *) bide_observing_; /* NULL: nobody */

/* What an operation is on. */
typedef struct bide_described_ {
    int descriptor;       /* -1: none, and nothing else is said */
    bool is_in_memory;    /* its number means something in a world in memory alone */
    const char *relation; /* "peer", "at" or "": what `other` is to it */
    char other[144];      /* an address, or what the descriptor is; or empty */
} bide_described_;

/*
 * For dumps, of an operation that another thread may end meanwhile: says what it is on. NULL: nobody
 * knows.
 */
typedef void bide_describe_operation_(const bide_awaiter_ops *ops, const bide_awaiter *operation,
                                      bide_described_ *described);
extern bide_atomic(bide_describe_operation_ *) bide_describe_operation;

/* relaxed: what it points at is constant. */
#define BIDE_OBSERVER_() bide_atomic_load(&bide_observing_, relaxed)

/* Tells the observer, if there is one: BIDE_OBSERVE_(task, (root)). */
#define BIDE_OBSERVE_(member, arguments)                     \
    do {                                                     \
        const bide_observer_ *bide_told_ = BIDE_OBSERVER_(); \
        if (BIDE_UNLIKELY(bide_told_ != NULL))               \
            bide_told_->member arguments;                    \
    } while (0)

#else

#define BIDE_OBSERVE_(member, arguments) ((void)0)

#endif

#endif
