/*
 * Streams of bytes: one interface for sockets, files, pipes and memory; and over it a buffered
 * reader, a buffered writer, and a copy from one to the other. Floor: net.
 *
 *     bide_reader_init(&self->reader, bide_socket_stream(&self->socket), self->in,
 *                      sizeof self->in);
 *     bide_writer_init(&self->writer, bide_socket_stream(&self->socket), self->out,
 *                      sizeof self->out);
 *     for (;;) {
 *         bide_try_or_break(bide_reader_read_line(&self->line, &self->reader));
 *         bide_try(bide_writer_write(&self->write, &self->writer, self->line.data,
 *                                    self->line.count));
 *         bide_try(bide_writer_write(&self->write, &self->writer, "\n", 1));
 *         bide_try(bide_writer_flush(&self->write, &self->writer));
 *     }
 *
 * A bide_stream is two words, a table and its argument; it is passed by value. Readers and writers,
 * their buffers and their operations are the caller's memory. Nothing allocates. One operation at a
 * time uses a reader, and one a writer; one reader and one writer use a stream.
 *
 * A reader's operations end alike:
 *     0              success: `data` and `count`
 *     -EPIPE         the end, and nothing is left
 *     -ENODATA       the end in the middle of a line or record; the rest stays in the reader
 *     -EMSGSIZE      the line or record does not fit into the buffer; all of it stays in the reader
 *     another        the stream's own, -ECANCELED and -ETIMEDOUT among them
 */
#ifndef BIDE_STREAM_H
#define BIDE_STREAM_H

#include "bide/deadline.h"
#include "bide/extend/io.h"
#include "bide/file.h"
#include "bide/single_consumer_event.h"
#include "bide/socket.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* ---- Streams ---- */

typedef struct bide_stream_table bide_stream_table;

/* A stream. Passed by value. */
typedef struct bide_stream {
    const bide_stream_table *table;
    void *object; /* the table's: a descriptor, for instance */
} bide_stream;

typedef struct bide_memory_pipe bide_memory_pipe;

/* Of a memory pipe. */
typedef struct bide_memory_operation {
    bide_task task;
    bide_memory_pipe *pipe;
    char *data;
    size_t size;
    size_t count;
    bide_single_consumer_auto_event_waiter wait;
    int (*attempt_)(struct bide_memory_operation *operation);
} bide_memory_operation;

/* A write of several buffers to a socket. Of the operation. */
typedef struct bide_stream_message_ {
    bide_io_operation io;
    struct msghdr message;
} bide_stream_message_;

/* An operation that has ended already. Of the operation. */
typedef struct bide_stream_ended_ {
    bide_awaiter awaiter;
    int status;
} bide_stream_ended_;

/* One operation of a stream, of whichever kind. The caller's memory until it has ended. */
typedef struct bide_stream_operation {
    union {
        bide_awaiter awaiter;
        bide_io_operation io;
        bide_file_operation file;
        bide_stream_message_ message;
        bide_memory_operation memory;
        bide_stream_ended_ ended;
        void *room[31]; /* for tables of others */
    };
    const bide_stream_table *table; /* of the stream that it moves bytes of; NULL: it moves none */
} bide_stream_operation;

/* The operations of a kind of stream. Each fills `operation`, and returns what to await. */
struct bide_stream_table {
    const char *name;

    /*
     * Reads up to `size` bytes, 1 or more, into `data`: as bide_recv. A count of 0 is the end. It
     * may be asked for again, and is the end then too.
     */
    bide_awaiter *(*read)(bide_stream stream, bide_stream_operation *operation, void *data,
                          size_t size);

    /* Writes all of `size` bytes, 1 or more: as bide_send. */
    bide_awaiter *(*write)(bide_stream stream, bide_stream_operation *operation, const void *data,
                           size_t size);

    /*
     * Writes from several buffers, of at least one byte: at least one byte, as much as goes. The
     * vectors stay until it has ended. NULL: they are written one after the other.
     */
    bide_awaiter *(*write_vectors)(bide_stream stream, bide_stream_operation *operation,
                                   const struct iovec *vectors, int count);

    /* How many bytes an operation that has ended has moved, whatever it ended with. */
    size_t (*count)(const bide_stream_operation *operation);

    /* After what was written comes the end. */
    bide_awaiter *(*shutdown_output)(bide_stream stream, bide_stream_operation *operation);

