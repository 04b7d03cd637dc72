/*
 * says: async_for takes a call of an async_generator
 */
#include <bide/async.h>

async void g(void)
{
    async_for (int i, 7) /* HERE */
        ;
}
