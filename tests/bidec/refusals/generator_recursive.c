/*
 * says: walk awaits itself: its frame would have to contain itself; declare it
 */
#include <bide/async.h>

recursive_generator(int) void walk(int depth)
{
    if (depth > 0)
        yield_from walk(depth - 1); /* HERE */
    yield depth;
}
