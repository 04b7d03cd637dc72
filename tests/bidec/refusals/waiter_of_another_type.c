/*
 * says: bide_semaphore_acquire takes 2 arguments, the first a bide_semaphore_waiter \*, or 1 without it
 */
#include <bide/async.h>
#include <bide/bide.h>

async int acquire(bide_semaphore *semaphore)
{
    return await bide_semaphore_acquire(semaphore, 1); /* HERE */
}
