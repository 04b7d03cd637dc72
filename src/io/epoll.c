/*
 * The epoll back end of a loop: operations by readiness (readiness.c). A descriptor is registered once,
 * for both directions and edge-triggered, when an operation on it has to wait for the first time. The
 * registration never changes.
 *
 * Threads: all of it runs on the loop's thread.
 *
 * 1. An event of the kernel names the descriptor's struct. A descriptor leaves the set before its
 *    struct may go. Its earlier events are struck out of the rest of the batch, because coroutines
 *    run between the turns in which a batch is taken (loop.h).
 * 2. A kernel may lack epoll_pwait2, or refuse it. A loop finds that out when it is created, and
 *    then sleeps in milliseconds, as its limits say. A filter of system calls may begin to refuse it
 *    later: then the loop does the same, and its limits do not say so.
 */
#define _GNU_SOURCE
#include "readiness.h"

#include <errno.h>

#ifndef BIDE_HAS_EPOLL
#ifdef __linux__
#define BIDE_HAS_EPOLL 1
#else
#define BIDE_HAS_EPOLL 0
#endif
#endif

#if BIDE_HAS_EPOLL

#include "../coroutine/observe.h"
#include "../system/descriptors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_EVENTS = 256 };

/* A number of its own for a descriptor whose number is in the set for another struct. */
typedef struct epoll_double {
    struct epoll_double *next;
    const bide_descriptor *descriptor;
    int fd;
} epoll_double;

struct loop_epoll {
    int fd;
    epoll_double *doubles;
    bool has_pwait2; /* 2 */
    int next, count; /* of the batch: the first that was not taken, and the length */
    struct epoll_event events[MAX_EVENTS];
};

/* Two structs may have one number, say of a terminal that is read and written. The set knows it once. */
static int epoll_register_double(struct loop_epoll *epoll, bide_descriptor *descriptor,
                                 struct epoll_event *event)
{
    epoll_double *added = malloc(sizeof *added);
    if (added == NULL)
        return -ENOMEM;
    added->fd = fcntl(bide_descriptor_fd(descriptor), F_DUPFD_CLOEXEC, 3);
    if (added->fd < 0 || epoll_ctl(epoll->fd, EPOLL_CTL_ADD, added->fd, event) != 0) {
        int error = -errno;
        if (added->fd >= 0)
            close(added->fd);
        free(added);
        return error;
    }
    added->descriptor = descriptor;
    added->next = epoll->doubles;
    epoll->doubles = added;
    descriptor->bits |= IO_IS_DOUBLE;
    return 0;
}

static int epoll_register(bide_loop *loop, bide_descriptor *descriptor)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                                .data.ptr = descriptor};
    if (epoll_ctl(loop->epoll->fd, EPOLL_CTL_ADD, bide_descriptor_fd(descriptor), &event) == 0)
        return 0;
    return errno == EEXIST ? epoll_register_double(loop->epoll, descriptor, &event) : -errno;
}

/* In place of a descriptor that has left the set: 1. */
#define EPOLL_STRUCK_OUT ((void *)1)

static void epoll_take_event(bide_loop *loop, const struct epoll_event *event)
{
    bide_descriptor *descriptor = event->data.ptr;
    uint32_t events = event->events;
    if (BIDE_UNLIKELY(descriptor == EPOLL_STRUCK_OUT))
        return;
    if (descriptor == NULL) {
        loop->counts.wakes++;
        bide_descriptor_lower_(loop->run.fd);
        return;
    }
    bide_assert((descriptor->bits & IO_REGISTERED) != 0); /* 1 */
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0)
        descriptor->bits |= IO_SHORT_IS_NOT_ALL;
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0)
        readiness_direction_is_ready(loop, descriptor, BIDE_IO_INPUT);
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
        readiness_direction_is_ready(loop, descriptor, BIDE_IO_OUTPUT);
    readiness_direction_is_ready(loop, descriptor, BIDE_IO_FREE);
}

/* Waits for a batch, so many nanoseconds. As epoll_wait_until. */
static int epoll_wait_for(struct loop_epoll *epoll, uint64_t span)
{
#ifdef SYS_epoll_pwait2
    /* as the kernel has it, also where the C library's timespec is smaller */
    struct {
        int64_t seconds, nanoseconds;
    } left = {(int64_t)(span / 1000000000), (int64_t)(span % 1000000000)};
    int count =
        (int)syscall(SYS_epoll_pwait2, epoll->fd, epoll->events, MAX_EVENTS, &left, NULL, 0);
    if (count > 0)
        io_written(epoll->events, (size_t)count * sizeof *epoll->events);
    return count;
#else
    (void)epoll;
    (void)span;
    errno = ENOSYS;
    return -1;
#endif
}

/* Waits for a batch, until `deadline`; 0: does not wait. Returns its length, or -1 with errno. */
static int epoll_wait_until(struct loop_epoll *epoll, uint64_t deadline)
{
    if (deadline == 0)
        return epoll_wait(epoll->fd, epoll->events, MAX_EVENTS, 0);
    if (deadline == BIDE_FOREVER)
        return epoll_wait(epoll->fd, epoll->events, MAX_EVENTS, -1);
    uint64_t now = bide_platform.now();
    uint64_t span = deadline > now ? deadline - now : 0;
    if (epoll->has_pwait2) {
        int count = epoll_wait_for(epoll, span);
        if (count >= 0 || (errno != ENOSYS && errno != EPERM))
            return count;
        epoll->has_pwait2 = false;
    }
    uint64_t milliseconds = (span + 999999) / 1000000;
    return epoll_wait(epoll->fd, epoll->events, MAX_EVENTS,
                      milliseconds < 86400000 ? (int)milliseconds : 86400000);
}

