/*
 * Descriptors by which one thread makes another's poll return: an eventfd, or a pipe (descriptors.h). All cases hold for
 * both.
 */
#define _GNU_SOURCE
#include "../open_descriptors.h"
#include "schedule_testing.h"

#include "../../src/system/descriptors.h"

#include "bide/run_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_readable(int fd)
{
    struct pollfd polled = {fd, POLLIN, 0};
    int ready = poll(&polled, 1, 0);
    assert_true(ready >= 0);
    return ready != 0 && (polled.revents & POLLIN) != 0;
}

static int create(void)
{
    int fd = bide_descriptor_create_();
    assert_true(fd >= 0);
    return fd;
}

static void one_that_is_raised_is_readable_until_it_is_lowered(void **state)
{
    (void)state;
    int fd = create();
    assert_false(is_readable(fd));
    errno = EXDEV;
    bide_descriptor_raise_(fd);
    assert_true(is_readable(fd));
    bide_descriptor_lower_(fd);
    assert_false(is_readable(fd));
    bide_descriptor_lower_(fd); /* and neither waits */
    assert_int_equal(errno, EXDEV);
    assert_false(is_readable(fd));
    bide_descriptor_close_(fd);
}

/* More often than a pipe has room, and than one read takes. */
static void raising_it_often_neither_waits_nor_fails(void **state)
{
    (void)state;
    enum { TIMES = 70000 };
    int fd = create();
    int end = bide_descriptor_writing_end_(fd);
    for (unsigned i = 0; i < TIMES; i++)
        assert_int_equal(bide_descriptor_write_(end), 0);
    assert_true(is_readable(fd));
    bide_descriptor_lower_(fd);
    assert_false(is_readable(fd));
    bide_descriptor_raise_(fd);
    assert_true(is_readable(fd));
    bide_descriptor_close_(fd);
}

/* As many bytes as one read takes, and one more or less. */
static void lowering_it_takes_all_raises(void **state)
{
    (void)state;
    int fd = create();
    for (unsigned count = 1; count <= 1030; count += count < 500 ? 61 : 1) {
        for (unsigned i = 0; i < count; i++)
            bide_descriptor_raise_(fd);
        assert_true(is_readable(fd));
        bide_descriptor_lower_(fd);
        assert_false(is_readable(fd));
    }
    bide_descriptor_close_(fd);
}

