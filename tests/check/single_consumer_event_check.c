/*
 * Events for one waiter: concurrent set, reset, close and cancellation.
 */
#include "kept.h"

#include "bide/check.h"
#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/single_consumer_event.h"
#include "bide/task.h"
#include "bide/extend/wrapper.h"

typedef struct state {
    bide_single_consumer_event event;
    bide_single_consumer_auto_event automatic;
    bide_stop_source stop;
    bide_context context;
    int data[2];
    int passed; /* waits */
    bide_single_consumer_event *allocated;
    bide_atomic(uint32_t) made; /* written by the setters */
    uint32_t taken;             /* by the thread that waits, resets and takes everything */
    struct early *early;        /* waits since the setup */
} state;

static void setup(void *p)
{
    state *s = p;
    bide_single_consumer_event_init(&s->event, false);
    bide_single_consumer_auto_event_init(&s->automatic, false);
    bide_stop_source_init(&s->stop);
    s->context = bide_default_context;
    s->context.stop = &s->stop;
    bide_atomic_init(&s->made, 0);
}

static void check_ended(state *s, int status)
{
    bide_check_assert(status == 0 || status == -EPIPE || status == -ECANCELED);
    if (status != -ECANCELED)
        bide_check_assert(status == 0 ? s->data[0] == 1 : s->data[1] == 1);
}

static void request(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

/* ---- Manual reset ---- */

static void set_it(void *p)
{
    state *s = p;
    s->data[0] = 1;
    bide_single_consumer_event_set(&s->event);
}

static void set_again(void *p)
{
    state *s = p;
    bide_single_consumer_event_reset(&s->event);
    s->data[1] = 1;
    bide_single_consumer_event_set(&s->event);
}

static void close_it(void *p)
{
    state *s = p;
    s->data[1] = 1;
    bide_single_consumer_event_close(&s->event);
}

static void wait_for_it(void *p)
{
    state *s = p;
    bide_single_consumer_event_waiter wait;
    check_ended(s, bide_check_await(bide_single_consumer_event_wait(&wait, &s->event)));
}

static void wait_only(void *p)
{
    bide_single_consumer_event_waiter wait;
    bide_check_assert(
        bide_check_await(bide_single_consumer_event_wait(&wait, &((state *)p)->event)) == 0);
}

static void ask(void *p)
{
    state *s = p;
    if (bide_single_consumer_event_is_set(&s->event))
        bide_check_assert(s->data[0] == 1);
}

static void set_second(void *p)
{
    state *s = p;
    s->data[1] = 1;
    bide_single_consumer_event_set(&s->event);
}

/*
 * Each setter has produced an item. A consumer that waits, resets and takes all items misses none,
 * even without another set.
 */
static void make_and_set(void *p)
{
    state *s = p;
    bide_atomic_fetch_add(&s->made, 1, relaxed);
    bide_single_consumer_event_set(&s->event);
}

static void wait_reset_and_take(void *p)
{
    state *s = p;
    wait_only(p);
    bide_single_consumer_event_reset(&s->event);
    s->taken = bide_atomic_load(&s->made, relaxed);
}

static void finish_all_taken(void *p)
{
    state *s = p;
    bide_check_assert(s->taken == 2 || bide_single_consumer_event_is_set(&s->event));
}

/* An event that was set before the close stays set. */
static void set_and_close(void *p)
{
    set_it(p);
    close_it(p);
}

static void finish_set_for_good(void *p)
{
    bide_check_assert(bide_single_consumer_event_is_set(&((state *)p)->event));
}

static void wait_until_stopped(void *p)
{
    state *s = p;
    bide_single_consumer_event_waiter wait;
    check_ended(s,
                bide_sync_wait_in(&s->context, bide_single_consumer_event_wait(&wait, &s->event)));
}

static void finish_closed(void *p)
{
    state *s = p;
    bool is_set = bide_single_consumer_event_is_set(&s->event);
    bide_single_consumer_event_close(&s->event);
    bide_single_consumer_event_reset(&s->event);
    bide_single_consumer_event_set(&s->event);
    bide_check_assert(bide_single_consumer_event_is_set(&s->event) == is_set);
    bide_check_assert(bide_single_consumer_event_wait_blocking(&s->event, BIDE_FOREVER) ==
                      (is_set ? 0 : -EPIPE));
}

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_single_consumer_event_init(s->allocated, false);
}

