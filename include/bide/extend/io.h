/*
 * Operations on descriptors, and the back ends that carry them out: for authors of operations and of
 * back ends. Floor: io.
 *
 * An operation is a code and its arguments. It is awaited like any other awaiter, and begins on the
 * `bide_io` of its coroutine's scheduler: an io_uring, an epoll set, or an environment in memory under a
 * test loop. An io is carried out by a table of functions, its back end. All back ends keep one
 * contract:
 *
 *     begun --done, or failed--> ended, and its coroutine continues without having suspended
 *       |
 *       +--> waits --done--> ended: 0, and `count` says how much
 *            waits --stop requested--> ended: the reason, and `count` says how much until then
 *            waits --descriptor closed--> ended: -EPIPE, and `count` likewise
 *            waits --coroutine destroyed--> gone
 *
 * Threads: an io belongs to one thread, that of its scheduler. That thread begins and ends operations,
 * and stops them. A stop request on another thread is forwarded to it (stop.h, 5a). If several threads
 * have an io each and share their coroutines (io_pool.h), an operation is forwarded to the thread that
 * its descriptor belongs to.
 *
 * The memory of an operation, and the memory that its arguments point at, belongs to the io until the
 * operation has ended.
 *
 * Why it is correct: src/io/operation.c.
 */
#ifndef BIDE_EXTEND_IO_H
#define BIDE_EXTEND_IO_H

#include "bide/blocking.h"
#include "bide/descriptor.h"
#include "bide/stop.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

BIDE_EXTERN_C_BEGIN

struct bide_acceptor;
struct bide_address;
struct bide_name_record;
struct bide_buffer_pool;
struct bide_described_;
struct bide_message;
struct bide_path_root;
struct bide_socket_options;
struct statx;

/* The operations. src/io/operation_table.c says how they differ. */
typedef enum bide_io_code {
    /* on a descriptor, in one of its lines */
    BIDE_IO_RECV,
    BIDE_IO_SEND,
    BIDE_IO_RECVMSG,
    BIDE_IO_SENDMSG,
    BIDE_IO_ACCEPT,
    BIDE_IO_CONNECT,
    BIDE_IO_READ, /* of a file: at an offset, or at its position */
    BIDE_IO_WRITE,
    BIDE_IO_READ_VECTOR,
    BIDE_IO_WRITE_VECTOR,
    BIDE_IO_POLL,
    BIDE_IO_ACCEPT_STREAM, /* of an acceptor (acceptor.h); it has no coroutine */
    BIDE_IO_RECV_PROVIDED, /* into a buffer of a pool (buffer_pool.h) */
    BIDE_IO_RECV_NEXT,     /* the same, of a receiver (receiver.h) */
    BIDE_IO_RECV_STREAM,   /* of a receiver; it has no coroutine */
    BIDE_IO_RECV_BATCH, /* of datagrams */
    BIDE_IO_SEND_BATCH,
    BIDE_IO_SEND_ZERO_COPY,
    BIDE_IO_SPLICE_TO_SOCKET, /* from a pipe that has all the bytes */
    BIDE_IO_SEND_FILE,        /* its part in the page cache; only of the system's descriptors */
    BIDE_IO_CASE, /* of a select, until its operation may succeed; in the operation's own memory */
    /* ending at once */
    BIDE_IO_LISTEN,
    BIDE_IO_BIND,
    BIDE_IO_PAIR,
    /* on files; they may block */
    BIDE_IO_OPEN,
    BIDE_IO_SYNC,
    BIDE_IO_ALLOCATE,
    BIDE_IO_TRUNCATE,
    BIDE_IO_STAT,
    BIDE_IO_RENAME,
    BIDE_IO_UNLINK,
    BIDE_IO_MAKE_DIRECTORY,
    BIDE_IO_LINK,
    BIDE_IO_SYMLINK,
    BIDE_IO_READLINK,
    BIDE_IO_REALPATH,
    BIDE_IO_STATX,
    BIDE_IO_STATFS,
    BIDE_IO_CHMOD,
    BIDE_IO_CHOWN,
    BIDE_IO_UTIMES,
    BIDE_IO_OPEN_TEMPORARY,
    BIDE_IO_COPY_RANGE, /* from one file to another, up to a few MB */
    BIDE_IO_SPLICE_FROM_FILE, /* to a pipe that is empty */
    BIDE_IO_READ_DIRECTORY,
    BIDE_IO_MAP,
    BIDE_IO_PREFAULT,
    BIDE_IO_CODES
} bide_io_code;

