/*
 * says: async_f_needs_this_size
 */
#include <bide/async.h>

async_sized(64) int f(void);

async int g(void)
{
    return 0;
}

async int f(void) /* HERE */
{
    char text[100] = "";
    await g();
    return text[0];
}
