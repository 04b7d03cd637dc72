#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

typedef bide_broadcast(int) news;

async void hear(news *news, int number)
{
    bide_broadcast_subscriber(int) subscriber;
    int item;
    bide_broadcast_subscribe(&subscriber, news);
    while (await bide_broadcast_recv(&subscriber, &item) == 0)
        printf("%d: got %d\n", number, item);
}

int main(void)
{
    bide_broadcast_slot(int) memory[8]; /* a subscriber that is 8 behind misses some */
    news news;
    async_frame(hear) listeners[2];
    bide_spawned spawned[2];
    bide_broadcast_init(&news, memory, 8);
    for (int i = 0; i < 2; i++)
        bide_spawn(&spawned[i], &bide_default_context, async_hear(&listeners[i], &news, i + 1));
    bide_broadcast_send(&news, &(int){5});
    bide_broadcast_close(&news);
}
