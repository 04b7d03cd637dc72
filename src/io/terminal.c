/*
 * Standard streams that do not block the loop, and raw terminals.
 *
 *     standard stream      descriptor that the caller gets            how an operation waits
 *     terminal, pipe       reopened through /proc/self/fd, so its     the loop polls
 *                          own description is O_NONBLOCK
 *     the same, if the     a duplicate: the same description, in      polls first, then calls;
 *     reopening fails      its mode                                   see 2
 *     socket               a duplicate: it cannot be reopened         the same
 *     file                 a duplicate: its position is shared, as    on a thread for blocking
 *                          it has to be                               calls, or on the ring
 *     /dev/null and such   a duplicate                                never
 *
 * Any thread may call these functions. The list of raw terminals is under a lock.
 *
 * 1. Descriptions that other processes share are never changed. A reopened description has its own
 *    mode and refers to the same terminal or pipe. Reopening fails for another user's terminal (after
 *    su) and without /proc. A terminal's master is not reopened, because that would create another
 *    terminal. A pipe is reopened only with the access that it has; the other access would be its
 *    other end.
 * 2. Between the poll and the call, another process may take the input. So the call is made with
 *    RWF_NOWAIT where that works: pipes and sockets. Terminals do not support it. So if a terminal could
 *    not be reopened, its calls are made on a thread, after the poll (IO_CALLS_WAIT): on an io_uring one
 *    of the kernel's, on epoll one for blocking calls. An idle terminal occupies none.
 * 3. A raw terminal's previous mode is in heap memory, with a descriptor of its own. So it exists at
 *    exit, whatever happened to the caller's frame. The list belongs to one process. A child of fork
 *    has another process id, and uses neither the list nor the lock of its parent.
 */
#define _GNU_SOURCE
#include "bide/terminal.h"

#include "operation.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/sysmacros.h>
#endif

enum { TERMINAL_FIRST_FD = 3 }; /* not the number of a standard stream that happens to be closed */

/* ---- Standard streams ---- */

#ifdef __linux__

/* True if it may be reopened with that access: 1. */
static bool terminal_may_be_reopened(int fd, int access, const struct stat *about)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_PATH) != 0)
        return false;
    if ((flags & O_ACCMODE) != access && (flags & O_ACCMODE) != O_RDWR)
        return false;
    if (S_ISFIFO(about->st_mode))
        return true;
    bool is_master = major(about->st_rdev) == 5 && minor(about->st_rdev) == 2;
    return S_ISCHR(about->st_mode) && !is_master && isatty(fd) != 0;
}

