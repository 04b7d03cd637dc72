/*
 * says: the kind own takes a value \(its return_value\): declare own_result, the type of that
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static void takes(bide_frame *frame, void *value)
{
    (void)frame, (void)value;
}

static const bide_coroutine_type own_type = {.name = "own", .return_value = takes};

async_kind(own) int f(void) /* HERE */
{
    return 0;
}
