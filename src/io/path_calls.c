/*
 * The calls of operations on names.
 *
 *     not restricted:  root's number, path ---------------------------------> the call
 *     restricted, an object:  openat2 of the path, as O_PATH ---------------> the call on that number
 *     restricted, a name:     openat2 of all but the last name, as O_PATH --> the call on it and that name
 *
 * 1. Under a restricted root no path is passed to a call but openat2, apart from a last name. A call
 *    that makes, removes or renames a name does not follow it, even if it is a symbolic link or, on
 *    Linux, ends with a slash. Other systems follow a link that ends with a slash. There the name is
 *    passed without its slashes, and what they demand is checked here. "." and ".." are refused by
 *    these calls.
 * 2. The number from openat2 refers to the same object, whatever is renamed meanwhile. So between it
 *    and the call nothing can lead out of the root. A call on an object is made by the number, or
 *    through /proc/self/fd, whose links lead to the open object, and are not followed further.
 * 3. openat2 fails with -EAGAIN if any name was changed while it looked at "..". It is tried again a
 *    number of times.
 * 4. Without openat2 the path is opened name by name instead (path_walk.c), which 1 to 3 hold for too.
 *
 * Other systems than Linux have no names of open objects in /proc. There an empty path, a link to what a restricted
 * root names, and a flag of a rename end with -ENOSYS. A temporary file has a name for a moment.
 *
 * Each call is made on a thread that may block; or the ring has an entry in its place if that is one
 * call: no path is restricted, or it is an open (uring_files.c).
 */
#define _GNU_SOURCE
#include "bide/path.h"

#include "calls.h"
#include "operation.h"
#include "path_walk.h"
#include "statx.h"

#include "../system/portable.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#include <sys/vfs.h>
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#else
#include <sys/mount.h>
#include <sys/param.h>
#define O_PATH        (O_RDONLY | O_NONBLOCK)
#define AT_EMPTY_PATH 0
#endif

/* openat2(2), which the kernel may still lack, or refuse. (0 can be tried on Linux.) */
#ifndef BIDE_HAS_OPENAT2
#ifdef __linux__
#define BIDE_HAS_OPENAT2 1
#else
#define BIDE_HAS_OPENAT2 0
#endif
#endif

enum {
    KNOWN_RESOLVE = BIDE_PATH_NO_XDEV | BIDE_PATH_NO_MAGICLINKS | BIDE_PATH_NO_SYMLINKS |
                    BIDE_PATH_BENEATH | BIDE_PATH_IN_ROOT,
    MAX_LOOKUPS = 128, /* 3 */
    PROC_NAME = 40,
};

static ptrdiff_t path_result(ptrdiff_t result)
{
    return result != -1 ? result : io_error();
}

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

/* ---- Opening ---- */

int bide_path_how_(uint64_t how[3], const bide_path_root *root, int flags, unsigned mode)
{
    if ((root->resolve & ~(unsigned)KNOWN_RESOLVE) != 0)
        return -EINVAL;
#ifndef __linux__
    (void)how, (void)flags, (void)mode;
    return 0;
#else
    how[0] = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_LARGEFILE);
    if ((flags & O_PATH) != 0)
        how[0] &= ~(uint64_t)O_LARGEFILE;
    how[1] = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? mode & 07777 : 0;
    how[2] = root->resolve;
    return 0;
#endif
}

/* A number, or a negative errno. */
static int path_open_restricted(const bide_path_root *root, const char *path, int flags,
                                unsigned mode)
{
    uint64_t how[3];
    bool walks = !BIDE_HAS_OPENAT2;
    int result = bide_path_how_(how, root, flags, mode);
    if (result != 0)
        return result;
    for (int i = 0; i < MAX_LOOKUPS; i++) {
#if BIDE_HAS_OPENAT2
        if (!walks) {
            result =
                (int)path_result(syscall(SYS_openat2, bide_path_fd_(root), path, how, sizeof how));
            walks = result == -ENOSYS;
        }
#endif
        if (walks) /* 4 */
            result = bide_path_walk_(bide_path_fd_(root), path, flags, mode, root->resolve);
        if (result != -EAGAIN) /* (after EINTR the caller looks whether it is to end) */
            break;
    }
    return result;
}

