/*
 * A member joins a sequence group that it has joined.
 * told: run
 * says: a member joins a sequence group that it has joined already: &self->member, body, 
 */
#include "mistakes.h"

#include "bide/sequence_group.h"

struct x {
    bide_task task;
    bide_sequence_group group;
    bide_sequence_group_member member, other;
    bide_sequence_barrier cursor, own, others;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_sequence_barrier_init(&self->cursor, bide_sequence_initial());
    bide_sequence_group_init(&self->group, NULL, 0);
    bide_sequence_group_join(&self->group, &self->member, &self->own, &self->cursor);
    bide_sequence_group_leave_blocking(&self->group, &self->member);
    bide_sequence_group_join(&self->group, &self->member, &self->own, &self->cursor);
    bide_sequence_group_join(&self->group, &self->other, &self->others, &self->cursor);
    bide_sequence_group_join(&self->group, &self->member, &self->own, &self->cursor); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
