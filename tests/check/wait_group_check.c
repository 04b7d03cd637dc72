/*
 * The wait group: finished work is visible, no zero is missed if the group is added to again at
 * once, and the memory is freed directly after the wait.
 */
#include "bide/check.h"
#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/task.h"
#include "bide/wait_group.h"

/* A coroutine that has been waiting since the setup. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_wait_group *group;
    bide_wait_group_waiter wait;
    int status;
};

typedef struct state {
    bide_wait_group group;
    bide_wait_group *allocated;
    struct early *early[2];
    bide_wait_group_waiter late; /* made in the setup, awaited later */
    int data[2];
} state;

static void setup(void *p)
{
    state *s = p;
    bide_wait_group_init(&s->group);
    bide_wait_group_add(&s->group, 2);
}

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status, bide_wait_group_wait(&self->wait, self->group));
    bide_end();
}

static void enlist(state *s, int index)
{
    struct early *early = s->early[index] = bide_check_alloc(sizeof *early);
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){&bide_inline_scheduler, &early->stop, NULL, NULL, NULL};
    early->group = &s->group;
    early->status = 1;
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
}

static int end_of(state *s, int index)
{
    int status = s->early[index]->status;
    bide_check_assert(status != 1);
    bide_check_free(s->early[index]);
    return status;
}

static void write_and_be_done(state *s, int index)
{
    s->data[index] = 1;
    bide_wait_group_done(&s->group);
}

static void do_first(void *p)
{
    write_and_be_done(p, 0);
}

static void do_second(void *p)
{
    write_and_be_done(p, 1);
}

static void wait_and_look(void *p)
{
    state *s = p;
    bide_wait_group_waiter wait;
    bide_check_assert(bide_check_await(bide_wait_group_wait(&wait, &s->group)) == 0);
    bide_check_assert(s->data[0] == 1 && s->data[1] == 1);
}

static const bide_check_scenario waited = {
    .name = "the_waiter_sees_what_was_done",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {do_first, do_second, wait_and_look},
};

static void try_and_look(void *p)
{
    state *s = p;
    if (bide_wait_group_try_wait(&s->group))
        bide_check_assert(s->data[0] == 1 && s->data[1] == 1);
}

static const bide_check_scenario tried = {
    .name = "finding_it_zero_shows_what_was_done",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {do_first, do_second, try_and_look},
};

/* ---- Reuse ---- */

static void setup_one_waits(void *p)
{
    state *s = p;
    bide_wait_group_init(&s->group);
    bide_wait_group_add(&s->group, 1);
    enlist(s, 0);
}

static void be_done_and_add(void *p)
{
    state *s = p;
    bide_wait_group_done(&s->group);
    bide_wait_group_add(&s->group, 1);
}

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->early[0]->stop);
}

static void setup_two_wait(void *p)
{
    setup_one_waits(p);
    enlist(p, 1);
}

static void finish_zero_seen(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    bide_check_assert(first == 0 || first == -ECANCELED);
    bide_check_assert(end_of(s, 1) == 0);
    bide_check_assert(bide_wait_group_count(&s->group) == 1);
}

static const bide_check_scenario again = {
    .name = "no_zero_is_missed_while_a_waiter_leaves_and_another_thread_adds_again",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_wait,
    .threads = {be_done_and_add, stop_first},
    .finish = finish_zero_seen,
};

/* Begins its wait before or after the zero; the other zero is the last one. */
static void be_done_add_and_be_done(void *p)
{
    state *s = p;
    s->data[0] = 1;
    be_done_and_add(p);
    s->data[1] = 1;
    bide_wait_group_done(&s->group);
}

static void wait_and_look_at_first(void *p)
{
    state *s = p;
    bide_wait_group_waiter wait;
    bide_check_assert(bide_check_await(bide_wait_group_wait(&wait, &s->group)) == 0);
    bide_check_assert(s->data[0] == 1);
}

static void finish_one(void *p)
{
    bide_check_assert(end_of(p, 0) == 0);
}

static const bide_check_scenario twice = {
    .name = "a_waiter_waits_while_it_is_zero_twice",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_waits,
    .threads = {be_done_add_and_be_done, wait_and_look_at_first},
    .finish = finish_one,
};

/* ---- Closed ---- */

static void close_it(void *p)
{
    bide_wait_group_close(&((state *)p)->group);
}

static void be_done(void *p)
{
    bide_wait_group_done(&((state *)p)->group);
}

static void wait_or_not(void *p)
{
    state *s = p;
    bide_wait_group_waiter wait;
    int status = bide_check_await(bide_wait_group_wait(&wait, &s->group));
    bide_check_assert(status == 0 || status == -EPIPE);
}

static void finish_closed(void *p)
{
    int status = end_of(p, 0);
    bide_check_assert(status == 0 || status == -EPIPE);
    bide_check_assert(bide_wait_group_try_wait(&((state *)p)->group));
}

static const bide_check_scenario closed = {
    .name = "it_is_closed_while_the_last_is_done",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_waits,
    .threads = {be_done, close_it, wait_or_not},
    .finish = finish_closed,
};

/* ---- The memory is freed as early as allowed ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_wait_group_init(s->allocated);
    bide_wait_group_add(s->allocated, 2);
}

static void be_done_there(void *p)
{
    bide_wait_group_done(((state *)p)->allocated);
}

static void wait_and_free(void *p)
{
    state *s = p;
    bide_wait_group_waiter wait;
    bide_check_assert(bide_check_await(bide_wait_group_wait(&wait, s->allocated)) == 0);
    bide_check_free(s->allocated);
}

static const bide_check_scenario freed = {
    .name = "the_waiter_frees_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {be_done_there, be_done_there, wait_and_free},
};

/* ---- A wait that is due is behind one that is not ---- */

static void setup_one_late(void *p)
{
    state *s = p;
    bide_wait_group_init(&s->group);
    bide_wait_group_add(&s->group, 1);
    bide_await_later(bide_wait_group_wait(&s->late, &s->group));
}

static void be_done_and_add_and_enlist(void *p)
{
    state *s = p;
    bide_wait_group_done(&s->group);
    bide_wait_group_add(&s->group, 1);
    enlist(s, 0);
}

static void await_late(void *p)
{
    bide_check_assert(bide_check_await(&((state *)p)->late.waiter.awaiter) == 0);
}

static void finish_late(void *p)
{
    state *s = p;
    bide_wait_group_done(&s->group);
    bide_check_assert(end_of(s, 0) == 0);
}

static const bide_check_scenario late = {
    .name = "a_wait_for_what_is_done_comes_behind_a_wait_for_what_is_not",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_late,
    .threads = {be_done_and_add_and_enlist, await_late},
    .finish = finish_late,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const scenarios[] = {&waited, &tried, &again, &twice,
                                                           &closed, &freed, &late,  NULL};
    static const char *const files[] = {"wait_group.h", "wait_group.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){scenarios, files, NULL});
}
