/*
 * A child that sets itself up, between fork and exec: what posix_spawn has no words for.
 *
 *     parent   prepares all memory --fork--> reads the report -------> its end: the program runs
 *     child                           +--> the steps --exec----------^ (closes the report)
 *                                            +--one fails: writes which, and the error; exits
 *
 * 1. The child has a copy of one thread and of the memory as other threads left it, perhaps with locks
 *    held. So it allocates nothing, calls nothing that locks, and on Linux makes its system calls itself:
 *    the C library's calls for users and groups would speak to threads that the child does not have. On
 *    other systems fork has told the C library that there is one thread, and its calls do not lock.
 * 2. All signals are blocked from before the fork until the child has given each its default. So no
 *    handler of the program runs in the child.
 * 3. The report is a pipe that exec closes. A step that fails is written to it, in one piece. So the
 *    parent knows the error and the step, and no child is left: the parent takes its status.
 * 4. The user comes after what needs privileges: limits, groups. The directory is looked up, and the
 *    program executed, as the new user. The kernel forgets the death signal when the user changes, so
 *    that is set afterwards.
 * 5. The parent may end before the child has set the death signal, and then none would come. So the
 *    child looks afterwards whether its parent is still the one that it was started by. If the parent
 *    ends later, the kernel sends the signal. Systems without handles have no death signal, and no cgroup:
 *    a start with one is refused before the fork.
 */
#define _GNU_SOURCE
#include "process_child.h"

#include "../base/thread_sanitizer.h"
#include "../system/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#if BIDE_HAS_PIDFD
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The effective group is the first of the supplementary ones there. */
#if defined __APPLE__ || defined __FreeBSD__
#define PROCESS_GROUPS_HAVE_EFFECTIVE 1
#else
#define PROCESS_GROUPS_HAVE_EFFECTIVE 0
#endif

/* What the child needs, in memory that the parent has prepared: 1. */
typedef struct process_child {
    const bide_process_options *options;
    const bide_process_setup *setup;
    const process_descriptors *descriptors;
    const uint32_t *groups; /* supplementary ones */
    size_t group_count;
    char *const *arguments;
    char *const *environment;
    char **paths; /* where the program may be, in order; then NULL */
    int report;
    int parent;
    int max_fd; /* no descriptor has a higher number; negative: the kernel closes ranges */
} process_child;

typedef struct process_report {
    int32_t step;
    int32_t error;
} process_report;

/* ---- In the child ---- */

#if BIDE_UNDER_TSAN_
#define PROCESS_UNSANITIZED __attribute__((no_sanitize("thread")))
#else
#define PROCESS_UNSANITIZED
#endif

/* A call of the child: 1. */
#if BIDE_HAS_PIDFD
#define CHILD_CALL(name, ...) syscall(SYS_##name, __VA_ARGS__)
#define CHILD_SETSID()        syscall(SYS_setsid)
#define CHILD_EXIT(code)      syscall(SYS_exit_group, code)
#define CHILD_DUP(from, to)   syscall(SYS_dup3, from, to, 0)
#ifdef SYS_setresuid32
#define CHILD_SET_USER(user)            syscall(SYS_setresuid32, user, user, user)
#define CHILD_SET_GROUP(group)          syscall(SYS_setresgid32, group, group, group)
#define CHILD_SET_GROUPS(count, groups) syscall(SYS_setgroups32, count, groups)
#else
#define CHILD_SET_USER(user)            syscall(SYS_setresuid, user, user, user)
#define CHILD_SET_GROUP(group)          syscall(SYS_setresgid, group, group, group)
#define CHILD_SET_GROUPS(count, groups) syscall(SYS_setgroups, count, groups)
#endif
#else
#define CHILD_CALL(name, ...) name(__VA_ARGS__)
#define CHILD_SETSID()        setsid()
#define CHILD_EXIT(code)      _exit(code)
#define CHILD_DUP(from, to)   dup2(from, to)
#define CHILD_SET_USER(user) \
    setreuid(user, user) /* the saved one too, because the real one is given */
#define CHILD_SET_GROUP(group) setregid(group, group)
#define CHILD_SET_GROUPS(count, groups) \
    setgroups((int)(count), groups) /* (size_t on Linux, int elsewhere) */
