/*
 * Child processes: what they inherit, how they end, their input and output. No process and no descriptor is
 * left, however it ends.
 */
#define _GNU_SOURCE
#include "world.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- A kernel without pidfds, or without room for one ---- */

static int refusal; /* the error of pidfd_open; or 0 */

#if defined BIDE_HAS_PIDFD && !BIDE_HAS_PIDFD
enum { HAS_HANDLES = 0 };
#else
enum { HAS_HANDLES = 1 };
#endif

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

UNCHECKED_BY_MSAN long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_pidfd_open && refusal != 0) {
        errno = refusal;
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- What the library does with signals ---- */

static bide_atomic(unsigned) kills;
static void (*foreign)(int); /* another thread's handler, installed between two calls of sigaction; or NULL */

int __real_kill(pid_t pid, int number);
int __wrap_kill(pid_t pid, int number);

int __wrap_kill(pid_t pid, int number)
{
    bide_atomic_fetch_add(&kills, 1, relaxed);
    return __real_kill(pid, number);
}

int __real_sigaction(int number, const struct sigaction *action, struct sigaction *before);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before);

int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    if (number == SIGCHLD && action != NULL && foreign != NULL) {
        struct sigaction theirs = {.sa_handler = foreign};
        foreign = NULL;
        assert_int_equal(__real_sigaction(SIGCHLD, &theirs, NULL), 0);
    }
    return __real_sigaction(number, action, before);
}

static volatile sig_atomic_t foreign_signals;

static void foreign_handler(int number)
{
    (void)number;
    foreign_signals = 1;
}

/* ---- Common ---- */

#define SHELL(text)                               \
    .program = "/bin/sh", .arguments = (char *[]) \
    {                                             \
        "sh", "-c", text, NULL                    \
    }

#define PIPES \
    .streams = {{.kind = BIDE_STREAM_PIPE}, {.kind = BIDE_STREAM_PIPE}, {.kind = BIDE_STREAM_PIPE}}

static int begin(bide_process *process, const bide_process_options *options)
{
    return bide_process_start(process, options);
}

static void assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static int wait_for(world *world, bide_process *process)
{
    bide_process_wait_operation wait;
    return world_wait(world, bide_process_wait(&wait, process));
}

/* Talks to the process and returns its output, NUL-terminated. */
static int talk(world *world, bide_process *process, const char *input, char *output, size_t size)
{
    static bide_process_communicate_operation operation;
    int status =
        world_wait(world, bide_process_communicate(&operation, process, input, strlen(input),
                                                   output, size - 1, NULL, 0));
    output[operation.output_count] = '\0';
    return status;
}

/* Without a pidfd, a signal reports the end. */
static const int refusals[] = {0, ENOSYS};

/* ---- Ends ---- */

static void the_end_of_a_process_is_reported(void **state)
{
    world *world = world_of(state);
    static const struct {
        char *text;
        int exit_code, signal;
    } ends[] = {{"exit 0", 0, 0}, {"exit 7", 7, 0}, {"kill -9 $$", -1, 9}, {"kill -15 $$", -1, 15}};
    for (size_t how = 0; how < sizeof refusals / sizeof *refusals; how++) {
        refusal = refusals[how];
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            bide_process process;
            assert_int_equal(begin(&process, &(bide_process_options){SHELL(ends[i].text)}), 0);
            assert_int_equal(bide_descriptor_is_open(&process.handle), HAS_HANDLES && refusal == 0);
            assert_int_equal(wait_for(world, &process), 0);
            assert_int_equal(process.exit_code, ends[i].exit_code);
            assert_int_equal(process.signal, ends[i].signal);
            assert_true(process.max_memory > 0);
            assert_int_equal(wait_for(world, &process), 0); /* the second time it returns at once */
            assert_int_equal(bide_process_signal(&process, SIGTERM), -ESRCH);
            bide_process_destroy(&process);
            assert_no_children();
        }
    }
    refusal = 0;
}

