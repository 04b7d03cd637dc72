/*
 * Child processes.
 *
 * Any thread may start a child. From then on the process belongs to one loop's thread, and its waits
 * and its communication are coroutines of that thread.
 *
 * 1. posix_spawn starts the child, unless it has a setup (process_child.c): glibc runs it in the parent's memory, on a stack of its own, with
 *    all signals blocked, until exec. So the cost does not depend on the parent's size, other threads
 *    do not matter, and an error of exec is returned.
 * 2. dup2 assigns the child's descriptor numbers, and must not overwrite a descriptor that is still
 *    needed. So the parent first duplicates all descriptors to numbers above those, close-on-exec.
 *    dup2 clears that flag. The child closes all other numbers, including any that were opened
 *    without the flag.
 * 3. Only this file takes the child's status (process.h), and the kernel keeps it: SIGCHLD is not
 *    ignored (process_keep_status). Until then the pid is this child's, at least as a zombie. So
 *    opening its handle and signalling it cannot affect another process. One thread takes the status
 *    and sets `has_ended` at once. If another part of the program takes the status all the same, or
 *    ignores SIGCHLD later, the number is free. So before a signal by number the kernel is asked
 *    whether the child is still there (process_is_there).
 * 4. The handle (a pidfd) becomes readable when the child has ended, and stays readable. So a wait
 *    that starts later does not miss the end, and all waits complete. Without a handle, each wait
 *    listens to SIGCHLD before it checks the child, and checks again after each signal. It asks for the
 *    status of this child alone. So no end is missed, and no child of another part is reaped. Other systems
 *    than Linux have no handles (process_child.h).
 * 5. The owner of a communication awaits only the join of its pumps, which cancellation or a failure
 *    stops. So it can be destroyed at any time.
 * 6. With a wait_delay, a watch in the same scope awaits the end of the process, and then for so long
 *    that all pumps end. Otherwise it asks them to stop, which is no failure of the scope. All that the
 *    process has written is in the pipes by its end. So they are read once more, as far as that does
 *    not wait, after the pumps have ended.
 */
#define _GNU_SOURCE
#include "bide/process.h"

#include "bide/coroutine.h"

#include "operation.h"
#include "process_child.h"

#include "../system/portable.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#if BIDE_HAS_PIDFD
#include <sys/syscall.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- Starting ---- */

/* The descriptors that the child gets. */
typedef struct process_plan {
    const bide_process_options *options;
    int first;     /* above all descriptor numbers of the child */
    int theirs[3]; /* the child's ends of the streams, or -1 */
    int *copies;   /* of the passed descriptors, from `first` up, or -1 */
    posix_spawn_file_actions_t actions;
} process_plan;

static void process_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Duplicates a descriptor above all numbers of the child: 2. */
static int process_copy_above(const process_plan *plan, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, plan->first);
    return copy < 0 ? -errno : copy;
}

/* Moves a descriptor above all numbers of the child. */
static int process_move_above(const process_plan *plan, int fd)
{
    int copy = process_copy_above(plan, fd);
    close(fd);
    return copy;
}

static int process_open_pipe(bide_process *process, const process_plan *plan, int number)
{
    int fds[2];
    bool is_input = number == STDIN_FILENO;
    int error =
        is_input ? portable_socket_pair(SOCK_STREAM, fds, false) : portable_pipe(fds, false);
    if (error != 0)
        return -errno;
    int ours = is_input ? fds[1] : fds[0];
    fcntl(ours, F_SETFL, fcntl(ours, F_GETFL) | O_NONBLOCK);
    if (is_input) /* the child cannot send through its input */
        shutdown(ours, SHUT_RD);
    bide_descriptor_init(&process->streams[number], ours);
    return process_move_above(plan, is_input ? fds[0] : fds[1]);
}

