/*
 * Released descriptors are kept in a few slots, each of which is emptied and filled by an exchange. Only
 * the number passes from one owner to the next, so the orders are relaxed.
 */
#define _GNU_SOURCE
#include "descriptors.h"

#include "bide/platform.h"

#include <errno.h>
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

enum { SPARE_FDS = 64 };

/* 0: empty; otherwise the number plus 1. A descriptor that finds no slot stays open, unused. */
static bide_atomic(int) spare_fds[SPARE_FDS];

int bide_descriptor_take_(void)
{
    for (int i = 0; i < SPARE_FDS; i++) {
        int fd = bide_atomic_load(&spare_fds[i], relaxed);
        if (fd != 0 && (fd = bide_atomic_exchange(&spare_fds[i], 0, relaxed)) != 0)
            return fd - 1;
    }
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fd >= 0 ? fd : -errno;
}

void bide_descriptor_give_(int fd)
{
    for (int i = 0; i < SPARE_FDS; i++) {
        int none = 0;
        if (bide_atomic_compare_exchange(&spare_fds[i], &none, fd + 1, relaxed, relaxed))
            return;
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
    for (int i = 0; i < SPARE_FDS; i++)
        bide_atomic_init(&spare_fds[i], 0);
}

#endif
