/*
 * Calls that some POSIX systems lack, or have under other names: macOS, FreeBSD. On Linux each function is the
 * call itself. On Windows there is the number of a thread alone.
 *
 * Without accept4, pipe2 and SOCK_CLOEXEC a descriptor is made close-on-exec by a second call. A process that
 * another thread forks and executes between the two has the descriptor open.
 */
#ifndef BIDE_SYSTEM_PORTABLE_H
#define BIDE_SYSTEM_PORTABLE_H

#include "bide/compiler.h"
#include "bide/errors.h"

#ifdef _WIN32

#include "pthreads.h"

BIDE_INLINE int portable_thread_number(void)
{
    return (int)pthread_self().number;
}

#else

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#ifdef __FreeBSD__
#include <pthread_np.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <time.h>
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

#ifdef __APPLE__
struct mmsghdr {
    struct msghdr msg_hdr;
    unsigned msg_len;
};
#endif

/* The times of a struct stat. */
#ifdef __APPLE__
#define PORTABLE_MTIME(about) ((about)->st_mtimespec)
#define PORTABLE_CTIME(about) ((about)->st_ctimespec)
#define PORTABLE_ATIME(about) ((about)->st_atimespec)
#else
#define PORTABLE_MTIME(about) ((about)->st_mtim)
#define PORTABLE_CTIME(about) ((about)->st_ctim)
#define PORTABLE_ATIME(about) ((about)->st_atim)
#endif

/* The time of day, up to a tick of the system. */
#ifdef CLOCK_REALTIME_COARSE
#define PORTABLE_REALTIME_COARSE CLOCK_REALTIME_COARSE
#else
#define PORTABLE_REALTIME_COARSE CLOCK_REALTIME
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

/* The system's number of the calling thread. */
BIDE_INLINE int portable_thread_number(void)
{
#if defined __linux__
    return (int)syscall(SYS_gettid);
#elif defined __APPLE__
    uint64_t number = 0;
    pthread_threadid_np(NULL, &number);
    return (int)number;
#else
    return pthread_getthreadid_np();
#endif
}

BIDE_INLINE void portable_name_this_thread(const char *name)
{
#ifdef __APPLE__
    (void)pthread_setname_np(name);
#else
    (void)pthread_setname_np(pthread_self(), name);
#endif
}

/* Names another thread, where a thread may do that. */
BIDE_INLINE void portable_name_thread(pthread_t thread, const char *name)
{
#ifdef __APPLE__
    (void)thread;
    (void)name;
#else
    (void)pthread_setname_np(thread, name);
#endif
}

/* Fills `size` bytes, at most 256, with random ones of the system. 0; or -1 with errno. */
BIDE_INLINE int portable_random(void *bytes, size_t size)
{
#ifdef __linux__
    return getrandom(bytes, size, 0) == (ssize_t)size ? 0 : -1;
#else
    return getentropy(bytes, size);
#endif
}

/* As memrchr: the last such byte of `size` bytes, or NULL. */
BIDE_INLINE const char *portable_find_last(const char *text, char byte, size_t size)
{
#ifdef __linux__
    return memrchr(text, byte, size);
#else
    while (size != 0 && text[size - 1] != byte)
        size--;
    return size != 0 ? text + size - 1 : NULL;
#endif
}

/*
 * Takes a pending signal of the set, which is blocked, without waiting. Its number; or -1: none.
 * (macOS has no such call: if a signal to the process is pending, and another thread takes it in
 * between, this waits for the next one. The library asks for signals that are sent to the calling
 * thread alone, which no other thread takes.)
 */
BIDE_INLINE int portable_take_pending(const sigset_t *set)
{
#ifdef __APPLE__
    sigset_t pending;
    int number = -1;
    sigpending(&pending);
    for (int i = 1; i < NSIG; i++) {
        if (sigismember(set, i) == 1 && sigismember(&pending, i) == 1)
            return sigwait(set, &number) == 0 ? number : -1;
    }
    return -1;
#else
    static const struct timespec none = {0, 0};
    return sigtimedwait(set, NULL, &none);
#endif
}

/*
 * As fdatasync, or fsync. (On macOS these leave the data in the cache of the device. F_FULLFSYNC does not, and file
 * systems that lack it get an fsync. Its other errors are errors: an fsync after them could succeed.)
 */
BIDE_INLINE int portable_sync(int fd, bool only_data)
{
#ifdef __APPLE__
    (void)only_data;
    if (fcntl(fd, F_FULLFSYNC) == 0)
        return 0;
    bool is_absent = errno == ENOTSUP || errno == EOPNOTSUPP || errno == ENOTTY || errno == EINVAL;
    return is_absent ? fsync(fd) : -1;
#else
    return only_data ? fdatasync(fd) : fsync(fd);
#endif
}

/* As syncfs. Other systems have no such call: -1, and errno stays. */
BIDE_INLINE int portable_sync_file_system(int fd)
{
#ifdef __linux__
    return syncfs(fd);
#else
    (void)fd;
    return -1;
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

#endif
