/*
 * Injected faults: the n-th call of a function fails with an errno of the test's choice, and the resources of
 * the program are counted. Calls from the program and from static libraries count, calls inside shared
 * libraries do not.
 *
 * A scenario makes something, uses it and destroys it. It is run with its first call failing, then its
 * second, until it makes no more calls; after each run nothing may be left:
 *
 *     static int make_pool(void *argument)         // returns 0 or a negative errno
 *     ...
 *     assert_int_equal(faults_for_each_n(FAULT_MALLOC, ENOMEM, make_pool, NULL), 1);
 *
 * Faults can also be set by hand: faults_clear, faults_fail, then check faults_hits. Programs that need this
 * use the dependency `faults` of tests/meson.build.
 *
 * One thread sets faults, while no other makes the affected calls; any thread may use the other functions.
 */
#ifndef BIDE_FAULTS_H
#define BIDE_FAULTS_H

#include "testing.h"

#include <limits.h>
#include <stdbool.h>

/* The functions that can be made to fail. (free and pthread_join cannot: both are only counted.) */
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
    FAULT_PPOLL,
    FAULT_READ,
    FAULT_WRITE,
    FAULT_CLOSE, /* closes, and reports an error anyway, as Linux does */
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
    FAULT_EPOLL_PWAIT2,
    FAULT_FUNCTIONS /* how many there are */
} fault;

/*
 * The call that makes a descriptor by which one thread wakes another's poll (descriptors.h), and the number of
 * descriptors that it makes.
 */
#if defined BIDE_HAS_EVENTFD && !BIDE_HAS_EVENTFD
#define FAULT_RAISED FAULT_PIPE2
enum { FAULTS_RAISED_ENDS = 2 };
#else
#define FAULT_RAISED FAULT_EVENTFD
enum { FAULTS_RAISED_ENDS = 1 };
#endif

/* For `times`: the n-th call, and every later one. */
#define FAULTS_ALWAYS UINT_MAX

/* No more faults; calls and hits count from 0. */
void faults_clear(void);

/*
 * From now on the nth call (from 1, since faults_clear) fails with `error`, and so do the calls after it:
 * `times` in all. The function is not reached then.
 */
void faults_fail(fault function, unsigned nth, unsigned times, int error);

/* read() and recv() return, or write() and send() accept, at most so many bytes; until faults_clear. */
void faults_shorten_reads(size_t max);
void faults_shorten_writes(size_t max);

/* Calls since faults_clear, including the failures on purpose; and the number of these failures. */
unsigned faults_calls(fault function);
unsigned faults_hits(fault function);

/*
 * The resources of the program: blocks not freed, threads not joined, descriptors open. To be compared before
 * and after.
 */
long faults_blocks(void);
long faults_threads(void);
long faults_descriptors(void);

/* Returns 0 or a negative errno, and leaves nothing either way. Sets no faults. */
typedef int faults_scenario(void *argument);

/* The results of the runs of a scenario. */
typedef struct faults_result {
    unsigned calls; /* of the function, in the last run, which met no fault */
    bool good;
    char what[200]; /* if it failed: the first wrong result */
} faults_result;

/*
 * Runs the scenario with the nth call failing with `error`, and the next ones up to `times` in all; for each
 * n from 1, until a run meets no fault. A run that meets one must return -error if `reported`, and 0
 * otherwise. A run that meets none must return 0. No run may leave anything.
 */
faults_result faults_try_each_n(fault function, unsigned times, int error, bool reported,
                                faults_scenario *scenario, void *argument);

/* The same, for faults that must be reported. Returns the number of calls. Or fails the test. */
static inline unsigned faults_for_each_n(fault function, int error, faults_scenario *scenario,
                                         void *argument)
{
    faults_result result = faults_try_each_n(function, 1, error, true, scenario, argument);
    if (!result.good)
        fail_msg("%s", result.what);
    return result.calls;
}

/* The same, for faults that must be invisible: EINTR, EAGAIN and other reasons to retry. */
static inline unsigned faults_survive_each_n(fault function, unsigned times, int error,
                                             faults_scenario *scenario, void *argument)
{
    faults_result result = faults_try_each_n(function, times, error, false, scenario, argument);
    if (!result.good)
        fail_msg("%s", result.what);
    return result.calls;
}

#endif
