/*
 * A thread waits for NULL.
 * told: run
 * says: NULL is awaited, main, 
 */
#include "mistakes.h"

struct x {
    bide_task task;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    puts(self != NULL ? "it runs" : "");
    bide_end();
}

int main(void)
{
    struct x x = {0};
    bide_sync_wait(NULL); // HERE
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
