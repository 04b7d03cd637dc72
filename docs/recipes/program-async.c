#include <bide/async.h>
#include <bide/bide.h>
#include <signal.h>
#include <stdio.h>

async int program(void)
{
    puts("runs");
    raise(SIGTERM); /* or a user presses Ctrl-C */
    int status = await bide_sleep_for(BIDE_SECONDS(60));
    puts(status < 0 ? "cleans up" : "was not asked");
    return status;
}

int main(void)
{
    async_frame(program) frame;
    return bide_run(async_program(&frame)) != 0;
}
