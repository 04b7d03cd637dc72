/*
 * What is told of executions: what was found, the steps that led there, and what the scenario
 * noted.
 */
#ifndef BIDE_CHECK_TRACE_H
#define BIDE_CHECK_TRACE_H

#include <stdbool.h>

/*
 * Something was found in the running execution: puts the steps that led there into the result, and
 * their text.
 */
void trace_finding(void);

/* Nobody can go on, and this thread, for one, waits. */
void trace_blocked(unsigned thread, bool spins);

/* An execution begins: it has noted nothing. */
void trace_execution_began(void);

/* The execution is complete: what it noted is an outcome. */
void trace_execution_ended(void);

#endif
