/*
 * A condition is waited for with a key that is zero: it has locked no mutex.
 * told: run
 * says: a condition is waited for without its mutex: &self->lock, body, 
 */
#include "mistakes.h"

#include "bide/condition.h"

struct x {
    bide_task task;
    bide_condition condition;
    bide_condition_waiter wait;
    bide_mutex_waiter lock;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(bide_condition_wait(&self->wait, &self->condition, &self->lock)); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    bide_condition_init(&x.condition);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
