/*
 * What ends a program inside a scenario, a signal or exit(), ends the execution instead, and is a
 * finding.
 */
#ifndef BIDE_CHECK_CRASH_H
#define BIDE_CHECK_CRASH_H

#include "graph.h"

/* While scenarios are run. What the program has set for these signals is as it was afterwards. */
void crash_begin(void);
void crash_end(void);

/*
 * Asked whenever a thread of the scenario has left: did it crash? If so, that is reported, as its,
 * and as what it did at `at` if that is not NULL.
 */
bool crash_report(unsigned thread, const bide_check_site_ *at);

#endif
