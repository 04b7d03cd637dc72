/*
 * The report of an execution: the finding, the steps that led to it, and the scenario's notes.
 */
#ifndef BIDE_CHECK_TRACE_H
#define BIDE_CHECK_TRACE_H

#include "graph.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Adds the steps of the running execution, its replay and its graph to the result. Steps that are
 * repeated are folded, except in a replay.
 */
void trace_finding(void);

/* Adds the graph of an execution that was replayed and in which nothing was found. */
void trace_replayed(void);

/* The number of a step of the running execution in its trace; 0 for INITIAL, or if it has not been run. */
unsigned trace_number(reference r);

/* The name in the source of the object of an event, or else its place in memory; valid until the next call. */
const char *trace_object(const event *e);

/* Writes a choice in words. */
void trace_choice(FILE *out, const event *e);

/* No thread can continue; `thread` is one that waits. */
void trace_blocked(unsigned thread, bool spins);

/* An execution begins: clears the notes. */
void trace_execution_began(void);

/* The execution is complete: its notes are an outcome. */
void trace_execution_ended(void);

#endif
