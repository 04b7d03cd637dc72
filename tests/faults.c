/*
 * The linker sends each call of a wrapped function F to __wrap_F here, and __real_F to the function.
 * Everything shared is an atomic of its own and relaxed: the thread that sets a fault starts the calls that
 * meet it, and a thread that reads a count has waited for the counted calls.
 */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    atomic_uint first; /* 0: none fails */
    atomic_uint times;
    atomic_int error;
    atomic_uint calls;
    atomic_uint hits;
} faults[FAULT_FUNCTIONS];

static atomic_size_t max_read; /* 0: no limit */
static atomic_size_t max_written;
static atomic_long blocks;
static atomic_long threads;

#define LOAD(object)         atomic_load_explicit(object, memory_order_relaxed)
#define STORE(object, value) atomic_store_explicit(object, value, memory_order_relaxed)
#define ADD(object, value)   atomic_fetch_add_explicit(object, value, memory_order_relaxed)

void faults_clear(void)
{
    for (int i = 0; i < FAULT_FUNCTIONS; i++) {
        STORE(&faults[i].first, 0);
        STORE(&faults[i].calls, 0);
        STORE(&faults[i].hits, 0);
    }
    STORE(&max_read, 0);
    STORE(&max_written, 0);
}

void faults_fail(fault function, unsigned nth, unsigned times, int error)
{
    STORE(&faults[function].times, times);
    STORE(&faults[function].error, error);
    STORE(&faults[function].first, nth);
}

void faults_shorten_reads(size_t max)
{
    STORE(&max_read, max);
}

void faults_shorten_writes(size_t max)
{
    STORE(&max_written, max);
}

unsigned faults_calls(fault function)
{
    return LOAD(&faults[function].calls);
}

unsigned faults_hits(fault function)
{
    return LOAD(&faults[function].hits);
}

long faults_blocks(void)
{
    return LOAD(&blocks);
}

long faults_threads(void)
{
    return LOAD(&threads);
}

long faults_descriptors(void)
{
    long count = 0;
    for (int fd = 0; fd < 1024; fd++) /* (by lseek, which is not wrapped) */
        count += lseek(fd, 0, SEEK_CUR) >= 0 || errno != EBADF;
    return count;
}

/* ---- Runs of a scenario ---- */

enum { MAX_RUNS = 100000 };

faults_result faults_try_each_n(fault function, unsigned times, int error, bool reported,
                                faults_scenario *scenario, void *argument)
{
    faults_result result = {.good = true};
    const long blocks_before = faults_blocks();
    const long threads_before = faults_threads();
    const long descriptors_before = faults_descriptors();
    unsigned hits = 1;
    for (unsigned n = 1; result.good && hits != 0; n++) {
        faults_clear();
        faults_fail(function, n, times, error);
        int status = scenario(argument);
        hits = faults_hits(function);
        result.calls = faults_calls(function);
        int expected = hits != 0 && reported ? -error : 0;
        long more_blocks = faults_blocks() - blocks_before;
        long more_threads = faults_threads() - threads_before;
        long more_descriptors = faults_descriptors() - descriptors_before;
        if (status != expected || more_blocks != 0 || more_threads != 0 || more_descriptors != 0 ||
            n == MAX_RUNS) {
            result.good = false;
            snprintf(result.what, sizeof result.what,
                     "run %u (function %d, errno %d, met %u times): status %d, not %d; left %ld "
                     "blocks, %ld threads, %ld descriptors",
                     n, (int)function, error, hits, status, expected, more_blocks, more_threads,
                     more_descriptors);
        }
    }
    faults_clear();
    return result;
}

/* ---- The wrapped functions ---- */

/* Counts a call. Returns the errno with which it has to fail, or 0. */
static int fault_of(fault function)
{
    unsigned call = ADD(&faults[function].calls, 1) + 1;
    unsigned first = LOAD(&faults[function].first);
    if (first == 0 || call < first || call - first >= LOAD(&faults[function].times))
        return 0;
    ADD(&faults[function].hits, 1);
    return LOAD(&faults[function].error);
}

/* The same, with the errno stored as most functions do. */
static bool fails(fault function)
{
    int error = fault_of(function);
    if (error != 0)
        errno = error;
    return error != 0;
}

static size_t shortened(size_t size, atomic_size_t *limit)
{
    size_t max = LOAD(limit);
    return max != 0 && size > max ? max : size;
}

static void *counted(void *block)
{
    if (block != NULL)
        ADD(&blocks, 1);
    return block;
}

/* Declares both functions, and begins the definition of the wrapper. */
#define WRAP(result, name, parameters) \
    result __real_##name parameters;   \
    result __wrap_##name parameters;   \
    result __wrap_##name parameters

/* A function that returns -1 and sets errno, and of which only the calls are counted. */
#define WRAP_CALL(result, name, parameters, arguments, FAULT)       \
    WRAP(result, name, parameters)                                  \
    {                                                               \
        return fails(FAULT) ? (result)-1 : __real_##name arguments; \
    }

WRAP(void *, malloc, (size_t size))
{
    return fails(FAULT_MALLOC) ? NULL : counted(__real_malloc(size));
}

WRAP(void *, calloc, (size_t count, size_t size))
{
    return fails(FAULT_CALLOC) ? NULL : counted(__real_calloc(count, size));
}