/* Takes as many events of the batch as a turn may. */
static void epoll_take_events(bide_loop *loop)
{
    struct loop_epoll *epoll = loop->epoll;
    int end = epoll->count - epoll->next > LOOP_TURN ? epoll->next + LOOP_TURN : epoll->count;
    bide_assert(epoll->next >= 0 && epoll->count <= MAX_EVENTS);
    while (epoll->next < end)
        epoll_take_event(loop, &epoll->events[epoll->next++]);
}

/* Strikes a descriptor out of the rest of the batch: 1. */
static void epoll_strike_out(struct loop_epoll *epoll, const bide_descriptor *descriptor)
{
    for (int i = epoll->next; i < epoll->count; i++) {
        if (epoll->events[i].data.ptr == descriptor)
            epoll->events[i].data.ptr = EPOLL_STRUCK_OUT;
    }
}

/* Takes a registered descriptor out of the set. */
static void epoll_unregister(bide_loop *loop, bide_descriptor *descriptor)
{
    struct loop_epoll *epoll = loop->epoll;
    epoll_double **at = &epoll->doubles, *found;
    epoll_strike_out(epoll, descriptor);
    if ((descriptor->bits & IO_IS_DOUBLE) == 0) {
        epoll_ctl(epoll->fd, EPOLL_CTL_DEL, bide_descriptor_fd(descriptor), NULL);
        return;
    }
    while ((found = *at)->descriptor != descriptor)
        at = &found->next;
    *at = found->next;
    epoll_ctl(epoll->fd, EPOLL_CTL_DEL, found->fd,
              NULL); /* (the file stays open by its other number) */
    close(found->fd);
    free(found);
}

/* ---- For the run loop ---- */

static void epoll_take(bide_run_loop *run)
{
    epoll_take_events(bide_container_of(run, bide_loop, run));
}

static void epoll_look(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    struct loop_epoll *epoll = loop->epoll;
    if (epoll->next >= epoll->count) {
        if (loop->io.in_flight == 0)
            return;
        loop->counts.polls++;
        epoll->next = 0;
        epoll->count = epoll_wait_until(epoll, 0);
    }
    epoll_take_events(loop);
}

static bool epoll_sleep(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    struct loop_epoll *epoll = loop->epoll;
    if (epoll->next < epoll->count || !bide_run_loop_park_(run))
        return false;
    loop->counts.sleeps++;
    loop->counts.polls++;
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_SLEEP));
    epoll->next = 0;
    loop->is_asleep = true;
    epoll->count = epoll_wait_until(epoll, bide_loop_wake_time_(run->deadline));
    loop->is_asleep = false;
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_WAKE));
    bide_run_loop_unpark_(run);
    return true;
}

/* ---- The back end ---- */

static int epoll_create_state(bide_loop *loop, unsigned entries)
{
    struct loop_epoll *epoll = malloc(sizeof *epoll);
    struct epoll_event woken = {.events = EPOLLIN, .data.ptr = NULL};
    (void)entries;
    if (epoll == NULL)
        return -ENOMEM;
    int error = 0;
    epoll->doubles = NULL;
    epoll->next = epoll->count = 0;
    int created = epoll_create1(EPOLL_CLOEXEC);
    epoll->fd = created >= 0 ? bide_descriptor_not_standard_(created) : -errno;
    if (epoll->fd < 0) {
        error = epoll->fd;
        if (created >= 0)
            close(created);
        free(epoll);
        return error;
    }
    int fd = bide_run_loop_fd(&loop->run);
    if (fd < 0)
        error = fd;
    else if (epoll_ctl(epoll->fd, EPOLL_CTL_ADD, fd, &woken) != 0)
        error = -errno;
    if (error != 0) {
        bide_run_loop_close_fd(&loop->run);
        close(epoll->fd);
        free(epoll);
        return error;
    }
    epoll->has_pwait2 = epoll_wait_for(epoll, 0) >= 0 || errno == EINTR; /* 2 */
    loop->back_end.limits = epoll->has_pwait2 ? 0 : BIDE_LOOP_MILLISECONDS;
    loop->epoll = epoll;
    return 0;
}

static void epoll_destroy_state(bide_loop *loop, bool is_own)
{
    if (is_own)
        bide_run_loop_close_fd(&loop->run);
    else
        bide_descriptor_close_(loop->run.fd);
    for (epoll_double *at = loop->epoll->doubles, *next; at != NULL; at = next) {
        next = at->next; /* (of descriptors that are still open) */
        close(at->fd);
        free(at);
    }
    close(loop->epoll->fd);
    free(loop->epoll);
}

static const bide_io_table epoll_operations = {
    .name = "epoll",
    .start = bide_readiness_start_,
    .cancel = bide_readiness_cancel_,
    .discard = bide_readiness_discard_,
    .release = bide_readiness_release_,
};

static const struct bide_poller_ epoll_poller = {
    .add = epoll_register,
    .remove = epoll_unregister,
};

static const struct bide_run_loop_events_ epoll_events = {
    .look = epoll_look,
    .sleep = epoll_sleep,
    .take = epoll_take,
};

const bide_back_end_ bide_epoll_ = {
    .name = "epoll",
    .kind = BIDE_LOOP_EPOLL,
    .operations = &epoll_operations,
    .events = &epoll_events,
    .create = epoll_create_state,
    .destroy = epoll_destroy_state,
    .continue_line = bide_readiness_continue_line_,
    .poller = &epoll_poller,
};

#else

static int epoll_create_state(bide_loop *loop, unsigned entries)
{
    (void)loop;
    (void)entries;
    return -ENOSYS;
}

const bide_back_end_ bide_epoll_ = {
    .name = "epoll",
    .kind = BIDE_LOOP_EPOLL,
    .create = epoll_create_state,
};

#endif
