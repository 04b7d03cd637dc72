/*
 * A select of an item and an event, beside another waiter for the item: exactly one of the two has
 * the item, also if the select was released for it and has the event, or is destroyed. The item is
 * attempted, also under a deadline or a token; or it is a semaphore's permit, which is given back.
 *
 * And a select of two operations that other threads carry out: a receive from a rendezvous, and one that
 * its thread gives up again if there is nothing, as a loop does for a descriptor. One of them is had.
 */
#include "taking.h"

#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/deadline.h"
#include "bide/errors.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/mutex.h"
#include "bide/rendezvous.h"
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

/* ---- Operations that other threads carry out ---- */

enum { RESULT = -ENODATA, NUMBER = 5 };

/* Where an operation stands that a thread serves. */
enum { OUTSIDE, IN_LINE, SERVED };

struct serving {
    bide_awaiter awaiter;
    bide_choice *choice;
    size_t number;
    bide_atomic(uint32_t) place;
};

struct served_chooser {
    bide_task task;
    struct served *state;
    struct serving serving;
    bide_rendezvous_receiver receive;
    bide_with_stop_operation with_stop;
    bide_select select;
    bide_select_case cases[2];
    uint64_t random, received;
    int status;
    int ended;
};

typedef bide_rendezvous(uint64_t) numbers;

typedef struct served {
    numbers numbers;
    bide_atomic(uint32_t) bytes;
    bide_stop_source token;
    bide_context context;
    bool wraps;
    struct served_chooser chooser;
    int tried;
    uint32_t taken; /* bytes, by the thread of the operation */
} served;

static struct serving *serving_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, struct serving, awaiter);
}

static bide_frame *serving_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)frame;
    bide_atomic_store(&serving_of(awaiter)->place, IN_LINE, release);
    return NULL;
}

static int serving_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

/* Waits until it is not being served. True: it is out of the line. False: it has ended. */
static bool serving_leave(struct serving *serving)
{
    for (;;) {
        uint32_t place = IN_LINE;
        if (bide_atomic_compare_exchange(&serving->place, &place, OUTSIDE, acq_rel, acquire))
            return true;
        if (place == OUTSIDE)
            return false;
        bide_platform.yield();
    }
}

static void serving_cancel(bide_awaiter *awaiter)
{
    if (!serving_leave(serving_of(awaiter)))
        return;
    bide_awaiter_finish_cancelled(awaiter);
    bide_wake_one(awaiter);
}

static bool serving_withdraw(bide_awaiter *awaiter)
{
    return serving_leave(serving_of(awaiter));
}

/* Only the serving thread carries it out. */
static int serving_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_awaiter_ops waits = {
        .suspend = serving_suspend,
        .resume = serving_resume,
        .cancel = serving_cancel,
        .withdraw = serving_withdraw,
        .name = "serving",
    };
    struct serving *serving = serving_of(awaiter);
    if (choice->again && bide_choice_taken(choice) != 0)
        return RESULT;
    serving->choice = choice;
    serving->number = choice->number;
    awaiter->ops = &waits;
    choice->wait = awaiter;
    return -EAGAIN;
}

/* The thread of the operation: it takes a byte for it, if there is one. */
static void serve(void *p)
{
    served *s = p;
    struct serving *serving = &s->chooser.serving;
    uint32_t place = IN_LINE;
    if (!bide_atomic_compare_exchange(&serving->place, &place, SERVED, acq_rel, relaxed))
        return;
    if (bide_choice_take(serving->choice, serving->number)) {
        if (bide_atomic_load(&s->bytes, relaxed) == 0) {
            bide_choice_untake(serving->choice);
            bide_atomic_store(&serving->place, IN_LINE, release);
            return;
        }
        bide_atomic_store(&s->bytes, 0, relaxed);
        s->taken++;
    }
    bide_atomic_store(&serving->place, OUTSIDE, release);
    bide_wake_one(&serving->awaiter);
}

static void send_number(void *p)
{
    served *s = p;
    const uint64_t number = NUMBER;
    s->tried = bide_rendezvous_try_send(&s->numbers, &number);
}

