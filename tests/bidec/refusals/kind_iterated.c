/*
 * says: f is of the kind own: async_for takes generators of the language
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

typedef int own_value;

static bide_frame *yields(bide_frame *frame, void *value)
{
    (void)frame, (void)value;
    return NULL;
}

static const bide_coroutine_type own_type = {.name = "own", .yield_value = yields};

async_kind(own) void f(void)
{
    yield 1;
}

async void g(void)
{
    async_for (int n, f()) /* HERE */
        (void)n;
}