/* How far a file could be sent without waiting for a disk. */
typedef enum bide_io_found {
    BIDE_IO_FOUND_ALL,     /* all of it */
    BIDE_IO_FOUND_END,     /* to its end */
    BIDE_IO_FOUND_SOME,    /* the next bytes are not in memory */
    BIDE_IO_FOUND_NOTHING, /* unknown: the file system does not report it */
} bide_io_found;

/* The arguments of each code. */
typedef union bide_io_arguments {
    struct {
        void *data;
        size_t size;
        int64_t offset;  /* -1: at the descriptor's position, or it has none */
        bool was_copied; /* of zero-copy sends */
    } bytes;
    struct {
        struct bide_message *messages;
        unsigned count;
    } batch;
    struct {
        const struct iovec *vectors;
        int count;
        int64_t offset; /* at the place of bytes.offset */
    } vector;
    struct msghdr *message;
    struct {
        struct bide_buffer_pool *pool;
        void *data;              /* the buffer that was lent; or NULL */
        bide_io_operation *next; /* of the operations that wait for a buffer */
        bide_io_operation *previous;
    } provided;
    struct {
        bide_descriptor *accepted;
        struct bide_address *peer;      /* or NULL */
        struct bide_acceptor *acceptor; /* it keeps connections; or NULL */
    } accept;
    struct {
        const struct bide_address *address;
        const struct bide_socket_options *options; /* or NULL */
    } connect;
    struct {
        const struct bide_address *address;
        const struct bide_socket_options *options; /* or NULL */
        int type;
        int backlog;
    } listen;
    struct {
        bide_descriptor *opened;
        const char *path;
        const struct bide_path_root *root; /* NULL: the working directory, not restricted */
        int flags;
        unsigned mode;
    } open;
    struct {
        const char *path; /* NULL: of the descriptor */
        const struct bide_path_root *root;
        void *about;    /* what is filled in, or other data */
        unsigned mode;  /* or the owner, the mask of statx, the size of a text */
        unsigned group;
    } path;
    struct {
        const char *path;
        const struct bide_path_root *root;
        const char *other;
        const struct bide_path_root *other_root;
    } names;
    struct {
        const bide_descriptor *file; /* from which it is copied */
        int64_t from;
        int64_t to;
        size_t size;
    } copy;
    struct {
        int64_t offset;
        size_t size;
        int pipe;
    } splice;
    struct {
        const bide_descriptor *file;
        int64_t offset;
        size_t size;
        bide_io_found found;
    } send_file;
    struct {
        void *at;
        size_t size;
        int64_t offset;
        int protection;
    } map;
    struct {
        int64_t offset;
        int64_t size;
    } range;
    struct {
        uint32_t wanted;
        uint32_t found;
    } poll;
    struct {
        void *data; /* as in bytes: the operation's own arguments */
        size_t size;
        int64_t offset;
        struct bide_choice *choice; /* of a select on another thread than the io; or NULL */
    } in_choice;
} bide_io_arguments;

/* The caller's memory until it has ended. */
struct bide_io_operation {
    bide_awaiter awaiter;
    bide_io *io;                 /* it has begun there */
    bide_descriptor *descriptor; /* NULL: it has none */
    bide_io_operation *next;     /* in the descriptor's line */
    bide_io_operation *previous;
    size_t count; /* bytes moved, whatever its status */
    int status;
    int flags;      /* of the system call */
    uint16_t state; /* its io's: src/io/operation.h */
    uint8_t code;   /* bide_io_code */
    bool is_whole;  /* it continues until all bytes are moved */
    bool is_file;   /* it is the head of a bide_file_operation */
    uint8_t code_in_choice; /* if its code is BIDE_IO_CASE: its own */
    uint16_t number_in_choice;
    bide_io_arguments arguments;
};

/* An operation that may block a thread, and then is done on a thread for blocking calls. */
typedef struct bide_file_operation {
    bide_io_operation operation;
    bide_frame relay; /* runs when that thread has done it */
    union {
        bide_blocking_call call;
        /* While an entry in a ring does it: */
        uint64_t how[3];     /* of an open under a restricted root: the system's struct open_how */
        struct statx *about; /* of a stat: memory of the loop, which the kernel fills in */
    };
} bide_file_operation;

/*
 * Calls on the own descriptors of a back end, which mean nothing to the system. Each behaves like the
 * system call of that name, and returns a negative errno instead of setting errno. None waits. They
 * are called on the io's thread.
 */
