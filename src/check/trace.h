/*
 * The report of an execution: the finding, the steps that led to it, and the scenario's notes.
 */
#ifndef BIDE_CHECK_TRACE_H
#define BIDE_CHECK_TRACE_H

#include <stdbool.h>

/*
 * Adds the steps of the running execution, and its replay, to the result.
 */
void trace_finding(void);

/* No thread can continue; `thread` is one that waits. */
void trace_blocked(unsigned thread, bool spins);

/* An execution begins: clears the notes. */
void trace_execution_began(void);

/* The execution is complete: its notes are an outcome. */
void trace_execution_ended(void);

#endif