/* The child's end of a stream, above all numbers of the child, or a negative errno. */
static int process_open_stream(bide_process *process, const process_plan *plan, int number)
{
    const bide_process_stream *stream = &plan->options->streams[number];
    switch (stream->kind) {
    case BIDE_STREAM_NULL: {
        int fd = open("/dev/null", (number == STDIN_FILENO ? O_RDONLY : O_WRONLY) | O_CLOEXEC, 0);
        return fd < 0 ? -errno : process_move_above(plan, fd);
    }
    case BIDE_STREAM_GIVEN:
        return process_copy_above(plan, stream->fd);
    case BIDE_STREAM_PIPE:
        return process_open_pipe(process, plan, number);
    default:
        return process_copy_above(plan, number);
    }
}

static bool process_is_passed(const bide_process_options *options, int number)
{
    for (size_t i = 0; i < options->fd_count; i++) {
        if (options->fds[i].number == number)
            return true;
    }
    return false;
}

/* Adds an action that closes a descriptor, which need not be open. Returns 0 or a positive errno. */
static int process_add_close(posix_spawn_file_actions_t *actions, int number)
{
#ifdef POSIX_SPAWN_CLOEXEC_DEFAULT /* the kernel closes all that no action names */
    (void)actions;
    (void)number;
    return 0;
#else
    return posix_spawn_file_actions_addclose(actions, number);
#endif
}

/* Adds actions that close every descriptor from `first` on. Returns 0 or a positive errno. */
static int process_add_close_from(posix_spawn_file_actions_t *actions, int first)
{
#if defined POSIX_SPAWN_CLOEXEC_DEFAULT
    return process_add_close(actions, first);
#elif defined __GLIBC__ || defined __FreeBSD__
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
#else
    /* One action for each descriptor that is open now. One that another thread opens meanwhile without O_CLOEXEC is
     * inherited. Closing one that is gone by then is no error. */
    DIR *directory = opendir("/proc/self/fd");
    int error = directory == NULL ? errno : 0;
    for (struct dirent *entry; error == 0 && (entry = readdir(directory)) != NULL;) {
        int number = atoi(entry->d_name); /* 0 for "." and ".." */
        if (number >= first)
            error = process_add_close(actions, number);
    }
    if (directory != NULL)
        closedir(directory);
    return error;
#endif
}

/* Fills in the spawn actions that assign the child's descriptors: 2. A positive errno. */
static int process_add_actions(process_plan *plan)
{
    const bide_process_options *options = plan->options;
    int error = 0;
    for (int i = 0; i < 3 && error == 0; i++) {
        error = plan->theirs[i] >= 0
                    ? posix_spawn_file_actions_adddup2(&plan->actions, plan->theirs[i], i)
                    : process_add_close(&plan->actions, i);
    }
    for (size_t i = 0; i < options->fd_count && error == 0; i++)
        error = posix_spawn_file_actions_adddup2(&plan->actions, plan->copies[i],
                                                 options->fds[i].number);
    for (int number = 3; number < plan->first && error == 0; number++) {
        if (!process_is_passed(options, number))
            error = process_add_close(&plan->actions, number);
    }
    if (error == 0)
        error = process_add_close_from(&plan->actions, plan->first);
    if (error == 0 && options->directory != NULL)
        error = posix_spawn_file_actions_addchdir_np(&plan->actions, options->directory);
    return error;
}

