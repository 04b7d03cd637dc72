/*
 * The epoll back end of a loop: operations by readiness. A descriptor is registered once, for both
 * directions and edge-triggered, when an operation on it has to wait for the first time. The
 * registration never changes.
 *
 *     a direction of a descriptor
 *         READY   an operation makes its call at once, since the call may succeed
 *         WAITS   the last call would have waited, or took all bytes; an operation enters the line,
 *                 until the kernel reports a change (IO_WAITS_INPUT, IO_WAITS_OUTPUT)
 *
 * Threads: all of it runs on the loop's thread.
 *
 * 1. No change is missed. The kernel reports each change after the registration, and at the
 *    registration the state of that moment. A direction becomes WAITS only after a call that found
 *    nothing, or less than it asked for, while the descriptor was registered. That call has seen
 *    any earlier change; a later change is reported after it.
 * 2. A receive that got less than it asked for has emptied a TCP socket, with two exceptions: the
 *    peer's close might still be there, and a receive stops at urgent data. The change of either was
 *    reported before, or will be. So a short call makes no direction WAITS of which one was reported
 *    (IO_SHORT_IS_NOT_ALL).
 * 3. Operations of a direction end in the order of their line. While there is a line, no operation
 *    passes it.
 * 4. An event of the kernel names the descriptor's struct. A descriptor leaves the set before its
 *    struct may go. Its earlier events are struck out of the rest of the batch, because coroutines
 *    run between the turns in which a batch is taken (loop.h).
 * 5. A receive that waits for a buffer is in front of its line, which continues when a buffer is
 *    free. If the receive leaves before, its line continues without it: the data were reported, and
 *    will not be again.
 * 6. Operations on a file go to the file pool, one at a time of a line: the others wait behind it. Those
 *    on a descriptor that polls, and whose call may wait nevertheless (IO_CALLS_WAIT), go there when a
 *    poll finds it ready. An event that is reported meanwhile is not lost, because the line is tried
 *    when the operation leaves it (continue_line), with a poll of its own.
 */
#define _GNU_SOURCE
#include "buffer_pool.h"
#include "offload.h"

#include "../coroutine/observe.h"
#include "../system/descriptors.h"

#include <errno.h>
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
    bool no_pwait2;  /* the kernel has no epoll_pwait2 */
    int next, count; /* of the batch: the first that was not taken, and the length */
    struct epoll_event events[MAX_EVENTS];
};

BIDE_STATIC_ASSERT(IO_WAITS_OUTPUT == IO_WAITS_INPUT << BIDE_IO_OUTPUT && BIDE_IO_INPUT == 0,
                   "the bit of a direction is the bit of input, shifted by the direction");

static bool epoll_direction_waits(const bide_descriptor *descriptor, int direction)
{
    return direction != BIDE_IO_FREE &&
           (descriptor->bits & ((unsigned)IO_WAITS_INPUT << direction)) != 0;
}

/* (operations that wait for no other are retried at each change) */
static void epoll_set_waits(bide_descriptor *descriptor, int direction, bool waits)
{
    if (direction == BIDE_IO_FREE)
        return;
    if (waits)
        descriptor->bits |= (unsigned)IO_WAITS_INPUT << direction;
    else
        descriptor->bits &= ~((unsigned)IO_WAITS_INPUT << direction);
}

/* Whether an operation that is done has taken all bytes: 2. */
static bool epoll_took_all(const bide_io_operation *operation)
{
    if (!bide_io_row_of_(operation)->empties_when_short)
        return false;
    return operation->status == 0 && operation->count != 0 &&
           operation->count < bide_io_length_(operation) &&
           (operation->descriptor->bits & (IO_REGISTERED | IO_TCP | IO_SHORT_IS_NOT_ALL)) ==
               (IO_REGISTERED | IO_TCP) &&
           operation->flags == 0;
}

/*
 * bide_io_try_, with a receive or send that succeeds done here. Each return after a system call is
 * mispredicted on processors that forget predictions in the kernel, and costs as much as twenty
 * instructions.
 */
BIDE_INLINE bool epoll_try(bide_io_operation *operation)
{
    if (operation->code != BIDE_IO_RECV && operation->code != BIDE_IO_SEND)
        return bide_io_try_(operation);
    ptrdiff_t result = io_move_bytes(operation);
    bool again;
    if (BIDE_LIKELY(result > 0)) {
        operation->count += (size_t)result;
        if (operation->code == BIDE_IO_RECV || !operation->is_whole ||
            operation->count == operation->arguments.bytes.size) {
            operation->status = 0;
            return true;
        }
        return bide_io_try_(operation);
    }
    return bide_io_take_result(operation, result < 0 ? io_error() : 0, &again) ||
           (!again && bide_io_try_(operation));
}

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

