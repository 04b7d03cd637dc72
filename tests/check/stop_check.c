/*
 * Requests to stop: the gate in front of a wait, the tree of sources, waiters that are removed from
 * lists.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/sequence8.h"
#include "bide/stop.h"
#include "bide/task.h"

#include "watched.h"

#include <errno.h>

struct waiter;

/* Runs a coroutine in a child; outlives the thread that waits, which does not see its end. */
typedef struct starter {
    bide_task task;
    struct waiter *waiter;
    const bide_point *body;
    bide_event ended;
} starter;

typedef struct state {
    bide_stop_source stop;
    bide_stop_source children[2];
    bide_context contexts[2]; /* of the children */
    bide_event event;
    bide_sequence_barrier8 barrier;
    int data;              /* written before the event is set, or the number published */
    int reason;            /* written before a request */
    struct waiter *beside; /* waits since the setup, and is not cancelled */
    bide_stop_source *allocated;
    starter starters[BIDE_CHECK_THREADS];
} state;

static void setup(void *p)
{
    state *s = p;
    bide_event_init(&s->event, false);
    bide_sequence_barrier8_init(&s->barrier, 0);
    WATCH(&s->barrier.waiters);
    bide_stop_source_init(&s->stop);
    for (int i = 0; i < 2; i++) {
        bide_stop_source_init(&s->children[i]);
        bide_stop_source_attach(&s->children[i], &s->stop);
        s->contexts[i] = (bide_context){&bide_inline_scheduler, &s->children[i], NULL, NULL, NULL};
    }
}

/* ---- The operations of the threads ---- */

/* A coroutine that waits once, or for the second time. */
struct waiter {
    bide_task task;
    state *state;
    bool again;
    bide_event_waiter wait;
    bide_sequence_waiter8 barrier_wait;
    int status;
};

/* The results of the waits agree with the data that was written before. */
static void check_status(const state *s, int status)
{
    bide_check_assert(status == 0 || status == -ECANCELED);
    bide_check_assert(status == 0 ? s->data == 1 : s->reason == 1);
}

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_await_status(self->status, bide_event_wait(&self->wait, &self->state->event));
    check_status(self->state, self->status);
    if (self->again) {
        bide_await_status(self->status, bide_event_wait(&self->wait, &self->state->event));
        check_status(self->state, self->status);
    }
    bide_end();
}

bide_coroutine(barrier_waiter_body)
{
    bide_begin(barrier_waiter_body, struct waiter * self);
    bide_await_status(self->status, bide_sequence_barrier8_wait_until_published(
                                        &self->barrier_wait, &self->state->barrier, 1));
    check_status(self->state, self->status);
    bide_end();
}

bide_coroutine(either_body)
{
    bide_begin(either_body, struct waiter * self);
    bide_await_status(self->status, bide_event_wait(&self->wait, &self->state->event));
    bide_check_assert(self->status == -ECANCELED || self->status == -ETIMEDOUT);
    bide_check_assert(self->status == bide_stop_reason(bide_this_context()->stop));
    bide_end();
}

bide_coroutine(starter_body)
{
    bide_begin(starter_body, starter * self);
    bide_await(bide_task_init(&self->waiter->task, self->body));
    bide_event_set(&self->ended);
    bide_end();
}

/* Runs a coroutine in a child, and blocks until it has ended, in whichever thread. */
static void wait_in_child(state *s, unsigned child, const bide_point *body, bool again)
{
    struct waiter waiter = {.state = s, .again = again};
    starter *starter = &s->starters[bide_check_thread() - 1];
    starter->waiter = &waiter;
    starter->body = body;
    bide_event_waiter wait;
    bide_event_init(&starter->ended, false);
    bide_start(&starter->task.frame, &starter_body, &s->contexts[child]);
    bide_resume(&starter->task.frame);
    bide_check_await(bide_event_wait(&wait, &starter->ended));
}

static void wait_first(void *p)
{
    wait_in_child(p, 0, &waiter_body, false);
}

static void wait_second(void *p)
{
    wait_in_child(p, 1, &waiter_body, false);
}

