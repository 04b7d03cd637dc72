/*
 * says: yield is used in f, which is a plain function
 */
#include <bide/async.h>

void f(int n);
void f(int n)
{
    while (n-- > 0)
        yield n; /* HERE */
}
