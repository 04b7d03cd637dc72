#include <bide/bide.h>
#include <stdio.h>

typedef bide_spsc_channel(int) pipe;

struct squarer {
    bide_task task;
    pipe *in, *out;
    bide_spsc_channel_waiter wait;
    int number;
};

bide_coroutine(squarer_body)
{
    bide_begin(squarer_body, struct squarer * self);
    for (;;) {
        bide_try_or_break(bide_spsc_channel_recv(&self->wait, self->in, &self->number));
        self->number *= self->number;
        bide_try(bide_spsc_channel_send(&self->wait, self->out, &self->number));
    }
    bide_spsc_channel_close(self->out);
    bide_end();
}

int main(void)
{
    int memory[2][4], number;
    pipe in, out;
    struct squarer squarer = {.in = &in, .out = &out};
    bide_spawned spawned;
    bide_spsc_channel_init(&in, memory[0], 4);
    bide_spsc_channel_init(&out, memory[1], 4);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&squarer.task, &squarer_body));
    for (int i = 1; i <= 3; i++)
        bide_spsc_channel_send_blocking(&in, &i, BIDE_FOREVER);
    bide_spsc_channel_close(&in);
    while (bide_spsc_channel_recv_blocking(&out, &number, BIDE_FOREVER) == 0)
        printf("%d\n", number);
}
