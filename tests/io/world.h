/*
 * The world of a test performs its input and output: a loop with io_uring, epoll or poll, or memory under a
 * test loop. A test program runs once in each, with its name in BIDE_TEST_WORLD, and its meaning is the same.
 *
 *     uring            an io_uring; tests are skipped if it is unavailable
 *     uring-polls      the same, as on kernels that cannot wait on a word in a ring
 *     epoll
 *     poll             poll(), where the others are not
 *     any              the library's choice
 *     pool             a pool whose one worker has a loop of the library's choice; the test is on another thread
 *     memory           nothing belongs to the system: neither descriptors nor files nor time
 *
 * Tests ask the world instead of the system: world_now, world_pipe and so on.
 */
#ifndef BIDE_TESTS_IO_WORLD_H
#define BIDE_TESTS_IO_WORLD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "by_readiness.h"
#include "testing.h"

#include <bide/bide.h>

#include "../../src/simulation/sim_loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * How many descriptors a process may keep open: that by which a loop was woken, for the next one. It is a pipe where the
 * system has no eventfd; then that of signals is a pipe, too.
 */
#if defined BIDE_HAS_EVENTFD && !BIDE_HAS_EVENTFD
enum { KEPT_DESCRIPTORS = 4 };
#else
enum { KEPT_DESCRIPTORS = 1 };
#endif

typedef struct world {
    bide_loop *loop;        /* NULL: there is none */
    bide_thread_pool *pool; /* NULL: there is none */
    bide_sim_loop test;
    bide_sim_record_ record;
    bide_memory_io *memory; /* NULL: not under a test loop */
    bide_context *context;
    int descriptors; /* that were open before */
} world;

static inline const char *world_name(void)
{
    const char *name = getenv("BIDE_TEST_WORLD");
    return name != NULL ? name : BY_READINESS_NAME;
}

static inline bool world_is(const char *name)
{
    return strcmp(world_name(), name) == 0;
}

/* Whether its loops make calls when a descriptor is ready: over epoll or poll. */
static inline bool world_is_by_readiness(void)
{
    return world_is("epoll") || world_is("poll");
}

/* The kind of its loops. */
static inline bide_loop_kind world_kind(void)
{
    return world_is("any")     ? BIDE_LOOP_ANY
           : world_is("epoll") ? BIDE_LOOP_EPOLL
           : world_is("poll")  ? BIDE_LOOP_POLL
                               : BIDE_LOOP_URING;
}

/* The only world. */
static inline world *world_only(void)
{
    static world only;
    return &only;
}

/* The number of descriptors, in the process or in the world's memory. */
static inline int count_descriptors(void)
{
    int count = 0;
    if (world_only()->memory != NULL) {
        bide_memory_io_stats counts;
        bide_memory_io_get_stats(world_only()->memory, &counts);
        return (int)counts.descriptors;
    }
    DIR *descriptors = opendir("/proc/self/fd");
    assert_non_null(descriptors);
    while (readdir(descriptors) != NULL)
        count++;
    closedir(descriptors);
    return count;
}

/* Waits on the world until the awaiter has ended. */
static inline int world_wait(world *world, bide_awaiter *awaiter)
{
    if (world->pool != NULL)
        return bide_sync_wait_in(world->context, awaiter);
    return world->memory != NULL ? bide_sim_loop_wait(&world->test, awaiter)
                                 : bide_loop_wait(world->loop, awaiter);
}

static inline uint64_t world_now(const world *world)
{
    return bide_now(world->context);
}

