#include <bide/bide.h>
#include <stdio.h>

struct program {
    bide_task task;
    bide_signal *terminate;
    bide_signal_waiter wait;
};

bide_coroutine(program_body)
{
    bide_begin(program_body, struct program * self);
    bide_try(bide_signal_wait(&self->wait, self->terminate));
    puts("stops"); /* and shuts its server down, for example */
    bide_end();
}

int main(void)
{
    bide_loop *loop;
    bide_signal terminate;
    if (bide_loop_create(&loop, NULL) != 0 || bide_signal_listen(&terminate, SIGTERM) != 0)
        return 1;
    struct program program = {.terminate = &terminate};
    raise(SIGTERM); /* it is remembered until a wait has had it */
    int status = bide_loop_wait(loop, bide_task_init(&program.task, &program_body));
    bide_signal_destroy(&terminate);
    bide_loop_destroy(loop);
    return status != 0;
}
