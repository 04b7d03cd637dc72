/*
 * A frame is created for one body, and runs another, whose struct is larger.
 * told: run
 * says: a frame is smaller than the struct of its body big_body, bide_owned, 
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

bide_coroutine(small_body)
{
    bide_begin(small_body, struct small * self);
    (void)self;
    bide_end();
}

int main(void)
{
    bide_arena arena;
    bide_arena_init(&arena, memory, sizeof memory);
    struct small *small = bide_create(sizeof *small, &small_body, &arena.allocator);
    return bide_sync_wait(bide_owned(small, &big_body));
}
