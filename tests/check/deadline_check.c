/*
 * Deadlines: one thread ends a deadline while another is about to cancel its source; then its
 * memory is freed.
 */
#include "bide/check.h"
#include "bide/deadline.h"
#include "bide/errors.h"
#include "bide/run_loop.h"

/* The clock is always at 1. */
enum { DUE = 1 };

typedef struct state {
    bide_run_loop loop;
    bide_deadline *deadline; /* allocated, so that a late access is detected */
    bide_deadline_waiter *end;
} state;

static void setup(void *p)
{
    state *s = p;
    bide_run_loop_init(&s->loop);
    s->deadline = bide_check_alloc(sizeof *s->deadline);
    s->end = bide_check_alloc(sizeof *s->end);
    bide_check_assert(bide_deadline_init(s->deadline, &s->loop.context, DUE) == 0);
}

static void run_the_loop(void *p)
{
    bide_run_loop_run_ready(&((state *)p)->loop);
}

/* Resumed on this thread or on the loop's: the thread that ends it frees it. */
static void end_and_free(void *p)
{
    state *s = p;
    bide_check_assert(bide_check_await(bide_deadline_stop(s->end, s->deadline)) == 0);
    int reason = bide_stop_reason(&s->deadline->source);
    bide_check_assert(reason == 0 || reason == -ETIMEDOUT);
    bide_check_note("%s", reason == 0 ? "in time" : "too late");
    bide_check_free(s->deadline);
    bide_check_free(s->end);
}

static const bide_check_scenario awaited = {
    .name = "the_end_of_a_deadline_is_awaited_while_it_may_fire",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {run_the_loop, end_and_free},
};

static void try_and_free(void *p)
{
    state *s = p;
    if (bide_deadline_try_stop(s->deadline)) {
        int reason = bide_stop_reason(&s->deadline->source);
        bide_check_assert(reason == 0 || reason == -ETIMEDOUT);
        bide_check_free(s->deadline);
        s->deadline = NULL;
    }
}

static void free_the_rest(void *p)
{
    state *s = p;
    bide_check_free(s->end);
    if (s->deadline != NULL) {
        bide_check_assert(bide_deadline_try_stop(s->deadline));
        bide_check_assert(bide_stop_reason(&s->deadline->source) == -ETIMEDOUT);
        bide_check_free(s->deadline);
    }
}

static const bide_check_scenario tried = {
    .name = "a_deadline_is_tried_to_be_ended_while_it_may_fire",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {run_the_loop, try_and_free},
    .finish = free_the_rest,
};

/* ---- Long before the deadline ---- */

static void setup_early(void *p)
{
    state *s = p;
    setup(p);
    bide_check_assert(bide_deadline_try_stop(s->deadline));
    bide_check_assert(bide_deadline_init(s->deadline, &s->loop.context, DUE + 1) == 0);
}

static void end_in_time(void *p)
{
    state *s = p;
    bide_check_assert(bide_check_await(bide_deadline_stop(s->end, s->deadline)) == 0);
    bide_check_assert(bide_stop_reason(&s->deadline->source) == 0);
    bide_check_free(s->deadline);
    bide_check_free(s->end);
}

static const bide_check_scenario in_time = {
    .name = "a_deadline_is_ended_long_before_its_time",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_early,
    .threads = {run_the_loop, end_in_time},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&awaited, &tried, &in_time, NULL};
    static const char *const files[] = {"deadline.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
