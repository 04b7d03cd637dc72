#include <bide/bide.h>
#include <stdio.h>

struct deposit {
    bide_task task;
    bide_mutex *lock;
    long *balance, amount;
    bide_mutex_waiter key; /* who holds the mutex */
    bide_sleep sleep;
};

bide_coroutine(deposit_body)
{
    bide_begin(deposit_body, struct deposit * self);
    bide_try(bide_mutex_lock(&self->key, self->lock));
    bide_await(bide_sleep_for(&self->sleep, BIDE_MILLISECONDS(1))); /* a holder may await */
    *self->balance += self->amount;
    bide_mutex_unlock(&self->key);
    bide_end();
}

int main(void)
{
    bide_mutex lock;
    long balance = 0;
    struct deposit one, two;
    bide_when_of(2) both;
    bide_mutex_init(&lock);
    int status = bide_sync_wait(bide_when_all_of(
        &both, bide_call(&one, &deposit_body, lock = &lock, balance = &balance, amount = 30),
        bide_call(&two, &deposit_body, lock = &lock, balance = &balance, amount = 12)));
    printf("%d: %ld\n", status, balance);
}
