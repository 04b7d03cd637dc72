/*
 * says: no member named 'other'|has no member named .other|field designator 'other'
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static const bide_coroutine_type own_type = {.name = "own"};

async_kind(own, .other = n) int f(int n) /* HERE */
{
    return n;
}
