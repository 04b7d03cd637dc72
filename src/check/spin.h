/*
 * Threads that spin. One that has read the same all through a number of rounds of its loop would go
 * on so until another thread does something: it is blocked. If instead it would give up after so
 * many rounds, what it does then is not looked at, and that is to be told. So at each place where a
 * thread spins, the first time, it is let go on through rounds that are no steps but read the same
 * again.
 */
#ifndef BIDE_CHECK_SPIN_H
#define BIDE_CHECK_SPIN_H

#include "execution.h"
#include "locations.h"

/* Before a scenario. */
void spin_forget(void);

/* Before each execution, for each thread. */
void spin_begin(thread_record *t);

/*
 * The running thread begins another round of a loop. If it reads the same again, it will until
 * another thread does something: a spin.
 */
void spin_relax(void);

/* The running thread has looked at the clock. */
void spin_look_at_time(void);

/*
 * A step of the running thread, which was let go on: the step of its period that is this one again.
 */
const event *spin_step(const operation *op, uintptr_t address, hidden which, reference *self);

#endif
