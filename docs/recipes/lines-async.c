#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async void greet(bide_memory_end *end)
{
    bide_reader reader;
    bide_reader_operation line;
    char memory[64]; /* no line is longer */
    bide_reader_init(&reader, bide_memory_stream(end), memory, sizeof memory);
    while (await bide_reader_read_line(&line, &reader) == 0) /* -EPIPE: the end */
        printf("hello %.*s\n", (int)line.count, line.data);
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
    async_frame(greet) greeter;
    bide_spawned spawned;
    bide_spawn(&spawned, &bide_default_context, async_greet(&greeter, &theirs));
    bide_sync_wait(bide_stream_write(&operation, stream, "you\r\nwor", 8)); /* in any pieces */
    bide_sync_wait(bide_stream_write(&operation, stream, "ld\n", 3));
    return bide_sync_wait(bide_stream_shutdown_output(&operation, stream)) != 0;
}
