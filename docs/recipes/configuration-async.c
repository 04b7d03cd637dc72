#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

typedef bide_watch(int) level;
typedef bide_watch_receiver(int) level_receiver;

async void follow(level *watch)
{
    level_receiver receiver;
    int level;
    bide_watch_receiver_init(&receiver, watch);
    while (await bide_watch_recv(&receiver, &level) == 0)
        printf("level %d\n", level); /* the latest: values in between may be left out */
    puts("closed");
}

int main(void)
{
    level level;
    async_frame(follow) logger;
    bide_spawned spawned;
    bide_watch_init(&level, &(int){1});
    bide_spawn(&spawned, &bide_default_context, async_follow(&logger, &level));
    bide_watch_send(&level, &(int){2});
    bide_watch_close(&level);
}
