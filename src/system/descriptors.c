/*
 * Released descriptors are kept in slots, each of which is emptied and filled by an exchange. The number
 * passes from one owner to the next, and with it the entry of the table below: so the giver releases, and
 * the taker acquires.
 *
 * The slots are in blocks. The first is static; more are appended when all slots are full, and never
 * freed. A block is published by a release, and found by an acquire. So there are as many slots as
 * descriptors were ever in use at once, rounded up, and none is lost.
 *
 * A descriptor is an eventfd, or the reading end of a pipe (BIDE_HAS_EVENTFD). A table by the number of the
 * reading end has the number of the writing end.
 *
 * 1. An entry is stored before its number leaves bide_descriptor_create_. A thread that raises the number has
 *    it from the creator, so the store happens before its load, and both are relaxed.
 * 2. An entry changes only when its descriptor is closed, which is never done to one that is kept in a slot.
 *    So a late raise of a kept descriptor finds the writing end.
 * 3. The table is made of blocks, each twice as long as the one before. A block never moves or goes.
 */
#define _GNU_SOURCE
#include "descriptors.h"

#include "portable.h"

#include "bide/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#if BIDE_HAS_EVENTFD
#include <sys/eventfd.h>
#endif
#include <unistd.h>

#if BIDE_CHECK

bide_atomic(uint32_t) bide_descriptor_word_;

int bide_descriptor_create_(void)
{
    return 3;
}

void bide_descriptor_close_(int fd)
{
    bide_assert(fd == 3);
    (void)fd;
}

int bide_descriptor_take_(void)
{
    return 0;
}

void bide_descriptor_give_(int fd)
{
    (void)fd;
}

int bide_descriptor_not_standard_(int fd)
{
    return fd;
}

void bide_descriptor_raise_(int fd)
{
    (void)fd;
    bide_atomic_exchange(&bide_descriptor_word_, 1, relaxed);
    bide_platform.wake(&bide_descriptor_word_, 1);
}

void bide_descriptor_lower_(int fd)
{
    (void)fd;
    bide_atomic_exchange(&bide_descriptor_word_, 0, relaxed);
}

#else

enum { SPARE_FDS = 64, STANDARD_STREAMS = 3 };

typedef struct spare_block {
    bide_atomic(int) fds[SPARE_FDS]; /* 0: empty; otherwise the number plus 1 */
    bide_atomic(struct spare_block *) next;
} spare_block;

static spare_block first_spares;

static spare_block *next_spares(spare_block *block)
{
    return bide_atomic_load(&block->next, acquire);
}

int bide_descriptor_not_standard_(int fd)
{
    if (fd >= STANDARD_STREAMS)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STANDARD_STREAMS);
    if (moved < 0)
        return errno == EINVAL ? -EMFILE : -errno; /* (EINVAL: the limit is below it) */
    close(fd);
    return moved;
}

#if BIDE_HAS_EVENTFD

int bide_descriptor_create_(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    int moved = bide_descriptor_not_standard_(fd);
    if (moved < 0)
        close(fd);
    return moved;
}

void bide_descriptor_close_(int fd)
{
    close(fd);
}

int bide_descriptor_writing_end_(int fd)
{
    return fd;
}

#else

enum { FIRST_WRITERS = 64, WRITER_BLOCKS = 26 };

static bide_atomic(int) first_writers[FIRST_WRITERS]; /* 0: none; otherwise the number plus 1 */
static bide_atomic(void *)
    more_writers[WRITER_BLOCKS]; /* arrays of the same; the first is unused */

/* The place of a reading end's entry; NULL: without memory for it. */
static bide_atomic(int) * place_of_writer(int fd)
{
    unsigned at = (unsigned)fd + FIRST_WRITERS, block = 0;
    while (at >> block >= 2 * FIRST_WRITERS)
        block++;
    at -= (unsigned)FIRST_WRITERS << block;
    if (block == 0)
        return &first_writers[at];
    void *writers = bide_atomic_load(&more_writers[block], acquire);
    if (writers == NULL) {
        void *added = calloc((size_t)FIRST_WRITERS << block, sizeof first_writers[0]);
        if (added == NULL)
            return NULL;
        if (bide_atomic_compare_exchange(&more_writers[block], &writers, added, acq_rel, acquire))
            writers = added;
        else
            free(added); /* another thread was faster */
    }
    return (bide_atomic(int) *)writers + at;
}

