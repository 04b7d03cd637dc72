/* What the files of the io floor ask of each other. */
#ifndef BIDE_IO_OPERATION_H
#define BIDE_IO_OPERATION_H

#include "bide/extend/io.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

/* What the kernel has written, and a sanitizer has not seen. */
#if defined __has_feature
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define io_written(data, size) __msan_unpoison(data, size)
#endif
#endif
#ifndef io_written
#define io_written(data, size) ((void)(data), (void)(size))
#endif

/* The states of an operation; a table has the bits above. */
enum { IO_WAITING = 1, IO_NAMED = 2, IO_OWN = 4 };

/* What is known of a descriptor; a table has the bits above. */
enum {
    IO_ASKED = 1,  /* the system was asked what it is; or it was opened here, not to block */
    IO_BLOCKS = 2, /* it is in blocking mode */
    IO_FILE = 4,   /* it does not poll: always ready, and blocks */
    IO_BYTES = 8,  /* of TCP: a receive that gets less than it asks for has got all there is */
    IO_BITS_OWN = 16,
};

/* Fills in what all operations have that may block a thread, and returns their head. */
BIDE_INLINE bide_io_operation *io_file_init(bide_file_operation *file, const bide_awaiter_ops *ops,
                                            bide_io_code code, bide_descriptor *descriptor)
{
    bide_io_operation *operation = &file->operation;
    bide_io_operation_init(operation, ops, code, descriptor);
    operation->is_file = true;
    return operation;
}

/* bide_io_direction, in the files that call it for each operation. */
BIDE_INLINE int io_direction(const bide_io_operation *operation)
{
    enum {
        INPUT = 1 << BIDE_IO_RECV | 1 << BIDE_IO_RECV_PROVIDED | 1 << BIDE_IO_RECVMSG |
                1 << BIDE_IO_RECV_BATCH | 1 << BIDE_IO_ACCEPT,
        OUTPUT = 1 << BIDE_IO_SEND | 1 << BIDE_IO_SEND_ZERO_COPY | 1 << BIDE_IO_SENDMSG |
                 1 << BIDE_IO_SEND_BATCH | 1 << BIDE_IO_SPLICE_TO_SOCKET |
                 1 << BIDE_IO_SEND_FILE | 1 << BIDE_IO_CONNECT,
    };
    if (operation->code > BIDE_IO_SEND_FILE) /* (the others are below 31) */
        return BIDE_IO_FREE;
    unsigned bit = 1u << operation->code;
    if ((bit & INPUT) != 0)
        return BIDE_IO_INPUT;
    if ((bit & OUTPUT) != 0)
        return BIDE_IO_OUTPUT;
    int64_t offset = -1;
    switch (operation->code) {
    case BIDE_IO_READ:
    case BIDE_IO_WRITE:
        offset = operation->arguments.bytes.offset;
        break;
    case BIDE_IO_READ_VECTOR:
    case BIDE_IO_WRITE_VECTOR:
        offset = operation->arguments.vector.offset;
        break;
    default:
        return BIDE_IO_FREE;
    }
    if (offset >= 0)
        return BIDE_IO_FREE;
    return operation->code == BIDE_IO_READ || operation->code == BIDE_IO_READ_VECTOR
               ? BIDE_IO_INPUT
               : BIDE_IO_OUTPUT;
}

/* Does the operation fill in its descriptor? */
BIDE_INLINE bool io_opens(const bide_io_operation *operation)
{
    switch (operation->code) {
    case BIDE_IO_CONNECT:
    case BIDE_IO_LISTEN:
    case BIDE_IO_BIND:
    case BIDE_IO_PAIR:
        return true;
    default:
        return false;
    }
}

/* How a dump describes descriptors of a table whose numbers mean nothing to the system. */
struct bide_described_;
typedef struct bide_io_describer_ {
    const bide_io_table *table;
    void (*describe)(const bide_io *io, int fd, struct bide_described_ *described);
} bide_io_describer_;

