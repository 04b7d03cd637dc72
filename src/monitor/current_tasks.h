/*
 * The coroutine that each thread runs at this moment, and the longest turn since the last look. Watching
 * adds some 100 ns to each turn. Used by the monitor's thread only.
 */
#ifndef BIDE_IO_MONITOR_TURNS_H
#define BIDE_IO_MONITOR_TURNS_H

#include "report.h"

/* Start and stop watching, alternately. */
void bide_current_tasks_start_(void);
void bide_current_tasks_stop_(void);

/* Adds a record for each thread that has run coroutines since watching started. */
void bide_current_tasks_report_(monitor_report *report);

#endif
