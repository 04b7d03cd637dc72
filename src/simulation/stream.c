/*
 * Connections, of TCP and of Unix sockets, and pipes: two flows and their ends.
 *
 *     one --flows[0]--> other          a pipe has the first flow alone
 *     one <--flows[1]-- other
 *
 * As on Linux:
 *
 * 1. An end that is closed with unread bytes resets its peer, for TCP and Unix sockets alike.
 *    Otherwise the peer reads the end after all bytes.
 * 2. A TCP send to a peer that is gone succeeds, and its bytes bounce as a reset. On Unix sockets
 *    and pipes the send fails with -EPIPE at once.
 * 3. An end that was reset still has the bytes that arrived before. Then one call fails with
 *    -ECONNRESET, or -EPIPE if the peer had ended its output before. After it there is the end, and
 *    sends fail with -EPIPE.
 * 4. A reset travels behind the bytes that were sent before it, like everything that one end sends
 *    to the other.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../system/portable.h"

#include <stdlib.h>

struct memory_link {
    memory_flow flows[2];
};

static memory_flow *input_of(const memory_stream *stream)
{
    return &stream->link->flows[1 - stream->side];
}

static memory_flow *output_of(const memory_stream *stream)
{
    return &stream->link->flows[stream->side];
}

memory_stream *bide_sim_stream_new_(sim_environment *environment, int family)
{
    memory_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    bide_sim_node_init_(&stream->node, environment, &bide_sim_stream_kind_);
    stream->node.family = family;
    stream->node.type = SOCK_STREAM;
    stream->is_local = family == AF_UNIX;
    stream->local.any.generic.sa_family = (sa_family_t)family;
    stream->local.length = sizeof stream->local.any.generic.sa_family;
    stream->peer = stream->local;
    return stream;
}

int bide_sim_stream_join_(memory_stream *one, memory_stream *other)
{
    memory_stream *ends[2] = {one, other};
    memory_link *link = malloc(sizeof *link);
    if (link == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < 2; i++) {
        bide_sim_flow_init_(&link->flows[i], one->node.environment, one->is_local);
        link->flows[i].writer = &ends[i]->node;
        link->flows[i].reader = &ends[1 - i]->node;
        ends[i]->link = link;
        ends[i]->side = i;
    }
    return 0;
}

/* ---- Resets ---- */

static void stream_reset(memory_stream *stream, int error)
{
    if (stream->is_reset)
        return;
    stream->is_reset = true;
    stream->node.error = error;
    bide_sim_flow_drop_(output_of(stream));
    bide_sim_changed_(&stream->node);
}

void bide_sim_stream_is_reset_(memory_node *reader, bool has_ended)
{
    stream_reset(memory_stream_of(reader), has_ended ? -EPIPE : -ECONNRESET);
}

/* The peer is gone: it answers with a reset. 2 */
void bide_sim_stream_bounces_(memory_node *writer)
{
    bide_sim_flow_mark_(input_of(memory_stream_of(writer)), MEMORY_RESET);
}

/* Breaks the connection at both ends, if that is drawn. */
static void may_break(memory_stream *stream)
{
    sim_environment *environment = stream->node.environment;
    if (stream->is_local || stream->is_reset ||
        !memory_fault(environment, "io: reset", environment->options.broken))
        return;
    bide_sim_flow_mark_(output_of(stream), MEMORY_RESET);
    bide_sim_flow_cut_(input_of(stream));
    stream->is_reset = true;
    stream->node.error = -ECONNRESET;
    bide_sim_changed_(&stream->node);
}

/* ---- Bytes ---- */

/* A stream's message has no address. */
static void stream_give(memory_node *node, memory_passed *passed, memory_message *message)
{
    if (message->header != NULL) {
        message->header->msg_flags = 0;
        message->header->msg_namelen = 0;
    }
    bide_sim_passed_give_(node, passed, message);
}

static ptrdiff_t stream_receive(memory_node *node, memory_message *message)
{
    memory_stream *stream = memory_stream_of(node);
    memory_passed *passed;
    if (stream->link == NULL)
        return -ENOTCONN;
    memory_flow *input = input_of(stream);
    if (input->arrived == 0 && !input->has_ended && !stream->input_is_shut)
        may_break(stream);
    size_t size =
        bide_sim_flow_take_(input, &message->bytes, (message->flags & MSG_PEEK) != 0, &passed);
    if (size != 0) {
        stream_give(node, passed, message);
        return (ptrdiff_t)size;
    }
    if (node->error != 0)
        return bide_sim_take_error_(node); /* 3 */
    if (input->has_ended || stream->input_is_shut || stream->is_reset || message->bytes.left == 0) {
        stream_give(node, NULL, message);
        return 0;
    }
    return -EAGAIN;
}

