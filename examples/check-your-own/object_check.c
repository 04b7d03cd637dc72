/* object_check.c: two threads use an object, and each drops its reference. */
#include <bide/check.h>

#include "object.h"

struct state {
    object *shared;
};

static void share(void *p)
{
    struct state *s = p;
    s->shared = object_new(2);
}

static void use_and_drop(void *p)
{
    object *o = ((struct state *)p)->shared;
    o->hits[bide_check_thread() - 1]++;
    object_drop(o);
}

static const bide_check_scenario last_one_frees = {
    .name = "last_one_frees",
    .size = sizeof(struct state),
    .setup = share,
    .threads = {use_and_drop, use_and_drop},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&last_one_frees, NULL};
    static const char *const files[] = {"object.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
