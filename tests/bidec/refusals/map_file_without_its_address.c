/*
 * says: bide_map_file is called with its bide_file_operation here: operation needs it afterwards
 */
#include <bide/async.h>
#include <bide/bide.h>

async long f(bide_descriptor *file, size_t size)
{
    return await bide_map_file(file, 0, size, 1, 2); /* HERE */
}
