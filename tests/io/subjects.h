/* Descriptors of the system of each kind, made alike as often as they are needed. */
#ifndef BIDE_TESTS_IO_SUBJECTS_H
#define BIDE_TESTS_IO_SUBJECTS_H

#include "runner.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <termios.h>

enum { SIZE = 200000, LIMIT = 70000, VECTORS = 1500, ORIGINAL = 5000 };

typedef enum kind {
    REGULAR,
    APPENDED,
    UNLINKED,
    DIRECT,
    IN_MEMORY, /* the last of those that are regular files */
    PIPE_IN,
    PIPE_OUT,
    FIFO,
    FIFO_IN,
    FIFO_OUT,
    STREAMS,
    DATAGRAMS,
    PACKETS,
    TCP,
    UDP,
    BOUND_UDP,
    TERMINAL,
    MASTER,
    LISTENER,
    COUNTER,
    CLOCK,
    PROC,
    DIRECTORY,
    CLOSED_PEER,
    KINDS
} kind;

static const char *const kind_names[KINDS] = {
    [REGULAR] = "file",
    [APPENDED] = "appended file",
    [UNLINKED] = "unlinked file",
    [DIRECT] = "file by O_DIRECT",
    [IN_MEMORY] = "memfd",
    [PIPE_IN] = "pipe to read",
    [PIPE_OUT] = "pipe to write",
    [FIFO] = "FIFO",
    [FIFO_IN] = "FIFO to read",
    [FIFO_OUT] = "FIFO to write",
    [STREAMS] = "Unix stream",
    [DATAGRAMS] = "Unix datagrams",
    [PACKETS] = "packets",
    [TCP] = "TCP",
    [UDP] = "UDP",
    [BOUND_UDP] = "UDP that is not connected",
    [TERMINAL] = "terminal",
    [MASTER] = "master of a terminal",
    [LISTENER] = "listener",
    [COUNTER] = "eventfd",
    [CLOCK] = "timerfd",
    [PROC] = "/proc file",
    [DIRECTORY] = "directory",
    [CLOSED_PEER] = "closed peer",
};

typedef struct subject {
    int fd;
    int peer; /* -1: none */
} subject;

static char pattern[SIZE];

static inline void fill_pattern(void)
{
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (char)(i * 7 + (i >> 8) * 31);
}

static const char *directory_of_files = "/tmp";

static inline int make_file(int flags)
{
    char path[100];
    snprintf(path, sizeof path, "%s/bide_difference_XXXXXX", directory_of_files);
    int first = mkstemp(path);
    assert_true(first >= 0);
    ssize_t count = write(first, pattern, ORIGINAL);
    if (count != ORIGINAL)
        printf("# a file in %s: %s\n", directory_of_files, strerror(errno));
    assert_int_equal(count, ORIGINAL);
    int fd = open(path, O_RDWR | O_CLOEXEC | flags);
    if (fd < 0 && (flags & O_DIRECT) != 0) /* (not all file systems have it) */
        fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    close(first);
    unlink(path);
    return fd;
}

/* A directory with a FIFO that nobody has open. */
static inline void make_fifo(char *directory, char *name, size_t size)
{
    assert_non_null(mkdtemp(directory));
    snprintf(name, size, "%s/fifo", directory);
    assert_int_equal(mkfifo(name, 0600), 0);
}

static inline void remove_fifo(const char *directory, const char *name)
{
    unlink(name);
    rmdir(directory);
}

/* `flags`: the end that the subject has. */
static inline void make_fifo_ends(subject *made, int flags)
{
    char path[] = "/tmp/bide_difference_XXXXXX", name[64];
    make_fifo(path, name, sizeof name);
    int first = open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    int other = flags == O_RDONLY ? O_WRONLY : flags == O_WRONLY ? O_RDONLY : O_RDWR;
    made->fd = open(name, flags | O_NONBLOCK | O_CLOEXEC);
    made->peer = open(name, other | O_NONBLOCK | O_CLOEXEC);
    close(first);
    remove_fifo(path, name);
}

/* A socket that is bound to a port of this host. */
static inline int make_bound(int type, struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)address, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

