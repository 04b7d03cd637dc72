/*
 * The deque of joins: halves that are concurrently popped, stolen, waited for and helped with. Each
 * runs once, its joiner sees its writes, and a joiner runs nothing foreign while it waits. A pool's
 * worker that sleeps or is about to is woken for a half.
 */
#include "bide/check.h"
#include "bide/join.h"

#include "../../src/schedule/pool/worker.h"

enum { HALVES = 4, OWNER = 1 }; /* the first thread */

struct half {
    bide_join_half_ half;
    struct state *state;
    void (*function)(void *argument);
    int runs;
    int result;
};

typedef struct state {
    bide_join_deque_ deques[BIDE_CHECK_THREADS + 1];
    struct half halves[HALVES];
    bool waits[BIDE_CHECK_THREADS + 1]; /* each thread's own */
} state;

static bide_join_deque_ *own_deque(state *s)
{
    return &s->deques[bide_check_thread()];
}

static void leaf(void *argument)
{
    struct half *self = argument;
    self->runs++;
    self->result = 1;
}

/* A coroutine that does not come from inside the half that a joiner waits for. */
static void foreign(void *argument)
{
    struct half *self = argument;
    bide_check_assert(!self->state->waits[bide_check_thread()]);
    leaf(self);
}

static void setup(void *p)
{
    state *s = p;
    for (unsigned i = 0; i <= BIDE_CHECK_THREADS; i++)
        bide_join_deque_init_(&s->deques[i], 0);
    for (unsigned i = 0; i < HALVES; i++) {
        s->halves[i].function = leaf;
        s->halves[i].state = s;
        bide_atomic_init(&s->halves[i].half.state, BIDE_JOIN_DONE_); /* of another half, before */
    }
}

static bool push(state *s, unsigned index)
{
    bide_join_deque_ *deque = own_deque(s);
    s->halves[index].half.function = s->halves[index].function;
    s->halves[index].half.argument = &s->halves[index];
    return bide_join_push_(deque, bide_atomic_load(&deque->bottom, relaxed),
                           &s->halves[index].half);
}

/* The second part of bide_join: when it returns, the half has run and may be pushed again. */
static void pop(state *s, unsigned index)
{
    struct half *half = &s->halves[index];
    bide_join_deque_ *deque = own_deque(s);
    if (bide_join_pop_(deque, bide_atomic_load(&deque->bottom, relaxed) - 1)) {
        half->half.function(half);
    } else {
        s->waits[bide_check_thread()] = true;
        bide_join_wait_(deque, &half->half);
        s->waits[bide_check_thread()] = false;
    }
    bide_check_assert(half->runs == 1 && half->result == 1);
    half->runs = 0;
    half->result = 0;
}

static void steal_from(state *s, unsigned victim)
{
    bide_join_half_ *half = bide_join_steal_(&s->deques[victim], NULL);
    if (half != NULL)
        bide_join_run_(own_deque(s), &s->deques[victim], half);
}

static void thief(void *p)
{
    steal_from(p, OWNER);
}

static void twice_thief(void *p)
{
    steal_from(p, OWNER);
    steal_from(p, OWNER);
}

static void finish(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < HALVES; i++)
        bide_check_assert(s->halves[i].runs == 0);
    for (unsigned i = 0; i <= BIDE_CHECK_THREADS; i++)
        bide_check_assert(bide_join_deque_is_empty_(&s->deques[i]));
}

#define SCENARIO(variable, text, ...)                                             \
    static const bide_check_scenario variable = {.name = text,                    \
                                                 .size = sizeof(state),           \
                                                 .cxx20_release_sequences = true, \
                                                 .finish = finish,                \
                                                 .never_spurious = true,          \
                                                 __VA_ARGS__}

/* ---- One owner ---- */

static void join_one(void *p)
{
    bide_check_assert(push(p, 0));
    pop(p, 0);
}

static void join_two(void *p)
{
    bide_check_assert(push(p, 0));
    bide_check_assert(push(p, 1));
    pop(p, 1);
    pop(p, 0);
}

/* The second is at the place of the first, in memory and in the slots of the deque. */
static void join_one_again(void *p)
{
    join_one(p);
    join_one(p);
}

static void join_more_than_there_is_room_for(void *p)
{
    bide_check_assert(push(p, 0));
    bide_check_assert(push(p, 1));
    bool is_forked = push(p, 2);
    if (is_forked)
        pop(p, 2);
    pop(p, 1);
    pop(p, 0);
}

SCENARIO(one, "a_half_is_popped_or_stolen", .setup = setup, .threads = {join_one, thief});
SCENARIO(one_two_thieves, "a_half_is_stolen_by_one_of_two", .setup = setup,
         .threads = {join_one, thief, thief});
SCENARIO(two, "two_halves_are_popped_or_stolen", .setup = setup, .threads = {join_two, thief});
SCENARIO(two_stolen, "two_halves_are_stolen_by_one", .setup = setup,
         .threads = {join_two, twice_thief});
SCENARIO(again, "a_half_is_joined_where_another_was", .setup = setup, .preemptions = 2,
         .threads = {join_one_again, twice_thief});
