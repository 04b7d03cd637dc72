/*
 * One operation is given to two branches.
 * told: run
 * says: an operation is used again while it waits: bide_event_wait, first used by body \(.*flight_branches.async.c:21\), body,
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/when.h"

async void body(void)
{
    bide_event event;
    bide_event_waiter wait;
    bide_when both;
    bide_branch branches[2];
    bide_event_init(&event, false);
    bide_awaiter *operation = bide_event_wait(&wait, &event);
    bide_branch_init(&branches[0], operation);
    bide_branch_init(&branches[1], operation);
    await bide_when_all(&both, branches, 2); // HERE
}

int main(void)
{
    static struct async_body x;
    bide_sync_wait(async_body(&x));
    return 0;
}
