/*
 * What a child does before its program begins: its user, limits, terminal, death signal and cgroup; and a
 * process that others outlive. A step that fails is named, and leaves no process.
 */
#define _GNU_SOURCE
#include "world.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

/* ---- A parent that ends at the worst moment ---- */

static bool kills_its_parent; /* before the death signal is set */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* (It reads six arguments, and most calls have fewer.) */
UNCHECKED_BY_MSAN __attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_prctl && a[0] == PR_SET_PDEATHSIG && kills_its_parent) {
        long parent = __real_syscall(SYS_getppid);
        __real_syscall(SYS_kill, parent, SIGKILL);
        while (__real_syscall(SYS_getppid) == parent)
            __real_syscall(SYS_sched_yield);
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- Common ---- */

/* Without handles of processes there are neither cgroups nor death signals: process.h. */
#if defined BIDE_HAS_PIDFD && !BIDE_HAS_PIDFD
enum { HAS_LINUX_STEPS = 0 };
#else
enum { HAS_LINUX_STEPS = 1 };
#endif

#define SHELL(text) .program = "/bin/sh", .arguments = (char *[]){"sh", "-c", text, NULL}
#define PIPES .streams = {{.kind = BIDE_STREAM_PIPE}, {.kind = BIDE_STREAM_PIPE}, {.kind = BIDE_STREAM_PIPE}}

enum { NOBODY = 65534, SOME = 4242 };

static void assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* Runs it, and returns its output, NUL-terminated. */
static void run(world *world, const bide_process_options *options, char *output, size_t size)
{
    static bide_process_communicate_operation talk;
    bide_process process;
    assert_int_equal(bide_process_start(&process, options), 0);
    assert_int_equal(process.failed_at, BIDE_PROCESS_AT_NONE);
    assert_int_equal(world_wait(world, bide_process_communicate(&talk, &process, NULL, 0, output, size - 1, NULL, 0)), 0);
    output[talk.output_count] = '\0';
    assert_int_equal(process.exit_code, 0);
    bide_process_destroy(&process);
    assert_no_children();
}

/* What it prints with that setup. */
static void assert_prints(world *world, char *command, const bide_process_setup *setup, const char *expected)
{
    char text[400];
    run(world, &(bide_process_options){SHELL(command), PIPES, .setup = setup, .directory = "/"}, text, sizeof text);
    assert_string_equal(text, expected);
}

static void require_root(void)
{
    if (geteuid() != 0) {
        printf("# not as root\n");
        skip();
    }
}

/* ---- What the program finds ---- */

static void a_child_with_a_setup_is_as_one_without(void **state)
{
    world *world = world_of(state);
    static const bide_process_setup none = {.death_signal = 0};
    char text[400];
    char *environment[] = {"ONE=1", "PATH=/nowhere", NULL};
    bide_process_options options = {SHELL("echo $0 $ONE $HOME; pwd"), PIPES, .environment = environment, .directory = "/usr",
                                    .setup = &none};
    options.program = "sh"; /* looked for in the PATH of this program */
    run(world, &options, text, sizeof text);
    assert_string_equal(text, "sh 1\n/usr\n");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    void (*was)(int) = signal(SIGPIPE, SIG_IGN);
    bide_process_options grep = {.program = "grep",
                                 .arguments = (char *[]){"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", NULL},
                                 PIPES,
                                 .setup = &none};
    run(world, &grep, text, sizeof text);
    signal(SIGPIPE, was);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_string_equal(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void the_descriptors_of_a_child_with_a_setup_are_the_given_ones(void **state)
{
    world *world = world_of(state);
    static const bide_process_setup none = {.death_signal = 0};
    char text[200];
    int fds[2], stray = dup(2);
    assert_int_equal(pipe(fds), 0);
    bide_process_fd passes[] = {{fds[0], 7}};
    bide_process_options options = {SHELL("ls /proc/$$/fd; :"), PIPES, .fds = passes, .fd_count = 1, .setup = &none};
    run(world, &options, text, sizeof text);
    assert_string_equal(text, "0\n1\n2\n7\n");
    close(fds[0]);
    close(fds[1]);
    close(stray);
}

static void limits_and_the_umask_are_set(void **state)
{
    world *world = world_of(state);
    const bide_process_limit limits[] = {{RLIMIT_NOFILE, 33, 44}, {RLIMIT_CORE, 0, 0}};
    const bide_process_setup setup = {.limits = limits, .limit_count = 2, .sets_umask = true, .umask = 0027};
    assert_prints(world, "ulimit -Sn; ulimit -Hn; ulimit -c; umask", &setup, "33\n44\n0\n0027\n");
}

static void the_user_and_the_groups_are_set(void **state)
{
    world *world = world_of(state);
    static const uint32_t groups[] = {7, 70000};
    bide_process_setup setup = {
        .sets_user = true, .user = NOBODY, .sets_group = true, .group = SOME, .groups = groups, .group_count = 2};
    require_root();
    char *command = "while read name rest; do case $name in Uid:|Gid:|Groups:) echo $name $rest;; esac; done </proc/self/status";
    assert_prints(world, command, &setup,
                  "Uid: 65534 65534 65534 65534\nGid: 4242 4242 4242 4242\nGroups: 7 70000\n");
    setup.groups = NULL; /* and no groups that the parent has */
    setup.group_count = 0;
    assert_prints(world, command, &setup, "Uid: 65534 65534 65534 65534\nGid: 4242 4242 4242 4242\nGroups:\n");
}

static void a_terminal_is_taken_and_has_its_size(void **state)
{
    world *world = world_of(state);
    const bide_terminal_size size = {.columns = 91, .rows = 17}, larger = {.columns = 92, .rows = 18};
    const bide_process_setup setup = {.takes_terminal = true};
    bide_descriptor control, terminal;
    bide_file_operation file;
    int status = bide_pseudo_terminal_open(&control, &terminal, &size);
    if (status < 0) {
        printf("# no pseudo-terminals: %s\n", strerror(-status));
        skip();
    }
    int fd = bide_descriptor_fd(&terminal);
    bide_process process;
    bide_process_options options = {SHELL("stty size </dev/tty; read x </dev/tty; stty size; trap '' HUP; exit 5"),
                                    .streams = {{BIDE_STREAM_GIVEN, fd}, {BIDE_STREAM_GIVEN, fd}, {BIDE_STREAM_GIVEN, fd}},
                                    .setup = &setup};
    assert_int_equal(bide_process_start(&process, &options), -EINVAL); /* it needs a session */
    options.new_session = true;
    assert_int_equal(bide_process_start(&process, &options), 0);
    bide_close(&terminal);
    char text[200];
    size_t count = 0;
    bool is_typed = false;
    while ((status = world_wait(world, bide_read(&file, &control, text + count, sizeof text - 1 - count))) == 0) {
        count += file.operation.count;
        text[count] = '\0';
        if (!is_typed && strstr(text, "17 91") != NULL) {
            assert_int_equal(bide_terminal_set_size(&control, &larger), 0);
            assert_int_equal(world_wait(world, bide_write(&file, &control, "x\n", 2)), 0);
            is_typed = true;
        }
    }
    assert_int_equal(status, -EIO);
    assert_non_null(strstr(text, "18 92"));
    bide_process_wait_operation wait;
    assert_int_equal(world_wait(world, bide_process_wait(&wait, &process)), 0);
    assert_int_equal(process.exit_code, 5);
    bide_process_destroy(&process);
    bide_close(&control);
    assert_no_children();
    const bide_terminal_size too_large = {.columns = 70000, .rows = 1};
    assert_int_equal(bide_pseudo_terminal_open(&control, &terminal, &too_large), -EINVAL);
}

static void it_is_in_the_cgroup(void **state)
{
    world *world = world_of(state);
    struct statfs about;
    char path[] = "/sys/fs/cgroup/bide-test-XXXXXX", text[400];
    require_root();
    if (statfs("/sys/fs/cgroup", &about) != 0 || about.f_type != 0x63677270 || mkdtemp(path) == NULL) {
        printf("# no cgroup of version 2 can be made\n");
        skip();
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bide_process_setup setup = {.cgroup = fd};
    bide_process process;
    int status = bide_process_start(&process, &(bide_process_options){SHELL("exit 0"), .setup = &setup});
    if (status < 0) {
        assert_int_equal(process.failed_at, BIDE_PROCESS_AT_CGROUP);
    } else {
        bide_process_wait_operation wait;
        assert_int_equal(world_wait(world, bide_process_wait(&wait, &process)), 0);
        bide_process_destroy(&process);
        run(world, &(bide_process_options){SHELL("while read line; do case $line in 0::*) echo $line;; esac; done </proc/self/cgroup"), PIPES, .setup = &setup},
            text, sizeof text);
        const char *name = strrchr(path, '/'); /* (the mount may be of a part of the tree) */
        assert_non_null(strstr(text, name));
    }
    close(fd);
    assert_int_equal(rmdir(path), 0);
    if (status < 0) {
        printf("# the kernel starts nothing in a cgroup: %s\n", strerror(-status));
        skip();
    }
}

/* ---- Steps that fail ---- */

static void a_step_that_fails_is_named_and_leaves_nothing(void **state)
{
    world_of(state);
    int before = count_descriptors();
    static const bide_process_limit limit = {RLIMIT_NOFILE, 9, 8}, unknown = {12345, 1, 1};
    const bide_process_setup none = {.death_signal = 0}, limits = {.limits = &limit, .limit_count = 1},
                             no_limit = {.limits = &unknown, .limit_count = 1}, signal = {.death_signal = 12345},
                             terminal = {.takes_terminal = true}, cgroup = {.cgroup = 54321};
    const struct {
        bide_process_options options;
        int error;
        bide_process_step step;
        const char *name;
    } rows[] = {
        {{.program = "/no/such/program", .setup = &none}, -ENOENT, BIDE_PROCESS_AT_PROGRAM, "program"},
        {{.program = "no-such-program-anywhere", .setup = &none}, -ENOENT, BIDE_PROCESS_AT_PROGRAM, "program"},
        {{.program = "/etc/passwd", .setup = &none}, -EACCES, BIDE_PROCESS_AT_PROGRAM, "program"},
        {{.program = "/bin/true", .directory = "/no/such/directory", .setup = &none}, -ENOENT, BIDE_PROCESS_AT_DIRECTORY,
         "directory"},
        {{.program = "/bin/true", .setup = &limits}, -EINVAL, BIDE_PROCESS_AT_LIMITS, "limits"},
        {{.program = "/bin/true", .setup = &no_limit}, -EINVAL, BIDE_PROCESS_AT_LIMITS, "limits"},
        {{.program = "/bin/true", .setup = &signal}, HAS_LINUX_STEPS ? -EINVAL : -EOPNOTSUPP, BIDE_PROCESS_AT_DEATH_SIGNAL, "death signal"},
        {{.program = "/bin/true", .setup = &terminal, .new_session = true, .streams = {{.kind = BIDE_STREAM_NULL}}}, -ENOTTY,
         BIDE_PROCESS_AT_TERMINAL, "controlling terminal"},
        {{.program = "/bin/true", .setup = &cgroup}, -EBADF, BIDE_PROCESS_AT_CGROUP, "cgroup"},
        {{.program = NULL}, -EINVAL, BIDE_PROCESS_AT_START, "start"},
        {{.program = "/no/such/program"}, -ENOENT, BIDE_PROCESS_AT_START, "start"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bide_process process;
        int status = bide_process_start(&process, &rows[i].options);
        if (rows[i].step == BIDE_PROCESS_AT_CGROUP && !HAS_LINUX_STEPS)
            assert_int_equal(status, -EOPNOTSUPP);
        else if (rows[i].step != BIDE_PROCESS_AT_CGROUP || status != -EOPNOTSUPP)
            assert_int_equal(status, rows[i].error);
        assert_int_equal(process.failed_at, rows[i].step);
        assert_string_equal(bide_process_step_name(process.failed_at), rows[i].name);
        assert_no_children();
        assert_int_equal(count_descriptors(), before);
        bide_process_destroy(&process);
    }
    assert_string_equal(bide_process_step_name((bide_process_step)1000), "unknown");
}

/* An unprivileged process may not be another user. A child of root becomes one first. */
static void a_user_that_may_not_be_is_refused(void **state)
{
    world *world = world_of(state);
    static const bide_process_setup setup = {.sets_user = true, .user = 0, .keeps_groups = true};
    require_root();
    (void)world;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bide_process process;
        if (syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) != 0)
            _exit(3);
        int status = bide_process_start(&process, &(bide_process_options){.program = "/bin/true", .setup = &setup});
        _exit(status == -EPERM && process.failed_at == BIDE_PROCESS_AT_USER ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- The death signal ---- */

/* A parent between this process and the child ends; the child holds the only writing end of the pipe. */
static void the_child_gets_a_signal_when_its_parent_ends(void **state)
{
    world_of(state);
    if (!HAS_LINUX_STEPS) {
        printf("# no death signals\n");
        skip();
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    for (int at_once = 0; at_once < 2; at_once++) {
        static const bide_process_setup setup = {.death_signal = SIGTERM};
        int fds[2];
        char byte;
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid_t parent = fork();
        assert_true(parent >= 0);
        if (parent == 0) {
            bide_process process;
            const bide_process_fd passed = {fds[1], 3};
            kills_its_parent = at_once;
            close(fds[0]);
            int status = bide_process_start(
                &process, &(bide_process_options){SHELL("exec sleep 1000"), .fds = &passed, .fd_count = 1, .setup = &setup});
            _exit(status == 0 ? 0 : 1);
        }
        close(fds[1]);
        assert_int_equal(read(fds[0], &byte, 1), 0); /* both have ended */
        close(fds[0]);
        bool was_signalled = false;
        for (int status, i = 0; i < 2; i++) { /* the child is this process's now */
            pid_t pid = waitpid(-1, &status, 0);
            assert_true(pid > 0);
            if (pid != parent) {
                assert_true(WIFSIGNALED(status));
                assert_int_equal(WTERMSIG(status), SIGTERM);
                was_signalled = true;
            } else if (at_once) {
                assert_true(WIFSIGNALED(status));
            } else {
                assert_int_equal(status, 0);
            }
        }
        assert_true(was_signalled);
        assert_no_children();
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

/* ---- Processes that others outlive ---- */

/* The shell ends, and the sleeper has its pipes. The sleeper is killed by its group. */
static void a_pipe_that_others_hold_does_not_hold_the_talk(void **state)
{
    world *world = world_of(state);
    static bide_process_communicate_operation talk;
    char output[64], error[64];
    bide_process process;
    for (int room = 0; room < 2; room++) {
        bide_process_options options = {
            SHELL("sleep 1000 & echo said; echo wrong >&2"), PIPES, .new_group = true, .wait_delay = 1000000};
        assert_int_equal(bide_process_start(&process, &options), 0);
        int status = world_wait(world, bide_process_communicate(&talk, &process, "x", 1, output, room ? sizeof output : 3,
                                                                error, sizeof error));
        if (room) {
            assert_int_equal(status, 0);
            assert_true(talk.held_open);
            assert_int_equal(talk.output_count, 5);
            assert_memory_equal(output, "said\n", 5);
            assert_int_equal(talk.error_count, 6);
            assert_true(process.has_ended);
            assert_int_equal(process.exit_code, 0);
        } else {
            assert_int_equal(status, -EMSGSIZE);
            assert_int_equal(talk.output_count, 3);
        }
        assert_int_equal(bide_process_signal_group(&process, SIGKILL), 0);
        bide_process_destroy(&process);
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
}

static void a_wait_delay_leaves_other_talks_as_they_are(void **state)
{
    world *world = world_of(state);
    static bide_process_communicate_operation talk;
    char output[64];
    bide_process process;
    bide_process_options options = {SHELL("read x; echo $x"), PIPES, .wait_delay = BIDE_SECONDS(1000)};
    assert_int_equal(bide_process_start(&process, &options), 0);
    assert_int_equal(world_wait(world, bide_process_communicate(&talk, &process, "word\n", 5, output, sizeof output, NULL, 0)),
                     0);
    assert_false(talk.held_open);
    assert_int_equal(talk.output_count, 5);
    assert_int_equal(talk.input_count, 5);
    bide_process_destroy(&process);
    options = (bide_process_options){SHELL("exec <&-; exit 3"), .wait_delay = BIDE_SECONDS(1000)}; /* no pipes */
    assert_int_equal(bide_process_start(&process, &options), 0);
    assert_int_equal(world_wait(world, bide_process_communicate(&talk, &process, NULL, 0, output, 1, NULL, 0)), 0);
    assert_int_equal(process.exit_code, 3);
    bide_process_destroy(&process);
    assert_no_children();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_child_with_a_setup_is_as_one_without),
        world_test(the_descriptors_of_a_child_with_a_setup_are_the_given_ones),
        world_test(limits_and_the_umask_are_set),
        world_test(the_user_and_the_groups_are_set),
        world_test(a_terminal_is_taken_and_has_its_size),
        world_test(it_is_in_the_cgroup),
        world_test(a_step_that_fails_is_named_and_leaves_nothing),
        world_test(a_user_that_may_not_be_is_refused),
        world_test(the_child_gets_a_signal_when_its_parent_ends),
        world_test(a_pipe_that_others_hold_does_not_hold_the_talk),
        world_test(a_wait_delay_leaves_other_talks_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
