/*
 * Standard streams of every kind. Reading and writing them changes no state that other processes share, and
 * nothing is lost. Raw terminals are restored.
 */
#define _GNU_SOURCE
#include "runner.h"

#include "../../src/base/thread_sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* ---- Calls that fail, and a thief ---- */

static bool refuses_to_reopen;
static int fail_tcsetattr;
static int steal_from = -1; /* its data is taken right after it was polled */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    unsigned mode = 0;
    if (refuses_to_reopen && strncmp(path, "/proc/self/fd/", 14) == 0) {
        errno = EACCES;
        return -1;
    }
    if ((flags & O_CREAT) != 0) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, unsigned);
        va_end(list);
    }
    return __real_open(path, flags, mode);
}

int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    return __wrap_open(path, flags & ~O_CREAT);
}

int __real_poll(struct pollfd *asked, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *asked, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *asked, nfds_t count, int timeout)
{
    char taken[16];
    int ready = __real_poll(asked, count, timeout);
    if (ready == 1 && steal_from >= 0) {
        assert_true(read(steal_from, taken, sizeof taken) > 0);
        steal_from = -1;
    }
    return ready;
}

int __real_tcsetattr(int fd, int when, const struct termios *mode);
int __wrap_tcsetattr(int fd, int when, const struct termios *mode);
int __wrap_tcsetattr(int fd, int when, const struct termios *mode)
{
    if (fail_tcsetattr != 0) {
        errno = fail_tcsetattr;
        fail_tcsetattr = 0;
        return -1;
    }
    return __real_tcsetattr(fd, when, mode);
}

/* ---- Kinds of standard streams ---- */

/* (the last two are not reopened) */
enum { TERMINAL, PIPE, SOCKET, SHARED_TERMINAL, SHARED_PIPE, KINDS };

