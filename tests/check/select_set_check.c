/*
 * A registered set of an item and an event: their waits end on other threads while the owner tries, waits, is asked to
 * stop, or ends the set. Each is had once, or stays; and nothing of the set is touched after its end.
 */
#include "taking.h"

#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/select_set.h"

#include <string.h>

struct state;

typedef struct member {
    bide_select_member member;
    taking taking;
    bide_event_waiter wait;
} member;

struct owner {
    bide_task task;
    struct state *state;
    bide_select_set set;
    bide_select_member *which;
    member members[2];
    int to_take, had[2], status;
    bool ended;
};

typedef struct state {
    bide_event_count event_count;
    bide_atomic(uint32_t) items;
    int data[2]; /* written before the item is brought, and before the event is set */
    bide_event event;
    bide_stop_source stop;
    bide_context context;
    struct owner owner;
} state;

static void note(struct owner *self)
{
    size_t i = (size_t)(bide_container_of(self->which, member, member) - self->members);
    bide_check_assert(self->which->status == 0);
    bide_check_assert(self->state->data[i] == 1);
    self->had[i]++;
}

/* It is the owner's again. (The checker does not see the writes of memset.) */
static void reuse(bide_select_member *member)
{
    member->frame.awaiter.ops = NULL;
    member->frame.awaiter.link = NULL;
    member->frame.awaiter.frame = NULL;
    member->awaited = NULL;
    member->status = 1;
    member->set = NULL;
    member->next_ended = NULL;
}

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    bide_select_set_init(&self->set);
    bide_select_set_add(
        &self->set, &self->members[0].member,
        taking_begin(&self->members[0].taking, &self->state->items, &self->state->event_count));
    bide_select_set_add(&self->set, &self->members[1].member,
                        bide_event_wait(&self->members[1].wait, &self->state->event));
    for (; self->to_take != 0; self->to_take--) {
        bide_await_status(self->status, bide_select_set_next(&self->set, &self->which));
        if (self->status != 0)
            break;
        note(self);
    }
    bide_await(bide_select_set_end(&self->set));
    self->ended = true;
    reuse(&self->members[0].member);
    reuse(&self->members[1].member);
    self->set.ready = NULL;
    bide_end();
}

static void setup_to_take(state *s, int to_take)
{
    memset(s->data, 0, sizeof s->data);
    bide_event_count_init(&s->event_count);
    bide_atomic_init(&s->items, 0);
    bide_event_init(&s->event, false);
    bide_stop_source_init(&s->stop);
    s->context = (bide_context){.scheduler = &bide_inline_scheduler, .stop = &s->stop};
    memset(&s->owner, 0, sizeof s->owner);
    s->owner.state = s;
    s->owner.to_take = to_take;
    bide_start(&s->owner.task.frame, &owner_body, &s->context);
}

/* One is to be had; the owner waits. */
static void setup(void *p)
{
    setup_to_take(p, 1);
    bide_resume(&((state *)p)->owner.task.frame);
}

static void setup_two(void *p)
{
    setup_to_take(p, 2);
    bide_resume(&((state *)p)->owner.task.frame);
}

/* The owner begins on a thread of its own. */
static void setup_to_begin(void *p)
{
    setup_to_take(p, 1);
}

static void begin(void *p)
{
    bide_resume(&((state *)p)->owner.task.frame);
}

static void bring(void *p)
{
    state *s = p;
    s->data[0] = 1;
    bide_atomic_fetch_add(&s->items, 1, release);
    bide_event_count_notify(&s->event_count, 1);
}

static void set(void *p)
{
    state *s = p;
    s->data[1] = 1;
    bide_event_set(&s->event);
}

static void stop(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

/* What the set has not had is still there, and nobody waits. */
static void check_rest(state *s)
{
    struct owner *o = &s->owner;
    bide_check_assert(o->ended);
    bide_check_assert(bide_atomic_load(&s->items, relaxed) == (o->had[0] == 0));
    bide_check_assert(bide_event_count_is_idle(&s->event_count));
    bide_check_assert(bide_event_is_set(&s->event));
}

static void finish_one(void *p)
{
    state *s = p;
    check_rest(s);
    bide_check_assert(s->owner.had[0] + s->owner.had[1] == 1);
}

static void finish_two(void *p)
{
    state *s = p;
    check_rest(s);
    bide_check_assert(s->owner.had[0] == 1 && s->owner.had[1] == 1);
}

static void finish_stopped(void *p)
{
    state *s = p;
    if (s->data[0] == 0)
        bring(s);
    if (s->data[1] == 0)
        set(s);
    check_rest(s);
    bide_check_assert(s->owner.had[0] + s->owner.had[1] == (s->owner.status == 0));
}

#define SCENARIO(id, text, ...)             \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .cxx20_release_sequences = true, __VA_ARGS__}

SCENARIO(one, "one_of_two_is_had_while_both_come", .setup = setup, .threads = {bring, set},
         .finish = finish_one);
SCENARIO(two, "both_are_had", .setup = setup_two, .threads = {bring, set}, .finish = finish_two);
SCENARIO(begun, "a_wait_ends_as_the_owner_begins_to_wait", .setup = setup_to_begin,
         .threads = {begin, set}, .finish = finish_stopped);
SCENARIO(begun_item, "an_item_comes_as_the_owner_begins_to_wait", .setup = setup_to_begin,
         .threads = {begin, bring}, .finish = finish_stopped);
SCENARIO(stopped, "the_owner_is_asked_to_stop_as_a_member_comes", .setup = setup,
         .threads = {stop, set}, .finish = finish_stopped);
SCENARIO(stopped_item, "the_owner_is_asked_to_stop_as_an_item_comes", .setup = setup,
         .threads = {stop, bring}, .finish = finish_stopped);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one,     &two,          &begun, &begun_item,
                                                     &stopped, &stopped_item, NULL};
    static const char *const files[] = {"select_set.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
