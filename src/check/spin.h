/*
 * Threads that spin. A thread that has read the same values in several rounds of its loop would read
 * them again until another thread takes a step, so it is blocked. If the loop gives up after some
 * number of rounds instead, the code after the loop would not be checked, which is reported. So the
 * first time that a thread spins at some place, it is put on trial: it runs further rounds, which
 * take no steps and read the same values again.
 */
#ifndef BIDE_CHECK_SPIN_H
#define BIDE_CHECK_SPIN_H

#include "execution.h"
#include "locations.h"

/* Before a scenario. */
void spin_reset(void);

/* Before each execution, for each thread. */
void spin_begin(thread_record *t);

/*
 * The running thread begins another round of a loop. If the rounds repeat, the thread spins.
 */
void spin_relax(void);

/* The running thread has read the clock. */
void spin_look_at_time(void);

/*
 * The running thread spins: its steps from `from` on repeat. Puts it on trial, or blocks it if there
 * was a trial at its place before.
 */
void spin_found(thread_record *t, unsigned from);

/* The store of a read-modify-write of the running thread, on trial. */
void spin_store(const operation *op, uint64_t value, const reference *load);

/*
 * A step of the running thread on trial: returns the step of the period that it repeats.
 */
const event *spin_step(const operation *op, uintptr_t address, hidden which, reference *self);

#endif
