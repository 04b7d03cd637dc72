/*
 * says: yield_from takes a call of a recursive_generator, or a bide_recursive_generator
 */
#include <bide/async.h>

generator(int) void f(void)
{
    yield 1;
}

recursive_generator(int) void g(void)
{
    yield_from f(); /* HERE */
}
