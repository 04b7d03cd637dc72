/*
 * A running program's tasks, loops and workers, for other programs of its owner to look at: the
 * program bide-top shows them, live. Floor: io.
 *
 *     bide_monitor_start(NULL);                       // $XDG_RUNTIME_DIR/bide/PID
 *     ...
 *     bide_monitor_stop();                            // the socket's file is gone
 *
 *     $ bide-top 4711
 *
 * Nothing of it is there unless the program asks for it. The socket is the owner's alone: its file
 * has mode 0600, and a peer whose user is neither the process's nor root is refused, whatever the
 * file has come to allow.
 *
 * A thread of its own answers, not a loop: what one most wants to see is a loop that is held up, and
 * a program may have none. It stops nobody. It reads as bide_dump does (dump.h), and takes the locks
 * of the lists for a few instructions. While nobody is connected it sleeps. While somebody is, it
 * rests four times as long as each look at the tasks took, so that it takes a fifth of one processor
 * at most, however many there are. Its memory is bounded too: tasks are counted in groups, of those
 * that stand at the same line and wait for the same thing, and shown one by one on request.
 *
 * The path is what the options name, or the environment variable BIDE_MONITOR, or
 * $XDG_RUNTIME_DIR/bide/PID, or, where there is no such directory, /tmp/bide-UID/PID. A file that a
 * program has left that ended without removing it is replaced.
 *
 * The protocol is lines: a command, and records in JSON as an answer. docs/monitor.md describes it.
 *
 * In a child of fork there is no monitor; it may start one.
 *
 * Why it is right: src/monitor/monitor.c.
 */
#ifndef BIDE_MONITOR_H
#define BIDE_MONITOR_H

#include "bide/compiler.h"

#include <stddef.h>

BIDE_EXTERN_C_BEGIN

/* What is to be told, and where. All zero is a good beginning. */
typedef struct bide_monitor_options {
    const char *path; /* of the socket, which is made anew; copied; NULL: see above */
    const char *name; /* the program's, to be shown; copied, 63 bytes at most; NULL: as it was run */
} bide_monitor_options;

/*
 * Begins to listen, and starts the thread. One for the process. `options` may be NULL. The
 * environment is not asked in programs that run with another user's rights (secure_getenv(3)).
 * Threads: any. Errors: -EALREADY (there is one), -ENAMETOOLONG (the path does not fit into a
 * socket's address), -EADDRINUSE (another process listens there), -EPERM (the directory below /tmp
 * is another user's, or others may write to it), -EEXIST (something stands there that is no socket
 * of this user's), -EAGAIN (the system has no more threads to give), -ENOMEM, -EMFILE, those of
 * mkdir(2), bind(2) and listen(2); nothing is left then. Suspends: never. Progress: blocks.
 */
int bide_monitor_start(const bide_monitor_options *options);

/*
 * Ends it: the connections are closed, the socket's file is removed, if it is still its own, and the
 * thread has ended.
 * Threads: any. Errors: -EALREADY (there is none). Suspends: never. Progress: blocks; while a look at
 * the tasks is under way, until that has ended.
 */
int bide_monitor_stop(void);

/*
 * Writes the path at which it listens, with a zero at the end. Returns how many bytes the path has,
 * as snprintf does; 0: there is no monitor, and nothing is written but the zero.
 * Threads: any. Progress: blocks for a moment.
 */
size_t bide_monitor_path(char *path, size_t size);

BIDE_EXTERN_C_END

#endif
