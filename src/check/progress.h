/*
 * The progress of an exploration, and its limits.
 *
 * The number of executions is not known in advance. The estimate assumes that all options of a
 * decision are equally large: each gets the same share of the decision's own share, and an execution
 * that ends adds its share to the total. So the total begins at 0, never falls, and ends at 1.
 */
#ifndef BIDE_CHECK_PROGRESS_H
#define BIDE_CHECK_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* An exploration begins. */
void progress_begin(void);

/* Begins a decision, and returns the share of each of its options. */
double progress_split(unsigned options);

/* An option is taken, or has turned out to be impossible. */
void progress_take(double share);
void progress_drop(double share);

/*
 * The execution has ended, with `depth` open decisions. Returns true if a limit is reached.
 */
bool progress_end(unsigned depth);

/*
 * If stderr is a terminal, shows the progress of explorations there, under this name. NULL stops that
 * and clears the line.
 */
void progress_show(const char *name);

/* From now on, nothing is shown: this process is one of several. */
void progress_hide(void);

#endif
