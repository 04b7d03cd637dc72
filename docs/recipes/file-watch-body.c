#define _DEFAULT_SOURCE
#include <bide/bide.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct observer {
    bide_task task;
    bide_file_watcher watcher;
    bide_file_event_operation next;
    char buffer[4096];
};

bide_coroutine(observer_body)
{
    bide_begin(observer_body, struct observer * self);
    bide_try(bide_file_watch_next(&self->next, &self->watcher));
    puts(self->next.watch == NULL ? "events were lost" : self->next.name);
    bide_end();
}

int main(void)
{
    char folder[] = "/tmp/bide-recipe-XXXXXX", path[40];
    static struct observer observer;
    bide_loop *loop;
    bide_file_watch watch;
    if (mkdtemp(folder) == NULL || bide_loop_create(&loop, NULL) != 0 ||
        bide_file_watcher_init(&observer.watcher, observer.buffer, sizeof observer.buffer) != 0 ||
        bide_file_watch_add(&observer.watcher, &watch, folder, BIDE_FILE_WRITTEN) != 0)
        return 1;
    snprintf(path, sizeof path, "%s/notes", folder);
    fclose(fopen(path, "w"));
    int status = bide_loop_wait(loop, bide_task_init(&observer.task, &observer_body));
    bide_file_watcher_destroy(&observer.watcher);
    bide_loop_destroy(loop);
    return status != 0 || unlink(path) != 0 || rmdir(folder) != 0;
}
