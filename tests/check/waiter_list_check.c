/*
 * A list of waiters from which some are removed, in an event: waiters that have enlisted before,
 * and are cancelled by two threads, while a third sets, resets or closes it. The memory of a waiter
 * is overwritten as soon as its wait has ended.
 */
#include "bide/check.h"
#include "bide/errors.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/task.h"

enum { EARLY = 5 };

/* A coroutine that has enlisted. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    bide_event_waiter wait;
    int status;
};

typedef struct state {
    bide_event event;
    struct early early[EARLY];
    int data; /* written before it is set */
} state;

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status, bide_event_wait(&self->wait, &self->state->event));
    bide_check_assert(self->status != 0 || self->state->data == 1);
    self->wait = (bide_event_waiter){.event = NULL};
    bide_end();
}

static void enlist(state *s, int index)
{
    struct early *early = &s->early[index];
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){&bide_inline_scheduler, &early->stop, NULL, NULL, NULL};
    early->state = s;
    early->status = 1;
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
}

static void setup_two(void *p)
{
    state *s = p;
    bide_event_init(&s->event, false);
    enlist(s, 0);
    enlist(s, 1);
}

static void setup_three(void *p)
{
    setup_two(p);
    enlist(p, 2);
}

/* The rest of the list is linked: a waiter has left. */
static void setup_two_linked(void *p)
{
    state *s = p;
    setup_three(s);
    bide_stop_request(&s->early[2].stop);
}

static void setup_two_linked_written(void *p)
{
    setup_two_linked(p);
    ((state *)p)->data = 1;
}

/* One is linked, and one has arrived since. */
static void setup_one_linked(void *p)
{
    state *s = p;
    bide_event_init(&s->event, false);
    enlist(s, 0);
    enlist(s, 2);
    bide_stop_request(&s->early[2].stop);
    enlist(s, 1);
}

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->early[0].stop);
}

static void stop_second(void *p)
{
    bide_stop_request(&((state *)p)->early[1].stop);
}

static void set_it(void *p)
{
    state *s = p;
    s->data = 1;
    bide_event_set(&s->event);
}

/* data is written in the setup */
static void set_it_or_find_it_set(void *p)
{
    state *s = p;
    bide_event_set(&s->event);
    bide_check_assert(bide_event_is_set(&s->event));
}

/* A waiter that arrives after the reset is in another chain. */
static void set_reset_and_wait(void *p)
{
    set_it(p);
    bide_event_reset(&((state *)p)->event);
    enlist(p, 2);
}

static void close_it(void *p)
{
    bide_event_close(&((state *)p)->event);
}

static void come(void *p)
{
    enlist(p, 2);
}

static void come_and_stop(void *p)
{
    enlist(p, 2);
    bide_stop_request(&((state *)p)->early[2].stop);
}

static void come_twice(void *p)
{
    enlist(p, 3);
    enlist(p, 4);
}

static void set_and_reset(void *p)
{
    bide_event_set(&((state *)p)->event);
    bide_event_reset(&((state *)p)->event);
}

static void check_ended(state *s, int index, int otherwise)
{
    struct early *early = &s->early[index];
    bide_check_assert(bide_done(&early->task.frame));
    bide_check_assert(early->status == 0 || early->status == -ECANCELED ||
                      early->status == otherwise);
}

static void finish_both_asked(void *p)
{
    state *s = p;
    for (int i = 0; i < 2; i++)
        bide_check_assert(bide_done(&s->early[i].task.frame) && s->early[i].status == -ECANCELED);
}

static void finish_two(void *p)
{
    check_ended(p, 0, 0);
    check_ended(p, 1, 0);
}

static void finish_one_asked(void *p)
{
    finish_two(p);
    bide_check_assert(((state *)p)->early[1].status == 0);
}

static void finish_set(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0].status == 0 && s->early[1].status == 0);
}

static void finish_third_stays(void *p)
{
    state *s = p;
    bide_check_assert(!bide_done(&s->early[2].task.frame));
    bide_event_set(&s->event);
    check_ended(s, 2, 0);
}

static void finish_both_asked_third_stays(void *p)
{
    finish_both_asked(p);
    ((state *)p)->data = 1;
    finish_third_stays(p);
}

static void finish_two_third_stays(void *p)
{
    finish_two(p);
    finish_third_stays(p);
}

static void finish_one_asked_third_stays(void *p)
{
    finish_one_asked(p);
    finish_third_stays(p);
}

static void finish_third_too(void *p)
{
    finish_one_asked(p);
    check_ended(p, 2, 0);
}

/* The first and the third were cancelled, the second stays. */
static void finish_second_stays(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0].status == -ECANCELED && s->early[2].status == -ECANCELED);
    bide_check_assert(!bide_done(&s->early[1].task.frame));
    s->data = 1;
    bide_event_set(&s->event);
    check_ended(s, 1, 0);
}

static void finish_all_five(void *p)
{
    state *s = p;
    bide_event_set(&s->event);
    finish_one_asked(s);
    check_ended(s, 3, 0);
    check_ended(s, 4, 0);
}

