/* A list of free memory for requests. It belongs to the program's loop. */
#include "scratch.h"

#include <stdlib.h>

enum { MAX_FREE_SCRATCH = 512 };

struct scratch *scratch_acquire(struct program *program)
{
    struct scratch *scratch = program->free_scratch;
    if (scratch == NULL)
        return malloc(sizeof *scratch);
    bide_assert(program->free_scratch_count > 0);
    program->free_scratch = scratch->next;
    program->free_scratch_count--;
    return scratch;
}

void scratch_release(struct program *program, struct scratch *scratch)
{
    if (program->free_scratch_count >= MAX_FREE_SCRATCH) {
        free(scratch);
        return;
    }
    scratch->next = program->free_scratch;
    program->free_scratch = scratch;
    program->free_scratch_count++;
}

void scratch_free_all(struct program *program)
{
    while (program->free_scratch != NULL)
        free(scratch_acquire(program));
    bide_assert(program->free_scratch_count == 0);
}
