/*
 * A select of an item and an event, beside another waiter for the item: exactly one of the two has
 * the item, also if the select was released for it and has the event, or is destroyed. The item is
 * attempted, also under a deadline or a token; or it is a semaphore's permit, which is given back.
 */
#include "taking.h"

#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/deadline.h"
#include "bide/errors.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/select.h"
#include "bide/semaphore.h"
#include "bide/with_stop.h"

struct state;

struct chooser {
    bide_task task;
    struct state *state;
    taking taking;
    bide_event_waiter wait;
    bide_select select;
    bide_select_case cases[2];
    uint64_t random;
    int ended;
};

struct taker {
    bide_task task;
    struct state *state;
    taking taking;
    int ended;
};

typedef struct state {
    bide_event_count event_count;
    bide_atomic(uint32_t) items;
    bide_event event;
    bide_context context;
    struct chooser chooser;
    struct taker taker;
} state;

static bide_awaiter *take(state *s, taking *taking)
{
    return taking_begin(taking, &s->items, &s->event_count);
}

bide_coroutine(chooser_body)
{
    bide_begin(chooser_body, struct chooser * self);
    bide_select_case_init(&self->cases[0], take(self->state, &self->taking));
    bide_select_case_init(&self->cases[1], bide_event_wait(&self->wait, &self->state->event));
    bide_try(bide_select_any(&self->select, self->cases, 2, &self->random));
    self->ended++;
    bide_end();
}

bide_coroutine(taker_body)
{
    bide_begin(taker_body, struct taker * self);
    bide_try(take(self->state, &self->taking));
    self->ended++;
    bide_end();
}

/* The select waits in front of the taker. */
static void setup(void *p)
{
    state *s = p;
    bide_event_count_init(&s->event_count);
    bide_atomic_init(&s->items, 0);
    bide_event_init(&s->event, false);
    s->context = (bide_context){&bide_inline_scheduler, NULL, NULL, NULL, NULL};
    s->chooser.state = s->taker.state = s;
    s->chooser.random = bide_check_choose(2);
    s->chooser.ended = s->taker.ended = 0;
    bide_start(&s->chooser.task.frame, &chooser_body, &s->context);
    bide_resume(&s->chooser.task.frame);
    bide_start(&s->taker.task.frame, &taker_body, &s->context);
    bide_resume(&s->taker.task.frame);
}

static void bring(void *p)
{
    state *s = p;
    bide_atomic_fetch_add(&s->items, 1, release);
    bide_event_count_notify(&s->event_count, 1);
}

static void set(void *p)
{
    bide_event_set(&((state *)p)->event);
}

static void set_and_bring(void *p)
{
    set(p);
    bring(p);
}

/* One of the two has the item; the select has the item or the event. */
static void finish(void *p)
{
    state *s = p;
    bool chosen = bide_select_winner(&s->chooser.select) == 0;
    bide_check_assert(s->chooser.ended == 1);
    bide_check_assert(s->taker.ended == !chosen);
    bide_check_assert(bide_atomic_load(&s->items, relaxed) == 0);
    if (chosen)
        bring(s);
    bide_check_assert(s->taker.ended == 1);
    bide_check_assert(bide_event_count_is_idle(&s->event_count));
}

/* Two items are added: both waiters have one, or the select has the event. */
static void finish_two(void *p)
{
    state *s = p;
    bool chosen = bide_select_winner(&s->chooser.select) == 0;
    bide_check_assert(s->chooser.ended == 1 && s->taker.ended == 1);
    bide_check_assert(bide_atomic_load(&s->items, relaxed) == !chosen);
    bide_check_assert(bide_event_count_is_idle(&s->event_count));
}

/* ---- A permit, which is given back, and wrappers, which are attempted ---- */

/* The clock is always at 1. */
enum { DUE = 1 };

typedef enum how { PERMIT, TOKEN, DEADLINE } how;

struct wrapping {
    bide_task task;
    struct wrapped *state;
    taking taking;
    bide_semaphore_waiter permit;
    bide_awaiter_ops ops;
    bide_with_stop_operation with_stop;
    bide_with_deadline_operation with_deadline;
    bide_event_waiter wait;
    bide_select select;
    bide_select_case cases[2];
    uint64_t random;
    int status;
    int ended;
};

struct waiting {
    bide_task task;
    bide_semaphore_waiter permit;
    struct wrapped *state;
    int ended;
};

