/*
 * Waiting for signals: any number of coroutines and threads, on any schedulers, may wait for the
 * same one. Floor: io.
 *
 *     bide_signal terminate;
 *     status = bide_signal_listen(&terminate, SIGTERM);       // from here on none is missed
 *     ...
 *     bide_try(bide_signal_wait(&self->wait, &terminate));
 *     ...
 *     bide_signal_destroy(&terminate);                            // the last one restores the old action
 *
 *     a listener     CLEAR --the signal--> SET --a wait--> CLEAR
 *
 * Any thread may listen, wait and end. Each listener gets each signal that is sent to the process
 * after it has begun to listen. It remembers one signal for which nothing waits, and merges
 * several, as the system does. Each signal ends one wait on a listener, the longest; for several
 * waiters to get every signal, each has a listener of its own.
 *
 * A handler catches the signal and notes it, and a thread of the library's, which exists while
 * there is a listener, delivers it. The handler may run on any thread that does not block the
 * signal; system calls that it interrupts are restarted if the system does that (SA_RESTART), and
 * fail with EINTR otherwise. If all threads block the signal, the library's thread takes it. So no
 * thread needs to prepare anything. But a program that blocks a signal everywhere, to take it by
 * sigwait(3) or a signalfd, loses signals that have a listener here.
 *
 * In a child of fork that continues without exec there are no listeners: the old actions are
 * restored there, and listeners of the parent get nothing.
 */
#ifndef BIDE_SIGNAL_H
#define BIDE_SIGNAL_H

#include "bide/sync_wait.h"

#include <signal.h>

BIDE_EXTERN_C_BEGIN

typedef struct bide_signal_waiter bide_signal_waiter;

/* One listener. The caller's memory until it has ended, and so have the waits on it. */
typedef struct bide_signal {
    int number;

    /* How it was when it began to listen, for the caller to know. */
    bool was_ignored; /* the process ignored it: as nohup(1) wants it to go on doing */
    bool was_blocked; /* the calling thread blocks it */

    /* of the lock of all listeners */
    bool is_set; /* it has come, and no wait has had it */
    bool has_ended;
    bide_signal_waiter *first; /* in line */
    bide_signal_waiter *last;
    struct bide_signal *next;
    struct bide_signal **place; /* among the listeners for this number */
    uint32_t generation;        /* of the process */
} bide_signal;

/* One wait. The caller's memory until it has ended. */
struct bide_signal_waiter {
    bide_awaiter awaiter;
    bide_signal *signal;
    bide_signal_waiter *next; /* in line */
    bide_signal_waiter *previous;
    int state; /* in line, has the signal, or neither */
};

/*
 * Begins to listen for signal `number`. A handler of somebody else's stays, and is reported.
 * Threads: any, but not in a signal handler. Errors: -EINVAL (there is no such signal, it cannot be
 * caught, or it is one that an instruction raises: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
 * SIGABRT), -EBUSY (somebody else handles it), -EAGAIN (no more threads), -ENOMEM. Progress: blocks
 * for a moment, and while a thread is started or ends.
 */
int bide_signal_listen(bide_signal *signal, int number);

/*
 * Waits until the signal has come since the last wait that it ended, or since it began to listen.
 * `waiter` must stay until the wait has ended. A cancelled wait has taken none, and neither
 * has one whose coroutine is destroyed: the next waiter has it.
 * Threads: any. Errors: -EPIPE (the listener has ended), -ECANCELED, -ETIMEDOUT. Suspends: unless it
 * has come. Cancel-safe: yes. Progress: blocks for a moment, for the lock of all listeners.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_signal_wait(bide_signal_waiter *waiter, bide_signal *signal);

/*
 * The same for a plain thread, which it blocks until `deadline` at most: see
 * bide_event_wait_blocking.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_signal_wait; -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_signal_wait_blocking(bide_signal *signal, uint64_t deadline)
{
    bide_signal_waiter waiter;
    return bide_sync_wait_until(bide_signal_wait(&waiter, signal), deadline);
}

#define bide_signal_wait_blocking(...) BIDE_BLOCKS_(bide_signal_wait_blocking(__VA_ARGS__))

/*
 * Has the signal come? Takes it, as a wait would.
 * Threads: any. Progress: blocks for a moment, for the lock of all listeners.
 */
bool bide_signal_try_wait(bide_signal *signal);

/*
 * Ends listening: waits end with -EPIPE. After the last listener for a signal has ended the process
 * does with it what it did before, unless somebody else has set a handler meanwhile: that one stays,
 * and is reported. One that never began, because bide_signal_listen failed, is not ended.
 * Threads: any, but not in a signal handler. Errors: -EBUSY (somebody else handles the signal by
 * now); it has ended all the same. Progress: blocks for a moment, and while a coroutine runs that a
 * signal has woken inline.
 */
int bide_signal_destroy(bide_signal *signal);

/*
 * Why it is correct: src/io/signal.c.
 */

BIDE_EXTERN_C_END

#endif
