/*
 * says: the kind own yields \(its yield_value\): declare own_value, the type of that
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static bide_frame *yields(bide_frame *frame, void *value)
{
    (void)frame, (void)value;
    return NULL;
}

static const bide_coroutine_type own_type = {.name = "own", .yield_value = yields};

async_kind(own) void f(void)
{
    yield 1; /* HERE */
}
