/*
 * The declarations that the files of the io floor share: the states of operations and descriptors,
 * the calls between operation.c, remote requests (remote.c) and the back ends, and small helpers.
 */
#ifndef BIDE_IO_OPERATION_H
#define BIDE_IO_OPERATION_H

#include "bide/extend/io.h"

#include "operation_table.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>

/* io_written: memory that the kernel has written, unseen by MemorySanitizer. */
#if defined __has_feature
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define IO_MUST_NOTE_WRITES    1
#define io_written(data, size) __msan_unpoison(data, size)
#endif
#endif
#ifndef io_written
#define IO_MUST_NOTE_WRITES    0
#define io_written(data, size) ((void)(data), (void)(size))
#endif

/* ---- States ---- */

/*
 * The state of an operation: operation->state. It belongs to the io's thread. It is 0 before the
 * operation begins and after it has ended. bide_io_finish_waiting clears all bits, and so does
 * bide_io_withdraw when its back end has forgotten the operation; the list has the other writers.
 */
enum {
    /* Set by bide_io_enlist: it waits, and is in a line. */
    IO_WAITING = 1 << 0,

    /* Set by remote.c: a remote request to cancel it has arrived. */
    IO_STOP_REQUESTED = 1 << 1,

    /* Set by the back end that opened its socket; cleared by bide_io_take_result when the operation
     * succeeds. An operation that ends with it closes the socket. */
    IO_OPENED = 1 << 2,

    /* Set by offload.c: the file pool has it, or has done it. */
    IO_OFFLOADED = 1 << 3,

    /* Of io_uring, set and cleared by uring.c, and for the stream of an acceptor by uring_accept.c: */
    IO_IN_RING = 1 << 4,        /* its entry is in the ring, or its completion was not reaped */
    IO_CANCEL_IN_RING = 1 << 5, /* the same of a cancel of it */
    IO_COMPLETED = 1 << 6,      /* it has completed before its cancel; its status is the result */
    IO_POLLING = 1 << 7,        /* its entry is a poll: its call is retried here */
    IO_BYTES_IN_USE = 1 << 8,   /* sent without a copy: the kernel still reads its bytes */
    IO_CANCELLING = 1 << 9,     /* it has to end early: its coroutine was cancelled */
    IO_CLOSING = 1 << 10,       /* it has to end early: its descriptor is being closed */
    IO_FORGETTING = 1 << 11,    /* it has to end early: its coroutine is being destroyed */

    IO_POLLS_CHANGES = 1 << 12, /* its poll stays in the ring until it finds what was asked for */
    IO_FOUND = 1 << 13,         /* that poll has found it, and leaves the ring */
    IO_ON_THREAD = 1 << 15,     /* a thread of the kernel has its entry: the ring may not try it */

    /* Of the io in memory, set and cleared by simulation/table.c: a job has it, which takes time. */
    IO_IS_FILE_JOB = 1 << 14,
};

/* The flags of a read or write. */
enum {
    /* Set by offload.c before a thread has it: the call may wait. */
    IO_CALL_MAY_WAIT = 1 << 0,
};

/* The state of a descriptor: descriptor->bits. It belongs to the thread of the descriptor's io. */
enum {
    /* Of the system. Set by bide_io_probe_, and by the calls that open a descriptor: */
    IO_PROBED = 1 << 0,      /* the other bits of the system are valid */
    IO_IS_BLOCKING = 1 << 1, /* it is in blocking mode */
    IO_FILE = 1 << 2,        /* it does not poll: it is always ready, and its calls block */
    IO_TCP = 1 << 3,         /* a receive that gets less than it asked for has emptied it */
    IO_APPENDS = 1 << 4,     /* each write goes to the end of the file */
    IO_SEEKS = 1 << 5,       /* it has a position: known if IO_PROBED */
    /* It polls and is in blocking mode, and no flag keeps its calls from waiting: a terminal, or another
     * device. */
    IO_CALLS_WAIT = 1 << 11,
    IO_DIRECT = 1 << 12, /* O_DIRECT: past the kernel's cache */
    IO_NO_SOCKET = 1 << 15,
    IO_SYSTEM_BITS = ((1 << 6) - 1) | IO_CALLS_WAIT | IO_DIRECT | IO_NO_SOCKET,

