/*
 * What a thread does next: what it reads, or where it stands, where that is not decided yet. Each
 * function adds an event to the graph, decides, and leaves behind what else is to be tried, which
 * explore.c takes up. False: nothing is possible; the execution is given up.
 */
#ifndef BIDE_CHECK_DECIDE_H
#define BIDE_CHECK_DECIDE_H

#include "graph.h"

bool decide_load(graph *g, unsigned thread, const operation *op, unsigned location,
                 const vector_clock *older);
bool decide_store(graph *g, unsigned thread, const operation *op, unsigned location, uint64_t value,
                  reference read);
bool decide_choice(graph *g, unsigned thread, const operation *op, unsigned count);

/* The same where there is nothing to decide: a fence, and the first store of a new location. */
void decide_fence(graph *g, unsigned thread, const operation *op);
void decide_init(graph *g, unsigned thread, const operation *op, unsigned location, uint64_t value);

/* May one more step of the thread of `next`, before which it is asked, fail for no reason? */
bool decide_spurious_left(const graph *g, reference next);

/* ---- What is left to be tried ---- */

typedef enum option_kind {
    OPTION_READ,   /* a load: from `other` */
    OPTION_PLACE,  /* a store: at `position` */
    OPTION_CHOOSE, /* a choice: `position` */
    /* A store: `other`, a load that was there before, reads it; in a graph of its own. */
    OPTION_REVISIT,
    /* There: the store stands at `position`, and `other` reads it. */
    OPTION_REVISITED
} option_kind;

typedef struct option {
    reference other;
    uint16_t position;
    uint8_t kind;
    bool spurious;
} option;

/* An event with options that have not been tried. */
typedef struct decision {
    reference event;
    double share; /* of each option: see progress.h */
} decision;

/* Before the first graph. */
void decide_begin(void);

/* How many decisions are open. */
unsigned decide_depth(void);

/*
 * The newest decision, and the next of its options; false if it has none left. It may be another
 * afterwards.
 */
const decision *decide_newest(void);
bool decide_next(option *next);

/* Makes `o` true of the event, the newest of the graph. False if the model does not allow it. */
bool decide_apply(graph *g, reference self, const option *o);

/* The newest decision is done with. */
void decide_drop(void);

/*
 * Adds a decision of the places where the store may stand, newest first, and be read by `reader`,
 * which is told of it.
 */
void decide_revisited(graph *g, reference store, reference reader);

#endif