bide_coroutine(served_body)
{
    static const bide_awaiter_ops ops = {
        .attempt = serving_attempt, .name = "serving", .undo = BIDE_UNDO_ATTEMPT};
    bide_begin(served_body, struct served_chooser * self);
    self->serving.awaiter.ops = &ops;
    bide_select_case_init(&self->cases[0],
                          self->state->wraps ? bide_with_stop(&self->with_stop, &self->state->token,
                                                              &self->serving.awaiter)
                                             : &self->serving.awaiter);
    bide_select_case_init(
        &self->cases[1],
        bide_rendezvous_recv(&self->receive, &self->state->numbers, &self->received));
    bide_await_status(self->status, bide_select_any(&self->select, self->cases, 2, &self->random));
    self->ended++;
    bide_end();
}

static void setup_served(served *s, uint32_t bytes)
{
    bide_rendezvous_init(&s->numbers);
    bide_atomic_init(&s->bytes, bytes);
    bide_stop_source_init(&s->token);
    s->context = inline_context;
    s->wraps = bide_check_choose(2) != 0;
    s->tried = 1;
    s->taken = 0;
    s->chooser.state = s;
    s->chooser.received = 0;
    s->chooser.random = bide_check_choose(2);
    s->chooser.ended = 0;
    bide_atomic_init(&s->chooser.serving.place, OUTSIDE);
    bide_start(&s->chooser.task.frame, &served_body, &s->context);
    bide_resume(&s->chooser.task.frame);
}

static void setup_without_byte(void *p)
{
    setup_served(p, 0);
}

static void setup_with_byte(void *p)
{
    setup_served(p, 1);
}

/* The select has what the sender has got rid of, or the byte; the byte is there yet, or it has that. */
static void finish_served(void *p)
{
    served *s = p;
    struct served_chooser *chooser = &s->chooser;
    if (chooser->ended == 0) {
        bide_check_assert(s->tried != 0);
        bide_atomic_store(&s->bytes, 1, relaxed);
        serve(s);
    }
    bide_check_assert(chooser->ended == 1);
    if (s->tried == 0) {
        bide_check_assert(bide_select_winner(&chooser->select) == 1 && chooser->status == 0);
        bide_check_assert(chooser->received == NUMBER && s->taken == 0);
    } else {
        bide_check_assert(bide_select_winner(&chooser->select) == 0 && chooser->status == RESULT);
        bide_check_assert(chooser->received == 0 && s->taken == 1);
    }
    bide_check_assert(bide_rendezvous_is_idle_(&s->numbers.rendezvous));
}

/* Whoever came first has met the select; the other one has kept what it has. */
static void finish_served_once(void *p)
{
    served *s = p;
    bide_check_assert(s->chooser.ended == 1 || s->tried != 0);
    if (s->tried == 0)
        bide_check_assert(bide_atomic_load(&s->bytes, relaxed) == 1);
    finish_served(p);
}

/* ---- A select as a case of another: of a mutex that is held, and an event ---- */

struct nesting {
    bide_task task;
    bide_mutex mutex;
    bide_mutex_waiter holder, lock;
    bide_event event, never;
    bide_event_waiter wait, wait_too;
    bide_select inner, outer;
    bide_select_case inner_cases[2], outer_cases[2];
    int status;
};

bide_coroutine(nesting_body)
{
    bide_begin(nesting_body, struct nesting * self);
    bide_select_case_init(&self->inner_cases[0], bide_mutex_lock(&self->lock, &self->mutex));
    bide_select_case_init(&self->inner_cases[1], bide_event_wait(&self->wait, &self->event));
    bide_select_case_init(&self->outer_cases[0],
                          bide_select_any_in_order(&self->inner, self->inner_cases, 2));
    bide_select_case_init(&self->outer_cases[1], bide_event_wait(&self->wait_too, &self->never));
    bide_await_status(self->status, bide_select_any_in_order(&self->outer, self->outer_cases, 2));
    bide_end();
}

