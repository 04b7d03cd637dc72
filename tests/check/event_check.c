/*
 * The event: set, reset, waits by two.
 */
#include "bide/check.h"
#include "bide/event.h"

#include <stdlib.h>

typedef struct state {
    bide_event event;
    int data[3];
    int *block;
} state;

static void setup(void *p)
{
    bide_event_init(&((state *)p)->event, false);
}

static void set_it(void *p)
{
    state *s = p;
    s->data[0] = 1;
    bide_event_set(&s->event);
}

static void wait_for_it(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bide_check_assert(bide_check_await(bide_event_wait(&wait, &s->event)) == 0);
    bide_check_assert(s->data[0] == 1);
}

static void ask(void *p)
{
    state *s = p;
    if (bide_event_is_set(&s->event))
        bide_check_assert(s->data[0] == 1);
}

static void set_twice_over(void *p)
{
    state *s = p;
    bide_event_set(&s->event);
}

/* Resets in order to write anew what the event announced. */
static void reuse(void *p)
{
    state *s = p;
    bide_event_reset(&s->event);
    if (!bide_event_is_set(&s->event)) {
    }
}

static const bide_check_scenario two_waiters = {
    .name = "two_wait_for_one_set",
    .size = sizeof(state),
    .setup = setup,
    .threads = {set_it, wait_for_it, wait_for_it},
};

static const bide_check_scenario asked = {
    .name = "who_sees_it_set_sees_what_it_announces",
    .size = sizeof(state),
    .setup = setup,
    .threads = {set_it, ask, ask},
};

static const bide_check_scenario set_by_two = {
    .name = "two_set_it_and_one_waits",
    .size = sizeof(state),
    .setup = setup,
    .threads = {set_twice_over, set_twice_over, wait_for_it},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&two_waiters, &asked, NULL};
    static const char *const files[] = {"event.h", "event.c", "waiter_list.h", NULL};
    (void)reuse;
    (void)set_by_two;
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
