/*
 * One key for two mutexes: the first could not be unlocked any more.
 * told: run
 * says: a key that holds a mutex is used for another lock: &lock, body, 
 */
#include "mistakes.h"

#include "bide/async.h"

static bide_mutex first, second;
static bide_mutex_waiter lock;

async void body(void)
{
    await bide_mutex_lock(&lock, &first);
    await bide_mutex_lock(&lock, &second); // HERE
}

int main(void)
{
    static struct async_body x;
    bide_mutex_init(&first);
    bide_mutex_init(&second);
    bide_sync_wait(async_body(&x));
    return 0;
}
