/*
 * The path that the monitor listens at.
 *
 * 1. The mode is set on the socket before it is bound, and Linux takes the file's mode from the
 *    socket, less the umask. So the file never exists with a mode that lets other users connect.
 * 2. A file without a listener is a leftover, and is replaced under a lock on its directory. So if two
 *    processes find the same leftover, one replaces it, and the other finds the new file.
 * 3. Any user could have created the directory below /tmp. It is used only if it is a directory, is
 *    this user's, and is closed to all others. All below XDG_RUNTIME_DIR is this user's.
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

enum { MONITOR_BACKLOG = 8 };

/* ---- The path ---- */

/* Creates the directory, or checks an existing one: 3. */
static int socket_path_make_directory(const char *path)
{
    struct stat about;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -errno;
    if (lstat(path, &about) != 0)
        return -errno;
    bool is_own = S_ISDIR(about.st_mode) && about.st_uid == geteuid() && (about.st_mode & 077) == 0;
    return is_own ? 0 : -EPERM;
}

static int socket_path_set(monitor_socket_path *where, const char *path)
{
    size_t length = strlen(path);
    if (length == 0)
        return -EINVAL;
    if (length >= sizeof where->path)
        return -ENAMETOOLONG;
    memcpy(where->path, path, length + 1);
    return 0;
}

static int socket_path_set_default(monitor_socket_path *where)
{
    char directory[sizeof where->path];
    char path[sizeof where->path + 16];
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    int length = runtime != NULL && runtime[0] == '/'
                     ? snprintf(directory, sizeof directory, "%s/bide", runtime)
                     : snprintf(directory, sizeof directory, "/tmp/bide-%u", (unsigned)geteuid());
    if (length < 0 || (size_t)length >= sizeof directory)
        return -ENAMETOOLONG;
    int error = socket_path_make_directory(directory);
    if (error != 0)
        return error;
    snprintf(path, sizeof path, "%s/%d", directory, (int)getpid());
    return socket_path_set(where, path);
}

static int socket_path_find(monitor_socket_path *where, const char *path)
{
    if (path == NULL)
        path = secure_getenv("BIDE_MONITOR");
    return path != NULL && path[0] != '\0' ? socket_path_set(where, path)
                                           : socket_path_set_default(where);
}

/* ---- The file ---- */

static struct sockaddr_un socket_path_address(const monitor_socket_path *where)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, where->path, sizeof address.sun_path);
    return address;
}

/* 0 if the path is free or has a leftover: 2. Otherwise a negative errno. */
static int socket_path_check_leftover(const monitor_socket_path *where)
{
    struct sockaddr_un address = socket_path_address(where);
    struct stat about;
    if (lstat(where->path, &about) != 0)
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
 * Locks a directory of this user's. Another user's is not locked, because that user could hold the
 * lock forever; and in there nobody but the owner of a file replaces it.
 */
static int socket_path_lock_if_own(int fd)
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
 * Opens and locks the directory of the path. Closing it unlocks it. A negative errno on failure;
 * -EACCES: it cannot be read.
 */
static int socket_path_lock_directory(const monitor_socket_path *where)
{
    char directory[sizeof where->path];
    memcpy(directory, where->path, sizeof directory);
    char *slash = strrchr(directory, '/');
    if (slash == NULL)
        strcpy(directory, ".");
    else
        slash[slash == directory] = '\0';
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int error = socket_path_lock_if_own(fd);
    if (error != 0)
        close(fd);
    return error != 0 ? error : fd;
}

/* Binds the socket and listens: 1. */
static int socket_path_bind(monitor_socket_path *where, int fd)
{
    struct sockaddr_un address = socket_path_address(where);
    struct stat about;
    if (fchmod(fd, 0600) != 0)
        return -errno;
    if (unlink(where->path) != 0 && errno != ENOENT)
        return -errno;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return -errno;
    if (lstat(where->path, &about) != 0 || listen(fd, MONITOR_BACKLOG) != 0) {
        int error = -errno;
        unlink(where->path);
        return error;
    }
    where->device = about.st_dev;
    where->file = about.st_ino;
    return 0;
}

int bide_monitor_socket_open_(monitor_socket_path *where, const char *path)
{
    int error = socket_path_find(where, path);
    if (error != 0)
        return error;
    int directory = socket_path_lock_directory(where);
    if (directory < 0 && directory != -EACCES)
        return directory;
    int fd = -1;
    error = socket_path_check_leftover(where);
    if (error == 0) {
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        error = fd < 0 ? -errno : socket_path_bind(where, fd);
    }
    if (directory >= 0)
        close(directory);
    if (error != 0 && fd >= 0)
        close(fd);
    return error != 0 ? error : fd;
}

void bide_monitor_socket_remove_(const monitor_socket_path *where)
{
    struct stat about;
    if (lstat(where->path, &about) == 0 && about.st_dev == where->device &&
        about.st_ino == where->file)
        unlink(where->path);
}
