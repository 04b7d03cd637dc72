/*
 * says: a function of the kind own does not yield: it has no yield_value
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static const bide_coroutine_type own_type = {.name = "own"};

async_kind(own) void f(void)
{
    yield 1; /* HERE */
}