    /* Of readiness.c, and of the pollers below it. Cleared too when the io disowns the descriptor. */
    IO_REGISTERED = 1 << 6,   /* it is in the poller */
    IO_WAITS_INPUT = 1 << 7,  /* a call in this direction would wait */
    IO_WAITS_OUTPUT = 1 << 8, /* (IO_WAITS_INPUT << BIDE_IO_OUTPUT) */
    IO_IS_DOUBLE = 1 << 10,   /* of epoll: by a number of its own: epoll_double */
    IO_SHORT_IS_NOT_ALL =
        1 << 9, /* a receive may be short for another reason than an empty socket */
};

/* ---- Operations ---- */

/* Fills in the members of an operation that may block a thread, and returns its head. */
BIDE_INLINE bide_io_operation *io_file_init(bide_file_operation *file, const bide_awaiter_ops *ops,
                                            bide_io_code code, bide_descriptor *descriptor)
{
    bide_io_operation *operation = &file->operation;
    bide_io_operation_init(operation, ops, code, descriptor);
    operation->is_file = true;
    return operation;
}

/* bide_io_direction, inlined. */
BIDE_INLINE int io_direction(const bide_io_operation *operation)
{
    BIDE_STATIC_ASSERT(offsetof(bide_io_arguments, bytes.offset) ==
                           offsetof(bide_io_arguments, vector.offset),
                       "both kinds of positioned operations have their offset in one place");
    const bide_io_row_ *row = bide_io_row_of_(operation);
    return row->is_positioned && operation->arguments.bytes.offset >= 0 ? BIDE_IO_FREE
                                                                        : row->direction;
}

/* The number of the operation's descriptor. */
BIDE_INLINE int io_fd(const bide_io_operation *operation)
{
    return bide_descriptor_fd(operation->descriptor);
}

/* Whether the operation fills in its descriptor. */
BIDE_INLINE bool io_opens(const bide_io_operation *operation)
{
    return bide_io_row_of_(operation)->opens == IO_OPENS_OWN;
}

/* Whether no other operation is in front of this one in its line. */
BIDE_INLINE bool bide_io_is_first_(const bide_io_operation *operation)
{
    int direction = io_direction(operation);
    return operation->descriptor == NULL || direction == BIDE_IO_FREE ||
           operation->descriptor->lines[direction].first == operation;
}

/* Begins an operation on the io's thread, as the begin of its table. */
bide_frame *bide_io_begin_(bide_io *io, bide_io_operation *operation, bide_frame *frame);

/* Makes the operation's call, or calls. True: it is done. False: it has to wait. */
bool bide_io_try_(bide_io_operation *operation);

/*
 * For BIDE_IO_CASE: there is input. Its wait ends, or it carries the case out: then the operation has
 * its own code again (io_choice.c, 4). Returns as a call does.
 */
ptrdiff_t bide_io_end_case_(bide_io_operation *operation);

/* bide_io_enlist, without reporting it to the observer. */
void bide_io_enlist_quietly_(bide_io *io, bide_io_operation *operation);

/* Opens the socket of a connect, for its call. 0, or a negative errno. */
int bide_io_open_to_connect_(bide_io_operation *operation);

