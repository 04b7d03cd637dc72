/*
 * Relays both directions of a connection.
 *
 *  1. A cancelled direction keeps received data that was not sent, in its buffer or its pipe, and
 *     continues with it when it is started again. So the idle timeout is a deadline around both
 *     directions: if data arrived meanwhile, they are started again; otherwise the relay finishes.
 *     The cost is one reading of the clock for each piece.
 *  2. A pipe is used when it pays: when data arrives faster than it is read, so that buffers were
 *     full several times in a row. Small pieces switch the direction back to buffers; each time,
 *     twice as many full ones are needed for the next switch.
 *  3. An error of one direction ends the other one. So the end of the backend is passed on as one, where the client
 *     could not see it otherwise, and it is no error of the relay.
 *
 * All of it runs on the program's loop.
 */
#define _GNU_SOURCE
#include "relay.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MIN_FULL_IN_A_ROW = 4,
    MAX_FULL_IN_A_ROW = 1 << 16,
    MAX_SMALL_IN_A_ROW = 2,
    PIPE_PIECE = 1 << 18,
    MIN_PIPE_PIECE = 2 * RELAY_PIECE
};

static void direction_init(struct direction *direction, struct relay *relay,
                           const struct endpoint *from, const struct endpoint *to)
{
    direction->relay = relay;
    direction->from = from;
    direction->to = to;
    direction->count = 0;
    direction->data = NULL;
    direction->begin = direction->end = 0;
    direction->is_pooled = false;
    direction->is_initial = false;
    direction->has_ended = false;
    direction->full = 0;
    direction->full_needed = MIN_FULL_IN_A_ROW;
    direction->status = 0;
    direction->failed_reading = false;
    direction->has_pipe = false;
    direction->pipe_bytes = 0;
}

void relay_init(struct relay *relay, bide_buffer_pool *buffers, struct descriptors *descriptors,
                bool splices, uint64_t idle)
{
    relay->buffers = buffers;
    relay->descriptors = descriptors;
    relay->splices = splices;
    relay->ends_with_backend = false;
    relay->idle = idle;
    direction_init(&relay->upward, relay, &relay->client, &relay->backend);
    direction_init(&relay->downward, relay, &relay->backend, &relay->client);
}

void relay_prime(struct direction *direction, char *data, size_t size)
{
    direction->data = data;
    direction->end = size;
    direction->is_initial = true;
}

static void release_buffer(struct direction *self)
{
    if (self->data == NULL)
        return;
    if (self->is_pooled)
        bide_buffer_release(self->relay->buffers, self->data);
    else
        free(self->data);
    self->data = NULL;
    self->is_pooled = self->is_initial = false;
}

static void close_pipe(struct direction *self)
{
    if (self->has_pipe) {
        bide_close(&self->pipe[0]);
        bide_close(&self->pipe[1]);
        descriptors_give(self->relay->descriptors, 2);
    }
    self->has_pipe = false;
    self->pipe_bytes = 0;
}

void relay_destroy(struct relay *relay)
{
    release_buffer(&relay->upward);
    release_buffer(&relay->downward);
    close_pipe(&relay->upward);
    close_pipe(&relay->downward);
}

bool relay_failed_at_backend(const struct relay *relay)
{
    return (relay->downward.status < 0 && relay->downward.failed_reading) ||
           (relay->upward.status < 0 && !relay->upward.failed_reading);
}

/* ---- The pipe ---- */

static bool are_sockets(const struct direction *self)
{
    return self->from->socket != NULL && self->to->socket != NULL;
}

static bool open_pipe(struct direction *self)
{
    int ends[2];
    self->full = 0;
    if (!descriptors_take(self->relay->descriptors, 2))
        return false;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        descriptors_give(self->relay->descriptors, 2);
        return false;
    }
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_PIECE);
    bide_descriptor_init(&self->pipe[0], ends[0]);
    bide_descriptor_init(&self->pipe[1], ends[1]);
    self->has_pipe = true;
    self->small_in_a_row = 0;
    return true;
}

/*
 * Decides whether the next piece uses the pipe, which is opened or closed. The direction holds no
 * data. 2
 */
static bool select_pipe(struct direction *self)
{
    if (self->has_pipe && self->small_in_a_row < MAX_SMALL_IN_A_ROW)
        return true;
    if (self->has_pipe && self->full_needed < MAX_FULL_IN_A_ROW)
        self->full_needed *= 2;
    close_pipe(self);
    return self->full >= self->full_needed && self->relay->splices && are_sockets(self) &&
           open_pipe(self);
}

/* ---- Input ---- */

static bide_awaiter *receive_piece(struct direction *self)
{
    if (select_pipe(self))
        return bide_splice(&self->splice, self->from->socket, &self->pipe[1], PIPE_PIECE);
    if (are_sockets(self))
        return bide_recv_provided(&self->io, self->from->socket, self->relay->buffers);
    if (self->data != NULL && self->is_initial)
        release_buffer(self);
    if (self->data == NULL)
        self->data = malloc(RELAY_PIECE);
    if (self->data == NULL)
        return bide_stream_ended(&self->stream, -ENOMEM);
    return bide_stream_read(&self->stream, self->from->stream, self->data, RELAY_PIECE);
}

