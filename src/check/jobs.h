/*
 * Work in several processes: the checker explores one scenario at a time in a process.
 */
#ifndef BIDE_CHECK_JOBS_H
#define BIDE_CHECK_JOBS_H

/* Does one part, prints what is to be printed to stdout, and returns 0 to 127. */
typedef int (*job_function)(void *context, unsigned part);

/*
 * Does the parts from 0 to count - 1, at most `at_once` of them at the same time, each in a process of its own; with 1,
 * in this process. What they print appears in the order of the parts, whole. Calls `ended` for each part in that order,
 * with what it returned: JOBS_LOST if its process was ended by a signal or could not be made.
 */
enum { JOBS_LOST = 255 };
typedef void (*job_ended)(void *context, unsigned part, int status);
void jobs_run(unsigned count, unsigned at_once, job_function run, job_ended ended, void *context);

#endif