static int open_terminal(int *master)
{
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(*master >= 0);
    assert_int_equal(grantpt(*master), 0);
    assert_int_equal(unlockpt(*master), 0);
    int slave = open(ptsname(*master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    return slave;
}

struct fixture {
    world *world;
    int here;  /* the standard stream */
    int there; /* its other end */
    bide_descriptor opened;
    bide_file_operation operation;
    struct runner runner;
    char buffer[64];
};

/* Opens the stream at `number`, which `fd` replaces meanwhile. */
static int open_at(int number, int fd, bide_descriptor *opened)
{
    int saved = fcntl(number, F_DUPFD_CLOEXEC, 10);
    fflush(NULL);
    if (fd >= 0)
        assert_int_equal(dup2(fd, number), number);
    else
        close(number);
    int status = number == 0   ? bide_standard_input(opened)
                 : number == 1 ? bide_standard_output(opened)
                               : bide_standard_error(opened);
    if (saved >= 0) {
        assert_int_equal(dup2(saved, number), number);
        close(saved);
    } else {
        close(number);
    }
    return status;
}

/* A standard stream of a kind: `number` is 0, 1 or 2. */
static struct fixture *set_up(void **state, int kind, int number)
{
    static struct fixture only;
    struct fixture *f = &only;
    int fds[2];
    f->world = world_of_the_system(state, "memory has no standard streams");
    if (kind == TERMINAL || kind == SHARED_TERMINAL) {
        fds[0] = open_terminal(&fds[1]);
        if (number != 0) { /* (output is not translated) */
            struct termios mode;
            tcgetattr(fds[0], &mode);
            cfmakeraw(&mode);
            tcsetattr(fds[0], TCSANOW, &mode);
        }
    } else if (kind == SOCKET) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    } else {
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    }
    bool is_output_pipe = number != 0 && (kind == PIPE || kind == SHARED_PIPE);
    f->here = fds[is_output_pipe];
    f->there = fds[!is_output_pipe];
    int flags = fcntl(f->here, F_GETFL);
    refuses_to_reopen = kind == SHARED_TERMINAL || kind == SHARED_PIPE;
    assert_int_equal(open_at(number, f->here, &f->opened), 0);
    refuses_to_reopen = false;
    assert_true(bide_descriptor_fd(&f->opened) > 2);
    assert_int_equal(fcntl(f->here, F_GETFL), flags);
    assert_true((fcntl(bide_descriptor_fd(&f->opened), F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal((fcntl(bide_descriptor_fd(&f->opened), F_GETFL) & O_NONBLOCK) != 0,
                     kind == TERMINAL || kind == PIPE);
    assert_int_equal(bide_is_terminal(&f->opened), kind == TERMINAL || kind == SHARED_TERMINAL);
    return f;
}

static void tear_down(struct fixture *f)
{
    bool was_open = bide_descriptor_is_open(&f->opened);
    if (was_open)
        call_inside(f->world, close_it, &f->opened);
    assert_true((fcntl(f->here, F_GETFL) & O_NONBLOCK) == 0);
    close(f->here);
    close(f->there);
}

static void say(struct fixture *f, const char *line)
{
    assert_int_equal(write(f->there, line, strlen(line)), strlen(line));
}

static bide_awaiter *read_some(struct fixture *f)
{
    return bide_read(&f->operation, &f->opened, f->buffer, sizeof f->buffer);
}

static void expect(struct fixture *f, const char *line)
{
    assert_int_equal(f->operation.operation.count, strlen(line));
    assert_memory_equal(f->buffer, line, strlen(line));
}

/* ---- Reads ---- */

static void input_is_read(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct fixture *f = set_up(state, kind, 0);
        say(f, "one\n");
        assert_int_equal(world_wait(f->world, read_some(f)), 0);
        expect(f, "one\n");
        begin(f->world, &f->runner, read_some(f));
        turn(f->world);
        assert_false(f->runner.has_ended);
        say(f, "two\n");
        assert_int_equal(end(f->world, &f->runner), 0);
        expect(f, "two\n");
        if (kind == TERMINAL || kind == SHARED_TERMINAL) {
            say(f, "\4"); /* (the key that ends the input) */
        } else {
            close(f->there);
            f->there = -1;
        }
        assert_int_equal(world_wait(f->world, read_some(f)), 0);
        assert_int_equal(f->operation.operation.count, 0);
        tear_down(f);
    }
}

static void a_read_that_ends_early_loses_nothing(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        for (int how = 0; how < WAYS; how++) {
            struct fixture *f = set_up(state, kind, 0);
            begin_by(f->world, &f->runner, read_some(f), how);
            turn(f->world);
            end_by(f->world, &f->runner, &f->opened, how);
            say(f, "one\n");
            if (how == CLOSE)
                assert_int_equal(open_at(0, f->here, &f->opened), 0);
            assert_int_equal(world_wait(f->world, read_some(f)), 0);
            expect(f, "one\n");
            tear_down(f);
        }
    }
}

/* Another process reads the data between the poll and the call: the loop continues. */
static void a_thief_stops_no_loop(void **state)
{
    static const int kinds[] = {SOCKET, SHARED_PIPE};
    for (int i = 0; i < 2; i++) {
        struct fixture *f = set_up(state, kinds[i], 0);
        if (!world_is_by_readiness()) {
            tear_down(f);
            skip(); /* (the kernel polls and reads) */
        }
        say(f, "one\n");
        steal_from = f->here;
        begin(f->world, &f->runner, read_some(f));
        turn(f->world);
        assert_int_equal(steal_from, -1);
        assert_false(f->runner.has_ended);
        say(f, "two\n");
        assert_int_equal(end(f->world, &f->runner), 0);
        expect(f, "two\n");
        tear_down(f);
    }
}

static void files_and_devices_are_read(void **state)
{
    world *w = world_of_the_system(state, "memory has no standard streams");
    bide_descriptor opened;
    bide_file_operation operation;
    char path[] = "/tmp/bide-terminal-XXXXXX", buffer[4];
    int fd = mkostemp(path, O_CLOEXEC);
    assert_int_equal(write(fd, "abcdef", 6), 6);
    assert_int_equal(lseek(fd, 1, SEEK_SET), 1);
    assert_int_equal(open_at(0, fd, &opened), 0);
    assert_int_equal(world_wait(w, bide_read(&operation, &opened, buffer, 3)), 0);
    assert_int_equal(operation.operation.count, 3);
    assert_memory_equal(buffer, "bcd", 3);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 4); /* its position is shared by all */
    assert_int_equal(world_wait(w, bide_read(&operation, &opened, buffer, 4)), 0);
    assert_int_equal(operation.operation.count, 2);
    assert_int_equal(world_wait(w, bide_read(&operation, &opened, buffer, 4)), 0);
    assert_int_equal(operation.operation.count, 0);
    assert_false(bide_is_terminal(&opened));
    bide_close(&opened);
    close(fd);
    unlink(path);
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_equal(open_at(0, fd, &opened), 0);
    assert_int_equal(world_wait(w, bide_read(&operation, &opened, buffer, 4)), 0);
    assert_int_equal(operation.operation.count, 0);
    bide_close(&opened);
    assert_int_equal(open_at(1, fd, &opened), 0);
    assert_int_equal(world_wait(w, bide_write(&operation, &opened, "ab", 2)), 0);
    assert_int_equal(operation.operation.count, 2);
    bide_close(&opened);
    close(fd);
    for (int number = 0; number < 3; number++) {
        assert_int_equal(open_at(number, -1, &opened), -EBADF);
        assert_false(bide_descriptor_is_open(&opened));
    }
}

/* An end of a pipe keeps its direction: it is not reopened with the other access. */
static void the_wrong_end_is_rejected(void **state)
{
    world *w = world_of_the_system(state, "memory has no standard streams");
    bide_descriptor opened;
    bide_file_operation operation;
    char buffer[4];
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(open_at(0, fds[1], &opened), 0);
    assert_int_equal(world_wait(w, bide_read(&operation, &opened, buffer, 4)), -EBADF);
    bide_close(&opened);
    assert_int_equal(open_at(1, fds[0], &opened), 0);
    assert_int_equal(world_wait(w, bide_write(&operation, &opened, buffer, 4)), -EBADF);
    bide_close(&opened);
    close(fds[0]);
    close(fds[1]);
}

/* ---- Writes ---- */

static void drain(struct fixture *f, size_t size)
{
    static char buffer[4096];
    while (size != 0) {
        ssize_t count = read(f->there, buffer, sizeof buffer < size ? sizeof buffer : size);
        assert_true(count > 0);
        for (ssize_t i = 0; i < count; i++)
            assert_int_equal(buffer[i], 'x');
        size -= (size_t)count;
    }
}

/*
 * More than there is room for: the loop continues, and an operation that ends early reports the written
 * bytes.
 */
static void output_that_is_not_read_stops_no_loop(void **state)
{
    enum { LARGE = 1 << 20 };
    static char data[LARGE];
    memset(data, 'x', sizeof data);
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == SHARED_TERMINAL)
            continue; /* (the room of such a stream cannot be queried) */
        for (int how = 0; how < WAYS; how++) {
            struct fixture *f = set_up(state, kind, 1 + how % 2);
            begin_by(f->world, &f->runner, bide_write(&f->operation, &f->opened, data, LARGE), how);
            turn(f->world);
            if (how != DESTROY && how != TIME_OUT)
                assert_false(f->runner.has_ended);
            end_by(f->world, &f->runner, &f->opened, how);
            size_t count = f->operation.operation.count;
            /* (it may time out before it starts) */
            assert_in_range(count, how == TIME_OUT ? 0 : 1, LARGE - 1);
            drain(f, count);
            if (how != CLOSE) {
                assert_int_equal(
                    world_wait(f->world, bide_write(&f->operation, &f->opened, data, 10)), 0);
                drain(f, 10);
            }
            tear_down(f);
        }
    }
}