static int path_open(const bide_path_root *root, const char *path, int flags, unsigned mode)
{
    if (bide_path_is_restricted_(root))
        return path_open_restricted(root, path, flags, mode);
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
    for (int i = 0; i < MAX_LOOKUPS && result == -EEXIST; i++) {
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

/* ---- What a path names ---- */

/* An object is the entry `name` of `directory`, or, if the name is empty, `directory` itself. */
typedef struct path_place {
    int directory;
    int opened; /* to be closed; -1: nothing */
    const char *name;
    const char *whole;       /* with the slashes behind it */
    bool had_slash;          /* `name` is without the slashes that were behind it */
    char bare[NAME_MAX + 1]; /* that name */
} path_place;

static void path_set(path_place *place, int directory, int opened, const char *name)
{
    place->directory = directory;
    place->opened = opened;
    place->name = place->whole = name;
    place->had_slash = false;
}

static int path_find(path_place *place, const bide_path_root *root, const char *path, int flags)
{
    path_set(place, bide_path_fd_(root), -1, path);
#ifndef __linux__
    if (path[0] == '\0' && place->directory != AT_FDCWD)
        return -ENOSYS;
#endif
    if (path[0] == '\0')
        return place->directory == AT_FDCWD ? -ENOENT : place->directory < 0 ? -EBADF : 0;
    if (!bide_path_is_restricted_(root))
        return 0;
    int no_follow = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
    int fd = path_open_restricted(root, path, O_PATH | no_follow, 0);
    if (fd < 0)
        return fd;
    path_set(place, fd, fd, "");
    return 0;
}

/* Closes what is open. Returns `result`. */
static ptrdiff_t path_leave(path_place *place, ptrdiff_t result)
{
    if (place->opened >= 0)
        close(place->opened);
    place->opened = -1;
    return result;
}

/* A name that had a slash must be a directory. 0, -ENOTDIR, or an error of the look-up. */
static int path_check_directory(const path_place *place)
{
    struct stat about;
    if (fstatat(place->directory, place->name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return (int)io_error();
    return S_ISDIR(about.st_mode) ? 0 : -ENOTDIR;
}

/* Another name of what is open. */
static const char *path_in_proc(char *name, int fd)
{
    snprintf(name, PROC_NAME, "/proc/self/fd/%d", fd);
    return name;
}

static int path_find_of(path_place *place, const bide_io_operation *operation)
{
    return path_find(place, operation->arguments.path.root, operation->arguments.path.path,
                     operation->flags);
}

ptrdiff_t bide_call_statx_(bide_io_operation *operation)
{
    path_place place;
    int error = path_find_of(&place, operation);
    if (error != 0)
        return error;
    int flags = operation->flags | (place.name[0] == '\0' ? AT_EMPTY_PATH : 0);
    return path_leave(&place, path_result(io_statx(place.directory, place.name, flags,
                                                   operation->arguments.path.mode,
                                                   operation->arguments.path.about)));
}

ptrdiff_t bide_call_statfs_(bide_io_operation *operation)
{
    path_place place;
    int error = path_find_of(&place, operation);
    if (error != 0)
        return error;
    if (place.directory == AT_FDCWD)
        return path_result(statfs(place.name, operation->arguments.path.about));
    if (place.name[0] != '\0') {
        place.opened = openat(place.directory, place.name, O_PATH | O_CLOEXEC);
        if (place.opened < 0)
            return io_error();
        place.directory = place.opened;
    }
    return path_leave(&place,
                      path_result(fstatfs(place.directory, operation->arguments.path.about)));
}

ptrdiff_t bide_call_chmod_(bide_io_operation *operation)
{
    char proc[PROC_NAME];
    path_place place;
    mode_t mode = (mode_t)operation->arguments.path.mode;
    int error = path_find_of(&place, operation);
    if (error != 0)
        return error;
    if (place.name[0] != '\0')
        return path_result(fchmodat(place.directory, place.name, mode, operation->flags));
    ptrdiff_t result = path_result(fchmod(place.directory, mode));
    if (result == -EBADF) /* O_PATH */
        result = path_result(chmod(path_in_proc(proc, place.directory), mode));
    return path_leave(&place, result);
}

ptrdiff_t bide_call_chown_(bide_io_operation *operation)
{
    path_place place;
    int error = path_find_of(&place, operation);
    if (error != 0)
        return error;
#ifndef __linux__
    if (place.name[0] == '\0')
        return path_leave(&place,
                          path_result(fchown(place.directory, operation->arguments.path.mode,
                                             operation->arguments.path.group)));
#endif
    int flags = operation->flags | (place.name[0] == '\0' ? AT_EMPTY_PATH : 0);
    return path_leave(
        &place, path_result(fchownat(place.directory, place.name, operation->arguments.path.mode,
                                     operation->arguments.path.group, flags)));
}

ptrdiff_t bide_call_utimes_(bide_io_operation *operation)
{
    char proc[PROC_NAME];
    path_place place;
    const struct timespec *times = operation->arguments.path.about;
    int error = path_find_of(&place, operation);
    if (error != 0)
        return error;
    if (place.name[0] != '\0')
        return path_result(utimensat(place.directory, place.name, times, operation->flags));
    ptrdiff_t result = path_result(futimens(place.directory, times));
    if (result == -EBADF)
        result = path_result(utimensat(AT_FDCWD, path_in_proc(proc, place.directory), times, 0));
    return path_leave(&place, result);
}

#ifndef __linux__
static int path_find_name(path_place *place, const bide_path_root *root, const char *path,
                          char *parent);
#endif

/* ---- Texts ---- */

/* Adds the zero. A text that fills all `size` bytes may have been cut. */
static ptrdiff_t path_end_text(char *text, size_t size, ptrdiff_t length)
{
    if (length < 0)
        return io_error();
    io_written(text, (size_t)length);
    if ((size_t)length >= size)
        return -ERANGE;
    text[length] = '\0';
    return length;
}

ptrdiff_t bide_call_readlink_(bide_io_operation *operation)
{
    path_place place;
    char *buffer = operation->arguments.path.about;
    size_t size = operation->arguments.path.mode;
#ifdef __linux__
    int error = path_find(&place, operation->arguments.path.root, operation->arguments.path.path,
                          AT_SYMLINK_NOFOLLOW);
#else /* (a link cannot be opened) */
    char parent[PATH_MAX];
    int error = path_find_name(&place, operation->arguments.path.root,
                               operation->arguments.path.path, parent);
#endif
    if (error == 0 && place.had_slash)
        error = path_check_directory(&place);
    if (error != 0)
        return path_leave(&place, error);
    ptrdiff_t length =
        path_end_text(buffer, size, readlinkat(place.directory, place.name, buffer, size));
    if (length == -ENOENT && place.opened >= 0)
        length = -EINVAL; /* it was opened, and is no link */
    return path_leave(&place, length);
}

static ptrdiff_t path_resolve_text(const char *path, char *buffer, size_t size)
{
    char *text = realpath(path, NULL);
    if (text == NULL)
        return io_error();
    size_t length = strlen(text);
    if (length < size)
        memcpy(buffer, text, length + 1);
    free(text);
    return length < size ? (ptrdiff_t)length : -ERANGE;
}

ptrdiff_t bide_call_realpath_(bide_io_operation *operation)
{
    char proc[PROC_NAME];
    struct stat about;
    path_place place;
    char *buffer = operation->arguments.path.about;
    size_t size = operation->arguments.path.mode;
    const char *path = operation->arguments.path.path;
    int error = path_find_of(&place, operation);
    if (error != 0)
        return error;
    if (place.directory == AT_FDCWD)
        return path_resolve_text(path, buffer, size);
    if (place.name[0] != '\0') {
        place.opened = openat(place.directory, place.name, O_PATH | O_CLOEXEC);
        if (place.opened < 0)
            return io_error();
        place.directory = place.opened;
    }
#ifdef F_GETPATH
    char found[PATH_MAX];
    (void)proc;
    ptrdiff_t length =
        fcntl(place.directory, F_GETPATH, found) == 0 ? (ptrdiff_t)strlen(found) : -1;
    if (length > 0)
        memcpy(buffer, found, (size_t)length < size ? (size_t)length : size);
    length = path_end_text(buffer, size, length);
#else
    ptrdiff_t length =
        path_end_text(buffer, size, readlink(path_in_proc(proc, place.directory), buffer, size));
#endif
    if (length >= 0 && fstat(place.directory, &about) == 0 && about.st_nlink == 0)
        length = -ENOENT; /* it has no path any more */
    return path_leave(&place, length);
}

/* ---- Names ---- */

/* Takes the slashes from behind the last name, if the calls might follow a link because of them: 1. */
static int path_strip_slashes(path_place *place)
{
#if !BIDE_HAS_OPENAT2
    size_t size = strcspn(place->name, "/");
    if (place->name[size] == '\0')
        return 0;
    if (size >= sizeof place->bare)
        return -ENAMETOOLONG;
    memcpy(place->bare, place->name, size);
    place->bare[size] = '\0';
    place->name = place->bare;
    place->had_slash = true;
#else
    (void)place;
#endif
    return 0;
}

/* A new name that is no directory's must have no slash. 0, or -EEXIST, or an error of the look-up. */
static int path_check_new(const path_place *place)
{
    int error = place->had_slash ? path_check_directory(place) : 0;
    return place->had_slash && (error == 0 || error == -ENOTDIR) ? -EEXIST : error;
}

/* The directory of a name that is to be made, removed or changed: 1. `parent` has room for a path. */
static int path_find_name(path_place *place, const bide_path_root *root, const char *path,
                          char *parent)
{
    path_set(place, bide_path_fd_(root), -1, path);
    if (!bide_path_is_restricted_(root))
        return 0;
    size_t length = strnlen(path, PATH_MAX);
    if (length == PATH_MAX)
        return -ENAMETOOLONG;
    size_t last = length;
    while (last != 0 && path[last - 1] == '/')
        last--;
    while (last != 0 && path[last - 1] != '/')
        last--;
    memcpy(parent, path, last);
    parent[last] = '\0';
    int fd = path_open_restricted(root, last != 0 ? parent : ".", O_PATH | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    bool has_name = path[last] != '\0' && path[last] != '/';
    path_set(place, fd, fd, has_name || length == 0 ? path + last : ".");
    int error = path_strip_slashes(place);
    return error == 0 ? 0 : (int)path_leave(place, error);
}

ptrdiff_t bide_call_unlink_(bide_io_operation *operation)
{
    char parent[PATH_MAX];
    path_place place;
    int error = path_find_name(&place, operation->arguments.path.root,
                               operation->arguments.path.path, parent);
    if (error != 0)
        return error;
    if (place.had_slash && (operation->flags & AT_REMOVEDIR) == 0)
        error = path_check_directory(&place);
    if (error != 0)
        return path_leave(&place, error);
    return path_leave(&place, path_result(unlinkat(place.directory, place.name, operation->flags)));
}

ptrdiff_t bide_call_make_directory_(bide_io_operation *operation)
{
    char parent[PATH_MAX];
    path_place place;
    int error = path_find_name(&place, operation->arguments.path.root,
                               operation->arguments.path.path, parent);
    if (error != 0)
        return error;
    return path_leave(&place, path_result(mkdirat(place.directory, place.name,
                                                  (mode_t)operation->arguments.path.mode)));
}

ptrdiff_t bide_call_symlink_(bide_io_operation *operation)
{
    char parent[PATH_MAX];
    path_place place;
    int error = path_find_name(&place, operation->arguments.path.root,
                               operation->arguments.path.path, parent);
    if (error == 0)
        error = path_check_new(&place);
    if (error != 0)
        return path_leave(&place, error);
    return path_leave(&place, path_result(symlinkat(operation->arguments.path.about,
                                                    place.directory, place.name)));
}

/* With flags, which Linux alone has: it follows no link because of a slash. */
static int path_rename_with(const path_place *from, const path_place *to, unsigned flags)
{
#ifdef __linux__
    return (int)syscall(SYS_renameat2, from->directory, from->whole, to->directory, to->whole,
                        flags);
#else
    (void)from, (void)to, (void)flags;
    errno = ENOSYS;
    return -1;
#endif
}

ptrdiff_t bide_call_rename_(bide_io_operation *operation)
{
    char parent[PATH_MAX];
    path_place from, to;
    int error = path_find_name(&from, operation->arguments.names.root,
                               operation->arguments.names.path, parent);
    if (error != 0)
        return error;
    error = path_find_name(&to, operation->arguments.names.other_root,
                           operation->arguments.names.other, parent);
    if (error != 0)
        return path_leave(&from, error);
    unsigned flags = (unsigned)operation->flags;
    if (flags == 0 &&
        (from.had_slash || to.had_slash)) /* (a directory replaces nothing but a directory) */
        error = path_check_directory(&from);
    ptrdiff_t result =
        error != 0
            ? error
            : path_result(flags == 0 ? renameat(from.directory, from.name, to.directory, to.name)
                                     : path_rename_with(&from, &to, flags));
    path_leave(&from, 0);
    return path_leave(&to, result);
}

ptrdiff_t bide_call_link_(bide_io_operation *operation)
{
    char parent[PATH_MAX], proc[PROC_NAME];
    path_place from, to;
    int flags = operation->flags;
    int follow = (flags & AT_SYMLINK_FOLLOW) != 0 ? 0 : AT_SYMLINK_NOFOLLOW;
    if ((flags & ~AT_SYMLINK_FOLLOW) != 0)
        return -EINVAL;
#ifndef __linux__
    if (bide_path_is_restricted_(operation->arguments.names.root))
        return -ENOSYS;
#endif
    int error =
        path_find(&from, operation->arguments.names.root, operation->arguments.names.path, follow);
    if (error != 0)
        return error;
    error = path_find_name(&to, operation->arguments.names.other_root,
                           operation->arguments.names.other, parent);
    if (error != 0)
        return path_leave(&from, error);
    error = path_check_new(&to);
    ptrdiff_t result =
        error != 0
            ? error
            : path_result(from.name[0] != '\0'
                              ? linkat(from.directory, from.name, to.directory, to.name, flags)
                              : linkat(AT_FDCWD, path_in_proc(proc, from.directory), to.directory,
                                       to.name, AT_SYMLINK_FOLLOW));
    path_leave(&from, 0);
    return path_leave(&to, result);
}
