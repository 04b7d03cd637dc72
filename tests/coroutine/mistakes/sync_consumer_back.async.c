/*
 * A consumer publishes a sequence before the one that it has published.
 * told: run
 * says: a sequence is published that lies before the last published one: &consumed, body, 
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/sequence_barrier.h"

static bide_sequence_barrier consumed;
static bide_event event;
static bide_event_waiter wait;

async void body(void)
{
    bide_sequence_barrier_publish(&consumed, 5);
    await bide_event_wait(&wait, &event);
    bide_sequence_barrier_publish(&consumed, 3); // HERE
}

int main(void)
{
    static struct async_body x;
    bide_sequence_barrier_init(&consumed, bide_sequence_initial());
    bide_event_init(&event, true);
    bide_sync_wait(async_body(&x));
    return 0;
}
