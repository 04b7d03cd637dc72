/*
 * says: the first member of the kind own has to be bide_frame frame
 */
#include <bide/async.h>

typedef struct own {
    int member;
    bide_frame frame;
} own;

static const bide_coroutine_type own_type = {.name = "own"};

async_kind(own) int f(void) /* HERE */
{
    return 0;
}
