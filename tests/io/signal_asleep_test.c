/* A signal right before its loop sleeps wakes the loop, also under each sanitizer. */
#define _GNU_SOURCE
#include "runner.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* (liburing's functions are weak: it may be missing) */
struct io_uring;
struct io_uring_cqe;
struct __kernel_timespec;

static bool is_armed;
static int asleep; /* loops that were about to sleep when the signal arrived */

long __real_syscall(long number, ...);

/* Signals this thread, with a call that no sanitizer intercepts. */
static void send_before_sleep(void)
{
    if (!is_armed)
        return;
    is_armed = false;
    asleep++;
    assert_int_equal(__real_syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1), 0);
}

long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long given[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(arguments, long);
    va_end(arguments);
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2)
        send_before_sleep();
#endif
    return __real_syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

int __real_epoll_wait(int fd, struct epoll_event *events, int max, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    if (timeout != 0)
        send_before_sleep();
    return __real_epoll_wait(fd, events, max, timeout);
}

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    if (timeout != 0)
        send_before_sleep();
    return __real_poll(fds, count, timeout);
}

int __real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time,
                 const sigset_t *set);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time,
                 const sigset_t *set);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time, const sigset_t *set)
{
    send_before_sleep();
    return __real_ppoll(fds, count, time, set);
}

__attribute__((weak)) int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned count);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned count);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned count)
{
    send_before_sleep();
    return __real_io_uring_submit_and_wait(ring, count);
}

__attribute__((weak)) int __real_io_uring_submit_and_wait_timeout(struct io_uring *ring,
                                                                  struct io_uring_cqe **entry,
                                                                  unsigned count,
                                                                  struct __kernel_timespec *time,
                                                                  sigset_t *set);
int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **entry,
                                            unsigned count, struct __kernel_timespec *time,
                                            sigset_t *set);
int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **entry,
                                            unsigned count, struct __kernel_timespec *time,
                                            sigset_t *set)
{
    send_before_sleep();
    return __real_io_uring_submit_and_wait_timeout(ring, entry, count, time, set);
}

/* With a deadline, which should not come first; or without. */
static void wait_for_it(world *w, bide_signal *signal, uint64_t deadline)
{
    bide_signal_waiter wait;
    bide_with_deadline_operation limited;
    is_armed = true;
    assert_int_equal(
        world_wait(w, bide_with_deadline(&limited, deadline, bide_signal_wait(&wait, signal))), 0);
    assert_false(is_armed);
}

static void a_signal_right_before_the_sleep_wakes_its_loop(void **state)
{
    world *w = world_of(state);
    bide_signal signal;
    asleep = 0;
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    for (int i = 0; i < 20; i++) {
        wait_for_it(w, &signal, world_now(w) + UINT64_C(20000000000));
        wait_for_it(w, &signal, BIDE_FOREVER);
    }
    assert_int_equal(asleep, 40);
    assert_int_equal(bide_signal_destroy(&signal), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_signal_right_before_the_sleep_wakes_its_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