static void set_or_close_allocated(void *p)
{
    state *s = p;
    if (bide_check_choose(2) == 0)
        bide_single_consumer_event_set(s->allocated);
    else
        bide_single_consumer_event_close(s->allocated);
}

static void wait_and_free(void *p)
{
    state *s = p;
    bide_single_consumer_event_waiter wait;
    bide_check_await(bide_single_consumer_event_wait(&wait, s->allocated));
    bide_check_free(s->allocated);
}

/* ---- Auto-reset ---- */

static void set_automatic(void *p)
{
    state *s = p;
    s->data[0] = 1;
    bide_single_consumer_auto_event_set(&s->automatic);
}

static void close_automatic(void *p)
{
    state *s = p;
    s->data[1] = 1;
    bide_single_consumer_auto_event_close(&s->automatic);
}

/* A set that a cancelled wait did not take is available to the next wait. */
static void wait_automatic_until_stopped(void *p)
{
    state *s = p;
    bide_single_consumer_auto_event_waiter wait;
    int status =
        bide_sync_wait_in(&s->context, bide_single_consumer_auto_event_wait(&wait, &s->automatic));
    check_ended(s, status);
    s->passed += status == 0;
}

static void finish_one_set(void *p)
{
    state *s = p;
    s->passed += bide_single_consumer_auto_event_try_wait(&s->automatic);
    bide_check_assert(s->passed == 1);
    bide_check_assert(!bide_single_consumer_auto_event_try_wait(&s->automatic));
}

static void finish_at_most_one_set(void *p)
{
    state *s = p;
    s->passed += bide_single_consumer_auto_event_try_wait(&s->automatic);
    bide_check_assert(s->passed <= 1);
    bide_single_consumer_auto_event_set(&s->automatic);
    bide_check_assert(bide_single_consumer_auto_event_wait_blocking(&s->automatic, BIDE_FOREVER) ==
                      -EPIPE);
}

/* Two sets: at least one wait passes, at most two, and the last one sees the writes of both. */
static void set_automatic_second(void *p)
{
    state *s = p;
    s->data[1] = 1;
    bide_single_consumer_auto_event_set(&s->automatic);
}

static void take_all(void *p)
{
    state *s = p;
    bide_single_consumer_auto_event_waiter wait;
    bide_check_assert(
        bide_check_await(bide_single_consumer_auto_event_wait(&wait, &s->automatic)) == 0);
    s->passed++;
}

static void finish_two_sets(void *p)
{
    state *s = p;
    s->passed += bide_single_consumer_auto_event_try_wait(&s->automatic);
    bide_check_assert(s->passed == 1 || s->passed == 2);
}

static void take_one_and_look(void *p)
{
    state *s = p;
    if (bide_single_consumer_auto_event_try_wait(&s->automatic))
        bide_check_assert(s->data[0] == 1);
}

/* ---- A wait that has the set, and gives it back ---- */

/* It has ended, and another operation was chosen. */
static void wait_and_give_back(void *p)
{
    state *s = p;
    bide_single_consumer_auto_event_waiter wait;
    bide_awaiter *awaiter = bide_single_consumer_auto_event_wait(&wait, &s->automatic);
    bide_check_assert(bide_check_await(awaiter) == 0);
    bide_check_assert(s->data[0] == 1);
    bide_wrapper_release(&awaiter);
}

static void set_and_close_automatic(void *p)
{
    set_automatic(p);
    close_automatic(p);
}

/* The set was there when it was closed, for one wait. */
static void finish_set_for_good_once(void *p)
{
    state *s = p;
    bide_check_assert(bide_single_consumer_auto_event_try_wait(&s->automatic));
    finish_at_most_one_set(p);
}

/* ---- Destroyed before it runs ---- */

struct early {
    bide_task task;
    bide_context context;
    state *state;
    bide_single_consumer_auto_event_waiter wait;
    int status;
};

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status,
                      bide_single_consumer_auto_event_wait(&self->wait, &self->state->automatic));
    bide_end();
}