/* As by a program that inherits it, or by another part of this one. */
static void the_end_is_reported_although_sigchld_was_ignored(void **state)
{
    world *world = world_of(state);
    struct sigaction before, now;
    for (int how = 0; how < 2; how++) {
        bide_process process;
        struct sigaction ignores = {.sa_handler = how == 0 ? SIG_IGN : SIG_DFL,
                                    .sa_flags = how == 0 ? 0 : SA_NOCLDWAIT};
        assert_int_equal(sigaction(SIGCHLD, &ignores, &before), 0);
        assert_int_equal(begin(&process, &(bide_process_options){SHELL("exit 7")}), 0);
        assert_int_equal(wait_for(world, &process), 0);
        assert_int_equal(process.exit_code, 7);
        assert_int_equal(sigaction(SIGCHLD, &before, &now), 0);
        assert_true(now.sa_handler != SIG_IGN && (now.sa_flags & SA_NOCLDWAIT) == 0);
        bide_process_destroy(&process);
        assert_no_children();
    }
}

/* The handler stays, and is run once for the signals that it may have missed. */
static void a_handler_that_is_installed_meanwhile_stays(void **state)
{
    world_of(state);
    bide_process process;
    struct sigaction ignores = {.sa_handler = SIG_IGN}, before, now;
    assert_int_equal(__real_sigaction(SIGCHLD, &ignores, &before), 0);
    foreign_signals = 0;
    foreign = foreign_handler;
    assert_int_equal(begin(&process, &(bide_process_options){SHELL("read x"), PIPES}), 0);
    assert_null(foreign);
    while (foreign_signals == 0) /* another thread may run the handler */
        sched_yield();
    assert_int_equal(__real_sigaction(SIGCHLD, &before, &now), 0);
    assert_true(now.sa_handler == foreign_handler);
    bide_process_destroy(&process);
    assert_no_children();
}

/* So it does not matter that it could not listen to the signal. */
static void a_second_wait_needs_no_signal(void **state)
{
    world *world = world_of(state);
    for (size_t how = 0; how < sizeof refusals / sizeof *refusals; how++) {
        bide_process process, other;
        struct sigaction theirs = {.sa_handler = foreign_handler}, before;
        refusal = refusals[how];
        assert_int_equal(begin(&process, &(bide_process_options){SHELL("exit 7")}), 0);
        assert_int_equal(wait_for(world, &process), 0);
        assert_int_equal(sigaction(SIGCHLD, &theirs, &before), 0);
        assert_int_equal(wait_for(world, &process), 0);
        assert_int_equal(process.exit_code, 7);
        assert_int_equal(begin(&other, &(bide_process_options){SHELL("exit 0")}), 0);
        bool has_handle = bide_descriptor_is_open(&other.handle);
        assert_int_equal(wait_for(world, &other), has_handle ? 0 : -EBUSY);
        assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
        bide_process_destroy(&other);
        bide_process_destroy(&process);
        assert_no_children();
    }
    refusal = 0;
}

static void a_failed_start_leaves_nothing(void **state)
{
    world_of(state);
    static const int given[] = {12345};
    int before = count_descriptors();
    char *const one_argument[] = {"x", NULL};
    const struct {
        bide_process_options options;
        int error;
    } tries[] = {
        {{.program = "/no/such/program"}, -ENOENT},
        {{.program = "no-such-program-anywhere"}, -ENOENT},
        {{.program = "/etc/passwd"}, -EACCES},
        {{.program = "/", .arguments = one_argument}, -EACCES},
        {{.program = "/bin/true", .directory = "/no/such/directory"}, -ENOENT},
        {{.program = NULL}, -EINVAL},
        {{.program = "/bin/true", .streams = {{BIDE_STREAM_GIVEN, given[0]}}}, -EBADF},
        {{.program = "/bin/true", .fds = &(bide_process_fd){0, 2}, .fd_count = 1}, -EINVAL},
        {{.program = "/bin/true", .fds = &(bide_process_fd){given[0], 5}, .fd_count = 1}, -EBADF},
        {{.program = "/no/such/program", PIPES}, -ENOENT},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        bide_process process;
        assert_int_equal(begin(&process, &tries[i].options), tries[i].error);
        assert_no_children();
        assert_int_equal(count_descriptors(), before);
        bide_process_destroy(&process); /* allowed although the process has ended */
    }
}

