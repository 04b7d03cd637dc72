/*
 * says: incompatible|struct s
 */
#include <bide/async.h>

struct s {
    int a;
} s;

async_generator(int *) void f(void)
{
    yield s; /* HERE */
}
