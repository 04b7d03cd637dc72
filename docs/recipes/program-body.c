#include <bide/bide.h>
#include <signal.h>
#include <stdio.h>

struct program {
    bide_task task;
    bide_sleep tick;
};

bide_coroutine(program_body)
{
    bide_begin(program_body, struct program * self);
    int status;
    puts("runs");
    raise(SIGTERM); /* or a user presses Ctrl-C */
    bide_await_status(status, bide_sleep_for(&self->tick, BIDE_SECONDS(60)));
    puts(status < 0 ? "cleans up" : "was not asked");
    bide_return(status);
    bide_end();
}

int main(void)
{
    struct program program;
    return bide_run(bide_task_init(&program.task, &program_body)) != 0;
}
