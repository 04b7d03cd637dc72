/*
 * The cache of names, which the loops of a program share: answers are whole, they are of the era in which they
 * were asked for, and each entry is freed once.
 */
#include "../../src/net/names_cache.h"

#include "bide/check.h"

enum { KIND = 0, SIZE = 2, LATER = 100, EXPIRES = 50 };

typedef struct state {
    names_cache *cache;
    uint64_t era;
} state;

static void setup_of(state *s, unsigned max)
{
    s->cache = bide_names_cache_create_(max);
    s->era = bide_names_cache_begin_(s->cache, &(names_configuration){.number = 1});
}

static void setup(void *p)
{
    setup_of(p, 2);
}

static void keep(state *s, uint64_t era, const char *host, uint8_t value)
{
    const uint8_t data[SIZE] = {value, value};
    bide_names_cache_keep_(s->cache, era, KIND, host, EXPIRES, data, SIZE);
}

static void setup_with_a(void *p)
{
    setup(p);
    keep(p, ((state *)p)->era, "a", 1);
}

static void setup_full(void *p)
{
    setup_of(p, 1);
    keep(p, ((state *)p)->era, "a", 1);
}

/* ---- Threads ---- */

static void read_answer(void *argument, const uint8_t *data, size_t size)
{
    uint8_t *value = argument;
    bide_check_assert(size == SIZE);
    bide_check_assert(data[0] == data[1]);
    *value = data[0];
}

/* 0: there is none. */
static uint8_t value_of(state *s, const char *host, uint64_t now)
{
    uint8_t value = 0;
    bool is_found = bide_names_cache_find_(s->cache, KIND, host, now, read_answer, &value);
    bide_check_assert(is_found == (value != 0));
    return value;
}

static void keep_a(void *p)
{
    keep(p, ((state *)p)->era, "a", 2);
}

static void keep_b(void *p)
{
    keep(p, ((state *)p)->era, "B", 3);
}

static void find_a(void *p)
{
    bide_check_assert(value_of(p, "A", 0) <= 2);
}

static void find_a_later(void *p)
{
    bide_check_assert(value_of(p, "a", LATER) == 0);
}

static void forget(void *p)
{
    bide_names_cache_clear_(((state *)p)->cache);
}

static void begin_otherwise(void *p)
{
    (void)bide_names_cache_begin_(((state *)p)->cache, &(names_configuration){.number = 2});
}

/* ---- What is left ---- */

static void finish_empty(void *p)
{
    state *s = p;
    bide_check_assert(value_of(s, "a", 0) == 0);
    bide_names_cache_destroy_(s->cache);
}

static void finish_with_a(void *p)
{
    state *s = p;
    bide_check_assert(value_of(s, "a", 0) == 2);
    bide_names_cache_destroy_(s->cache);
}

static void finish_both(void *p)
{
    state *s = p;
    bide_check_assert(value_of(s, "a", 0) == 2);
    bide_check_assert(value_of(s, "b", 0) == 3);
    bide_names_cache_destroy_(s->cache);
}

static void finish_full(void *p)
{
    state *s = p;
    bide_check_assert((value_of(s, "a", 0) == 2) != (value_of(s, "b", 0) == 3));
    bide_names_cache_destroy_(s->cache);
}

/* Of two that were kept in an order that the threads chose, an expired one may be left. */
static void finish_any(void *p)
{
    bide_names_cache_destroy_(((state *)p)->cache);
}

static const bide_check_scenario found = {
    .name = "one_finds_what_another_keeps",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {keep_a, find_a},
    .finish = finish_with_a,
};

static const bide_check_scenario replaced = {
    .name = "one_finds_what_another_replaces",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_with_a,
    .threads = {keep_a, find_a},
    .finish = finish_with_a,
};

static const bide_check_scenario two = {
    .name = "two_keep_answers",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {keep_a, keep_b},
    .finish = finish_both,
};

static const bide_check_scenario full = {
    .name = "two_keep_answers_in_a_full_cache",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_full,
    .threads = {keep_a, keep_b},
    .finish = finish_full,
};

static const bide_check_scenario expired = {
    .name = "two_find_an_answer_that_has_expired",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_with_a,
    .threads = {find_a_later, find_a_later},
    .finish = finish_empty,
};

static const bide_check_scenario used = {
    .name = "one_is_found_while_another_expires",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_with_a,
    .threads = {find_a, find_a_later, keep_b},
    .finish = finish_any,
};

static const bide_check_scenario forgotten = {
    .name = "an_answer_comes_while_all_are_forgotten",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_with_a,
    .threads = {keep_a, forget, find_a},
    .finish = finish_empty,
};

static const bide_check_scenario configured = {
    .name = "an_answer_comes_while_a_look_up_finds_another_configuration",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_with_a,
    .threads = {keep_a, begin_otherwise},
    .finish = finish_empty,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &found, &replaced, &two, &full, &expired, &used, &forgotten, &configured, NULL};
    static const char *const files[] = {"names_cache.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