static void finish_closed(void *p)
{
    check_ended(p, 0, -EPIPE);
    check_ended(p, 1, -EPIPE);
    bide_check_assert(((state *)p)->early[1].status == -EPIPE);
}

#define SCENARIO(name_of, setup_with, finish_with, ...)                          \
    static const bide_check_scenario name_of = {.name = #name_of,                \
                                                .size = sizeof(state),           \
                                                .cxx20_release_sequences = true, \
                                                .setup = setup_with,             \
                                                .finish = finish_with,           \
                                                .never_spurious = true,          \
                                                .threads = {__VA_ARGS__}}

SCENARIO(two_of_two_are_cut_short, setup_two, finish_both_asked, stop_first, stop_second);
SCENARIO(two_of_three_are_cut_short, setup_three, finish_both_asked_third_stays, stop_first,
         stop_second);
SCENARIO(two_linked_waits_are_cut_short, setup_two_linked, finish_both_asked, stop_first,
         stop_second);
SCENARIO(one_of_two_waits_is_cut_short_while_it_is_set, setup_two, finish_one_asked, stop_first,
         set_it);
SCENARIO(one_of_two_linked_waits_is_cut_short_while_it_is_set, setup_two_linked, finish_one_asked,
         stop_first, set_it);
SCENARIO(a_linked_wait_is_cut_short_while_it_is_set_and_reset, setup_one_linked,
         finish_one_asked_third_stays, stop_first, set_reset_and_wait);
SCENARIO(a_wait_is_cut_short_while_it_is_set_and_reset, setup_two, finish_one_asked_third_stays,
         stop_first, set_reset_and_wait);
SCENARIO(one_of_two_waits_of_which_one_is_linked_is_cut_short_while_it_is_set, setup_one_linked,
         finish_one_asked, stop_first, set_it);
SCENARIO(two_are_cut_short_while_it_is_set, setup_two_linked, finish_two, stop_first, stop_second,
         set_it);
SCENARIO(two_set_linked_waits, setup_two_linked_written, finish_set, set_it_or_find_it_set,
         set_it_or_find_it_set);
SCENARIO(two_are_cut_short_while_it_is_set_and_reset, setup_two, finish_two_third_stays, stop_first,
         stop_second, set_reset_and_wait);
SCENARIO(a_wait_is_cut_short_while_linked_ones_are_closed, setup_two_linked, finish_closed,
         stop_first, close_it);
SCENARIO(a_wait_comes_while_another_is_cut_short_and_it_is_set, setup_two, finish_third_too,
         stop_first, set_it, come);
SCENARIO(a_wait_comes_and_is_cut_short_while_another_is, setup_two, finish_second_stays, stop_first,
         come_and_stop);
static const bide_check_scenario two_waits_come_while_linked_ones_are_set_and_one_is_cut_short = {
    .name = "two_waits_come_while_linked_ones_are_set_and_one_is_cut_short",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_linked_written,
    .finish = finish_all_five,
    .never_spurious = true,
    .preemptions = 2,
    .threads = {stop_first, set_and_reset, come_twice},
};

#define GATE  "the gate's, and found by its own scenarios"
#define EVENT "the event's, and found by its own scenarios"

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &two_of_two_are_cut_short,
        &two_of_three_are_cut_short,
        &two_linked_waits_are_cut_short,
        &one_of_two_waits_is_cut_short_while_it_is_set,
        &one_of_two_linked_waits_is_cut_short_while_it_is_set,
        &a_linked_wait_is_cut_short_while_it_is_set_and_reset,
        &a_wait_is_cut_short_while_it_is_set_and_reset,
        &one_of_two_waits_of_which_one_is_linked_is_cut_short_while_it_is_set,
        &two_set_linked_waits,
        &a_wait_is_cut_short_while_linked_ones_are_closed,
        &two_are_cut_short_while_it_is_set,
        &two_are_cut_short_while_it_is_set_and_reset,
        &a_wait_comes_while_another_is_cut_short_and_it_is_set,
        &a_wait_comes_and_is_cut_short_while_another_is,
        &two_waits_come_while_linked_ones_are_set_and_one_is_cut_short,
        NULL,
    };
    static const bide_check_reason reasons[] = {
        {"bide_stop_suspend_in_", "load", "&source->word", "relaxed", GATE},
        {"bide_stop_suspend_in_", "compare_exchange", "&source->word", "relaxed", GATE},
        {"stop_source_ask", "compare_exchange", "&source->word", "acquire", GATE},
        {"stop_source_ask", "compare_exchange", "&source->word", "release", GATE},
        {"bide_waiter_list_reopen", "compare_exchange", "&list->word", "relaxed", EVENT},
        {"bide_waiter_list_shut_for_good", "compare_exchange", "&list->word", "acquire", EVENT},
        {"bide_waiter_list_shut_for_good", "compare_exchange", "&list->word", "release", EVENT},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static const char *const files[] = {
        "stop.h",       "stop.c", "waiter_list.h", "waiter_list.c", "biased_list.c",
        "list_sweep.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
