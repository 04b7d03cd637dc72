/*
 * A loop's operations by readiness. Each descriptor is registered once, when something has to wait
 * for it first, edge-triggered and for both directions, and never changed.
 *
 *     a direction   READY: the call is made at once, since it may go through
 *                   WAITS: the last call would have waited, or took all there was; what is begun is
 *                   put into the line, until the kernel tells of a change
 *
 * 1. No change is missed. The kernel tells of each that comes after the registration, and at the
 *    registration of what is there already. The direction becomes WAITS only after a call that
 *    found nothing, or less than it asked for, while it was registered; a change before that call
 *    was seen by it, a change after it is told.
 * 2. A receive that took less than it asked for has emptied a TCP socket. Only the other end's
 *    close might still be there, and its change was told before: so a direction whose end was told
 *    of (ENDED) never becomes WAITS by a short call.
 * 3. Operations of a direction end in the order of their line. While there is a line nothing passes
 *    it.
 * 4. What the kernel tells names the descriptor's struct. A descriptor is taken out of the set
 *    before its struct may go, and what was told of it before is struck out of what is left of the
 *    batch. For a batch is gone through in turns (loop.h), between which coroutines run.
 * 5. A receive that waits for a buffer stands in front of its line, which goes on when there is one.
 *    If it leaves before, the line goes on without: the data were told of, and are not again.
 */
#define _GNU_SOURCE
#include "buffer_pool.h"
#include "loop.h"

#include "../coroutine/observe.h"
#include "../system/descriptors.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256 };

/* Of a descriptor, beside what operation.h has. */
enum {
    REGISTERED = IO_BITS_OWN,
    WAITS = IO_BITS_OWN << 1, /* of input; that of output is one bit above */
    ENDED = IO_BITS_OWN << 3, /* likewise */
};

struct loop_epoll {
    int fd;
    bool no_pwait2; /* the kernel has no epoll_pwait2 */
    int next, count; /* of the batch: the first that was not taken, and all */
    struct epoll_event events[EVENTS];
};

static bool is_waiting(const bide_descriptor *descriptor, int direction)
{
    return direction != BIDE_IO_FREE && (descriptor->bits & ((unsigned)WAITS << direction)) != 0;
}

/* (those that wait for no other are asked at each change: polls) */
static void set_waiting(bide_descriptor *descriptor, int direction, bool waits)
{
    if (direction == BIDE_IO_FREE)
        return;
    if (waits)
        descriptor->bits |= (unsigned)WAITS << direction;
    else
        descriptor->bits &= ~((unsigned)WAITS << direction);
}

/* Has a call taken all there was? 2 */
static bool took_all(const bide_io_operation *operation)
{
    size_t size;
    if (operation->code == BIDE_IO_RECV)
        size = operation->arguments.bytes.size;
    else if (operation->code == BIDE_IO_RECV_PROVIDED)
        size = operation->arguments.lent.pool->size;
    else
        return false;
    return operation->status == 0 && operation->count != 0 && operation->count < size &&
           (operation->descriptor->bits &
            (REGISTERED | IO_BYTES | (unsigned)ENDED << BIDE_IO_INPUT)) ==
               (REGISTERED | IO_BYTES) &&
           operation->flags == 0;
}

/* Makes its call, or calls. True: it is done. False: it has to wait. */
static BIDE_NOINLINE bool try_any(bide_io_operation *operation)
{
    bool again;
    while (!bide_io_take_result(operation, bide_io_call(operation), &again)) {
        if (again)
            return false;
    }
    return true;
}

/*
 * The same. A receive or send that goes through is done here: each return after a system call is
 * foreseen wrongly on processors that forget, and costs as much as twenty instructions.
 */
BIDE_INLINE bool try_it(bide_io_operation *operation)
{
    if (operation->code != BIDE_IO_RECV && operation->code != BIDE_IO_SEND)
        return try_any(operation);
    ptrdiff_t result = io_move_bytes(operation);
    bool again;
    if (BIDE_LIKELY(result > 0)) {
        operation->count += (size_t)result;
        if (operation->code == BIDE_IO_RECV || !operation->is_whole ||
            operation->count == operation->arguments.bytes.size) {
            operation->status = 0;
            return true;
        }
        return try_any(operation);
    }
    return bide_io_take_result(operation, result < 0 ? io_error() : 0, &again) ||
           (!again && try_any(operation));
}

/* Registers a descriptor: 0, or a negative errno; -EPERM: it is of a kind that does not poll. */
static int enroll(bide_loop *loop, bide_descriptor *descriptor)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                                .data.ptr = descriptor};
    if ((descriptor->bits & REGISTERED) != 0)
        return 0;
    if (epoll_ctl(loop->epoll->fd, EPOLL_CTL_ADD, descriptor->fd, &event) != 0)
        return -errno;
    bide_io_adopt(&loop->io, descriptor);
    descriptor->bits |= REGISTERED;
    return 0;
}

