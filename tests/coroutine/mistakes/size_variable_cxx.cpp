/*
 * The frame of a task is a variable of another body's struct, which is smaller.
 * told: run
 * says: a frame is smaller than the struct of its body big_body, main, 
 */
#include "mistakes.h"

struct big {
    bide_task task;
    char room[400];
};

bide_coroutine(big_body)
{
    bide_begin(big_body, big * self);
    memset(self->room, 7, sizeof self->room);
    bide_end();
}

struct small_frame {
    bide_task task;
};

int main()
{
    static small_frame x;
    return bide_sync_wait(bide_task_init(&x.task, &big_body)); // HERE
}
