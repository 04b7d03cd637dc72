/*
 * The ring of a loop: how it is made, how the loop looks and sleeps in it, and the table of the
 * back end. A loop has one ring, and one thread enters it.
 *
 * 1. A sleep waits for completions, and a post of another thread is one of them. The ring itself
 *    waits on the word of the run loop, with a futex entry that stays in the ring until it is
 *    woken. The kernel compares the word when it takes the entry, after the loop has parked, as for
 *    a thread that sleeps on it; and posters wake the entry like such a thread. While the loop
 *    runs, nobody wakes it, since the word is not PARKED. So the entry is good for the next sleep.
 *    On kernels without futex entries, the ring polls the descriptor of the run loop.
 * 2. While the process has one thread, nobody else posts, and nothing is armed. Linux 6.16 and
 *    later give a process a futex table of its own with its second thread, and forget what a ring
 *    has waited for since before. If the library cannot detect the second thread, the descriptor is
 *    polled.
 * 3. The futex entry is cancelled, and its completion is reaped, before the word may go. A waiter
 *    that the kernel still had there could consume a wake that is meant for the next word at that
 *    address.
 * 4. Completions are deferred until the thread enters the ring for them, and the kernel sets a flag
 *    if there are some. So a look costs one load while there are none.
 */
#define _GNU_SOURCE
#include "loop.h"

#include <errno.h>

#if BIDE_HAS_LIBURING

#include "../coroutine/observe.h"
#include "../system/single_threaded.h"
#include "../system/descriptors.h"

#include "uring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Missing in the headers of Debian 12. */
enum {
    OPCODE_FUTEX_WAIT = 51,
    FUTEX_OF_32_BITS = 2,
    FUTEX_OF_PROCESS = 128,
};

/* ---- Looking and sleeping ---- */

static bool uring_has_something(struct io_uring *ring)
{
    return io_uring_sq_ready(ring) != 0 || io_uring_cq_ready(ring) != 0 ||
           (IO_URING_READ_ONCE(*ring->sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) !=
               0;
}

static void uring_look(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    if (!uring_has_something(&loop->uring->ring))
        return;
    loop->counts.polls++;
    io_uring_submit_and_get_events(&loop->uring->ring);
    bide_uring_reap_(loop);
}

/* Makes the ring report posts: 1, 2. */
static void uring_arm(bide_loop *loop)
{
    struct loop_uring *uring = loop->uring;
    if (uring->is_armed || BIDE_IS_ALONE_)
        return;
    struct io_uring_sqe *entry = bide_uring_new_entry_(uring);
    if (uring->has_futex) {
        uint32_t parked;
        bide_atomic(uint32_t) *word = bide_run_loop_word_(&loop->run, &parked);
        io_uring_prep_rw(OPCODE_FUTEX_WAIT, entry, FUTEX_OF_32_BITS | FUTEX_OF_PROCESS,
                         (void *)word, 0, parked);
        entry->addr3 = UINT32_MAX; /* any waker */
    } else {
        io_uring_prep_poll_add(entry, loop->run.fd, POLLIN);
    }
    bide_uring_set_data_(entry, loop, URING_OF_LOOP);
    uring->is_armed = true;
}

void bide_uring_woken_(bide_loop *loop)
{
    bide_assert(loop->uring->is_armed);
    loop->uring->is_armed = false;
    loop->counts.wakes++;
    if (!loop->uring->has_futex)
        bide_descriptor_lower_(loop->run.fd);
}

/* Submits the queue, and waits for a completion until `deadline`. */
static void uring_wait_until(struct loop_uring *uring, uint64_t deadline)
{
    if (deadline == BIDE_FOREVER) {
        io_uring_submit_and_wait(&uring->ring, 1);
        return;
    }
    uint64_t now = bide_platform.now();
    uint64_t span = deadline > now ? deadline - now : 0;
    struct __kernel_timespec left = {.tv_sec = (int64_t)(span / 1000000000),
                                     .tv_nsec = (long long)(span % 1000000000)};
    struct io_uring_cqe *entry;
    io_uring_submit_and_wait_timeout(&uring->ring, &entry, 1, &left, NULL);
}

static bool uring_sleep(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    loop->counts.polls++;
    if (io_uring_cq_ready(&loop->uring->ring) != 0 || !bide_run_loop_park_(run))
        return false;
    uring_arm(loop);
    loop->counts.sleeps++;
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_SLEEP));
    loop->is_asleep = true;
    uring_wait_until(loop->uring, bide_loop_wake_time_(run->deadline));
    loop->is_asleep = false;
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_WAKE));
    bide_run_loop_unpark_(run);
    return true;
}

static void uring_take(bide_run_loop *run)
{
    bide_uring_reap_(bide_container_of(run, bide_loop, run));
}

/* 3 */
static void uring_disarm(bide_loop *loop)
{
    struct loop_uring *uring = loop->uring;
    if (!uring->is_armed || !pthread_equal(loop->thread, pthread_self()))
        return;
    struct io_uring_sqe *entry = bide_uring_new_entry_(uring);
    io_uring_prep_cancel64(entry, (uintptr_t)loop | URING_OF_LOOP, 0);
    bide_uring_set_data_(entry, NULL, URING_OF_LOOP);
    while (uring->is_armed) {
        io_uring_submit_and_wait(&uring->ring, 1);
        bide_uring_reap_(loop);
    }
}

