/*
 * says: async_sum_created would have two meanings
 */
#include <bide/async.h>

async_created int sum(int n)
{
    return n;
}

async int sum_created(int n) /* HERE */
{
    return n;
}
