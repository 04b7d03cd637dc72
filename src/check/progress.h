/*
 * How far an exploration has come, and whether it has come to a limit.
 *
 * Nobody knows how many executions there are. The estimate takes all options of a decision for
 * equally large: each gets the same share of what the decision was part of, and an execution that
 * has ended leaves the share that it had come to. So it begins with 0, never falls, and ends with
 * 1.
 */
#ifndef BIDE_CHECK_PROGRESS_H
#define BIDE_CHECK_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* An exploration begins. */
void progress_begin(void);

/* A decision with so many options begins: the share of each. */
double progress_split(unsigned options);

/* One of them is taken, or turned out to be impossible. */
void progress_take(double share);
void progress_drop(double share);

/*
 * What was taken has come to its end. `depth` decisions are open. True: no further, a limit is
 * reached.
 */
bool progress_end(unsigned depth);

/*
 * From now on the explorations' progress is shown on the terminal that stderr is, if it is one,
 * with this name. NULL: no more, and what was shown is taken away.
 */
void progress_show(const char *name);

#endif