static void setup_early(void *p)
{
    state *s = p;
    setup(s);
    struct early *early = s->early = bide_check_alloc(sizeof *early);
    early->context = (bide_context){&kept, NULL, NULL, NULL, NULL};
    early->state = s;
    early->status = 1;
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
}

/* The set that was handed over to it is available to the next wait. */
static void finish_destroyed(void *p)
{
    state *s = p;
    bide_check_assert(s->early->status == 1);
    bide_destroy(&s->early->task.frame);
    bide_check_free(s->early);
    bide_check_assert(bide_single_consumer_auto_event_try_wait(&s->automatic));
    bide_check_assert(!bide_single_consumer_auto_event_try_wait(&s->automatic));
}

#define SCENARIO(name_of, setup_with, finish_with, ...)                          \
    static const bide_check_scenario name_of = {.name = #name_of,                \
                                                .size = sizeof(state),           \
                                                .cxx20_release_sequences = true, \
                                                .setup = setup_with,             \
                                                .finish = finish_with,           \
                                                .never_spurious = true,          \
                                                .threads = {__VA_ARGS__}}

SCENARIO(it_is_set, setup, NULL, set_it, wait_for_it);
SCENARIO(seeing_it_set_shows_what_it_announces, setup, NULL, set_it, ask, ask);
SCENARIO(another_resets_it_and_sets_it_again, setup, NULL, set_it, set_again, wait_only);
SCENARIO(two_set_it, setup, NULL, set_it, set_second, wait_only);
SCENARIO(a_waiter_resets_it_and_takes_all, setup, finish_all_taken, make_and_set, make_and_set,
         wait_reset_and_take);
SCENARIO(it_is_closed_while_it_is_set, setup, finish_closed, set_it, close_it, wait_for_it);
SCENARIO(it_is_closed, setup, finish_closed, close_it, wait_for_it);
SCENARIO(it_is_closed_when_it_was_set, setup, finish_set_for_good, set_and_close, wait_only);
SCENARIO(it_is_set_while_the_wait_is_cut_short, setup, NULL, set_it, request, wait_until_stopped);
SCENARIO(it_is_closed_while_the_wait_is_cut_short, setup, finish_closed, close_it, request,
         wait_until_stopped);
SCENARIO(it_is_freed_once_the_wait_has_ended, setup_allocated, NULL, set_or_close_allocated,
         wait_and_free);
SCENARIO(a_set_is_taken_once, setup, finish_one_set, set_automatic, request,
         wait_automatic_until_stopped);
SCENARIO(a_set_is_left_by_the_close, setup, finish_at_most_one_set, set_automatic, close_automatic,
         wait_automatic_until_stopped);
SCENARIO(two_sets_let_one_or_two_waits_pass, setup, finish_two_sets, set_automatic,
         set_automatic_second, take_all);
SCENARIO(taking_a_set_shows_what_it_announces, setup, NULL, set_automatic, take_one_and_look);
SCENARIO(a_set_that_is_given_back_is_there_although_it_was_closed, setup, finish_set_for_good_once,
         wait_and_give_back, set_and_close_automatic);
SCENARIO(a_set_is_left_by_a_destroyed_waiter, setup_early, finish_destroyed, set_automatic);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &it_is_set,
        &seeing_it_set_shows_what_it_announces,
        &another_resets_it_and_sets_it_again,
        &two_set_it,
        &a_waiter_resets_it_and_takes_all,
        &it_is_closed_while_it_is_set,
        &it_is_closed,
        &it_is_closed_when_it_was_set,
        &it_is_set_while_the_wait_is_cut_short,
        &it_is_closed_while_the_wait_is_cut_short,
        &it_is_freed_once_the_wait_has_ended,
        &a_set_is_taken_once,
        &a_set_is_left_by_the_close,
        &two_sets_let_one_or_two_waits_pass,
        &taking_a_set_shows_what_it_announces,
        &a_set_that_is_given_back_is_there_although_it_was_closed,
        &a_set_is_left_by_a_destroyed_waiter,
        NULL};
    static const char *const files[] = {"single_consumer_event.h", "single_consumer_event.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
