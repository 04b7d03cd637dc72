/*
 * Operations whose end makes a descriptor readable, for foreign event loops. The owner starts,
 * cancels and finishes; the operation may end on any thread, the ender.
 *
 *     state   IDLE --start--> STARTED --the operation ends--> ENDED --finish--> IDLE
 *
 * The ender stores ENDED, and then writes to the descriptor: an eventfd, or the other end of a pipe.
 * To finish, the owner reads the descriptor first, which succeeds only after that write, and then checks the state.
 *
 * 1. The write is the ender's last action, and it uses only the numbers of the descriptor, which it
 *    copied while the operation held the struct. A read that succeeds comes after the effect of the
 *    write. From then on the owner may use the struct for the next operation, free it, or close the
 *    descriptor: the ender is on its way out of the kernel, which holds the file for it. If the state
 *    decided instead, the owner could see ENDED and close the descriptor before the write. The write
 *    would then go to whatever file has that number.
 * 2. ENDED is stored with release, and loaded with acquire after the read of the descriptor: so the owner
 *    sees the result, and what the operation wrote. The kernel's locks give this order too, but the
 *    language does not know them.
 * 3. The counter, or the number of bytes, is 1 from the end to the finish, and 0 otherwise. So the
 *    write neither blocks nor fails, and one read makes the descriptor unreadable. If the user has
 *    filled it, against the header, the write finds it full (EAGAIN), and it is readable anyway.
 */
#include "bide/pollable.h"

#include "../system/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum { POLLABLE_IDLE, POLLABLE_STARTED, POLLABLE_ENDED };

/* Whether the user has closed the reading end of a pipe, so that a write would raise SIGPIPE. */
static bool pollable_is_closed(int fd, int end)
{
    return fd != end && fcntl(fd, F_GETFD) < 0;
}

static void pollable_ended(bide_root *root)
{
    bide_pollable *pollable = bide_container_of(root, bide_pollable, root);
    int fd = bide_pollable_fd(pollable), end = bide_descriptor_writing_end_(fd);
    bide_atomic_store(&pollable->state, POLLABLE_ENDED, release); /* 2, partner is finish's load */
    if (BIDE_UNLIKELY(pollable_is_closed(fd, end) || bide_descriptor_write_(end) != 0)) /* 1 */
        bide_platform.misuse("the descriptor of a pollable was closed", "bide_pollable_start",
                             __FILE__, __LINE__);
}

int bide_pollable_init(bide_pollable *pollable)
{
    int fd = bide_descriptor_create_();
    pollable->fd_and_1_ = fd >= 0 ? 1 + fd : 0;
    if (fd < 0)
        return fd;
    bide_atomic_init(&pollable->state, POLLABLE_IDLE);
    pollable->deadline = BIDE_FOREVER;
    return 0;
}

static uint32_t pollable_state(bide_pollable *pollable)
{
    /* relaxed: only the owner changes it from or to IDLE. */
    return bide_atomic_load(&pollable->state, relaxed);
}

void bide_pollable_destroy_(bide_pollable *pollable, const char *what, const char *where,
                            const char *file, unsigned line)
{
    if (pollable_state(pollable) != POLLABLE_IDLE)
        bide_platform.misuse(what, where, file, line);
    if (pollable->fd_and_1_ != 0)
        bide_descriptor_close_(bide_pollable_fd(pollable));
    pollable->fd_and_1_ = 0;
}

void bide_pollable_start(bide_pollable *pollable, const bide_context *context,
                         bide_awaiter *awaiter)
{
    if (pollable_state(pollable) != POLLABLE_IDLE)
        bide_platform.misuse("a pollable is started that has not been finished",
                             "bide_pollable_start", __FILE__, __LINE__);
    bide_atomic_store(&pollable->state, POLLABLE_STARTED, relaxed); /* relaxed: still the owner's */
    pollable->deadline = BIDE_FOREVER;
    bide_root_prepare(&pollable->root, context != NULL ? context : &bide_default_context, awaiter,
                      pollable_ended, true);
    bide_root_post(&pollable->root);
}

/* Makes the descriptor unreadable. -EINPROGRESS: it was not readable. */
static int pollable_clear(bide_pollable *pollable)
{
    uint64_t count;
    while (read(bide_pollable_fd(pollable), &count, sizeof count) < 0) {
        if (errno != EINTR)
            return errno == EAGAIN ? -EINPROGRESS : -errno;
    }
    return 0;
}

int bide_pollable_finish(bide_pollable *pollable, int *status)
{
    if (pollable_state(pollable) == POLLABLE_IDLE)
        return -EINVAL;
    int error = pollable_clear(pollable);
    if (error == -EINPROGRESS && pollable->deadline != BIDE_FOREVER &&
        bide_platform.now() >= pollable->deadline) {
        bide_pollable_cancel(pollable, -ETIMEDOUT);
        error = pollable_clear(pollable);
    }
    if (error != 0)
        return error;
    while (bide_atomic_load(&pollable->state, acquire) != POLLABLE_ENDED) /* 2 */
        bide_cpu_relax();
    bide_atomic_store(&pollable->state, POLLABLE_IDLE, relaxed); /* relaxed: the owner's again */
    pollable->deadline = BIDE_FOREVER;
    *status = pollable->root.status;
    return 0;
}

void bide_pollable_cancel(bide_pollable *pollable, int reason)
{
    if (pollable_state(pollable) == POLLABLE_IDLE)
        return;
    pollable->deadline = BIDE_FOREVER;
    bide_stop_request_with(&pollable->root.stop, reason);
}

int bide_pollable_timeout(const bide_pollable *pollable)
{
    if (pollable->deadline == BIDE_FOREVER)
        return -1;
    uint64_t now = bide_platform.now();
    if (now >= pollable->deadline)
        return 0;
    uint64_t milliseconds = (pollable->deadline - now - 1) / 1000000 + 1;
    return milliseconds < INT_MAX ? (int)milliseconds : INT_MAX;
}