typedef struct wrapped {
    how how;
    uint32_t brought;
    bide_event_count event_count;
    bide_atomic(uint32_t) items;
    bide_semaphore semaphore;
    bide_stop_source token;
    bide_event event;
    bide_run_loop loop;
    bide_context context;
    struct wrapping chooser;
    struct waiting waiter;
} wrapped;

static bide_awaiter *item(struct wrapping *self)
{
    wrapped *s = self->state;
    bide_awaiter *inner;
    if (s->how == PERMIT) {
        inner = bide_semaphore_acquire(&self->permit, &s->semaphore);
        self->ops = *inner->ops;
        self->ops.undo = BIDE_UNDO_WITHDRAW;
        inner->ops = &self->ops;
        return inner;
    }
    inner = taking_begin(&self->taking, &s->items, &s->event_count);
    return s->how == TOKEN ? bide_with_stop(&self->with_stop, &s->token, inner)
                           : bide_with_deadline(&self->with_deadline, DUE, inner);
}

bide_coroutine(wrapping_body)
{
    bide_begin(wrapping_body, struct wrapping * self);
    bide_select_case_init(&self->cases[0], item(self));
    bide_select_case_init(&self->cases[1], bide_event_wait(&self->wait, &self->state->event));
    bide_await_status(self->status, bide_select_any(&self->select, self->cases, 2, &self->random));
    self->ended++;
    bide_end();
}

bide_coroutine(waiting_body)
{
    bide_begin(waiting_body, struct waiting * self);
    bide_try(bide_semaphore_acquire(&self->permit, &self->state->semaphore));
    self->ended++;
    bide_end();
}

static void setup_wrapped(wrapped *s, how how, bide_context context)
{
    s->how = how;
    s->brought = 0;
    s->context = context;
    bide_event_count_init(&s->event_count);
    bide_atomic_init(&s->items, 0);
    bide_semaphore_init(&s->semaphore, 0);
    bide_stop_source_init(&s->token);
    bide_event_init(&s->event, false);
    s->chooser.state = s->waiter.state = s;
    s->chooser.random = bide_check_choose(2);
    s->chooser.ended = s->waiter.ended = 0;
    bide_start(&s->chooser.task.frame, &wrapping_body, &s->context);
    bide_resume(&s->chooser.task.frame);
}

static const bide_context inline_context = {&bide_inline_scheduler, NULL, NULL, NULL, NULL};

/* Another waits behind the select. */
static void setup_permit(void *p)
{
    wrapped *s = p;
    setup_wrapped(s, PERMIT, inline_context);
    bide_start(&s->waiter.task.frame, &waiting_body, &s->context);
    bide_resume(&s->waiter.task.frame);
}

static void setup_token(void *p)
{
    setup_wrapped(p, TOKEN, inline_context);
}

static void setup_deadline(void *p)
{
    wrapped *s = p;
    bide_run_loop_init(&s->loop);
    setup_wrapped(s, DEADLINE, s->loop.context);
    bide_run_loop_run_ready(&s->loop); /* the branches begin; the timer is due */
}

static void setup_destroyed(void *p)
{
    wrapped *s = p;
    bide_run_loop_init(&s->loop);
    setup_wrapped(s, PERMIT, s->loop.context);
    bide_run_loop_run_ready(&s->loop);
}

static void release_permit(void *p)
{
    bide_semaphore_release(&((wrapped *)p)->semaphore, 1);
}

static void set_event(void *p)
{
    bide_event_set(&((wrapped *)p)->event);
}

static void set_and_release(void *p)
{
    set_event(p);
    release_permit(p);
}

static void request_token(void *p)
{
    bide_stop_request(&((wrapped *)p)->token);
}

static void bring_item(void *p)
{
    wrapped *s = p;
    s->brought = 1;
    bide_atomic_fetch_add(&s->items, 1, release);
    bide_event_count_notify(&s->event_count, 1);
}

static void set_and_bring_item(void *p)
{
    set_event(p);
    bring_item(p);
}

static void run_the_loop(void *p)
{
    bide_run_loop_run_ready(&((wrapped *)p)->loop);
}

/* The permit is the select's, or the next waiter has it. */
static void finish_permit(void *p)
{
    wrapped *s = p;
    bool chosen = bide_select_winner(&s->chooser.select) == 0;
    bide_check_assert(s->chooser.ended == 1 && s->chooser.status == 0);
    bide_check_assert(s->waiter.ended == !chosen);
    bide_check_assert(!bide_semaphore_try_acquire(&s->semaphore, 1));
    if (chosen)
        release_permit(s);
    bide_check_assert(s->waiter.ended == 1);
}

