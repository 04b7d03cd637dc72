/*
 * Calls that some POSIX systems lack, or have under other names: macOS, FreeBSD. On Linux each function is the
 * call itself.
 *
 * Without accept4, pipe2 and SOCK_CLOEXEC a descriptor is made close-on-exec by a second call. A process that
 * another thread forks and executes between the two has the descriptor open.
 */
#ifndef BIDE_SYSTEM_PORTABLE_H
#define BIDE_SYSTEM_PORTABLE_H

#include "bide/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* accept4, pipe2, SOCK_CLOEXEC and SOCK_NONBLOCK. (0 can be tried on Linux.) */
#ifndef BIDE_HAS_ACCEPT4
#ifdef __APPLE__
#define BIDE_HAS_ACCEPT4 0
#else
#define BIDE_HAS_ACCEPT4 1
#endif
#endif

/* Flags and errors: with 0 a poll reports no more, and a flag asks for nothing. */
#ifndef POLLRDHUP
#define POLLRDHUP 0
#endif
#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif
#ifndef EREMOTEIO
#define EREMOTEIO EBADRPC /* 121 on Linux; the BSDs have a number of the same kind */
#endif

/* The times of a struct stat. */
#ifdef __APPLE__
#define PORTABLE_MTIME(about) ((about)->st_mtimespec)
#define PORTABLE_CTIME(about) ((about)->st_ctimespec)
#else
#define PORTABLE_MTIME(about) ((about)->st_mtim)
#define PORTABLE_CTIME(about) ((about)->st_ctim)
#endif

/* Closes `fd`, and keeps errno. Returns -1. */
BIDE_INLINE int portable_give_up(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

/* Sets the flags of a new descriptor. Returns it; or -1 with errno, and it is closed. */
BIDE_INLINE int portable_set_flags(int fd, bool nonblocking)
{
    if (fd < 0)
        return -1;
    int flags = nonblocking ? fcntl(fd, F_GETFL) : 0;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || flags < 0 ||
        (nonblocking && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0))
        return portable_give_up(fd);
    return fd;
}

/*
 * Sets the flags of a new socket, and with SO_NOSIGPIPE that its sends raise no SIGPIPE, where MSG_NOSIGNAL may
 * be missing. As portable_set_flags.
 */
BIDE_INLINE int portable_set_socket_flags(int fd, bool nonblocking)
{
    fd = portable_set_flags(fd, nonblocking);
#ifdef SO_NOSIGPIPE
    static const int yes = 1;
    /* (EINVAL: of an accepted connection that is closed already) */
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes) != 0 &&
        errno != EINVAL)
        return portable_give_up(fd);
#endif
    return fd;
}

/* As pipe2 with O_CLOEXEC, and O_NONBLOCK if `nonblocking`. */
BIDE_INLINE int portable_pipe(int ends[2], bool nonblocking)
{
#if BIDE_HAS_ACCEPT4
    return pipe2(ends, O_CLOEXEC | (nonblocking ? O_NONBLOCK : 0));
#else
    if (pipe(ends) != 0)
        return -1;
    if (portable_set_flags(ends[0], nonblocking) < 0)
        return portable_give_up(ends[1]);
    if (portable_set_flags(ends[1], nonblocking) < 0)
        return portable_give_up(ends[0]);
    return 0;
#endif
}

/* As socket with SOCK_CLOEXEC, and SOCK_NONBLOCK if `nonblocking`. */
BIDE_INLINE int portable_socket(int family, int type, int protocol, bool nonblocking)
{
#if BIDE_HAS_ACCEPT4
    return socket(family, type | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0), protocol);
#else
    return portable_set_socket_flags(socket(family, type, protocol), nonblocking);
#endif
}

/* As socketpair of AF_UNIX with the same. */
BIDE_INLINE int portable_socket_pair(int type, int ends[2], bool nonblocking)
{
#if BIDE_HAS_ACCEPT4
    return socketpair(AF_UNIX, type | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0), 0, ends);
#else
    if (socketpair(AF_UNIX, type, 0, ends) != 0)
        return -1;
    if (portable_set_socket_flags(ends[0], nonblocking) < 0)
        return portable_give_up(ends[1]);
    if (portable_set_socket_flags(ends[1], nonblocking) < 0)
        return portable_give_up(ends[0]);
    return 0;
#endif
}

/* As accept4 with SOCK_CLOEXEC and SOCK_NONBLOCK. */
BIDE_INLINE int portable_accept(int listener, struct sockaddr *peer, socklen_t *length)
{
#if BIDE_HAS_ACCEPT4
    return accept4(listener, peer, length, SOCK_CLOEXEC | SOCK_NONBLOCK);
#else
    return portable_set_socket_flags(accept(listener, peer, length), true);
#endif
}

/* As getenv; NULL if the process has got privileges by its program. */
BIDE_INLINE const char *portable_getenv(const char *name)
{
#ifdef __linux__
    return secure_getenv(name);
#else
    return issetugid() ? NULL : getenv(name);
#endif
}

/* The program's name, without a path. */
BIDE_INLINE const char *portable_program_name(void)
{
#ifdef __linux__
    return program_invocation_short_name;
#else
    return getprogname();
#endif
}

#endif