/* Creates the world, as cmocka's setup. */
static inline int world_begin(void **state)
{
    world *world = world_only();
    bide_loop_options options = {.kind = world_kind()};
    *state = world;
    world->loop = NULL;
    world->pool = NULL;
    world->memory = NULL;
    world->context = NULL;
    if (world_is("memory")) {
        static const uint16_t plain = 0;
        world->record = (bide_sim_record_){.given = &plain}; /* all random choices are 0 */
        bide_sim_loop_init(&world->test, 1);
        world->test.record = &world->record;
        world->test.max_turns = UINT64_MAX;
        assert_int_equal(bide_memory_io_create(&world->memory, &world->test, NULL), 0);
        world->context = &world->test.context;
        return 0;
    }
    setenv("BIDE_IO_WITHOUT", world_is("uring-polls") ? "futex" : "", 1);
    world->descriptors = count_descriptors();
    if (world_is("pool")) {
        static bide_context in_pool;
        const bide_io_pool_options one = {.threads = {.threads = 1}};
        assert_int_equal(bide_io_pool_create(&world->pool, &one), 0);
        in_pool = (bide_context){.scheduler = bide_thread_pool_scheduler(world->pool)};
        world->context = &in_pool;
        return 0;
    }
    int status = bide_loop_create(&world->loop, &options);
    if (status < 0 && options.kind == BIDE_LOOP_URING) {
        printf("# no io_uring: %s\n", strerror(-status));
        world->loop = NULL;
    } else {
        assert_int_equal(status, 0);
        world->context = bide_loop_context(world->loop);
    }
    return 0;
}

/* Checks that nothing is left in memory. */
static inline void world_end_memory(world *world)
{
    bide_memory_io_stats counts;
    bide_memory_io_get_stats(world->memory, &counts);
    bide_memory_io_destroy(world->memory);
    world->memory = NULL;
    assert_int_equal(counts.in_flight, 0);
    assert_int_equal(counts.descriptors, 0);
    assert_true(bide_sim_loop_is_empty(&world->test));
    bide_sim_loop_destroy(&world->test);
}

/* Destroys the world, as cmocka's teardown. Checks that nothing is left, and no descriptor. */
static inline int world_end(void **state)
{
    world *world = *state;
    bide_loop_stats counts;
    if (world->memory != NULL)
        world_end_memory(world);
    if (world->pool != NULL) {
        bide_thread_pool_destroy(world->pool);
        assert_in_range(count_descriptors(), world->descriptors,
                        world->descriptors + KEPT_DESCRIPTORS);
    }
    if (world->loop == NULL)
        return 0;
    bide_loop_get_stats(world->loop, &counts);
    assert_int_equal(counts.in_flight, 0);
    bide_loop_destroy(world->loop);
    assert_in_range(count_descriptors(), world->descriptors, world->descriptors + KEPT_DESCRIPTORS);
    return 0;
}

/* The world of a test; or the test is skipped. */
static inline world *world_of(void **state)
{
    world *world = *state;
    if (world->context == NULL)
        skip();
    return world;
}

/* For tests that need the system or threads: skipped in memory. */
static inline world *world_of_the_system(void **state, const char *why)
{
    if (world_is("memory")) {
        printf("# not in memory: %s\n", why);
        skip();
    }
    return world_of(state);
}

/* For tests that use a loop directly: skipped in a pool. */
static inline world *world_of_a_loop(world *world)
{
    if (world->pool != NULL) {
        printf("# not in a pool: the test is about one loop\n");
        skip();
    }
    return world;
}

/* A pipe: bytes written to *output are read from *input. */
static inline void world_pipe_with(world *world, bide_descriptor *input, bide_descriptor *output,
                                   int flags)
{
    int fds[2];
    if (world->memory != NULL) {
        assert_int_equal(bide_memory_io_pipe(world->memory, input, output), 0);
        return;
    }
    assert_int_equal(pipe2(fds, O_CLOEXEC | flags), 0);
    bide_descriptor_init(input, fds[0]);
    bide_descriptor_init(output, fds[1]);
}

static inline void world_pipe(world *world, bide_descriptor *input, bide_descriptor *output)
{
    world_pipe_with(world, input, output, 0);
}

/* ---- Clients outside the loop (in memory: on it) ---- */

static inline void world_connect(world *world, bide_descriptor *client, const bide_address *address)
{
    bide_io_operation operation;
    if (world->memory != NULL) {
        assert_int_equal(world_wait(world, bide_connect(&operation, client, address)), 0);
        return;
    }
    int fd = socket(address->any.generic.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &address->any.generic, address->length), 0);
    bide_descriptor_init(client, fd);
}

