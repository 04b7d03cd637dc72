/*
 * says: async_select contains only its cases: when \(operation\) statement
 */
#include <bide/async.h>
#include <bide/event.h>

async int f(bide_event *event)
{
    int status;
    async_select (status) {
        when (bide_event_wait(event))
            return 1;
        return 2; /* HERE */
    }
    return status;
}
