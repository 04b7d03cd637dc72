/*
 * Sampled executions: the thread of each step, the store that a load reads, the place of a store
 * and the value of a choice are drawn from a generator. Nothing is revisited, and no two executions
 * are compared.
 *
 * the_checker.samples holds in such an execution, and when one is replayed. Loops then run as they
 * are: rounds.c and spin.c block no thread.
 */
#ifndef BIDE_CHECK_SAMPLE_H
#define BIDE_CHECK_SAMPLE_H

#include "execution.h"

enum { SAMPLE_MAX_DEPTH = 32 }; /* of PCT */

/* Runs the executions of a sampling, until there is a finding or a limit is reached. */
void sample_all(const bide_check_sampling *sampling);

static inline bool sample_draws(void)
{
    return the_checker.samples && the_checker.replay == NULL;
}

/* ---- While executions are drawn ---- */

/* The thread that runs next; NOBODY if none can. */
unsigned sample_next_thread(void);

/* True if the thread takes the next step. */
bool sample_is_turn_of(unsigned thread);

/*
 * The running thread waits for a value that it cannot read yet. False if every thread waits, and
 * the running one is to be blocked.
 */
bool sample_waits(void);

/* The running thread has taken a step; it has repeated a round of its loop. */
void sample_step(reference self);
void sample_spins(void);

/* Until it is called with false, no other thread takes a step. */
void sample_hold(bool is_held);

/* Draws one of `count` options, which begin with the newest store. */
unsigned sample_option(event_kind kind, unsigned count);

#endif
