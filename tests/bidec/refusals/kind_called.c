/*
 * says: f is async: await it, or start it with async_f
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static const bide_coroutine_type own_type = {.name = "own"};

async_kind(own) int f(int n)
{
    return n;
}

async int g(void)
{
    return f(1); /* HERE */
}