/* Returns a positive errno. */
static int process_spawn(bide_process *process, process_plan *plan)
{
    const bide_process_options *options = plan->options;
    char *just_name[] = {(char *)options->program, NULL};
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
#ifdef __linux__
    memset(&all, 0xff, sizeof all); /* sigfillset would leave out those of the C library */
#else
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
#endif
    int error = posix_spawnattr_init(&attributes);
    if (error != 0)
        return error;
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    if (options->new_session)
        flags |= POSIX_SPAWN_SETSID;
    else if (options->new_group)
        flags |= POSIX_SPAWN_SETPGROUP;
#ifdef POSIX_SPAWN_CLOEXEC_DEFAULT
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#endif
    posix_spawnattr_setflags(&attributes, flags);
    error = posix_spawnp(&process->pid, options->program, &plan->actions, &attributes,
                         options->arguments != NULL ? options->arguments : just_name,
                         options->environment != NULL ? options->environment : environ);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* Opens the child's descriptors and starts it. A negative errno. */
static int process_carry_out(bide_process *process, process_plan *plan)
{
    const bide_process_options *options = plan->options;
    for (int i = 0; i < 3; i++) {
        plan->theirs[i] = process_open_stream(process, plan, i);
        bool may_be_closed = options->streams[i].kind == BIDE_STREAM_INHERIT;
        if (plan->theirs[i] < 0 && !(plan->theirs[i] == -EBADF && may_be_closed))
            return plan->theirs[i];
    }
    for (size_t i = 0; i < options->fd_count; i++) {
        plan->copies[i] = process_copy_above(plan, options->fds[i].fd);
        if (plan->copies[i] < 0)
            return plan->copies[i];
    }
    if (options->setup != NULL) {
        const process_descriptors descriptors = {plan->first, plan->theirs, plan->copies};
        int pid = bide_process_child_start_(options, &descriptors, &process->failed_at);
        process->pid = pid > 0 ? pid : 0;
        return pid > 0 ? 0 : pid;
    }
    int error = posix_spawn_file_actions_init(&plan->actions);
    if (error != 0)
        return -error;
    error = process_add_actions(plan);
    if (error == 0)
        error = process_spawn(process, plan);
    posix_spawn_file_actions_destroy(&plan->actions);
    return -error;
}

static bool process_action_keeps_status(const struct sigaction *action)
{
    return action->sa_handler != SIG_IGN && (action->sa_flags & SA_NOCLDWAIT) == 0;
}

/*
 * If SIGCHLD is ignored, as a program may inherit it, the kernel keeps no status: 3. A handler that another thread
 * installs in between is set back. The signals that it missed meanwhile are replaced by one.
 */
static int process_keep_status(void)
{
    struct sigaction action, replaced;
    if (sigaction(SIGCHLD, NULL, &action) != 0)
        return -errno;
    if (process_action_keeps_status(&action))
        return 0;
    if (action.sa_handler == SIG_IGN)
        action.sa_handler = SIG_DFL;
    action.sa_flags &= ~SA_NOCLDWAIT;
    if (sigaction(SIGCHLD, &action, &replaced) != 0)
        return -errno;
    if (process_action_keeps_status(&replaced) && replaced.sa_handler != SIG_DFL) {
        if (sigaction(SIGCHLD, &replaced, NULL) != 0 || kill(getpid(), SIGCHLD) != 0)
            return -errno;
    }
    return 0;
}

/* Whether the child runs, or has ended and left its status. Otherwise its number may be another process's: 3. */
static bool process_is_there(const bide_process *process)
{
    siginfo_t info;
    return waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Signals the child itself: by its handle, which no other process can have. */
static int process_send(const bide_process *process, int signal)
{
#if BIDE_HAS_PIDFD && defined SYS_pidfd_send_signal
    int handle = bide_descriptor_fd(&process->handle);
    if (handle >= 0) {
        if (syscall(SYS_pidfd_send_signal, handle, signal, NULL, 0) == 0)
            return 0;
        if (errno != ENOSYS)
            return -errno;
    }
#endif
    if (!process_is_there(process))
        return -ESRCH;
    return kill(process->pid, signal) == 0 ? 0 : -errno;
}

/* Signals its group. By the handle, as Linux 6.9 can, no other group is hit that has its number later. */
static int process_send_to_group(const bide_process *process, int signal)
{
#if BIDE_HAS_PIDFD && defined SYS_pidfd_send_signal
    enum { PROCESS_TO_GROUP = 1 << 2 }; /* PIDFD_SIGNAL_PROCESS_GROUP */
    int handle = bide_descriptor_fd(&process->handle);
    if (handle >= 0) {
        if (syscall(SYS_pidfd_send_signal, handle, signal, NULL, PROCESS_TO_GROUP) == 0)
            return 0;
        if (errno != ENOSYS && errno != EINVAL)
            return -errno;
    }
#endif
    if (!process->has_ended && !process_is_there(process))
        return -ESRCH;
    return kill(-process->pid, signal) == 0 ? 0 : -errno;
}

/* Kills the child and takes its status, unless another part of the program has taken it. */
static void process_kill_and_reap(bide_process *process)
{
    bide_assert(process->pid > 0);
    if (!process_is_there(process)) {
        process->has_ended = true;
        return;
    }
    if (process->leads_group)
        process_send_to_group(process, SIGKILL);
    process_send(process, SIGKILL);
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    process->has_ended = true;
}

static int process_open_handle(bide_process *process)
{
#if BIDE_HAS_PIDFD && defined SYS_pidfd_open
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (fd < 0 && errno != ENOSYS)
        return -errno;
    if (fd >= 0) /* a pidfd is always close-on-exec */
        bide_descriptor_init(&process->handle, fd);
#else
    (void)process;
#endif
    return 0;
}

int bide_process_start(bide_process *process, const bide_process_options *options)
{
    process_plan plan = {.options = options, .first = 3, .theirs = {-1, -1, -1}};
    bide_process_init(process);
    process->failed_at = BIDE_PROCESS_AT_START;
    process->wait_delay = options->wait_delay;
    if (options->program == NULL ||
        (options->setup != NULL && options->setup->takes_terminal && !options->new_session))
        return -EINVAL;
    for (size_t i = 0; i < options->fd_count; i++) {
        if (options->fds[i].number < 3)
            return -EINVAL;
        if (options->fds[i].number >= plan.first)
            plan.first = options->fds[i].number + 1;
    }
    int error = process_keep_status();
    if (error != 0)
        return error;
    plan.copies = malloc((options->fd_count + 1) * sizeof *plan.copies);
    if (plan.copies == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < options->fd_count; i++)
        plan.copies[i] = -1;
    error = process_carry_out(process, &plan);
    for (int i = 0; i < 3; i++)
        process_close_fd(&plan.theirs[i]);
    for (size_t i = 0; i < options->fd_count; i++)
        process_close_fd(&plan.copies[i]);
    free(plan.copies);
    if (error == 0) {
        process->has_ended = false;
        process->leads_group = options->new_group || options->new_session;
        process->failed_at = BIDE_PROCESS_AT_NONE;
        error = process_open_handle(process);
    }
    if (error != 0 && process->failed_at == BIDE_PROCESS_AT_NONE)
        process->failed_at = BIDE_PROCESS_AT_START;
    if (error != 0)
        bide_process_destroy(process);
    return error;
}

const char *bide_process_step_name(bide_process_step step)
{
    static const char *const names[] = {"none",        "start",
                                        "cgroup",      "session",
                                        "descriptors", "controlling terminal",
                                        "limits",      "supplementary groups",
                                        "group",       "user",
                                        "directory",   "death signal",
                                        "program"};
    return (size_t)step < sizeof names / sizeof *names ? names[step] : "unknown";
}

/* ---- The end of the child ---- */

static uint64_t process_nanoseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

/* Takes the status if the child has ended. 0, -EAGAIN (it has not), or -ECHILD. */
static int process_check_ended(bide_process *process)
{
    struct rusage usage;
    int status;
    if (process->has_ended)
        return 0;
    bide_assert(process->pid > 0);
    pid_t found = wait4(process->pid, &status, WNOHANG, &usage);
    if (found == 0)
        return -EAGAIN;
    if (found < 0)
        return -errno;
    bide_assert(found == process->pid);
    process->has_ended = true;
    process->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    process->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    process->user_time = process_nanoseconds(usage.ru_utime);
    process->system_time = process_nanoseconds(usage.ru_stime);
#ifdef __APPLE__ /* bytes */
    process->max_memory = (size_t)usage.ru_maxrss;
#else
    process->max_memory = (size_t)usage.ru_maxrss * 1024;
#endif
    return 0;
}

static int process_check_loop(const bide_io *io)
{
    if (io == NULL)
        return -ENOTSUP;
    return io_calls(io) != NULL ? -EOPNOTSUPP : 0;
}

BIDE_COROUTINE_CODE_(static, bide_task_type, process_wait_body)
static const bide_point process_wait_body =
    BIDE_POINT_START_OF(NULL, NULL, BIDE_UNDO_WITHDRAW, &process_wait_body_code_);

bide_body(process_wait_body)
{
    bide_begin(process_wait_body, bide_process_wait_operation * self);
    self->status = process_check_loop(bide_io_of_frame_(bide_this_frame(), __LINE__));
    if (self->status < 0)
        bide_return(self->status);
    while ((self->status = process_check_ended(self->process)) == -EAGAIN)
        bide_try(bide_poll(&self->poll, &self->process->handle, POLLIN));
    bide_return(self->status);
    bide_end();
}

/* A wait without a handle: 4. */
BIDE_COROUTINE_CODE_(static, bide_task_type, process_wait_signal_body)
static const bide_point process_wait_signal_body =
    BIDE_POINT_START_OF(NULL, NULL, BIDE_UNDO_WITHDRAW, &process_wait_signal_body_code_);

bide_body(process_wait_signal_body)
{
    bide_begin(process_wait_signal_body, bide_process_wait_operation * self);
    self->listens = false;
    self->status = process_check_loop(bide_io_of_frame_(bide_this_frame(), __LINE__));
    if (self->status == 0 && self->process->has_ended)
        bide_return(0);
    if (self->status == 0)
        self->status = bide_signal_listen(&self->child, SIGCHLD);
    if (self->status < 0)
        bide_return(self->status);
    self->listens = true;
    while ((self->status = process_check_ended(self->process)) == -EAGAIN)
        bide_try(bide_signal_wait(&self->wait, &self->child));
    bide_return(self->status);
    bide_finally();
    if (self->listens)
        bide_signal_destroy(&self->child);
    bide_end();
}

bide_awaiter *bide_process_wait(bide_process_wait_operation *operation, bide_process *process)
{
    operation->process = process;
    return bide_task_init(&operation->task, bide_descriptor_is_open(&process->handle)
                                                ? &process_wait_body
                                                : &process_wait_signal_body);
}

int bide_process_signal(const bide_process *process, int signal)
{
    if (process->has_ended || process->pid == 0) /* (0 would be the caller's own group) */
        return -ESRCH;
    return process_send(process, signal);
}

int bide_process_signal_group(const bide_process *process, int signal)
{
    if (!process->leads_group || process->pid == 0)
        return -EINVAL;
    return process_send_to_group(process, signal);
}

void bide_process_destroy(bide_process *process)
{
    if (!process->has_ended && process->pid != 0)
        process_kill_and_reap(process);
    bide_close(&process->handle);
    for (int i = 0; i < 3; i++)
        bide_close(&process->streams[i]);
}

/* ---- Communication ---- */

/* One pump less runs. The last one ends the watch. */
static void process_end_pump(bide_process_communicate_operation *all)
{
    bide_assert(all->running != 0);
    if (--all->running == 0)
        bide_event_set(&all->watch.drained);
}

bide_coroutine(process_send_body)
{
    bide_begin(process_send_body, bide_process_pump_ * self);
    self->status = 0;
    self->send.count = 0;
    if (self->size != 0)
        bide_await_status(self->status,
                          bide_send(&self->send, self->stream, self->data, self->size));
    self->count = self->send.count;
    bide_close(self->stream);
    if (self->status == -EPIPE || self->status == -ECONNRESET) /* the child has closed its input */
        self->status = 0;
    bide_return(self->status);
    bide_finally();
    bide_assert(self->send.count <= self->size);
    self->all->input_count = self->send.count;
    process_end_pump(self->all);
    bide_end();
}

bide_coroutine(process_receive_body)
{
    bide_begin(process_receive_body, bide_process_pump_ * self);
    for (;;) {
        bool is_full = self->count == self->size;
        bide_try(bide_read(&self->read, self->stream,
                           is_full ? &self->more : self->data + self->count,
                           is_full ? 1 : self->size - self->count));
        if (self->read.operation.count == 0)
            bide_return(0);
        if (self->count == self->size)
            bide_return(-EMSGSIZE);
        bide_assert(self->read.operation.count <= self->size - self->count);
        self->count += self->read.operation.count;
    }
    bide_finally();
    process_end_pump(self->all);
    bide_end();
}

static void process_start_pump(bide_process_communicate_operation *all, int number)
{
    bide_process_pump_ *pump = &all->pumps[number];
    pump->all = all;
    pump->stream = &all->process->streams[number];
    pump->count = 0;
    pump->is_started = bide_descriptor_is_open(pump->stream);
    if (!pump->is_started)
        return;
    all->running++;
    bide_scope_spawn(&all->scope, &pump->branch,
                     bide_task_init(&pump->task, number == STDIN_FILENO ? &process_send_body
                                                                        : &process_receive_body));
}

/* Awaits the end of the process, and then for so long the ends of the pipes: 6. */
bide_coroutine(process_watch_body)
{
    bide_begin(process_watch_body, bide_process_watch_ * self);
    bide_try(bide_process_wait(&self->wait, self->all->process));
    bide_await_status(self->status,
                      bide_with_timeout(&self->limited, self->all->process->wait_delay,
                                        bide_event_wait(&self->drained_wait, &self->drained)));
    if (self->status != -ETIMEDOUT || !bide_with_deadline_passed(&self->limited))
        bide_return(self->status);
    self->all->held_open = true;
    for (int i = 0; i < 3; i++) {
        if (self->all->pumps[i].is_started)
            bide_scope_stop_one(&self->all->scope, &self->all->pumps[i].branch);
    }
    bide_return(0);
    bide_end();
}

static void process_start_watch(bide_process_communicate_operation *all)
{
    bide_process_watch_ *watch = &all->watch;
    watch->all = all;
    bide_event_init(&watch->drained, all->running == 0);
    if (all->process->wait_delay != 0)
        bide_scope_spawn(&all->scope, &watch->branch,
                         bide_task_init(&watch->task, &process_watch_body));
}

/* Takes what is in a pipe that another process holds: 6. 0, or -EMSGSIZE. */
static int process_drain(bide_process_pump_ *pump)
{
    while (pump->is_started) {
        bool is_full = pump->count == pump->size;
        ssize_t count =
            read(bide_descriptor_fd(pump->stream), is_full ? &pump->more : pump->data + pump->count,
                 is_full ? 1 : pump->size - pump->count);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return 0;
        if (is_full)
            return -EMSGSIZE;
        pump->count += (size_t)count;
    }
    return 0;
}

bide_coroutine(process_communicate_body)
{
    bide_begin(process_communicate_body, bide_process_communicate_operation * self);
    self->status = process_check_loop(bide_io_of_frame_(bide_this_frame(), __LINE__));
    if (self->status < 0)
        bide_return(self->status);
    bide_scope_init(&self->scope, bide_this_frame());
    self->running = 1; /* so that none is the last before all are started */
    for (int i = 0; i < 3; i++)
        process_start_pump(self, i);
    process_start_watch(self);
    process_end_pump(self);
    bide_try(bide_scope_join(&self->scope));
    for (int i = STDOUT_FILENO; i <= STDERR_FILENO && self->held_open; i++) {
        int drained = process_drain(&self->pumps[i]);
        if (drained < 0)
            bide_return(drained);
    }
    bide_try(bide_process_wait(&self->wait, self->process));
    bide_finally();
    self->output_count = self->pumps[STDOUT_FILENO].count;
    self->error_count = self->pumps[STDERR_FILENO].count;
    bide_end();
}

bide_awaiter *bide_process_communicate(bide_process_communicate_operation *operation,
                                       bide_process *process, const void *input, size_t input_size,
                                       void *output, size_t output_size, void *error,
                                       size_t error_size)
{
    void *data[] = {(void *)(uintptr_t)input, output, error};
    size_t sizes[] = {input_size, output_size, error_size};
    operation->process = process;
    operation->held_open = false;
    operation->input_count = operation->output_count = operation->error_count = 0;
    for (int i = 0; i < 3; i++) {
        operation->pumps[i].data = data[i];
        operation->pumps[i].size = sizes[i];
        operation->pumps[i].count = 0;
    }
    return bide_task_init(&operation->task, &process_communicate_body);
}
