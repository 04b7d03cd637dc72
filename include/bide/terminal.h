/*
 * The standard streams of the process, without changing state that other processes share; and
 * terminals. Floor: io.
 *
 *     bide_descriptor input;
 *     error = bide_standard_input(&input);
 *     ...
 *     bide_try(bide_read(&self->read, &self->input, self->buffer, sizeof self->buffer));
 *     ...
 *     bide_close(&input);                             // standard input itself stays open
 *
 * Whether a read or write blocks is a property of the open file description, not of a descriptor. That
 * is shared: by the three standard streams of a terminal, by the shell, by other processes of a
 * pipeline. So it is never changed here. These calls return a new descriptor that does not block, if
 * possible, and otherwise one that is polled before each call.
 *
 *     bide_terminal terminal;
 *     error = bide_terminal_start_raw(&terminal, &input, 0);
 *     ... read each key as it is pressed
 *     bide_terminal_stop_raw(&terminal);               // restored; also when the process exits
 *
 * The window's size may change: the process then gets SIGWINCH, for which signal.h waits.
 *
 * Why it is correct: src/io/terminal.c.
 */
#ifndef BIDE_TERMINAL_H
#define BIDE_TERMINAL_H

#include "bide/descriptor.h"

BIDE_EXTERN_C_BEGIN

/*
 * Opens *descriptor, which was closed or was nothing, for what is at descriptor 0, 1 or 2 of the
 * process. It is for bide_read, bide_write and streams of files (bide_file_stream), whatever is
 * there: a terminal, a pipe, a socket, a file, /dev/null. A file is read and written at the position
 * that all share. It has a number of its own, to be closed by bide_close or released; that leaves
 * descriptor 0, 1 or 2 open. While it is open it is an end of a pipe too: the other end sees the end
 * of the file, or -EPIPE, when both are closed. A write to a pipe that nobody reads raises SIGPIPE, as
 * write(2) does. It is of the system, so a loop in memory cannot use it.
 * Threads: any. Errors: -EBADF (it is closed), -EMFILE, -ENFILE, -ENOMEM; it is closed then.
 * Progress: that of open(2).
 */
int bide_standard_input(bide_descriptor *descriptor);
int bide_standard_output(bide_descriptor *descriptor);
int bide_standard_error(bide_descriptor *descriptor);

/*
 * Whether it is a terminal.
 * Threads: the loop's. Progress: that of the system call.
 */
bool bide_is_terminal(const bide_descriptor *descriptor);

/* The size of a window, in characters; 0: it has none. */
typedef struct bide_terminal_size {
    unsigned columns;
    unsigned rows;
} bide_terminal_size;

/*
 * The size of a terminal's window. After SIGWINCH it is another.
 * Threads: the loop's. Errors: -ENOTTY (it is no terminal), -EBADF (it is closed), -EOPNOTSUPP (of a
 * loop in memory), those of ioctl(2). Progress: that of the system call.
 */
int bide_terminal_get_size(const bide_descriptor *descriptor, bide_terminal_size *size);

/*
 * Sets the size of a terminal's window. The processes in its foreground get SIGWINCH, if it has changed.
 * Threads: the loop's. Errors: as bide_terminal_get_size; -EINVAL (more than 65535). Progress: that of
 * the system call.
 */
int bide_terminal_set_size(const bide_descriptor *descriptor, const bide_terminal_size *size);

/*
 * Opens a pseudo-terminal: what is written to `control` is typed at `terminal`, and what is written to
 * that is read from `control`. Both were closed or were nothing; both are close-on-exec, and `control`
 * does not block. `size` may be NULL. A child (process.h) that is given `terminal` as its streams, with
 * a new session and takes_terminal, has it as its controlling terminal; close it here then. When nobody
 * has it open any more, a read of `control` ends with -EIO. They are of the system, so a loop in memory
 * cannot use them.
 * Threads: any. Errors: -ENOSPC (as many as there may be: kernel.pty.max), -EMFILE, -ENFILE, -ENOMEM,
 * -ENOENT (there is no /dev/ptmx), -EINVAL (of the size); both are closed then. Progress: that of the
 * system calls.
 */
int bide_pseudo_terminal_open(bide_descriptor *control, bide_descriptor *terminal,
                              const bide_terminal_size *size);

/* The functions that a raw terminal keeps. */
enum {
    BIDE_TERMINAL_SIGNALS = 1, /* its keys for them raise signals: SIGINT, SIGQUIT, SIGTSTP */
    BIDE_TERMINAL_OUTPUT = 2 /* what is written is made fit for it: a new line begins at its left */
};

/* A terminal that is raw. The caller's memory until bide_terminal_stop_raw. */
typedef struct bide_terminal {
    struct bide_raw_terminal_ *raw; /* NULL: it is not */
} bide_terminal;

/*
 * Makes a terminal raw: it hands over each byte as it comes, unchanged, and echoes nothing. `keep`:
 * the functions that it keeps, or 0. The descriptor may be closed afterwards. It is made as it was
 * by bide_terminal_stop_raw, or when the process exits (exit(3), a return from main). Not when it
 * is ended by a signal, or stopped by one: who wants that listens for the signal (signal.h), and
 * ends it. Of several on one terminal the last one ends first.
 * Threads: any. Errors: -ENOTTY (it is no terminal), -EBADF (it is closed), -EOPNOTSUPP (of a loop in
 * memory), -EMFILE, -ENOMEM, those of tcsetattr(3); it is as it was then. Progress: blocks for a
 * moment, for the lock of all such terminals.
 */
int bide_terminal_start_raw(bide_terminal *terminal, const bide_descriptor *descriptor,
                            unsigned keep);

/*
 * Makes it as it was before; also in the background, where a process that does so is otherwise stopped.
 * One that is not raw, since it could not be made so or has been ended, is left as it is. In a child
 * of fork the terminal stays as it is: it is the parent's to end.
 * Threads: any. Errors: those of tcsetattr(3), -EIO (the terminal is gone); it has ended all the same.
 * Progress: as bide_terminal_start_raw.
 */
int bide_terminal_stop_raw(bide_terminal *terminal);

BIDE_EXTERN_C_END

#endif
