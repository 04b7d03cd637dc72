/*
 * says: f passes errors on and returns nothing, so they would be lost: try await it, or cast the await to void
 */
#include <bide/async.h>
#include <bide/sleep.h>

async void f(void)
{
    try await bide_sleep_for(1);
}

async int g(void)
{
    (void)await f();
    try await f();
    await f(); /* HERE */
    return 0;
}
