#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int program(bide_signal *terminate)
{
    try await bide_signal_wait(terminate);
    puts("stops"); /* and shuts its server down, for example */
    return 0;
}

int main(void)
{
    bide_loop *loop;
    bide_signal terminate;
    async_frame(program) frame;
    if (bide_loop_create(&loop, NULL) != 0 || bide_signal_listen(&terminate, SIGTERM) != 0)
        return 1;
    raise(SIGTERM); /* it is remembered until a wait has had it */
    int status = bide_loop_wait(loop, async_program(&frame, &terminate));
    bide_signal_destroy(&terminate);
    bide_loop_destroy(loop);
    return status != 0;
}