typedef struct bide_io_calls {
    int (*close)(bide_io *io, int fd);
    int (*shutdown)(bide_io *io, int fd, int how);
    int (*getsockname)(bide_io *io, int fd, struct bide_address *address);
    int (*getpeername)(bide_io *io, int fd, struct bide_address *address);
    int (*setsockopt)(bide_io *io, int fd, int level, int name, int value);
    int (*getsockopt)(bide_io *io, int fd, int level, int name, int *value);
    int (*poll)(bide_io *io, int fd, unsigned events); /* the events it is ready for, or 0 */
    int (*open)(bide_io *io, const char *path, int flags, unsigned mode);
    int (*pipe)(bide_io *io, int *fds);
    ptrdiff_t (*splice)(bide_io *io, int from, int to, size_t size);
    ptrdiff_t (*tee)(bide_io *io, int from, int to, size_t size);
    int (*lseek)(bide_io *io, int fd, int64_t offset);

    /*
     * Looks up the addresses of a host: at most `max`. Returns their number, or a negative errno, and in
     * *delay the nanoseconds after which that is known.
     */
    int (*resolve)(bide_io *io, const char *host, struct bide_address *addresses, unsigned max,
                   uint64_t *delay);

    /*
     * Looks up the records of a name, or those of an address if `name` is NULL (bide_record_kind). Returns
     * their number, or a negative errno, and in *records where they are, until the next call.
     */
    int (*resolve_records)(bide_io *io, const char *name, const struct bide_address *address,
                           unsigned kind, const struct bide_name_record **records, uint64_t *delay);
} bide_io_calls;

/* A back end: it carries operations out. */
typedef struct bide_io_table {
    const char *name;

    /*
     * Begins an operation, whose coroutine is saved. As an awaiter's `suspend`, it returns `frame` if
     * the operation has ended, or NULL. On the io's thread.
     */
    bide_frame *(*start)(bide_io *io, bide_io_operation *operation, bide_frame *frame);

    /* Requests a waiting operation to end early. It ends now or later. On the io's thread. */
    void (*cancel)(bide_io *io, bide_io_operation *operation);

    /*
     * The coroutine of a waiting operation is destroyed: when this returns, nothing refers to the
     * operation. Its result is given back. On the io's thread.
     */
    void (*discard)(bide_io *io, bide_io_operation *operation);

    /* Ends all operations that wait on a descriptor with -EPIPE, and forgets the descriptor. */
    void (*release)(bide_io *io, bide_descriptor *descriptor);

    /* NULL: its descriptors are the system's. */
    const bide_io_calls *calls;

    /*
     * For a case of a select: makes the call of an operation that is in no line, as bide_io_call.
     * -EOPNOTSUPP: it would block. On the io's thread. NULL: its descriptors are the system's.
     */
    ptrdiff_t (*call)(bide_io *io, bide_io_operation *operation);

    /*
     * For dumps: describes the io's own descriptor `fd`. Another thread than the io's calls it, so it
     * reads memory of the io through the kernel, and does not trust it. NULL: descriptors are described
     * as the system's, or not at all if `calls` is not NULL.
     */
    void (*describe)(const bide_io *io, int fd, struct bide_described_ *described);
} bide_io_table;

/* The head of every io. */
struct bide_io {
    const bide_io_table *table;
    bide_scheduler *scheduler;    /* the io belongs to its thread */
    bide_context context;         /* of remote_frame and the relays */
    uint64_t in_flight;           /* operations that wait */
    uint64_t begun;               /* operations, ever */
    bide_descriptor *descriptors; /* the descriptors that belong to it */
    uint32_t generation;          /* of the process: another in a child of fork */

    /* The group of several io that share their coroutines (io_pool.h); NULL: it is alone. */
    const struct bide_io_group_ *group;

    /* Requests of other threads (src/io/remote.c), newest first. Any thread pushes one. */
    bide_atomic(uintptr_t) remote_requests;
    bide_frame remote_frame; /* runs them; posted by the push that finds none */
};

/*
 * Initialises an io.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_io_init(bide_io *io, const bide_io_table *table, bide_scheduler *scheduler);

/*
 * Ends an io, on whose descriptors no operation waits. They belong to no io from now on.
 * Threads: the io's. Progress: wait-free, linear in the descriptors.
 */
void bide_io_destroy(bide_io *io);

/*
 * A descriptor belongs to the io from now on, unless it belongs to one already.
 * Threads: the io's. Progress: wait-free.
 */
void bide_io_adopt(bide_io *io, bide_descriptor *descriptor);

