/*
 * A thread that blocks until an operation has ended, or until its deadline, which may come at any
 * time.
 */
#include "bide/check.h"
#include "bide/errors.h"
#include "bide/event.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"

/* The clock is always at 1. */
enum { LATER = 2 };

typedef struct state {
    bide_event events[2];
    bide_stop_source stop;
    bide_context context;
    int data[2];
} state;

static void setup(void *p)
{
    state *s = p;
    bide_event_init(&s->events[0], false);
    bide_event_init(&s->events[1], false);
    bide_stop_source_init(&s->stop);
    s->context = bide_default_context;
    s->context.stop = &s->stop;
}

static void set_both(void *p)
{
    state *s = p;
    for (int i = 0; i < 2; i++) {
        s->data[i] = 1;
        bide_event_set(&s->events[i]);
    }
}

static void set_first(void *p)
{
    state *s = p;
    s->data[0] = 1;
    bide_event_set(&s->events[0]);
}

/*
 * The second wait has its state at the stack address of the first one's: a late access would be
 * detected.
 */
static void wait_for_both(void *p)
{
    state *s = p;
    for (int i = 0; i < 2; i++) {
        bide_event_waiter wait;
        bide_check_assert(bide_sync_wait(bide_event_wait(&wait, &s->events[i])) == 0);
        bide_check_assert(s->data[i] == 1);
    }
}

/* The wait ends once, and leaves nothing behind. */
static void wait_for_a_while(void *p)
{
    state *s = p;
    bide_event_waiter *wait = bide_check_alloc(sizeof *wait);
    int status = bide_sync_wait_until(bide_event_wait(wait, &s->events[0]), LATER);
    bide_check_free(wait);
    bide_check_assert(status == 0 || status == -ETIMEDOUT);
    if (status == 0)
        bide_check_assert(s->data[0] == 1);
    bide_check_note("%s", status == 0 ? "in time" : "too late");
}

/* It is never set. */
static void wait_in_vain(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bide_check_assert(bide_sync_wait_until(bide_event_wait(&wait, &s->events[1]), LATER) ==
                      -ETIMEDOUT);
}

static void request(void *p)
{
    state *s = p;
    s->data[0] = 1;
    bide_stop_request(&s->stop);
}

static void wait_in_context(void *p)
{
    state *s = p;
    bide_event_waiter *wait = bide_check_alloc(sizeof *wait);
    int status = bide_sync_wait_until_in(&s->context, bide_event_wait(wait, &s->events[0]), LATER);
    bide_check_free(wait);
    bide_check_assert(status == -ECANCELED || status == -ETIMEDOUT);
    if (status == -ECANCELED)
        bide_check_assert(s->data[0] == 1);
}

static void finish_empty(void *p)
{
    state *s = p;
    bide_check_assert(bide_event_is_set(&s->events[0]));
}

static void finish_detached(void *p)
{
    bide_check_assert(((state *)p)->stop.first_child == NULL);
}

static const bide_check_scenario blocks = {
    .name = "a_thread_blocks_twice",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_both, wait_for_both},
};

static const bide_check_scenario deadline = {
    .name = "a_deadline_comes_while_the_event_is_set",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup,
    .threads = {set_first, wait_for_a_while},
    .finish = finish_empty,
};

static const bide_check_scenario requested = {
    .name = "a_deadline_comes_while_the_context_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup,
    .threads = {request, wait_in_context},
    .finish = finish_detached,
};

static const bide_check_scenario in_vain = {
    .name = "a_deadline_comes_and_nothing_else",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {wait_in_vain},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&blocks, &deadline, &requested, &in_vain,
                                                     NULL};
    static const char *const files[] = {"sync_wait.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
