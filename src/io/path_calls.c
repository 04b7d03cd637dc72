/*
 * The calls of operations on names.
 *
 *     not restricted:  root's number, path ---------------------------------> the call
 *     restricted, an object:  openat2 of the path, as O_PATH ---------------> the call on that number
 *     restricted, a name:     openat2 of all but the last name, as O_PATH --> the call on it and that name
 *
 * path_open.c opens, and path_place.c finds what the call gets; why nothing leads out of the root is there. A call
 * on an object is made by the number, or through /proc/self/fd, whose links lead to the open object, and are not
 * followed further.
 *
 * Other systems than Linux have no names of open objects in /proc. There an empty path, a link to what a restricted
 * root names, and a flag of a rename end with -ENOSYS.
 *
 * Each call is made on a thread that may block; or the ring has an entry in its place if that is one
 * call: no path is restricted, or it is an open (uring_files.c).
 */
#define _GNU_SOURCE
#include "path_place.h"
#include "statx.h"

#include "../system/portable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#include <sys/vfs.h>
#else
#include <sys/mount.h>
#include <sys/param.h>
#endif

enum { PROC_NAME = 40 };

/* ---- Objects ---- */

/* Another name of what is open. */
static const char *path_in_proc(char *name, int fd)
{
    snprintf(name, PROC_NAME, "/proc/self/fd/%d", fd);
    return name;
}

static int path_find_of(path_place *place, const bide_io_operation *operation)
{
    return bide_path_find_(place, operation->arguments.path.root, operation->arguments.path.path,
                           operation->flags);
}

ptrdiff_t bide_call_statx_(bide_io_operation *operation)
{
    path_place place;
    int error = path_find_of(&place, operation);
    if (error != 0)
        return error;
    int flags = operation->flags | (place.name[0] == '\0' ? AT_EMPTY_PATH : 0);
    return bide_path_leave_(&place, path_result(io_statx(place.directory, place.name, flags,
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
    return bide_path_leave_(&place,
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
    return bide_path_leave_(&place, result);
}

ptrdiff_t bide_call_chown_(bide_io_operation *operation)
{
    path_place place;
    int error = path_find_of(&place, operation);
    if (error != 0)
        return error;
#ifndef __linux__
    if (place.name[0] == '\0')
        return bide_path_leave_(&place,
                                path_result(fchown(place.directory, operation->arguments.path.mode,
                                                   operation->arguments.path.group)));
#endif
    int flags = operation->flags | (place.name[0] == '\0' ? AT_EMPTY_PATH : 0);
    return bide_path_leave_(
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
    return bide_path_leave_(&place, result);
}

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
    int error = bide_path_find_(&place, operation->arguments.path.root,
                                operation->arguments.path.path, AT_SYMLINK_NOFOLLOW);
#else /* (a link cannot be opened) */
    char parent[PATH_MAX];
    int error = bide_path_find_name_(&place, operation->arguments.path.root,
                                     operation->arguments.path.path, parent);
#endif
    if (error == 0 && place.had_slash)
        error = bide_path_check_directory_(&place);
    if (error != 0)
        return bide_path_leave_(&place, error);
    ptrdiff_t length =
        path_end_text(buffer, size, readlinkat(place.directory, place.name, buffer, size));
    if (length == -ENOENT && place.opened >= 0)
        length = -EINVAL; /* it was opened, and is no link */
    return bide_path_leave_(&place, length);
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
    return bide_path_leave_(&place, length);
}

/* ---- Names ---- */

ptrdiff_t bide_call_unlink_(bide_io_operation *operation)
{
    char parent[PATH_MAX];
    path_place place;
    int error = bide_path_find_name_(&place, operation->arguments.path.root,
                                     operation->arguments.path.path, parent);
    if (error != 0)
        return error;
    if (place.had_slash && (operation->flags & AT_REMOVEDIR) == 0)
        error = bide_path_check_directory_(&place);
    if (error != 0)
        return bide_path_leave_(&place, error);
    return bide_path_leave_(&place,
                            path_result(unlinkat(place.directory, place.name, operation->flags)));
}

ptrdiff_t bide_call_make_directory_(bide_io_operation *operation)
{
    char parent[PATH_MAX];
    path_place place;
    int error = bide_path_find_name_(&place, operation->arguments.path.root,
                                     operation->arguments.path.path, parent);
    if (error != 0)
        return error;
    return bide_path_leave_(&place, path_result(mkdirat(place.directory, place.name,
                                                        (mode_t)operation->arguments.path.mode)));
}

ptrdiff_t bide_call_symlink_(bide_io_operation *operation)
{
    char parent[PATH_MAX];
    path_place place;
    int error = bide_path_find_name_(&place, operation->arguments.path.root,
                                     operation->arguments.path.path, parent);
    if (error == 0)
        error = bide_path_check_new_(&place);
    if (error != 0)
        return bide_path_leave_(&place, error);
    return bide_path_leave_(&place, path_result(symlinkat(operation->arguments.path.about,
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
    int error = bide_path_find_name_(&from, operation->arguments.names.root,
                                     operation->arguments.names.path, parent);
    if (error != 0)
        return error;
    error = bide_path_find_name_(&to, operation->arguments.names.other_root,
                                 operation->arguments.names.other, parent);
    if (error != 0)
        return bide_path_leave_(&from, error);
    unsigned flags = (unsigned)operation->flags;
    if (flags == 0 &&
        (from.had_slash || to.had_slash)) /* (a directory replaces nothing but a directory) */
        error = bide_path_check_directory_(&from);
    ptrdiff_t result =
        error != 0
            ? error
            : path_result(flags == 0 ? renameat(from.directory, from.name, to.directory, to.name)
                                     : path_rename_with(&from, &to, flags));
    bide_path_leave_(&from, 0);
    return bide_path_leave_(&to, result);
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
    int error = bide_path_find_(&from, operation->arguments.names.root,
                                operation->arguments.names.path, follow);
    if (error != 0)
        return error;
    error = bide_path_find_name_(&to, operation->arguments.names.other_root,
                                 operation->arguments.names.other, parent);
    if (error != 0)
        return bide_path_leave_(&from, error);
    error = bide_path_check_new_(&to);
    ptrdiff_t result =
        error != 0
            ? error
            : path_result(from.name[0] != '\0'
                              ? linkat(from.directory, from.name, to.directory, to.name, flags)
                              : linkat(AT_FDCWD, path_in_proc(proc, from.directory), to.directory,
                                       to.name, AT_SYMLINK_FOLLOW));
    bide_path_leave_(&from, 0);
    return bide_path_leave_(&to, result);
}
