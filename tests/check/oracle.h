/*
 * Which executions of a litmus program RC11 allows, found in another way than the checker's: all candidates are
 * made, each choice of what every load reads and of how the stores to each location stand, and those are kept
 * that satisfy the axioms, which are written down here as the paper has them. Nothing is shared with
 * src/check.
 */
#ifndef BIDE_TESTS_ORACLE_H
#define BIDE_TESTS_ORACLE_H

#include "litmus.h"

void oracle_explore(const litmus_program *program, litmus_outcomes *outcomes);

/* About how many candidates it would look at. */
double oracle_cost(const litmus_program *program);

#endif