/* Does its descriptor not poll, so that its call may block a thread? */
static bool may_block(bide_io_operation *operation)
{
    bide_descriptor *descriptor = operation->descriptor;
    if (!operation->is_file)
        return false;
    if (operation->code >= BIDE_IO_OPEN)
        return true;
    if ((descriptor->bits & IO_ASKED) == 0)
        bide_io_probe_fd_(descriptor);
    return (descriptor->bits & IO_FILE) != 0;
}

static const struct bide_buffer_hooks_ buffer_hooks;

static bide_frame *begin(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    bide_loop *loop = loop_of(io);
    bide_descriptor *descriptor = operation->descriptor;
    if (BIDE_UNLIKELY(operation->code >= BIDE_IO_LISTEN) && bide_loop_do_at_once_(operation))
        return frame;
    if (operation->is_file && may_block(operation))
        return bide_loop_offload_(loop, operation, frame);
    if (operation->code == BIDE_IO_CONNECT) {
        operation->status = bide_io_open_to_connect_(operation);
        if (operation->status != 0)
            return frame;
    }
    if (operation->code == BIDE_IO_RECV_PROVIDED)
        bide_io_pool_enter_(operation->arguments.lent.pool, io, &buffer_hooks);
    int direction = io_direction(operation);
    if (direction == BIDE_IO_FREE || descriptor->lines[direction].first == NULL) {
        if (!is_waiting(descriptor, direction) && try_it(operation)) {
            if (took_all(operation))
                set_waiting(descriptor, direction, true);
            return frame;
        }
        if ((descriptor->bits & REGISTERED) != 0)
            set_waiting(descriptor, direction, true);
        int error = enroll(loop, descriptor);
        if (error != 0) {
            operation->status = error;
            if (io_waits_for_buffer(operation))
                bide_io_pool_leave_(operation);
            if (operation->code == BIDE_IO_CONNECT)
                bide_io_release(operation);
            return frame;
        }
    }
    bide_io_enlist(io, operation);
    return NULL;
}

/* The direction may go on: makes the calls of its line. */
static void go_on_with_line(bide_loop *loop, bide_descriptor *descriptor, int direction)
{
    bide_io_operation *next;
    set_waiting(descriptor, direction, false);
    for (bide_io_operation *at = descriptor->lines[direction].first; at != NULL; at = next) {
        next = at->next;
        if (is_waiting(descriptor, direction))
            break;
        if (!try_it(at)) {
            set_waiting(descriptor, direction, true);
            continue;
        }
        if (took_all(at))
            set_waiting(descriptor, direction, true);
        loop->counts.completions++;
        bide_io_remove(&loop->io, at);
        bide_io_finish_waiting(at, BIDE_IO_DONE);
    }
}

BIDE_INLINE void go_on(bide_loop *loop, bide_descriptor *descriptor, int direction)
{
    if (descriptor->lines[direction].first != NULL)
        go_on_with_line(loop, descriptor, direction);
    else
        set_waiting(descriptor, direction, false);
}

/* What the kernel tells of a descriptor that has left the set since: 4 */
#define LEFT ((void *)1)

