/*
 * One execution as a text, to be run again: for each step, in the order in which they were run, the
 * number of the thread, and what was not the newest there was:
 *
 *     1          thread 1 takes a step
 *     1x3        three of them
 *     1x0        none: thread 1 is run, and ends, or is found out, before it comes to one
 *     2<1.4      a step of thread 2, a load, which reads the store that was thread 1's step 4 (from 0)
 *     2<-        which reads the initial value
 *     2>1.4      a store, which stands right behind that one in the order of the object's stores
 *     2=1        a choice
 *     2!         a compare-exchange that fails for no reason; also 2!<1.4
 */
#ifndef BIDE_CHECK_SCRIPT_H
#define BIDE_CHECK_SCRIPT_H

#include "graph.h"

/* Writes the steps that the running execution has taken. The caller frees it. */
char *script_write(void);

/* Sets the text to be run; false if it is none. NULL: nothing is replayed. */
bool script_read(const char *text);

/* Is it the thread's turn, as far as a script says? */
bool script_is_turn_of(unsigned thread);

/* Whose turn it is, THREADS if no script says. */
unsigned script_next_thread(void);

/*
 * Does the script ask for this option of the next step? `what` is the sign that stands before
 * `other` or `choice`. The options are asked for in order, newest first.
 */
bool script_wants(char what, reference other, unsigned choice, bool spurious);

/* A step was taken, of this kind; or the thread was run and took none. */
void script_step(event_kind kind);
void script_no_step(unsigned thread);

/* The execution is over: is the script too? */
bool script_is_over(void);

/* The script asks for what cannot be: ends the execution. */
void script_does_not_fit(void);

#endif
