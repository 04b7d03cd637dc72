/*
 * Child processes: started with exactly the given descriptors, waited for, sent signals, and
 * communicated with. Floor: io.
 *
 *     bide_process process;
 *     error = bide_process_start(&process, &(bide_process_options){
 *         .program = "sort", .arguments = (char *[]){"sort", "-u", NULL},
 *         .streams = {{BIDE_STREAM_PIPE}, {BIDE_STREAM_PIPE}, {BIDE_STREAM_INHERIT}}});
 *     ...
 *     bide_try(bide_process_communicate(&self->talk, &process, "b\na\n", 4, self->text, 100, NULL, 0));
 *     ... self->talk.output_count bytes, and process.exit_code ...
 *     bide_process_destroy(&process);
 *
 *     start --> runs --it ends, and is waited for--> ended --end--> gone
 *                 +-----------------end: kills it--------------------^
 *
 * A child has the descriptors of its options, and no others, whatever the program has open. Its signals
 * have their defaults: none is blocked, none ignored. If the program cannot be executed,
 * bide_process_start returns exec's error, and leaves no process.
 *
 * The owner of a bide_process waits for it, or ends it; so no zombie is left. The rest of the program
 * must not collect the children's status: no wait(2) for any child. While SIGCHLD is ignored, as a
 * program may inherit it, or has SA_NOCLDWAIT, the kernel keeps no status; so a start gives SIGCHLD its
 * default, or takes that flag away, and the program must not set either again.
 *
 * Why it is correct: src/io/process.c.
 */
#ifndef BIDE_PROCESS_H
#define BIDE_PROCESS_H

#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/file.h"
#include "bide/scope.h"
#include "bide/signal.h"
#include "bide/socket.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* The kinds of the child's standard streams. */
typedef enum bide_stream_kind {
    BIDE_STREAM_INHERIT, /* that of the program */
    BIDE_STREAM_NULL,    /* nothing: /dev/null */
    BIDE_STREAM_GIVEN,   /* a descriptor of the program, which keeps it */
    /* The program has the other end, in bide_process.streams, which does not block. Of the input it
     * is a Unix socket: to write to a child that has gone is an error, and no signal. Write to it with
     * bide_send. (A child cannot open such an input anew, by /dev/stdin; one that has to is
     * given a pipe.) */
    BIDE_STREAM_PIPE,
} bide_stream_kind;

typedef struct bide_process_stream {
    bide_stream_kind kind;
    int fd; /* that is given */
} bide_process_stream;

/* A descriptor of the program that the child has under another number, 3 or more. */
typedef struct bide_process_fd {
    int fd;
    int number;
} bide_process_fd;

/* A limit of a resource, as setrlimit(2) has it. UINT64_MAX: none. */
typedef struct bide_process_limit {
    int resource; /* RLIMIT_NOFILE and the like */
    uint64_t soft;
    uint64_t hard;
} bide_process_limit;

/*
 * The steps of the child before it executes the program, in this order. All zero: none. A step that
 * fails ends the start with its error, and bide_process.failed_at names it. The steps need a copy of
 * the program's memory map (fork), so such a start costs more, the more memory the program has.
 */
typedef struct bide_process_setup {
    int cgroup;              /* it is started in this cgroup: a directory of version 2; 0: the program's; Linux */
    bool takes_terminal;     /* its input becomes the controlling terminal of its new session */
    const bide_process_limit *limits;
    size_t limit_count;
    bool sets_umask;
    unsigned umask;
    bool sets_group, sets_user; /* all three ids: real, effective and saved */
    uint32_t group, user;
    bool keeps_groups; /* otherwise, with a new group or user, `groups` are its supplementary ones */
    const uint32_t *groups;
    size_t group_count;
    /* The signal that it gets when the thread that starts it ends, also if that has ended already; 0:
     * none. A program that has another user or capabilities by its file loses it. Linux. */
    int death_signal;
} bide_process_setup;

