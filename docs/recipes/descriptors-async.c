#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

async int pass_output(int from, int to)
{
    bide_descriptor sender, receiver;
    bide_fds_operation pass;
    char letter;
    int output = STDOUT_FILENO;
    bide_descriptor_init(&sender, from);
    defer bide_close(&sender);
    bide_descriptor_init(&receiver, to);
    defer bide_close(&receiver);
    try await bide_send_fds(&pass, &sender, "x", 1, &output, 1);
    try await bide_recv_fds(&pass, &receiver, &letter, 1, &output, 1);
    dprintf(output, "%u passed with %c\n", pass.passed, letter);
    close(output); /* of the receiver */
    return 0;
}

int main(void)
{
    static async_frame(pass_output) frame;
    bide_loop *loop;
    int fds[2];
    if (bide_loop_create(&loop, NULL) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        return 1;
    int status = bide_loop_wait(loop, async_pass_output(&frame, fds[0], fds[1]));
    bide_loop_destroy(loop);
    return status != 0;
}