static void descriptors_run_out(void **state)
{
    world_of_the_system(state, "memory has no standard streams");
    struct rlimit before, none;
    bide_descriptor opened, slave;
    bide_terminal terminal;
    int master;
    int fd = open_terminal(&master);
    bide_descriptor_init(&slave, fd);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 3;
    int saved = fcntl(0, F_DUPFD_CLOEXEC, 10);
    dup2(fd, 0);
    setrlimit(RLIMIT_NOFILE, &none);
    int status = bide_standard_input(&opened);
    int raw = bide_terminal_start_raw(&terminal, &slave, 0);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_true(status == -EMFILE || status == -EINVAL); /* (the error of F_DUPFD beyond the limit) */
    assert_true(raw == -EMFILE || raw == -EINVAL);
    assert_false(bide_descriptor_is_open(&opened));
    assert_int_equal(bide_terminal_stop_raw(&terminal), 0);
    if (saved >= 0) {
        dup2(saved, 0);
        close(saved);
    }
    close(master);
    bide_close(&slave);
}

/* ---- Raw terminals ---- */

static bool is_cooked(int fd)
{
    struct termios mode;
    assert_int_equal(tcgetattr(fd, &mode), 0);
    return (mode.c_lflag & (ICANON | ECHO | ISIG)) == (ICANON | ECHO | ISIG) &&
           (mode.c_oflag & OPOST) != 0;
}

