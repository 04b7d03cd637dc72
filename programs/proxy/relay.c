/*
 * Both directions of a connection.
 *
 * 1. A direction that is cut short keeps what it has received and not sent, in its buffer or its pipe,
 *    and goes on with that when it is begun again. So the time that a relay may be idle is a deadline
 *    around both directions: if something has come meanwhile they are begun again, otherwise it ends.
 *    It costs a look at the clock a piece.
 * 2. A pipe is used when it pays, which is for bytes that come faster than they are read: when buffers
 *    were full several times in a row. Small pieces send the direction back to its buffers; each time
 *    it takes twice as many full ones until it tries again.
 */
#define _GNU_SOURCE
#include "relay.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { FULL_IN_A_ROW = 4, MAX_IN_A_ROW = 1 << 16, SMALL_IN_A_ROW = 2, PIPE_PIECE = 1 << 18, MIN_PIPE = 2 * RELAY_PIECE };

static void direction_init(struct direction *direction, struct relay *relay, const struct end *from,
                           const struct end *to)
{
    direction->relay = relay;
    direction->from = from;
    direction->to = to;
    direction->count = 0;
    direction->data = NULL;
    direction->begin = direction->end = 0;
    direction->is_lent = false;
    direction->is_primed = false;
    direction->has_ended = false;
    direction->full = 0;
    direction->needed = FULL_IN_A_ROW;
    direction->status = 0;
    direction->failed_reading = false;
    direction->has_pipe = false;
    direction->held = 0;
}

void relay_init(struct relay *relay, bide_buffer_pool *buffers, bool splices, uint64_t idle)
{
    relay->buffers = buffers;
    relay->splices = splices;
    relay->idle = idle;
    direction_init(&relay->upward, relay, &relay->client, &relay->backend);
    direction_init(&relay->downward, relay, &relay->backend, &relay->client);
}

void relay_prime(struct direction *direction, char *data, size_t size)
{
    direction->data = data;
    direction->end = size;
    direction->is_primed = true;
}

static void let_buffer_go(struct direction *self)
{
    if (self->data == NULL)
        return;
    if (self->is_lent)
        bide_buffer_release(self->relay->buffers, self->data);
    else
        free(self->data);
    self->data = NULL;
    self->is_lent = self->is_primed = false;
}

static void close_pipe(struct direction *self)
{
    if (self->has_pipe) {
        bide_close(&self->pipe[0]);
        bide_close(&self->pipe[1]);
    }
    self->has_pipe = false;
    self->held = 0;
}

void relay_end(struct relay *relay)
{
    let_buffer_go(&relay->upward);
    let_buffer_go(&relay->downward);
    close_pipe(&relay->upward);
    close_pipe(&relay->downward);
}

bool relay_failed_at_backend(const struct relay *relay)
{
    return (relay->downward.status < 0 && relay->downward.failed_reading) ||
           (relay->upward.status < 0 && !relay->upward.failed_reading);
}

/* ---- By a pipe ---- */

static bool are_sockets(const struct direction *self)
{
    return self->from->socket != NULL && self->to->socket != NULL;
}

static bool open_pipe(struct direction *self)
{
    int ends[2];
    self->full = 0;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_PIECE);
    bide_descriptor_init(&self->pipe[0], ends[0]);
    bide_descriptor_init(&self->pipe[1], ends[1]);
    self->has_pipe = true;
    self->small = 0;
    return true;
}

/* Is what comes next to go by a pipe? Nothing is held. 2 */
static bool uses_pipe(struct direction *self)
{
    if (self->has_pipe && self->small < SMALL_IN_A_ROW)
        return true;
    if (self->has_pipe && self->needed < MAX_IN_A_ROW)
        self->needed *= 2;
    close_pipe(self);
    return self->full >= self->needed && self->relay->splices && are_sockets(self) &&
           open_pipe(self);
}

/* ---- What comes in ---- */

