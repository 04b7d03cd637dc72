/*
 * A thread waits for a coroutine that was never made.
 * told: run
 * says: what is awaited was never initialised, main, 
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
    bide_sync_wait(&x.task.frame.awaiter); // HERE
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