/* Reopens it with O_NONBLOCK. A new descriptor, or -1. */
static int terminal_reopen(int fd, int access, const struct stat *about)
{
    char path[40];
    struct stat found;
    if (!terminal_may_be_reopened(fd, access, about))
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    /* (The mode keeps the fortified C library from another function, which the tests do not replace.) */
    int opened = open(path, access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (opened < 0)
        return -1;
    int own =
        fstat(opened, &found) == 0 && found.st_dev == about->st_dev && found.st_ino == about->st_ino
            ? fcntl(opened, F_DUPFD_CLOEXEC, TERMINAL_FIRST_FD)
            : -1;
    close(opened);
    return own;
}

#else

/* (a name that leads to the same open file gives no mode of its own) */
static int terminal_reopen(int fd, int access, const struct stat *about)
{
    (void)fd, (void)access, (void)about;
    return -1;
}

#endif

static int terminal_open_standard(bide_descriptor *descriptor, int fd, int access)
{
    struct stat about;
    bide_descriptor_init_closed(descriptor);
    if (fstat(fd, &about) != 0)
        return -errno;
    int own = terminal_reopen(fd, access, &about);
    if (own < 0)
        own = fcntl(fd, F_DUPFD_CLOEXEC, TERMINAL_FIRST_FD);
    if (own < 0)
        return -errno;
    bide_descriptor_init(descriptor, own);
    return 0;
}

int bide_standard_input(bide_descriptor *descriptor)
{
    return terminal_open_standard(descriptor, STDIN_FILENO, O_RDONLY);
}

int bide_standard_output(bide_descriptor *descriptor)
{
    return terminal_open_standard(descriptor, STDOUT_FILENO, O_WRONLY);
}

int bide_standard_error(bide_descriptor *descriptor)
{
    return terminal_open_standard(descriptor, STDERR_FILENO, O_WRONLY);
}

/* ---- Terminals ---- */

/* The system's descriptor number, or a negative errno. */
static int terminal_fd_of(const bide_descriptor *descriptor)
{
    if (!bide_descriptor_is_open(descriptor))
        return -EBADF;
    return io_calls(io_of(descriptor)) != NULL ? -EOPNOTSUPP : bide_descriptor_fd(descriptor);
}

bool bide_is_terminal(const bide_descriptor *descriptor)
{
    int fd = terminal_fd_of(descriptor);
    return fd >= 0 && isatty(fd) != 0;
}

int bide_terminal_get_size(const bide_descriptor *descriptor, bide_terminal_size *size)
{
    struct winsize window;
    int fd = terminal_fd_of(descriptor);
    if (fd < 0)
        return fd;
    if (ioctl(fd, TIOCGWINSZ, &window) != 0)
        return -errno;
    size->columns = window.ws_col;
    size->rows = window.ws_row;
    return 0;
}

static int terminal_window_of(const bide_terminal_size *size, struct winsize *window)
{
    if (size->columns > UINT16_MAX || size->rows > UINT16_MAX)
        return -EINVAL;
    *window = (struct winsize){.ws_row = (unsigned short)size->rows,
                               .ws_col = (unsigned short)size->columns};
    return 0;
}

int bide_terminal_set_size(const bide_descriptor *descriptor, const bide_terminal_size *size)
{
    struct winsize window;
    int fd = terminal_fd_of(descriptor);
    if (fd < 0)
        return fd;
    int status = terminal_window_of(size, &window);
    return status < 0 ? status : ioctl(fd, TIOCSWINSZ, &window) == 0 ? 0 : -errno;
}

/* ---- Pseudo-terminals ---- */

/* Opens the other end, by the descriptor where the kernel can: the path may be in another namespace. */
static int terminal_open_peer(int control)
{
    char path[64];
    int fd = -1;
#ifdef TIOCGPTPEER
    fd = ioctl(control, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
#endif
    if (fd >= 0)
        return fd;
    int error = ptsname_r(control, path, sizeof path);
    if (error != 0)
        return -error;
    fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int terminal_prepare_control(int control, const struct winsize *window)
{
    if (grantpt(control) != 0 || unlockpt(control) != 0 ||
        fcntl(control, F_SETFL, O_RDWR | O_NONBLOCK) != 0)
        return -errno;
    return window == NULL || ioctl(control, TIOCSWINSZ, window) == 0 ? 0 : -errno;
}

int bide_pseudo_terminal_open(bide_descriptor *control, bide_descriptor *terminal,
                              const bide_terminal_size *size)
{
    struct winsize window;
    bide_descriptor_init_closed(control);
    bide_descriptor_init_closed(terminal);
    int status = size != NULL ? terminal_window_of(size, &window) : 0;
    if (status < 0)
        return status;
    int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    status = terminal_prepare_control(fd, size != NULL ? &window : NULL);
    int peer = status < 0 ? status : terminal_open_peer(fd);
    if (peer < 0) {
        close(fd);
        return peer;
    }
    bide_descriptor_init(control, fd);
    bide_descriptor_init(terminal, peer);
    return 0;
}

/* ---- Raw mode: 3 ---- */

struct bide_raw_terminal_ {
    int fd; /* a duplicate */
    pid_t process;
    struct termios before;
    struct bide_raw_terminal_ *next; /* under the lock; newest first */
};

static struct {
    pthread_mutex_t lock;
    struct bide_raw_terminal_ *first;
    bide_atomic(int) process; /* the process id; 0: no terminal has been raw */
} terminal_raw_list = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* SIGTTOU is blocked, because it would stop a process in the background that sets a terminal. */
static int terminal_set_mode(int fd, const struct termios *mode)
{
    sigset_t stopping, before;
    int failed;
    sigemptyset(&stopping);
    sigaddset(&stopping, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &stopping, &before);
    do {
        failed = tcsetattr(fd, TCSANOW, mode) == 0 ? 0 : errno;
    } while (failed == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -failed;
}

/* At exit: restores the terminals that are still raw. Later exit handlers may still end them. */
static void terminal_restore_all(void)
{
    /* relaxed: the value is this process's id, or not */
    if (bide_atomic_load(&terminal_raw_list.process, relaxed) != getpid()) /* 3 */
        return;
    pthread_mutex_lock(&terminal_raw_list.lock);
    for (struct bide_raw_terminal_ *raw = terminal_raw_list.first; raw != NULL; raw = raw->next)
        terminal_set_mode(raw->fd, &raw->before);
    pthread_mutex_unlock(&terminal_raw_list.lock);
}

/* A child of fork has an empty list and its own lock. */
static void terminal_after_fork_in_child(void)
{
    pthread_mutex_init(&terminal_raw_list.lock, NULL);
    terminal_raw_list.first = NULL;
    bide_atomic_init(&terminal_raw_list.process, 0);
}

/* Under the lock. */
static int terminal_init_process(void)
{
    static bool has_exit_handler, has_fork_handler;
    if (!has_fork_handler && pthread_atfork(NULL, NULL, terminal_after_fork_in_child) != 0)
        return -ENOMEM;
    has_fork_handler = true;
    if (!has_exit_handler && atexit(terminal_restore_all) != 0)
        return -ENOMEM;
    has_exit_handler = true;
    bide_atomic_store(&terminal_raw_list.process, getpid(),
                      relaxed); /* relaxed: see terminal_restore_all */
    return 0;
}

static void terminal_make_raw(struct termios *mode, unsigned keep)
{
    struct termios before = *mode;
    cfmakeraw(mode);
    mode->c_cc[VMIN] = 1;
    mode->c_cc[VTIME] = 0;
    if ((keep & BIDE_TERMINAL_SIGNALS) != 0)
        mode->c_lflag |= before.c_lflag & ISIG;
    if ((keep & BIDE_TERMINAL_OUTPUT) != 0)
        mode->c_oflag |= before.c_oflag & OPOST;
}

/* Under the lock. */
static int terminal_start_raw(struct bide_raw_terminal_ *raw, unsigned keep)
{
    if (tcgetattr(raw->fd, &raw->before) != 0)
        return -errno;
    int error = terminal_init_process();
    if (error != 0)
        return error;
    struct termios mode = raw->before;
    terminal_make_raw(&mode, keep);
    error = terminal_set_mode(raw->fd, &mode);
    if (error != 0)
        return error;
    raw->process = getpid();
    raw->next = terminal_raw_list.first;
    terminal_raw_list.first = raw;
    return 0;
}

int bide_terminal_start_raw(bide_terminal *terminal, const bide_descriptor *descriptor,
                            unsigned keep)
{
    terminal->raw = NULL;
    int fd = terminal_fd_of(descriptor);
    if (fd < 0)
        return fd;
    struct bide_raw_terminal_ *raw = malloc(sizeof *raw);
    if (raw == NULL)
        return -ENOMEM;
    raw->fd = fcntl(fd, F_DUPFD_CLOEXEC, TERMINAL_FIRST_FD);
    int error = raw->fd < 0 ? -errno : 0;
    if (error == 0) {
        pthread_mutex_lock(&terminal_raw_list.lock);
        error = terminal_start_raw(raw, keep);
        pthread_mutex_unlock(&terminal_raw_list.lock);
        if (error != 0)
            close(raw->fd);
    }
    if (error != 0) {
        free(raw);
        return error;
    }
    terminal->raw = raw;
    return 0;
}

int bide_terminal_stop_raw(bide_terminal *terminal)
{
    struct bide_raw_terminal_ *raw = terminal->raw;
    int error = 0;
    terminal->raw = NULL;
    if (raw == NULL)
        return 0;
    if (raw->process == getpid()) {
        pthread_mutex_lock(&terminal_raw_list.lock);
        struct bide_raw_terminal_ **place = &terminal_raw_list.first;
        while (*place != raw) {
            bide_assert(*place != NULL);
            place = &(*place)->next;
        }
        *place = raw->next;
        error = terminal_set_mode(raw->fd, &raw->before);
        pthread_mutex_unlock(&terminal_raw_list.lock);
    }
    close(raw->fd);
    free(raw);
    return error;
}
