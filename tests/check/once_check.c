/*
 * Once: one runner; a thread that finds it done sees the result; a turn that races with
 * cancellation, closing and the next arrival; and memory that is freed as early as allowed.
 */
#include "kept.h"

#include "bide/check.h"
#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/once.h"
#include "bide/stop.h"
#include "bide/task.h"

/* A coroutine that has been waiting in line since the setup. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    bide_once_waiter begin;
    int status;
};

typedef struct state {
    bide_once once;
    bide_once_waiter runner; /* since the setup */
    bide_once *allocated;
    struct early *early;
    int data;
    int tries;
    bide_atomic(uint32_t) users;
} state;

static void setup(void *p)
{
    bide_once_init(&((state *)p)->once);
}

/* The runner fails the first time. */
static void do_it(state *s, bide_once_waiter *begin, int tries)
{
    if (!begin->runs) {
        bide_check_assert(s->data == 1);
        return;
    }
    bool done = ++s->tries == tries;
    s->data += done;
    bide_once_finish(begin, done);
}

static void begin_it(void *p)
{
    state *s = p;
    bide_once_waiter begin;
    bide_check_assert(bide_check_await(bide_once_start(&begin, &s->once)) == 0);
    do_it(s, &begin, 1);
}

static void begin_or_fail(void *p)
{
    state *s = p;
    bide_once_waiter begin;
    bide_check_assert(bide_check_await(bide_once_start(&begin, &s->once)) == 0);
    do_it(s, &begin, 2);
}

static void ask(void *p)
{
    state *s = p;
    if (bide_once_is_done(&s->once))
        bide_check_assert(s->data == 1);
}

static void finish_done(void *p)
{
    state *s = p;
    bide_check_assert(s->data == 1 && s->tries == 1 && bide_once_is_done(&s->once));
}

static void finish_done_at_second(void *p)
{
    state *s = p;
    bide_check_assert(s->data == 1 && s->tries == 2 && bide_once_is_done(&s->once));
}

static const bide_check_scenario done = {
    .name = "one_of_two_runs_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {begin_it, begin_it, ask},
    .finish = finish_done,
};

static const bide_check_scenario failed = {
    .name = "if_the_first_fails_the_second_runs_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {begin_or_fail, begin_or_fail},
    .finish = finish_done_at_second,
};

/* ---- One runs it, another waits ---- */

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status, bide_once_start(&self->begin, &self->state->once));
    if (self->status == 0)
        do_it(self->state, &self->begin, 2);
    bide_end();
}

static void setup_line(void *p)
{
    state *s = p;
    setup(p);
    bide_check_assert(bide_check_await(bide_once_start(&s->runner, &s->once)) == 0);
    struct early *early = s->early = bide_check_alloc(sizeof *early);
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){&bide_inline_scheduler, &early->stop, NULL, NULL, NULL};
    early->state = s;
    early->status = 1;
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
}

static void fail_it(void *p)
{
    state *s = p;
    s->tries++;
    bide_once_finish(&s->runner, false);
}

static void end_it(void *p)
{
    state *s = p;
    s->data++;
    bide_once_finish(&s->runner, true);
}

static void stop_it(void *p)
{
    bide_stop_request(&((state *)p)->early->stop);
}

static void close_it(void *p)
{
    bide_once_close(&((state *)p)->once);
}

static void finish_early(state *s, int otherwise)
{
    bide_check_assert(bide_done(&s->early->task.frame));
    bide_check_assert(s->early->status == 0 || s->early->status == otherwise);
    bide_check_free(s->early);
}

static void finish_cancelled(void *p)
{
    state *s = p;
    finish_early(s, -ECANCELED);
    finish_done_at_second(p);
}

static const bide_check_scenario cancelled = {
    .name = "the_first_in_line_is_asked_to_stop_and_a_comer_runs_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_line,
    .threads = {fail_it, stop_it, begin_or_fail},
    .finish = finish_cancelled,
};

static void finish_closed(void *p)
{
    state *s = p;
    bide_once_waiter begin;
    finish_early(s, -EPIPE);
    bide_check_assert(bide_check_await(bide_once_start(&begin, &s->once)) == 0);
    bide_check_assert(!begin.runs);
}

static const bide_check_scenario closed = {
    .name = "it_is_closed_while_it_gets_done",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_line,
    .threads = {end_it, close_it},
    .finish = finish_closed,
};

static void begin_or_see_why(void *p)
{
    state *s = p;
    bide_once_waiter begin;
    int status = bide_check_await(bide_once_start(&begin, &s->once));
    if (status == 0 && begin.runs)
        bide_once_finish(&begin, true);
    else if (status != 0)
        bide_check_assert(status == -EPIPE && s->tries == 7);
}

static void write_and_close(void *p)
{
    state *s = p;
    s->tries = 7;
    bide_once_close(&s->once);
}

static const bide_check_scenario closed_with_reason = {
    .name = "finding_it_closed_shows_what_came_before",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_and_close, begin_or_see_why},
};

/* ---- The memory is freed as early as allowed ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_once_init(s->allocated);
    bide_atomic_init(&s->users, 2);
}

static void use_and_free(void *p)
{
    state *s = p;
    bide_once_waiter begin;
    bide_check_assert(bide_check_await(bide_once_start(&begin, s->allocated)) == 0);
    if (begin.runs)
        bide_once_finish(&begin, true);
    if (bide_atomic_fetch_sub(&s->users, 1, acq_rel) == 1)
        bide_check_free(s->allocated);
}

static const bide_check_scenario freed = {
    .name = "the_last_user_frees_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {use_and_free, use_and_free},
};

/* ---- Destroyed before it runs ---- */

static void setup_kept(void *p)
{
    setup_line(p);
    ((state *)p)->early->context.scheduler = &kept;
}

static void end_it_either_way(void *p)
{
    state *s = p;
    s->tries = (int)bide_check_choose(2);
    bide_once_finish(&s->runner, s->tries == 1);
}

static void finish_destroyed(void *p)
{
    state *s = p;
    bide_once_waiter begin;
    bide_check_assert(s->early->status == 1);
    bide_destroy(&s->early->task.frame);
    bide_check_free(s->early);
    bide_check_assert(bide_once_is_done(&s->once) == (s->tries == 1));
    bide_check_assert(bide_check_await(bide_once_start(&begin, &s->once)) == 0);
    bide_check_assert(begin.runs == (s->tries == 0));
}

static const bide_check_scenario destroyed = {
    .name = "the_turn_of_a_destroyed_waiter_goes_to_the_next",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_kept,
    .threads = {end_it_either_way},
    .finish = finish_destroyed,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &done, &failed, &cancelled, &closed, &closed_with_reason, &freed, &destroyed, NULL,
    };
    static const char *const files[] = {"once.h", "once.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