static inline void make_tcp(subject *made)
{
    struct sockaddr_in address;
    struct pollfd ready = {.events = POLLIN};
    int listener = make_bound(SOCK_STREAM, &address);
    assert_int_equal(listen(listener, 1), 0);
    made->peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(connect(made->peer, (struct sockaddr *)&address, sizeof address) == 0 ||
                errno == EINPROGRESS);
    ready.fd = listener;
    assert_int_equal(poll(&ready, 1, -1), 1);
    made->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(made->fd >= 0);
    close(listener);
}

/* The peer is connected to it; and it to the peer. */
static inline void make_udp(subject *made, bool is_connected)
{
    struct sockaddr_in here, there;
    made->fd = make_bound(SOCK_DGRAM, &here);
    made->peer = make_bound(SOCK_DGRAM, &there);
    assert_int_equal(connect(made->peer, (struct sockaddr *)&here, sizeof here), 0);
    if (is_connected)
        assert_int_equal(connect(made->fd, (struct sockaddr *)&there, sizeof there), 0);
}

static inline void make_pair(subject *made, int type)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    *made = (subject){fds[0], fds[1]};
}

/* A terminal in blocking mode, which others share, and its master. */
static inline subject make_terminal(void)
{
    struct termios raw;
    subject made;
    made.peer = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(made.peer >= 0);
    assert_int_equal(grantpt(made.peer), 0);
    assert_int_equal(unlockpt(made.peer), 0);
    made.fd = open(ptsname(made.peer), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(made.fd >= 0);
    assert_int_equal(tcgetattr(made.fd, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(made.fd, TCSANOW, &raw), 0);
    return made;
}

static inline void set_blocking(int fd, bool blocks)
{
    int flags = fcntl(fd, F_GETFL);
    assert_int_equal(fcntl(fd, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK), 0);
}

static inline subject make(kind kind)
{
    subject made = {-1, -1};
    int fds[2];
    switch (kind) {
    case REGULAR:
        made.fd = make_file(0);
        break;
    case APPENDED:
        made.fd = make_file(O_APPEND);
        break;
    case UNLINKED:
        made.fd = make_file(O_NONBLOCK);
        break;
    case DIRECT:
        made.fd = make_file(O_DIRECT);
        break;
    case IN_MEMORY:
        made.fd = memfd_create("difference", MFD_CLOEXEC);
        assert_int_equal(pwrite(made.fd, pattern, ORIGINAL, 0), ORIGINAL);
        break;
    case PIPE_IN:
    case PIPE_OUT:
        assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
        made = kind == PIPE_IN ? (subject){fds[0], fds[1]} : (subject){fds[1], fds[0]};
        break;
    case FIFO:
        make_fifo_ends(&made, O_RDWR);
        break;
    case FIFO_IN:
        make_fifo_ends(&made, O_RDONLY);
        break;
    case FIFO_OUT:
        make_fifo_ends(&made, O_WRONLY);
        break;
    case STREAMS:
        make_pair(&made, SOCK_STREAM);
        break;
    case DATAGRAMS:
        make_pair(&made, SOCK_DGRAM);
        break;
    case PACKETS:
        make_pair(&made, SOCK_SEQPACKET);
        break;
    case TCP:
        make_tcp(&made);
        break;
    case UDP:
        make_udp(&made, true);
        break;
    case BOUND_UDP:
        make_udp(&made, false);
        break;
    case TERMINAL:
    case MASTER:
        made = make_terminal();
        set_blocking(made.fd, false);
        set_blocking(made.peer, false);
        if (kind == MASTER)
            made = (subject){made.peer, made.fd};
        break;
    case LISTENER: {
        struct sockaddr_in address;
        made.fd = make_bound(SOCK_STREAM, &address);
        assert_int_equal(listen(made.fd, 1), 0);
        break;
    }
    case COUNTER:
        made.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        break;
    case CLOCK:
        made.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        break;
    case PROC:
        made.fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
        break;
    case DIRECTORY:
        made.fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        break;
    case CLOSED_PEER:
        make_pair(&made, SOCK_STREAM);
        close(made.peer);
        made.peer = -1;
        break;
    case KINDS:
        break;
    }
    assert_true(made.fd >= 0);
    return made;
}

static inline void discard(subject *it)
{
    if (it->fd >= 0)
        close(it->fd);
    if (it->peer >= 0)
        close(it->peer);
}

#endif
