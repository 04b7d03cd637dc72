#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

struct load {
    bide_shared_task shared; /* a shared task is a body */
    int result;
};

bide_shared_coroutine(load_body)
{
    bide_begin(load_body, struct load *self);
    puts("loads"); /* once, and may await */
    self->result = 42;
    bide_end();
}

async int use(struct load *load)
{
    try await bide_shared_task_wait(&load->shared);
    printf("%d\n", load->result);
    return 0;
}

int main(void)
{
    struct load load;
    async_frame(use) one, two;
    bide_shared_task_init(&load.shared, &load_body, &bide_default_context);
    return bide_sync_wait(async_use(&one, &load)) != 0 ||
           bide_sync_wait(async_use(&two, &load)) != 0;
}
