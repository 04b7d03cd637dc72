/*
 * Replays: an execution as a text, which can be run again. For each step, in order, the text has the
 * number of the thread, and the decision if it was not the newest store:
 *
 *     1          thread 1 takes a step
 *     1x3        thread 1 takes three steps
 *     1x0        thread 1 runs, and ends or has a finding before its next step; or begins to wait
 *                (if it has an equal thread, also at its gate: symmetry.h)
 *     2<1.4      thread 2 loads from the store that was thread 1's step 4 (from 0)
 *     2<-        thread 2 loads the initial value
 *     2>1.4      thread 2 stores directly after that store in the object's modification order
 *     2=1        thread 2 chooses 1
 *     2!         a compare-exchange of thread 2 fails spuriously; also 2!<1.4
 *     ~          before all steps: the execution is a sampled one (sample.h)
 */
#ifndef BIDE_CHECK_REPLAY_H
#define BIDE_CHECK_REPLAY_H

#include "graph.h"

/* Writes the steps of the running execution as a text, which the caller frees. */
char *replay_write(void);

/* Sets the text to replay; false if it is invalid. NULL: nothing is replayed. */
bool replay_read(const char *text);

/* True if the thread takes the next step, or if nothing is replayed. */
bool replay_is_turn_of(unsigned thread);

/* The thread that takes the next step; THREADS if the text is at its end or nothing is replayed. */
unsigned replay_next_thread(void);

/* True if there is a replay in which the thread takes a further step. */
bool replay_has_step_of(unsigned thread);

/*
 * True if the next step takes this option. `what` is the sign before `other` or `choice`. The options
 * are offered in order, the newest first.
 */
bool replay_wants(char what, reference other, unsigned choice, bool spurious);

/* A step of this kind was taken; or the thread was run and took none. */
void replay_step(event_kind kind);
void replay_idle_run(unsigned thread);

/* True if no step of the text is left. */
bool replay_is_finished(void);

/* Ends the execution, because the text has an impossible step. */
void replay_mismatch(void);

#endif
