/*
 * A running program's tasks, loops and workers, for its owner's other programs to look at: the
 * program bide-top shows them, live. Floor: monitor.
 *
 *     bide_monitor_start(NULL);                       // $XDG_RUNTIME_DIR/bide/PID
 *     ...
 *     bide_monitor_stop();                            // the socket's file is gone
 *
 *     $ bide-top 4711
 *
 * Any thread may start and stop it. Without bide_monitor_start there is no monitor. The socket is
 * the owner's alone: its file has mode 0600, and a peer whose user is neither the process's nor
 * root is rejected, whatever the file's mode has become.
 *
 * A thread of its own answers, not a loop: the loop itself may hang, and a program may have
 * none. It blocks no other thread. It reads as bide_dump does (dump.h), and takes the locks of the
 * lists for a few instructions. Without a client it sleeps. With one, it rests four times as long
 * as each look at the tasks took, so it uses at most a fifth of one processor. Its memory is
 * bounded too: it counts tasks in groups, of those at the same line that wait for the same thing,
 * and shows single tasks on request.
 *
 * The path is the options', or the environment variable BIDE_MONITOR, or $XDG_RUNTIME_DIR/bide/PID,
 * or, if there is no such directory, /tmp/bide-UID/PID. A file that an earlier program has left is
 * replaced.
 *
 * The protocol is lines: a command, and records in JSON as an answer (docs/monitor-protocol.md). In
 * a child of fork there is no monitor; it may start one.
 */
#ifndef BIDE_MONITOR_H
#define BIDE_MONITOR_H

#include "bide/compiler.h"

#include <stddef.h>

BIDE_EXTERN_C_BEGIN

/* Options of a monitor. All zero is a good start. */
typedef struct bide_monitor_options {
    const char *path; /* of the socket, which is made anew; copied; NULL: see above */
    const char
        *name; /* the program's, to be shown; copied, 63 bytes at most; NULL: as it was run */
} bide_monitor_options;

/*
 * Begins to listen, and starts the thread. One for the process. `options` may be NULL. The
 * environment is not asked in programs that run with another user's rights (secure_getenv(3)).
 * Threads: any. Errors: -EALREADY (there is one), -ENAMETOOLONG (the path does not fit into a
 * socket's address), -EADDRINUSE (another process listens there), -EPERM (the directory below /tmp
 * is another user's, or others may write to it), -EEXIST (the path exists and is no socket
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

/*
 * Why it is correct: src/monitor/monitor.c.
 */

BIDE_EXTERN_C_END

#endif
