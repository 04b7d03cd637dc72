/*
 * Sleeping on a word by condition variables (src/system/park.c): no wake is lost, a wake wakes so many, and sleepers on
 * different words that share a list do not disturb each other. The clock of scenarios does not move, so a wait with a
 * deadline may end at any moment.
 */
#include "bide/check.h"

#include "../src/system/park.h"

typedef struct state {
    bide_atomic(uint32_t) word, other;
    bide_atomic(uint32_t) released; /* by how many sleepers */
    uint32_t written;               /* before the wake */
} state;

static void sleep_on(bide_atomic(uint32_t) * word, uint64_t deadline)
{
    /* acquire: partner is the store in release_one, so that `written` is seen. */
    while (bide_atomic_load(word, acquire) == 0)
        bide_park_wait_(word, 0, deadline);
}

static void sleep_until_released(void *p)
{
    state *s = p;
    sleep_on(&s->word, BIDE_FOREVER);
    bide_check_assert(s->written == 1);
    bide_atomic_fetch_add(&s->released, 1, relaxed);
}

static void sleep_on_other(void *p)
{
    state *s = p;
    sleep_on(&s->other, BIDE_FOREVER);
    bide_atomic_fetch_add(&s->released, 1, relaxed);
}

/* As in the argument, 3: a wait that is late may have been woken. Either way the word is looked at. */
static void sleep_with_deadline(void *p)
{
    state *s = p;
    if (bide_park_wait_(&s->word, 0, 1) == 0)
        sleep_on(&s->word, BIDE_FOREVER);
    bide_atomic_fetch_add(&s->released, 1, relaxed);
}

static void release_one(void *p)
{
    state *s = p;
    s->written = 1;
    /* release: partner is sleep_on. */
    bide_atomic_store(&s->word, 1, release);
    bide_park_wake_(&s->word, 1);
}

static void release_all(void *p)
{
    state *s = p;
    s->written = 1;
    bide_atomic_store(&s->word, 1, release); /* as in release_one */
    bide_park_wake_(&s->word, UINT32_MAX);
}

static void release_both_words(void *p)
{
    state *s = p;
    release_one(p);
    bide_atomic_store(&s->other, 1, release); /* as in release_one */
    bide_park_wake_(&s->other, 1);
}

/* (an execution that is given up leaves sleepers in the list) */
static void begin_with_no_sleeper(void *p)
{
    (void)p;
    bide_park_in_child_();
}

static void one_was_released(void *p)
{
    bide_check_assert(bide_atomic_load(&((state *)p)->released, relaxed) == 1);
}

static void two_were_released(void *p)
{
    bide_check_assert(bide_atomic_load(&((state *)p)->released, relaxed) == 2);
}

static const bide_check_scenario one = {.name = "no_wake_is_lost",
                                        .size = sizeof(state),
                                        .setup = begin_with_no_sleeper,
                                        .threads = {sleep_until_released, release_one},
                                        .finish = one_was_released};
static const bide_check_scenario all_of_them = {
    .name = "a_wake_of_all_wakes_two",
    .size = sizeof(state),
    .setup = begin_with_no_sleeper,
    .threads = {sleep_until_released, sleep_until_released, release_all},
    .finish = two_were_released};
static const bide_check_scenario words = {
    .name = "words_that_share_a_list",
    .size = sizeof(state),
    .setup = begin_with_no_sleeper,
    .threads = {sleep_until_released, sleep_on_other, release_both_words},
    .finish = two_were_released};
static const bide_check_scenario late = {
    .name = "a_wait_that_is_late_loses_no_wake",
    .size = sizeof(state),
    .setup = begin_with_no_sleeper,
    .threads = {sleep_with_deadline, sleep_until_released, release_all},
    .finish = two_were_released};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one, &all_of_them, &words, &late, NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){.scenarios = all});
}
