#include <bide/bide.h>
#include <stdio.h>

typedef bide_broadcast(int) news;

struct listener {
    bide_task task;
    bide_broadcast_subscriber(int) subscriber;
    bide_broadcast_waiter wait;
    int item, number;
};

bide_coroutine(listener_body)
{
    bide_begin(listener_body, struct listener * self);
    for (;;) {
        bide_try_or_break(bide_broadcast_recv(&self->wait, &self->subscriber, &self->item));
        printf("%d: got %d\n", self->number, self->item);
    }
    bide_end();
}

int main(void)
{
    bide_broadcast_slot(int) memory[8]; /* a subscriber that is 8 behind misses some */
    news news;
    struct listener listeners[2];
    bide_spawned spawned[2];
    bide_broadcast_init(&news, memory, 8);
    for (int i = 0; i < 2; i++) {
        bide_broadcast_subscribe(&listeners[i].subscriber, &news);
        bide_spawn(&spawned[i], &bide_default_context,
                   bide_call(&listeners[i], &listener_body, number = i + 1));
    }
    bide_broadcast_send(&news, &(int){5});
    bide_broadcast_close(&news);
}
