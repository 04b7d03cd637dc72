/*
 * A select of an item and an event, beside another waiter for the item: exactly one of the two has
 * the item, also if the select was released for it and has the event, or is destroyed.
 */
#include "taking.h"

#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/select.h"

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
    s->context = (bide_context){&bide_inline_scheduler, NULL, NULL, NULL};
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

#define SCENARIO(id, text, ...)             \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .cxx20_release_sequences = true, __VA_ARGS__}

SCENARIO(one, "an_item_is_brought_as_the_event_is_set", .setup = setup, .threads = {bring, set},
         .finish = finish);
SCENARIO(one_by_one, "the_event_is_set_and_an_item_is_brought", .setup = setup,
         .threads = {set_and_bring}, .finish = finish);
SCENARIO(two, "two_are_brought_as_the_event_is_set", .setup = setup,
         .threads = {bring, set_and_bring}, .preemptions = 2, .finish = finish_two);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one, &one_by_one, &two, NULL};
    static const char *const files[] = {"select.c", "choice.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
