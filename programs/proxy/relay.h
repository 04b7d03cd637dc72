/*
 * Relays both directions of a connection at once. Data and end of input are passed on in each
 * direction, so a half-closed connection stays open.
 *
 *     client --upward--> backend
 *     client <-downward- backend
 *
 * Between two sockets, data passes through buffers that are provided from a pool when data arrives,
 * so an idle connection holds none. When buffers were full several times in a row, the direction
 * switches to a pipe, inside the kernel. If an endpoint is another stream (TLS), a direction has a
 * buffer of its own.
 */
#ifndef PROXY_RELAY_H
#define PROXY_RELAY_H

#include "descriptors.h"

#include <bide/buffer_pool.h>
#include <bide/deadline.h>
#include <bide/splice.h>
#include <bide/stream.h>
#include <bide/when.h>

enum { RELAY_PIECE = 16384 };

/* One endpoint. `socket` is NULL if only the stream can be used. */
struct endpoint {
    bide_descriptor *socket;
    bide_stream stream;
};

struct relay;

struct direction {
    bide_task task;
    struct relay *relay;
    const struct endpoint *from, *to;
    uint64_t count;    /* bytes sent to `to` */
    char *data;        /* the current buffer, from the pool or malloc; NULL: none */
    size_t begin, end; /* the part that is still to be sent */
    bool is_pooled;
    bool is_initial;         /* set by relay_prime; has another size */
    bool has_ended;          /* the end of input was passed on */
    unsigned full;           /* times in a row that a buffer was full */
    unsigned full_needed;    /* the value of `full` that switches to a pipe */
    unsigned small_in_a_row; /* times in a row that the pipe got little */
    int status;
    bool failed_reading;
    bool has_pipe;
    bide_descriptor pipe[2]; /* the read end, the write end */
    size_t pipe_bytes;       /* bytes in the pipe */
    union {
        bide_io_operation io;
        bide_stream_operation stream;
        bide_splice_operation splice;
    };
};

struct relay {
    bide_task task;
    bide_buffer_pool *buffers;
    struct descriptors *descriptors; /* of which pipes are spare ones */
    bool splices;
    bool
        ends_with_backend; /* the client's end cannot be closed in one direction: the backend's end ends both */
    uint64_t idle;        /* nanoseconds without data until -ETIMEDOUT */
    uint64_t last_active; /* the time of the last data */
    uint64_t deadline;
    int status;
    struct endpoint client, backend;
    struct direction upward, downward;
    bide_when_of(2) both;
    bide_with_deadline_operation limited;
};

/* Initializes a relay. The caller sets `client` and `backend` before it runs. */
void relay_init(struct relay *relay, bide_buffer_pool *buffers, struct descriptors *descriptors,
                bool splices, uint64_t idle);

/*
 * Gives a direction data to send first. Must be called before the relay runs. `data` is from
 * malloc, and the relay frees it.
 */
void relay_prime(struct direction *direction, char *data, size_t size);

/*
 * An awaiter that relays. It finishes with 0 when both directions have finished, with -ETIMEDOUT
 * when no data arrived for the idle time, or with an error. No operation is in progress afterwards.
 */
bide_awaiter *relay_run(struct relay *relay);

/* Releases the buffers and pipes of an initialized relay, after any outcome. */
void relay_destroy(struct relay *relay);

/* True if the failure was at the backend's endpoint; otherwise it was at the client's. */
bool relay_failed_at_backend(const struct relay *relay);

#endif
