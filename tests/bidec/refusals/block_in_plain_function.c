/*
 * says: async_block is used in g, which is a plain function: declare that async
 */
#include <bide/async.h>

int g(bide_scope *scope)
{
    return spawn(scope, async_block({ return 1; })); /* HERE */
}
