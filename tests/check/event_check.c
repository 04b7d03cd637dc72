/*
 * The event: set, reset, waits by two.
 */
#include "bide/check.h"
#include "bide/event.h"

typedef struct state {
    bide_event event;
    int data[2];
    bide_event *allocated;
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

/* Resets what may be set, and sets it again: whoever waits is woken all the same. */
static void set_again(void *p)
{
    state *s = p;
    bide_event_reset(&s->event);
    s->data[1] = 1;
    bide_event_set(&s->event);
}

/* Uses again what the event announces, once it has been announced. */
static void use_again(void *p)
{
    state *s = p;
    wait_for_it(p);
    bide_event_reset(&s->event);
    s->data[0] = 2;
    bide_check_assert(!bide_event_is_set(&s->event));
}

static void wait_only(void *p)
{
    bide_event_waiter wait;
    bide_check_assert(bide_check_await(bide_event_wait(&wait, &((state *)p)->event)) == 0);
}

/* The event goes when the wait on it has ended. */
static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_event_init(s->allocated, false);
}

static void set_allocated(void *p)
{
    bide_event_set(((state *)p)->allocated);
}

static void wait_and_free(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bide_check_await(bide_event_wait(&wait, s->allocated));
    bide_check_free(s->allocated);
}

static const bide_check_scenario two_waiters = {
    .name = "two_wait_for_one_set",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_it, wait_for_it, wait_for_it},
};

static const bide_check_scenario asked = {
    .name = "who_sees_it_set_sees_what_it_announces",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_it, ask, ask},
};

static const bide_check_scenario reset_by_another = {
    .name = "another_resets_it_and_sets_it_again",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_it, set_again, wait_only},
};

static const bide_check_scenario used_again = {
    .name = "who_has_waited_resets_it_and_uses_its_data",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_it, use_again},
};

static const bide_check_scenario freed = {
    .name = "it_is_freed_once_the_wait_has_ended",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {set_allocated, wait_and_free},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&two_waiters, &asked, &reset_by_another,
                                                     &used_again,  &freed, NULL};
    static const char *const files[] = {"event.h", "event.c", "waiter_list.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
