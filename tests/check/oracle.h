/*
 * The executions of a litmus program that RC11 allows, found independently of the checker:
 * enumerates all candidates, that is, each choice of what every load reads and of the modification
 * orders, and keeps the candidates that satisfy the axioms, which are written as in the paper. Shares
 * nothing with src/check.
 */
#ifndef BIDE_TESTS_ORACLE_H
#define BIDE_TESTS_ORACLE_H

#include "litmus.h"

void oracle_explore(const litmus_program *program, litmus_outcomes *outcomes);

/* An estimate of the number of candidates. */
double oracle_cost(const litmus_program *program);

#endif