int bide_descriptor_create_(void)
{
    int ends[2];
    if (portable_pipe(ends, true) != 0)
        return -errno;
    int error = 0;
    for (int i = 0; i < 2 && error == 0; i++) {
        int moved = bide_descriptor_not_standard_(ends[i]);
        if (moved >= 0)
            ends[i] = moved;
        else
            error = moved;
    }
    bide_atomic(int) *place = error == 0 ? place_of_writer(ends[0]) : NULL;
    if (place == NULL) {
        close(ends[0]);
        close(ends[1]);
        return error != 0 ? error : -ENOMEM;
    }
    bide_atomic_store(place, ends[1] + 1, relaxed); /* 1 */
    return ends[0];
}

/* (the entry goes first, because another thread may get the number) */
void bide_descriptor_close_(int fd)
{
    int writer = bide_atomic_exchange(place_of_writer(fd), 0, relaxed) - 1;
    if (writer >= 0)
        close(writer);
    close(fd);
}

int bide_descriptor_writing_end_(int fd)
{
    return bide_atomic_load(place_of_writer(fd), relaxed) - 1; /* 1 */
}

#endif

int bide_descriptor_take_(void)
{
    for (spare_block *block = &first_spares; block != NULL; block = next_spares(block)) {
        for (int i = 0; i < SPARE_FDS; i++) {
            int fd = bide_atomic_load(&block->fds[i], relaxed);
            if (fd != 0 && (fd = bide_atomic_exchange(&block->fds[i], 0, acquire)) != 0)
                return fd - 1;
        }
    }
    return bide_descriptor_create_();
}

static bool put_spare(spare_block *block, int fd)
{
    for (int i = 0; i < SPARE_FDS; i++) {
        int none = 0;
        if (bide_atomic_compare_exchange(&block->fds[i], &none, fd + 1, release, relaxed))
            return true;
    }
    return false;
}

/* (without memory for a block the descriptor stays open, unused) */
void bide_descriptor_give_(int fd)
{
    spare_block *block = &first_spares, *next;
    for (; !put_spare(block, fd); block = next) {
        next = next_spares(block);
        if (next != NULL)
            continue;
        spare_block *added = calloc(1, sizeof *added);
        if (added == NULL)
            return;
        if (bide_atomic_compare_exchange(&block->next, &next, added, acq_rel, acquire))
            next = added;
        else
            free(added); /* another thread was faster: `next` is its block */
    }
}

int bide_descriptor_write_(int end)
{
    static const uint64_t one = 1;
    enum { SIZE = BIDE_HAS_EVENTFD ? sizeof one : 1 };
    int saved = errno;
    ssize_t written;
    do {
        written = write(end, &one, SIZE);
    } while (written < 0 && errno == EINTR);
    int error = written >= 0 || errno == EAGAIN ? 0 : -errno; /* a full one is readable, too */
    errno = saved;
    return error;
}

void bide_descriptor_raise_(int fd)
{
    (void)bide_descriptor_write_(bide_descriptor_writing_end_(fd));
}

void bide_descriptor_lower_(int fd)
{
    int saved = errno;
    uint64_t counts[BIDE_HAS_EVENTFD ? 1 : 64];
    ssize_t got;
    do {
        got = read(fd, counts, sizeof counts);
        /* (a pipe has a byte for each raise) */
    } while (got < 0 ? errno == EINTR : !BIDE_HAS_EVENTFD && got == (ssize_t)sizeof counts);
    errno = saved;
}

void bide_descriptors_in_child_(void)
{
    for (spare_block *block = &first_spares; block != NULL; block = next_spares(block)) {
        for (int i = 0; i < SPARE_FDS; i++)
            bide_atomic_init(&block->fds[i], 0);
    }
}

#endif
