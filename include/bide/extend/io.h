/*
 * Operations on descriptors, and what carries them out: for authors of such operations, and of what
 * they run on. Floor: io.
 *
 * An operation is a code and its arguments. It is awaited like any other, and hands itself to the
 * `bide_io` of the scheduler that its coroutine runs on: an io_uring, an epoll set, or a world in
 * memory under a test loop. Those are tables of functions, and keep to one contract:
 *
 *     begun --it is done, or cannot be--> ended, its coroutine goes on without having suspended
 *       |
 *       +--> waits --done--> ended: 0, and `count` says how much
 *            waits --a request to stop--> ended: the reason, and `count` says how much until then
 *            waits --the descriptor is closed--> ended: -EPIPE, and `count` likewise
 *            waits --its coroutine is destroyed--> gone
 *
 * One thread has an io: that of its scheduler. It begins operations, ends them and is told of
 * requests to stop. A request on another thread names the operation to that thread (stop.h, 5a).
 * Where several threads have one each and share their coroutines (io_pool.h), an operation is sent
 * to the thread that its descriptor belongs to.
 * The memory of an operation, and what its arguments point at, is the io's until it has ended.
 *
 * Why it is right: src/io/operation.c.
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
struct bide_buffer_pool;
struct bide_message;
struct stat;

/* What an operation does. */
typedef enum bide_io_code {
    /* on a descriptor, which has lines */
    BIDE_IO_RECV,
    BIDE_IO_SEND,
    BIDE_IO_RECVMSG,
    BIDE_IO_SENDMSG,
    BIDE_IO_ACCEPT,
    BIDE_IO_CONNECT,
    BIDE_IO_READ, /* a file's are at an offset, or at its position */
    BIDE_IO_WRITE,
    BIDE_IO_READ_VECTOR,
    BIDE_IO_WRITE_VECTOR,
    BIDE_IO_POLL,
    BIDE_IO_ACCEPT_STREAM, /* of an acceptor (acceptor.h): no coroutine waits for it */
    BIDE_IO_RECV_PROVIDED, /* into a buffer of a pool (buffer_pool.h) */
    BIDE_IO_RECV_BATCH, /* of datagrams */
    BIDE_IO_SEND_BATCH,
    BIDE_IO_SEND_ZERO_COPY,
    BIDE_IO_SPLICE_TO_SOCKET, /* from a pipe that has it all */
    BIDE_IO_SEND_FILE, /* what is in memory of it; where descriptors are the system's */
    /* that end at once */
    BIDE_IO_LISTEN,
    BIDE_IO_BIND,
    BIDE_IO_PAIR,
    /* of files, that may block */
    BIDE_IO_OPEN,
    BIDE_IO_SYNC,
    BIDE_IO_ALLOCATE,
    BIDE_IO_TRUNCATE,
    BIDE_IO_STAT,
    BIDE_IO_RENAME,
    BIDE_IO_UNLINK,
    BIDE_IO_MAKE_DIRECTORY,
    BIDE_IO_SPLICE_FROM_FILE, /* to a pipe that is empty */
    BIDE_IO_READ_DIRECTORY,
    BIDE_IO_MAP,
    BIDE_IO_PREFAULT,
    BIDE_IO_CODES
} bide_io_code;

/* How far a file could be sent without waiting for a disk. */
typedef enum bide_io_found {
    BIDE_IO_FOUND_ALL,     /* it was */
    BIDE_IO_FOUND_END,     /* to its end */
    BIDE_IO_FOUND_SOME,    /* what comes next is not in memory */
    BIDE_IO_FOUND_NOTHING, /* it is not known of that file */
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
        int64_t offset;
        int count;
    } vector;
    struct msghdr *message;
    struct {
        struct bide_buffer_pool *pool;
        void *data;              /* that was lent; or NULL */
        bide_io_operation *next; /* of those that wait for one */
        bide_io_operation *previous;
    } lent;
    struct {
        bide_descriptor *accepted;
        struct bide_address *peer;      /* or NULL */
        struct bide_acceptor *acceptor; /* that keeps connections; or NULL */
    } accept;
    const struct bide_address *address;
    struct {
        const struct bide_address *address;
        int type;
        int backlog;
    } listen;
    struct {
        bide_descriptor *opened;
        const char *path;
        int flags;
        unsigned mode;
    } open;
    struct {
        const char *path; /* NULL: of the descriptor */
        const char *other;
        struct stat *stat;
        unsigned mode;
    } path;
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
} bide_io_arguments;

