/*
 * Faults on purpose: the n-th call of a function fails with an errno of the test's choice, and what the
 * program holds is counted. Calls from the program and from static libraries count, those inside shared
 * libraries do not.
 *
 * A program is linked with faults.c and with -Wl,--wrap=F for each function F that faults.c wraps.
 *
 *     for (unsigned n = 1;; n++) {
 *         faults_clear();
 *         faults_fail(FAULT_MALLOC, n, 1, ENOMEM);
 *         status = ...;
 *         if (faults_hits(FAULT_MALLOC) == 0)
 *             break;                       // it succeeds with fewer than n calls
 *         ...                              // it failed: with which status? what is left?
 *     }
 *
 * The setting of faults is for one thread, while no other makes calls that they are for; the rest is for
 * any thread.
 */
#ifndef BIDE_FAULTS_H
#define BIDE_FAULTS_H

#include <limits.h>
#include <stddef.h>

typedef enum fault {
    FAULT_MALLOC,
    FAULT_PTHREAD_CREATE,
    FAULT_EVENTFD,
    FAULT_POLL,
    FAULT_READ,
    FAULT_FUNCTIONS /* how many there are */
} fault;

/* For `times`: from the n-th call on, each one. */
#define FAULTS_ALWAYS UINT_MAX

/* No more faults; calls and hits count from 0. */
void faults_clear(void);

/* From now on the nth call (from 1, since faults_clear) fails with `error`, and so do those after it: `times`
 * in all. What is called is not reached then. */
void faults_fail(fault function, unsigned nth, unsigned times, int error);

/* read() returns at most so many bytes; until faults_clear. */
void faults_shorten_reads(size_t most);

/* Calls since faults_clear, with those that failed on purpose, and the latter alone. */
unsigned faults_calls(fault function);
unsigned faults_hits(fault function);

/* What the program holds: blocks from malloc not freed, threads not joined, descriptors open. To be
 * compared before and after. */
long faults_blocks(void);
long faults_threads(void);
long faults_descriptors(void);

#endif