/*
 * From now on dumps show the descriptors of operations (describe.c). `describer` is for its own
 * table, or NULL. The program has at most one table with a describer.
 */
void bide_io_describe_operations_(const bide_io_describer_ *describer);

/* Puts it into its line and counts it, without telling those that observe operations. */
void bide_io_enqueue_(bide_io *io, bide_io_operation *operation);

/* Closes it, if it is open, without a word to its io. */
int bide_io_close_(bide_io *io, bide_descriptor *descriptor);

/* To which a descriptor belongs; NULL: none yet. */
BIDE_INLINE bide_io *io_of(const bide_descriptor *descriptor)
{
    return bide_atomic_load(&descriptor->io, relaxed);
}

/* What several io share. */
struct bide_io_group_ {
    /* On a thread of one of them: does there what has been sent to it. False: on another thread. */
    bool (*serve)(const struct bide_io_group_ *group);
};

/* Is this its thread? */
BIDE_INLINE bool io_is_here(const bide_io *io)
{
    return io->scheduler->runs_here_only(io->scheduler);
}

/* Begins an operation; as `begin` of its table. On the io's thread. */
bide_frame *bide_io_begin_(bide_io *io, bide_io_operation *operation, bide_frame *frame);

/*
 * Has the io's thread begin it. NULL, as of a suspend that waits: it is not touched any more. It
 * ends on that thread.
 */
bide_frame *bide_io_forward_(bide_io *io, bide_io_operation *operation);

/*
 * Calls `run` on the io's thread, and returns when it has returned. Here, if the io is alone. It
 * waits for what runs there to suspend.
 */
void bide_io_call_remote_(bide_io *io, void (*run)(bide_io *io, void *argument), void *argument);

/* The calls on its descriptors, if those are its own; NULL: they are the system's, or of none. */
BIDE_INLINE const bide_io_calls *io_calls(const bide_io *io)
{
    return io != NULL ? io->table->calls : NULL;
}

/* What carries out the operations of a context's coroutines; or NULL. */
BIDE_INLINE bide_io *io_of_context(const bide_context *context)
{
    bide_scheduler *scheduler = context->scheduler;
    return scheduler->io != NULL ? scheduler->io(scheduler) : NULL;
}

/* Closes a descriptor of the io, or of the system's, that has no struct. */
int bide_io_close_number_(bide_io *io, int fd);

/* What the system says about an open descriptor: sets its bits. */
void bide_io_probe_fd_(bide_descriptor *descriptor);

/* Is there an entry in what getdents64 has brought, beside "." and ".."? */
bool bide_io_has_entry_(const char *records, size_t size);

/* Puts back the entries that a call has read and nobody has seen. */
void bide_io_unread_directory_(const bide_io_operation *operation);

/* Opens the socket of a connect, for its call. 0, or a negative errno. */
int bide_io_open_to_connect_(bide_io_operation *operation);

/* The error of a call that returned -1. */
BIDE_INLINE ptrdiff_t io_error(void)
{
    return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

/* What is left of the bytes of an operation that is whole, or all. */
BIDE_INLINE void *io_rest(const bide_io_operation *operation, size_t *size)
{
    *size = operation->arguments.bytes.size - operation->count;
    return (char *)operation->arguments.bytes.data + operation->count;
}

/* The call of a plain receive or send, which never waits. */
BIDE_INLINE ptrdiff_t io_move_bytes(bide_io_operation *operation)
{
    size_t size;
    void *rest = io_rest(operation, &size);
    int flags = operation->flags | MSG_DONTWAIT;
    return operation->code == BIDE_IO_RECV
               ? recv(operation->descriptor->fd, rest, size, flags)
               : send(operation->descriptor->fd, rest, size, flags | MSG_NOSIGNAL);
}

/* The same of vectors: those that are left; if it is in the middle of one, the rest of that alone. */
typedef struct io_vectors {
    const struct iovec *vectors;
    int count; /* 0: `data` and `size` */
    void *data;
    size_t size;
} io_vectors;
io_vectors bide_io_rest_of_vectors_(const bide_io_operation *operation);

#endif