/* With each limit on the number of descriptors, until it succeeds. */
static void a_lack_of_descriptors_is_reported_and_leaves_nothing(void **state)
{
    world *world = world_of(state);
    struct rlimit limit, few;
    int before = count_descriptors();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    bool began = false;
    for (rlim_t max = 3; !began && max < 200; max++) {
        bide_process process;
        few = limit;
        few.rlim_cur = max;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int status = begin(&process, &(bide_process_options){.program = "/bin/true", PIPES});
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        began = status == 0;
        if (began)
            assert_int_equal(wait_for(world, &process), 0);
        else
            assert_true(status == -EMFILE || status == -EINVAL || status == -EBADF);
        bide_process_destroy(&process);
        assert_no_children();
        assert_int_equal(count_descriptors(), before);
    }
    assert_true(began);
    if (!HAS_HANDLES)
        return;
    refusal =
        EMFILE; /* if only the pidfd cannot be opened, the process exists already and is killed */
    bide_process process;
    assert_int_equal(begin(&process, &(bide_process_options){.program = "/bin/true"}), -EMFILE);
    refusal = 0;
    assert_no_children();
    assert_int_equal(count_descriptors(), before);
}

/* ---- Inheritance ---- */

static void it_has_its_arguments_its_environment_and_its_directory(void **state)
{
    world *world = world_of(state);
    char text[200];
    char *environment[] = {"ONE=1", "TWO=two", NULL};
    bide_process process;
    assert_int_equal(begin(&process,
                           &(bide_process_options){
                               .program = "/bin/sh",
                               .arguments = (char *[]){"name", "-c", "echo $0 $ONE $TWO $HOME; pwd",
                                                       "zero", NULL},
                               .environment = environment,
                               .directory = "/usr",
                               PIPES}),
                     0);
    assert_int_equal(talk(world, &process, "", text, sizeof text), 0);
    assert_string_equal(text, "zero 1 two\n/usr\n");
    bide_process_destroy(&process);
}

static void it_has_the_descriptors_that_it_is_given_and_no_others(void **state)
{
    world *world = world_of(state);
    char text[200];
    int fds[2], stray = dup(2); /* not closed on exec */
    bide_process process;
    assert_int_equal(pipe(fds), 0);
    int other = 9; /* a number of one digit that is neither's */
    while (other == fds[0] || other == fds[1])
        other--;
    /* Two descriptors exchange their numbers. */
    bide_process_fd passes[] = {{fds[0], fds[1]}, {fds[1], fds[0]}, {fds[1], other}};
    assert_int_equal(write(fds[1], "passed", 6), 6);
    char command[120];
    /* (a shell may know no numbers of two digits in "<&"; the shell then has no pipe of its own, and waits for ls) */
    snprintf(command, sizeof command,
             "head -c 6 </proc/self/fd/%d; echo; grep flags /proc/$$/fdinfo/%d | tail -c 2;"
             "echo more >&%d; ls /proc/$$/fd; :",
             fds[1], fds[1], other);
    assert_int_equal(
        begin(&process, &(bide_process_options){.program = "/bin/sh",
                                                .arguments = (char *[]){"sh", "-c", command, NULL},
                                                .fds = passes,
                                                .fd_count = 3,
                                                PIPES}),
        0);
    assert_int_equal(talk(world, &process, "", text, sizeof text), 0);
    bide_process_destroy(&process);
    static const char passed[] = "passed\n0\n"; /* (0: it is open for reading only) */
    assert_memory_equal(text, passed, sizeof passed - 1);
    const int there[] = {0, 1, 2, other, fds[0], fds[1]};
    unsigned found = 0;
    int count = 0;
    for (char *at = text + sizeof passed - 1, *end; *at != '\0'; at = end + 1, count++) {
        long fd = strtol(at, &end, 10);
        assert_int_equal(*end, '\n');
        for (unsigned i = 0; i < sizeof there / sizeof *there; i++)
            found |= (unsigned)(fd == there[i]) << i;
    }
    assert_int_equal(found, 63);
    assert_int_equal(count, 6); /* only these */
    char more[8];
    assert_int_equal(read(fds[0], more, sizeof more), 5);
    assert_memory_equal(more, "more\n", 5);
    close(fds[0]);
    close(fds[1]);
    close(stray);
}

static void its_streams_are_the_requested_ones(void **state)
{
    world *world = world_of(state);
    char path[] = "/tmp/bide-process-XXXXXX", text[64] = "";
    int file = mkstemp(path);
    bide_process process;
    assert_true(file >= 0);
    unlink(path);
    bide_process_options options = {SHELL("cat; echo said"),
                                    .streams = {{.kind = BIDE_STREAM_NULL},
                                                {.kind = BIDE_STREAM_GIVEN, .fd = file},
                                                {.kind = BIDE_STREAM_NULL}}};
    assert_int_equal(begin(&process, &options), 0);
    assert_int_equal(wait_for(world, &process), 0);
    assert_int_equal(process.exit_code, 0);
    assert_int_equal(pread(file, text, sizeof text, 0), 5);
    assert_memory_equal(text, "said\n", 5);
    bide_process_destroy(&process);
    close(file);
}

