/*
 * Listeners: how connections are made.
 *
 *     stream --connects--> calls --room in the listener's line--> connected
 *                            |                   its peer: queued --accept--> a number
 *                            +--no listener--> refused
 *
 * 1. The peer is made together with the connection, and waits in the listener's line. So the caller
 *    may send before its connection is accepted, as on Linux. Closing the listener resets it.
 * 2. The line holds one more than the backlog, as on Linux. If it is full, a TCP caller waits
 *    behind the callers that wait already. A caller of a Unix socket is refused, as a loop's
 *    connect is (src/io/calls.c).
 * 3. The listener has a reference of each peer in its line, and points at its callers. It drops
 *    both when it is left. A caller that leaves removes itself.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../system/portable.h"

#include <stdlib.h>

enum { MAX_BACKLOG = 4096 }; /* (net.core.somaxconn) */

typedef struct memory_line {
    memory_stream *first, *last;
    unsigned count;
} memory_line;

typedef struct memory_listener {
    memory_node node;
    memory_name name;
    unsigned backlog;
    bool is_shut;
    memory_line queue; /* to be accepted */
    memory_line calls; /* that wait for room in it */
} memory_listener;

static memory_listener *listener_of(const memory_node *node)
{
    return (memory_listener *)bide_container_of(node, memory_listener, node);
}

/* ---- Lines ---- */

static void line_append(memory_line *line, memory_stream *stream)
{
    stream->next_in_line = NULL;
    if (line->first == NULL)
        line->first = stream;
    else
        line->last->next_in_line = stream;
    line->last = stream;
    line->count++;
}

static memory_stream *line_take_first(memory_line *line)
{
    memory_stream *stream = line->first;
    bide_assert(stream != NULL && line->count != 0);
    line->first = stream->next_in_line;
    line->count--;
    stream->place = MEMORY_IDLE;
    stream->listener = NULL;
    return stream;
}

static void line_take_out(memory_line *line, memory_stream *stream)
{
    memory_stream *before = NULL;
    memory_stream **place = &line->first;
    while (*place != stream) {
        bide_assert(*place != NULL);
        before = *place;
        place = &before->next_in_line;
    }
    *place = stream->next_in_line;
    if (line->last == stream)
        line->last = before;
    line->count--;
}

void bide_sim_leave_listener_(memory_stream *stream)
{
    if (stream->is_connecting)
        bide_sim_event_clear_(&stream->connecting);
    stream->is_connecting = false;
    if (stream->place == MEMORY_CALLS)
        line_take_out(&stream->listener->calls, stream);
    stream->place = MEMORY_IDLE;
}

/* ---- Connecting ---- */

static void has_connected(memory_stream *stream, int error)
{
    stream->is_connecting = false;
    stream->node.error = error;
    bide_sim_changed_(&stream->node);
}

/* There is room in the line: makes the peer. 1 */
static int listener_join(memory_listener *listener, memory_stream *caller)
{
    memory_stream *other = bide_sim_stream_new_(listener->node.environment, listener->node.family);
    if (other == NULL || bide_sim_stream_join_(caller, other) != 0) {
        free(other);
        return -ENOMEM;
    }
    memcpy(other->node.options, listener->node.options, sizeof other->node.options);
    other->node.options_count = listener->node.options_count;
    other->local = caller->is_local ? listener->name.address : caller->peer;
    other->peer = caller->local;
    bide_sim_see_address_(&other->local, listener->node.family);
    bide_sim_see_address_(&other->peer, listener->node.family);
    other->place = MEMORY_QUEUED;
    line_append(&listener->queue, other);
    bide_sim_changed_(&listener->node);
    return 0;
}

static bool listener_is_full(const memory_listener *listener)
{
    return listener->queue.count > listener->backlog;
}

static int stream_meet_listener(memory_stream *caller)
{
    sim_environment *environment = caller->node.environment;
    uint32_t choice = bide_address_port(&caller->local) * UINT32_C(40503) >> 3;
    memory_node *node;
    int error = bide_sim_find_(environment, &caller->peer, SOCK_STREAM, choice, &node);
    if (error != 0)
        return error;
    memory_listener *listener = listener_of(node);
    if (node->kind != &bide_sim_listener_kind_ || listener->is_shut)
        return -ECONNREFUSED;
    if (!listener_is_full(listener))
        return listener_join(listener, caller);
    if (caller->is_local) /* 2 */
        return -ECONNREFUSED;
    caller->place = MEMORY_CALLS;
    caller->listener = listener;
    line_append(&listener->calls, caller);
    return -EAGAIN;
}

/* The call has arrived at the listener's machine. */
static void call_arrives(memory_event *event)
{
    static const int errors[] = {-ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT};
    memory_stream *caller = bide_container_of(event, memory_stream, connecting);
    sim_environment *environment = caller->node.environment;
    int error;
    if (memory_fault(environment, "io: refused", environment->options.broken))
        error = errors[bide_sim_loop_draw(environment->loop, sizeof errors / sizeof *errors)];
    else
        error = stream_meet_listener(caller);
    if (error != -EAGAIN)
        has_connected(caller, error);
}

/* Every address is this machine's. */
static void make_exact(bide_address *address)
{
    struct in6_addr *v6 = &address->any.v6.sin6_addr;
    if (address->any.generic.sa_family == AF_INET && address->any.v4.sin_addr.s_addr == INADDR_ANY)
        address->any.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (address->any.generic.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(v6))
        *v6 = in6addr_loopback;
}

