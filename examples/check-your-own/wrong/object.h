/* object.h: something shared. Dropping the last reference frees it. */
#ifndef OBJECT_H
#define OBJECT_H

#include <bide/atomic.h>

#if BIDE_CHECK
#include <bide/check.h>
#define OBJECT_ALLOC bide_check_alloc
#define OBJECT_FREE  bide_check_free
#else
#include <stdlib.h>
#define OBJECT_ALLOC malloc
#define OBJECT_FREE  free
#endif

typedef struct object {
    bide_atomic(uint32_t) references;
    int hits[2]; /* one for each user */
} object;

static inline object *object_new(uint32_t references)
{
    object *o = OBJECT_ALLOC(sizeof *o);
    if (o != NULL) {
        bide_atomic_init(&o->references, references);
        o->hits[0] = o->hits[1] = 0;
    }
    return o;
}

static inline void object_drop(object *o)
{
    if (bide_atomic_fetch_sub(&o->references, 1, relaxed) == 1)
        OBJECT_FREE(o);
}

#endif
