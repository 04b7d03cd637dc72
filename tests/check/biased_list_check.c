/*
 * A list whose waiters check again after they have enlisted, and whose announcers look without a
 * fence. Its state is two flags, each of which is set once, and waiters for either.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/extend/root.h"
#include "bide/task.h"
#include "bide/extend/waiter_list.h"

#include <errno.h>

enum { FLAGS = 2 };

struct state;

typedef struct waiter {
    bide_list_waiter waiting;
    struct state *state;
    unsigned flag;
} waiter;

typedef struct state {
    bide_biased_list waiters;
    bide_atomic(uint32_t) flags[FLAGS];
    int data[FLAGS]; /* written before the flag is set */
    int reason;      /* before the list is shut */
    struct state *allocated;
    bide_event ended; /* the wait on it */
    bide_root other_root;
    waiter other;
} state;

typedef struct sifter {
    state *state;
    bool seen[FLAGS];
} sifter;

static void look(void *context)
{
    sifter *s = context;
    for (unsigned i = 0; i < FLAGS; i++)
        s->seen[i] = bide_atomic_load(&s->state->flags[i], seq_cst) != 0;
}

static bool is_due(const void *context, const bide_awaiter *awaiter)
{
    return ((const sifter *)context)->seen[((const waiter *)(const void *)awaiter)->flag];
}

static const bide_sweep_ops rules = {.look = look, .is_due = is_due, .looks_again = true};

static void set(state *s, unsigned flag)
{
    s->data[flag] = 1;
    bide_atomic_store(&s->flags[flag], 1, release);
    uintptr_t word = bide_biased_list_peek(&s->waiters);
    sifter context = {s, {false, false}};
    if (word > BIDE_LIST_SHUT)
        bide_waiter_list_announce(&s->waiters, word, &rules, &context);
}

static bide_frame *suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    waiter *own = (waiter *)(void *)awaiter;
    sifter context = {own->state, {false, false}};
    return bide_waiter_list_suspend(&own->state->waiters, &own->waiting, frame, &rules, &context);
}

static int resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static void cancel(bide_awaiter *awaiter)
{
    (void)awaiter; /* the status may differ from that of its own resume, but nothing cancels it */
}

/* without a check before it enlists: there is one after that */
static bide_awaiter *flag_wait(waiter *own, state *s, unsigned flag)
{
    static const bide_awaiter_ops ops = {
        .suspend = suspend,
        .resume = resume,
        .cancel = cancel,
        .name = "flag",
    };
    own->state = s;
    own->flag = flag;
    own->waiting.listed.awaiter.ops = &ops;
    return &own->waiting.listed.awaiter;
}

static void wait_for(state *s, unsigned flag)
{
    waiter own;
    bide_awaiter *awaiter = flag_wait(&own, s, flag);
    bide_check_await(awaiter);
    int status = awaiter->ops->resume(awaiter);
    bide_check_assert(status == 0 || status == -EPIPE);
    bide_check_assert(status == 0 ? s->data[flag] == 1 : s->reason == 1);
}

static void close_it(void *p)
{
    state *s = p;
    sifter context = {s, {false, false}};
    s->reason = 1;
    bide_waiter_list_close(&s->waiters.list, &rules, &context);
}

static void setup(void *p)
{
    state *s = p;
    bide_biased_list_init(&s->waiters);
    bide_atomic_init(&s->flags[0], 0);
    bide_atomic_init(&s->flags[1], 0);
}

/*
 * There were waiters before; the next announcement, or the one after it, is the last that watches.
 */
static void setup_watched(void *p)
{
    state *s = p;
    setup(s);
    bide_atomic_init(&s->waiters.list.word, BIDE_LIST_WATCHED_);
    bide_atomic_init(&s->waiters.unneeded, bide_check_choose(2));
}

static void set_first(void *p)
{
    set(p, 0);
}

static void set_second(void *p)
{
    set(p, 1);
}

static void set_both(void *p)
{
    set(p, 0);
    set(p, 1);
}

static void wait_for_first(void *p)
{
    wait_for(p, 0);
}

static void wait_for_second(void *p)
{
    wait_for(p, 1);
}

static void wait_for_both(void *p)
{
    wait_for(p, 0);
    wait_for(p, 1);
}

/* ---- Nothing is accessed after the end ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    setup(s->allocated);
    bide_event_init(&s->ended, false);
}

/* A coroutine, so that it continues in the thread that ends its wait. */
struct teller {
    bide_task task;
    state *state;
    waiter wait;
};

