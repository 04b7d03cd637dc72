/*
 * says: await is not allowed in a case label
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
