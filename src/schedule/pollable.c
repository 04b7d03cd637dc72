/*
 * Operations whose end makes a descriptor readable.
 *
 *     state   IDLE --start--> BEGUN --the end--> ENDED --finish--> IDLE
 *
 * The ender of the operation, on any thread, stores ENDED, and then writes to the eventfd.
 * Finishing reads the eventfd, which says whether that has been written, and looks at the state
 * only then.
 *
 * 1. The write is the last that the ender does, and it uses the number of the descriptor alone:
 *    that was copied before, while the operation held the struct. A read that succeeds comes after
 *    the write has done what it does. So from then on the struct may be used for the next
 *    operation, or go, and the descriptor be closed: the ender is on its way out of the kernel,
 *    which holds the file for it. If the state decided instead, the owner could see ENDED, and
 *    close the descriptor, before the write; and the write would go to whatever has that number
 *    then.
 * 2. ENDED is stored with release, and read with acquire after the eventfd was: so the result, and
 *    what the operation wrote, is seen. The kernel's locks give that order too, but the language
 *    knows nothing of those.
 * 3. So the counter is 0, or 1 from the end to the finish: to write never waits nor fails for being
 *    full, and one read makes it unreadable.
 */
#include "bide/pollable.h"

#include <errno.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { IDLE, BEGUN, ENDED };

static void pollable_ended(bide_root *root)
{
    bide_pollable *pollable = bide_container_of(root, bide_pollable, root);
    int fd = pollable->fd;
    int saved = errno;
    uint64_t one = 1;
    ssize_t written;
    bide_atomic_store(&pollable->state, ENDED, release); /* 2, partner is finish's load */
    do {
        written = write(fd, &one, sizeof one); /* 1 */
    } while (written < 0 && errno == EINTR);
    if (BIDE_UNLIKELY(written < 0))
        bide_platform.misuse("the descriptor of a pollable was closed", "bide_pollable_start",
                             __FILE__, __LINE__);
    errno = saved;
}

int bide_pollable_init(bide_pollable *pollable)
{
    pollable->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pollable->fd < 0)
        return -errno;
    bide_atomic_init(&pollable->state, IDLE);
    pollable->deadline = BIDE_FOREVER;
    return 0;
}

static uint32_t state_of(bide_pollable *pollable)
{
    /* relaxed: between IDLE and the rest it changes by its owner alone. */
    return bide_atomic_load(&pollable->state, relaxed);
}

void bide_pollable_destroy_(bide_pollable *pollable, const char *what, const char *where,
                            const char *file, unsigned line)
{
    if (state_of(pollable) != IDLE)
        bide_platform.misuse(what, where, file, line);
    close(pollable->fd);
}

void bide_pollable_start(bide_pollable *pollable, const bide_context *context,
                         bide_awaiter *awaiter)
{
    if (state_of(pollable) != IDLE)
        bide_platform.misuse("a pollable is started that has not been finished",
                             "bide_pollable_start", __FILE__, __LINE__);
    bide_atomic_store(&pollable->state, BEGUN, relaxed); /* relaxed: it is the owner's still */
    pollable->deadline = BIDE_FOREVER;
    bide_root_prepare(&pollable->root, context != NULL ? context : &bide_default_context, awaiter,
                      pollable_ended, true);
    bide_root_post(&pollable->root);
}

/* Makes it unreadable: 0. Or -EINPROGRESS if it was not readable. */
static int take(bide_pollable *pollable)
{
    uint64_t count;
    while (read(pollable->fd, &count, sizeof count) < 0) {
        if (errno != EINTR)
            return errno == EAGAIN ? -EINPROGRESS : -errno;
    }
    return 0;
}

int bide_pollable_finish(bide_pollable *pollable, int *status)
{
    if (state_of(pollable) == IDLE)
        return -EINVAL;
    int error = take(pollable);
    if (error == -EINPROGRESS && pollable->deadline != BIDE_FOREVER &&
        bide_platform.now() >= pollable->deadline) {
        bide_pollable_cancel(pollable, -ETIMEDOUT);
        error = take(pollable);
    }
    if (error != 0)
        return error;
    while (bide_atomic_load(&pollable->state, acquire) != ENDED) /* 2 */
        bide_cpu_relax();
    bide_atomic_store(&pollable->state, IDLE, relaxed); /* relaxed: it is the owner's again */
    pollable->deadline = BIDE_FOREVER;
    *status = pollable->root.status;
    return 0;
}

void bide_pollable_cancel(bide_pollable *pollable, int reason)
{
    if (state_of(pollable) == IDLE)
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
