/*
 * The holder of a mutex locks it again with its key: it would wait for itself.
 * told: run
 * says: a key that holds a mutex is used for another lock: &key, main, 
 */
#include "mistakes.h"

int main(void)
{
    bide_mutex mutex;
    bide_mutex_waiter key;
    bide_mutex_init(&mutex);
    if (!bide_mutex_try_lock(&key, &mutex))
        return 1;
    return bide_mutex_lock_blocking(&key, &mutex, BIDE_FOREVER); // HERE
}
