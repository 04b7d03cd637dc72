/* Creates and removes the server's Unix socket. unix_socket.h has the contract. */
#define _GNU_SOURCE
#include "unix_socket.h"

#include "../common/listening.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int new_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd >= 0 ? fd : -errno;
}

/* Returns 0 if the path is free or a leftover, which may be removed. */
static int check_leftover(const struct sockaddr_un *address)
{
    struct stat about;
    if (lstat(address->sun_path, &about) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(about.st_mode) || about.st_uid != geteuid())
        return -EEXIST;
    int fd = new_socket();
    if (fd < 0)
        return fd;
    int error = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
    close(fd);
    return error == ECONNREFUSED || error == ENOENT ? 0 : -EADDRINUSE;
}

/* In place of a leftover. (The mode of the descriptor is that of the file from its beginning.) */
static int bind_and_listen(struct unix_socket *unix_socket, int fd,
                           const struct sockaddr_un *address, mode_t mode, int backlog)
{
    struct stat about;
    int status = check_leftover(address);
    if (status < 0)
        return status;
    if (fchmod(fd, mode) != 0 || (unlink(address->sun_path) != 0 && errno != ENOENT))
        return -errno;
    mode_t mask = umask(0);
    status = bind(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : -errno;
    umask(mask);
    if (status < 0)
        return status;
    if (lstat(address->sun_path, &about) != 0 || listen(fd, backlog) != 0) {
        status = -errno;
        unlink(address->sun_path);
        return status;
    }
    unix_socket->device = about.st_dev;
    unix_socket->file = about.st_ino;
    return 0;
}

/*
 * Locks the directory, so that of two servers that start only one finds a leftover. Returns its descriptor, or a
 * negative errno: -EAGAIN while another one has the lock, -EACCES if the directory cannot be read.
 */
static int lock_directory(const struct sockaddr_un *address)
{
    char directory[sizeof address->sun_path];
    memcpy(directory, address->sun_path, sizeof directory);
    char *slash = strrchr(directory, '/');
    if (slash == NULL)
        strcpy(directory, ".");
    else
        slash[slash == directory] = '\0';
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    int error = errno == EINTR ? EAGAIN : errno;
    close(fd);
    return -error;
}

static int try_to_open(struct unix_socket *unix_socket, const struct sockaddr_un *address,
                       mode_t mode, int backlog)
{
    int directory = lock_directory(address);
    if (directory < 0 && directory != -EACCES)
        return directory;
    int fd = new_socket();
    int status = fd >= 0 ? bind_and_listen(unix_socket, fd, address, mode, backlog) : fd;
    if (fd >= 0 && status < 0)
        close(fd);
    if (directory >= 0)
        close(directory);
    return status < 0 ? status : fd;
}

int unix_socket_open(struct unix_socket *unix_socket, const char *path, mode_t mode, int backlog)
{
    const struct timespec pause = {0, LISTEN_PAUSE};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length == 0)
        return -ENOENT;
    if (length >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, length);
    unix_socket->path = path;
    /* (a server that was just killed may listen a moment longer) */
    for (int tries = 1;; tries++) {
        int status = try_to_open(unix_socket, &address, mode, backlog);
        if ((status != -EADDRINUSE && status != -EAGAIN) || tries == LISTEN_TRIES)
            return status;
        nanosleep(&pause, NULL);
    }
}

void unix_socket_remove(const struct unix_socket *unix_socket)
{
    struct stat about;
    if (lstat(unix_socket->path, &about) == 0 && about.st_dev == unix_socket->device &&
        about.st_ino == unix_socket->file)
        unlink(unix_socket->path);
}
