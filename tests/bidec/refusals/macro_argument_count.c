/*
 * says: bide_channel_recv takes 3 arguments, or 2 without its waiter, not 1
 */
#include <bide/async.h>
#include <bide/bide.h>

typedef bide_channel(int) numbers;

async int f(numbers *channel)
{
    return await bide_with_timeout(1, bide_channel_recv(channel)); /* HERE */
}
