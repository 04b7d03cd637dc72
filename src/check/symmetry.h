/*
 * Equal threads of a scenario, of which the exploration leaves out permutations: see symmetry.c.
 */
#ifndef BIDE_CHECK_SYMMETRY_H
#define BIDE_CHECK_SYMMETRY_H

#include "execution.h"

/* True if the scenario has equal threads, and is explored. */
extern bool symmetry_is_used;

/* Before each execution. */
void symmetry_begin(void);

/*
 * The running thread is about to take the load of a read-modify-write; `again` is the event that the
 * graph has for it, or NULL. Returns the operation to take. If the load is the thread's gate, this
 * waits for the signal of the thread before.
 */
operation symmetry_pass(const operation *op, uintptr_t address, const event *again);

/*
 * The running thread is about to add a store. Does not return if its gate was passed without a signal.
 */
void symmetry_store(void);

/* True if the running thread has an equal one. */
bool symmetry_has_equal(void);

/* True if the thread waits at its gate. */
bool symmetry_holds(unsigned thread);

/*
 * Lets the first thread that waits pass its gate without a signal; returns it, or NOBODY. If no thread is blocked, the
 * threads are not equal, which is a finding.
 */
unsigned symmetry_release(void);

#endif