/*
 * The suspend, resume, cancel and withdraw of operations that begin with a bide_io_operation. On a
 * scheduler without an io the operation ends with -ENOTSUP.
 * Threads: as the members of bide_awaiter_ops. Errors: that of the operation. Progress: that of the
 * io.
 */
bide_frame *bide_io_suspend(bide_awaiter *awaiter, bide_frame *frame);
int bide_io_resume(bide_awaiter *awaiter);
void bide_io_cancel(bide_awaiter *awaiter);
bool bide_io_withdraw(bide_awaiter *awaiter);

/* The table of an operation of that name. */
#define BIDE_IO_OPS(name)                                                                    \
    {                                                                                        \
        NULL, bide_io_suspend, bide_io_resume, bide_io_cancel, bide_io_withdraw, name, NULL, \
            BIDE_UNDO_NONE                                                                   \
    }

/*
 * The `attempt` of operations that take something from a descriptor, so that a select loses nothing: it
 * makes the call if that need not wait. Otherwise the case waits, in the descriptor's line, until there
 * is input. Wrapped, it is that of an operation with a `resume` of its own, which it does not call.
 * Threads: the select's. Errors: those of the operation; -EAGAIN: as a choice's (choice.h);
 * -EOPNOTSUPP: the descriptor does not poll, as a regular file; -E2BIG: it is case 65536 or a later one
 * of a select that runs on another thread than the io. Progress: that of the call.
 */
int bide_io_attempt(bide_awaiter *awaiter, bide_choice *choice);

/* The table of an operation of that name that can be a case of a select. */
#define BIDE_IO_OPS_IN_CHOICE(name)                                                    \
    {                                                                                  \
        NULL, bide_io_suspend, bide_io_resume, bide_io_cancel, bide_io_withdraw, name, \
            bide_io_attempt, BIDE_UNDO_ATTEMPT                                         \
    }

/*
 * Initialises the members that all operations have. `descriptor` may be NULL.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE void bide_io_operation_init(bide_io_operation *operation, const bide_awaiter_ops *ops,
                                        bide_io_code code, bide_descriptor *descriptor)
{
    operation->awaiter.ops = ops;
    operation->io = NULL;
    operation->descriptor = descriptor;
    operation->count = 0;
    operation->status = 0;
    operation->flags = 0;
    operation->code = (uint8_t)code;
    operation->state = 0;
    operation->is_whole = false;
    operation->is_file = false;
}

/* ---- For authors of back ends ---- */

/* Why an operation ends. */
typedef enum bide_io_outcome { BIDE_IO_DONE, BIDE_IO_CANCELLED, BIDE_IO_CLOSED } bide_io_outcome;

/* The lines of a descriptor. */
enum { BIDE_IO_INPUT, BIDE_IO_OUTPUT, BIDE_IO_FREE, BIDE_IO_LINES };

/*
 * The line of an operation: of input, of output, or of operations that need no order.
 * Threads: any. Progress: wait-free.
 */
int bide_io_direction(const bide_io_operation *operation);

/*
 * Puts an operation into the line of its descriptor, if it has one, and counts it. It waits now.
 * Threads: the io's. Progress: wait-free.
 */
void bide_io_enlist(bide_io *io, bide_io_operation *operation);

/*
 * Takes a waiting operation out of its line.
 * Threads: the io's. Progress: wait-free.
 */
void bide_io_remove(bide_io *io, bide_io_operation *operation);

/*
 * Stores the result of a system call: a number, or a negative errno. True: the operation is done.
 * False: not yet, because the call was interrupted, would have to wait (`*again` is set), or has left
 * bytes.
 * Threads: the io's. Progress: wait-free.
 */
bool bide_io_take_result(bide_io_operation *operation, ptrdiff_t result, bool *again);

/*
 * Ends a waiting operation, which was taken out of its line, and wakes its coroutine. The caller does
 * not touch it afterwards.
 * Threads: the io's. Progress: that of posting to the scheduler.
 */
void bide_io_finish_waiting(bide_io_operation *operation, bide_io_outcome outcome);

/*
 * Makes the operation's system call, without waiting. Returns its result, or a negative errno;
 * -EAGAIN: it would have to wait. The call of an operation on a file may block.
 * Threads: any. Progress: that of the call.
 */
ptrdiff_t bide_io_call(bide_io_operation *operation);

/*
 * Gives back the result of an operation that nobody will use: closes the descriptors that it opened.
 * Threads: the io's. Progress: that of close.
 */
void bide_io_release(bide_io_operation *operation);

BIDE_EXTERN_C_END

#endif
