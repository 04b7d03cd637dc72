#include <bide/bide.h>
#include <stdio.h>

struct sorter {
    bide_task task;
    bide_process process;
    bide_process_communicate_operation talk;
    char text[100];
};

bide_coroutine(sorter_body)
{
    bide_begin(sorter_body, struct sorter * self);
    bide_try(bide_process_communicate(&self->talk, &self->process, "b\na\nb\n", 6, self->text,
                                      sizeof self->text, NULL, 0));
    printf("%.*sexit code %d\n", (int)self->talk.output_count, self->text, self->process.exit_code);
    bide_end();
}

int main(void)
{
    static struct sorter sorter;
    bide_loop *loop;
    bide_process_options options = {.program = "sort",
                                    .arguments = (char *[]){"sort", "-u", NULL},
                                    .streams = {{.kind = BIDE_STREAM_PIPE},
                                                {.kind = BIDE_STREAM_PIPE},
                                                {.kind = BIDE_STREAM_INHERIT}}};
    if (bide_loop_create(&loop, NULL) != 0 || bide_process_start(&sorter.process, &options) != 0)
        return 1;
    int status = bide_loop_wait(loop, bide_task_init(&sorter.task, &sorter_body));
    bide_process_destroy(&sorter.process);
    bide_loop_destroy(loop);
    return status != 0;
}
