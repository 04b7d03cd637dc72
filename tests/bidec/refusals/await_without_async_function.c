/*
 * says: await is used in main, which is a plain function
 */
#include <bide/async.h>
#include <bide/sleep.h>

int main(void)
{
    await bide_sleep_for(1); /* HERE */
    return 0;
}
