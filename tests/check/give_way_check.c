/*
 * Give-ways: a coroutine whose awaits are always ready is reached by a stop request at the next one. These scenarios, and
 * frame.c with them, are compiled with a budget of two operations; the checker has none otherwise.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/task.h"
#include "bide/when.h"

#include <errno.h>

enum { AWAITS = 4 };

BIDE_STATIC_ASSERT(BIDE_BUDGET == 2, "each second await is a give-way");

/* A scheduler whose coroutines one thread runs, in order. */
typedef struct state {
    bide_scheduler scheduler;
    bide_awaiter_chain queue;
    unsigned turns;
    bide_stop_source stop;
    bide_context context;
    bide_event event; /* set */
    int reason;       /* written before the request */
    bide_atomic(uint32_t) asked;
    bool asked_meanwhile; /* ... before it was resumed: while it was posted */
} state;

static void state_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_awaiter_chain_append(&bide_container_of(scheduler, state, scheduler)->queue, first, last);
}

static void setup(void *p)
{
    state *s = p;
    s->scheduler.post = state_post;
    bide_stop_source_init(&s->stop);
    bide_event_init(&s->event, true);
    s->context = (bide_context){&s->scheduler, &s->stop, NULL, NULL, NULL};
}

static bool was_asked(state *s)
{
    return bide_atomic_load(&s->asked, acquire) != 0;
}

static void request(void *p)
{
    state *s = p;
    bide_plain_store(&s->reason, 1);
    bide_stop_request(&s->stop);
    bide_atomic_store(&s->asked, 1, release);
}

static void run(state *s, bide_frame *frame, const bide_point *body)
{
    bide_start(frame, body, &s->context);
    bide_resume(frame);
    for (bide_awaiter *awaiter; (awaiter = bide_awaiter_chain_take(&s->queue)) != NULL;) {
        s->turns++;
        s->asked_meanwhile = was_asked(s);
        bide_resume(awaiter->frame);
    }
    bide_check_assert(bide_done(frame));
}

/* ---- Awaits that are ready ---- */

struct looping {
    bide_task task;
    state *state;
    bide_event_waiter wait;
    unsigned awaits;
    unsigned late; /* awaits that were begun after the request, and have not met it */
    bool must;     /* the next one is to meet it */
    bool asked;
    int status;
};

bide_coroutine(looping_body)
{
    bide_begin(looping_body, struct looping * self);
    while (self->status == 0 && self->awaits < AWAITS) {
        self->asked = was_asked(self->state);
        bide_await_status(self->status, bide_event_wait(&self->wait, &self->state->event));
        self->awaits++;
        if (self->status == 0) {
            bide_check_assert(!self->must);
            self->late += self->asked;
            bide_check_assert(self->late < BIDE_BUDGET);
        }
        self->must = self->state->asked_meanwhile;
        self->state->asked_meanwhile = false;
    }
    if (self->status != 0) {
        bide_check_assert(self->status == -ECANCELED);
        bide_check_assert(bide_plain_load(&self->state->reason) == 1);
        bide_await_status(self->status, bide_event_wait(&self->wait, &self->state->event));
        bide_check_assert(self->status == 0); /* it has a whole budget, to clean up */
    }
    bide_end();
}

static void loop(void *p)
{
    state *s = p;
    struct looping looping = {.state = s};
    run(s, &looping.task.frame, &looping_body);
    bide_check_assert(s->turns >= looping.awaits / BIDE_BUDGET); /* it gave way */
}

/* The inline scheduler has nothing else to run: the give-way looks at the source alone. */
static void loop_inline(void *p)
{
    state *s = p;
    struct looping looping = {.state = s};
    s->context.scheduler = &bide_inline_scheduler;
    run(s, &looping.task.frame, &looping_body);
    bide_check_assert(s->turns == 0);
}

/* ---- Waits for several: each begins its branches with a give-way ---- */

struct grouping {
    bide_task task;
    state *state;
    bide_when when;
    bide_branch branches[1];
    bide_event_waiter wait;
    bool asked;
    int status;
};

bide_coroutine(grouping_body)
{
    bide_begin(grouping_body, struct grouping * self);
    self->asked = was_asked(self->state);
    bide_branch_init(&self->branches[0], bide_event_wait(&self->wait, &self->state->event));
    bide_await_status(self->status, bide_when_all(&self->when, self->branches, 1));
    bide_check_assert(self->status == 0 || self->status == -ECANCELED);
    if (self->asked) {
        bide_check_assert(self->status == -ECANCELED);
        bide_check_assert(self->state->turns != 0); /* the branch gave way */
    }
    if (self->status != 0)
        bide_check_assert(bide_plain_load(&self->state->reason) == 1);
    bide_end();
}

static void group(void *p)
{
    struct grouping grouping = {.state = p};
    run(p, &grouping.task.frame, &grouping_body);
}

#define SCENARIO(what, run_by)                                                \
    static const bide_check_scenario what = {.name = #what,                   \
                                             .size = sizeof(state),           \
                                             .cxx20_release_sequences = true, \
                                             .setup = setup,                  \
                                             .threads = {request, run_by}}

SCENARIO(awaits_that_are_ready_meet_a_request, loop);
SCENARIO(awaits_of_the_inline_scheduler_meet_a_request, loop_inline);
SCENARIO(a_wait_for_several_meets_a_request, group);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&awaits_that_are_ready_meet_a_request,
                                                     &awaits_of_the_inline_scheduler_meet_a_request,
                                                     &a_wait_for_several_meets_a_request, NULL};
    static const char *const files[] = {"stop.h", "frame.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