/* Whether nobody will receive what it sends: 2. */
static bool is_alone(const memory_stream *stream)
{
    const memory_node *reader = output_of(stream)->reader;
    return stream->is_local && (reader == NULL || memory_stream_of(reader)->input_is_shut);
}

/* A part of a send was put; the rest has to wait. */
static void pause_output(memory_flow *flow)
{
    sim_environment *environment = flow->environment;
    enum { LEAST = 1000 };
    uint64_t delay =
        bide_sim_loop_delay_(environment->loop, "a sender continues", environment->options.delay);
    if (!flow->pause.is_set)
        bide_sim_event_set_(&flow->pause, environment->loop->now + (delay != 0 ? delay : LEAST));
}

static ptrdiff_t stream_put(memory_stream *stream, memory_message *message, memory_passed *passed)
{
    memory_flow *output = output_of(stream);
    size_t room = bide_sim_flow_room_(output);
    size_t size = message->bytes.left < room ? message->bytes.left : room;
    size_t part = bide_sim_part_(stream->node.environment, "io: short send", size);
    int error = bide_sim_flow_put_(output, &message->bytes, part, passed);
    if (error != 0)
        return error;
    if (part < size)
        pause_output(output);
    return (ptrdiff_t)part;
}

static ptrdiff_t stream_send(memory_node *node, memory_message *message)
{
    memory_stream *stream = memory_stream_of(node);
    memory_passed *passed = NULL;
    if (stream->link == NULL)
        return stream->is_local ? -ENOTCONN : -EPIPE;
    may_break(stream);
    if (node->error != 0)
        return bide_sim_take_error_(node);
    if (stream->output_is_shut || stream->is_reset || is_alone(stream))
        return -EPIPE;
    if (message->bytes.left == 0)
        return 0;
    if (bide_sim_flow_room_(output_of(stream)) == 0)
        return -EAGAIN;
    if (message->header != NULL && stream->is_local) {
        int error = bide_sim_passed_take_(node->environment, message->header, &passed);
        if (error != 0)
            return error;
    }
    ptrdiff_t size = stream_put(stream, message, passed);
    if (size < 0)
        bide_sim_passed_free_(passed);
    return size;
}

static unsigned stream_ready(const memory_node *node)
{
    const memory_stream *stream = memory_stream_of(node);
    if (stream->link == NULL)
        return stream->is_connecting ? 0 : POLLOUT | POLLHUP;
    const memory_flow *input = input_of(stream);
    bool alone = is_alone(stream);
    bool input_is_over = input->has_ended || stream->input_is_shut || stream->is_reset || alone;
    bool output_is_over = stream->output_is_shut || stream->is_reset || alone;
    unsigned found = 0;
    if (input->arrived != 0 || input_is_over)
        found |= POLLIN | POLLRDNORM;
    if (input_is_over)
        found |= POLLRDHUP;
    if (output_is_over || bide_sim_flow_room_(output_of(stream)) != 0)
        found |= POLLOUT | POLLWRNORM;
    if (stream->is_reset || (input_is_over && output_is_over))
        found |= POLLHUP;
    if (node->error != 0)
        found |= POLLERR | POLLIN | POLLOUT;
    return found;
}

void bide_sim_stream_set_window_(memory_node *node, bool of_input, size_t window)
{
    memory_stream *stream = memory_stream_of(node);
    if (node->kind != &bide_sim_stream_kind_ || stream->link == NULL)
        return;
    memory_flow *flow = of_input ? input_of(stream) : output_of(stream);
    flow->window = window;
    if (flow->writer != NULL)
        bide_sim_changed_(flow->writer);
}

/* ---- Its ends ---- */

static int stream_shut(memory_node *node, int how)
{
    memory_stream *stream = memory_stream_of(node);
    if (stream->link == NULL || (stream->is_reset && !stream->is_local))
        return -ENOTCONN;
    if (how != SHUT_WR)
        stream->input_is_shut = true;
    if (how != SHUT_RD && !stream->output_is_shut) {
        stream->output_is_shut = true;
        if (!stream->is_reset)
            bide_sim_flow_mark_(output_of(stream), MEMORY_END);
    }
    bide_sim_changed_(node);
    if (stream->is_local && output_of(stream)->reader != NULL)
        bide_sim_changed_(output_of(stream)->reader);
    return 0;
}

static void stream_get_name(const memory_node *node, bide_address *address)
{
    *address = memory_stream_of(node)->local;
}

static int stream_get_peer(const memory_node *node, bide_address *address)
{
    const memory_stream *stream = memory_stream_of(node);
    if (stream->link == NULL || (stream->is_reset && !stream->is_local))
        return -ENOTCONN;
    *address = stream->peer;
    return 0;
}

