/*
 * Opening a path, under a restricted root by openat2(2).
 *
 * 1. openat2 fails with -EAGAIN if any name was changed while it looked at "..". It is tried again a
 *    number of times.
 * 2. Without openat2 the path is opened name by name instead (path_walk.c), with the same results. A filter of
 *    system calls may refuse openat2 with -EPERM. So the path is walked after that error too: the walk has the same
 *    restrictions, and fails with -EPERM again if the file is the reason.
 * 3. A look-up in the kernel's cache alone is an attempt. If the kernel has no such look-up (Linux 5.12), or no
 *    openat2, it ends with -EAGAIN, as one that found nothing.
 */
#define _GNU_SOURCE
#include "path_place.h"
#include "path_walk.h"

#include "../system/portable.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#endif

enum {
    KNOWN_RESOLVE = BIDE_PATH_NO_XDEV | BIDE_PATH_NO_MAGICLINKS | BIDE_PATH_NO_SYMLINKS |
                    BIDE_PATH_BENEATH | BIDE_PATH_IN_ROOT,
    PATH_CACHED = 0x20, /* RESOLVE_CACHED */
};

int bide_path_fd_(const bide_path_root *root)
{
    return root != NULL && root->directory != NULL ? bide_descriptor_fd(root->directory) : AT_FDCWD;
}

bool bide_path_is_restricted_(const bide_path_root *root)
{
    return root != NULL && root->resolve != 0;
}

static bool path_is_plain(const bide_path_root *root, const char *path)
{
    return !bide_path_is_restricted_(root) && path[0] != '\0';
}

bool bide_path_is_plain_(const bide_io_operation *operation)
{
    const bide_io_arguments *arguments = &operation->arguments;
    switch ((bide_io_shape_)bide_io_row_of_(operation)->shape) {
    case IO_SHAPE_OPEN:
        return path_is_plain(arguments->open.root, arguments->open.path);
    case IO_SHAPE_PATH:
        return arguments->path.path == NULL ||
               path_is_plain(arguments->path.root, arguments->path.path);
    case IO_SHAPE_NAMES:
        return path_is_plain(arguments->names.root, arguments->names.path) &&
               path_is_plain(arguments->names.other_root, arguments->names.other);
    default:
        return true;
    }
}

static bool path_is_known(unsigned resolve)
{
    return (resolve & ~(unsigned)KNOWN_RESOLVE) == 0;
}

static void path_how(uint64_t how[3], int flags, unsigned mode, unsigned resolve)
{
#ifndef __linux__
    (void)how, (void)flags, (void)mode, (void)resolve;
#else
    how[0] = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_LARGEFILE);
    if ((flags & O_PATH) != 0)
        how[0] &= ~(uint64_t)O_LARGEFILE;
    how[1] = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? mode & 07777 : 0;
    how[2] = resolve;
#endif
}

int bide_path_how_(uint64_t how[3], const bide_path_root *root, int flags, unsigned mode)
{
    if (!path_is_known(root->resolve))
        return -EINVAL;
    path_how(how, flags, mode, root->resolve);
    return 0;
}

/* A number, or a negative errno; -ENOSYS if there is no such call. */
static int path_openat2(int directory, const char *path, int flags, unsigned mode, unsigned resolve)
{
    uint64_t how[3];
    path_how(how, flags, mode, resolve);
#if BIDE_HAS_OPENAT2
    return (int)path_result(syscall(SYS_openat2, directory, path, how, sizeof how));
#else
    (void)directory, (void)path;
    return -ENOSYS;
#endif
}

/* True if the path is to be walked after that result: 2. */
static bool path_lacks_openat2(int result, unsigned resolve)
{
    return result == -ENOSYS || (result == -EPERM && (resolve & BIDE_PATH_NO_XDEV) == 0);
}

int bide_path_open_(int directory, const char *path, int flags, unsigned mode, unsigned resolve)
{
    int result = -EAGAIN;
    if (!path_is_known(resolve))
        return -EINVAL;
    for (int i = 0; i < PATH_TRIES && result == -EAGAIN; i++) /* 1 */
        result = path_openat2(directory, path, flags, mode, resolve);
    if (path_lacks_openat2(result, resolve))
        result = bide_path_walk_(directory, path, flags, mode, resolve);
    return result; /* (after EINTR the caller looks whether it is to end) */
}

int bide_path_open_cached_(int directory, const char *path, int flags, unsigned resolve)
{
    int result = path_openat2(directory, path, flags, 0, resolve | PATH_CACHED);
    return path_lacks_openat2(result, resolve) || result == -EINVAL ? -EAGAIN : result; /* 3 */
}

static int path_open(const bide_path_root *root, const char *path, int flags, unsigned mode)
{
    if (bide_path_is_restricted_(root))
        return bide_path_open_(bide_path_fd_(root), path, flags, mode, root->resolve);
    return (int)path_result(openat(bide_path_fd_(root), path, flags | O_CLOEXEC, (mode_t)mode));
}

ptrdiff_t bide_call_open_(bide_io_operation *operation)
{
    return path_open(operation->arguments.open.root, operation->arguments.open.path,
                     operation->arguments.open.flags, operation->arguments.open.mode);
}

/* For file systems without O_TMPFILE: makes a file with a random name, and removes the name. */
static ptrdiff_t path_open_unlinked(const bide_path_root *root, const char *path, int flags,
                                    unsigned mode)
{
    char name[32];
    uint64_t number;
    int directory = path_open(root, path, O_PATH | O_DIRECTORY, 0);
    if (directory < 0)
        return directory;
    ptrdiff_t result = -EEXIST;
    for (int i = 0; i < PATH_TRIES && result == -EEXIST; i++) {
        if (portable_random(&number, sizeof number) != 0) {
            result = -EIO;
            break;
        }
        io_written(&number, sizeof number);
        snprintf(name, sizeof name, ".bide-%016llx", (unsigned long long)number);
        result = path_result(
            openat(directory, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
        if (result >= 0)
            unlinkat(directory, name, 0);
    }
    close(directory);
    return result;
}

ptrdiff_t bide_call_open_temporary_(bide_io_operation *operation)
{
    const bide_path_root *root = operation->arguments.open.root;
    const char *path = operation->arguments.open.path;
    int flags = operation->arguments.open.flags;
    unsigned mode = operation->arguments.open.mode;
#ifdef O_TMPFILE
    int fd = path_open(root, path, flags | O_TMPFILE, mode);
    return fd != -EOPNOTSUPP && fd != -EISDIR ? fd : path_open_unlinked(root, path, flags, mode);
#else
    return path_open_unlinked(root, path, flags, mode);
#endif
}
