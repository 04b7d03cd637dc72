/*
 * A static thread pool: a scheduler of n threads that share one queue. Floor: schedule.
 *
 * A coroutine that belongs to the pool resumes on any of its threads, one at a time; coroutines that are
 * ready at once run side by side.
 */
#ifndef BIDE_THREAD_POOL_H
#define BIDE_THREAD_POOL_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_thread_pool bide_thread_pool;

/*
 * Starts a pool of `threads` threads, or of one for each processor if `threads` is 0. Returns 0 and the
 * pool in *pool, or -EINVAL (more than 65536), -ENOMEM, or -EAGAIN if the system has no more threads to
 * give (then none is left).
 * The threads block all signals but those that what runs on them raises itself: SIGSEGV, SIGBUS, SIGFPE, SIGILL,
 * SIGABRT, SIGTRAP and SIGSYS.
 */
int bide_thread_pool_create(bide_thread_pool **pool, unsigned threads);

/*
 * Ends the threads, once what is queued has run, and frees the pool. Nothing that belongs to the pool may
 * be waiting any more: if a timer of it is set then, or something that was begun on it has not ended, that is told as
 * misuse, with the coroutine's name. Blocks. On one of its threads it is misuse, and told.
 */
void bide_thread_pool_destroy(bide_thread_pool *pool);

/* The pool as a scheduler, for a context. */
bide_scheduler *bide_thread_pool_scheduler(bide_thread_pool *pool);

/* How many threads it has. */
unsigned bide_thread_pool_threads(const bide_thread_pool *pool);

BIDE_EXTERN_C_END

#endif
