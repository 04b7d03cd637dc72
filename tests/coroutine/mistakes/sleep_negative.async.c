/*
 * An async function sleeps for a negative number of milliseconds.
 * told: run
 * says: a duration is negative: &sleep, body, 
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/sleep.h"

static bide_sleep sleep;

async int body(int milliseconds)
{
    return await bide_sleep_for(&sleep, BIDE_MILLISECONDS(milliseconds)); // HERE
}

int main(void)
{
    static struct async_body x;
    bide_sync_wait(async_body(&x, -20));
    return 0;
}