    /* Closes it: what waits ends with -EPIPE. At once. */
    int (*close)(bide_stream stream);

    /* Sends small pieces at once, as bide_stream_set_no_delay. NULL: it never delays any. */
    void (*set_no_delay)(bide_stream stream);
};

/*
 * For tables: an operation that has ended already, with 0 or a negative errno.
 * Threads: any. Errors: those of the table, `status`. Suspends: never. Cancel-safe: yes. Progress:
 * wait-free.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_stream_ended(bide_stream_operation *operation, int status);

/*
 * A stream over a socket that is connected (socket.h), the caller's. The end of its output is
 * bide_shutdown.
 * Threads: any. Progress: wait-free.
 */
bide_stream bide_socket_stream(bide_descriptor *socket);

/*
 * A stream over a file, at its own offset, one end of a pipe, or a terminal (file.h). The end of
 * its output is to close it.
 * Threads: any. Progress: wait-free.
 */
bide_stream bide_file_stream(bide_descriptor *file);

/*
 * A stream's own operations, for one that is used without a reader or a writer. A read is of 1 byte
 * or more, and its count of 0 is the end. A write is of 1 byte or more, and writes all of them.
 * Awaited in an async function without its struct, either gives the count, or its error.
 * Threads: the stream's. Errors: those of the stream. Suspends: if the stream's does. Cancel-safe:
 * yes, bide_stream_count says how many bytes were moved. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_stream_read(bide_stream_operation *operation, bide_stream stream,
                                           void *data, size_t size)
{
    bide_awaiter *awaiter = stream.table->read(stream, operation, data, size);
    operation->table = stream.table;
    return awaiter;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_stream_write(bide_stream_operation *operation, bide_stream stream,
                                            const void *data, size_t size)
{
    bide_awaiter *awaiter = stream.table->write(stream, operation, data, size);
    operation->table = stream.table;
    return awaiter;
}

/*
 * After what was written comes the end. Awaited, it gives its status.
 * Threads: the stream's. Errors: those of the stream. Suspends: if the stream's does. Cancel-safe:
 * yes. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_stream_shutdown_output(bide_stream_operation *operation,
                                                      bide_stream stream)
{
    bide_awaiter *awaiter = stream.table->shutdown_output(stream, operation);
    operation->table = NULL;
    return awaiter;
}

/*
 * Sends small pieces at once (TCP_NODELAY), if the stream uses a TCP socket. HTTP clients, WebSocket
 * clients and TLS clients call this for the stream below them.
 * Threads: the stream's. Progress: that of a system call.
 */
BIDE_INLINE void bide_stream_set_no_delay(bide_stream stream)
{
    if (stream.table != NULL && stream.table->set_no_delay != NULL)
        stream.table->set_no_delay(stream);
}

/*
 * How many bytes an operation of this stream that has ended has moved, whatever it ended with.
 * Threads: the operation's. Progress: wait-free.
 */
BIDE_INLINE size_t bide_stream_count(const bide_stream_operation *operation, bide_stream stream)
{
    return stream.table->count(operation);
}

/* The value of an await: async.h. */
BIDE_INLINE size_t bide_stream_value_(const bide_stream_operation *operation)
{
    return operation->table != NULL ? operation->table->count(operation) : 0;
}

/* The bounds of one read or write. All zero: none. */
typedef struct bide_stream_bounds {
    size_t min;        /* a read continues until so many bytes have come, or the end; 0: as 1 */
    uint64_t deadline; /* -ETIMEDOUT from this time of bide_now() on; 0: never */
    uint64_t pause;    /* nanoseconds: -ETIMEDOUT if nothing moves for so long; 0: no limit */
    uint64_t *budget;  /* how many bytes may move, in all operations that share it, on one thread at
                        * a time; lowered by bytes that have, and until an operation has ended, by
                        * bytes that it may still move; NULL: any number */
} bide_stream_bounds;

/* One read or write within bounds. The caller's memory until it has ended. */
typedef struct bide_stream_within_operation {
    bide_task task;
    size_t count; /* of bytes that were moved, whatever it ended with */

    /* of the operation */
    bide_stream stream;
    bide_stream_bounds bounds;
    char *data;
    size_t size;
    size_t reserved; /* bytes that are out of the budget and have not moved */
    int status;
    char beyond; /* a byte that is not in the budget any more */
    bool is_write, is_moving, is_beyond;
    bide_stream_operation operation;
    bide_with_deadline_operation limited;
} bide_stream_within_operation;

