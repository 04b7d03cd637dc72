#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

async int observe(bide_file_watcher *watcher)
{
    bide_file_event_operation next;
    try await bide_file_watch_next(&next, watcher);
    puts(next.watch == NULL ? "events were lost" : next.name);
    return 0;
}

int main(void)
{
    char folder[] = "/tmp/bide-recipe-XXXXXX", path[40], buffer[4096];
    static async_frame(observe) frame;
    bide_loop *loop;
    bide_file_watcher watcher;
    bide_file_watch watch;
    if (mkdtemp(folder) == NULL || bide_loop_create(&loop, NULL) != 0 ||
        bide_file_watcher_init(&watcher, buffer, sizeof buffer) != 0 ||
        bide_file_watch_add(&watcher, &watch, folder, BIDE_FILE_WRITTEN) != 0)
        return 1;
    snprintf(path, sizeof path, "%s/notes", folder);
    fclose(fopen(path, "w"));
    int status = bide_loop_wait(loop, async_observe(&frame, &watcher));
    bide_file_watcher_destroy(&watcher);
    bide_loop_destroy(loop);
    return status != 0 || unlink(path) != 0 || rmdir(folder) != 0;
}
