#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int sort(void)
{
    bide_process process;
    bide_process_communicate_operation talk;
    char text[100];
    bide_process_options options = {
        .program = "sort",
        .arguments = (char *[]){"sort", "-u", NULL},
        .streams = {{.kind = BIDE_STREAM_PIPE}, {.kind = BIDE_STREAM_PIPE},
                    {.kind = BIDE_STREAM_INHERIT}}};
    int status = bide_process_start(&process, &options);
    if (status < 0)
        return status;
    defer bide_process_destroy(&process);
    try await bide_process_communicate(&talk, &process, "b\na\nb\n", 6, text, sizeof text, NULL, 0);
    printf("%.*sexit code %d\n", (int)talk.output_count, text, process.exit_code);
    return 0;
}

int main(void)
{
    static async_frame(sort) frame;
    bide_loop *loop;
    if (bide_loop_create(&loop, NULL) != 0)
        return 1;
    int status = bide_loop_wait(loop, async_sort(&frame));
    bide_loop_destroy(loop);
    return status != 0;
}
