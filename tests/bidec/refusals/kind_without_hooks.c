/*
 * says: the kind own has no hooks here: define static const bide_coroutine_type own_type
 */
#include <bide/async.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

extern const bide_coroutine_type own_type;

async_kind(own) int f(void); /* HERE */
