/*
 * says: async_select is used in g, which is a plain function
 */
#include <bide/async.h>
#include <bide/event.h>

async int f(void)
{
    return 1;
}

int g(bide_event *event);
int g(bide_event *event)
{
    int status;
    async_select (status) { /* HERE */
        when (bide_event_wait(event))
            return 1;
    }
    return status;
}