/* Notifies the peer: 1. */
static void end_output(memory_stream *stream)
{
    memory_flow *output = output_of(stream);
    const memory_flow *input = input_of(stream);
    if (stream->is_reset)
        return;
    if (!stream->is_local && (stream->aborts || input->arrived != 0)) {
        bide_sim_flow_mark_(output, MEMORY_RESET);
        return;
    }
    if (output->reader != NULL && (stream->aborts || input->arrived != 0))
        output->reader->error = -ECONNRESET;
    if (!stream->output_is_shut)
        bide_sim_flow_mark_(output, MEMORY_END);
}

static void stream_left(memory_node *node)
{
    memory_stream *stream = memory_stream_of(node);
    bide_sim_leave_listener_(stream);
    bide_sim_unbind_(&stream->name);
    if (stream->link == NULL)
        return;
    memory_flow *input = input_of(stream), *output = output_of(stream);
    end_output(stream);
    input->reader = NULL;
    output->writer = NULL;
    bide_sim_event_clear_(&output->pause);
    if (input->writer != NULL) {
        bide_sim_changed_(input->writer);
        return;
    }
    bide_sim_flow_free_(&stream->link->flows[0]);
    bide_sim_flow_free_(&stream->link->flows[1]);
    free(stream->link);
}

const memory_kind bide_sim_stream_kind_ = {
    .name = "a stream",
    .is_socket = true,
    .receive = stream_receive,
    .send = stream_send,
    .ready = stream_ready,
    .shut = stream_shut,
    .get_name = stream_get_name,
    .get_peer = stream_get_peer,
    .left = stream_left,
};

/* ---- Pairs ---- */

/* Gives both numbers, or none. Takes the references. */
static int install_both(memory_stream *one, memory_stream *other, int *fds)
{
    sim_environment *environment = one->node.environment;
    fds[0] = bide_sim_install_(environment, &one->node);
    if (fds[0] < 0) {
        bide_sim_node_drop_(&one->node);
        bide_sim_node_drop_(&other->node);
        return fds[0];
    }
    fds[1] = bide_sim_install_(environment, &other->node);
    if (fds[1] < 0) {
        bide_sim_node_drop_(&other->node);
        bide_sim_close_(environment, fds[0]);
        return fds[1];
    }
    return 0;
}

static int make_pair(sim_environment *environment, const memory_kind *kind, int *fds)
{
    if (bide_sim_has_number_(environment) != 0)
        return -EMFILE;
    memory_stream *one = bide_sim_stream_new_(environment, AF_UNIX);
    memory_stream *other = one != NULL ? bide_sim_stream_new_(environment, AF_UNIX) : NULL;
    if (other == NULL || bide_sim_stream_join_(one, other) != 0) {
        free(one);
        free(other);
        return -ENOMEM;
    }
    one->node.kind = kind;
    other->node.kind = kind;
    return install_both(one, other, fds);
}

int bide_sim_socket_pair_(sim_environment *environment, int *fds)
{
    return make_pair(environment, &bide_sim_stream_kind_, fds);
}

/* ---- Pipes: the first end writes, the second reads ---- */

static ptrdiff_t pipe_receive(memory_node *node, memory_message *message)
{
    return memory_stream_of(node)->side == 1 ? stream_receive(node, message) : -EBADF;
}

static ptrdiff_t pipe_send(memory_node *node, memory_message *message)
{
    return memory_stream_of(node)->side == 0 ? stream_send(node, message) : -EBADF;
}

static unsigned pipe_ready(const memory_node *node)
{
    const memory_stream *stream = memory_stream_of(node);
    if (stream->side == 0)
        return (bide_sim_flow_room_(output_of(stream)) != 0 ? POLLOUT | POLLWRNORM : 0) |
               (is_alone(stream) ? POLLERR : 0);
    const memory_flow *input = input_of(stream);
    return (input->arrived != 0 ? POLLIN | POLLRDNORM : 0) | (input->has_ended ? POLLHUP : 0);
}

static void pipe_left(memory_node *node)
{
    memory_stream *stream = memory_stream_of(node);
    if (stream->side == 1) /* (unread bytes reset no pipe) */
        bide_sim_flow_drop_(input_of(stream));
    stream_left(node);
}

const memory_kind bide_sim_pipe_kind_ = {
    .name = "a pipe",
    .receive = pipe_receive,
    .send = pipe_send,
    .ready = pipe_ready,
    .left = pipe_left,
};

int bide_sim_pipe_(sim_environment *environment, int *fds)
{
    int ends[2];
    int error = make_pair(environment, &bide_sim_pipe_kind_, ends);
    fds[0] = error == 0 ? ends[1] : -1;
    fds[1] = error == 0 ? ends[0] : -1;
    return error;
}
