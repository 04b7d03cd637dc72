/*
 * A member leaves a sequence group that it has not joined.
 * told: run
 * says: a member leaves a sequence group that it has not joined: &self->member, body, 
 */
#include "mistakes.h"

#include "bide/sequence_group.h"

struct x {
    bide_task task;
    bide_sequence_group group;
    bide_sequence_group_member member;
    bide_sequence_group_leaver leaver;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_sequence_group_init(&self->group, NULL, 0);
    bide_await(bide_sequence_group_leave(&self->leaver, &self->group, &self->member)); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
