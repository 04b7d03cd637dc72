/*
 * Which execution graphs the memory model allows: RC11, "Repairing Sequential Consistency in
 * C/C++11" (Lahav, Vafeiadis, Kang, Hur, Dreyer, 2017). Its conditions, and where each is seen to:
 *
 *     COHERENCE   hb never contradicts what is read and in which order stores stand: `newest_known`
 *                 bounds what a load may read and where a store may go
 *     ATOMICITY   a read-modify-write's store stands right behind the one it read: explore.c
 *     SC          the order of seq_cst operations and fences has no cycle: is_sc_consistent
 *                 Of asymmetric fences (fence.h) a light one takes part in it beside heavy ones
 *                 alone: what comes between two light ones, or between a light one and another
 *                 seq_cst event, does not count. What orders nothing has no part in it either:
 *                 choices, relaxed fences, and how the platform sleeps and wakes
 *     NO-THIN-AIR program order and reads-from have no cycle: by construction, since a load reads
 *                 only stores that are there. So a load never reads a store that comes later in
 *                 its own thread's future: load buffering does not occur
 */
#ifndef BIDE_CHECK_CONSISTENCY_H
#define BIDE_CHECK_CONSISTENCY_H

#include "graph.h"

/*
 * The position of the newest store at `location` that a thread which has seen `clock` knows: it may
 * read no older one, and no store of its own may stand before it.
 */
unsigned newest_known(const graph *g, unsigned location, const vector_clock *clock);

/* Is there an order of all seq_cst operations and fences that agrees with the rest? */
bool is_sc_consistent(const graph *g);

#endif
