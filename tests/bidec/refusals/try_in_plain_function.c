/*
 * says: await is used in g, which is a plain function
 */
#include <bide/async.h>

async int f(void)
{
    return 1;
}

int g(void);
int g(void)
{
    return try await f(); /* HERE */
}
