/*
 * Resolvers of names between two look-ups: each has one owner, who sees the work of the one before, and
 * none is lost.
 */
#include "../src/net/names_idle.h"

#include "bide/check.h"

#include <string.h>

typedef struct resolver {
    unsigned uses;
} resolver;

typedef struct state {
    names_idle idle;
    resolver all[NAMES_IDLE_MAX + 1];
    bool was_refused[2];
} state;

static void setup_empty(void *p)
{
    bide_names_idle_init_(&((state *)p)->idle);
}

static void put(state *s, resolver *it)
{
    bide_check_assert(bide_names_idle_put_(&s->idle, it));
}

static void setup_one(void *p)
{
    setup_empty(p);
    put(p, &((state *)p)->all[0]);
}

static void setup_one_place(void *p)
{
    setup_empty(p);
    for (int i = 0; i < NAMES_IDLE_MAX - 1; i++)
        put(p, &((state *)p)->all[i + 2]);
}

/* ---- Threads ---- */

/* A look-up: with an idle resolver, or a new one. */
static void resolve(state *s, resolver *own)
{
    resolver *it = bide_names_idle_take_(&s->idle);
    if (it == NULL)
        it = own;
    it->uses++;
    put(s, it);
}

static void resolve_first(void *p)
{
    resolve(p, &((state *)p)->all[0]);
}

static void resolve_second(void *p)
{
    resolve(p, &((state *)p)->all[1]);
}

static void resolve_if_one_is_idle(void *p)
{
    state *s = p;
    resolver *it = bide_names_idle_take_(&s->idle);
    if (it == NULL)
        return;
    it->uses++;
    put(s, it);
}

static void put_or_keep(state *s, int which)
{
    s->all[which].uses++;
    s->was_refused[which] = !bide_names_idle_put_(&s->idle, &s->all[which]);
}

static void put_first(void *p)
{
    put_or_keep(p, 0);
}

static void put_second(void *p)
{
    put_or_keep(p, 1);
}

/* Frees a resolver that is too old. */
static void put_new(void *p)
{
    state *s = p;
    resolver *it = bide_check_alloc(sizeof *it);
    it->uses = 1;
    put(s, it);
}

static void take_and_free(void *p)
{
    resolver *it = bide_names_idle_take_(&((state *)p)->idle);
    bide_check_free(it);
}

/* ---- What is left ---- */

/* Takes all that are idle, and sums their uses. */
static unsigned take_all(state *s, unsigned *uses)
{
    unsigned count = 0;
    resolver *it;
    *uses = 0;
    for (; (it = bide_names_idle_take_(&s->idle)) != NULL; count++) {
        bide_check_assert(count <= NAMES_IDLE_MAX);
        *uses += it->uses;
        it->uses = 0;
    }
    return count;
}

static void finish_two_look_ups(void *p)
{
    unsigned uses;
    unsigned count = take_all(p, &uses);
    bide_check_assert(uses == 2);
    bide_check_assert(count == 1 || count == 2);
}

static void finish_one(void *p)
{
    unsigned uses;
    bide_check_assert(take_all(p, &uses) == 1);
    bide_check_assert(uses == 1 || uses == 2);
}

static void finish_full(void *p)
{
    state *s = p;
    unsigned uses;
    bide_check_assert(s->was_refused[0] != s->was_refused[1]);
    bide_check_assert(take_all(s, &uses) == NAMES_IDLE_MAX);
    bide_check_assert(uses == 1);
}

static void finish_freed(void *p)
{
    resolver *it = bide_names_idle_take_(&((state *)p)->idle);
    bide_check_free(it);
}

static const bide_check_scenario two_look_ups = {
    .name = "two_look_ups_begin_without_an_idle_resolver",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_empty,
    .threads = {resolve_first, resolve_second},
    .finish = finish_two_look_ups,
};

static const bide_check_scenario one_resolver = {
    .name = "two_look_ups_take_one_resolver",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {resolve_if_one_is_idle, resolve_if_one_is_idle},
    .finish = finish_one,
};

static const bide_check_scenario one_place = {
    .name = "two_resolvers_get_idle_and_one_slot_is_empty",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_place,
    .threads = {put_first, put_second},
    .finish = finish_full,
};

static const bide_check_scenario freed = {
    .name = "a_resolver_is_freed_by_another_thread",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_empty,
    .threads = {put_new, take_and_free, take_and_free},
    .finish = finish_freed,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&two_look_ups, &one_resolver, &one_place,
                                                     &freed, NULL};
    static const char *const files[] = {"names_idle.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
