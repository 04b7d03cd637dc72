#include <bide/bide.h>
#include <stdio.h>

typedef bide_channel(int) numbers;

struct chooser {
    bide_task task;
    numbers *first, *second;
    bide_channel_waiter waits[2];
    bide_select_of(2) select;
    int number;
};

bide_coroutine(chooser_body)
{
    bide_begin(chooser_body, struct chooser * self);
    bide_try(bide_select_any_of(&self->select,
                                bide_channel_recv(&self->waits[0], self->first, &self->number),
                                bide_channel_recv(&self->waits[1], self->second, &self->number)));
    printf("channel %zu: %d\n", bide_select_winner(&self->select.any), self->number);
    bide_end();
}

int main(void)
{
    bide_channel_slot(int) memory[2][1];
    numbers first, second;
    struct chooser chooser = {.first = &first, .second = &second};
    bide_channel_init(&first, memory[0], 1);
    bide_channel_init(&second, memory[1], 1);
    bide_channel_try_send(&second, &(int){9});
    return bide_sync_wait(bide_task_init(&chooser.task, &chooser_body)) != 0;
}
