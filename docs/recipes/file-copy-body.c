#include <bide/bide.h>
#include <fcntl.h>
#include <stdio.h>

struct copier {
    bide_task task;
    bide_descriptor from, to;
    bide_file_operation open;
    bide_copy_file_operation copy;
};

bide_coroutine(copier_body)
{
    bide_begin(copier_body, struct copier * self);
    bide_descriptor_init_closed(&self->from);
    bide_descriptor_init_closed(&self->to);
    bide_try(bide_open(&self->open, &self->from, "/proc/self/exe", O_RDONLY, 0));
    bide_try(bide_open_temporary(&self->open, &self->to, NULL, "/tmp", 0, 0600));
    bide_try(bide_copy_file(&self->copy, &self->from, 0, &self->to, 0, UINT64_MAX));
    puts(self->copy.count > 10000 ? "copied" : "too little"); /* count grows while it copies */
    bide_finally();
    bide_close(&self->from);
    bide_close(&self->to);
    bide_end();
}

int main(void)
{
    static struct copier copier;
    bide_loop *loop;
    if (bide_loop_create(&loop, NULL) != 0)
        return 1;
    int status = bide_loop_wait(loop, bide_task_init(&copier.task, &copier_body));
    bide_loop_destroy(loop);
    return status != 0;
}
