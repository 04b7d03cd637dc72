/*
 * A list of all coroutines of the process and what they wait for, while they run. Floor: inspect.
 *
 *     sigwait(&set, &signal);     // on a thread of its own: kill -USR1 prints the dump
 *     bide_dump(stderr);
 *
 *     task 0x7f61f0000b70 fetch_body in pool: waiting for bide_event_wait
 *       #0 read_body at conn.c:42 waiting for bide_event_wait
 *       #1 fetch_body at conn.c:80
 *     task 0x7f61f0000e20 store_body in pool: running
 *       #0 store_body at store.c:17 (running)
 *     task 0x7f61f0000fa0 store_body in pool: not started
 *     3 tasks
 *
 * A task that waits for a mutex (mutex.h, barging_mutex.h) says which. After the tasks the first 16 such
 * mutexes have a line each:
 *
 *     lock 0x7ffd5e6a1c40, for which 2 wait: held by task 0x7f61f0000b70, read_body at conn.c:42
 *
 * The holder is the coroutine in whose struct the waiter lies that has locked the mutex. If that is no
 * waiting or running task's struct, or one whose size is not known (of an async function, or a body in C++),
 * the line ends with "held".
 *
 * A task is a coroutine without an awaiting one: begun by bide_spawn, bide_sync_wait,
 * bide_run_loop_wait or bide_root_start (root.h), or by bide_scope_spawn in a scope. So each connection
 * of a server is one. It is named by its first coroutine, and by its context if that has a name; below
 * it are the coroutines that await each other, innermost first. Any thread may dump.
 *
 * Why it is correct: src/inspect/walk.c.
 *
 * Source: the task lists of kernels' debuggers; goroutine dumps.
 */
#ifndef BIDE_DUMP_H
#define BIDE_DUMP_H

#include "bide/frame.h"

#include <stdio.h>

BIDE_EXTERN_C_BEGIN

/*
 * Writes every task that lives during the whole call to `file`, and some of the tasks that begin or
 * end meanwhile.
 *
 * Nothing is stopped and nothing waits for it, except a task that begins or ends while some
 * addresses are copied. So what is shown is not of one moment. A task of which something changed
 * while it was read is shown as far as it made sense and marked (running). Where the library and
 * the bodies are compiled with NDEBUG, a coroutine that runs without its awaits' being seen may be
 * shown with what it waited for last. A task whose chain is deeper than 64 shows the innermost 64,
 * and how many more there are. A task that waits through an operation that waits for several
 * others, or elsewhere, is shown with the operation's name alone.
 *
 * In the child of a fork it shows what was begun there. Of what was begun before the fork it shows
 * all, if the parent had one thread, or nothing.
 *
 * It allocates nothing itself. A second call at the same time waits for the first.
 * Threads: any that does not hold the file's lock, in or out of a coroutine; not in a signal
 * handler. Errors: -EIO (the file had an error), -ENOSYS (memory can be read neither by
 * process_vm_readv nor through a pipe). Suspends: never. Progress: blocks, on the file.
 */
int bide_dump(FILE *file);

/*
 * The same of the tasks that were begun on `scheduler`, such as a pool that did not end by its deadline
 * (bide_thread_pool_shutdown). NULL: of all.
 * Threads: as bide_dump. Errors: as bide_dump. Suspends: never. Progress: blocks, on the file.
 */
int bide_dump_scheduler(FILE *file, const bide_scheduler *scheduler);

BIDE_EXTERN_C_END

#endif
