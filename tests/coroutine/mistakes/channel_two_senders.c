/*
 * Two senders wait at once on a channel between one and one.
 * told: run
 * says: a second sender uses a channel between one and one: self->channel, body, 
 */
#include "mistakes.h"

#include "bide/handle.h"
#include "bide/spsc_channel.h"

typedef bide_spsc_channel(int) numbers;

struct x {
    bide_task task;
    numbers *channel;
    bide_spsc_channel_waiter wait;
    int number;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    for (;;)
        bide_await(bide_spsc_channel_send(&self->wait, self->channel, &self->number)); // HERE
    bide_end();
}

int main(void)
{
    int memory[1];
    numbers channel;
    struct x first = {.channel = &channel}, second = {.channel = &channel};
    bide_spsc_channel_init(&channel, memory, 1);
    bide_start(&first.task.frame, &body, &bide_default_context);
    bide_resume(&first.task.frame);
    bide_start(&second.task.frame, &body, &bide_default_context);
    bide_resume(&second.task.frame);
    return 0;
}
