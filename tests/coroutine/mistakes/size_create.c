/*
 * A frame is created that is smaller than the struct of its body.
 * told: run
 * says: a frame is smaller than the struct of its body big_body, main, 
 */
#include "mistakes.h"

#include "bide/create.h"

static unsigned char memory[1000];

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

int main(void)
{
    bide_arena arena;
    bide_arena_init(&arena, memory, sizeof memory);
    struct small *small = bide_create(sizeof *small, &big_body, &arena.allocator); // HERE
    return bide_sync_wait(bide_owned(small, &big_body));
}
