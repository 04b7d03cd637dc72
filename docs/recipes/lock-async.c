#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int deposit(bide_mutex *lock, long *balance, long amount)
{
    bide_mutex_waiter key; /* who holds the mutex */
    try await bide_mutex_lock(&key, lock);
    defer bide_mutex_unlock(&key);
    await bide_sleep_for(BIDE_MILLISECONDS(1)); /* a holder may await */
    *balance += amount;
    return 0;
}

async int both(bide_mutex *lock, long *balance)
{
    return await all(deposit(lock, balance, 30), deposit(lock, balance, 12));
}

int main(void)
{
    bide_mutex lock;
    long balance = 0;
    async_frame(both) frame;
    bide_mutex_init(&lock);
    int status = bide_sync_wait(async_both(&frame, &lock, &balance));
    printf("%d: %ld\n", status, balance);
}