bide_coroutine(teller_body)
{
    bide_begin(teller_body, struct teller * self);
    bide_await(flag_wait(&self->wait, self->state->allocated, 0));
    bide_event_set(&self->state->ended);
    bide_end();
}

static void wait_and_tell(void *p)
{
    struct teller teller = {.state = p};
    bide_check_await(bide_task_init(&teller.task, &teller_body));
}

/* Sets the flag, and frees the list once the wait has ended. */
static void set_and_free(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    set(s->allocated, 0);
    bide_check_await(bide_event_wait(&wait, &s->ended));
    bide_check_free(s->allocated);
}

/* ---- Data that is set before the list is shut ---- */

static void set_first_and_close(void *p)
{
    set_first(p);
    close_it(p);
}

static void wait_for_first_in_time(void *p)
{
    waiter own;
    bide_awaiter *awaiter = flag_wait(&own, p, 0);
    bide_check_await(awaiter);
    bide_check_assert(awaiter->ops->resume(awaiter) == 0);
}

/* ---- A waiter for the other flag ---- */

static void other_ended(bide_root *root)
{
    (void)root;
}

/* Enlists for the second flag without waiting for it here. */
static void enlist_for_second(void *p)
{
    state *s = p;
    bide_root_prepare(&s->other_root, &bide_default_context, flag_wait(&s->other, s, 1),
                      other_ended, false);
    bide_resume(&s->other_root.frame);
}

#define SCENARIO(variable, title, ...)            \
    static const bide_check_scenario variable = { \
        .name = title,                            \
        .size = sizeof(state),                    \
        .cxx20_release_sequences = true,          \
        __VA_ARGS__,                              \
    }

SCENARIO(one, "a_waiter_and_a_setter", .setup = setup, .threads = {set_first, wait_for_first});
SCENARIO(freed, "the_list_is_freed_once_the_wait_has_ended", .setup = setup_allocated,
         .threads = {set_and_free, wait_and_tell});
SCENARIO(one_of_two, "a_wait_for_the_second_flag", .setup = setup,
         .threads = {set_both, wait_for_second});
SCENARIO(twice, "a_waiter_waits_twice", .setup = setup, .threads = {set_both, wait_for_both});
SCENARIO(watched, "a_waiter_comes_while_the_list_is_watched", .setup = setup_watched,
         .threads = {set_both, wait_for_second});
SCENARIO(behind, "another_enlists_behind_the_first", .setup = setup,
         .threads = {set_first, wait_for_first, wait_for_first});
SCENARIO(two_watched, "two_wait_while_the_list_is_watched", .setup = setup_watched,
         .threads = {set_first, wait_for_first, wait_for_first});
SCENARIO(closed, "a_waiter_a_setter_and_a_closer", .setup = setup,
         .threads = {set_first, wait_for_first, close_it});
SCENARIO(let_go, "a_waiter_that_stays_is_ended_by_the_close", .setup = setup,
         .threads = {set_first, wait_for_second, close_it});
SCENARIO(two_setters, "two_set_and_a_waiter_waits_for_both", .setup = setup,
         .threads = {set_first, set_second, wait_for_both});
SCENARIO(two_setters_watched, "two_set_and_a_waiter_comes_while_the_list_is_watched",
         .setup = setup_watched, .threads = {set_first, set_second, wait_for_second});
SCENARIO(behind_other, "a_waiter_enlists_behind_one_for_something_else", .setup = setup,
         .threads = {set_first, enlist_for_second, wait_for_first}, .finish = set_second);
SCENARIO(in_time, "what_is_set_before_the_list_is_shut_ends_the_wait", .setup = setup,
         .threads = {set_first_and_close, wait_for_first_in_time});

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &one,     &freed,       &one_of_two,          &twice,
        &watched, &behind,      &two_watched,         &closed,
        &let_go,  &two_setters, &two_setters_watched, &behind_other,
        &in_time, NULL,
    };
    static const char *const files[] = {"waiter_list.h", "waiter_list.c",       "biased_list.c",
                                        "list_sweep.h",  "biased_list_check.c", NULL};
    static const bide_check_reason reasons[] = {
        {"list_sweep_put_back", "compare_exchange", "&list->word", "acquire",
         "lists that are opened again need it: found in waiter_list"},
        {NULL, NULL, NULL, NULL, NULL},
    };
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
