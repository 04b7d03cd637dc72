/*
 * says: async_kind cannot be combined with another word: a frame for f is made by async_create\(f, allocator\)
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static const bide_coroutine_type own_type = {.name = "own"};

async_created async_kind(own) int f(void); /* HERE */
