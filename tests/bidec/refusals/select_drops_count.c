/*
 * says: when\(\) drops the count of bide_recv: call it with a bide_io_operation of your own, or cast it to void
 */
#include <bide/async.h>
#include <bide/event.h>
#include <bide/socket.h>

async int f(bide_event *event, bide_descriptor *client, char *buffer)
{
    int status;
    async_select (status) {
        when (bide_event_wait(event))
            return 1;
        when (bide_recv(client, buffer, 1)) /* HERE */
            return 2;
    }
    return status;
}
