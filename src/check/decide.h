/*
 * Decisions: the store that a new load reads, the position of a new store, the value of a choice.
 * Each function adds an event to the graph, takes the first possible option, and keeps the other
 * options for explore.c. It returns false if no option is possible; the execution is then given up.
 */
#ifndef BIDE_CHECK_DECIDE_H
#define BIDE_CHECK_DECIDE_H

#include "graph.h"

bool decide_load(graph *g, unsigned thread, const operation *op, unsigned location,
                 const vector_clock *older);
/*
 * True if a load of a thread that waits may read a value that ends its wait, or if it does not wait.
 */
bool decide_may_load(graph *g, unsigned thread, const operation *op, unsigned location);

bool decide_store(graph *g, unsigned thread, const operation *op, unsigned location, uint64_t value,
                  reference read);
bool decide_choice(graph *g, unsigned thread, const operation *op, unsigned count);

/* Events without options: a fence, and the first store of a new location. */
void decide_fence(graph *g, unsigned thread, const operation *op);
void decide_init(graph *g, unsigned thread, const operation *op, unsigned location, uint64_t value);

/* True if another step of the thread of `next`, its next event, may fail spuriously. */
bool decide_spurious_left(const graph *g, reference next);

/* True if another allocation of the thread of `next`, its next event, may fail. */
bool decide_failures_left(const graph *g, reference next);

/* ---- Options that have not been tried ---- */

typedef enum option_kind {
    OPTION_READ,   /* a load: reads `other` */
    OPTION_PLACE,  /* a store: at `position` */
    OPTION_CHOOSE, /* a choice: `position` */
    /* A store: `other`, an earlier load, reads it, in a graph of its own. */
    OPTION_REVISIT,
    /* In that graph: the store is at `position`, and `other` reads it. */
    OPTION_REVISITED
} option_kind;

typedef struct option {
    reference other;
    uint16_t position;
    uint8_t kind;
    bool spurious;
} option;

/* An event whose options have not all been tried. */
typedef struct decision {
    reference event;
    double share; /* of each option: see progress.h */
} decision;

/* Before the first graph. */
void decide_begin(void);

/* The number of open decisions. */
unsigned decide_depth(void);

/*
 * The newest decision, and its next option; false if it has none left. The newest decision may be
 * another one after an option was applied.
 */
const decision *decide_newest(void);
bool decide_next(option *next);

/* Applies an option to the graph's newest event. False if the memory model does not allow it. */
bool decide_apply(graph *g, reference self, const option *o);

/* Removes the newest decision. */
void decide_drop(void);

/*
 * Adds a decision with the positions of the store at which `reader` may read it, the newest first.
 */
void decide_revisited(graph *g, reference store, reference reader);

#endif