static void wait_twice(void *p)
{
    wait_in_child(p, 0, &waiter_body, true);
}

static void wait_on_barrier(void *p)
{
    wait_in_child(p, 0, &barrier_waiter_body, false);
}

static void wait_on_barrier_second(void *p)
{
    wait_in_child(p, 1, &barrier_waiter_body, false);
}

/* One waiter is in the list already, and is not cancelled. */
static void setup_beside_with(state *s, const bide_point *body)
{
    setup(s);
    s->beside = bide_check_alloc(sizeof *s->beside);
    s->beside->state = s;
    s->beside->again = false;
    bide_start(&s->beside->task.frame, body, &bide_default_context);
    bide_resume(&s->beside->task.frame);
}

static void setup_beside(void *p)
{
    setup_beside_with(p, &waiter_body);
}

static void setup_beside_on_barrier(void *p)
{
    setup_beside_with(p, &barrier_waiter_body);
}

static void finish_beside(void *p)
{
    state *s = p;
    bide_check_assert(bide_done(&s->beside->task.frame) && s->beside->status == 0);
    bide_check_free(s->beside);
}

static void set_event(void *p)
{
    state *s = p;
    s->data = 1;
    bide_event_set(&s->event);
}

static void publish(void *p)
{
    state *s = p;
    s->data = 1;
    bide_sequence_barrier8_publish(&s->barrier, 1);
}

static void request(void *p)
{
    state *s = p;
    s->reason = 1;
    bide_stop_request(&s->stop);
}

static void request_first(void *p)
{
    state *s = p;
    s->reason = 1;
    bide_stop_request(&s->children[0]);
}

#define SCENARIO(name_of, setup_with, finish_with, ...)                          \
    static const bide_check_scenario name_of = {.name = #name_of,                \
                                                .size = sizeof(state),           \
                                                .cxx20_release_sequences = true, \
                                                .setup = setup_with,             \
                                                .finish = finish_with,           \
                                                .never_spurious = true,          \
                                                .threads = {__VA_ARGS__}}

/* ---- One wait ---- */

SCENARIO(a_wait_is_cut_short, setup, NULL, request_first, wait_first);
SCENARIO(a_wait_is_cut_short_or_ends, setup, NULL, request_first, set_event, wait_first);
SCENARIO(two_waits_in_turn_are_cut_short_or_end, setup, NULL, request_first, set_event, wait_twice);
SCENARIO(a_barriers_wait_is_cut_short, setup, NULL, request_first, wait_on_barrier);
SCENARIO(a_barriers_wait_is_cut_short_or_ends, setup, NULL, request_first, publish,
         wait_on_barrier);

/* Two requests; when a request returns, it or the other one has reached the source. */
static void request_and_look(void *p)
{
    state *s = p;
    request_first(p);
    bide_check_assert(bide_stop_requested(&s->children[0]));
}

static void request_for_time(void *p)
{
    bide_stop_request_with(&((state *)p)->children[0], -ETIMEDOUT);
}

static void wait_for_either(void *p)
{
    wait_in_child(p, 0, &either_body, false);
}

SCENARIO(two_ask_for_different_reasons, setup, NULL, request_and_look, request_for_time,
         wait_for_either);

/* ---- Other waiters in the list ---- */

SCENARIO(another_waits_beside_a_wait_that_is_cut_short, setup_beside, finish_beside, request_first,
         set_event, wait_first);
SCENARIO(another_waits_on_the_barrier_beside_a_wait_that_is_cut_short, setup_beside_on_barrier,
         finish_beside, request_first, publish, wait_on_barrier);
SCENARIO(a_request_reaches_two_children, setup, NULL, request, wait_first, wait_second);
SCENARIO(a_request_reaches_two_children_on_a_barrier, setup, NULL, request, wait_on_barrier,
         wait_on_barrier_second);

/* ---- The tree ---- */

/* Attaches a source, checks whether it is cancelled, detaches and frees it. */
static void attach_to(state *s, bide_stop_source *parent)
{
    bide_stop_source *source = bide_check_alloc(sizeof *source);
    bide_stop_source_init(source);
    bide_stop_source_attach(source, parent);
    if (bide_stop_requested(source))
        bide_check_assert(s->reason == 1);
    bide_stop_source_detach(source);
    bide_check_free(source);
}

