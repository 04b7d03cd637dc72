#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int ask(bide_event *answer)
{
    int status = await bide_with_timeout(BIDE_MILLISECONDS(2), bide_event_wait(answer));
    puts(status == -ETIMEDOUT ? "no answer" : "an answer");
    return 0;
}

int main(void)
{
    bide_event answer; /* never set */
    async_frame(ask) frame;
    bide_event_init(&answer, false);
    return bide_sync_wait(async_ask(&frame, &answer)) != 0;
}
