/*
 * says: f is of the kind own, whose final_suspend says what follows: start it with bide_start_async
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static bide_frame *frees(bide_frame *frame, const bide_context *context)
{
    (void)context;
    bide_free(frame);
    return NULL;
}

static const bide_coroutine_type own_type = {.name = "own", .final_suspend = frees};

async_kind(own) int f(int n)
{
    return n;
}

async int g(void)
{
    return await f(1); /* HERE */
}
