/*
 * The order of the seq_cst accesses of a graph that only grows, as it does where executions are
 * sampled or replayed. is_sc_consistent() looks at the whole graph each time.
 */
#ifndef BIDE_CHECK_SC_ORDER_H
#define BIDE_CHECK_SC_ORDER_H

#include "graph.h"

/* Begins with an empty graph. */
void sc_order_begin(void);

/* True if the graph with its newest event, which is not added yet, is SC-consistent. */
bool sc_order_allows(const graph *g, reference self);

/* Adds the newest event of the graph. */
void sc_order_add(const graph *g, reference self);

/* The accesses that all calls have looked at. */
extern uint64_t sc_order_looks;

#endif
