/*
 * NULL stands where a function is needed.
 * told: run
 * says: NULL is given for a function: bide_stop_callback_init, body, 
 */
#include "mistakes.h"

#include "bide/stop_callback.h"

struct x {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
    bide_stop_callback callback;
};

bide_coroutine(body)
{
    bide_begin(body, x *self);
    bide_event_init(&self->event, true);
    bide_stop_callback_init(&self->callback, NULL, bide_this_context(), NULL, self); // HERE
    bide_end();
}

int main()
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
