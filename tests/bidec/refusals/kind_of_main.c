/*
 * says: an async main is declared async, and nothing else
 */
#include <bide/async.h>

#include <bide/loop.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static const bide_coroutine_type own_type = {.name = "own"};

async_kind(own) int main(void) /* HERE */
{
    return 0;
}
