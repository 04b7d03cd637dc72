/*
 * says: await takes a call of an async function
 */
#include <bide/async.h>

async int g(int n)
{
    return await n; /* HERE */
}