static void setup_nested(void *p)
{
    struct nesting *s = p;
    bide_mutex_init(&s->mutex);
    bide_event_init(&s->event, false);
    bide_event_init(&s->never, false);
    bide_check_assert(bide_mutex_try_lock(&s->holder, &s->mutex));
    s->status = 1;
    bide_start(&s->task.frame, &nesting_body, &inline_context);
    bide_resume(&s->task.frame);
}

static void set_nested(void *p)
{
    bide_event_set(&((struct nesting *)p)->event);
}

static void unlock_nested(void *p)
{
    bide_mutex_unlock(&((struct nesting *)p)->holder);
}

/* The holder has it still. */
static void finish_held(void *p)
{
    struct nesting *s = p;
    bide_check_assert(s->status == 0 && bide_select_winner(&s->inner) == 1);
    bide_check_assert(!bide_mutex_try_lock(&s->lock, &s->mutex));
}

/* The select has the mutex, or nobody. */
static void finish_unlocked(void *p)
{
    struct nesting *s = p;
    bide_mutex_waiter another;
    bide_check_assert(s->status == 0 && bide_select_winner(&s->outer) == 0);
    bool locked = bide_select_winner(&s->inner) == 0;
    bide_check_assert(bide_mutex_try_lock(&another, &s->mutex) == !locked);
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
        .threads = {release_permit, set_event}, .finish = finish_permit);
WRAPPED(permit_by_one, "the_event_is_set_and_a_permit_is_released", .setup = setup_permit,
        .threads = {set_and_release}, .finish = finish_permit);
WRAPPED(with_token, "an_item_is_brought_as_its_token_is_asked", .setup = setup_token,
        .threads = {request_token, set_and_bring_item}, .finish = finish_token);
WRAPPED(token_alone, "an_item_or_its_token_ends_a_select", .setup = setup_token,
        .threads = {request_token, bring_item}, .finish = finish_token);
WRAPPED(token_unused, "an_event_ends_a_select_under_a_token", .setup = setup_token,
        .threads = {set_event}, .finish = finish_token);
WRAPPED(with_deadline, "an_item_is_brought_as_its_deadline_comes", .setup = setup_deadline,
        .threads = {run_the_loop, set_and_bring_item}, .finish = finish_deadline);
WRAPPED(deadline_alone, "a_deadline_ends_a_select", .setup = setup_deadline,
        .threads = {run_the_loop}, .finish = finish_deadline);
WRAPPED(destroyed, "a_select_is_destroyed_that_was_let_go_twice", .setup = setup_destroyed,
        .threads = {release_permit, set_event}, .finish = finish_destroyed);
WRAPPED(destroyed_late, "a_select_is_destroyed_when_a_branch_has_ended", .setup = setup_destroyed,
        .threads = {run_the_loop, release_permit, set_event}, .finish = finish_destroyed);
SCENARIO_OF(served, given_up, "an_operation_is_given_up_as_a_sender_comes",
            .setup = setup_without_byte, .threads = {serve, send_number}, .finish = finish_served);
SCENARIO_OF(served, carried_out, "an_operation_is_carried_out_as_a_sender_comes",
            .setup = setup_with_byte, .threads = {serve, send_number},
            .finish = finish_served_once);
SCENARIO_OF(struct nesting, nested, "an_event_ends_a_select_within_a_select", .setup = setup_nested,
            .threads = {set_nested}, .finish = finish_held);
SCENARIO_OF(struct nesting, nested_unlocked, "a_mutex_is_unlocked_as_the_event_is_set",
            .setup = setup_nested, .threads = {unlock_nested, set_nested},
            .finish = finish_unlocked);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one,
                                                     &one_by_one,
                                                     &two,
                                                     &permit,
                                                     &permit_by_one,
                                                     &with_token,
                                                     &token_alone,
                                                     &token_unused,
                                                     &with_deadline,
                                                     &deadline_alone,
                                                     &destroyed,
                                                     &destroyed_late,
                                                     &given_up,
                                                     &carried_out,
                                                     &nested,
                                                     &nested_unlocked,
                                                     NULL};
    static const char *const files[] = {"select.c", "choice.h", "choice.c", "with_stop.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
