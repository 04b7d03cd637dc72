/*
 * An element is sent by a permit that was used before.
 * told: run
 * says: an element is sent by a permit that is not held: &self->permit, body, 
 */
#include "mistakes.h"

#include "bide/channel.h"

typedef bide_channel(int) numbers;

struct x {
    bide_task task;
    numbers *channel;
    bide_channel_waiter wait;
    bide_channel_permit permit;
    int number;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_try(bide_channel_reserve(&self->wait, self->channel, &self->permit));
    bide_channel_permit_send(self->channel, &self->permit, &self->number);
    bide_channel_permit_send(self->channel, &self->permit, &self->number); // HERE
    bide_end();
}

int main(void)
{
    bide_channel_slot(int) memory[3];
    numbers channel;
    struct x x = {.channel = &channel};
    bide_channel_init(&channel, memory, 3);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
