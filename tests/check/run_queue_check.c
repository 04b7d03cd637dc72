/*
 * A worker's run queue and its hand-off slot: owner and thieves. Each coroutine is taken once, by a
 * thread that sees it. The queue holds four here.
 */
#include "../src/schedule/pool/run_queue.h"
#include "../src/schedule/pool/slot.h"

#include "bide/check.h"

enum { MOST = 6, FULL = BIDE_RUN_QUEUE_SIZE_ };

typedef struct item {
    bide_awaiter awaiter;
    int data;                    /* written by the maker */
    bide_atomic(uint32_t) taken; /* how often */
} item;

typedef struct state {
    bide_run_queue_ owner, thief, other;
    bide_pool_slot_ slot;
    item items[MOST];
    unsigned made;
} state;

static bide_awaiter *make(state *s)
{
    item *made = &s->items[s->made++];
    bide_plain_store(&made->data, 42);
    return &made->awaiter;
}

static void took(bide_awaiter *awaiter)
{
    if (awaiter == NULL)
        return;
    item *taken = bide_container_of(awaiter, item, awaiter);
    bide_check_assert(bide_plain_load(&taken->data) == 42);
    /* It may be made anew now: a thread that still reads its old state races with this. */
    bide_plain_store(&taken->data, 42);
    bide_check_assert(bide_atomic_fetch_add(&taken->taken, 1, relaxed) == 0);
}

/* The queue's indices are just before the wrap, and it holds `count`. */
static void set_up(state *s, unsigned count)
{
    bide_run_queue_init_(&s->owner);
    bide_run_queue_init_(&s->thief);
    bide_run_queue_init_(&s->other);
    bide_pool_slot_init_(&s->slot);
    bide_atomic_init(&s->owner.head, UINT32_MAX);
    bide_atomic_init(&s->owner.tail, UINT32_MAX);
    for (unsigned i = 0; i < count; i++)
        bide_check_assert(bide_run_queue_push_(&s->owner, make(s)));
}

static void empty_queue(void *p)
{
    set_up(p, 0);
}

static void queue_of_two(void *p)
{
    set_up(p, 2);
}

static void full_queue(void *p)
{
    set_up(p, FULL);
}

/* Coroutines that were not taken are still there; none is lost. */
static void finish(void *p)
{
    state *s = p;
    bide_run_queue_ *queues[] = {&s->owner, &s->thief, &s->other};
    bide_awaiter *awaiter;
    for (unsigned i = 0; i < 3; i++) {
        while ((awaiter = bide_run_queue_take_(queues[i])) != NULL)
            took(awaiter);
    }
    took(bide_pool_slot_take_(&s->slot));
    for (unsigned i = 0; i < s->made; i++)
        bide_check_assert(bide_atomic_load(&s->items[i].taken, relaxed) == 1);
}

static void take(void *p)
{
    took(bide_run_queue_take_(&((state *)p)->owner));
}

static void take_two(void *p)
{
    take(p);
    take(p);
}

static void push_two(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < 2; i++)
        bide_check_assert(bide_run_queue_push_(&s->owner, make(s)));
}

static void push_and_take(void *p)
{
    push_two(p);
    take_two(p);
}

/* The place of a taken entry is written anew. */
static void take_and_push(void *p)
{
    state *s = p;
    take(p);
    bide_check_assert(bide_run_queue_push_(&s->owner, make(s)));
}

/* As a worker does: moves half of the ring, if it is full. */
static void push_beyond(void *p)
{
    state *s = p;
    bide_awaiter_chain chain = {NULL, NULL};
    bide_awaiter *made = make(s);
    if (bide_run_queue_push_(&s->owner, made))
        return;
    if (!bide_run_queue_take_half_(&s->owner, &chain)) {
        bide_check_assert(bide_run_queue_push_(&s->owner, made));
        return;
    }
    for (bide_awaiter *awaiter; (awaiter = bide_awaiter_chain_take(&chain)) != NULL;)
        took(awaiter);
    took(made);
}

/* A coroutine without room is rejected, and taken here. */
static void push_one_too_many(void *p)
{
    state *s = p;
    bide_awaiter *made = make(s);
    if (!bide_run_queue_push_(&s->owner, made))
        took(made);
}