/* The caller's memory until it has ended. */
struct bide_io_operation {
    bide_awaiter awaiter;
    bide_io *io;                 /* that it was begun on */
    bide_descriptor *descriptor; /* NULL: it has none */
    bide_io_operation *next;     /* in the descriptor's line */
    bide_io_operation *previous;
    size_t count; /* of bytes moved, whatever it ends with */
    int status;
    int flags;      /* of the system call */
    uint16_t state; /* of its io */
    uint8_t code;   /* bide_io_code */
    bool is_whole;  /* goes on until all bytes were moved */
    bool is_file;   /* it is the head of a bide_file_operation */
    bide_io_arguments arguments;
};

/* One that may block a thread, and then does it on a thread for blocking calls. */
typedef struct bide_file_operation {
    bide_io_operation operation;
    bide_frame relay; /* goes on when the thread has done it */
    bide_blocking_call call;
} bide_file_operation;

/*
 * Calls on descriptors that are a table's own, and mean nothing to the system. Each is as the
 * system's of that name, and returns a negative errno where that would set errno. None waits.
 * On the io's thread.
 */
typedef struct bide_io_calls {
    int (*close)(bide_io *io, int fd);
    int (*shutdown)(bide_io *io, int fd, int how);
    int (*getsockname)(bide_io *io, int fd, struct bide_address *address);
    int (*getpeername)(bide_io *io, int fd, struct bide_address *address);
    int (*setsockopt)(bide_io *io, int fd, int level, int name, int value);
    int (*getsockopt)(bide_io *io, int fd, int level, int name, int *value);
    int (*poll)(bide_io *io, int fd, unsigned events); /* what it is ready for, or 0 */
    int (*open)(bide_io *io, const char *path, int flags, unsigned mode);
    int (*pipe)(bide_io *io, int *fds);
    ptrdiff_t (*splice)(bide_io *io, int from, int to, size_t size);
    ptrdiff_t (*tee)(bide_io *io, int from, int to, size_t size);
    int (*lseek)(bide_io *io, int fd, int64_t offset);
} bide_io_calls;

/* What carries operations out. */
typedef struct bide_io_table {
    const char *name;

    /*
     * Begins an operation, whose coroutine is saved; as an awaiter's `suspend`, it returns `frame` if
     * it has ended, or NULL. On the io's thread.
     */
    bide_frame *(*begin)(bide_io *io, bide_io_operation *operation, bide_frame *frame);

    /* Asks one that waits to end early. It ends now or later. On the io's thread. */
    void (*cancel)(bide_io *io, bide_io_operation *operation);

    /*
     * Its coroutine is destroyed: the operation is forgotten when this returns, and nothing refers to
     * it. What it got is given back. On the io's thread.
     */
    void (*forget)(bide_io *io, bide_io_operation *operation);

    /* Ends what waits on a descriptor with -EPIPE, and forgets the descriptor. */
    void (*release)(bide_io *io, bide_descriptor *descriptor);

    /* NULL: its descriptors are the system's. */
    const bide_io_calls *calls;
} bide_io_table;

/* What every io begins with. */
struct bide_io {
    const bide_io_table *table;
    bide_scheduler *scheduler;    /* whose thread it is of */
    bide_context context;         /* of `mail` and the relays */
    uint64_t in_flight;           /* operations that wait */
    uint64_t begun;               /* operations, ever */
    bide_descriptor *descriptors; /* that belong to it */
    uint32_t generation;          /* of the process: another in a child of fork */

