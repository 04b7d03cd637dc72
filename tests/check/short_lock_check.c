/*
 * The lock for a few instructions: mutual exclusion, and no lost sleeper.
 */
#define BIDE_SHORT_LOCK 1
/*
 * beside the directory of the public headers, where statements_test.py can put a changed one in its
 * place
 */
#include "../src/coroutine/short_lock.h"

#include "bide/check.h"

typedef struct locked {
    bide_short_lock_ lock;
    int data;
} locked;

static void setup_lock(void *p)
{
    bide_short_lock_init_(&((locked *)p)->lock);
}

static void take_and_free(void *p)
{
    locked *s = p;
    bide_short_lock_take_(&s->lock);
    s->data++;
    bide_short_lock_free_(&s->lock);
}

static void take_and_free_twice(void *p)
{
    take_and_free(p);
    take_and_free(p);
}

static void setup_held(void *p)
{
    setup_lock(p);
    bide_short_lock_take_(&((locked *)p)->lock);
}

static void free_held(void *p)
{
    locked *s = p;
    s->data++;
    bide_short_lock_free_(&s->lock);
}

static void finish_two(void *p)
{
    locked *s = p;
    bide_check_assert(s->data == 2);
    bide_check_assert(bide_atomic_load(&s->lock.sleepers, relaxed) == 0);
}

static void finish_three(void *p)
{
    bide_check_assert(((locked *)p)->data == 3);
}

static const bide_check_scenario locked_by_two = {
    .name = "two_take_the_lock",
    .size = sizeof(locked),
    .cxx20_release_sequences = true,
    .setup = setup_lock,
    .threads = {take_and_free, take_and_free},
    .finish = finish_two,
};

static const bide_check_scenario locked_again = {
    .name = "a_thread_takes_the_lock_again_before_a_sleeper",
    .size = sizeof(locked),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup_lock,
    .threads = {take_and_free_twice, take_and_free},
    .finish = finish_three,
};

static const bide_check_scenario locked_by_sleepers = {
    .name = "two_take_the_lock_that_another_holds",
    .size = sizeof(locked),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup_held,
    .threads = {free_held, take_and_free, take_and_free},
    .finish = finish_three,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&locked_by_two, &locked_again,
                                                     &locked_by_sleepers, NULL};
    static const char *const files[] = {"short_lock.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
