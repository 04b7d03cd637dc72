/*
 * Random reads of 4 KB by DEPTH coroutines on one loop.
 *
 *   file_bide FILE DIRECT DEPTH SECONDS prints reads per second. BIDE_IO selects the back end.
 */
#define _GNU_SOURCE
#include <bide/bide.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, MAX_DEPTH = 1024 };

static struct {
    bide_descriptor file;
    uint64_t blocks, state, until, ended;
} run = {.state = 1};

struct reader {
    bide_task task;
    bide_spawned spawned;
    bide_file_operation operation;
    char *buffer;
};

static _Noreturn void fail(const char *what, int error)
{
    fprintf(stderr, "file_bide: %s: %s\n", what, strerror(error));
    exit(1);
}

static uint64_t draw(void)
{
    run.state = run.state * 6364136223846793005 + 1442695040888963407;
    return run.state >> 33;
}

bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct reader * self);
    while (bide_platform.now() < run.until) {
        int status;
        bide_await_status(status, bide_read_at(&self->operation, &run.file, self->buffer, BLOCK,
                                               (int64_t)(draw() % run.blocks * BLOCK)));
        if (status < 0 || self->operation.operation.count != BLOCK)
            fail("read", status < 0 ? -status : EIO);
        run.ended++;
    }
    bide_end();
}

int main(int argc, char **argv)
{
    static struct reader readers[MAX_DEPTH];
    struct stat about;
    bide_file_operation open;
    bide_event_waiter wait;
    bide_loop *loop;
    if (argc != 5) {
        fprintf(stderr, "usage: file_bide FILE DIRECT DEPTH SECONDS\n");
        return 2;
    }
    int depth = atoi(argv[3]);
    int error = bide_loop_create(&loop, NULL);
    if (error == 0)
        error = bide_loop_wait(loop, bide_open(&open, &run.file, argv[1],
                                               O_RDONLY | (atoi(argv[2]) != 0 ? O_DIRECT : 0), 0));
    if (error == 0)
        error = bide_loop_wait(loop, bide_stat(&open, &run.file, &about));
    if (error != 0)
        fail(argv[1], -error);
    run.blocks = (uint64_t)about.st_size / BLOCK;
    char *buffers = aligned_alloc(BLOCK, (size_t)depth * BLOCK);
    if (run.blocks == 0 || depth < 1 || depth > MAX_DEPTH || buffers == NULL)
        fail("arguments", EINVAL);

    uint64_t begun = bide_platform.now();
    run.until = begun + (uint64_t)(atof(argv[4]) * 1e9);
    for (int i = 0; i < depth; i++) {
        readers[i].buffer = buffers + (size_t)i * BLOCK;
        bide_spawn(&readers[i].spawned, bide_loop_context(loop),
                   bide_task_init(&readers[i].task, &reader_body));
    }
    for (int i = 0; i < depth; i++)
        bide_loop_wait(loop, bide_event_wait(&wait, &readers[i].spawned.ended));
    printf("%.0f\n", (double)run.ended * 1e9 / (double)(bide_platform.now() - begun));
    bide_close(&run.file);
    bide_loop_destroy(loop);
    free(buffers);
    return 0;
}
