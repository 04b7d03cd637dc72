#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

typedef bide_channel(int) numbers;

async int choose(numbers *first, numbers *second)
{
    size_t which;
    int number;
    try await select_any(&which, bide_channel_recv(first, &number),
                         bide_channel_recv(second, &number));
    printf("channel %zu: %d\n", which, number);
    return 0;
}

int main(void)
{
    bide_channel_slot(int) memory[2][1];
    numbers first, second;
    async_frame(choose) frame;
    bide_channel_init(&first, memory[0], 1);
    bide_channel_init(&second, memory[1], 1);
    bide_channel_try_send(&second, &(int){9});
    return bide_sync_wait(async_choose(&frame, &first, &second)) != 0;
}
