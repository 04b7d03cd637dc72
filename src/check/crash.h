/*
 * Crashes: a signal or a call of exit() inside of a scenario ends the execution, not the program, and
 * is a finding. So is a thread that does not return.
 */
#ifndef BIDE_CHECK_CRASH_H
#define BIDE_CHECK_CRASH_H

#include "graph.h"

/*
 * Around the run of a scenario. crash_end() restores the program's own handlers. With a limit of
 * `seconds`, unless it is 0, a thread that makes no step for a few seconds after them is a finding,
 * too: it runs an endless loop that the checker does not see, or waits for what never comes.
 */
void crash_begin(double seconds);
void crash_end(void);

/*
 * Called whenever a thread of the scenario has left. If it crashed, reports that as a finding, at the
 * place `at` if that is not NULL, and returns true.
 */
bool crash_report(unsigned thread, const bide_check_site_ *at);

#endif
