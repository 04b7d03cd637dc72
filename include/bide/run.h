/*
 * A program in one call: a loop, one awaiter on it, and an end when the user asks for it. Floor: io.
 *
 *     int main(void)
 *     {
 *         static struct server server;
 *         return bide_run(bide_task_init(&server.task, &server_body)) < 0;
 *     }
 *
 * SIGINT, as a terminal sends it for Ctrl-C, or SIGTERM asks the awaiter to stop: its waits end with
 * -ECANCELED, so it has time to end in order. After the first of them both have their former action
 * again, so a second one ends a process that does not stop.
 *
 * All of that is done by the loop, between two turns of its coroutines. A coroutine that computes for a
 * long time lets the loop run by an await now and then: bide_schedule with its own scheduler ends with
 * -ECANCELED after the signal. So do other operations, also if each of them is ready at once, because
 * such a coroutine's turn ends after 200 us (stop.h). While a turn computes or blocks without an await,
 * a signal neither asks the awaiter to stop nor ends the process.
 *
 * Programs that need options of the loop, other signals, or a pool use bide_loop_wait (loop.h),
 * signal.h and bide_with_stop; this call is made of them.
 *
 * Why it is correct: src/io/run.c.
 *
 * Source: run of Python's asyncio.
 */
#ifndef BIDE_RUN_H
#define BIDE_RUN_H

#include "bide/coroutine.h"

BIDE_EXTERN_C_BEGIN

/*
 * Creates a loop, runs `awaiter` on it until it has ended, and frees the loop. All operations that
 * `awaiter` begins must have ended by then. A signal that the process ignored before, as under nohup(1),
 * stays ignored. Returns the status of `awaiter`, but 0 if that is -ECANCELED after one of the two
 * signals: then the program has done what it was asked to.
 * Threads: any but that of a loop; on several threads at once each awaiter is asked to stop. Errors: those
 * of `awaiter`, and before it has begun those of bide_loop_create and bide_signal_listen, such as -EBUSY (the
 * program handles one of the two signals itself). Progress: blocks.
 */
int bide_run(bide_awaiter *awaiter);

BIDE_EXTERN_C_END

#endif