/* Takes a registered descriptor out of the set. */
static void epoll_unregister(struct loop_epoll *epoll, const bide_descriptor *descriptor)
{
    epoll_double **at = &epoll->doubles, *found;
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

/* Registers a descriptor: 0, or a negative errno; -EPERM: it is of a kind that does not poll. */
static int epoll_register(bide_loop *loop, bide_descriptor *descriptor)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                                .data.ptr = descriptor};
    if ((descriptor->bits & IO_REGISTERED) != 0)
        return 0;
    if (epoll_ctl(loop->epoll->fd, EPOLL_CTL_ADD, bide_descriptor_fd(descriptor), &event) != 0) {
        int error =
            errno == EEXIST ? epoll_register_double(loop->epoll, descriptor, &event) : -errno;
        if (error != 0)
            return error;
    }
    bide_io_adopt(&loop->io, descriptor);
    descriptor->bits |= IO_REGISTERED;
    return 0;
}

/* Whether the call of an operation that may block needs the file pool. */
static bool epoll_needs_file_pool(const bide_io_operation *operation)
{
    bide_descriptor *descriptor = operation->descriptor;
    if (bide_io_row_of_(operation)->blocks != IO_BLOCKS_ON_FILE)
        return bide_io_row_of_(operation)->blocks == IO_BLOCKS_ALWAYS;
    if ((descriptor->bits & IO_PROBED) == 0)
        bide_io_probe_(descriptor);
    return (descriptor->bits & IO_FILE) != 0;
}

/*
 * Whether the descriptor polls, and the call of an operation on it may wait nevertheless: 6. (Its line
 * has an order.)
 */
static bool epoll_needs_thread(const bide_io_operation *operation)
{
    return operation->is_file && bide_io_row_of_(operation)->blocks == IO_BLOCKS_ON_FILE &&
           (operation->descriptor->bits & IO_CALLS_WAIT) != 0 &&
           io_direction(operation) != BIDE_IO_FREE;
}

static const struct bide_buffer_hooks_ epoll_buffer_hooks;

static bide_frame *epoll_start(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    bide_loop *loop = loop_of(io);
    bide_descriptor *descriptor = operation->descriptor;
    const bide_io_row_ *row = bide_io_row_of_(operation);
    bide_assert(operation->is_file || row->blocks != IO_BLOCKS_ALWAYS);
    if (operation->is_file && epoll_needs_file_pool(operation))
        return bide_loop_offload_(loop, operation, frame);
    if (BIDE_UNLIKELY(row->start != IO_START_IN_LINE)) {
        if (row->start == IO_START_AT_ONCE) {
            bide_io_try_(operation);
            return frame;
        }
        operation->status = bide_io_open_to_connect_(operation);
        if (operation->status != 0)
            return frame;
    }
    if (row->shape == IO_SHAPE_LENT)
        bide_buffer_pool_claim_(operation->arguments.provided.pool, io, &epoll_buffer_hooks);
    int direction = io_direction(operation);
    if (direction == BIDE_IO_FREE || descriptor->lines[direction].first == NULL) {
        if (BIDE_UNLIKELY(epoll_needs_thread(operation))) {
            /* (registered first, for those that will wait behind it) */
            int error = epoll_register(loop, descriptor);
            if (error == -EPERM || (error == 0 && !bide_io_would_wait_(operation)))
                return bide_loop_offload_(loop, operation, frame);
        } else if (!epoll_direction_waits(descriptor, direction) && epoll_try(operation)) {
            if (epoll_took_all(operation))
                epoll_set_waits(descriptor, direction, true);
            return frame;
        }
        if ((descriptor->bits & IO_REGISTERED) != 0)
            epoll_set_waits(descriptor, direction, true);
        int error = epoll_register(loop, descriptor);
        if (error != 0) {
            operation->status = error;
            if (io_waits_for_buffer(operation))
                bide_buffer_pool_stop_waiting_(operation);
            if ((operation->state & IO_OPENED) != 0)
                bide_io_release(operation);
            operation->state = 0;
            return frame;
        }
    }
    bide_io_enlist(io, operation);
    return NULL;
}

/* Makes the calls of a line, until one has to wait. */
static void epoll_try_line(bide_loop *loop, bide_descriptor *descriptor, int direction)
{
    bide_io_operation *next;
    epoll_set_waits(descriptor, direction, false);
    for (bide_io_operation *at = descriptor->lines[direction].first; at != NULL; at = next) {
        next = at->next;
        if (epoll_direction_waits(descriptor, direction))
            break;
        if (bide_loop_is_offloaded_(at)) { /* 6 */
            if (direction != BIDE_IO_FREE)
                break;
            continue;
        }
        bool needs_thread = epoll_needs_thread(at);
        if ((needs_thread && !bide_io_would_wait_(at)) ||
            (at->is_file && epoll_needs_file_pool(at))) {
            if (bide_loop_offload_waiting_(loop, at))
                break;
            continue;
        }
        if (needs_thread || !epoll_try(at)) {
            epoll_set_waits(descriptor, direction, true);
            continue;
        }
        if (epoll_took_all(at))
            epoll_set_waits(descriptor, direction, true);
        loop->counts.completions++;
        bide_io_remove(&loop->io, at);
        bide_io_finish_waiting(at, BIDE_IO_DONE);
    }
}

