/*
 * says: bide_sleep_for is an operation: await it
 */
#include <bide/async.h>
#include <bide/sleep.h>

async int f(int n)
{
    for (int i = 0; i < n; i++)
        bide_sleep_for(1); /* HERE */
    return 0;
}
