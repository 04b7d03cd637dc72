/*
 * A thread blocks until a deadline that is a duration.
 * told: run
 * says: a deadline lies before the process began: is it a duration \(bide_with_timeout, bide_sleep_for\)\?, main,
 */
#include "mistakes.h"

int main(void)
{
    bide_event event;
    bide_clock_began_ = BIDE_SECONDS(1000); /* (this platform has no clock) */
    bide_event_init(&event, false);
    return bide_event_wait_blocking(&event, BIDE_MILLISECONDS(50)); // HERE
}
