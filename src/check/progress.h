/*
 * The progress of an exploration, and its limits.
 *
 * The number of executions is not known in advance. The estimate assumes that all options of a
 * decision are equally large: each gets the same share of the decision's own share, and an
 * execution that ends adds its share to the total. So the total begins at 0, never falls, and ends
 * at 1.
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
 * `run` of `runs` sampled executions have ended. Reads the clock, and returns true if the limit of
 * time is reached.
 */
bool progress_sampled(uint64_t run, uint64_t runs);

/*
 * Shows the progress of explorations on stderr, under this name. NULL stops that. On a terminal it
 * is one line, which is written again twice a second, and cleared at the end. Elsewhere it is a
 * line after `progress_first` seconds, and after twice as many each time: a line when the whole
 * time has doubled.
 */
void progress_show(const char *name);
enum { PROGRESS_FIRST = 10 };
extern double progress_first;

/* From now on, this process is one of several: its progress is shown as lines, on a terminal too. */
void progress_as_lines(void);

#endif
