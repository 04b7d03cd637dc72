/*
 * says: bide_resolve is called with its bide_resolve_operation here: addresses needs it afterwards
 */
#include <bide/async.h>
#include <bide/bide.h>

async int f(bide_names *names)
{
    return await bide_resolve(names, "example.org", 80); /* HERE */
}
