/* Fault injection, which other tests use: a fault is met, and leaks and ignored errors are detected. */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* ---- Single calls ---- */

static void *nothing(void *argument)
{
    return argument;
}

static long begin_and_join(void)
{
    pthread_t thread;
    errno = pthread_create(&thread, NULL, nothing, NULL);
    return errno != 0 ? -1 : pthread_join(thread, NULL);
}

static long release(void *block)
{
    free(block);
    return block != NULL ? 0 : -1;
}

/* Calls it, if possible with an invalid descriptor. Returns 0 or its errno, and leaves nothing. */
static int call(fault function)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct sockaddr address = {.sa_family = AF_UNIX};
    char byte = 0;
    static const struct timespec at_once;
    int none[2];
    long result = 0;
    errno = 0;
    switch (function) {
    case FAULT_MALLOC:
        result = release(malloc(8));
        break;
    case FAULT_CALLOC:
        result = release(calloc(2, 4));
        break;
    case FAULT_REALLOC:
        result = release(realloc(NULL, 8));
        break;
    case FAULT_ALIGNED_ALLOC:
        result = release(aligned_alloc(16, 16));
        break;
    case FAULT_PTHREAD_CREATE:
        result = begin_and_join();
        break;
    case FAULT_EVENTFD:
        result = eventfd(0, -1);
        break;
    case FAULT_TIMERFD_CREATE:
        result = timerfd_create(-1, 0);
        break;
    case FAULT_EPOLL_CREATE1:
        result = epoll_create1(-1);
        break;
    case FAULT_EPOLL_CTL:
        result = epoll_ctl(-1, EPOLL_CTL_ADD, 0, &event);
        break;
    case FAULT_EPOLL_WAIT:
        result = epoll_wait(-1, &event, 1, 0);
        break;
    case FAULT_POLL:
        result = poll(NULL, 0, 0);
        break;
    case FAULT_PPOLL:
        result = ppoll(NULL, 0, &at_once, NULL);
        break;
    case FAULT_READ:
        result = read(-1, &byte, 1);
        break;
    case FAULT_WRITE:
        result = write(-1, &byte, 1);
        break;
    case FAULT_CLOSE:
        result = close(-1);
        break;
    case FAULT_FCNTL:
        result = fcntl(-1, F_GETFD);
        break;
    case FAULT_SOCKET:
        result = socket(-1, SOCK_STREAM, 0);
        break;
    case FAULT_ACCEPT4:
        result = accept4(-1, NULL, NULL, 0);
        break;
    case FAULT_CONNECT:
        result = connect(-1, &address, sizeof address);
        break;
    case FAULT_RECV:
        result = recv(-1, &byte, 1, 0);
        break;
    case FAULT_SEND:
        result = send(-1, &byte, 1, 0);
        break;
    case FAULT_RECVMMSG:
        result = recvmmsg(-1, NULL, 0, 0, NULL);
        break;
    case FAULT_SENDMMSG:
        result = sendmmsg(-1, NULL, 0, 0);
        break;
    case FAULT_SPLICE:
        result = splice(-1, NULL, -1, NULL, 1, 0);
        break;
    case FAULT_SENDFILE:
        result = sendfile(-1, -1, NULL, 1);
        break;
    case FAULT_PREADV2:
        result = preadv2(-1, NULL, 0, 0, 0);
        break;
    case FAULT_TEE:
        result = tee(-1, -1, 1, 0);
        break;
    case FAULT_PIPE2:
        result = pipe2(none, -1);
        break;
    case FAULT_MMAP:
        result = (long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE, -1, 0);
        break;
    case FAULT_GETDENTS64:
        result = syscall(SYS_getdents64, -1, &byte, 1);
        break;
    case FAULT_EPOLL_PWAIT2:
        result = syscall(SYS_epoll_pwait2, -1, &event, 1, NULL, NULL, 0);
        break;
    case FAULT_FUNCTIONS:
        break;
    }
    return result == 0 ? 0 : errno;
}