/*
 * Reads up to `size` bytes, 1 or more, into `data`, within `bounds`, which are copied. A count below
 * bounds->min, or of 0, is the end. When the budget is used up, one more byte is read, which tells the
 * end from too much: the end is a count of 0, and a byte is -EMSGSIZE and is lost. Until the read has
 * ended, all that it may read is out of the budget, so others may find that used up; then the rest goes
 * back. Bytes that need no wait may be read after the deadline. Awaited in an async function without its
 * struct, it gives the count, or its error.
 * Threads: the stream's. Errors: those of the stream; -ETIMEDOUT (the deadline, or a pause that is too
 * long), -EMSGSIZE (more than the budget has come), -EINVAL (`size` is 0, or less than bounds->min),
 * -ENOTSUP (a time, and the scheduler has no timers). Suspends: if the stream's read does.
 * Cancel-safe: yes, by `count`. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_stream_read_within(bide_stream_within_operation *operation, bide_stream stream,
                                      void *data, size_t size, const bide_stream_bounds *bounds);

/*
 * Writes all of `size` bytes within `bounds`, of which `min` has no meaning. More than the budget is
 * refused, and nothing is written. All of them are out of the budget from the start, and bytes that
 * were not written go back when it has ended. With a limit of pauses it goes in pieces of 16 KB,
 * each of which has to be taken in that time. Awaited in an async function without its struct, it
 * gives the count, or its error.
 * Threads: the stream's. Errors: those of the stream; -ETIMEDOUT, -EMSGSIZE (more than the budget),
 * -ENOTSUP (a time, and the scheduler has no timers). Suspends: if the stream's write does.
 * Cancel-safe: yes, by `count`. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_stream_write_within(bide_stream_within_operation *operation, bide_stream stream,
                                       const void *data, size_t size,
                                       const bide_stream_bounds *bounds);

/*
 * Closes a stream, and the socket or stream below it. Operations that wait on it end with -EPIPE.
 * Threads: the stream's. Errors: those of the stream; -EBADF (a stream of zeros). Progress: that of
 * the stream.
 */
BIDE_INLINE int bide_stream_close(bide_stream stream)
{
    return stream.table != NULL ? stream.table->close(stream) : -EBADF;
}

/* ---- Memory ---- */

/*
 * A pipe in memory: bytes go in at one end and come out at the other. For tests, and between
 * coroutines. It needs no loop: its ends may run on any schedulers, also on different threads. One
 * coroutine at a time reads, and one writes. It waits for room, and for bytes.
 */
struct bide_memory_pipe {
    char *buffer;
    size_t size;
    bide_atomic(size_t) written; /* bytes ever, the writer's */
    bide_atomic(size_t) taken;   /* bytes ever, the reader's */
    bide_atomic(bool) ended;     /* there will be no more */
    bide_atomic(bool) refused;   /* nobody will read */
    bide_single_consumer_auto_event bytes;
    bide_single_consumer_auto_event room;
};

/*
 * Makes a pipe with that buffer, of 1 byte or more. Both stay while either end uses the pipe.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_memory_pipe_init(bide_memory_pipe *pipe, void *buffer, size_t size);

/*
 * There will be no more bytes: what is in the pipe is read, and then the end. To write ends with
 * -EPIPE.
 * Threads: the writer's; any while nothing is written. Suspends: never. Progress: lock-free.
 */
void bide_memory_pipe_destroy(bide_memory_pipe *pipe);

/*
 * Nobody will read from it: to read and to write end with -EPIPE.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
void bide_memory_pipe_reject(bide_memory_pipe *pipe);

/* One end of a connection in memory: what it reads from, and what it writes to; or NULL. */
typedef struct bide_memory_end {
    bide_memory_pipe *input;
    bide_memory_pipe *output;
} bide_memory_end;

/*
 * A stream over it.
 * Threads: any. Progress: wait-free.
 */
bide_stream bide_memory_stream(bide_memory_end *end);

/* ---- Reading ---- */

typedef struct bide_reader {
    bide_stream stream;
    char *buffer;
    size_t size;
    size_t begin; /* what is buffered: from here */
    size_t end;   /* to here */
    bool has_ended;
    bool is_reading; /* an operation of the stream is under way */
    bool is_direct;  /* it reads into the caller's memory */
    bide_stream_operation operation;
} bide_reader;