/* The error of a call that returned -1. */
BIDE_INLINE ptrdiff_t io_error(void)
{
    return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

/* The bytes that an operation has not moved yet. */
BIDE_INLINE void *io_rest(const bide_io_operation *operation, size_t *size)
{
    *size = operation->arguments.bytes.size - operation->count;
    return (char *)operation->arguments.bytes.data + operation->count;
}

/* The call of a plain recv or send, which never waits. It returns -1 with errno if it fails. */
BIDE_INLINE ptrdiff_t io_move_bytes(bide_io_operation *operation)
{
    size_t size;
    void *rest = io_rest(operation, &size);
    int flags = operation->flags | MSG_DONTWAIT;
    return operation->code == BIDE_IO_RECV
               ? recv(io_fd(operation), rest, size, flags)
               : send(io_fd(operation), rest, size, flags | MSG_NOSIGNAL);
}

/*
 * The vectors that an operation has not moved yet. If it stopped in the middle of one, the rest of
 * that one alone.
 */
typedef struct io_vectors {
    const struct iovec *vectors;
    int count;
    void *data; /* NULL: `vectors` and `count` */
    size_t size;
} io_vectors;
io_vectors bide_io_rest_of_vectors_(const bide_io_operation *operation);

/* Whether the records of getdents64 have an entry beside "." and "..". */
bool bide_io_has_entry_(const char *records, size_t size);

/* ---- Descriptors ---- */

/* The io that a descriptor belongs to; NULL: none yet. */
BIDE_INLINE bide_io *io_of(const bide_descriptor *descriptor)
{
    return bide_atomic_load(&descriptor->io, relaxed);
}

/* Probes an open descriptor: sets its bits. */
void bide_io_probe_(bide_descriptor *descriptor);

/* Whether an open descriptor is no socket. */
BIDE_INLINE bool bide_io_is_no_socket_(bide_descriptor *descriptor)
{
    if ((descriptor->bits & IO_PROBED) == 0)
        bide_io_probe_(descriptor);
    return (descriptor->bits & IO_NO_SOCKET) != 0;
}

/* Whether the descriptor is in blocking mode and its next call would wait, as a poll reports. */
bool bide_io_would_wait_(const bide_io_operation *operation);

/*
 * Returns the owner of a descriptor: `io`, on whose thread this is called, unless it belongs to another.
 * NULL: it is closed, or another thread closes it.
 */
bide_io *bide_descriptor_claim_(bide_io *io, bide_descriptor *descriptor);

/* Whether `io` is the mark of a descriptor that belonged to none, and is being closed. */
bool bide_io_is_closing_(const bide_io *io);

/* bide_close, on the thread of the descriptor's io, which may be NULL. */
int bide_io_close_(bide_io *io, bide_descriptor *descriptor);

/* Closes a descriptor of the io, or of the system, that has no struct. */
int bide_io_close_number_(bide_io *io, int fd);

/* ---- The io and its owner thread ---- */

/* The common part of several io. */
struct bide_io_group_ {
    /*
     * On the thread of one of them, runs the remote requests that were sent to it. False: this is
     * another thread.
     */
    bool (*serve)(const struct bide_io_group_ *group);
};

/* Whether this is the io's thread. */
BIDE_INLINE bool bide_io_on_owner_thread_(const bide_io *io)
{
    return io->scheduler->runs_here_only(io->scheduler);
}

/*
 * Has the io's thread begin an operation, which ends on that thread. Returns NULL, as a suspend
 * that waits. The caller does not touch the operation again.
 */
bide_frame *bide_io_forward_(bide_io *io, bide_io_operation *operation);

/*
 * Calls `run` on the io's thread, and returns after it. If the io has no group, it is called here.
 * Waits for the coroutine that runs on that thread to suspend.
 */
void bide_io_call_remote_(bide_io *io, void (*run)(bide_io *io, void *argument), void *argument);

/* The calls on the io's own descriptors; NULL: they are the system's, or there is no io. */
BIDE_INLINE const bide_io_calls *io_calls(const bide_io *io)
{
    return io != NULL ? io->table->calls : NULL;
}

/* The io of the coroutines of a context; or NULL. */
BIDE_INLINE bide_io *io_of_context(const bide_context *context)
{
    bide_scheduler *scheduler = context->scheduler;
    return scheduler->io != NULL ? scheduler->io(scheduler) : NULL;
}

/*
 * The same, for a coroutine that runs at `line` and cannot work without an io. NULL: there is none, which debug builds
 * explain on stderr, once in a process.
 */
bide_io *bide_io_of_frame_(const bide_frame *frame, unsigned line);

/*
 * Closes `fd`, if it is a number of an io in memory, for a descriptor that belongs to no io: true, and *result is that
 * of the close. NULL: no io in memory was ever made.
 */
typedef bool bide_io_close_in_memory_(int fd, int *result);
extern bide_atomic(bide_io_close_in_memory_ *) bide_io_closes_in_memory_;

/* ---- Dumps ---- */

/*
 * Lets dumps report what operations are on, with the describe of `table`, if it has one. `table` is
 * constant and lives as long as the process.
 */
void bide_io_describe_with_(const bide_io_table *table);

#endif