static void take_event(bide_loop *loop, const struct epoll_event *event)
{
    bide_descriptor *descriptor = event->data.ptr;
    uint32_t what = event->events;
    if (BIDE_UNLIKELY(descriptor == LEFT))
        return;
    if (descriptor == NULL) {
        loop->counts.wakes++;
        bide_descriptor_lower_(loop->run.fd);
        return;
    }
    if ((what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        descriptor->bits |= (unsigned)ENDED << BIDE_IO_INPUT;
    if ((what & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0)
        go_on(loop, descriptor, BIDE_IO_INPUT);
    if ((what & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
        go_on(loop, descriptor, BIDE_IO_OUTPUT);
    go_on(loop, descriptor, BIDE_IO_FREE);
}

/* At most until `deadline`; 0: not at all. */
static int wait_for_events(struct loop_epoll *epoll, uint64_t deadline)
{
    struct timespec left = {0, 0};
    if (deadline == 0)
        return epoll_wait(epoll->fd, epoll->events, EVENTS, 0);
    if (deadline == BIDE_FOREVER)
        return epoll_wait(epoll->fd, epoll->events, EVENTS, -1);
    uint64_t now = bide_platform.now();
    uint64_t span = deadline > now ? deadline - now : 0;
#ifdef SYS_epoll_pwait2
    if (!epoll->no_pwait2) {
        left.tv_sec = (time_t)(span / 1000000000);
        left.tv_nsec = (long)(span % 1000000000);
        int count =
            (int)syscall(SYS_epoll_pwait2, epoll->fd, epoll->events, EVENTS, &left, NULL, 0);
        if (count > 0)
            io_written(epoll->events, (size_t)count * sizeof *epoll->events);
        if (count >= 0 || errno != ENOSYS)
            return count;
        epoll->no_pwait2 = true;
    }
#endif
    (void)left;
    uint64_t milliseconds = (span + 999999) / 1000000;
    return epoll_wait(epoll->fd, epoll->events, EVENTS,
                      milliseconds < 86400000 ? (int)milliseconds : 86400000);
}

/* Takes of the batch what a turn may. */
static void take_events(bide_loop *loop)
{
    struct loop_epoll *epoll = loop->epoll;
    int end = epoll->count - epoll->next > LOOP_TURN ? epoll->next + LOOP_TURN : epoll->count;
    while (epoll->next < end)
        take_event(loop, &epoll->events[epoll->next++]);
}

/* Nothing of the batch refers to it any more: 4 */
static void scrub(struct loop_epoll *epoll, const bide_descriptor *descriptor)
{
    for (int i = epoll->next; i < epoll->count; i++) {
        if (epoll->events[i].data.ptr == descriptor)
            epoll->events[i].data.ptr = LEFT;
    }
}

static void take(bide_run_loop *run)
{
    take_events(bide_container_of(run, bide_loop, run));
}

static void look(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    struct loop_epoll *epoll = loop->epoll;
    if (epoll->next >= epoll->count) {
        if (loop->io.in_flight == 0)
            return;
        loop->counts.polls++;
        epoll->next = 0;
        epoll->count = wait_for_events(epoll, 0);
    }
    take_events(loop);
}

static void sleep_for_events(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    struct loop_epoll *epoll = loop->epoll;
    if (epoll->next < epoll->count || !bide_run_loop_park_(run))
        return;
    loop->counts.sleeps++;
    loop->counts.polls++;
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_SLEEP));
    epoll->next = 0;
    loop->is_asleep = true;
    epoll->count = wait_for_events(epoll, loop_look_up_at(run->deadline));
    loop->is_asleep = false;
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_WAKE));
    bide_run_loop_unpark_(run);
}

static void enter(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    bide_loop_begin_on_thread_(loop);
}

/* The descriptor of one that waits for a buffer, for data that were told of; or NULL: 5 */
static bide_descriptor *unread_of(const bide_io_operation *operation)
{
    return io_waits_for_buffer(operation) ? operation->descriptor : NULL;
}

/* A buffer was given back. */
static void retry(bide_io *io, bide_io_operation *operation)
{
    go_on(loop_of(io), operation->descriptor, BIDE_IO_INPUT);
}

static const struct bide_buffer_hooks_ buffer_hooks = {retry, NULL, NULL};

static void cancel(bide_io *io, bide_io_operation *operation)
{
    if (bide_loop_is_offloaded_(operation)) {
        bide_loop_cancel_offloaded_(loop_of(io), operation);
        return;
    }
    bide_descriptor *unread = unread_of(operation);
    if (operation->code == BIDE_IO_CONNECT) /* it is closed */
        scrub(loop_of(io)->epoll, operation->descriptor);
    bide_io_remove(io, operation);
    bide_io_finish_waiting(operation, BIDE_IO_CANCELLED);
    if (unread != NULL)
        go_on(loop_of(io), unread, BIDE_IO_INPUT);
}

static void forget(bide_io *io, bide_io_operation *operation)
{
    if (bide_loop_is_offloaded_(operation)) {
        bide_loop_discard_offloaded_(loop_of(io), operation);
        return;
    }
    bide_descriptor *unread = unread_of(operation);
    bide_io_remove(io, operation);
    if (operation->code == BIDE_IO_CONNECT)
        bide_close(operation->descriptor);
    if (unread != NULL)
        go_on(loop_of(io), unread, BIDE_IO_INPUT);
}

static void release(bide_io *io, bide_descriptor *descriptor)
{
    bide_loop *loop = loop_of(io);
    for (int direction = 0; direction < BIDE_IO_LINES; direction++) {
        while (descriptor->lines[direction].first != NULL) {
            bide_io_operation *operation = descriptor->lines[direction].first;
            if (bide_loop_is_offloaded_(operation)) {
                bide_loop_discard_offloaded_(loop, operation);
                /* what it did is done */
                bide_io_finish_waiting(operation,
                                    operation->count != 0 ? BIDE_IO_DONE : BIDE_IO_CLOSED);
                continue;
            }
            bide_io_remove(io, operation);
            bide_io_finish_waiting(operation, BIDE_IO_CLOSED);
        }
    }
    scrub(loop->epoll, descriptor);
    if ((descriptor->bits & REGISTERED) != 0) {
        epoll_ctl(loop->epoll->fd, EPOLL_CTL_DEL, descriptor->fd, NULL);
        descriptor->bits = 0;
    }
}

static const bide_io_table table = {"epoll", begin, cancel, forget, release, NULL};
static const struct bide_run_loop_events_ events = {look, sleep_for_events, take, enter, NULL};

int bide_loop_epoll_create_(bide_loop *loop)
{
    struct loop_epoll *epoll = malloc(sizeof *epoll);
    struct epoll_event woken = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll == NULL)
        return -ENOMEM;
    int error = 0;
    epoll->no_pwait2 = false;
    epoll->next = epoll->count = 0;
    epoll->fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll->fd < 0) {
        error = -errno;
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
    bide_io_init(&loop->io, &table, &loop->run.scheduler);
    loop->run.events = &events;
    return 0;
}

void bide_loop_epoll_destroy_(bide_loop *loop, bool is_own)
{
    if (is_own)
        bide_run_loop_close_fd(&loop->run);
    else
        close(loop->run.fd);
    close(loop->epoll->fd);
    free(loop->epoll);
}