/* Returns the number of bytes; 0: the end; or a negative errno. */
static inline ptrdiff_t world_receive(world *world, bide_descriptor *client, void *data,
                                      size_t size)
{
    bide_io_operation operation;
    if (world->memory == NULL) {
        ssize_t count = recv(bide_descriptor_fd(client), data, size, 0);
        return count >= 0 ? count : -errno;
    }
    int status = world_wait(world, bide_recv(&operation, client, data, size));
    return status == 0 ? (ptrdiff_t)operation.count : status;
}

static inline void world_send(world *world, bide_descriptor *client, const void *data, size_t size)
{
    bide_io_operation operation;
    if (world->memory != NULL)
        assert_int_equal(world_wait(world, bide_send(&operation, client, data, size)), 0);
    else
        assert_int_equal(send(bide_descriptor_fd(client), data, size, MSG_NOSIGNAL), size);
}

/* As world_receive; -EAGAIN: there is nothing. */
static inline ptrdiff_t world_receive_now(world *world, bide_descriptor *client, void *data,
                                          size_t size)
{
    bide_io_operation operation;
    bide_with_deadline_operation limited;
    if (world->memory == NULL) {
        ssize_t count = recv(bide_descriptor_fd(client), data, size, MSG_DONTWAIT);
        return count >= 0 ? count : -errno;
    }
    int status = world_wait(world, bide_with_deadline(&limited, world_now(world) + 1000,
                                                      bide_recv(&operation, client, data, size)));
    return status == 0 ? (ptrdiff_t)operation.count : status == -ETIMEDOUT ? -EAGAIN : status;
}

/* Two connected Unix sockets; in the system they block. */
static inline void world_socket_pair(world *world, bide_descriptor *one, bide_descriptor *other)
{
    bide_io_operation operation;
    int fds[2];
    if (world->memory != NULL) {
        assert_int_equal(world_wait(world, bide_socket_pair(&operation, one, other)), 0);
        return;
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    bide_descriptor_init(one, fds[0]);
    bide_descriptor_init(other, fds[1]);
}

/* Opens a plain descriptor number; and closes one. */
static inline int world_open(world *world, const char *path, int flags)
{
    bide_file_operation operation;
    bide_descriptor file;
    if (world->memory == NULL)
        return open(path, flags | O_CLOEXEC, 0600);
    int status = world_wait(world, bide_open(&operation, &file, path, flags, 0600));
    return status == 0 ? bide_descriptor_release(&file) : status;
}

static inline void world_close(world *world, int fd)
{
    bide_descriptor descriptor;
    bide_descriptor_init(&descriptor, fd);
    if (world->memory != NULL)
        bide_io_adopt(world->test.io, &descriptor);
    assert_int_equal(bide_close(&descriptor), 0);
}

/* Makes opening fail for lack of descriptors, although at least one is open; or restores it. */
static inline void world_lack_descriptors(world *world, bool lacks)
{
    static struct rlimit before;
    struct rlimit limit;
    if (world->memory != NULL) {
        bide_memory_io_options options = {.descriptors = lacks ? (unsigned)count_descriptors() : 0};
        bide_memory_io_change(world->memory, &options);
        return;
    }
    if (lacks)
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    if (lacks)
        limit.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/*
 * In memory: random order, delays and short transfers from now on, drawn from `seed`. Nothing fails, and
 * nothing is lost.
 */
static inline void world_roughen(world *world, uint64_t seed)
{
    bide_memory_io_options options = {
        .delay = 1000000, .disk_delay = 1000000, .short_transfers = BIDE_MEMORY_IO_DRAWN};
    if (world->memory == NULL)
        return;
    world->test.style = testing_random(&seed);
    world->test.random = seed;
    world->test.record = NULL;
    bide_memory_io_change(world->memory, &options);
}

/* Creates a directory for the files of a test program, in the system or in each world's memory. */
static inline void world_make_directory(world *world, const char *path)
{
    bide_file_operation operation;
    if (world->memory != NULL)
        assert_int_equal(world_wait(world, bide_make_directory(&operation, path, 0700)), 0);
}

#define world_test(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

#endif
