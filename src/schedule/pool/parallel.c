/* Loops over ranges, made of joins. See the header. */
#include "bide/parallel.h"

#include <errno.h>
#include <string.h>

#undef bide_parallel_for

/* Fork when thieves have taken everything. False on a thread that is not a pool's. */
static bool parallel_wants_fork(void)
{
    const bide_join_deque_ *deque = bide_join_here_;
    return deque != NULL && bide_join_deque_is_empty_(deque);
}

/* ---- For ---- */

typedef struct loop {
    size_t grain;
    void (*body)(void *argument, size_t begin, size_t end);
    void *argument;
} loop;

struct range {
    const loop *loop;
    size_t begin, end;
};

static void run_range(void *argument)
{
    const struct range *self = argument;
    const loop *loop = self->loop;
    size_t begin = self->begin, end = self->end;
    while (begin < end) {
        size_t count = end - begin;
        if (count > loop->grain && parallel_wants_fork()) {
            struct range left = {loop, begin, begin + count / 2};
            struct range right = {loop, left.end, end};
            bide_join(run_range, &left, run_range, &right);
            return;
        }
        size_t next = begin + (count < loop->grain ? count : loop->grain);
        loop->body(loop->argument, begin, next);
        begin = next;
    }
}

void bide_parallel_for(size_t begin, size_t end, size_t grain,
                       void (*body)(void *argument, size_t begin, size_t end), void *argument)
{
    loop loop = {grain != 0 ? grain : 1, body, argument};
    struct range all = {&loop, begin, end};
    run_range(&all);
}

/* ---- Reduce ---- */

typedef struct reduction {
    size_t grain;
    const bide_reduction *user;
    void *argument;
} reduction;

/* A part of a reduction; its result is added to the accumulator. */
struct part {
    const reduction *reduction;
    size_t begin, end;
    void *accumulator;
};

static void run_part(void *argument);

/* The right half gets an accumulator of its own. */
static void fork_part(const reduction *reduction, size_t begin, size_t end, void *accumulator)
{
    BIDE_ALIGNAS(max_align_t) unsigned char other[BIDE_PARALLEL_ACCUMULATOR_MAX];
    const bide_reduction *user = reduction->user;
    memcpy(other, user->identity, user->size);
    size_t middle = begin + (end - begin) / 2;
    struct part left = {reduction, begin, middle, accumulator};
    struct part right = {reduction, middle, end, other};
    bide_join(run_part, &left, run_part, &right);
    user->combine(reduction->argument, accumulator, other);
}

static void run_part(void *argument)
{
    const struct part *self = argument;
    const reduction *reduction = self->reduction;
    size_t begin = self->begin, end = self->end;
    while (begin < end) {
        size_t count = end - begin;
        if (count > reduction->grain && parallel_wants_fork()) {
            fork_part(reduction, begin, end, self->accumulator);
            return;
        }
        size_t next = begin + (count < reduction->grain ? count : reduction->grain);
        reduction->user->body(reduction->argument, begin, next, self->accumulator);
        begin = next;
    }
}

int bide_parallel_reduce(size_t begin, size_t end, size_t grain, const bide_reduction *user,
                         void *argument, void *result)
{
    if (user->size > BIDE_PARALLEL_ACCUMULATOR_MAX)
        return -EINVAL;
    reduction reduction = {grain != 0 ? grain : 1, user, argument};
    struct part all = {&reduction, begin, end, result};
    memcpy(result, user->identity, user->size);
    run_part(&all);
    return 0;
}
