/*
 * says: bide_async_generator_next is called with its bide_async_generator_next_operation here: value needs it afterwards
 */
#include <bide/async.h>
#include <bide/bide.h>

async int f(bide_async_generator *generator)
{
    return await bide_async_generator_next(generator); /* HERE */
}
