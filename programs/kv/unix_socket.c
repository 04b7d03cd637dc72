/* Creates and removes the server's Unix socket. unix_socket.h has the contract. */
#define _GNU_SOURCE
#include "unix_socket.h"

#include "../common/listening.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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
    unix_socket->file = open(address->sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (unix_socket->file < 0 || listen(fd, backlog) != 0) {
        status = -errno;
        unlink(address->sun_path);
    }
    return status;
}

void unix_socket_init(struct unix_socket *unix_socket, const char *path)
{
    char directory[sizeof((struct sockaddr_un *)0)->sun_path];
    *unix_socket = (struct unix_socket){path, -1, -1};
    if (strlen(path) >= sizeof directory)
        return;
    strcpy(directory, path);
    char *slash = strrchr(directory, '/');
    if (slash == NULL)
        strcpy(directory, ".");
    else
        slash[slash == directory] = '\0';
    unix_socket->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* False: another one has the lock. (Not all directories can be read, or locked. Then there is none.) */
static bool lock_directory(const struct unix_socket *unix_socket)
{
    return unix_socket->directory < 0 || flock(unix_socket->directory, LOCK_EX | LOCK_NB) == 0 ||
           (errno != EWOULDBLOCK && errno != EINTR);
}

static void unlock_directory(const struct unix_socket *unix_socket)
{
    if (unix_socket->directory >= 0)
        (void)flock(unix_socket->directory, LOCK_UN);
}

static int try_to_open(struct unix_socket *unix_socket, const struct sockaddr_un *address,
                       mode_t mode, int backlog)
{
    int fd = new_socket();
    int status = fd >= 0 ? bind_and_listen(unix_socket, fd, address, mode, backlog) : fd;
    if (fd >= 0 && status < 0)
        close(fd);
    return status < 0 ? status : fd;
}

int unix_socket_open(struct unix_socket *unix_socket, mode_t mode, int backlog)
{
    const struct timespec pause = {0, LISTEN_PAUSE};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(unix_socket->path);
    if (length == 0)
        return -ENOENT;
    if (length >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, unix_socket->path, length);
    /* (a server that was just killed may listen a moment longer; a stranger may have the lock for ever) */
    for (int tries = 1;; tries++) {
        bool is_locked = lock_directory(unix_socket);
        int status = -EAGAIN;
        if (is_locked || tries == LISTEN_TRIES)
            status = try_to_open(unix_socket, &address, mode, backlog);
        if (is_locked)
            unlock_directory(unix_socket);
        if ((status != -EADDRINUSE && status != -EAGAIN) || tries == LISTEN_TRIES)
            return status;
        nanosleep(&pause, NULL);
    }
}

void unix_socket_remove(struct unix_socket *unix_socket)
{
    struct stat own, about;
    if (lock_directory(unix_socket)) {
        if (fstat(unix_socket->file, &own) == 0 && lstat(unix_socket->path, &about) == 0 &&
            about.st_dev == own.st_dev && about.st_ino == own.st_ino)
            unlink(unix_socket->path);
        unlock_directory(unix_socket);
    }
    close(unix_socket->file);
    if (unix_socket->directory >= 0)
        close(unix_socket->directory);
    unix_socket->file = unix_socket->directory = -1;
}
