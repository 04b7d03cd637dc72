#include <bide/bide.h>
#include <stdio.h>

struct greeter {
    bide_task task;
    bide_reader reader;
    bide_reader_operation line;
    char memory[64]; /* no line is longer */
};

bide_coroutine(greeter_body)
{
    bide_begin(greeter_body, struct greeter * self);
    for (;;) {
        bide_try_or_break(bide_reader_read_line(&self->line, &self->reader)); /* -EPIPE: the end */
        printf("hello %.*s\n", (int)self->line.count, self->line.data);
    }
    bide_end();
}

int main(void)
{
    char memory[2][32];
    bide_memory_pipe there, back;
    bide_memory_pipe_init(&there, memory[0], 32);
    bide_memory_pipe_init(&back, memory[1], 32);
    bide_memory_end theirs = {&there, &back}, ours = {&back, &there};
    bide_stream stream = bide_memory_stream(&ours); /* bide_socket_stream for a connection */
    bide_stream_operation operation;
    struct greeter greeter;
    bide_spawned spawned;
    bide_reader_init(&greeter.reader, bide_memory_stream(&theirs), greeter.memory,
                     sizeof greeter.memory);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&greeter.task, &greeter_body));
    bide_sync_wait(bide_stream_write(&operation, stream, "you\r\nwor", 8)); /* in any pieces */
    bide_sync_wait(bide_stream_write(&operation, stream, "ld\n", 3));
    return bide_sync_wait(bide_stream_shutdown_output(&operation, stream)) != 0;
}