static void of_each_function_the_calls_that_are_to_fail_do_and_no_others(void **state)
{
    (void)state;
    for (fault function = 0; function < FAULT_FUNCTIONS; function++) {
        faults_clear();
        int own = call(function);
        assert_int_not_equal(own, EXDEV);
        assert_int_equal(faults_calls(function), 1);
        faults_clear();
        faults_fail(function, 2, 2, EXDEV);
        assert_int_equal(call(function), own);
        assert_int_equal(call(function), EXDEV);
        assert_int_equal(call(function), EXDEV);
        assert_int_equal(call(function), own);
        assert_int_equal(faults_hits(function), 2);
        faults_fail(function, 1, FAULTS_ALWAYS, EXDEV);
        assert_int_equal(call(function), EXDEV);
        faults_clear();
        assert_int_equal(call(function), own);
    }
    faults_clear();
}

static void a_removal_from_an_epoll_set_never_fails(void **state)
{
    (void)state;
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC), counter = eventfd(0, EFD_CLOEXEC);
    assert_true(set >= 0 && counter >= 0);
    faults_clear();
    assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, counter, &event), 0);
    faults_fail(FAULT_EPOLL_CTL, 2, FAULTS_ALWAYS, ENOMEM);
    assert_int_equal(epoll_ctl(set, EPOLL_CTL_DEL, counter, NULL), 0);
    assert_int_equal(faults_hits(FAULT_EPOLL_CTL), 0);
    assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, counter, &event), -1);
    close(counter);
    close(set);
    faults_clear();
}

