/*
 * What carries input and output out in a test: a loop by io_uring or by epoll. A test program is run once for each,
 * with its name in BIDE_TEST_WORLD, and means the same.
 *
 *     uring            an io_uring; the tests are skipped where it is refused
 *     uring-polls      the same as on kernels that cannot wait on a word in a ring
 *     epoll
 *     any              what the library chooses
 */
#ifndef BIDE_TESTS_IO_WORLD_H
#define BIDE_TESTS_IO_WORLD_H

#include "testing.h"

#include <bide/bide.h>

#include <dirent.h>

typedef struct world {
    bide_loop *loop;
    bide_context *context;
    int descriptors; /* that were open before */
} world;

static inline const char *world_name(void)
{
    const char *name = getenv("BIDE_TEST_WORLD");
    return name != NULL ? name : "epoll";
}

/* How many descriptors the process has. */
static inline int count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static inline bool world_is(const char *name)
{
    return strcmp(world_name(), name) == 0;
}

/* Waits on the world until it has ended. */
static inline int world_wait(world *world, bide_awaiter *awaiter)
{
    return bide_loop_wait(world->loop, awaiter);
}

/* Makes the world, as cmocka's setup. */
static inline int world_begin(void **state)
{
    static world only;
    bide_loop_options options = {.kind = world_is("any")     ? BIDE_LOOP_ANY
                                         : world_is("epoll") ? BIDE_LOOP_EPOLL
                                                             : BIDE_LOOP_URING};
    setenv("BIDE_IO_WITHOUT", world_is("uring-polls") ? "futex" : "", 1);
    only.descriptors = count_descriptors();
    int status = bide_loop_create(&only.loop, &options);
    if (status < 0 && options.kind == BIDE_LOOP_URING) {
        printf("# no io_uring: %s\n", strerror(-status));
        only.loop = NULL;
    } else {
        assert_int_equal(status, 0);
        only.context = bide_loop_context(only.loop);
    }
    *state = &only;
    return 0;
}

/* Ends it, as cmocka's teardown: nothing is left in it, and no descriptor. */
static inline int world_end(void **state)
{
    world *world = *state;
    bide_loop_counts counts;
    if (world->loop == NULL)
        return 0;
    bide_loop_count(world->loop, &counts);
    assert_int_equal(counts.in_flight, 0);
    bide_loop_destroy(world->loop);
    /* (the descriptor that wakes a loop is kept for the next one) */
    assert_in_range(count_descriptors(), world->descriptors, world->descriptors + 1);
    return 0;
}

/* The world of a test; or the test is skipped. */
static inline world *world_of(void **state)
{
    world *world = *state;
    if (world->loop == NULL)
        skip();
    return world;
}

#define world_test(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

#endif
