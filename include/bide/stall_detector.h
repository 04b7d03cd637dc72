/*
 * A watch over coroutines that hold their thread for too long. Floor: inspect.
 *
 *     bide_stall_detector_start(10000000, NULL, NULL);                // 10 ms; reports on stderr
 *
 *     bide: parse_body has held thread 4711 (server) for 24 ms since conn.c:42, and still runs
 *
 * A coroutine that computes for long, or makes a blocking call, delays all others of its loop. The
 * watch's own thread checks all threads that run coroutines, and reports a turn that lasts longer than
 * a bound: once while it lasts, and once at its end, with its whole length. So a turn that never ends
 * is reported too. The reported line is the coroutine's last await. A debugger shows where the thread
 * is now. Any thread may start and stop the watch.
 *
 * While there is a watch a turn costs about 100 ns more; otherwise a load and a branch.
 *
 * Why it is correct: src/inspect/stall_detector.c.
 */
#ifndef BIDE_TURN_WATCH_H
#define BIDE_TURN_WATCH_H

#include "bide/compiler.h"

BIDE_EXTERN_C_BEGIN

/* A turn that was too long. The texts are constants of the program, but for the thread's name. */
typedef struct bide_stall {
    const char *name; /* of the coroutine */
    const char *file; /* where it went on */
    unsigned line;
    const char *thread_name;
    int thread;           /* its number in the system */
    bool has_ended;       /* false: it continues */
    uint64_t nanoseconds; /* how long it took, or has taken so far */
} bide_stall;

/* The function that turns are reported to. `turn` is valid during the call. */
typedef void bide_stall_report(void *argument, const bide_stall *turn);

/*
 * Begins a watch over the whole process. A turn is reported while it lasts, when it has lasted for
 * between `bound` and twice that, in nanoseconds, and at its end if that came after `bound`.
 * `report` is called with `argument` on the watch's thread, and at the end of a turn on the turn's
 * own; on several at a time. It may not await, run coroutines, or stop the watch. NULL: a line on
 * the standard error.
 * Threads: any. Errors: -EALREADY (there is one), -EAGAIN (the system has no more threads to give).
 * Suspends: never. Progress: blocks.
 */
int bide_stall_detector_start(uint64_t bound, bide_stall_report *report, void *argument);

/*
 * Ends it. When it returns `report` is not called any more.
 * Threads: any, but not in `report`. Errors: -EALREADY (there is none). Suspends: never. Progress:
 * blocks.
 */
int bide_stall_detector_stop(void);

BIDE_EXTERN_C_END

#endif
