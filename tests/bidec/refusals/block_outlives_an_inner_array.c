/*
 * says: name may be gone before this block has ended: it has to be declared in the block of the bide_scope, or around it
 */
#include <bide/async.h>

async int g(void)
{
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    for (int i = 0; i < 2; i++) {
        char name[8] = {0};
        spawn(&scope, async_block({
                  async_capture char *to = name + 1; /* HERE */
                  *to = 1;
              }));
    }
    return await bide_scope_join(&scope);
}
