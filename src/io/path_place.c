/*
 * Finds the object or the name of a path under a root.
 *
 * 1. Under a restricted root no path is passed to a call but openat2, apart from a last name. A call
 *    that makes, removes or renames a name does not follow it, even if it is a symbolic link or, on
 *    Linux, ends with a slash. Other systems follow a link that ends with a slash. There the name is
 *    passed without its slashes, and what they demand is checked here. "." and ".." are refused by
 *    these calls.
 * 2. The number from openat2 refers to the same object, whatever is renamed meanwhile. So between it
 *    and the call nothing can lead out of the root.
 */
#define _GNU_SOURCE
#include "path_place.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void path_set(path_place *place, int directory, int opened, const char *name)
{
    place->directory = directory;
    place->opened = opened;
    place->name = place->whole = name;
    place->had_slash = false;
}

int bide_path_find_(path_place *place, const bide_path_root *root, const char *path, int flags)
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
    int fd = bide_path_open_(place->directory, path, O_PATH | no_follow, 0, root->resolve);
    if (fd < 0)
        return fd;
    path_set(place, fd, fd, "");
    return 0;
}

ptrdiff_t bide_path_leave_(path_place *place, ptrdiff_t result)
{
    if (place->opened >= 0)
        close(place->opened);
    place->opened = -1;
    return result;
}

int bide_path_check_directory_(const path_place *place)
{
    struct stat about;
    if (fstatat(place->directory, place->name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return (int)io_error();
    return S_ISDIR(about.st_mode) ? 0 : -ENOTDIR;
}

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

int bide_path_check_new_(const path_place *place)
{
    int error = place->had_slash ? bide_path_check_directory_(place) : 0;
    return place->had_slash && (error == 0 || error == -ENOTDIR) ? -EEXIST : error;
}

int bide_path_find_name_(path_place *place, const bide_path_root *root, const char *path,
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
    int fd = bide_path_open_(place->directory, last != 0 ? parent : ".", O_PATH | O_DIRECTORY, 0,
                             root->resolve);
    if (fd < 0)
        return fd;
    bool has_name = path[last] != '\0' && path[last] != '/';
    path_set(place, fd, fd, has_name || length == 0 ? path + last : ".");
    int error = path_strip_slashes(place);
    return error == 0 ? 0 : (int)bide_path_leave_(place, error);
}