static void it_blocks_no_signal_and_ignores_none(void **state)
{
    world *world = world_of(state);
    char text[400];
    sigset_t all, before;
    bide_process process;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    void (*was)(int) = signal(SIGPIPE, SIG_IGN);
    int status = begin(
        &process, &(bide_process_options){.program = "grep",
                                          .arguments = (char *[]){"grep", "-E", "^Sig(Blk|Ign)",
                                                                  "/proc/self/status", NULL},
                                          PIPES});
    signal(SIGPIPE, was);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(status, 0);
    assert_int_equal(talk(world, &process, "", text, sizeof text), 0);
    assert_string_equal(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    bide_process_destroy(&process);
}

/* ---- Talking ---- */

enum { MUCH = 3 << 20 };

static void both_outputs_and_the_input_work_at_once(void **state)
{
    world *world = world_of(state);
    static char input[MUCH], output[MUCH + 1], error[MUCH + 1];
    static bide_process_communicate_operation operation;
    bide_process process;
    uint64_t random = testing_seed();
    for (size_t i = 0; i < MUCH; i++)
        input[i] = (char)testing_random(&random);
    assert_int_equal(begin(&process, &(bide_process_options){SHELL("tee /proc/self/fd/2"), PIPES}),
                     0);
    assert_int_equal(
        world_wait(world, bide_process_communicate(&operation, &process, input, MUCH, output,
                                                   sizeof output, error, sizeof error)),
        0);
    assert_int_equal(operation.input_count, MUCH);
    assert_int_equal(operation.output_count, MUCH);
    assert_int_equal(operation.error_count, MUCH);
    assert_memory_equal(input, output, MUCH);
    assert_memory_equal(input, error, MUCH);
    assert_int_equal(process.exit_code, 0);
    bide_process_destroy(&process);
}

static void a_process_that_reads_nothing_is_no_error(void **state)
{
    world *world = world_of(state);
    static char input[MUCH];
    char output[100];
    static bide_process_communicate_operation operation;
    bide_process process;
    assert_int_equal(begin(&process, &(bide_process_options){SHELL("exec <&-; echo no"), PIPES}),
                     0);
    assert_int_equal(world_wait(world, bide_process_communicate(&operation, &process, input, MUCH,
                                                                output, sizeof output, NULL, 0)),
                     0);
    assert_int_equal(operation.output_count, 3);
    assert_true(operation.input_count < MUCH);
    bide_process_destroy(&process);
}

static void more_than_there_is_room_for_is_an_error(void **state)
{
    world *world = world_of(state);
    char output[5];
    bide_process process;
    static bide_process_communicate_operation operation;
    for (int extra = 0; extra <= 1; extra++) {
        char *text = extra ? "printf 123456; exec sleep 1000" : "printf 12345";
        assert_int_equal(begin(&process, &(bide_process_options){SHELL(text), PIPES}), 0);
        assert_int_equal(world_wait(world, bide_process_communicate(&operation, &process, NULL, 0,
                                                                    output, 5, NULL, 0)),
                         extra ? -EMSGSIZE : 0);
        assert_int_equal(operation.output_count, 5);
        assert_memory_equal(output, "12345", 5);
        assert_int_equal(process.has_ended, !extra);
        bide_process_destroy(&process); /* kills it */
        assert_no_children();
    }
}

/* ---- Cancelled ---- */

struct patient {
    bide_task task;
    bide_process *process;
    bide_process_wait_operation wait;
    bide_process_communicate_operation talk;
    char output[100];
    bool talks;
    int status;
};

static bide_awaiter *choose(struct patient *self)
{
    return self->talks ? bide_process_communicate(&self->talk, self->process, "x", 1, self->output,
                                                  sizeof self->output, NULL, 0)
                       : bide_process_wait(&self->wait, self->process);
}

bide_coroutine(patient_body)
{
    bide_begin(patient_body, struct patient * self);
    bide_await_status(self->status, choose(self));
    bide_end();
}

enum { BY_STOP, BY_DEADLINE, BY_DESTROY, WAYS };

static void a_wait_that_ends_early_leaves_the_process_running(void **state)
{
    world *world = world_of(state);
    for (int i = 0; i < 2 * WAYS * 2; i++) {
        int way = i % WAYS;
        static struct patient patient;
        static bide_with_deadline_operation limited;
        bide_process process;
        bide_stop_source source;
        bide_context context = *world->context;
        refusal = refusals[i / (2 * WAYS)];
        patient = (struct patient){.process = &process, .talks = i / WAYS % 2 != 0, .status = 1};
        assert_int_equal(begin(&process, &(bide_process_options){SHELL("exec sleep 1000"), PIPES}),
                         0);
        bide_stop_source_init(&source);
        context.stop = &source;
        if (way == BY_DEADLINE) {
            bide_awaiter *task = bide_task_init(&patient.task, &patient_body);
            world_wait(world, bide_with_deadline(&limited, world_now(world) + 1000000, task));
            assert_int_equal(patient.status, -ETIMEDOUT);
        } else {
            bide_sleep pause;
            bide_start(&patient.task.frame, &patient_body, &context);
            bide_resume(&patient.task.frame);
            world_wait(world, bide_sleep_for(&pause, 1000000));
            assert_int_equal(patient.status, 1);
            if (way == BY_DESTROY) {
                bide_destroy(&patient.task.frame);
            } else {
                bide_stop_request(&source);
                while (patient.status == 1)
                    world_wait(world, bide_sleep_for(&pause, 1000));
                assert_int_equal(patient.status, -ECANCELED);
            }
        }
        assert_false(process.has_ended);
        assert_int_equal(bide_process_signal(&process, 0), 0);
        assert_int_equal(bide_process_signal(&process, SIGTERM), 0);
        assert_int_equal(wait_for(world, &process), 0);
        assert_int_equal(process.signal, SIGTERM);
        bide_process_destroy(&process);
        assert_no_children();
    }
    refusal = 0;
}

/* ---- Many, and groups ---- */

static void two_hundred_at_once_leave_nobody(void **state)
{
    enum { CHILDREN = 200 };
    world *world = world_of(state);
    static bide_process processes[CHILDREN];
    static struct patient patients[CHILDREN];
    static bide_spawned spawned[CHILDREN];
    bide_event_waiter wait;
    int before = count_descriptors();
    for (size_t how = 0; how < sizeof refusals / sizeof *refusals; how++) {
        refusal = refusals[how];
        for (int i = 0; i < CHILDREN; i++) {
            char text[32];
            snprintf(text, sizeof text, "exit %d", i % 100);
            assert_int_equal(begin(&processes[i], &(bide_process_options){SHELL(text)}), 0);
            patients[i] = (struct patient){.process = &processes[i], .status = 1};
            bide_spawn(&spawned[i], world->context,
                       bide_task_init(&patients[i].task, &patient_body));
        }
        for (int i = 0; i < CHILDREN; i++) {
            assert_int_equal(world_wait(world, bide_event_wait(&wait, &spawned[i].ended)), 0);
            assert_int_equal(patients[i].status, 0);
            assert_int_equal(processes[i].exit_code, i % 100);
            bide_process_destroy(&processes[i]);
        }
        assert_no_children();
    }
    refusal = 0;
    assert_in_range(count_descriptors(), before, before + KEPT_DESCRIPTORS);
}

static void several_wait_for_one(void **state)
{
    enum { WAITERS = 5 };
    world *world = world_of(state);
    static struct patient patients[WAITERS];
    static bide_spawned spawned[WAITERS];
    bide_event_waiter wait;
    for (size_t how = 0; how < sizeof refusals / sizeof *refusals; how++) {
        bide_process process;
        refusal = refusals[how];
        assert_int_equal(begin(&process, &(bide_process_options){SHELL("read x; exit 3"), PIPES}),
                         0);
        for (int i = 0; i < WAITERS; i++) {
            patients[i] = (struct patient){.process = &process, .status = 1};
            bide_spawn(&spawned[i], world->context,
                       bide_task_init(&patients[i].task, &patient_body));
        }
        bide_io_operation send;
        assert_int_equal(world_wait(world, bide_send(&send, &process.streams[0], "go\n", 3)), 0);
        for (int i = 0; i < WAITERS; i++) {
            assert_int_equal(world_wait(world, bide_event_wait(&wait, &spawned[i].ended)), 0);
            assert_int_equal(patients[i].status, 0);
        }
        assert_int_equal(process.exit_code, 3);
        bide_process_destroy(&process);
        assert_no_children();
    }
    refusal = 0;
}

static void a_group_is_signalled_and_killed_as_one(void **state)
{
    world *world = world_of(state);
    char output[64];
    static bide_process_communicate_operation operation;
    for (int i = 0; i < 3; i++) {
        bide_process process;
        bide_process_options options = {SHELL("sleep 1000 & echo; wait"), PIPES,
                                        .new_group = i != 1, .new_session = i == 1};
        bide_file_operation read;
        assert_int_equal(begin(&process, &options), 0);
        assert_int_equal(world_wait(world, bide_read(&read, &process.streams[1], output, 1)), 0);
        if (i == 2) {
            bide_process_destroy(&process); /* the sleeper too: otherwise it would not end */
        } else {
            assert_int_equal(bide_process_signal_group(&process, SIGTERM), 0);
            /* The end of the output shows that the sleeper has ended too. */
            assert_int_equal(
                world_wait(world, bide_process_communicate(&operation, &process, NULL, 0, output,
                                                           sizeof output, NULL, 0)),
                0);
            assert_int_equal(process.signal, SIGTERM);
            bide_process_destroy(&process);
        }
        assert_no_children();
    }
    bide_process alone;
    assert_int_equal(begin(&alone, &(bide_process_options){.program = "/bin/true"}), 0);
    assert_int_equal(bide_process_signal_group(&alone, SIGTERM), -EINVAL);
    bide_process_destroy(&alone);
}

/* A child that another part of the program has forked. Its status is that part's, however many others end. */
static void a_child_of_another_part_is_not_reaped(void **state)
{
    world *world = world_of(state);
    for (size_t how = 0; how < sizeof refusals / sizeof *refusals; how++) {
        int status;
        refusal = refusals[how];
        pid_t other = fork();
        assert_true(other >= 0);
        if (other == 0)
            _exit(9);
        for (int i = 0; i < 10; i++) {
            bide_process process;
            assert_int_equal(
                begin(&process, &(bide_process_options){SHELL("read x; exit 3"), PIPES}), 0);
            bide_close(&process.streams[0]);
            assert_int_equal(wait_for(world, &process), 0);
            assert_int_equal(process.exit_code, 3);
            bide_process_destroy(&process);
        }
        assert_int_equal(waitpid(other, &status, 0), other);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 9);
        assert_no_children();
    }
    refusal = 0;
}