/* A call in this direction may succeed now. */
BIDE_INLINE void epoll_direction_is_ready(bide_loop *loop, bide_descriptor *descriptor,
                                          int direction)
{
    if (descriptor->lines[direction].first != NULL)
        epoll_try_line(loop, descriptor, direction);
    else
        epoll_set_waits(descriptor, direction, false);
}

/* In place of a descriptor that has left the set: 4. */
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
    bide_assert((descriptor->bits & IO_REGISTERED) != 0); /* 4 */
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0)
        descriptor->bits |= IO_SHORT_IS_NOT_ALL;
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0)
        epoll_direction_is_ready(loop, descriptor, BIDE_IO_INPUT);
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
        epoll_direction_is_ready(loop, descriptor, BIDE_IO_OUTPUT);
    epoll_direction_is_ready(loop, descriptor, BIDE_IO_FREE);
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
#ifdef SYS_epoll_pwait2
    if (!epoll->no_pwait2) {
        /* as the kernel has it, also where the C library's timespec is smaller */
        struct {
            int64_t seconds, nanoseconds;
        } left = {(int64_t)(span / 1000000000), (int64_t)(span % 1000000000)};
        int count =
            (int)syscall(SYS_epoll_pwait2, epoll->fd, epoll->events, MAX_EVENTS, &left, NULL, 0);
        if (count > 0)
            io_written(epoll->events, (size_t)count * sizeof *epoll->events);
        if (count >= 0 || errno != ENOSYS)
            return count;
        epoll->no_pwait2 = true;
    }
#endif
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

/* Strikes a descriptor out of the rest of the batch: 4. */
static void epoll_strike_out(struct loop_epoll *epoll, const bide_descriptor *descriptor)
{
    for (int i = epoll->next; i < epoll->count; i++) {
        if (epoll->events[i].data.ptr == descriptor)
            epoll->events[i].data.ptr = EPOLL_STRUCK_OUT;
    }
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

/* ---- For operations ---- */

/* The descriptor of a receive that waits for a buffer, its data being reported; or NULL: 5. */
static bide_descriptor *epoll_unread_of(const bide_io_operation *operation)
{
    return io_waits_for_buffer(operation) ? operation->descriptor : NULL;
}

static void epoll_retry_with_buffer(bide_io *io, bide_io_operation *operation)
{
    epoll_direction_is_ready(loop_of(io), operation->descriptor, BIDE_IO_INPUT);
}

static const struct bide_buffer_hooks_ epoll_buffer_hooks = {epoll_retry_with_buffer, NULL, NULL};

static void epoll_cancel(bide_io *io, bide_io_operation *operation)
{
    if (bide_loop_is_offloaded_(operation)) {
        bide_loop_cancel_offloaded_(loop_of(io), operation);
        return;
    }
    bide_descriptor *unread = epoll_unread_of(operation);
    bide_io_remove(io, operation);
    bide_io_finish_waiting(operation, BIDE_IO_CANCELLED);
    if (unread != NULL)
        epoll_direction_is_ready(loop_of(io), unread, BIDE_IO_INPUT);
}

static void epoll_discard(bide_io *io, bide_io_operation *operation)
{
    if (bide_loop_is_offloaded_(operation)) {
        bide_loop_discard_offloaded_(loop_of(io), operation);
        return;
    }
    bide_descriptor *unread = epoll_unread_of(operation);
    bide_io_remove(io, operation);
    if ((operation->state & IO_OPENED) != 0)
        bide_close(operation->descriptor);
    if (unread != NULL)
        epoll_direction_is_ready(loop_of(io), unread, BIDE_IO_INPUT);
}

static void epoll_release(bide_io *io, bide_descriptor *descriptor)
{
    bide_loop *loop = loop_of(io);
    for (int direction = 0; direction < BIDE_IO_LINES; direction++) {
        while (descriptor->lines[direction].first != NULL) {
            bide_io_operation *operation = descriptor->lines[direction].first;
            if (bide_loop_is_offloaded_(operation)) {
                bide_loop_release_offloaded_(loop, operation);
                continue;
            }
            bide_io_remove(io, operation);
            bide_io_finish_waiting(operation, BIDE_IO_CLOSED);
        }
    }
    epoll_strike_out(loop->epoll, descriptor);
    if ((descriptor->bits & IO_REGISTERED) != 0) {
        epoll_unregister(loop->epoll, descriptor);
        descriptor->bits = 0;
    }
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
    epoll->no_pwait2 = false;
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
    loop->epoll = epoll;
    return 0;
}

static void epoll_destroy_state(bide_loop *loop, bool is_own)
{
    if (is_own)
        bide_run_loop_close_fd(&loop->run);
    else
        close(loop->run.fd);
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
    .start = epoll_start,
    .cancel = epoll_cancel,
    .discard = epoll_discard,
    .release = epoll_release,
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
    .continue_line = epoll_direction_is_ready,
};