static void what_is_held_is_counted(void **state)
{
    (void)state;
    long blocks = faults_blocks(), descriptors = faults_descriptors(), threads = faults_threads();
    void *held[4] = {malloc(8), calloc(2, 4), aligned_alloc(16, 16), realloc(NULL, 8)};
    assert_int_equal(faults_blocks(), blocks + 4);
    held[3] = realloc(held[3], 1000);
    assert_int_equal(faults_blocks(), blocks + 4);
    for (int i = 0; i < 4; i++)
        free(held[i]);
    free(NULL);
    assert_int_equal(faults_blocks(), blocks);

    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(faults_descriptors(), descriptors + 2);
    faults_fail(FAULT_CLOSE, 1, 1, EINTR);
    assert_int_equal(close(ends[0]), -1); /* it is closed anyway */
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(faults_descriptors(), descriptors);

    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
    assert_int_equal(faults_threads(), threads + 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(faults_threads(), threads);
    faults_clear();
}

static void a_block_that_cannot_be_moved_is_still_held(void **state)
{
    (void)state;
    long blocks = faults_blocks();
    void *block = malloc(8);
    faults_clear();
    faults_fail(FAULT_REALLOC, 1, 1, ENOMEM);
    void *moved = realloc(block, 1000);
    assert_null(moved);
    assert_int_equal(faults_blocks(), blocks + 1);
    free(moved != NULL ? moved : block);
    assert_int_equal(faults_blocks(), blocks);
    faults_clear();
}

static void reads_and_writes_can_be_short(void **state)
{
    (void)state;
    int ends[2];
    char buffer[16] = "";
    faults_clear();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    faults_shorten_writes(5);
    assert_int_equal(write(ends[0], "0123456789", 10), 5);
    assert_int_equal(send(ends[0], "56789", 5, 0), 5);
    assert_int_equal(send(ends[0], "0123456789", 10, 0), 5);
    faults_shorten_reads(3);
    assert_int_equal(read(ends[1], buffer, 10), 3);
    assert_int_equal(recv(ends[1], buffer + 3, 10, 0), 3);
    faults_clear();
    assert_int_equal(read(ends[1], buffer + 6, sizeof buffer - 6), 9);
    assert_memory_equal(buffer, "012345678901234", 15);
    assert_int_equal(write(ends[0], "0123456789", 10), 10);
    close(ends[0]);
    close(ends[1]);
}

/* ---- Scenarios ---- */

/* The mistake of a scenario, which is detected. */
enum wrong {
    NOTHING,
    KEEPS_A_BLOCK,
    KEEPS_A_THREAD,
    KEEPS_A_DESCRIPTOR,
    KEEPS_QUIET,
    SAYS_SOMETHING_ELSE,
    ALWAYS_FAILS
};

struct course {
    enum wrong wrong;
    void *block;
    int fd;
    pthread_t thread;
};

/* Allocates two blocks; its mistake happens when the second allocation fails. */
static int take_two(void *argument)
{
    struct course *course = argument;
    if (course->wrong == ALWAYS_FAILS)
        return -EPERM;
    void *one = malloc(8);
    if (one == NULL)
        return -ENOMEM;
    void *other = malloc(8);
    if (other != NULL) {
        free(other);
        free(one);
        return 0;
    }
    if (course->wrong == KEEPS_A_BLOCK)
        course->block = one;
    else
        free(one);
    if (course->wrong == KEEPS_A_DESCRIPTOR)
        course->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (course->wrong == KEEPS_A_THREAD)
        assert_int_equal(pthread_create(&course->thread, NULL, nothing, NULL), 0);
    return course->wrong == KEEPS_QUIET ? 0 : course->wrong == SAYS_SOMETHING_ELSE ? -EIO : -ENOMEM;
}

static faults_result try_course(struct course *course)
{
    return faults_try_each_n(FAULT_MALLOC, 1, ENOMEM, true, take_two, course);
}

static void a_scenario_is_run_until_it_meets_no_fault(void **state)
{
    (void)state;
    struct course course = {.wrong = NOTHING};
    assert_true(try_course(&course).good);
    assert_int_equal(faults_for_each_n(FAULT_MALLOC, ENOMEM, take_two, &course), 2);
    assert_int_equal(faults_for_each_n(FAULT_CALLOC, ENOMEM, take_two, &course), 0);
    assert_int_equal(faults_calls(FAULT_MALLOC), 0); /* nothing is left set or counted */
    assert_int_equal(call(FAULT_MALLOC), 0);
}

/* The second run fails, and the message reports this, with the leaks. */
static void assert_seen(const faults_result *result, const char *left)
{
    assert_false(result->good);
    assert_non_null(strstr(result->what, "run 2 "));
    assert_non_null(strstr(result->what, left));
}

static void what_a_scenario_leaves_is_seen(void **state)
{
    (void)state;
    struct course course = {.wrong = KEEPS_A_BLOCK};
    faults_result result = try_course(&course);
    free(course.block);
    assert_seen(&result, "left 1 blocks, 0 threads, 0 descriptors");
    course.wrong = KEEPS_A_THREAD;
    result = try_course(&course);
    pthread_join(course.thread, NULL);
    assert_seen(&result, "left 0 blocks, 1 threads, 0 descriptors");
    course.wrong = KEEPS_A_DESCRIPTOR;
    result = try_course(&course);
    close(course.fd);
    assert_seen(&result, "left 0 blocks, 0 threads, 1 descriptors");
}

static void a_fault_that_is_not_reported_is_seen(void **state)
{
    (void)state;
    struct course course = {.wrong = KEEPS_QUIET};
    faults_result result = try_course(&course);
    assert_seen(&result, "status 0, not -12");
    course.wrong = SAYS_SOMETHING_ELSE;
    result = try_course(&course);
    assert_seen(&result, "status -5, not -12");
    course.wrong = ALWAYS_FAILS;
    result = try_course(&course);
    assert_false(result.good);
    assert_non_null(strstr(result.what, "status -1, not 0"));
}

/* Reads a byte, once more for each interruption. */
static int read_a_byte(void *argument)
{
    const bool *patient = argument;
    int ends[2];
    char byte;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "a", 1), 1);
    ssize_t count;
    do
        count = read(ends[0], &byte, 1);
    while (count < 0 && *patient && errno == EINTR);
    int status = count == 1 ? 0 : -errno;
    close(ends[0]);
    close(ends[1]);
    return status;
}

static void a_survivor_is_told_from_a_casualty(void **state)
{
    (void)state;
    bool patient = true;
    assert_int_equal(faults_survive_each_n(FAULT_READ, 3, EINTR, read_a_byte, &patient), 1);
    patient = false;
    faults_result result = faults_try_each_n(FAULT_READ, 3, EINTR, false, read_a_byte, &patient);
    assert_false(result.good);
    assert_non_null(strstr(result.what, "status -4, not 0"));
    assert_int_equal(faults_for_each_n(FAULT_READ, EIO, read_a_byte, &patient), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_each_function_the_calls_that_are_to_fail_do_and_no_others),
        cmocka_unit_test(a_removal_from_an_epoll_set_never_fails),
        cmocka_unit_test(what_is_held_is_counted),
        cmocka_unit_test(a_block_that_cannot_be_moved_is_still_held),
        cmocka_unit_test(reads_and_writes_can_be_short),
        cmocka_unit_test(a_scenario_is_run_until_it_meets_no_fault),
        cmocka_unit_test(what_a_scenario_leaves_is_seen),
        cmocka_unit_test(a_fault_that_is_not_reported_is_seen),
        cmocka_unit_test(a_survivor_is_told_from_a_casualty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