/* One operation of a reader. The caller's memory until it has ended. */
typedef struct bide_reader_operation {
    bide_task task;
    bide_reader *reader;
    char *data;   /* the caller's memory, or where in the buffer it is */
    size_t count; /* of bytes there */
    size_t size;  /* that were asked for */
    size_t taken; /* of bytes that have left the buffer, and can be put back */
    size_t scanned;
    int (*attempt_)(struct bide_reader_operation *operation);
    int status;
    bool is_exact;
    char delimiter;
} bide_reader_operation;

/*
 * Makes a reader of a stream, with a buffer of 1 byte or more: the longest line that it reads. The
 * buffer is the reader's until it is not used any more.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_reader_init(bide_reader *reader, bide_stream stream, void *buffer, size_t size);

/*
 * Reads what there is, at least one byte and at most `size`, into `data`.
 * Threads: the stream's. Errors: -EPIPE (the end). Suspends: if nothing is buffered.
 * Cancel-safe: yes, nothing was read. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_reader_read(bide_reader_operation *operation, bide_reader *reader, void *data,
                               size_t size);

/*
 * Reads `size` bytes into `data`. If that is at most the buffer's size, all or nothing: if it does
 * not end with 0, `count` is 0. Of more, what has come is in `data`, and `count` says how much.
 * Threads: the stream's. Errors: -ENODATA (the end came before all did), -EPIPE (nothing
 * came). Suspends: if they are not buffered. Cancel-safe: yes, by `count`. Progress: that of the
 * stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_reader_read_exact(bide_reader_operation *operation, bide_reader *reader,
                                     void *data, size_t size);

/*
 * Reads up to the next `delimiter`, and that too. `data` and `count` say where it is in the
 * reader's buffer, until the reader's next operation.
 * Threads: the stream's. Errors: -EMSGSIZE (the buffer is full, without one), -ENODATA
 * (the end came before it). Suspends: if it is not buffered. Cancel-safe: yes, nothing was read.
 * Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_reader_read_until(bide_reader_operation *operation, bide_reader *reader,
                                     char delimiter);

/*
 * Reads a line; `data` and `count` say where it is in the reader's buffer, until the reader's next
 * operation, without its end, which is "\n" or "\r\n". Text between the last end of a line
 * and the end of the stream is a line too, unless it is empty.
 * Threads: the stream's. Errors: -EMSGSIZE (with its end it does not fit into the buffer),
 * -EPIPE (there is none). Suspends: if it is not buffered. Cancel-safe: yes, nothing was read.
 * Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_reader_read_line(bide_reader_operation *operation, bide_reader *reader);

/*
 * Waits until at least `size` bytes are buffered, to be looked at: `data` and `count` say where,
 * and how many. They stay there: bide_reader_consume takes them.
 * Threads: the stream's. Errors: -EMSGSIZE (the buffer is smaller), -ENODATA (the end came
 * before). Suspends: if they are not buffered. Cancel-safe: yes. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_reader_fill(bide_reader_operation *operation, bide_reader *reader, size_t size);

/*
 * Reads `size` bytes and drops them; `count` says how many are gone, whatever it ended with.
 * Threads: the stream's. Errors: -ENODATA (the end came before). Suspends: if they are not
 * buffered. Cancel-safe: yes, by `count`. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_reader_skip(bide_reader_operation *operation, bide_reader *reader, size_t size);

/*
 * How many bytes are buffered.
 * Threads: the stream's. Progress: wait-free.
 */
BIDE_INLINE size_t bide_reader_buffered(const bide_reader *reader)
{
    return reader->end - reader->begin;
}

/*
 * Where they are, until the reader's next operation.
 * Threads: the stream's. Progress: wait-free.
 */
BIDE_INLINE const char *bide_reader_peek(const bide_reader *reader)
{
    return reader->buffer + reader->begin;
}

/*
 * Takes the first `count` of them, as many as there are or fewer.
 * Threads: the stream's, while no operation is under way. Progress: wait-free.
 */
BIDE_INLINE void bide_reader_consume(bide_reader *reader, size_t count)
{
    reader->begin += count;
}

/* ---- Writing ---- */

enum { BIDE_WRITER_VECTORS_ = 4 };