/* Nor is a process signalled that may have its number by then. */
static void a_status_that_another_caller_took_is_reported(void **state)
{
    world *world = world_of(state);
    for (size_t how = 0; how < sizeof refusals / sizeof *refusals; how++) {
        bide_process process;
        refusal = refusals[how];
        assert_int_equal(
            begin(&process, &(bide_process_options){.program = "/bin/true", .new_group = true}), 0);
        assert_int_equal(waitpid(process.pid, NULL, 0), process.pid);
        assert_int_equal(bide_process_signal(&process, SIGTERM), -ESRCH);
        assert_int_equal(bide_process_signal_group(&process, SIGTERM), -ESRCH);
        assert_int_equal(wait_for(world, &process), -ECHILD);
        bide_atomic_store(&kills, 0, relaxed);
        bide_process_destroy(&process);
        assert_true(process.has_ended);
        assert_int_equal(bide_atomic_load(&kills, relaxed), 0);
        assert_no_children();
    }
    refusal = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(the_end_of_a_process_is_reported),
        world_test(the_end_is_reported_although_sigchld_was_ignored),
        world_test(a_handler_that_is_installed_meanwhile_stays),
        world_test(a_second_wait_needs_no_signal),
        world_test(a_failed_start_leaves_nothing),
        world_test(a_lack_of_descriptors_is_reported_and_leaves_nothing),
        world_test(it_has_its_arguments_its_environment_and_its_directory),
        world_test(it_has_the_descriptors_that_it_is_given_and_no_others),
        world_test(its_streams_are_the_requested_ones),
        world_test(it_blocks_no_signal_and_ignores_none),
        world_test(both_outputs_and_the_input_work_at_once),
        world_test(a_process_that_reads_nothing_is_no_error),
        world_test(more_than_there_is_room_for_is_an_error),
        world_test(a_wait_that_ends_early_leaves_the_process_running),
        world_test(two_hundred_at_once_leave_nobody),
        world_test(several_wait_for_one),
        world_test(a_group_is_signalled_and_killed_as_one),
        world_test(a_child_of_another_part_is_not_reaped),
        world_test(a_status_that_another_caller_took_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
