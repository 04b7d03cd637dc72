/*
 * The holder of a barging mutex tries to lock another with its key.
 * told: run
 * says: a key that holds a barging mutex is used for another lock: &key, main, 
 */
#include "mistakes.h"

#include "bide/barging_mutex.h"

int main(void)
{
    bide_barging_mutex first, second;
    bide_barging_mutex_waiter key;
    bide_barging_mutex_init(&first);
    bide_barging_mutex_init(&second);
    if (bide_barging_mutex_lock_blocking(&key, &first, BIDE_FOREVER) != 0)
        return 1;
    return bide_barging_mutex_try_lock(&key, &second); // HERE
}
