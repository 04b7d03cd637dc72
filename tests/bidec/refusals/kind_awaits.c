/*
 * says: a function of the kind own does not await \(its await_transform\)
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static const bide_coroutine_type own_type = {.name = "own", .await_transform = bide_await_forbidden};

async int g(void)
{
    return 0;
}

async_kind(own) void f(void)
{
    int n = await g(); /* HERE */
    (void)n;
}
