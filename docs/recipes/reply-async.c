#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

typedef bide_oneshot(int) reply;

async int ask(reply *reply)
{
    int answer;
    try await bide_oneshot_recv(reply, &answer);
    printf("the answer is %d\n", answer);
    return 0;
}

int main(void)
{
    reply reply;
    async_frame(ask) asker;
    bide_spawned spawned;
    bide_oneshot_init(&reply);
    bide_spawn(&spawned, &bide_default_context, async_ask(&asker, &reply));
    printf("%d\n", bide_oneshot_send(&reply, &(int){42}));
    printf("%d\n", bide_oneshot_send(&reply, &(int){43}) == -EPIPE); /* only one is sent */
}
