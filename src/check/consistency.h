/*
 * The execution graphs that the memory model allows: RC11, "Repairing Sequential Consistency in
 * C/C++11" (Lahav, Vafeiadis, Kang, Hur, Dreyer, 2017). Its conditions, and the code that keeps them:
 *
 *     COHERENCE   hb never contradicts the reads-from and modification orders: newest_known() bounds
 *                 the stores that a load may read, and the positions of a store
 *     ATOMICITY   the store of a read-modify-write directly follows the store it read: decide.c
 *     SC          the order of seq_cst operations and fences has no cycle: is_sc_consistent().
 *                 Of the asymmetric fences (fence.h), a light one is ordered only with heavy ones:
 *                 an edge between two light fences, or between a light fence and another seq_cst
 *                 event, does not count. Events that order nothing are not part of this order:
 *                 choices, relaxed fences, and the platform's sleeps and wakes
 *     NO-THIN-AIR program order and reads-from have no cycle: by construction, since a load reads
 *                 only stores that are in the graph. So a load never reads a store that depends on
 *                 the load: load buffering does not occur
 */
#ifndef BIDE_CHECK_CONSISTENCY_H
#define BIDE_CHECK_CONSISTENCY_H

#include "graph.h"

/*
 * Returns the position of the newest store at `location` that a thread with this clock knows. The
 * thread may read no older store, and its own stores must come later in the modification order.
 */
unsigned newest_known(const graph *g, unsigned location, const vector_clock *clock);

/* True if the event orders the events before and after it in its thread. */
bool event_orders(const event *e);

/* True if there is an order of all seq_cst operations and fences that agrees with the graph. */
bool is_sc_consistent(const graph *g);

#endif
