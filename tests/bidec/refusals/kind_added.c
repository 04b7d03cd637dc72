/*
 * says: f was declared without a kind
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static const bide_coroutine_type own_type = {.name = "own"};

async int f(void);

async_kind(own) int f(void) /* HERE */
{
    return 0;
}
