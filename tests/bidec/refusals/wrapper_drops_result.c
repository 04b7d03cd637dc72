/*
 * says: bide_once_run\(\) drops the result of pair: store it through a pointer, or cast the call to void
 */
#include <bide/async.h>
#include <bide/bide.h>

struct pair {
    int a, b;
};

async struct pair pair(void)
{
    return (struct pair){1, 2};
}

async int f(bide_once *once)
{
    return await bide_once_run(once, bide_with_timeout(1, pair())); /* HERE */
}
