/*
 * says: any\(\) drops the count of bide_recv: call it with a bide_io_operation of your own, or cast it to void
 */
#include <bide/async.h>
#include <bide/bide.h>

async int f(bide_descriptor *socket, void *buffer)
{
    bide_io_operation receive;
    int status = await any(bide_recv(&receive, socket, buffer, 1), bide_sleep_for(1));
    if (status < 0)
        return status;
    return await any(bide_recv(socket, buffer, 1), bide_sleep_for(1)); /* HERE */
}
