/*
 * says: await is not allowed in f, which is a generator\(...\): async_generator\(...\) may await
 */
#include <bide/async.h>
#include <bide/sleep.h>

generator(int) void f(void)
{
    yield 1;
    await bide_sleep_for(1); /* HERE */
}
