/*
 * NULL is awaited.
 * told: run
 * says: NULL is awaited, body, 
 */
#include "mistakes.h"

struct x {
    bide_task task;
    bide_awaiter *awaiter;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(self->awaiter); // HERE
    bide_end();
}

int main(void)
{
    struct x x = {0};
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
