/*
 * How often threads must have been preempted for a graph to come about: told as one thread running
 * at a time, each step after what it reads, how often was a thread left that could have gone on? A
 * thread that has come to its end, or waits, is left for nothing.
 *
 * Most mistakes need few. With a bound, a scenario that is too large to be seen whole is seen in
 * its likeliest parts, stale values and all.
 */
#ifndef BIDE_CHECK_PREEMPTIONS_H
#define BIDE_CHECK_PREEMPTIONS_H

#include "graph.h"

/*
 * Can the graph, or one that grows from it, stay within the scenario's bound? True if there is
 * none.
 */
bool is_within_bound(const graph *g);

#endif
