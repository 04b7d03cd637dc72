/*
 * says: async_select needs a case: when \(operation\) statement
 */
#include <bide/async.h>

async int g(void)
{
    int status;
    async_select (status) { /* HERE */
    }
    return status;
}
