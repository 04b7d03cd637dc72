#include <bide/async.h>
#include <bide/bide.h>
#include <fcntl.h>
#include <stdio.h>

async int copy(const char *source)
{
    bide_descriptor from, to;
    bide_copy_file_operation copy;
    try await bide_open(&from, source, O_RDONLY, 0);
    defer bide_close(&from);
    try await bide_open_temporary(&to, NULL, "/tmp", 0, 0600);
    defer bide_close(&to);
    try await bide_copy_file(&copy, &from, 0, &to, 0, UINT64_MAX);
    puts(copy.count > 10000 ? "copied" : "too little"); /* count grows while it copies */
    return 0;
}

int main(void)
{
    static async_frame(copy) frame;
    bide_loop *loop;
    if (bide_loop_create(&loop, NULL) != 0)
        return 1;
    int status = bide_loop_wait(loop, async_copy(&frame, "/proc/self/exe"));
    bide_loop_destroy(loop);
    return status != 0;
}