static bide_awaiter *receive(struct direction *self)
{
    if (uses_pipe(self))
        return bide_splice(&self->splice, self->from->socket, &self->pipe[1], PIPE_PIECE);
    if (are_sockets(self))
        return bide_recv_provided(&self->io, self->from->socket, self->relay->buffers);
    if (self->data != NULL && self->is_primed)
        let_buffer_go(self);
    if (self->data == NULL)
        self->data = malloc(RELAY_PIECE);
    if (self->data == NULL)
        return bide_stream_ended(&self->stream, -ENOMEM);
    return bide_stream_read(&self->stream, self->from->stream, self->data, RELAY_PIECE);
}

/* Returns how many bytes have come; 0: the end. */
static size_t take_received(struct direction *self)
{
    if (self->has_pipe) {
        self->held = self->splice.count;
        self->small = self->held < MIN_PIPE ? self->small + 1 : 0;
        return self->held;
    }
    self->is_lent = are_sockets(self);
    if (self->is_lent)
        self->data = bide_provided_buffer(&self->io);
    self->begin = 0;
    self->end =
        self->is_lent ? self->io.count : bide_stream_count(&self->stream, self->from->stream);
    self->full = self->end == RELAY_PIECE ? self->full + 1 : 0;
    return self->end;
}

/* ---- What goes out ---- */

static bool has_rest(const struct direction *self)
{
    return self->begin != self->end || self->held != 0;
}

static bide_awaiter *send_rest(struct direction *self)
{
    size_t size = self->end - self->begin;
    if (self->held != 0)
        return bide_splice(&self->splice, &self->pipe[0], self->to->socket, self->held);
    const char *data = self->data + self->begin;
    return are_sockets(self) ? bide_send(&self->io, self->to->socket, data, size)
                             : bide_stream_write(&self->stream, self->to->stream, data, size);
}

static void take_sent(struct direction *self, const bide_context *context)
{
    size_t count = self->held != 0     ? self->splice.count
                   : are_sockets(self) ? self->io.count
                                       : bide_stream_count(&self->stream, self->to->stream);
    if (self->held != 0)
        self->held -= count;
    else
        self->begin += count;
    self->count += count;
    if (count != 0)
        self->relay->active = bide_now(context);
    if (self->begin == self->end && are_sockets(self))
        let_buffer_go(self);
}

/* Of a socket whose other half has ended already the end comes with its close. */
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
        while (has_rest(self)) {
            bide_await_status(self->status, send_rest(self));
            take_sent(self, bide_this_context());
            if (self->status < 0)
                bide_return(self->status);
        }
        self->failed_reading = true;
        bide_await_status(self->status, receive(self));
        if (self->status < 0)
            bide_return(self->status);
        self->failed_reading = false;
        if (take_received(self) == 0) {
            bide_await_status(self->status, send_end(self));
            if (self->status < 0)
                bide_return(self->status);
            self->has_ended = true;
        }
    }
    bide_end();
}

/* ---- Both ---- */

static bide_awaiter *run_both(struct relay *self)
{
    self->deadline = self->active + self->idle;
    return bide_with_deadline(
        &self->limited, self->deadline,
        bide_when_all_of(&self->both, bide_task_init(&self->upward.task, &direction_body),
                         bide_task_init(&self->downward.task, &direction_body)));
}

/* Was it cut short by its own deadline, although something has come meanwhile? */
static bool goes_on(const struct relay *self, const bide_context *context)
{
    return self->status == -ETIMEDOUT && bide_stop_reason(context->stop) == 0 &&
           bide_now(context) >= self->deadline && self->active + self->idle > self->deadline;
}

bide_coroutine(relay_body)
{
    bide_begin(relay_body, struct relay * self);
    self->active = bide_now(bide_this_context());
    do { /* 1 */
        bide_await_status(self->status, run_both(self));
    } while (goes_on(self, bide_this_context()));
    bide_return(self->status);
    bide_end();
}

bide_awaiter *relay_run(struct relay *relay)
{
    return bide_task_init(&relay->task, &relay_body);
}
