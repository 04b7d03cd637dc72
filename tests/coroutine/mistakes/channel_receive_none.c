/*
 * At most 0 elements are received, which would be done at once, again and again.
 * told: run
 * says: at most 0 elements are received: self->channel, body, 
 */
#include "mistakes.h"

#include "bide/channel.h"

typedef bide_channel(int) numbers;

struct x {
    bide_task task;
    numbers *channel;
    bide_channel_many_waiter wait;
    int n;
    size_t got;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(bide_channel_recv_many(&self->wait, self->channel, &self->n, 0, &self->got)); // HERE
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
