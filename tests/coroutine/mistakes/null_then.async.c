/*
 * NULL stands where a function is needed.
 * told: run
 * says: NULL is given for a function: bide_then, body, 
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/then.h"

static bide_event event;
static bide_event_waiter wait;
static bide_then_operation then;

async int body(void)
{
    return await bide_then(&then, bide_event_wait(&wait, &event), NULL, NULL); // HERE
}

int main(void)
{
    static struct async_body x;
    bide_event_init(&event, true);
    bide_sync_wait(async_body(&x));
    return 0;
}
