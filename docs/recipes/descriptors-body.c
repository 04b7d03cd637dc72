#define _DEFAULT_SOURCE
#include <bide/bide.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct passer {
    bide_task task;
    bide_descriptor ends[2];
    bide_fds_operation pass;
    char letter;
    int output;
};

bide_coroutine(passer_body)
{
    bide_begin(passer_body, struct passer * self);
    self->output = STDOUT_FILENO;
    bide_try(bide_send_fds(&self->pass, &self->ends[0], "x", 1, &self->output, 1));
    bide_try(bide_recv_fds(&self->pass, &self->ends[1], &self->letter, 1, &self->output, 1));
    dprintf(self->output, "%u passed with %c\n", self->pass.passed, self->letter);
    close(self->output); /* of the receiver */
    bide_end();
}

int main(void)
{
    static struct passer passer;
    bide_loop *loop;
    int fds[2];
    if (bide_loop_create(&loop, NULL) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        return 1;
    for (int i = 0; i < 2; i++)
        bide_descriptor_init(&passer.ends[i], fds[i]);
    int status = bide_loop_wait(loop, bide_task_init(&passer.task, &passer_body));
    bide_close(&passer.ends[0]);
    bide_close(&passer.ends[1]);
    bide_loop_destroy(loop);
    return status != 0;
}
