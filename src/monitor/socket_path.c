/*
 * 1. The mode is set on the socket before it is bound, so the file is made with it: there is no moment
 *    in which others could connect. (Linux takes the file's mode from the socket, less the umask.)
 * 2. A file that nobody listens at is left over. It is replaced under a lock on its directory, so of
 *    two that find it one makes its own and the other finds that.
 * 3. The directory below /tmp could have been made by anybody: it is taken only if it is a directory,
 *    this user's, and no one else may go into it. Below XDG_RUNTIME_DIR all is this user's.
 */
#define _GNU_SOURCE
#include "socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 8 };

/* ---- The path ---- */

/* 3 */
static int make_directory(const char *path)
{
    struct stat about;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -errno;
    if (lstat(path, &about) != 0)
        return -errno;
    bool is_own = S_ISDIR(about.st_mode) && about.st_uid == geteuid() && (about.st_mode & 077) == 0;
    return is_own ? 0 : -EPERM;
}

static int set_path(monitor_place *place, const char *path)
{
    size_t length = strlen(path);
    if (length == 0)
        return -EINVAL;
    if (length >= sizeof place->path)
        return -ENAMETOOLONG;
    memcpy(place->path, path, length + 1);
    return 0;
}

static int set_default_path(monitor_place *place)
{
    char directory[sizeof place->path];
    char path[sizeof place->path + 16];
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    int length = runtime != NULL && runtime[0] == '/'
                     ? snprintf(directory, sizeof directory, "%s/bide", runtime)
                     : snprintf(directory, sizeof directory, "/tmp/bide-%u", (unsigned)geteuid());
    if (length < 0 || (size_t)length >= sizeof directory)
        return -ENAMETOOLONG;
    int error = make_directory(directory);
    if (error != 0)
        return error;
    snprintf(path, sizeof path, "%s/%d", directory, (int)getpid());
    return set_path(place, path);
}

static int find_path(monitor_place *place, const char *path)
{
    if (path == NULL)
        path = secure_getenv("BIDE_MONITOR");
    return path != NULL && path[0] != '\0' ? set_path(place, path) : set_default_path(place);
}

/* ---- The file ---- */

static struct sockaddr_un address_of(const monitor_place *place)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, place->path, sizeof address.sun_path);
    return address;
}

/* 2. 0: nobody listens at what stands there; or a negative errno. */
static int look_at_left_over(const monitor_place *place)
{
    struct sockaddr_un address = address_of(place);
    struct stat about;
    if (lstat(place->path, &about) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(about.st_mode) || about.st_uid != geteuid())
        return -EEXIST;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int failed = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    close(fd);
    return failed == ECONNREFUSED || failed == ENOENT ? 0 : -EADDRINUSE;
}

/*
 * Takes the lock of a directory of this user's. Others could hold the lock of theirs for ever, and
 * nobody replaces files there but their owner.
 */
static int lock_if_own(int fd)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return -errno;
    while (about.st_uid == geteuid() && flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR)
            return -errno;
    }
    return 0;
}

/*
 * The directory that the path is in, locked; it is let go by closing it. Or a negative errno; -EACCES
 * says that it cannot be read.
 */
static int lock_directory(const monitor_place *place)
{
    char directory[sizeof place->path];
    memcpy(directory, place->path, sizeof directory);
    char *slash = strrchr(directory, '/');
    if (slash == NULL)
        strcpy(directory, ".");
    else
        slash[slash == directory] = '\0';
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int error = lock_if_own(fd);
    if (error != 0)
        close(fd);
    return error != 0 ? error : fd;
}

/* 1 */
static int make_file(monitor_place *place, int fd)
{
    struct sockaddr_un address = address_of(place);
    struct stat about;
    if (fchmod(fd, 0600) != 0)
        return -errno;
    if (unlink(place->path) != 0 && errno != ENOENT)
        return -errno;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return -errno;
    if (lstat(place->path, &about) != 0 || listen(fd, BACKLOG) != 0) {
        int error = -errno;
        unlink(place->path);
        return error;
    }
    place->device = about.st_dev;
    place->file = about.st_ino;
    return 0;
}

int bide_monitor_socket_open_(monitor_place *place, const char *path)
{
    int error = find_path(place, path);
    if (error != 0)
        return error;
    int directory = lock_directory(place);
    if (directory < 0 && directory != -EACCES)
        return directory;
    int fd = -1;
    error = look_at_left_over(place);
    if (error == 0) {
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        error = fd < 0 ? -errno : make_file(place, fd);
    }
    if (directory >= 0)
        close(directory);
    if (error != 0 && fd >= 0)
        close(fd);
    return error != 0 ? error : fd;
}

void bide_monitor_socket_remove_(const monitor_place *place)
{
    struct stat about;
    if (lstat(place->path, &about) == 0 && about.st_dev == place->device &&
        about.st_ino == place->file)
        unlink(place->path);
}
