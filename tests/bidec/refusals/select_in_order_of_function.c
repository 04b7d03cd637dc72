/*
 * says: select_in_order.. takes operations that can be attempted
 */
#include <bide/async.h>

async int f(void)
{
    return 1;
}

async void g(void)
{
    size_t which;
    await select_in_order(&which, f()); /* HERE */
}
