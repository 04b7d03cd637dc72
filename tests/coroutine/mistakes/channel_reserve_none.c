/*
 * At most 0 permits are reserved, which would be done at once, again and again.
 * told: run
 * says: at most 0 permits are reserved: self->channel, body, 
 */
#include "mistakes.h"

#include "bide/channel.h"

typedef bide_channel(int) numbers;

struct x {
    bide_task task;
    numbers *channel;
    bide_channel_many_waiter wait;
    bide_channel_permit permit;
    size_t got;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(bide_channel_reserve_many(&self->wait, self->channel, &self->permit, 0, // HERE
                                         &self->got));                             // HERE by clang
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