WRAP(void *, aligned_alloc, (size_t alignment, size_t size))
{
    return fails(FAULT_ALIGNED_ALLOC) ? NULL : counted(__real_aligned_alloc(alignment, size));
}

/* (with size 0 it frees, as in glibc) */
WRAP(void *, realloc, (void *block, size_t size))
{
    if (fails(FAULT_REALLOC))
        return NULL;
    void *moved = __real_realloc(block, size);
    if (block == NULL)
        return counted(moved);
    if (moved == NULL && size == 0)
        ADD(&blocks, -1);
    return moved;
}

WRAP(void, free, (void *block))
{
    if (block != NULL)
        ADD(&blocks, -1);
    __real_free(block);
}

WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*function)(void *),
      void *argument))
{
    int error = fault_of(FAULT_PTHREAD_CREATE);
    if (error == 0)
        error = __real_pthread_create(thread, attributes, function, argument);
    if (error == 0)
        ADD(&threads, 1);
    return error;
}

WRAP(int, pthread_join, (pthread_t thread, void **result))
{
    int error = __real_pthread_join(thread, result);
    if (error == 0)
        ADD(&threads, -1);
    return error;
}

WRAP(int, close, (int fd))
{
    int status = __real_close(fd);
    return fails(FAULT_CLOSE) ? -1 : status;
}

/*
 * With 64-bit file sizes, with which everything is built here, glibc calls it fcntl64. Commands without an
 * argument ignore it.
 */
WRAP(int, fcntl64, (int fd, int command, ...))
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fails(FAULT_FCNTL) ? -1 : __real_fcntl64(fd, command, argument);
}

WRAP(ssize_t, read, (int fd, void *buffer, size_t size))
{
    return fails(FAULT_READ) ? -1 : __real_read(fd, buffer, shortened(size, &max_read));
}

WRAP(ssize_t, recv, (int fd, void *buffer, size_t size, int flags))
{
    return fails(FAULT_RECV) ? -1 : __real_recv(fd, buffer, shortened(size, &max_read), flags);
}

WRAP(ssize_t, write, (int fd, const void *buffer, size_t size))
{
    return fails(FAULT_WRITE) ? -1 : __real_write(fd, buffer, shortened(size, &max_written));
}

WRAP(ssize_t, send, (int fd, const void *buffer, size_t size, int flags))
{
    return fails(FAULT_SEND) ? -1 : __real_send(fd, buffer, shortened(size, &max_written), flags);
}

WRAP_CALL(int, eventfd, (unsigned count, int flags), (count, flags), FAULT_EVENTFD)
WRAP_CALL(int, timerfd_create, (int clock, int flags), (clock, flags), FAULT_TIMERFD_CREATE)
WRAP_CALL(int, epoll_create1, (int flags), (flags), FAULT_EPOLL_CREATE1)

/* (the removal of a registered descriptor needs nothing of the system: it never fails) */
WRAP(int, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event))
{
    if (operation != EPOLL_CTL_DEL && fails(FAULT_EPOLL_CTL))
        return -1;
    return __real_epoll_ctl(epoll, operation, fd, event);
}

WRAP_CALL(int, epoll_wait, (int epoll, struct epoll_event *events, int count, int timeout),
          (epoll, events, count, timeout), FAULT_EPOLL_WAIT)
WRAP_CALL(int, poll, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout),
          FAULT_POLL)
WRAP_CALL(int, ppoll,
          (struct pollfd * fds, nfds_t count, const struct timespec *span, const sigset_t *set),
          (fds, count, span, set), FAULT_PPOLL)
WRAP_CALL(int, socket, (int domain, int type, int protocol), (domain, type, protocol), FAULT_SOCKET)
WRAP_CALL(int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags),
          (fd, address, size, flags), FAULT_ACCEPT4)
WRAP_CALL(int, connect, (int fd, const struct sockaddr *address, socklen_t size),
          (fd, address, size), FAULT_CONNECT)
WRAP_CALL(int, recvmmsg,
          (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout),
          (fd, messages, count, flags, timeout), FAULT_RECVMMSG)
WRAP_CALL(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags),
          (fd, messages, count, flags), FAULT_SENDMMSG)
WRAP_CALL(ssize_t, splice,
          (int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags),
          (from, from_offset, to, to_offset, size, flags), FAULT_SPLICE)
WRAP_CALL(ssize_t, sendfile64, (int to, int from, off64_t *offset, size_t size),
          (to, from, offset, size), FAULT_SENDFILE)
WRAP_CALL(ssize_t, preadv64v2,
          (int fd, const struct iovec *vectors, int count, off64_t offset, int flags),
          (fd, vectors, count, offset, flags), FAULT_PREADV2)
WRAP_CALL(ssize_t, tee, (int from, int to, size_t size, unsigned flags), (from, to, size, flags),
          FAULT_TEE)
WRAP_CALL(int, pipe2, (int *fds, int flags), (fds, flags), FAULT_PIPE2)

WRAP(void *, mmap64, (void *at, size_t size, int protection, int flags, int fd, off64_t offset))
{
    return fails(FAULT_MMAP) ? MAP_FAILED : __real_mmap64(at, size, protection, flags, fd, offset);
}

/* (calls that take fewer arguments ignore the rest) */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

UNCHECKED_BY_MSAN long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_getdents64 && fails(FAULT_GETDENTS64))
        return -1;
    if (number == SYS_epoll_pwait2 && fails(FAULT_EPOLL_PWAIT2))
        return -1;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
