/*
 * NULL stands where a function is needed.
 * told: run
 * says: NULL is given for a function: bide_watch_wait_for, body, 
 */
#include "mistakes.h"

#include "bide/watch.h"

struct x {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
    bide_watch_predicate_waiter change;
};

typedef bide_watch(int) int_watch;
static bide_watch_receiver(int) receiver;
static int number;

bide_coroutine(body)
{
    bide_begin(body, x *self);
    bide_event_init(&self->event, true);
    bide_await(bide_watch_wait_for(&self->change, &receiver, NULL, NULL, &number)); // HERE
    bide_end();
}

int main()
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
