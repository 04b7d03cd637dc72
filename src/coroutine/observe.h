/*
 * The observer that the library reports its work to, if there is one: a trace (trace.h), a watch over
 * turns (stall_detector.h). Without one, each report costs a load and a predicted branch. Under the model
 * checker there are no reports. Floor: coroutine.
 *
 * Any thread reports. The tables are constants, so a table may still be called after it was replaced:
 * the observer handles that (src/inspect/observer.c).
 */
#ifndef BIDE_COROUTINE_OBSERVE_H
#define BIDE_COROUTINE_OBSERVE_H

#include "bide/extend/root.h"

#if BIDE_CHECK
#define BIDE_OBSERVED 0
#else
#define BIDE_OBSERVED 1
#endif

/* A thread's events beside running coroutines. */
typedef enum bide_observed_ {
    BIDE_OBSERVED_STEAL, /* it has taken coroutines from another worker */
    BIDE_OBSERVED_SLEEP, /* it is about to sleep */
    BIDE_OBSERVED_WAKE,  /* it has woken */
} bide_observed_;

typedef struct bide_observer_ {
    /* A scheduler, or an inline waker, is about to resume `frame`; and: the frame has suspended, or
     * ended, and so have the frames that it has transferred to. On one thread, nested. */
    void (*turn)(const bide_frame *frame);
    void (*turn_ends)(void);

    /* A root is about to begin, or its `ended` is about to be called. */
    void (*task)(const bide_root *root);
    void (*task_ends)(const bide_root *root);

    /* An operation on a descriptor begins to wait; it has ended, and its waiter does not run yet. */
    void (*operation)(const bide_awaiter *operation, int fd);
    void (*operation_ends)(const bide_awaiter *operation, size_t count, int status);

    void (*thread)(bide_observed_ what);
} bide_observer_;

#if BIDE_OBSERVED

extern bide_atomic(const bide_observer_ *) bide_observing_; /* NULL: none */

/* The descriptor of an operation, and its peer. */
typedef struct bide_described_ {
    int descriptor;       /* -1: none, and the other members are not set */
    bool is_in_memory;    /* the number is valid only in memory (memory_io.h) */
    const char *relation; /* "peer", "at" or "": the relation of `other` to it */
    char other[144];      /* an address, or the kind of descriptor; or empty */
} bide_described_;

/*
 * For dumps: describes the descriptor of an operation, which another thread may end at the same time.
 * NULL: unknown.
 */
typedef void bide_describe_operation_(const bide_awaiter_ops *ops, const bide_awaiter *operation,
                                      bide_described_ *described);
extern bide_atomic(bide_describe_operation_ *) bide_describe_operation;

/* relaxed: what it points at is constant. */
#define BIDE_OBSERVER_() bide_atomic_load(&bide_observing_, relaxed)

/* Calls the observer, if there is one: BIDE_OBSERVE_(task, (root)). */
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