static void a_raw_terminal_tells_of_each_key(void **state)
{
    struct fixture *f = set_up(state, TERMINAL, 0);
    bide_terminal terminal, second;
    struct termios mode;
    assert_int_equal(bide_terminal_start_raw(&terminal, &f->opened, 0), 0);
    assert_false(is_cooked(f->here));
    say(f, "\3"); /* Ctrl-C, and no new line */
    assert_int_equal(world_wait(f->world, read_some(f)), 0);
    expect(f, "\3");
    assert_int_equal(
        bide_terminal_start_raw(&second, &f->opened, BIDE_TERMINAL_SIGNALS | BIDE_TERMINAL_OUTPUT),
        0);
    assert_int_equal(bide_terminal_stop_raw(&second), 0);
    assert_false(is_cooked(f->here));
    assert_int_equal(bide_terminal_stop_raw(&terminal), 0);
    assert_true(is_cooked(f->here));
    assert_int_equal(bide_terminal_stop_raw(&terminal), 0);
    assert_int_equal(bide_terminal_start_raw(&terminal, &f->opened,
                                             BIDE_TERMINAL_SIGNALS | BIDE_TERMINAL_OUTPUT),
                     0);
    assert_int_equal(tcgetattr(f->here, &mode), 0);
    assert_true((mode.c_lflag & ISIG) != 0 && (mode.c_oflag & OPOST) != 0);
    assert_true((mode.c_lflag & (ICANON | ECHO)) == 0);
    assert_int_equal(bide_terminal_stop_raw(&terminal), 0);
    assert_true(is_cooked(f->here));
    tear_down(f);
}

/* Runs `function` in a child, which exits like a process that has not ended it. */
static void in_child(void (*function)(struct fixture *), struct fixture *f)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        function(f);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
}

static void begin_and_exit(struct fixture *f)
{
    static bide_terminal terminal;
    if (bide_terminal_start_raw(&terminal, &f->opened, 0) != 0 || is_cooked(f->here))
        abort();
}

static bide_terminal of_parent;

static void end_that_of_the_parent(struct fixture *f)
{
    (void)f;
    if (bide_terminal_stop_raw(&of_parent) != 0)
        abort();
}

static void only_exit(struct fixture *f)
{
    (void)f;
}

static void a_terminal_is_as_it_was_after_exit(void **state)
{
    struct fixture *f = set_up(state, TERMINAL, 0);
    in_child(begin_and_exit, f);
    assert_true(is_cooked(f->here));
    assert_int_equal(bide_terminal_start_raw(&of_parent, &f->opened, 0), 0);
    in_child(only_exit, f); /* a child that has not made the terminal raw does not change it */
    assert_false(is_cooked(f->here));
    in_child(end_that_of_the_parent, f);
    assert_false(is_cooked(f->here));
    assert_int_equal(bide_terminal_stop_raw(&of_parent), 0);
    assert_true(is_cooked(f->here));
    tear_down(f);
}

