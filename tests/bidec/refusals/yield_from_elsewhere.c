/*
 * says: yield_from is allowed only in a recursive_generator
 */
#include <bide/async.h>

recursive_generator(int) void f(void)
{
    yield 1;
}

generator(int) void g(void)
{
    yield_from f(); /* HERE */
}
