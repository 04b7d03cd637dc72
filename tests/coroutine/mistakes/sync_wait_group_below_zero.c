/*
 * More are done than a wait group was told of.
 * told: run
 * says: more are done than a wait group has: &self->group, body, 
 */
#include "mistakes.h"

#include "bide/wait_group.h"

struct x {
    bide_task task;
    bide_wait_group group;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_wait_group_done(&self->group); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    bide_wait_group_init(&x.group);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