/* Returns the number of received bytes; 0: end of input. */
static size_t note_received(struct direction *self)
{
    if (self->has_pipe) {
        self->pipe_bytes = self->splice.count;
        self->small_in_a_row = self->pipe_bytes < MIN_PIPE_PIECE ? self->small_in_a_row + 1 : 0;
        return self->pipe_bytes;
    }
    self->is_pooled = are_sockets(self);
    if (self->is_pooled)
        self->data = bide_provided_buffer(&self->io);
    self->begin = 0;
    self->end =
        self->is_pooled ? self->io.count : bide_stream_count(&self->stream, self->from->stream);
    self->full = self->end == RELAY_PIECE ? self->full + 1 : 0;
    return self->end;
}

/* ---- Output ---- */

static bool has_unsent(const struct direction *self)
{
    return self->begin != self->end || self->pipe_bytes != 0;
}

static bide_awaiter *send_unsent(struct direction *self)
{
    size_t size = self->end - self->begin;
    if (self->pipe_bytes != 0)
        return bide_splice(&self->splice, &self->pipe[0], self->to->socket, self->pipe_bytes);
    const char *data = self->data + self->begin;
    return are_sockets(self) ? bide_send(&self->io, self->to->socket, data, size)
                             : bide_stream_write(&self->stream, self->to->stream, data, size);
}

static void note_sent(struct direction *self, const bide_context *context)
{
    size_t count = self->pipe_bytes != 0 ? self->splice.count
                   : are_sockets(self)   ? self->io.count
                                         : bide_stream_count(&self->stream, self->to->stream);
    bide_assert(self->pipe_bytes == 0 || (self->has_pipe && self->begin == self->end));
    bide_assert(count <= (self->pipe_bytes != 0 ? self->pipe_bytes : self->end - self->begin));
    if (self->pipe_bytes != 0)
        self->pipe_bytes -= count;
    else
        self->begin += count;
    self->count += count;
    if (count != 0)
        self->relay->last_active = bide_now(context);
    if (self->begin == self->end && are_sockets(self))
        release_buffer(self);
}

/*
 * Passes the end of input on. If the other direction of a socket has ended too, closing the socket
 * does that.
 */
static bide_awaiter *send_end(struct direction *self)
{
    const struct relay *relay = self->relay;
    const struct direction *other = self == &relay->upward ? &relay->downward : &relay->upward;
    if (other->has_ended && self->to->socket != NULL)
        return bide_stream_ended(&self->stream, 0);
    if (self->to->socket != NULL)
        return bide_stream_shutdown_output(&self->stream, bide_socket_stream(self->to->socket));
    return bide_stream_shutdown_output(&self->stream, self->to->stream);
}

/* ---- A direction ---- */

bide_coroutine(direction_body)
{
    bide_begin(direction_body, struct direction * self);
    while (!self->has_ended) {
        self->failed_reading = false;
        while (has_unsent(self)) {
            bide_await_status(self->status, send_unsent(self));
            note_sent(self, bide_this_context());
            if (self->status < 0)
                bide_return(self->status);
        }
        self->failed_reading = true;
        bide_await_status(self->status, receive_piece(self));
        if (self->status < 0)
            bide_return(self->status);
        self->failed_reading = false;
        if (note_received(self) == 0) {
            bide_await_status(self->status, send_end(self));
            if (self->status < 0)
                bide_return(self->status);
            self->has_ended = true;
            if (self == &self->relay->downward && self->relay->ends_with_backend)
                bide_return(-ESHUTDOWN); /* 3 */
        }
    }
    bide_end();
}

/* ---- Both ---- */

static bide_awaiter *run_directions(struct relay *self)
{
    self->deadline = self->last_active + self->idle;
    return bide_with_deadline(
        &self->limited, self->deadline,
        bide_when_all_of(&self->both, bide_task_init(&self->upward.task, &direction_body),
                         bide_task_init(&self->downward.task, &direction_body)));
}

/* True if only the relay's own deadline cancelled it, and data has arrived meanwhile. */
static bool continues_after_timeout(const struct relay *self, const bide_context *context)
{
    return self->status == -ETIMEDOUT && bide_stop_reason(context->stop) == 0 &&
           bide_now(context) >= self->deadline && self->last_active + self->idle > self->deadline;
}

bide_coroutine(relay_body)
{
    bide_begin(relay_body, struct relay * self);
    self->last_active = bide_now(bide_this_context());
    do { /* 1 */
        bide_await_status(self->status, run_directions(self));
    } while (continues_after_timeout(self, bide_this_context()));
    if (self->status == -ESHUTDOWN && self->ends_with_backend && self->downward.has_ended)
        self->status = 0;
    bide_return(self->status);
    bide_end();
}

bide_awaiter *relay_run(struct relay *relay)
{
    return bide_task_init(&relay->task, &relay_body);
}
