/*
 * A thread pool whose workers each have a loop with input and output: coroutines that wait for
 * descriptors, on as many threads as there are processors. Floor: io.
 *
 *     bide_thread_pool *pool;
 *     if (bide_io_pool_create(&pool, NULL) == 0) {
 *         bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
 *         status = bide_sync_wait_in(&context, main_run(&frame));
 *         bide_thread_pool_destroy(pool);
 *     }
 *
 * Everything in thread_pool.h holds for it. Its coroutines may also await sockets, files and other
 * descriptors. A worker without work sleeps in its io_uring, or in its epoll set.
 *
 * A descriptor belongs to the worker that used it first, its home. Its operations begin and end
 * there, and wake their coroutine there. Another worker may steal the coroutine, as any that is
 * ready; its next operation on the descriptor is sent home. So a connection and its coroutine stay
 * together while the load is even, and expensive work is spread.
 *
 *     one coroutine a connection     as on a loop
 *     several on one descriptor      each direction has its line; operations end in the order in which
 *                                    they reached the home
 *     bide_close elsewhere           waits until the home's coroutine suspends
 *     bide_close before any use      there is no home yet: by the thread that would use it
 *
 * A server may run here (server.h), and pool_server.h has one for each worker. "Limits" are below.
 */
#ifndef BIDE_IO_POOL_H
#define BIDE_IO_POOL_H

#include "bide/loop.h"
#include "bide/thread_pool.h"

BIDE_EXTERN_C_BEGIN

/* Options of a pool. All zero is a good start. */
typedef struct bide_io_pool_options {
    bide_thread_pool_options threads; /* without spare_threads: "Limits" */
    bide_loop_options loop; /* of each worker; `times_runs` is that of `threads` */
} bide_io_pool_options;

/*
 * Starts a pool and puts it in *pool; bide_thread_pool_destroy ends it. `options` is copied; NULL:
 * all zero. If it fails nothing is left.
 * Threads: any. Errors: those of bide_thread_pool_create_with and of bide_loop_create, -EINVAL (it has
 * `spare_threads`). Progress: blocks.
 */
int bide_io_pool_create(bide_thread_pool **pool, const bide_io_pool_options *options);

/*
 * Which back end its workers run, and why. The name is "mixed" if the kernel refused some of them an
 * io_uring, for example because of RLIMIT_MEMLOCK: then those use epoll. The error is that of one of
 * them.
 * Threads: any. Progress: wait-free.
 */
bide_loop_back_end bide_io_pool_backend(const bide_thread_pool *pool);

/*
 * Whether it is a pool whose workers have loops.
 * Threads: any. Progress: wait-free.
 */
bool bide_io_pool_is(const bide_thread_pool *pool);

/*
 * Makes a worker, from 0 on, the home of a descriptor that has not been used yet.
 * Threads: one at a time, of the pool, or outside of it. Errors: -EINVAL (there is no such worker, or
 * the pool has no loops), -EBADF (it is closed, or closed meanwhile), -EBUSY (it has a home). Progress: blocks until the
 * coroutine that runs on that worker suspends.
 */
int bide_io_pool_assign(bide_thread_pool *pool, unsigned worker, bide_descriptor *descriptor);

/*
 * Why it is correct: src/io/io_pool.c, and remote.c beside it.
 */

/*
 * Limits. No spare thread replaces a worker that blocks (bide_blocking_here): its descriptors would
 * wait all the same. A worker polls for completions when its coroutine suspends, every so many times. A
 * coroutine that computes for long delays the descriptors whose home is its worker;
 * bide_stall_detector_start reports it.
 *
 * Objects that share state between operations are for one loop alone, or for a strand of the pool
 * (strand.h): a connection pool, an acceptor, connecting by name, readers and writers of one
 * stream. A pool of buffers to lend is for one loop alone; receiving from it ends with -ENOTSUP
 * here. A coroutine that waits for a descriptor may be destroyed, as any of a pool, only while
 * nothing can end its wait; usually it is cancelled instead.
 */

BIDE_EXTERN_C_END

#endif
