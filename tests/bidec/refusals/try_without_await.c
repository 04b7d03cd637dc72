/*
 * says: try stands before an await, whose errors it passes on: try await f
 */
#include <bide/async.h>

async int f(void)
{
    return 1;
}

async int g(void)
{
    int status = try f(); /* HERE */
    return status + await f();
}
