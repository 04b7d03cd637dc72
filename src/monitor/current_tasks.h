/*
 * What each thread runs at this moment, and the longest turn since the last look. It is known while
 * it is watched, which costs each turn some 100 ns. Of the monitor's thread.
 */
#ifndef BIDE_IO_MONITOR_TURNS_H
#define BIDE_IO_MONITOR_TURNS_H

#include "report.h"

/* Begins and ends to watch; in turn. */
void bide_current_tasks_start_(void);
void bide_current_tasks_stop_(void);

/* A record for each thread that has run coroutines since then. */
void bide_current_tasks_report_(report *report);

#endif
