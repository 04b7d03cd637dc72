/*
 * Released descriptors are kept in slots, each of which is emptied and filled by an exchange. Only the
 * number passes from one owner to the next, so the orders are relaxed.
 *
 * The slots are in blocks. The first is static; more are appended when all slots are full, and never
 * freed. A block is published by a release, and found by an acquire. So there are as many slots as
 * descriptors were ever in use at once, rounded up, and none is lost.
 */
#define _GNU_SOURCE
#include "descriptors.h"

#include "bide/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#if BIDE_CHECK

bide_atomic(uint32_t) bide_descriptor_word_;

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
        return -errno;
    close(fd);
    return moved;
}

int bide_descriptor_take_(void)
{
    for (spare_block *block = &first_spares; block != NULL; block = next_spares(block)) {
        for (int i = 0; i < SPARE_FDS; i++) {
            int fd = bide_atomic_load(&block->fds[i], relaxed);
            if (fd != 0 && (fd = bide_atomic_exchange(&block->fds[i], 0, relaxed)) != 0)
                return fd - 1;
        }
    }
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    int moved = bide_descriptor_not_standard_(fd);
    if (moved < 0)
        close(fd);
    return moved;
}

static bool put_spare(spare_block *block, int fd)
{
    for (int i = 0; i < SPARE_FDS; i++) {
        int none = 0;
        if (bide_atomic_compare_exchange(&block->fds[i], &none, fd + 1, relaxed, relaxed))
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

void bide_descriptor_raise_(int fd)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(fd, &one, sizeof one); /* a full counter is readable, too */
    } while (written < 0 && errno == EINTR);
    errno = saved;
}

void bide_descriptor_lower_(int fd)
{
    int saved = errno;
    uint64_t count;
    ssize_t got;
    do {
        got = read(fd, &count, sizeof count);
    } while (got < 0 && errno == EINTR);
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
