#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

typedef bide_spsc_channel(int) pipe;

async int square(pipe *in, pipe *out)
{
    int number;
    while (await bide_spsc_channel_recv(in, &number) == 0) {
        number *= number;
        try await bide_spsc_channel_send(out, &number);
    }
    bide_spsc_channel_close(out);
    return 0;
}

int main(void)
{
    int memory[2][4], number;
    pipe in, out;
    async_frame(square) squarer;
    bide_spawned spawned;
    bide_spsc_channel_init(&in, memory[0], 4);
    bide_spsc_channel_init(&out, memory[1], 4);
    bide_spawn(&spawned, &bide_default_context, async_square(&squarer, &in, &out));
    for (int i = 1; i <= 3; i++)
        bide_spsc_channel_send_blocking(&in, &i, BIDE_FOREVER);
    bide_spsc_channel_close(&in);
    while (bide_spsc_channel_recv_blocking(&out, &number, BIDE_FOREVER) == 0)
        printf("%d\n", number);
}