static void attach_and_detach(void *p)
{
    attach_to(p, &((state *)p)->stop);
}

static void attach_and_detach_below(void *p)
{
    state *s = p;
    attach_to(s, &s->children[0]);
}

static void look_whether_asked(void *p)
{
    state *s = p;
    if (bide_stop_requested(&s->stop))
        bide_check_assert(s->reason == 1);
}

/* A source that is attached after the end of the request has been reached. */
static void setup_one_source(void *p)
{
    bide_stop_source_init(&((state *)p)->stop);
}

static void finish_all_detached(void *p)
{
    bide_check_assert(((state *)p)->stop.first_child == NULL);
}

static void request_and_attach(void *p)
{
    state *s = p;
    bide_stop_source child;
    request(p);
    bide_stop_source_init(&child);
    bide_stop_source_attach(&child, &s->stop);
    bide_check_assert(bide_stop_requested(&child));
    bide_stop_source_detach(&child);
}

static void setup_two_sources(void *p)
{
    state *s = p;
    bide_stop_source_init(&s->stop);
    bide_stop_source_init(&s->children[0]);
}

static void attach_second(void *p)
{
    state *s = p;
    bide_stop_source_attach(&s->children[0], &s->stop);
}

static void finish_reached(void *p)
{
    bide_check_assert(bide_stop_requested(&((state *)p)->children[0]));
}

SCENARIO(a_stopped_wait_sees_why, setup, NULL, request, look_whether_asked);
SCENARIO(two_attach_and_detach, setup_one_source, finish_all_detached, attach_and_detach,
         attach_and_detach);
SCENARIO(a_source_attaches_and_detaches_during_a_request, setup_one_source, finish_all_detached,
         request_and_attach, attach_and_detach);
SCENARIO(a_source_attaches_below_during_a_request, setup, NULL, request, attach_and_detach_below);
SCENARIO(a_source_that_attaches_during_a_request_is_reached, setup_two_sources, finish_reached,
         request, attach_second);

/* Only the second check needs this, not cancellation. */
#define BIASED "the biased list's, and found by its own scenarios"

/* Only naming a waiter to another sweeper needs this. */
#define REMOVED "the list's from which waiters are removed, and found by its own scenarios"

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &a_wait_is_cut_short,
        &a_stopped_wait_sees_why,
        &two_attach_and_detach,
        &a_source_attaches_and_detaches_during_a_request,
        &a_source_attaches_below_during_a_request,
        &a_barriers_wait_is_cut_short,
        &a_wait_is_cut_short_or_ends,
        &two_waits_in_turn_are_cut_short_or_end,
        &a_barriers_wait_is_cut_short_or_ends,
        &two_ask_for_different_reasons,
        &a_request_reaches_two_children,
        &a_request_reaches_two_children_on_a_barrier,
        &another_waits_beside_a_wait_that_is_cut_short,
        &another_waits_on_the_barrier_beside_a_wait_that_is_cut_short,
        &a_source_that_attaches_during_a_request_is_reached,
        NULL,
    };
    static const bide_check_reason reasons[] = {
        {"biased_list_enlist", "load", "&list->word", "relaxed", BIASED},
        {"biased_list_enlist", "compare_exchange", "&list->word", "acq_rel", BIASED},
        {"biased_list_enlist", "compare_exchange", "&list->word", "if failed relaxed", BIASED},
        {"bide_list_sweep_begin_", "compare_exchange", "&list->word", "release to relaxed", BIASED},
        {"list_sweep_put_back", "compare_exchange", "&list->word", "acquire", REMOVED},
        {"bide_awaiter_has_left_", "compare_exchange", "&source->word", "relaxed", REMOVED},
        {"bide_waiter_list_announce", "fence", "", "acq_rel", BIASED},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static const char *const files[] = {"stop.h",        "stop.c",       "lock.h", "waiter_list.c",
                                        "biased_list.c", "list_sweep.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
