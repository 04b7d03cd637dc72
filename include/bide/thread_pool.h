/*
 * A static thread pool: a scheduler of n threads that share one queue. Floor: schedule.
 *
 *     bide_thread_pool *pool;
 *     if (bide_thread_pool_create(&pool, 0) == 0) {                // a thread for each processor
 *         bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
 *         status = bide_sync_wait_in(&context, main_run(&frame));
 *         bide_thread_pool_destroy(pool);
 *     }
 *
 * A coroutine that belongs to the pool resumes on any of its threads, one at a time; coroutines
 * that are ready at once run side by side. It costs a lock to post a coroutine to the pool, and one
 * to take it.
 *
 * Why it is right: src/schedule/thread_pool.c.
 */
#ifndef BIDE_THREAD_POOL_H
#define BIDE_THREAD_POOL_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_thread_pool bide_thread_pool;

/*
 * Starts a pool of `threads` threads, or of one for each processor if `threads` is 0, and puts it
 * in *pool. If it fails no thread is left. The threads block all signals except those that the code
 * on them raises itself: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP and SIGSYS.
 * Threads: any. Errors: -EINVAL (more than 65536), -ENOMEM, -EAGAIN (the system has no more threads
 * to give). Progress: blocks.
 */
int bide_thread_pool_create(bide_thread_pool **pool, unsigned threads);

/*
 * Ends the threads, once what is queued has run, and frees the pool. Nothing that belongs to the
 * pool may be waiting any more: a timer that is still set, or something that was begun on the pool
 * and has not ended, is told as misuse, with the coroutine's name. On one of the pool's own threads
 * it is misuse too, and told.
 * Threads: any, except the pool's own. Progress: blocks.
 */
void bide_thread_pool_destroy(bide_thread_pool *pool);

/*
 * The pool as a scheduler, for a context.
 * Threads: any. Progress: wait-free.
 */
bide_scheduler *bide_thread_pool_scheduler(bide_thread_pool *pool);

/*
 * How many threads the pool has.
 * Threads: any. Progress: wait-free.
 */
unsigned bide_thread_pool_threads(const bide_thread_pool *pool);

BIDE_EXTERN_C_END

#endif
