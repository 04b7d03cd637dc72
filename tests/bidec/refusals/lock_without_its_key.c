/*
 * says: bide_mutex_lock is called with its bide_mutex_waiter here: bide_mutex_unlock needs it afterwards
 */
#include <bide/async.h>
#include <bide/bide.h>

async int f(bide_mutex *mutex)
{
    return await bide_mutex_lock(mutex); /* HERE */
}
