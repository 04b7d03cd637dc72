/*
 * A child is the last member of its parent, and its body's struct is larger than that.
 * told: run
 * says: a frame is smaller than the struct of its body big_body, body, 
 */
#include "mistakes.h"

struct big {
    bide_task task;
    char room[400];
};

bide_coroutine(big_body)
{
    bide_begin(big_body, struct big * self);
    memset(self->room, 7, sizeof self->room);
    bide_end();
}

struct small {
    bide_task task;
};

struct x {
    bide_task task;
    struct small child;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(bide_task_init(&self->child.task, &big_body)); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}
