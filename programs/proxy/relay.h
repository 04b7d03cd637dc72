/*
 * Both directions of a connection at once: what comes from one end goes to the other, and the end of
 * what comes too, so that half of a connection may stay open.
 *
 *     client --upward--> backend
 *     client <-downward- backend
 *
 * Between two sockets the bytes go by buffers that are lent when something has come, so an idle
 * connection holds none; and, once buffers were full several times in a row, by a pipe, in the kernel.
 * Where an end is another stream (TLS), a direction has a buffer of its own.
 */
#ifndef PROXY_RELAY_H
#define PROXY_RELAY_H

#include <bide/buffer_pool.h>
#include <bide/deadline.h>
#include <bide/splice.h>
#include <bide/stream.h>
#include <bide/when.h>

enum { RELAY_PIECE = 16384 };

/* One end. `socket` is NULL if it is not a plain socket, but the stream alone. */
struct end {
    bide_descriptor *socket;
    bide_stream stream;
};

struct relay;

struct direction {
    bide_task task;
    struct relay *relay;
    const struct end *from, *to;
    uint64_t count;     /* bytes that `to` has got */
    char *data;         /* the buffer at hand, lent or its own; NULL: none */
    size_t begin, end;  /* of what is to be sent */
    bool is_lent;
    bool is_primed; /* it was there before anything was received, and is of another size */
    bool has_ended;     /* the end has come, and was passed on */
    unsigned full;      /* times in a row that a buffer was full */
    unsigned needed;    /* so many of those, and it goes over to a pipe */
    unsigned small;     /* ... that a pipe got little */
    int status;
    bool failed_reading;
    bool has_pipe;
    bide_descriptor pipe[2]; /* to read from, and to write to */
    size_t held;             /* bytes in it */
    union {
        bide_io_operation io;
        bide_stream_operation stream;
        bide_splice_operation splice;
    };
};

struct relay {
    bide_task task;
    bide_buffer_pool *buffers;
    bool splices;
    uint64_t idle;  /* nanoseconds without a byte after which it ends with -ETIMEDOUT */
    uint64_t active; /* when the last has come */
    uint64_t deadline;
    int status;
    struct end client, backend;
    struct direction upward, downward;
    bide_when_of(2) both;
    bide_with_deadline_operation limited;
};

/* Prepares it. `client` and `backend` are filled in before it runs. */
void relay_init(struct relay *relay, bide_buffer_pool *buffers, bool splices, uint64_t idle);

/* Before it runs: bytes that a direction sends first. They are malloc's, and its own from now on. */
void relay_prime(struct direction *direction, char *data, size_t size);

/*
 * To be awaited. Ends with 0 when both directions have ended, with -ETIMEDOUT when nothing came for too
 * long, or with what has gone wrong. Then nothing of it is under way.
 */
bide_awaiter *relay_run(struct relay *relay);

/* Gives back what it holds. For one that was prepared, whatever has become of it. */
void relay_end(struct relay *relay);

/* Has it failed at the backend's end? Otherwise it was the client's. */
bool relay_failed_at_backend(const struct relay *relay);

#endif
