/*
 * The handshake between a suspend and the thread that ends its operation: a suspend that accesses
 * the object again after it has enlisted, and a coroutine that frees both when it continues.
 */
#include "bide/check.h"
#include "bide/extend/handshake.h"

enum { OPERATIONS = 3 };

/* The object that a waiter enlists in, and its operation; freed by the coroutine. */
typedef struct object {
    bide_awaiter awaiter;
    bide_handshake handshake;
    int uses;   /* plain: of suspend */
    int result; /* plain: of the ender */
} object;

typedef struct state {
    object *objects[OPERATIONS];
    bide_atomic(uint32_t) went_on;
} state;

static void setup(void *p)
{
    state *s = p;
    bide_atomic_init(&s->went_on, 0);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        object *o = s->objects[i] = bide_check_alloc(sizeof *o);
        bide_handshake_init(&o->handshake);
        o->uses = 0;
        o->result = 0;
        o->awaiter.link = i == 0 ? NULL : &s->objects[i - 1]->awaiter;
    }
}

/* The coroutine continues: its operation is not accessed any more. */
static void go_on(state *s, object *o)
{
    bide_check_assert(o->uses == 1 && o->result == 1);
    bide_check_free(o);
    bide_atomic_fetch_add(&s->went_on, 1, relaxed);
}

static void suspend(state *s, unsigned i)
{
    object *o = s->objects[i];
    o->uses++;
    if (bide_handshake_arm(&o->handshake))
        go_on(s, o);
}

static void suspend_one(void *p)
{
    suspend(p, 0);
}

static void suspend_two(void *p)
{
    suspend(p, 0);
    suspend(p, 1);
}

static void suspend_last(void *p)
{
    suspend(p, 2);
}

static void end_one(void *p)
{
    state *s = p;
    object *o = s->objects[0];
    o->result = 1;
    if (bide_handshake_finish(&o->handshake))
        go_on(s, o);
}

static bide_handshake *of(bide_awaiter *awaiter)
{
    return &((object *)(void *)awaiter)->handshake;
}

/* All chained coroutines, the last first. */
static void end_all(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < OPERATIONS; i++)
        s->objects[i]->result = 1;
    bide_awaiter_chain armed = bide_handshake_finish_all(&s->objects[OPERATIONS - 1]->awaiter, of);
    for (bide_awaiter *a; (a = bide_awaiter_chain_take(&armed)) != NULL;)
        go_on(s, (object *)(void *)a);
}

/* Checks whether the operation has ended, instead of suspending. */
static void look(void *p)
{
    state *s = p;
    object *o = s->objects[0];
    o->uses++;
    if (bide_handshake_has_ended(&o->handshake)) {
        bide_check_assert(!bide_handshake_is_armed(&o->handshake));
        bide_check_assert(o->result == 1);
    }
    if (bide_handshake_arm(&o->handshake)) {
        bide_check_assert(bide_handshake_is_armed(&o->handshake));
        go_on(s, o);
    }
}

static void finish_one(void *p)
{
    state *s = p;
    bide_check_assert(bide_atomic_load(&s->went_on, relaxed) == 1);
    for (unsigned i = 1; i < OPERATIONS; i++)
        bide_check_free(s->objects[i]);
}

static void finish_all(void *p)
{
    bide_check_assert(bide_atomic_load(&((state *)p)->went_on, relaxed) == OPERATIONS);
}

#define SCENARIO(variable, title, ...)            \
    static const bide_check_scenario variable = { \
        .name = title,                            \
        .size = sizeof(state),                    \
        .cxx20_release_sequences = true,          \
        .setup = setup,                           \
        __VA_ARGS__,                              \
    }

SCENARIO(one, "a_waiter_suspends_and_an_ender_ends_it", .finish = finish_one,
         .threads = {suspend_one, end_one});
SCENARIO(looks, "the_waiter_looks_before_it_is_armed", .finish = finish_one,
         .threads = {look, end_one});
SCENARIO(all_of_them, "an_ender_ends_three_waits_of_two_threads", .finish = finish_all,
         .threads = {suspend_two, suspend_last, end_all});

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one, &looks, &all_of_them, NULL};
    static const char *const files[] = {"handshake.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
