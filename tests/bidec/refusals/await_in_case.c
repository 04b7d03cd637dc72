/*
 * says: a case is a constant
 */
#include <bide/async.h>

async int f(void)
{
    return 1;
}

async int g(int n)
{
    switch (n) {
    case await f(): /* HERE */
        return 1;
    }
    return 0;
}
