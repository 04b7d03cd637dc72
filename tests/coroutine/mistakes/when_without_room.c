/*
 * More operations than there is room for.
 * told: error
 * says: negative
 */
#include "mistakes.h"

#include "bide/when.h"

int main(void)
{
    bide_event event;
    bide_event_waiter a, b;
    bide_when_of(1) both;
    bide_event_init(&event, true);
    return bide_sync_wait(
        bide_when_all_of(&both, bide_event_wait(&a, &event), bide_event_wait(&b, &event))); // HERE
}
