/*
 * says: async_select stores its status: async_select \(status\) { ... }, or try async_select
 */
#include <bide/async.h>
#include <bide/event.h>

async int f(bide_event *event)
{
    async_select () { /* HERE */
        when (bide_event_wait(event))
            return 1;
    }
    return 0;
}