/* Where a start has failed. */
typedef enum bide_process_step {
    BIDE_PROCESS_AT_NONE,  /* it has not */
    BIDE_PROCESS_AT_START, /* before the child runs; without a setup also its directory and program */
    BIDE_PROCESS_AT_CGROUP,
    BIDE_PROCESS_AT_SESSION, /* or its group of processes */
    BIDE_PROCESS_AT_DESCRIPTORS,
    BIDE_PROCESS_AT_TERMINAL,
    BIDE_PROCESS_AT_LIMITS,
    BIDE_PROCESS_AT_GROUPS,
    BIDE_PROCESS_AT_GROUP,
    BIDE_PROCESS_AT_USER,
    BIDE_PROCESS_AT_DIRECTORY,
    BIDE_PROCESS_AT_DEATH_SIGNAL,
    BIDE_PROCESS_AT_PROGRAM,
} bide_process_step;

/* Options of a process; `program` is required. The memory pointed to is used at the start only. */
typedef struct bide_process_options {
    const char *program;      /* a path; or, without a slash, looked for in PATH */
    char *const *arguments;   /* the first is its name; then NULL. NULL: the program's name alone */
    char *const *environment; /* "NAME=value", then NULL. NULL: the program's */
    const char *directory;    /* that it begins in; NULL: the program's */
    bide_process_stream streams[3];
    const bide_process_fd *fds;
    size_t fd_count;
    bool new_group;   /* it leads a process group: a signal may go to all of that */
    bool new_session; /* it leads a session, and so a group, without a terminal */
    const bide_process_setup *setup; /* NULL: none */

    /* Nanoseconds. When the process has ended, bide_process_communicate waits for so long at most for
     * the ends of its pipes, which others that it has started may hold. 0: for as long as it takes. */
    uint64_t wait_delay;
} bide_process_options;

/* The caller's memory until bide_process_destroy. */
typedef struct bide_process {
    int pid;
    bide_descriptor streams[3]; /* the program's ends of pipes; closed: there is none */

    bool has_ended;                  /* and was waited for: then the rest is known */
    int exit_code;                   /* -1: a signal ended it */
    int signal;                      /* that ended it; or 0 */
    uint64_t user_time, system_time; /* nanoseconds */
    size_t max_memory;               /* resident at a time, bytes */

    bide_process_step failed_at; /* if it could not be started */
    uint64_t wait_delay;
    bool leads_group;
    bide_descriptor handle; /* readable when it has ended; closed: the kernel has none */
} bide_process;

/*
 * Starts a process.
 * Threads: any. Errors: -EINVAL (no program, or a number below 3; or a terminal is to be taken without
 * a new session); those of exec(2), such as -ENOENT and -EACCES, and of the directory; -EBADF (a
 * descriptor that is given is closed); -EMFILE, -ENFILE, -ENOMEM, -EAGAIN; those of the setup's steps,
 * such as -EPERM; -EOPNOTSUPP (a cgroup before Linux 5.7; on other systems than Linux, and with the
 * POSIX platform table, a cgroup or a death signal). Then there is no process, and nothing is left;
 * process->failed_at says which step it was. Progress: blocks until the child has begun its program, or
 * failed to.
 */
int bide_process_start(bide_process *process, const bide_process_options *options);

/*
 * The name of a step, for messages: "user", "controlling terminal".
 * Threads: any. Progress: wait-free.
 */
const char *bide_process_step_name(bide_process_step step);

/* One wait. The caller's memory until it has ended. */
typedef struct bide_process_wait_operation {
    bide_task task;
    bide_process *process;
    bide_io_operation poll;
    bide_signal child; /* where there is no handle */
    bide_signal_waiter wait;
    bool listens;
    int status;
} bide_process_wait_operation;

/*
 * Waits until the process has ended, and says in `process` how. Any number of coroutines may wait
 * for it. Ended already: at once. A wait that loses a select has taken nothing: `process` knows how it
 * has ended, and the next wait ends at once.
 * Threads: the loop's. Errors: -ECHILD (somebody else has taken its status), -ECANCELED, -ETIMEDOUT,
 * -ENOTSUP (no loop), -EOPNOTSUPP (a loop in memory); without handles (before Linux 5.3, on other
 * systems, and with the POSIX platform table) those of bide_signal_listen for SIGCHLD. Suspends: if it has not ended. Cancel-safe: yes, the process continues.
 * Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_process_wait(bide_process_wait_operation *operation, bide_process *process);

/*
 * Sends it a signal; 0 only asks whether that would go. A process that has ended is not signalled,
 * nor another that has its number.
 * Threads: the loop's. Errors: -ESRCH (it has ended, and was waited for, here or by another part of
 * the program), -EPERM, -EINVAL. Progress: that of the system calls.
 */
