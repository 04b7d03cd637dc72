/*
 * says: bide_semaphore_acquire takes 2 arguments, or 1 without its waiter, not 3
 */
#include <bide/async.h>
#include <bide/bide.h>

async int acquire(bide_semaphore *semaphore, bide_semaphore_waiter *waiter)
{
    return await bide_semaphore_acquire(waiter, semaphore, 1); /* HERE */
}