static void failures_leave_a_terminal_as_it_was(void **state)
{
    struct fixture *f = set_up(state, TERMINAL, 0);
    bide_terminal terminal;
    bide_terminal_size size;
    fail_tcsetattr = EIO;
    assert_int_equal(bide_terminal_start_raw(&terminal, &f->opened, 0), -EIO);
    assert_true(is_cooked(f->here));
    assert_int_equal(bide_terminal_stop_raw(&terminal), 0);
    fail_tcsetattr = EINTR; /* repeated */
    assert_int_equal(bide_terminal_start_raw(&terminal, &f->opened, 0), 0);
    fail_tcsetattr = EIO;
    assert_int_equal(bide_terminal_stop_raw(&terminal), -EIO);
    assert_int_equal(bide_terminal_stop_raw(&terminal), 0);
    tear_down(f);
    assert_int_equal(bide_terminal_start_raw(&terminal, &f->opened, 0), -EBADF);
    assert_int_equal(bide_terminal_get_size(&f->opened, &size), -EBADF);
    f = set_up(state, PIPE, 0);
    assert_int_equal(bide_terminal_start_raw(&terminal, &f->opened, 0), -ENOTTY);
    assert_int_equal(bide_terminal_get_size(&f->opened, &size), -ENOTTY);
    tear_down(f);
}

static void a_window_changes_its_size(void **state)
{
    struct fixture *f = set_up(state, TERMINAL, 1);
    struct winsize window = {.ws_row = 24, .ws_col = 80};
    bide_terminal_size size;
    assert_int_equal(ioctl(f->there, TIOCSWINSZ, &window), 0);
    assert_int_equal(bide_terminal_get_size(&f->opened, &size), 0);
    assert_int_equal(size.columns, 80);
    assert_int_equal(size.rows, 24);
#if !BIDE_UNDER_TSAN_ /* (it defers handlers) */
    bide_signal resized;
    bide_signal_waiter wait;
    assert_int_equal(bide_signal_listen(&resized, SIGWINCH), 0);
    window.ws_col = 100;
    assert_int_equal(ioctl(f->there, TIOCSWINSZ, &window), 0);
    raise(SIGWINCH); /* (as the system does for the processes of that terminal) */
    assert_int_equal(world_wait(f->world, bide_signal_wait(&wait, &resized)), 0);
    assert_int_equal(bide_signal_destroy(&resized), 0);
    assert_int_equal(bide_terminal_get_size(&f->opened, &size), 0);
    assert_int_equal(size.columns, 100);
#endif
    tear_down(f);
}

static void a_loop_in_memory_has_no_terminal(void **state)
{
    world *w = world_of(state);
    bide_descriptor input, output;
    bide_terminal terminal;
    bide_terminal_size size;
    if (w->memory == NULL)
        skip();
    world_pipe(w, &input, &output);
    assert_false(bide_is_terminal(&input));
    assert_int_equal(bide_terminal_get_size(&input, &size), -EOPNOTSUPP);
    assert_int_equal(bide_terminal_start_raw(&terminal, &input, 0), -EOPNOTSUPP);
    bide_close(&input);
    bide_close(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(input_is_read),
        world_test(a_read_that_ends_early_loses_nothing),
        world_test(a_thief_stops_no_loop),
        world_test(files_and_devices_are_read),
        world_test(the_wrong_end_is_rejected),
        world_test(output_that_is_not_read_stops_no_loop),
        world_test(descriptors_run_out),
        world_test(a_raw_terminal_tells_of_each_key),
        world_test(a_terminal_is_as_it_was_after_exit),
        world_test(failures_leave_a_terminal_as_it_was),
        world_test(a_window_changes_its_size),
        world_test(a_loop_in_memory_has_no_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
