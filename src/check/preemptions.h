/*
 * The number of preemptions that a graph needs. A schedule of the graph runs one thread at a time, and
 * each load after the store that it reads. A preemption is a switch from a thread that could have
 * continued; a switch from a thread that has ended or waits is none.
 *
 * Most mistakes need few preemptions. A bound on their number makes scenarios explorable that are
 * too large otherwise, stale values included.
 */
#ifndef BIDE_CHECK_PREEMPTIONS_H
#define BIDE_CHECK_PREEMPTIONS_H

#include "graph.h"

/*
 * True if the graph, or one that grows from it, can stay within the scenario's bound, or if there is
 * no bound.
 */
bool is_within_bound(const graph *g);

#endif
