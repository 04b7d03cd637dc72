/*
 * The textbook's mutex on a futex: 0 is free, 1 is locked, 2 is locked with possible sleepers
 * (Ulrich Drepper, "Futexes Are Tricky", 2011, the third version). Not part of the library: it
 * shows the cost of checking a small algorithm with sleeps.
 */
#include "bide/check.h"
#include "bide/platform.h"

typedef struct state {
    bide_atomic(uint32_t) word;
    uint32_t count;
} state;

/* The second version of the text: it locks and unlocks in two steps if there is contention. */
static void lock_in_steps(bide_atomic(uint32_t) * word)
{
    uint32_t found = 0;
    /* acquire: partner is unlock_in_steps, here and below. */
    if (bide_atomic_compare_exchange(word, &found, 1, acquire, relaxed))
        return;
    do {
        uint32_t one = 1;
        if (found == 2 || bide_atomic_compare_exchange(word, &one, 2, relaxed, relaxed) || one != 0)
            bide_platform.wait(word, 2, BIDE_FOREVER);
        found = 0;
    } while (!bide_atomic_compare_exchange(word, &found, 2, acquire, relaxed));
}

static void unlock_in_steps(bide_atomic(uint32_t) * word)
{
    /* release: partner is lock_in_steps, here and below. */
    if (bide_atomic_fetch_sub(word, 1, release) != 1) {
        bide_atomic_store(word, 0, release);
        bide_platform.wake(word, 1);
    }
}

static void lock(bide_atomic(uint32_t) * word)
{
    uint32_t found = 0;
    /* acquire: partner is unlock. */
    if (bide_atomic_compare_exchange(word, &found, 1, acquire, relaxed))
        return;
    if (found != 2)
        found = bide_atomic_exchange(word, 2, acquire);
    while (found != 0) {
        bide_platform.wait(word, 2, BIDE_FOREVER);
        found = bide_atomic_exchange(word, 2, acquire);
    }
}

static void unlock(bide_atomic(uint32_t) * word)
{
    /* release: partner is lock. */
    if (bide_atomic_exchange(word, 0, release) == 2)
        bide_platform.wake(word, 1);
}

static void count_once(void *p)
{
    state *s = p;
    lock(&s->word);
    s->count++;
    unlock(&s->word);
}

static void count_once_in_steps(void *p)
{
    state *s = p;
    lock_in_steps(&s->word);
    s->count++;
    unlock_in_steps(&s->word);
}

static void two_have_counted(void *p)
{
    bide_check_assert(((state *)p)->count == 2);
}

static void three_have_counted(void *p)
{
    bide_check_assert(((state *)p)->count == 3);
}

static const bide_check_scenario two_lock_it = {.name = "two_lock_it",
                                                .size = sizeof(state),
                                                .threads = {count_once, count_once},
                                                .finish = two_have_counted};
static const bide_check_scenario three_lock_it = {.name = "three_lock_it",
                                                  .size = sizeof(state),
                                                  .threads = {count_once, count_once, count_once},
                                                  .symmetric = true,
                                                  .finish = three_have_counted,
                                                  .never_spurious = true};
static const bide_check_scenario three_lock_it_early = {
    .name = "three_lock_it_and_sleeps_end_for_no_reason",
    .size = sizeof(state),
    .threads = {count_once, count_once, count_once},
    .symmetric = true,
    .finish = three_have_counted};
static const bide_check_scenario two_lock_it_in_steps = {
    .name = "two_lock_it_in_steps",
    .size = sizeof(state),
    .threads = {count_once_in_steps, count_once_in_steps},
    .finish = two_have_counted};
static const bide_check_scenario three_lock_it_in_steps = {
    .name = "three_lock_it_in_steps",
    .size = sizeof(state),
    .threads = {count_once_in_steps, count_once_in_steps, count_once_in_steps},
    .symmetric = true,
    .finish = three_have_counted,
    .never_spurious = true};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &two_lock_it,          &three_lock_it,          &three_lock_it_early,
        &two_lock_it_in_steps, &three_lock_it_in_steps, NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){.scenarios = all});
}