SCENARIO(full, "a_slot_is_used_again_when_its_half_was_stolen", .setup = setup,
         .threads = {join_more_than_there_is_room_for, thief});

/* ---- Helping ---- */

/* Contains one half, number 1. */
static void nest(void *argument)
{
    struct half *self = argument;
    push(self->state, 1);
    leaf(self);
    pop(self->state, 1);
}

static void setup_nested(void *p)
{
    state *s = p;
    setup(p);
    s->halves[0].function = nest;
    s->halves[2].function = foreign;
}

/* The work of the first's thief is unrelated to it then. */
static void thief_with_other_work(void *p)
{
    steal_from(p, OWNER);
    push(p, 2);
    pop(p, 2);
}

SCENARIO(helped, "a_joiner_helps_with_what_is_inside", .setup = setup_nested, .preemptions = 1,
         .threads = {join_one, thief});

static void setup_foreign(void *p)
{
    state *s = p;
    setup(p);
    s->halves[2].function = foreign;
}

SCENARIO(not_helped_leaf, "a_joiner_leaves_alone_what_comes_after", .setup = setup_foreign,
         .threads = {join_one, thief_with_other_work});

/* ---- A worker of a pool that sleeps, or is about to ---- */

/* The first half ends only after the second has run, so another worker must run that. */
typedef struct pooled {
    bide_thread_pool *pool;
    bide_atomic(uint32_t) ran;
    int result;
} pooled;

static void nothing(void *p)
{
    (void)p;
}

static void await_the_other(void *p)
{
    pooled *s = p;
    while (bide_atomic_load(&s->ran, relaxed) == 0)
        bide_platform.wait(&s->ran, 0, BIDE_FOREVER);
}

static void run_other(void *p)
{
    pooled *s = p;
    bide_plain_store(&s->result, 42);
    bide_atomic_store(&s->ran, 1, relaxed);
    bide_platform.wake(&s->ran, 1);
}

/* Replaces the first worker. Its thread does not run; the second worker's does. */
static void join_in_pool(void *p, void (*first)(void *argument), void (*second)(void *argument))
{
    pooled *s = p;
    bide_join_here_ = &s->pool->workers[0].join;
    bide_join(first, s, second, s);
    bide_join_here_ = NULL;
}

static void setup_pool(void *p)
{
    pooled *s = p;
    s->pool = bide_pool_make_(2, 0);
    bide_atomic_init(&s->ran, 0);
    s->result = 0;
}

/* The pool knows of joins, and the owner of the deque knows of no sleeper. */
static void setup_pool_that_joined(void *p)
{
    setup_pool(p);
    join_in_pool(p, nothing, nothing);
}

static void join_that_meets(void *p)
{
    pooled *s = p;
    join_in_pool(p, await_the_other, run_other);
    bide_check_assert(bide_plain_load(&s->result) == 42);
    bide_pool_end_(s->pool);
}

static void work(void *p)
{
    bide_pool_work_(&((pooled *)p)->pool->workers[1]);
}

static void finish_pool(void *p)
{
    bide_pool_free_(((pooled *)p)->pool);
}

static const bide_check_scenario first_push = {.name = "the_first_join_of_a_pool_wakes_a_worker",
                                               .size = sizeof(pooled),
                                               .cxx20_release_sequences = true,
                                               .setup = setup_pool,
                                               .threads = {join_that_meets, work},
                                               .finish = finish_pool,
                                               .never_spurious = true,
                                               .preemptions = 1};

static const bide_check_scenario later_push = {.name =
                                                   "a_join_wakes_a_worker_that_is_about_to_sleep",
                                               .size = sizeof(pooled),
                                               .cxx20_release_sequences = true,
                                               .setup = setup_pool_that_joined,
                                               .threads = {join_that_meets, work},
                                               .finish = finish_pool,
                                               .never_spurious = true,
                                               .preemptions = 1};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &one,    &one_two_thieves, &two,        &two_stolen, &again, &full,
        &helped, &not_helped_leaf, &first_push, &later_push, NULL};
    static const char *const files[] = {"join_deque.h", "join.c", NULL};
    static const bide_check_reason reasons[] = {
        {"bide_join_put_", "load", "&deque->top", "relaxed",
         "the thief would have to read what is written after its exchange: RC11 has no such loads"},
        {"bide_join_steal_", "compare_exchange", "&victim->top", "relaxed",
         "the thief would have to read what is written after its exchange: RC11 has no such loads"},
        {"join_sleep_on", "fetch_or", "&deque->alert", "relaxed",
         "the joiner would have to read what is written after it asked: RC11 has no such loads"},
        {"bide_join_alerted_", "exchange", "&deque->alert", "relaxed",
         "the joiner would have to read what is written after it asked: RC11 has no such loads; "
         "and an owner that sees POOL before the fence of the one worker leaves it a half to see"},
        {"join_has_work", "fetch_or", "&deque->alert", "relaxed",
         "an owner that sees POOL before the fence of the one worker leaves it a half to see"},
        {NULL, NULL, NULL, NULL, NULL},
    };
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
