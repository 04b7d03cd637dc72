/*
 * Timers of the inline scheduler: run by a thread inside bide_sync_wait, or by the service's
 * thread, which is a thread of the scenario here. A time may come at any moment.
 */
#include "../../src/coroutine/inline_timers.h"

#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/errors.h"
#include "bide/event.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

/* The clock is always at 1. */
enum { LATER = 2 };

typedef struct state {
    bide_stop_source stop;
    bide_context context;
    bide_event event;
    bide_spawned *spawned;
    bide_sleep *sleep;
    bide_spawned *other;
    bide_sleep *other_sleep;
} state;

static void setup(void *p)
{
    state *s = p;
    bide_inline_timers_begin_anew_();
    bide_start_timer_service_ = NULL;
    bide_stop_source_init(&s->stop);
    s->context = bide_default_context;
    s->context.stop = &s->stop;
    bide_event_init(&s->event, false);
}

/* ---- A waiting thread runs its own timers ---- */

static void sleep_under_a_wait(void *p)
{
    bide_sleep sleep;
    (void)p;
    bide_check_assert(bide_sync_wait(bide_sleep_until(&sleep, LATER)) == 0);
}

static const bide_check_scenario waits = {
    .name = "two_threads_sleep_each_under_a_wait_of_its_own",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup,
    .threads = {sleep_under_a_wait, sleep_under_a_wait},
};

/* A cancelled timer may be freed at once. */
static void sleep_or_be_stopped(void *p)
{
    state *s = p;
    bide_sleep *sleep = bide_check_alloc(sizeof *sleep);
    int status = bide_sync_wait_in(&s->context, bide_sleep_until(sleep, LATER));
    bide_check_free(sleep);
    bide_check_assert(status == -ECANCELED || status == 0);
    bide_check_note("%s", status == 0 ? "in time" : "cut short");
}

static void request(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

static const bide_check_scenario stopped = {
    .name = "a_sleep_under_a_wait_is_cut_short_or_ends",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup,
    .threads = {sleep_or_be_stopped, request},
};

/* ---- The service ---- */

static int start_none(void)
{
    return 0; /* it is a thread of the scenario */
}

static void setup_service(void *p)
{
    state *s = p;
    setup(p);
    bide_start_timer_service_ = start_none;
    s->spawned = bide_check_alloc(sizeof *s->spawned);
    s->sleep = bide_check_alloc(sizeof *s->sleep);
    s->other = bide_check_alloc(sizeof *s->other);
    s->other_sleep = bide_check_alloc(sizeof *s->other_sleep);
}

static void finish_service(void *p)
{
    state *s = p;
    bide_check_free(s->spawned);
    bide_check_free(s->sleep);
    bide_check_free(s->other);
    bide_check_free(s->other_sleep);
}

static void serve(void *p)
{
    (void)p;
    bide_serve_timers_();
}

static void await_ended(bide_spawned *spawned)
{
    bide_event_waiter wait;
    bide_check_await(bide_event_wait(&wait, &spawned->ended));
}

static void sleep_by_the_service(void *p)
{
    state *s = p;
    bide_spawn(s->spawned, &bide_default_context, bide_sleep_until(s->sleep, LATER));
    await_ended(s->spawned);
    bide_check_assert(s->spawned->root.status == 0);
    bide_end_timer_service_anyhow_();
}

static const bide_check_scenario served = {
    .name = "a_sleep_that_no_thread_waits_in_is_served",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup_service,
    .threads = {serve, sleep_by_the_service},
    .finish = finish_service,
};

/* The service may already be asleep until the later time. */
static void sleep_for_long_and_then_less(void *p)
{
    state *s = p;
    bide_spawn(s->other, &s->context, bide_sleep_until(s->other_sleep, BIDE_FOREVER));
    bide_spawn(s->spawned, &bide_default_context, bide_sleep_until(s->sleep, LATER));
    await_ended(s->spawned);
    bide_check_assert(s->spawned->root.status == 0);
    bide_stop_request(&s->stop);
    bide_check_assert(bide_event_is_set(&s->other->ended));
    bide_check_assert(s->other->root.status == -ECANCELED);
    bide_end_timer_service_anyhow_();
}

static const bide_check_scenario earlier = {
    .name = "an_earlier_sleep_wakes_the_service",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup_service,
    .threads = {serve, sleep_for_long_and_then_less},
    .finish = finish_service,
};

static void sleep_and_request(void *p)
{
    state *s = p;
    bide_spawn(s->spawned, &s->context, bide_sleep_until(s->sleep, LATER));
    bide_stop_request(&s->stop);
    await_ended(s->spawned);
    int status = s->spawned->root.status;
    bide_check_assert(status == -ECANCELED || status == 0);
    bide_check_note("%s", status == 0 ? "in time" : "cut short");
    bide_end_timer_service_anyhow_();
}

static const bide_check_scenario served_or_stopped = {
    .name = "a_sleep_of_the_service_is_cut_short_or_ends",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup_service,
    .threads = {serve, sleep_and_request},
    .finish = finish_service,
};

/*
 * Starts the sleep under a wait that ends first: the service takes the sleep over, and may be
 * asleep by then.
 */
struct leaver {
    bide_task task;
    state *state;
};

bide_coroutine(leaver_body)
{
    bide_begin(leaver_body, struct leaver * self);
    bide_spawn(self->state->spawned, &self->state->context,
               bide_sleep_until(self->state->sleep, LATER));
    bide_end();
}

static void leave_a_sleep(void *p)
{
    state *s = p;
    struct leaver leaver = {.state = s};
    bide_check_assert(bide_sync_wait(bide_task_init(&leaver.task, &leaver_body)) == 0);
    await_ended(s->spawned);
    bide_check_assert(s->spawned->root.status == 0);
    bide_end_timer_service_anyhow_();
}

static const bide_check_scenario left = {
    .name = "a_sleep_that_a_wait_leaves_is_served",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup_service,
    .threads = {serve, leave_a_sleep},
    .finish = finish_service,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &waits, &stopped, &served, &earlier, &served_or_stopped, &left, NULL};
    static const char *const files[] = {"inline_timers.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
