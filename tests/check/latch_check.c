/*
 * The latch: data written before each count-down is visible, and the memory is freed directly after
 * the wait.
 */
#include "bide/check.h"
#include "bide/errors.h"
#include "bide/latch.h"

typedef struct state {
    bide_latch *latch;
    int data[2];
    int freed;
} state;

static void setup(void *p)
{
    state *s = p;
    s->latch = bide_check_alloc(sizeof *s->latch);
    bide_latch_init(s->latch, 2);
}

static void count_down(state *s, int index)
{
    s->data[index] = 1;
    bide_latch_count_down(s->latch);
}

static void count_down_first(void *p)
{
    count_down(p, 0);
}

static void count_down_second(void *p)
{
    count_down(p, 1);
}

static void wait_and_free(void *p)
{
    state *s = p;
    bide_latch_waiter wait;
    bide_check_assert(bide_check_await(bide_latch_wait(&wait, s->latch)) == 0);
    bide_check_assert(s->data[0] == 1 && s->data[1] == 1);
    bide_check_free(s->latch);
}

static const bide_check_scenario waited = {
    .name = "the_waiter_sees_everything_and_frees_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {count_down_first, count_down_second, wait_and_free},
};

static void try_and_look(void *p)
{
    state *s = p;
    if (bide_latch_try_wait(s->latch))
        bide_check_assert(s->data[0] == 1 && s->data[1] == 1);
}

static void finish_free(void *p)
{
    state *s = p;
    bide_check_assert(bide_latch_try_wait(s->latch));
    bide_check_free(s->latch);
}

static const bide_check_scenario tried = {
    .name = "finding_it_zero_shows_everything",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {count_down_first, count_down_second, try_and_look},
    .finish = finish_free,
};

/* The count is zero, so the memory may be freed. */
static void try_and_free(void *p)
{
    state *s = p;
    if (bide_latch_try_wait(s->latch)) {
        bide_check_free(s->latch);
        s->freed = 1;
    }
}

static void finish_freed(void *p)
{
    state *s = p;
    if (!s->freed)
        finish_free(p);
}

static const bide_check_scenario tried_and_freed = {
    .name = "finding_it_zero_lets_the_finder_free_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {count_down_first, count_down_second, try_and_free},
    .finish = finish_freed,
};

static void arrive_and_look(state *s, int index)
{
    bide_latch_waiter wait;
    s->data[index] = 1;
    bide_check_assert(bide_check_await(bide_latch_arrive_and_wait(&wait, s->latch)) == 0);
    bide_check_assert(s->data[0] == 1 && s->data[1] == 1);
}

static void arrive_first(void *p)
{
    arrive_and_look(p, 0);
}

static void arrive_second(void *p)
{
    arrive_and_look(p, 1);
}

static const bide_check_scenario met = {
    .name = "two_arrive_and_wait_for_each_other",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {arrive_first, arrive_second},
    .finish = finish_free,
};

static void count_down_twice(void *p)
{
    count_down(p, 0);
    count_down(p, 1);
}

static void close_it(void *p)
{
    bide_latch_close(((state *)p)->latch);
}

static void wait_or_not(void *p)
{
    state *s = p;
    bide_latch_waiter wait;
    int status = bide_check_await(bide_latch_wait(&wait, s->latch));
    bide_check_assert(status == 0 || status == -EPIPE);
    if (status == 0)
        bide_check_assert(s->data[0] == 1 && s->data[1] == 1);
}

static void finish_closed(void *p)
{
    bide_check_free(((state *)p)->latch);
}

static const bide_check_scenario closed = {
    .name = "it_is_closed_while_it_is_counted_down",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {count_down_twice, close_it, wait_or_not},
    .finish = finish_closed,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const scenarios[] = {&waited, &tried,           &met,
                                                           &closed, &tried_and_freed, NULL};
    static const char *const files[] = {"latch.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){scenarios, files, NULL});
}
