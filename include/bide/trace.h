/*
 * A record of what coroutines do over time, as a file that https://ui.perfetto.dev and
 * chrome://tracing open. Floor: schedule.
 *
 *     bide_trace_start(file);                          // a FILE that is open for writing
 *     bide_loop_wait(loop, serve(&server));
 *     bide_trace_stop();                               // and all is in the file
 *
 * The picture has a line for each thread, with its turns: from where a coroutine was resumed to
 * where that, and what it transferred to, suspended. A turn bears the name of the coroutine, where
 * it went on, and what had ended for it. On the same line stand sleeps and steals. Each task has a
 * line from its begin to its end, with what it waited for, and how long; and each operation on a
 * descriptor that had to wait has one, with the descriptor, the bytes and the outcome.
 *
 * A line of its own has also each operation of a bide_when or a scope. What it waits for first is not
 * shown if it began in another's turn.
 *
 * An await that does not suspend leaves no mark. So a trace costs nothing where nothing is waited
 * for; a turn costs about 200 ns while a trace is being made, and a load and a branch otherwise.
 *
 * What is recorded is kept in memory, 64 bytes a mark, and written by the stop. When there is no
 * memory, or there are four million marks, what comes later is left out, and the file says how much.
 *
 * Why it is right: src/inspect/trace.c.
 *
 * Source: the Trace Event Format (Chromium project), in JSON.
 */
#ifndef BIDE_TRACE_H
#define BIDE_TRACE_H

#include "bide/compiler.h"

#include <stdio.h>

BIDE_EXTERN_C_BEGIN

/*
 * Begins a trace of the whole process. `file` is the caller's, and stays open until the stop; nothing
 * is written before that. What runs already is seen from its next turn on.
 * Threads: any. Errors: -EALREADY (there is one). Suspends: never. Progress: blocks.
 */
int bide_trace_start(FILE *file);

/*
 * Ends it and writes it to the file, which stays open. When it returns nothing is recorded any more.
 * A child of fork has no trace, and its parent's file is left alone there.
 * Threads: any that does not hold the file's lock. Errors: -EALREADY (there is none), -ENOMEM
 * (nothing was written), -EIO. Suspends: never. Progress: blocks, on the file.
 */
int bide_trace_stop(void);

BIDE_EXTERN_C_END

#endif
