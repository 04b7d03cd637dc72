/*
 * A record of what coroutines do over time, as a file that https://ui.perfetto.dev and
 * chrome://tracing open. Floor: inspect.
 *
 *     bide_trace_start(file);                          // a FILE that is open for writing
 *     bide_loop_wait(loop, serve(&server));
 *     bide_trace_stop();                               // the file is complete
 *
 * The picture has a line for each thread, with its turns: from the moment when a coroutine was resumed
 * until it, and the coroutines that it transferred to, suspended. A turn shows the name of the
 * coroutine, its line, and the operation that had ended. Sleeps and steals are on the same line. Each
 * task has a line from its start to its end, with its waits and their lengths; so has each operation
 * on a descriptor that had to wait, with the descriptor, the bytes and the outcome.
 *
 * Each operation of a bide_when or a scope has a line of its own too. Its first wait is not shown if it
 * began in another coroutine's turn.
 *
 * Any thread may start and stop a trace. An await that does not suspend leaves no mark, so it costs
 * nothing. A turn costs about 200 ns during a trace, and a load and a branch otherwise.
 *
 * Marks are kept in memory, 64 bytes each, and written by the stop. If memory runs out, or after four
 * million marks, later marks are dropped, and the file says how many.
 *
 * Why it is correct: src/inspect/trace.c.
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
 * is written before that. A coroutine that runs already is seen from its next turn on.
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
