/*
 * Faults on purpose: the n-th call of a function fails with an errno of the test's choice, and what the
 * program holds is counted. Calls from the program and from static libraries count, those inside shared
 * libraries do not.
 *
 * A scenario makes something, uses it and takes it down again. It is run with its first call failing, then
 * its second, until it makes no more calls; after each run nothing may be left:
 *
 *     static int make_pool(void *argument)         // returns 0 or a negative errno
 *     ...
 *     assert_int_equal(faults_for_each_n(FAULT_MALLOC, ENOMEM, make_pool, NULL), 1);
 *
 * or faults are set by hand: faults_clear, faults_fail, then look at faults_hits. For a program that needs
 * this, tests/meson.build has the dependency `faults`.
 *
 * Setting faults is for one thread, while no other makes calls that they are for; the rest is for any thread.
 */
#ifndef BIDE_FAULTS_H
#define BIDE_FAULTS_H

#include "testing.h"

#include <limits.h>
#include <stdbool.h>

/* The functions that can be made to fail. (To free and to join cannot: both are only counted.) */
typedef enum fault {
    FAULT_MALLOC,
    FAULT_CALLOC,
    FAULT_REALLOC,
    FAULT_ALIGNED_ALLOC,
    FAULT_PTHREAD_CREATE,
    FAULT_EVENTFD,
    FAULT_TIMERFD_CREATE,
    FAULT_EPOLL_CREATE1,
    FAULT_EPOLL_CTL,
    FAULT_EPOLL_WAIT,
    FAULT_POLL,
    FAULT_READ,
    FAULT_WRITE,
    FAULT_CLOSE, /* closes, and reports an error all the same, as Linux does */
    FAULT_FCNTL,
    FAULT_SOCKET,
    FAULT_ACCEPT4,
    FAULT_CONNECT,
    FAULT_RECV,
    FAULT_SEND,
    FAULT_RECVMMSG,
    FAULT_SENDMMSG,
    FAULT_SPLICE,
    FAULT_SENDFILE,
    FAULT_PREADV2,
    FAULT_TEE,
    FAULT_PIPE2,
    FAULT_MMAP,
    FAULT_GETDENTS64, /* by way of syscall() */
    FAULT_FUNCTIONS   /* how many there are */
} fault;

/* For `times`: from the n-th call on, each one. */
#define FAULTS_ALWAYS UINT_MAX

/* No more faults; calls and hits count from 0. */
void faults_clear(void);

/* From now on the nth call (from 1, since faults_clear) fails with `error`, and so do those after it: `times`
 * in all. What is called is not reached then. */
void faults_fail(fault function, unsigned nth, unsigned times, int error);

/* read() and recv() return, or write() and send() take, at most so many bytes; until faults_clear. */
void faults_shorten_reads(size_t max);
void faults_shorten_writes(size_t max);

/* Calls since faults_clear, with those that failed on purpose, and the latter alone. */
unsigned faults_calls(fault function);
unsigned faults_hits(fault function);

/* What the program holds: blocks not freed, threads not joined, descriptors open. To be compared before and
 * after. */
long faults_blocks(void);
long faults_threads(void);
long faults_descriptors(void);

/* Returns 0 or a negative errno, and leaves nothing either way. Sets no faults. */
typedef int faults_scenario(void *argument);

/* How the runs of a scenario went. */
typedef struct faults_result {
    unsigned calls; /* of the function, in the last run, which met no fault */
    bool good;
    char what[200]; /* if it is not good: what the first run that went wrong did */
} faults_result;

/*
 * Runs the scenario with the nth call failing with `error`, and the next ones up to `times` in all; for each
 * n from 1, until a run meets no fault. A run that meets one must return -error if `reported`, and 0
 * otherwise; one that meets none must return 0; no run may leave anything.
 */
faults_result faults_try_each_n(fault function, unsigned times, int error, bool reported,
                                faults_scenario *scenario, void *argument);

/* The same, where each fault must be reported. Returns how many calls there are. Or fails the test. */
static inline unsigned faults_for_each_n(fault function, int error, faults_scenario *scenario,
                                         void *argument)
{
    faults_result result = faults_try_each_n(function, 1, error, true, scenario, argument);
    if (!result.good)
        fail_msg("%s", result.what);
    return result.calls;
}

/* The same, where nobody may notice: for EINTR, EAGAIN and what else there is to be tried again. */
static inline unsigned faults_survive_each_n(fault function, unsigned times, int error,
                                             faults_scenario *scenario, void *argument)
{
    faults_result result = faults_try_each_n(function, times, error, false, scenario, argument);
    if (!result.good)
        fail_msg("%s", result.what);
    return result.calls;
}

#endif