static void both_ends_do_not_block_and_are_closed_on_exec(void **state)
{
    (void)state;
    int fd = create();
    const int ends[] = {fd, bide_descriptor_writing_end_(fd)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fcntl(ends[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_int_equal(fcntl(ends[i], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    }
    bide_descriptor_close_(fd);
}

static void closing_one_leaves_nothing_open(void **state)
{
    (void)state;
    unsigned before = open_descriptors();
    int fds[300]; /* more numbers than the first parts of a table have */
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        fds[i] = create();
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        bide_descriptor_raise_(fds[i]);
        for (size_t k = 0; k <= i; k++)
            assert_int_equal(is_readable(fds[k]), k == i);
        bide_descriptor_lower_(fds[i]);
    }
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        bide_descriptor_close_(fds[i]);
    assert_int_equal(open_descriptors(), before);
}

/* In a child, whose standard streams may be closed. */
static int has_no_number_of_a_standard_stream(void)
{
    for (int i = 0; i < 3; i++)
        close(i);
    int fd = bide_descriptor_create_();
    if (fd < 3 || bide_descriptor_writing_end_(fd) < 3)
        return 1;
    bide_descriptor_raise_(fd);
    if (!is_readable(fd))
        return 2;
    for (int i = 0; i < 3; i++) {
        if (fcntl(i, F_GETFD) >= 0)
            return 3;
    }
    bide_descriptor_close_(fd);
    return 0;
}

/* Each limit up to the one that is enough. */
static int is_reported_without_descriptors(void)
{
    unsigned before = open_descriptors();
    int fd = -EMFILE;
    for (rlim_t limit = 0; fd == -EMFILE && limit < 4096; limit++) {
        struct rlimit few;
        if (getrlimit(RLIMIT_NOFILE, &few) != 0)
            return 1;
        few.rlim_cur = limit;
        if (setrlimit(RLIMIT_NOFILE, &few) != 0)
            return 2;
        fd = bide_descriptor_create_();
        if (fd < 0 && open_descriptors() != before)
            return 3;
    }
    if (fd < 0)
        return 4;
    bide_descriptor_close_(fd);
    return open_descriptors() == before ? 0 : 5;
}

/* The parent's are neither taken nor raised by a child; what the child makes is its own. */
static int is_of_its_own_in_a_child(int kept)
{
    int fd = bide_descriptor_take_();
    if (fd < 0 || fd == kept)
        return 1;
    bide_descriptor_raise_(fd);
    if (!is_readable(fd) || is_readable(kept))
        return 2;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    if (bide_run_loop_fd(&loop) < 0 || !is_readable(bide_run_loop_fd(&loop)))
        return 3;
    bide_run_loop_close_fd(&loop);
    bide_run_loop_destroy(&loop);
    return is_readable(kept) ? 4 : 0;
}

static int status_of_child(int kept, int (*function)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(function != NULL ? function() : is_of_its_own_in_a_child(kept));
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void it_never_has_the_number_of_a_standard_stream(void **state)
{
    (void)state;
    assert_int_equal(status_of_child(-1, has_no_number_of_a_standard_stream), 0);
}

static void a_process_without_descriptors_is_told_and_loses_none(void **state)
{
    (void)state;
    assert_int_equal(status_of_child(-1, is_reported_without_descriptors), 0);
}

static void a_child_of_fork_has_its_own(void **state)
{
    (void)state;
    int kept = bide_descriptor_take_();
    assert_true(kept >= 0);
    bide_descriptor_give_(kept);
    assert_int_equal(status_of_child(kept, NULL), 0);
    assert_false(is_readable(kept));
    assert_int_equal(bide_descriptor_take_(), kept);
    bide_descriptor_give_(kept);
}

/* ---- Threads ---- */

enum { RAISERS = 3, TURNS = 1000 };

static bide_atomic(int) current; /* that is to be raised; -1: none */
static bide_atomic(bool) are_done;

static void *raise_current(void *argument)
{
    (void)argument;
    while (!bide_atomic_load(&are_done, relaxed)) {
        int fd = bide_atomic_load(&current, acquire);
        if (fd >= 0)
            bide_descriptor_raise_(fd);
        else
            sched_yield();
    }
    return NULL;
}

/* A thread raises one that its owner gave back a moment ago. */
static void a_late_raise_reaches_nothing_but_a_kept_one(void **state)
{
    (void)state;
    pthread_t threads[RAISERS];
    int files[2];
    bide_atomic_init(&current, -1);
    bide_atomic_init(&are_done, false);
    for (int i = 0; i < RAISERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, raise_current, NULL), 0);
    unsigned turns = rounds_of(TURNS);
    for (unsigned i = 0; i < turns; i++) {
        int fd = bide_descriptor_take_();
        assert_true(fd >= 0);
        bide_atomic_store(&current, fd, release);
        struct pollfd polled = {fd, POLLIN, 0};
        while (poll(&polled, 1, -1) < 0)
            assert_int_equal(errno, EINTR);
        bide_atomic_store(&current, -1, relaxed);
        bide_descriptor_lower_(fd);
        bide_descriptor_give_(fd);
        assert_int_equal(pipe(files), 0);
        assert_false(is_readable(files[0]));
        close(files[0]);
        close(files[1]);
    }
    bide_atomic_store(&are_done, true, relaxed);
    for (int i = 0; i < RAISERS; i++)
        pthread_join(threads[i], NULL);
}

/* Counts in *argument what is wrong. */
static void *create_and_close(void *argument)
{
    unsigned *wrong = argument;
    for (unsigned i = 0, turns = rounds_of(TURNS); i < turns; i++) {
        int fds[4];
        for (int k = 0; k < 4; k++)
            fds[k] = bide_descriptor_create_();
        for (int k = 0; k < 4; k++) {
            struct pollfd polled[2] = {{fds[k], POLLIN, 0}, {k < 3 ? fds[k + 1] : -1, POLLIN, 0}};
            bide_descriptor_raise_(fds[k]);
            *wrong += poll(polled, 2, 0) != 1 || polled[0].revents != POLLIN;
            bide_descriptor_close_(fds[k]);
        }
    }
    return NULL;
}

static void threads_make_and_close_them_at_once(void **state)
{
    (void)state;
    pthread_t threads[RAISERS];
    unsigned before = open_descriptors(), wrong[RAISERS] = {0};
    for (int i = 0; i < RAISERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, create_and_close, &wrong[i]), 0);
    for (int i = 0; i < RAISERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
    assert_int_equal(open_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_raised_is_readable_until_it_is_lowered),
        cmocka_unit_test(raising_it_often_neither_waits_nor_fails),
        cmocka_unit_test(lowering_it_takes_all_raises),
        cmocka_unit_test(both_ends_do_not_block_and_are_closed_on_exec),
        cmocka_unit_test(closing_one_leaves_nothing_open),
        cmocka_unit_test(it_never_has_the_number_of_a_standard_stream),
        cmocka_unit_test(a_process_without_descriptors_is_told_and_loses_none),
        cmocka_unit_test(a_child_of_fork_has_its_own),
        cmocka_unit_test(a_late_raise_reaches_nothing_but_a_kept_one),
        cmocka_unit_test(threads_make_and_close_them_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
