/*
 * Waiting in somebody else's event loop: an operation whose end makes a file descriptor readable,
 * for poll, epoll, and whatever is made of them. Floor: schedule.
 *
 *     bide_pollable_start(&p, NULL, bide_event_wait(&wait, &event));
 *     ... poll(fds, n, ...) with bide_pollable_fd(&p) for POLLIN, among others ...
 *     if (bide_pollable_finish(&p, &status) == 0)
 *         ... it has ended, with `status` ...
 *
 *     IDLE --start--> BEGUN --it ends, on any thread--> ENDED, readable --finish--> IDLE
 *
 * One operation at a time; the next may be started when it is finished. The owner of the loop
 * starts, finishes, cancels and destroys, one call at a time; the operation runs and ends wherever
 * its context's scheduler has it. An operation costs a write to an eventfd, and a read.
 *
 * Why it is correct: src/schedule/pollable.c.
 */
#ifndef BIDE_POLLABLE_H
#define BIDE_POLLABLE_H

#include "bide/extend/root.h"

BIDE_EXTERN_C_BEGIN

/* The caller's memory; it stays where it is. */
typedef struct bide_pollable {
    bide_root root; /* of the operation, while there is one */
    bide_atomic(uint32_t) state;
    int fd_and_1_;     /* 0: none */
    uint64_t deadline; /* of the owner */
} bide_pollable;

/*
 * Makes one, with an eventfd of its own that is closed on exec; with a pipe if the system has no eventfd.
 * Its number is never 0, 1 or 2, even if a standard stream is closed: so a program whose limit of
 * descriptors is 3 has none.
 * After an error there is nothing to destroy.
 * Threads: any. Errors: -EMFILE, -ENFILE, -ENODEV, -ENOMEM.
 */
int bide_pollable_init(bide_pollable *pollable);

/*
 * Closes the descriptor. Nothing may be under way: what was started has been finished, or it is
 * misuse. Take the descriptor out of an epoll set before. A struct of zeros is left as it is.
 * Threads: the owner's.
 */
#define bide_pollable_destroy(pollable) \
    bide_pollable_destroy_(pollable,    \
                           BIDE_MISUSE_("a pollable is destroyed while it is in use", #pollable))

void bide_pollable_destroy_(bide_pollable *pollable, const char *what, const char *where,
                            const char *file, unsigned line);

/*
 * The descriptor, the same from init to destroy. To be polled for reading, and for nothing else:
 * what somebody else writes to it makes it readable, and what somebody else reads from it may be
 * the end of the operation.
 * Threads: any. Errors: none. Progress: wait-free.
 */
BIDE_INLINE int bide_pollable_fd(const bide_pollable *pollable)
{
    return pollable->fd_and_1_ - 1;
}

/*
 * Starts `awaiter` (a task, or any operation) on the scheduler of `context`, or of
 * bide_default_context if that is NULL: then it starts on this thread. The awaiter is the
 * pollable's until it is finished. So is the context's stop source, if it has one, requests on
 * which reach the awaiter. If the operation has ended already, the descriptor is readable when this
 * returns. Starting a second one is misuse.
 * Threads: the owner's. Suspends: never.
 */
void bide_pollable_start(bide_pollable *pollable, const bide_context *context,
                         bide_awaiter *awaiter);

/*
 * Takes the result, if the operation has ended: 0, its status is in *status, the descriptor is not
 * readable any more, and nothing refers to the awaiter. After a deadline that was set has passed,
 * the first call asks the operation to stop.
 * Threads: the owner's. Errors: -EINPROGRESS (it has not ended), -EINVAL (nothing was started).
 * Progress: wait-free, a system call.
 */
int bide_pollable_finish(bide_pollable *pollable, int *status);

/*
 * Asks the operation to stop, with `reason`, -ECANCELED or -ETIMEDOUT; it ends as stop.h says, in
 * its own time, and is to be finished as ever. Does nothing if nothing is under way.
 * Threads: the owner's. Progress: as bide_stop_request.
 */
void bide_pollable_cancel(bide_pollable *pollable, int reason);

/*
 * Sets a deadline for the operation under way, in nanoseconds of bide_platform.now(); BIDE_FOREVER
 * takes it back. The descriptor does not report it: poll with the timeout below, and call
 * bide_pollable_finish whatever poll returns.
 * Threads: the owner's. Progress: wait-free.
 */
BIDE_INLINE void bide_pollable_set_deadline(bide_pollable *pollable, uint64_t deadline)
{
    pollable->deadline = deadline;
}

/*
 * For how many milliseconds to poll: until the deadline, rounded up; -1 if there is none, or it has
 * done its work.
 * Threads: the owner's. Errors: none. Progress: wait-free.
 */
int bide_pollable_timeout(const bide_pollable *pollable);

BIDE_EXTERN_C_END

#endif