int bide_process_signal(const bide_process *process, int signal);

/*
 * Sends a signal to its group, also when it has ended itself but others of the group have not.
 * Threads: the loop's. Errors: -EINVAL (it leads no group; no such signal), -ESRCH (nobody is left; or,
 * without a handle, another part of the program has taken its status), -EPERM. Progress: that of the
 * system calls.
 */
int bide_process_signal_group(const bide_process *process, int signal);

/*
 * Ends it: kills the process if it has not been waited for, takes its status, closes its streams.
 * If it leads a group, all of that is killed. One that did not start may be ended too, if it was
 * initialised by bide_process_init or is of zeros.
 * Threads: the loop's. Progress: blocks until the kernel has done away with the process.
 */
void bide_process_destroy(bide_process *process);

/*
 * Makes one that there is none of, as a struct of zeros is: what a frame's process is to be before
 * its `finally` may end it.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE void bide_process_init(bide_process *process)
{
    process->pid = 0;
    process->has_ended = true;
    process->leads_group = false;
    process->failed_at = BIDE_PROCESS_AT_NONE;
    process->wait_delay = 0;
    bide_descriptor_init_closed(&process->handle);
    for (int i = 0; i < 3; i++)
        bide_descriptor_init_closed(&process->streams[i]);
}

struct bide_process_communicate_operation;

/* One direction of a talk. Of the talk. */
typedef struct bide_process_pump_ {
    bide_task task;
    bide_branch branch;
    struct bide_process_communicate_operation *all;
    bide_descriptor *stream;
    char *data;
    size_t size;
    size_t count;
    int status;
    bool is_started;
    char more; /* a byte that has no room */
    bide_file_operation read;
    bide_io_operation send;
} bide_process_pump_;

/* The coroutine that awaits the end of the process beside the pumps. Of the talk. */
typedef struct bide_process_watch_ {
    bide_task task;
    bide_branch branch;
    struct bide_process_communicate_operation *all;
    bide_process_wait_operation wait;
    bide_event drained;
    bide_event_waiter drained_wait;
    bide_with_deadline_operation limited;
    int status;
} bide_process_watch_;

/* One talk. The caller's memory until it has ended. */
typedef struct bide_process_communicate_operation {
    bide_task task;
    bide_process *process;
    size_t input_count;  /* bytes that the child's socket has taken */
    size_t output_count; /* bytes that it has written to its output, and to its error output */
    size_t error_count;
    bool held_open; /* others had a pipe open when the process had ended and wait_delay had passed */

    /* of the operation */
    bide_scope scope;
    bide_process_pump_ pumps[3];
    unsigned running; /* pumps */
    bide_process_wait_operation wait;
    bide_process_watch_ watch;
    int status;
} bide_process_communicate_operation;

/*
 * Writes all of `input` to the process, and closes that; reads all that it writes to its output and
 * its error output, both at once; and waits for its end. Streams that are no pipes are left out. A
 * process that does not read all of its input is no error.
 *
 * A process that it has started may hold the pipes after its end, so that they do not end. With a
 * wait_delay in its options this ends that long after the process has ended, with 0, and with
 * `held_open` set. The counts contain all that the process itself has written.
 * Threads: the loop's. Errors: -EMSGSIZE (more came than there is room for: the buffer is full, and
 * the process has not been waited for); otherwise as bide_process_wait and bide_read. Suspends:
 * always. Cancel-safe: yes, by the counts; the process continues. Progress: that of the process.
 */
BIDE_KEY_SCOPED(output_count);
BIDE_MUST_AWAIT
bide_awaiter *bide_process_communicate(bide_process_communicate_operation *operation,
                                       bide_process *process, const void *input, size_t input_size,
                                       void *output, size_t output_size, void *error,
                                       size_t error_size);

BIDE_EXTERN_C_END

#endif
