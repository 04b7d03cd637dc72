/*
 * A consumer publishes a sequence before the one that it has published.
 * told: run
 * says: a sequence is published that lies before the last published one: &self->consumed, body, 
 */
#include "mistakes.h"

#include "bide/sequence_barrier.h"

struct x {
    bide_task task;
    bide_sequence_barrier consumed;
    bide_event event;
    bide_event_waiter wait;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_sequence_barrier_init(&self->consumed, bide_sequence_initial());
    bide_event_init(&self->event, true);
    bide_sequence_barrier_publish(&self->consumed, 5);
    bide_sequence_barrier_publish(&self->consumed, 5); /* (no mistake) */
    bide_await(bide_event_wait(&self->wait, &self->event));
    bide_sequence_barrier_publish(&self->consumed, 3); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