/* What was brought is the select's, or it is still there. */
static void finish_wrapped(void *p, int reason)
{
    wrapped *s = p;
    uint32_t brought = s->brought;
    size_t winner = bide_select_winner(&s->chooser.select);
    bool taken = winner == 0 && s->chooser.status == 0;
    bide_check_assert(s->chooser.ended == 1 && winner < 2);
    bide_check_assert(s->chooser.status == 0 || (winner == 0 && s->chooser.status == reason));
    bide_check_assert(bide_atomic_load(&s->items, relaxed) == brought - taken);
    bide_check_assert(bide_event_count_is_idle(&s->event_count));
}

static void finish_token(void *p)
{
    finish_wrapped(p, -ECANCELED);
}

static void finish_deadline(void *p)
{
    wrapped *s = p;
    for (int i = 0; i < 8 && s->chooser.ended == 0; i++)
        bide_run_loop_run_ready(&s->loop);
    finish_wrapped(p, -ETIMEDOUT);
}

/* It does not know yet, or it has the permit or the event. */
static void finish_destroyed(void *p)
{
    wrapped *s = p;
    bool taken = s->chooser.ended != 0 && bide_select_winner(&s->chooser.select) == 0;
    if (s->chooser.ended == 0)
        bide_destroy(&s->chooser.task.frame);
    bide_check_assert(bide_semaphore_try_acquire(&s->semaphore, 1) == !taken);
    bide_check_assert(!bide_semaphore_try_acquire(&s->semaphore, 1));
}

#define SCENARIO_OF(type, id, text, ...)    \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(type), .cxx20_release_sequences = true, __VA_ARGS__}
#define SCENARIO(id, text, ...) SCENARIO_OF(state, id, text, __VA_ARGS__)
#define WRAPPED(id, text, ...)  SCENARIO_OF(wrapped, id, text, __VA_ARGS__)

SCENARIO(one, "an_item_is_brought_as_the_event_is_set", .setup = setup, .threads = {bring, set},
         .finish = finish);
SCENARIO(one_by_one, "the_event_is_set_and_an_item_is_brought", .setup = setup,
         .threads = {set_and_bring}, .finish = finish);
SCENARIO(two, "two_are_brought_as_the_event_is_set", .setup = setup,
         .threads = {bring, set_and_bring}, .preemptions = 2, .finish = finish_two);
WRAPPED(permit, "a_permit_is_released_as_the_event_is_set", .setup = setup_permit,
        .threads = {release_permit, set_event}, .preemptions = 2, .finish = finish_permit);
WRAPPED(permit_by_one, "the_event_is_set_and_a_permit_is_released", .setup = setup_permit,
        .threads = {set_and_release}, .finish = finish_permit);
WRAPPED(with_token, "an_item_is_brought_as_its_token_is_asked", .setup = setup_token,
        .threads = {request_token, set_and_bring_item}, .preemptions = 2, .finish = finish_token);
WRAPPED(token_alone, "an_item_or_its_token_ends_a_select", .setup = setup_token,
        .threads = {request_token, bring_item}, .preemptions = 2, .finish = finish_token);
WRAPPED(token_unused, "an_event_ends_a_select_under_a_token", .setup = setup_token,
        .threads = {set_event}, .finish = finish_token);
WRAPPED(with_deadline, "an_item_is_brought_as_its_deadline_comes", .setup = setup_deadline,
        .threads = {run_the_loop, set_and_bring_item}, .preemptions = 2, .finish = finish_deadline);
WRAPPED(deadline_alone, "a_deadline_ends_a_select", .setup = setup_deadline,
        .threads = {run_the_loop}, .finish = finish_deadline);
WRAPPED(destroyed, "a_select_is_destroyed_that_was_let_go_twice", .setup = setup_destroyed,
        .threads = {release_permit, set_event}, .preemptions = 2, .finish = finish_destroyed);
WRAPPED(destroyed_late, "a_select_is_destroyed_when_a_branch_has_ended", .setup = setup_destroyed,
        .threads = {run_the_loop, release_permit, set_event}, .preemptions = 2,
        .finish = finish_destroyed);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &one,        &one_by_one,     &two,          &permit,        &permit_by_one,
        &with_token, &token_alone,    &token_unused, &with_deadline, &deadline_alone,
        &destroyed,  &destroyed_late, NULL};
    static const char *const files[] = {"select.c", "choice.h", "choice.c", "with_stop.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