static void steal(void *p)
{
    state *s = p;
    took(bide_run_queue_steal_(&s->thief, &s->owner));
}

static void steal_and_take(void *p)
{
    state *s = p;
    steal(p);
    took(bide_run_queue_take_(&s->thief));
}

static void steal_from_thief(void *p)
{
    state *s = p;
    took(bide_run_queue_steal_(&s->other, &s->thief));
}

static void steal_too(void *p)
{
    state *s = p;
    took(bide_run_queue_steal_(&s->other, &s->owner));
}

static void steal_one(void *p)
{
    took(bide_run_queue_steal_one_(&((state *)p)->owner));
}

/* A thief's own ring is written anew after another thief has emptied it. */
static void steal_twice(void *p)
{
    steal(p);
    steal(p);
}

static void put_two(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < 2; i++)
        took(bide_pool_slot_put_(&s->slot, make(s)));
}

static void put_and_take(void *p)
{
    put_two(p);
    took(bide_pool_slot_take_(&((state *)p)->slot));
}

static void steal_slot(void *p)
{
    took(bide_pool_slot_steal_(&((state *)p)->slot));
}

static void remove_from_slot(void *p)
{
    state *s = p;
    if (bide_pool_slot_remove_(&s->slot, &s->items[0].awaiter))
        took(&s->items[0].awaiter);
}

#define SCENARIO(variable, text, before, ...)     \
    static const bide_check_scenario variable = { \
        .name = text,                             \
        .size = sizeof(state),                    \
        .cxx20_release_sequences = true,          \
        .setup = before,                          \
        .threads = {__VA_ARGS__},                 \
        .finish = finish,                         \
    }

SCENARIO(pushed, "an_owner_and_a_thief", empty_queue, push_and_take, steal);
SCENARIO(one_each, "an_owner_takes_and_a_thief_steals", queue_of_two, take_two, steal);
SCENARIO(anew, "a_place_is_written_anew_while_a_thief_reads_it", full_queue, take_and_push, steal);
SCENARIO(refused, "a_push_is_refused_unless_a_thief_has_made_room", full_queue, push_one_too_many,
         steal);
SCENARIO(beyond, "a_full_ring_overflows_while_a_thief_steals", full_queue, push_beyond, steal);
SCENARIO(two_thieves, "two_thieves", full_queue, take, steal, steal_too);
SCENARIO(thieves_thief, "a_thief_is_stolen_from", full_queue, steal_and_take, steal_from_thief);
SCENARIO(thief_anew, "a_thief_steals_again_while_it_is_stolen_from", full_queue, steal_twice,
         steal_from_thief);
SCENARIO(alone, "one_is_stolen_alone", queue_of_two, push_two, steal_one, steal);
SCENARIO(slot, "a_slot_is_filled_while_a_thief_empties_it", empty_queue, put_and_take, steal_slot,
         steal_slot);
SCENARIO(removed, "one_is_taken_back_from_a_slot", empty_queue, put_and_take, remove_from_slot);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &pushed,        &one_each,   &anew,  &refused, &beyond,  &two_thieves,
        &thieves_thief, &thief_anew, &alone, &slot,    &removed, NULL};
    static const char *const files[] = {"run_queue.h", "slot.h", NULL};
    static const bide_check_reason reasons[] = {
        {"bide_run_queue_push_", "load", "&queue->head", "relaxed",
         "the taker would have to read what is written after its exchange: RC11 has no such loads"},
        {"bide_run_queue_steal_", "load", "&thief->head", "relaxed",
         "the taker would have to read what is written after its exchange: RC11 has no such loads"},
        {"bide_run_queue_steal_", "compare_exchange", "&victim->head", "relaxed",
         "the taker would have to read what is written after its exchange: RC11 has no such loads"},
        {"bide_run_queue_steal_one_", "compare_exchange", "&victim->head", "relaxed",
         "the taker would have to read what is written after its exchange: RC11 has no such loads"},
        {NULL, NULL, NULL, NULL, NULL},
    };
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