static void uring_leave(bide_run_loop *run)
{
    uring_disarm(bide_container_of(run, bide_loop, run));
}

/* ---- Creating and destroying ---- */

static int uring_set_up(struct loop_uring *uring, unsigned entries)
{
    struct io_uring *ring = &uring->ring;
    enum { NEEDED = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE };
    struct io_uring_params parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.flags = IORING_SETUP_R_DISABLED | IORING_SETUP_CLAMP | IORING_SETUP_SINGLE_ISSUER |
                       IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    int error = io_uring_queue_init_params(entries, ring, &parameters);
    if (error == 0 && (parameters.features & NEEDED) != NEEDED) {
        io_uring_queue_exit(ring);
        error = -EOPNOTSUPP;
    }
    if (error == 0) {
        int fd = bide_descriptor_not_standard_(ring->ring_fd);
        if (fd < 0) {
            io_uring_queue_exit(ring);
            return fd;
        }
        ring->ring_fd = ring->enter_ring_fd = fd;
        /* The kernel has at least so many threads for files (io.md). */
        unsigned threads = parameters.sq_entries < 4 ? parameters.sq_entries : 4;
        uring->max_opens = threads / 2;
    }
    return error;
}

/* Detects what the kernel supports. -EOPNOTSUPP: too little. */
static int uring_probe(struct loop_uring *uring)
{
    struct io_uring_probe *found = io_uring_get_probe_ring(&uring->ring);
    if (found == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < found->ops_len && i < URING_OPCODES; i++) {
        if ((found->ops[i].flags & IO_URING_OP_SUPPORTED) != 0)
            uring->supported |= UINT64_C(1) << i;
    }
    io_uring_free_probe(found);
    for (unsigned code = 0; code < BIDE_IO_CODES; code++) {
        if (bide_uring_rows_[code].is_required &&
            !bide_uring_has_opcode_(uring, bide_uring_rows_[code].opcode))
            return -EOPNOTSUPP;
    }
    const char *without =
        getenv("BIDE_IO_WITHOUT"); /* for tests: "futex" makes the kernel an older one */
    bool is_older = without != NULL && strcmp(without, "futex") == 0;
    /* (a platform table without a barrier is not Linux's: its `wake` wakes no futex) */
    uring->has_futex = BIDE_IS_ALONE_KNOWN_ && bide_platform.barrier != NULL &&
                       bide_uring_has_opcode_(uring, OPCODE_FUTEX_WAIT) && !is_older;
    uring->has_buffers = !is_older;
    return 0;
}

static int uring_create(bide_loop *loop, unsigned entries)
{
    struct loop_uring *uring = calloc(1, sizeof *uring);
    if (uring == NULL)
        return -ENOMEM;
    int error = uring_set_up(uring, entries);
    if (error != 0) {
        free(uring);
        return error;
    }
    error = uring_probe(uring);
    if (error == 0 && !uring->has_futex) {
        int fd = bide_run_loop_fd(&loop->run);
        error = fd < 0 ? fd : 0;
    }
    if (error != 0) {
        io_uring_queue_exit(&uring->ring);
        free(uring);
        return error;
    }
    io_uring_ring_dontfork(&uring->ring);
    loop->uring = uring;
    return 0;
}

static void uring_destroy(bide_loop *loop, bool is_own)
{
    bide_assert(loop->io.in_flight != 0 || loop->uring->opens == 0); /* uring.c, 9 */
    bide_assert(loop->io.in_flight != 0 || loop->uring->stats == NULL ||
                loop->uring->free_stats == UINT64_MAX); /* uring_files.c, 1 */
    if (is_own) {
        uring_disarm(loop);
        bide_run_loop_close_fd(&loop->run);
        io_uring_queue_exit(&loop->uring->ring);
    } else {
        close(loop->uring->ring.ring_fd);
        if (loop->run.fd >= 0)
            bide_descriptor_close_(loop->run.fd);
    }
    free(loop->uring->stats);
    free(loop->uring);
}

/* The ring belongs to the thread that enables it. */
static void uring_enable(bide_loop *loop)
{
    /* (Debian 12's liburing lacks its function for it) */
    syscall(SYS_io_uring_register, loop->uring->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL,
            0);
}

static const struct bide_run_loop_events_ uring_events = {
    .look = uring_look,
    .sleep = uring_sleep,
    .take = uring_take,
    .leave = uring_leave,
};

const bide_back_end_ bide_uring_ = {
    .name = "uring",
    .kind = BIDE_LOOP_URING,
    .operations = &bide_uring_operations_,
    .events = &uring_events,
    .create = uring_create,
    .destroy = uring_destroy,
    .start_on_thread = uring_enable,
};

#else

static int uring_create(bide_loop *loop, unsigned entries)
{
    (void)loop;
    (void)entries;
    return -ENOSYS;
}

const bide_back_end_ bide_uring_ = {
    .name = "uring",
    .kind = BIDE_LOOP_URING,
    .create = uring_create,
};

#endif