    /* Of several that share their coroutines (io_pool.h); NULL: it is alone. */
    const struct bide_io_group_ *group;

    /* of all threads: what is sent to its thread, newest first */
    bide_atomic(uintptr_t) letters;
    bide_frame mail; /* posted when there is one */
};

/*
 * Prepares an io.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_io_init(bide_io *io, const bide_io_table *table, bide_scheduler *scheduler);

/*
 * It is about to go: its descriptors belong to none. Nothing waits on them.
 * Threads: the io's. Progress: wait-free, linear in the descriptors.
 */
void bide_io_destroy(bide_io *io);

/*
 * A descriptor belongs to it from now on, unless it does already.
 * Threads: the io's. Progress: wait-free.
 */
void bide_io_adopt(bide_io *io, bide_descriptor *descriptor);

/*
 * The suspend, resume, cancel and withdraw of operations that begin with a bide_io_operation. Of a
 * scheduler without an io the operation ends with -ENOTSUP.
 * Threads: as the members of bide_awaiter_ops. Errors: that of the operation. Progress: that of the
 * io.
 */
bide_frame *bide_io_suspend(bide_awaiter *awaiter, bide_frame *frame);
int bide_io_resume(bide_awaiter *awaiter);
void bide_io_cancel(bide_awaiter *awaiter);
bool bide_io_withdraw(bide_awaiter *awaiter);

/* The table of an operation of that name. */
#define BIDE_IO_OPS(name)                                                                   \
    {                                                                                       \
        NULL, bide_io_suspend, bide_io_resume, bide_io_cancel, bide_io_withdraw, name, NULL \
    }

/*
 * Fills in what all operations have. `descriptor` may be NULL.
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

/* ---- For authors of tables ---- */

/* Why an operation ends. */
typedef enum bide_io_outcome { BIDE_IO_DONE, BIDE_IO_CANCELLED, BIDE_IO_CLOSED } bide_io_outcome;

/* The lines of a descriptor. */
enum { BIDE_IO_INPUT, BIDE_IO_OUTPUT, BIDE_IO_FREE, BIDE_IO_LINES };

/*
 * Its line: of input, of output, or of those that wait for no other.
 * Threads: any. Progress: wait-free.
 */
int bide_io_direction(const bide_io_operation *operation);

/*
 * Puts it into its descriptor's line, if it has one, and counts it.
 * Threads: the io's. Progress: wait-free.
 */
void bide_io_enlist(bide_io *io, bide_io_operation *operation);

/*
 * Takes it out of there again.
 * Threads: the io's. Progress: wait-free.
 */
void bide_io_remove(bide_io *io, bide_io_operation *operation);

/*
 * Notes what a call of the system has returned, a number or a negative errno. True: the operation
 * is done. False: not yet: it was interrupted, there is nothing yet (`*again` is set), or there are
 * bytes left.
 * Threads: the io's. Progress: wait-free.
 */
bool bide_io_take_result(bide_io_operation *operation, ptrdiff_t result, bool *again);

/*
 * Ends one that waits, which is in no line any more, and wakes its coroutine. It is not touched
 * afterwards.
 * Threads: the io's. Progress: that of posting to the scheduler.
 */
void bide_io_finish_waiting(bide_io_operation *operation, bide_io_outcome outcome);

/*
 * Makes the operation's system call, without waiting: returns what it returned, or a negative errno;
 * -EAGAIN: it would have to wait. One of a file may block.
 * Threads: any. Progress: that of the call.
 */
ptrdiff_t bide_io_call(bide_io_operation *operation);

/*
 * What an operation has got that nobody will have: closes what it opened.
 * Threads: the io's. Progress: that of close.
 */
void bide_io_release(bide_io_operation *operation);

BIDE_EXTERN_C_END

#endif