#endif

/* Reports that a step has failed, and exits: 3. */
PROCESS_UNSANITIZED static void child_fails(const process_child *child, bide_process_step step,
                                            int error)
{
    process_report report = {(int32_t)step, error};
    (void)!CHILD_CALL(write, child->report, &report, sizeof report);
    for (;;)
        CHILD_EXIT(127);
}

PROCESS_UNSANITIZED static void child_must(const process_child *child, bide_process_step step,
                                           long result)
{
    if (result < 0)
        child_fails(child, step, errno);
}

/* Gives every signal its default, and then blocks none: 2. */
#if BIDE_HAS_PIDFD

PROCESS_UNSANITIZED static void child_reset_signals(void)
{
    enum { SIGNALS = 64, SIGNAL_SET_SIZE = 8 };
    unsigned long defaults[16] = {
        0}; /* the kernel's sigaction, of whichever layout: SIG_DFL is 0 */
    unsigned long none[16] = {0};
    for (int signal = 1; signal <= SIGNALS; signal++)
        syscall(SYS_rt_sigaction, signal, defaults, NULL, SIGNAL_SET_SIZE);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, none, NULL, SIGNAL_SET_SIZE);
}

#else

PROCESS_UNSANITIZED static void child_reset_signals(void)
{
    struct sigaction defaults = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int signal = 1; signal < NSIG; signal++)
        sigaction(signal, &defaults, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

#endif

PROCESS_UNSANITIZED static void child_close_range(const process_child *child, int first, int last)
{
#if BIDE_HAS_PIDFD && defined SYS_close_range
    if (child->max_fd < 0) {
        syscall(SYS_close_range, first, last, 0);
        return;
    }
#endif
    for (int fd = first; fd <= last && fd <= child->max_fd; fd++)
        CHILD_CALL(close, fd);
}

PROCESS_UNSANITIZED static bool child_is_given(const bide_process_options *options, int number)
{
    for (size_t i = 0; i < options->fd_count; i++) {
        if (options->fds[i].number == number)
            return true;
    }
    return false;
}

PROCESS_UNSANITIZED static void child_place_descriptors(const process_child *child)
{
    const bide_process_options *options = child->options;
    const process_descriptors *descriptors = child->descriptors;
    for (int i = 0; i < 3; i++) {
        if (descriptors->theirs[i] >= 0)
            child_must(child, BIDE_PROCESS_AT_DESCRIPTORS, CHILD_DUP(descriptors->theirs[i], i));
        else
            CHILD_CALL(close, i);
    }
    for (size_t i = 0; i < options->fd_count; i++)
        child_must(child, BIDE_PROCESS_AT_DESCRIPTORS,
                   CHILD_DUP(descriptors->copies[i], options->fds[i].number));
    for (int number = 3; number < descriptors->first; number++) {
        if (!child_is_given(options, number))
            CHILD_CALL(close, number);
    }
    child_close_range(child, descriptors->first, child->report - 1);
    child_close_range(child, child->report + 1, INT_MAX);
}

PROCESS_UNSANITIZED static void child_set_limits(const process_child *child)
{
    for (size_t i = 0; i < child->setup->limit_count; i++) {
        const bide_process_limit *limit = &child->setup->limits[i];
#if BIDE_HAS_PIDFD
        uint64_t both[2] = {limit->soft, limit->hard}; /* the kernel's rlimit64 */
        long result = syscall(SYS_prlimit64, 0, limit->resource, both, NULL);
#else
        struct rlimit both = {
            limit->soft == UINT64_MAX ? RLIM_INFINITY : (rlim_t)limit->soft,
            limit->hard == UINT64_MAX ? RLIM_INFINITY : (rlim_t)limit->hard,
        };
        int result = setrlimit(limit->resource, &both);
#endif
        child_must(child, BIDE_PROCESS_AT_LIMITS, result);
    }
}

PROCESS_UNSANITIZED static void child_set_identity(const process_child *child)
{
    const bide_process_setup *setup = child->setup;
    if ((setup->sets_user || setup->sets_group) && !setup->keeps_groups)
        child_must(child, BIDE_PROCESS_AT_GROUPS,
                   CHILD_SET_GROUPS(child->group_count, child->groups));
    if (setup->sets_group)
        child_must(child, BIDE_PROCESS_AT_GROUP, CHILD_SET_GROUP(setup->group));
    if (setup->sets_user)
        child_must(child, BIDE_PROCESS_AT_USER, CHILD_SET_USER(setup->user));
}

/* 5. */
PROCESS_UNSANITIZED static void child_set_death_signal(const process_child *child)
{
#if BIDE_HAS_PIDFD
    if (child->setup->death_signal == 0)
        return;
    child_must(child, BIDE_PROCESS_AT_DEATH_SIGNAL,
               syscall(SYS_prctl, PR_SET_PDEATHSIG, child->setup->death_signal, 0, 0, 0));
    if (syscall(SYS_getppid) != child->parent)
        syscall(SYS_kill, syscall(SYS_getpid), child->setup->death_signal);
#else
    bide_assert(child->setup->death_signal == 0);
#endif
}

PROCESS_UNSANITIZED static void child_execute(const process_child *child)
{
    int error = ENOENT;
    for (char **path = child->paths; *path != NULL; path++) {
        CHILD_CALL(execve, *path, child->arguments, child->environment);
        int now = errno;
        if (now == EACCES)
            error = EACCES; /* if it is nowhere else */
        else if (now != ENOENT && now != ENOTDIR && now != ESTALE && now != ENODEV &&
                 now != ETIMEDOUT)
            child_fails(child, BIDE_PROCESS_AT_PROGRAM, now);
        else if (error != EACCES)
            error = now;
    }
    child_fails(child, BIDE_PROCESS_AT_PROGRAM, error);
}

PROCESS_UNSANITIZED static void child_run(const process_child *child)
{
    const bide_process_options *options = child->options;
    child_reset_signals();
    if (options->new_session)
        child_must(child, BIDE_PROCESS_AT_SESSION, CHILD_SETSID());
    else if (options->new_group)
        child_must(child, BIDE_PROCESS_AT_SESSION, CHILD_CALL(setpgid, 0, 0));
    child_place_descriptors(child);
    if (child->setup->takes_terminal)
        child_must(child, BIDE_PROCESS_AT_TERMINAL, CHILD_CALL(ioctl, 0, TIOCSCTTY, 0));
    child_set_limits(child);
    if (child->setup->sets_umask)
        CHILD_CALL(umask, (mode_t)child->setup->umask);
    child_set_identity(child);
    if (options->directory != NULL)
        child_must(child, BIDE_PROCESS_AT_DIRECTORY, CHILD_CALL(chdir, options->directory));
    child_set_death_signal(child);
    child_execute(child);
}

/* ---- In the parent ---- */

/* The paths at which the program may be, in one allocation; or NULL. */
static char **process_paths(const char *program)
{
    bool has_slash = strchr(program, '/') != NULL;
    const char *search = has_slash ? "" : getenv("PATH");
    if (search == NULL)
        search = "/bin:/usr/bin";
    size_t count = 1, length = strlen(program);
    for (const char *at = search; *at != '\0'; at++)
        count += *at == ':';
    size_t room = strlen(search) + count * (length + 2);
    char **paths = malloc((count + 1) * sizeof *paths + room);
    if (paths == NULL)
        return NULL;
    char *text = (char *)(paths + count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t part = strcspn(search, ":");
        paths[i] = text;
        memcpy(text, search, part);
        if (part != 0)
            text[part++] = '/';
        memcpy(text + part, program, length + 1);
        text += part + length + 1;
        search += strcspn(search, ":");
        search += *search == ':';
    }
    paths[count] = NULL;
    return paths;
}

/* The highest number of a descriptor, if the child has to close them one by one; or -1. */
static int process_max_fd(void)
{
#if BIDE_HAS_PIDFD && defined SYS_close_range
    if (syscall(SYS_close_range, ~0U, ~0U, 0) == 0)
        return -1;
#endif
    /* (a descriptor that another thread opens from now on may have a higher number) */
    long max = sysconf(_SC_OPEN_MAX);
    return max > 0 && max < 1 << 20 ? (int)max : 1 << 20;
}

/* As fork(2), where possible without the handlers of pthread_atfork: 1. */
static long process_fork(const bide_process_setup *setup)
{
    if (setup->cgroup > 0) {
#if BIDE_HAS_PIDFD && defined SYS_clone3
        enum { CLONE3_SIGNAL = 4, CLONE3_CGROUP = 10 };
        uint64_t arguments[11] = {0};         /* the kernel's clone_args, as of Linux 5.7 */
        arguments[0] = UINT64_C(0x200000000); /* CLONE_INTO_CGROUP */
        arguments[CLONE3_SIGNAL] = SIGCHLD;
        arguments[CLONE3_CGROUP] = (uint64_t)setup->cgroup;
        long pid = syscall(SYS_clone3, arguments, sizeof arguments);
        if (pid < 0 && (errno == ENOSYS || errno == E2BIG))
            errno = EOPNOTSUPP;
        return pid;
#else
        errno = EOPNOTSUPP;
        return -1;
#endif
    }
#if BIDE_HAS_PIDFD && defined __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
    return _Fork();
#endif
#endif
    return fork();
}

/* Reads the report of the child: 3. 0, or its error; then its status is taken too. */
static int process_take_report(int report, long pid, bide_process_step *step)
{
    process_report said;
    ssize_t count;
    do
        count = read(report, &said, sizeof said);
    while (count < 0 && errno == EINTR);
    if (count != (ssize_t)sizeof said)
        return 0;
    *step = (bide_process_step)said.step;
    while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return -said.error;
}

static int process_run_child(process_child *child, const int report[2], bide_process_step *step)
{
    sigset_t all, before;
    sigfillset(&all);
    child->report = report[1];
    child->parent = (int)getpid();
    pthread_sigmask(SIG_SETMASK, &all, &before); /* 2 */
    long pid = process_fork(child->setup);
    if (pid == 0)
        child_run(child);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (pid < 0) {
        *step = child->setup->cgroup > 0 ? BIDE_PROCESS_AT_CGROUP : BIDE_PROCESS_AT_START;
        return -error;
    }
    int status = process_take_report(report[0], pid, step);
    return status < 0 ? status : (int)pid;
}

/* The supplementary groups, which are allocated if the effective one belongs to them. False: no memory. */
static bool process_list_groups(process_child *child, uint32_t **allocated)
{
    const bide_process_setup *setup = child->setup;
    child->groups = setup->groups;
    child->group_count = setup->group_count;
    *allocated = NULL;
#if PROCESS_GROUPS_HAVE_EFFECTIVE
    uint32_t *all = malloc((setup->group_count + 1) * sizeof *all);
    if (all == NULL)
        return false;
    all[0] = setup->sets_group ? setup->group : (uint32_t)getegid();
    if (setup->group_count != 0)
        memcpy(all + 1, setup->groups, setup->group_count * sizeof *all);
    child->groups = *allocated = all;
    child->group_count++;
#endif
    return true;
}

int bide_process_child_start_(const bide_process_options *options,
                              const process_descriptors *descriptors, bide_process_step *step)
{
    char *just_name[] = {(char *)(uintptr_t)options->program, NULL};
    int report[2];
    process_child child = {
        .options = options,
        .setup = options->setup,
        .descriptors = descriptors,
        .arguments = options->arguments != NULL ? options->arguments : just_name,
        .environment = options->environment != NULL ? options->environment : environ,
        .paths = process_paths(options->program),
        .max_fd = process_max_fd(),
    };
    uint32_t *groups;
    if (!BIDE_HAS_PIDFD && options->setup->death_signal != 0) {
        free(child.paths);
        *step = BIDE_PROCESS_AT_DEATH_SIGNAL;
        return -EOPNOTSUPP;
    }
    *step = BIDE_PROCESS_AT_START;
    if (child.paths == NULL || !process_list_groups(&child, &groups)) {
        free(child.paths);
        return -ENOMEM;
    }
    int status = portable_pipe(report, false) == 0 ? 0 : -errno;
    if (status == 0) {
        int above = fcntl(report[1], F_DUPFD_CLOEXEC, descriptors->first);
        status = above < 0 ? -errno : 0;
        close(report[1]);
        report[1] = above;
        if (status == 0)
            status = process_run_child(&child, report, step);
        close(report[0]);
    }
    free(groups);
    free(child.paths);
    return status;
}
