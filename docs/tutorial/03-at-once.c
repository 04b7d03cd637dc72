#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int greet(const char *name, bide_event *door)
{
    printf("%s waits\n", name);
    try await bide_event_wait(door);
    printf("hello %s\n", name);
    return 0;
}

async int open_door(bide_event *door)
{
    try await bide_sleep_for(BIDE_MILLISECONDS(1));
    puts("the door opens");
    bide_event_set(door);
    return 0;
}

async int main(void)
{
    bide_event door;
    bide_event_init(&door, false);
    return await all(greet("ann", &door), greet("bob", &door), open_door(&door));
}
