/*
 * Listening at a path of the file system.
 *
 * 1. The mode is set on the socket before it is bound, and Linux takes the file's mode from the socket, less the umask.
 *    So the file never exists with a mode that lets other users connect.
 * 2. A socket without a listener is a leftover. It is examined and replaced under a lock of its directory, also until the
 *    new socket listens. So if several processes find one leftover, one replaces it, and the others find its listener.
 * 3. Another user's directory is not locked, because its owner could hold the lock forever. Another process may hold the
 *    lock of this user's directory, too, if it may read it. So a wait for the lock is bounded.
 * 4. The descriptor `file` refers to the socket's file until the removal. A file that a descriptor refers to keeps its
 *    number, so no later file at the path has the same number of the same device.
 */
#define _GNU_SOURCE
#include "bide/socket.h"

#include "../system/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LISTEN_PATH_WAITS = 200, LISTEN_PATH_PAUSE = 10000000 }; /* 3 */

BIDE_STATIC_ASSERT(sizeof((bide_listen_path *)0)->path == sizeof((struct sockaddr_un *)0)->sun_path,
                   "a path fits an address");

static int listen_path_new_socket(void)
{
    int fd = portable_socket(AF_UNIX, SOCK_STREAM, 0, true);
    return fd >= 0 ? fd : -errno;
}

static void listen_path_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Opens the path's directory, unless it is another user's, or cannot be read: 3 */
static int listen_path_open_directory(const char *path)
{
    char directory[sizeof((struct sockaddr_un *)0)->sun_path];
    struct stat about;
    strcpy(directory, path);
    char *slash = strrchr(directory, '/');
    if (slash == NULL)
        strcpy(directory, ".");
    else
        slash[slash == directory] = '\0';
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &about) != 0 || about.st_uid != geteuid()))
        listen_path_close(&fd);
    return fd;
}

int bide_listen_path_init(bide_listen_path *where, const char *path)
{
    size_t length = strlen(path);
    where->directory = where->file = -1;
    where->waits = LISTEN_PATH_WAITS;
    where->path[0] = '\0';
    if (length == 0)
        return -EINVAL;
    if (length >= sizeof where->path)
        return -ENAMETOOLONG;
    memcpy(where->path, path, length + 1);
    where->directory = listen_path_open_directory(path);
    return 0;
}

/* Returns false if another process holds the lock. True: it was taken, or there is none. */
static bool listen_path_lock(bide_listen_path *where)
{
    const struct timespec pause = {0, LISTEN_PATH_PAUSE};
    while (where->directory >= 0 && flock(where->directory, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return true;
        if (where->waits == 0)
            return false;
        where->waits--;
        nanosleep(&pause, NULL);
    }
    return true;
}

static void listen_path_unlock(const bide_listen_path *where)
{
    if (where->directory >= 0)
        (void)flock(where->directory, LOCK_UN);
}

/* Returns 0 if the path is free or has a leftover: 2 */
static int listen_path_check(const struct sockaddr_un *address)
{
    struct stat about;
    if (lstat(address->sun_path, &about) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(about.st_mode) || about.st_uid != geteuid())
        return -EEXIST;
    int fd = listen_path_new_socket();
    if (fd < 0)
        return fd;
    int error = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
    close(fd);
    return error == ECONNREFUSED || error == ENOENT ? 0 : -EADDRINUSE;
}

static int listen_path_bind(bide_listen_path *where, int fd, mode_t mode, int backlog)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, where->path, sizeof address.sun_path);
    int status = listen_path_check(&address);
    if (status < 0)
        return status;
    if (fchmod(fd, mode) != 0 || (unlink(where->path) != 0 && errno != ENOENT) || /* 1 */
        bind(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        return -errno;
    where->file = open(where->path, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* 4 */
    if (where->file < 0)
        return -errno; /* (a leftover stays: whose file is there is not known) */
    if (listen(fd, backlog) == 0)
        return 0;
    status = -errno;
    listen_path_close(&where->file);
    unlink(where->path);
    return status;
}

int bide_listen_path_open(bide_listen_path *where, unsigned mode, int backlog)
{
    if (where->path[0] == '\0' || where->file >= 0)
        return -EINVAL;
    int fd = listen_path_new_socket();
    if (fd < 0)
        return fd;
    bool is_locked = listen_path_lock(where);
    int status = listen_path_bind(where, fd, (mode_t)mode, backlog);
    if (is_locked)
        listen_path_unlock(where);
    if (status < 0)
        close(fd);
    return status < 0 ? status : fd;
}

int bide_listen_path_adopt(bide_listen_path *where)
{
    struct stat about;
    if (where->path[0] == '\0' || where->file >= 0)
        return -EINVAL;
    where->file = open(where->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (where->file < 0)
        return -errno;
    if (fstat(where->file, &about) == 0 && S_ISSOCK(about.st_mode) && about.st_uid == geteuid())
        return 0;
    listen_path_close(&where->file);
    return -EEXIST;
}

void bide_listen_path_remove(bide_listen_path *where)
{
    struct stat own, about;
    if (where->file >= 0 && listen_path_lock(where)) {
        if (fstat(where->file, &own) == 0 && lstat(where->path, &about) == 0 &&
            about.st_dev == own.st_dev && about.st_ino == own.st_ino)
            unlink(where->path);
        listen_path_unlock(where);
    }
    bide_listen_path_destroy(where);
}

void bide_listen_path_destroy(bide_listen_path *where)
{
    listen_path_close(&where->file);
    listen_path_close(&where->directory);
}