typedef struct bide_writer {
    bide_stream stream;
    char *buffer;
    size_t size;
    size_t begin;     /* what is buffered: from here */
    size_t end;       /* to here */
    size_t of_buffer; /* what the operation of the stream has from the buffer */
    bool is_writing;  /* one is under way */
    struct iovec vectors[BIDE_WRITER_VECTORS_];
    bide_stream_operation operation;
} bide_writer;

/* One operation of a writer. The caller's memory until it has ended. */
typedef struct bide_writer_operation {
    bide_task task;
    bide_writer *writer;
    const struct iovec *vectors; /* the rest; of the first, without `offset` bytes */
    size_t offset;
    size_t rest;  /* bytes that are not taken yet */
    size_t count; /* of bytes that were taken */
    struct iovec only;
    int status;
    bool is_flush; /* continues until all has been sent */
    bool is_end;   /* and then comes the output's end */
} bide_writer_operation;

/*
 * Makes a writer to a stream. The buffer is the writer's until it is not used any more; it may be
 * of 0 bytes, and NULL: then each write goes to the stream.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_writer_init(bide_writer *writer, bide_stream stream, void *buffer, size_t size);

/*
 * Writes all of `size` bytes, which stay until it has ended: into the buffer if they fit; otherwise
 * what is buffered is sent, and what is larger than the buffer goes without being copied.
 * Threads: the stream's. Errors: those of the stream; -EPIPE (nobody reads any more). Suspends: if
 * they do not fit and the other side is slow. Cancel-safe: yes, by `count`. Progress: that of the
 * stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_writer_write(bide_writer_operation *operation, bide_writer *writer,
                                const void *data, size_t size);

/*
 * The same from several buffers, in this order. The vectors stay too.
 * Threads: the stream's. Errors: as bide_writer_write. Suspends: as bide_writer_write. Cancel-safe:
 * yes, by `count`. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_writer_write_vectors(bide_writer_operation *operation, bide_writer *writer,
                                        const struct iovec *vectors, int count);

/*
 * Sends what is buffered.
 * Threads: the stream's. Errors: as bide_writer_write. Suspends: if the other side is slow.
 * Cancel-safe: yes, what was not sent stays. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_writer_flush(bide_writer_operation *operation, bide_writer *writer);

/*
 * Sends what is buffered, and then the end: the other side reads all, and then the end.
 * Threads: the stream's. Errors: as bide_writer_write. Suspends: if the other side is slow.
 * Cancel-safe: yes, what was not sent stays, and it has not ended. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_writer_finish(bide_writer_operation *operation, bide_writer *writer);

/*
 * How many bytes are buffered, and not sent yet.
 * Threads: the stream's. Progress: wait-free.
 */
BIDE_INLINE size_t bide_writer_buffered(const bide_writer *writer)
{
    return writer->end - writer->begin;
}

/* ---- Copying ---- */

/* One copy. The caller's memory until it has ended. */
typedef struct bide_copy_operation {
    bide_task task;
    bide_reader *from;
    bide_writer *to;
    uint64_t max;
    uint64_t count; /* of bytes that were copied */
    int status;
    bool is_writing;
    union {
        bide_reader_operation fill;
        bide_writer_operation write;
    };
} bide_copy_operation;

/*
 * Copies from a reader to a writer, until the end or `max` bytes (UINT64_MAX: until the end), by
 * way of the reader's buffer. Bytes that the writer has buffered go first, and when it has ended
 * all has been sent. `count` says how many bytes of the reader's were sent, whatever it ended with;
 * the others are still in the reader. It ends with 0 at the end too.
 * Threads: the stream's. Errors: those of both streams. Suspends: if there is nothing to read, or
 * the other side is slow. Cancel-safe: yes, by `count`. Progress: that of the streams.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_copy(bide_copy_operation *operation, bide_reader *from, bide_writer *to,
                        uint64_t max);

/*
 * Why it is correct: src/net/stream.c, and src/net/memory_pipe.c.
 */

/*
 * Nothing is lost, whatever a reader's operation ends with: bytes that it has not reported in
 * `count` stay in the reader for the next operation. That also holds if its coroutine is destroyed.
 * Buffered data is read without suspending, also after a stop request.
 *
 * A writer gathers small pieces, and sends when they do not fit any more: then it suspends until
 * the peer takes data, which is the back-pressure. `count` is the number of bytes that were taken,
 * by the stream or into the buffer. Data in the buffer stays there until it is sent, however often
 * sending is cancelled.
 */

BIDE_EXTERN_C_END

#endif
