/*
 * Standard streams that do not wait, and terminals that are raw.
 *
 *     what is there         what is given                              how it waits
 *     terminal, pipe        opened anew, by /proc/self/fd, so that     the loop is told
 *                           it has a mode of its own: O_NONBLOCK
 *     the same, where       the same description, in its mode          asked first (poll), then called;
 *     that is refused                                                  see 2
 *     socket                likewise: it cannot be opened anew         likewise
 *     file                  likewise: its position is shared, as it    a thread for blocking calls, or
 *                           is to be                                   the ring
 *     /dev/null and such    likewise                                   never
 *
 * 1. Nothing is set on what others share. A description that is opened anew has a mode of its own, and
 *    leads to the same terminal or pipe. It is refused for a terminal of another user's (after su), and
 *    where there is no /proc. A terminal's master is not opened anew, for that would make another
 *    terminal. Of a pipe only the end that is there is opened: with the other access it would be the
 *    other end.
 * 2. Between the question and the call another process may take what was there. So the call is made
 *    with RWF_NOWAIT where that works: pipes and sockets. A terminal does not have it. If one that was
 *    not opened anew is shared with somebody who reads at the same time, its read waits until there is
 *    something again; on an io_uring that is a thread of the kernel's, on epoll the loop. A thread for
 *    blocking calls would do for that one, but would hold each read of a terminal for ever, where
 *    nobody types.
 * 3. What a raw terminal was before is in memory of the library's, with a descriptor of its own: so it
 *    is there at exit, whatever has become of the frame. The list is of one process; a child of fork
 *    has another number, and touches neither list nor lock.
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
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

enum { FIRST_OWN = 3 }; /* (not a standard stream that happens to be closed) */

/* ---- Standard streams ---- */

/* Could it be opened anew, with that access, and be the same? 1 */
static bool may_be_reopened(int fd, int access, const struct stat *about)
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

/* A descriptor of it that has a mode of its own; or -1. */
static int reopen(int fd, int access, const struct stat *about)
{
    char path[40];
    struct stat found;
    if (!may_be_reopened(fd, access, about))
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int opened = open(path, access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (opened < 0)
        return -1;
    int own =
        fstat(opened, &found) == 0 && found.st_dev == about->st_dev && found.st_ino == about->st_ino
            ? fcntl(opened, F_DUPFD_CLOEXEC, FIRST_OWN)
            : -1;
    close(opened);
    return own;
}

static int open_standard(bide_descriptor *descriptor, int fd, int access)
{
    struct stat about;
    bide_descriptor_init_closed(descriptor);
    if (fstat(fd, &about) != 0)
        return -errno;
    int own = reopen(fd, access, &about);
    if (own < 0)
        own = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN);
    if (own < 0)
        return -errno;
    bide_descriptor_init(descriptor, own);
    return 0;
}

int bide_standard_input(bide_descriptor *descriptor)
{
    return open_standard(descriptor, STDIN_FILENO, O_RDONLY);
}

int bide_standard_output(bide_descriptor *descriptor)
{
    return open_standard(descriptor, STDOUT_FILENO, O_WRONLY);
}

int bide_standard_error(bide_descriptor *descriptor)
{
    return open_standard(descriptor, STDERR_FILENO, O_WRONLY);
}

/* ---- Terminals ---- */

/* The system's number, or a negative errno. */
static int number_of(const bide_descriptor *descriptor)
{
    if (!bide_descriptor_is_open(descriptor))
        return -EBADF;
    return io_calls(io_of(descriptor)) != NULL ? -EOPNOTSUPP : descriptor->fd;
}

bool bide_is_terminal(const bide_descriptor *descriptor)
{
    int fd = number_of(descriptor);
    return fd >= 0 && isatty(fd) != 0;
}

int bide_terminal_get_size(const bide_descriptor *descriptor, bide_terminal_size *size)
{
    struct winsize window;
    int fd = number_of(descriptor);
    if (fd < 0)
        return fd;
    if (ioctl(fd, TIOCGWINSZ, &window) != 0)
        return -errno;
    size->columns = window.ws_col;
    size->rows = window.ws_row;
    return 0;
}

/* ---- Raw ---- */

struct bide_raw_terminal_ {
    int fd; /* of its own */
    pid_t process;
    struct termios before;
    struct bide_raw_terminal_ *next; /* of the lock; newest first */
};

static struct {
    pthread_mutex_t lock;
    struct bide_raw_terminal_ *first;
    bide_atomic(int) process; /* whose they are; 0: none yet */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* (a process in the background that sets a terminal is stopped, unless it blocks the signal) */
static int set_terminal(int fd, const struct termios *mode)
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

/* At exit: what nobody has ended. (It may still be ended, by what runs later at exit.) */
static void end_all(void)
{
    /* relaxed: it is this process's own number, or not */
    if (bide_atomic_load(&all.process, relaxed) != getpid()) /* 3 */
        return;
    pthread_mutex_lock(&all.lock);
    for (struct bide_raw_terminal_ *raw = all.first; raw != NULL; raw = raw->next)
        set_terminal(raw->fd, &raw->before);
    pthread_mutex_unlock(&all.lock);
}

/* A child of fork has none, and a lock of its own: 3 */
static void begin_anew_in_child(void)
{
    pthread_mutex_init(&all.lock, NULL);
    all.first = NULL;
    bide_atomic_init(&all.process, 0);
}

/* Under the lock. */
static int prepare(void)
{
    static bool is_told_of_exit, is_told_of_fork;
    if (!is_told_of_fork && pthread_atfork(NULL, NULL, begin_anew_in_child) != 0)
        return -ENOMEM;
    is_told_of_fork = true;
    if (!is_told_of_exit && atexit(end_all) != 0)
        return -ENOMEM;
    is_told_of_exit = true;
    bide_atomic_store(&all.process, getpid(), relaxed); /* relaxed: of the lock; end_all */
    return 0;
}

static void make_raw(struct termios *mode, unsigned keep)
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
static int begin_raw(struct bide_raw_terminal_ *raw, unsigned keep)
{
    if (tcgetattr(raw->fd, &raw->before) != 0)
        return -errno;
    int error = prepare();
    if (error != 0)
        return error;
    struct termios mode = raw->before;
    make_raw(&mode, keep);
    error = set_terminal(raw->fd, &mode);
    if (error != 0)
        return error;
    raw->process = getpid();
    raw->next = all.first;
    all.first = raw;
    return 0;
}

int bide_terminal_start_raw(bide_terminal *terminal, const bide_descriptor *descriptor,
                            unsigned keep)
{
    terminal->raw = NULL;
    int fd = number_of(descriptor);
    if (fd < 0)
        return fd;
    struct bide_raw_terminal_ *raw = malloc(sizeof *raw);
    if (raw == NULL)
        return -ENOMEM;
    raw->fd = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN);
    int error = raw->fd < 0 ? -errno : 0;
    if (error == 0) {
        pthread_mutex_lock(&all.lock);
        error = begin_raw(raw, keep);
        pthread_mutex_unlock(&all.lock);
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
        pthread_mutex_lock(&all.lock);
        struct bide_raw_terminal_ **place = &all.first;
        while (*place != raw)
            place = &(*place)->next;
        *place = raw->next;
        error = set_terminal(raw->fd, &raw->before);
        pthread_mutex_unlock(&all.lock);
    }
    close(raw->fd);
    free(raw);
    return error;
}
