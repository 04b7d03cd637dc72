/*
 * says: a function of the kind own does not await \(its await_transform\)
 */
#include <bide/async.h>

#include <bide/event.h>

typedef struct own {
    bide_frame frame;
    int member;
} own;

static const bide_coroutine_type own_type = {.name = "own", .await_transform = bide_await_forbidden};

async_kind(own) void f(bide_event *event)
{
    int status;
    async_select (status) { /* HERE */
        when (bide_event_wait(event))
            (void)0;
    }
}
