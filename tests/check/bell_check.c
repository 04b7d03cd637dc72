/*
 * The bell of a process (bell.h): a change by another process that a coroutine has waited for is not missed, and the
 * thread that sleeps on the bell is woken for it.
 */
#include "../src/log/bell.h"

#include "bide/check.h"
#include "bide/platform.h"

#include "../src/coroutine/lock.h"

enum { ONE = 1, OTHER = 2 };

typedef struct state {
    bide_atomic(uint32_t) lock;
    bide_atomic(uint32_t) bell;
    int changes; /* under the lock */
} state;

static void setup(void *p)
{
    state *s = p;
    bide_atomic_init(&s->lock, LOCK_FREE);
    bide_atomic_init(&s->bell, 0);
    s->changes = 0;
}

/* True: there are so many changes; otherwise asks for the bell. */
static bool look(state *s, int wanted, uint32_t kinds)
{
    lock_take(&s->lock);
    bool found = s->changes >= wanted;
    if (!found)
        bell_ask(&s->bell, kinds);
    lock_free(&s->lock);
    return found;
}

static uint32_t wait_for_bell(state *s)
{
    uint32_t rung;
    while ((rung = bell_take(&s->bell)) == 0) {
        uint32_t found = bide_atomic_load(&s->bell, relaxed);
        if (bell_is_silent(found))
            bide_platform.wait(&s->bell, found, BIDE_FOREVER);
    }
    return rung;
}

static void await_one(void *p)
{
    while (!look(p, 1, ONE))
        bide_check_assert((wait_for_bell(p) & ~(uint32_t)ONE) == 0);
}

static void await_both(void *p)
{
    while (!look(p, 2, ONE | OTHER))
        (void)wait_for_bell(p);
}

static void await_joined(void *p)
{
    bide_check_assert(wait_for_bell(p) == BELL_JOINED);
}

static void change(state *s, uint32_t kinds)
{
    lock_take(&s->lock);
    s->changes++;
    lock_free(&s->lock);
    if (bell_ring(&s->bell, kinds))
        bide_platform.wake(&s->bell, 1);
}

static void change_one(void *p)
{
    change(p, ONE);
}

static void change_both(void *p)
{
    change(p, ONE);
    change(p, OTHER);
}

static void join(void *p)
{
    state *s = p;
    bell_ring_always(&s->bell, BELL_JOINED);
    bide_platform.wake(&s->bell, 1);
}

static void await_one_or_burial(void *p)
{
    while (!look(p, 1, ONE))
        (void)wait_for_bell(p);
}

/* A process that is killed before it wakes the thread. */
static void change_and_die(state *s)
{
    lock_take(&s->lock);
    s->changes++;
    lock_free(&s->lock);
    (void)bell_ring(&s->bell, ONE);
}

static void die_and_be_buried(void *p)
{
    state *s = p;
    change_and_die(s);
    bell_ring_always(&s->bell, BELL_ANY_RUNG); /* another process has noticed it */
    bide_platform.wake(&s->bell, 1);
}

static void die_before_another(void *p)
{
    change_and_die(p);
    change(p, OTHER);
}

static const bide_check_scenario one_change = {
    .name = "a_change_rings_for_one_who_waits",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup,
    .threads = {await_one, change_one},
};

static const bide_check_scenario two_kinds = {
    .name = "changes_of_two_kinds_ring",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup,
    .threads = {await_both, change_both},
};

static const bide_check_scenario joined = {
    .name = "a_process_that_joins_rings_also_if_nobody_asks",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup,
    .threads = {await_joined, join},
};

static const bide_check_scenario buried = {
    .name = "a_ringer_that_dies_before_the_wake_is_buried",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup,
    .threads = {await_one_or_burial, die_and_be_buried},
};

static const bide_check_scenario dead_ringer = {
    .name = "a_ringer_that_dies_before_the_wake_leaves_the_bell_to_others",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup,
    .threads = {await_both, die_before_another},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one_change, &two_kinds,   &joined,
                                                     &buried,     &dead_ringer, NULL};
    static const char *const files[] = {"bell.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