static int stream_begin_call(memory_stream *caller)
{
    MEMORY_EVENT(arrival, "a call arrives");
    sim_environment *environment = caller->node.environment;
    caller->is_connecting = true;
    bide_sim_event_init_(&caller->connecting, environment, &arrival, call_arrives);
    if (caller->is_local) {
        int error = stream_meet_listener(caller);
        caller->is_connecting = false;
        return error;
    }
    make_exact(&caller->peer);
    int error = bide_sim_bind_to_reach_(&caller->name, &caller->node, &caller->peer);
    if (error != 0)
        return error;
    caller->local = caller->name.address;
    /* (also without a delay it takes a turn: Linux answers no call at once) */
    uint64_t delay =
        bide_sim_loop_delay_(environment->loop, "a call arrives", environment->options.delay);
    bide_sim_event_set_(&caller->connecting, environment->loop->now + delay);
    return 0;
}

int bide_sim_connect_(sim_environment *environment, const bide_address *to)
{
    int error = bide_sim_check_address_(to);
    if (error == 0)
        error = bide_sim_has_number_(environment);
    if (error != 0)
        return error;
    memory_stream *caller = bide_sim_stream_new_(environment, to->any.generic.sa_family);
    if (caller == NULL)
        return -ENOMEM;
    int fd = bide_sim_install_(environment, &caller->node);
    if (fd < 0) {
        bide_sim_node_drop_(&caller->node);
        return fd;
    }
    caller->peer = *to;
    error = stream_begin_call(caller);
    if (error == 0)
        return fd;
    bide_sim_close_(environment, fd);
    return error;
}

int bide_sim_connected_(memory_node *node)
{
    if (memory_stream_of(node)->is_connecting)
        return -EAGAIN;
    return bide_sim_take_error_(node);
}

/* ---- Listening ---- */

int bide_sim_listen_(sim_environment *environment, const bide_address *address, int backlog,
                     int flags)
{
    int error = bide_sim_has_number_(environment);
    if (error != 0)
        return error;
    memory_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return -ENOMEM;
    bide_sim_node_init_(&listener->node, environment, &bide_sim_listener_kind_);
    listener->node.family = address->any.generic.sa_family;
    listener->node.type = SOCK_STREAM;
    listener->backlog = backlog < 0 || backlog > MAX_BACKLOG ? MAX_BACKLOG : (unsigned)backlog;
    error = bide_sim_bind_(&listener->name, &listener->node, address, flags);
    int fd = error == 0 ? bide_sim_install_(environment, &listener->node) : error;
    if (fd < 0)
        bide_sim_node_drop_(&listener->node);
    return fd;
}

/* Admits the callers that wait for room. */
static void let_in(memory_listener *listener)
{
    while (listener->calls.first != NULL && !listener_is_full(listener)) {
        memory_stream *caller = line_take_first(&listener->calls);
        has_connected(caller, listener_join(listener, caller));
    }
}

int bide_sim_accept_(memory_node *node, bide_address *peer)
{
    sim_environment *environment = node->environment;
    memory_listener *listener = listener_of(node);
    if (node->kind != &bide_sim_listener_kind_)
        return !node->kind->is_socket      ? -ENOTSOCK
               : node->type == SOCK_STREAM ? -EINVAL
                                           : -EOPNOTSUPP;
    if (listener->is_shut)
        return -EINVAL;
    int error = bide_sim_has_number_(environment);
    if (error != 0)
        return error; /* (Linux looks for a number first) */
    if (listener->queue.first == NULL)
        return -EAGAIN;
    memory_stream *stream = line_take_first(&listener->queue);
    let_in(listener);
    if (!stream->is_local &&
        memory_fault(environment, "io: aborted", environment->options.broken)) {
        stream->aborts = true;
        bide_sim_node_drop_(&stream->node);
        return -ECONNABORTED;
    }
    if (peer != NULL)
        *peer = stream->peer;
    int fd = bide_sim_install_(environment, &stream->node);
    if (fd < 0) { /* (no memory for its number: it waits on, in front) */
        stream->next_in_line = listener->queue.first;
        if (listener->queue.first == NULL)
            listener->queue.last = stream;
        listener->queue.first = stream;
        listener->queue.count++;
        stream->place = MEMORY_QUEUED;
    }
    return fd;
}

static unsigned listener_ready(const memory_node *node)
{
    const memory_listener *listener = listener_of(node);
    return (listener->queue.first != NULL ? POLLIN | POLLRDNORM : 0) |
           (listener->is_shut ? POLLIN | POLLHUP | POLLRDHUP : 0);
}

/* Refuses all callers, and resets all connections that nobody has accepted. */
static void listener_reject_all(memory_listener *listener)
{
    while (listener->calls.first != NULL)
        has_connected(line_take_first(&listener->calls), -ECONNREFUSED);
    while (listener->queue.first != NULL) {
        memory_stream *stream = line_take_first(&listener->queue);
        stream->aborts = true;
        bide_sim_node_drop_(&stream->node);
    }
}

static int listener_shut(memory_node *node, int how)
{
    memory_listener *listener = listener_of(node);
    if (how == SHUT_WR)
        return 0;
    listener->is_shut = true;
    listener_reject_all(listener);
    bide_sim_changed_(node);
    return 0;
}

static void listener_get_name(const memory_node *node, bide_address *address)
{
    *address = listener_of(node)->name.address;
}

static void listener_left(memory_node *node)
{
    memory_listener *listener = listener_of(node);
    bide_sim_unbind_(&listener->name);
    listener_reject_all(listener);
}

const memory_kind bide_sim_listener_kind_ = {
    .name = "a listener",
    .is_socket = true,
    .ready = listener_ready,
    .shut = listener_shut,
    .get_name = listener_get_name,
    .left = listener_left,
};

const bide_address *bide_sim_listener_address_(const memory_node *node)
{
    return &listener_of(node)->name.address;
}
