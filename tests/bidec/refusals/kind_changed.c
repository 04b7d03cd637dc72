/*
 * says: f was declared with the kind own
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static const bide_coroutine_type own_type = {.name = "own"};

async_kind(own) int f(void);

async int f(void) /* HERE */
{
    return 0;
}
