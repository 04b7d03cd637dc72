/*
 * How connections are made.
 *
 *     stream --connects--> calls --room in the listener's line--> connected
 *                            |                   the other end: queued --accept--> a number
 *                            +--nobody listens--> refused
 *
 * 1. The other end is made when the connection is, and waits in the listener's line: so the caller may
 *    send before anybody has accepted, as with Linux. If the listener is closed it is reset.
 * 2. The line holds one more than the backlog, as Linux's does. A caller of TCP that finds it full
 *    waits behind those that wait already; one of a Unix socket is refused, as no loop's connect waits
 *    there (calls.c of the system).
 * 3. The listener has a reference of each in its line, and callers point at it; it lets go of both
 *    when it is left. A caller that leaves takes itself out.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <stdlib.h>

enum { MOST = 4096 }; /* (net.core.somaxconn) */

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

static void append(memory_line *line, memory_stream *stream)
{
    stream->next_in_line = NULL;
    if (line->first == NULL)
        line->first = stream;
    else
        line->last->next_in_line = stream;
    line->last = stream;
    line->count++;
}

static memory_stream *take_first(memory_line *line)
{
    memory_stream *stream = line->first;
    line->first = stream->next_in_line;
    line->count--;
    stream->place = MEMORY_IDLE;
    stream->listener = NULL;
    return stream;
}

static void take_out(memory_line *line, memory_stream *stream)
{
    memory_stream *before = NULL;
    memory_stream **place = &line->first;
    while (*place != stream) {
        before = *place;
        place = &before->next_in_line;
    }
    *place = stream->next_in_line;
    if (line->last == stream)
        line->last = before;
    line->count--;
}

void bide_simulated_leave_listener_(memory_stream *stream)
{
    if (stream->is_connecting)
        bide_simulated_event_clear_(&stream->connecting);
    stream->is_connecting = false;
    if (stream->place == MEMORY_CALLS)
        take_out(&stream->listener->calls, stream);
    stream->place = MEMORY_IDLE;
}

/* ---- Connecting ---- */

static void has_connected(memory_stream *stream, int error)
{
    stream->is_connecting = false;
    stream->node.error = error;
    bide_simulated_changed_(&stream->node);
}

/* There is room in the line: makes the other end. 1 */
static int join(memory_listener *listener, memory_stream *caller)
{
    memory_stream *other = bide_simulated_stream_new_(listener->node.world, listener->node.family);
    if (other == NULL || bide_simulated_stream_join_(caller, other) != 0) {
        free(other);
        return -ENOMEM;
    }
    memcpy(other->node.options, listener->node.options, sizeof other->node.options);
    other->node.options_count = listener->node.options_count;
    other->local = caller->is_local ? listener->name.address : caller->peer;
    other->peer = caller->local;
    bide_simulated_see_address_(&other->local, listener->node.family);
    bide_simulated_see_address_(&other->peer, listener->node.family);
    other->place = MEMORY_QUEUED;
    append(&listener->queue, other);
    bide_simulated_changed_(&listener->node);
    return 0;
}

static bool is_full(const memory_listener *listener)
{
    return listener->queue.count > listener->backlog;
}

static int meet(memory_stream *caller)
{
    memory_world *world = caller->node.world;
    uint32_t choice = bide_address_port(&caller->local) * UINT32_C(40503) >> 3;
    memory_node *node;
    int error = bide_simulated_find_(world, &caller->peer, SOCK_STREAM, choice, &node);
    if (error != 0)
        return error;
    memory_listener *listener = listener_of(node);
    if (node->kind != &bide_simulated_listener_kind_ || listener->is_shut)
        return -ECONNREFUSED;
    if (!is_full(listener))
        return join(listener, caller);
    if (caller->is_local) /* 2 */
        return -ECONNREFUSED;
    caller->place = MEMORY_CALLS;
    caller->listener = listener;
    append(&listener->calls, caller);
    return -EAGAIN;
}

/* Its call has come to the other end. */
static void call_arrives(memory_event *event)
{
    static const int errors[] = {-ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT};
    memory_stream *caller = bide_container_of(event, memory_stream, connecting);
    memory_world *world = caller->node.world;
    int error;
    if (memory_fault(world, "io: refused", world->options.broken))
        error = errors[bide_sim_loop_draw(world->loop, sizeof errors / sizeof *errors)];
    else
        error = meet(caller);
    if (error != -EAGAIN)
        has_connected(caller, error);
}

/* An address of any machine is this one's. */
static void make_exact(bide_address *address)
{
    struct in6_addr *v6 = &address->any.v6.sin6_addr;
    if (address->any.generic.sa_family == AF_INET && address->any.v4.sin_addr.s_addr == INADDR_ANY)
        address->any.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (address->any.generic.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(v6))
        *v6 = in6addr_loopback;
}

static int begin_call(memory_stream *caller)
{
    MEMORY_EVENT(arrival, "a call arrives");
    memory_world *world = caller->node.world;
    caller->is_connecting = true;
    bide_simulated_event_init_(&caller->connecting, world, &arrival, call_arrives);
    if (caller->is_local) {
        int error = meet(caller);
        caller->is_connecting = false;
        return error;
    }
    make_exact(&caller->peer);
    int error = bide_simulated_bind_to_reach_(&caller->name, &caller->node, &caller->peer);
    if (error != 0)
        return error;
    caller->local = caller->name.address;
    /* (also without a delay it takes a turn: Linux answers no call at once) */
    uint64_t delay = bide_sim_loop_delay_(world->loop, "a call arrives", world->options.delay);
    bide_simulated_event_set_(&caller->connecting, world->loop->now + delay);
    return 0;
}

int bide_simulated_connect_(memory_world *world, const bide_address *to)
{
    int error = bide_simulated_check_address_(to);
    if (error == 0)
        error = bide_simulated_has_number_(world);
    if (error != 0)
        return error;
    memory_stream *caller = bide_simulated_stream_new_(world, to->any.generic.sa_family);
    if (caller == NULL)
        return -ENOMEM;
    int fd = bide_simulated_install_(world, &caller->node);
    if (fd < 0) {
        bide_simulated_node_drop_(&caller->node);
        return fd;
    }
    caller->peer = *to;
    error = begin_call(caller);
    if (error == 0)
        return fd;
    bide_simulated_close_(world, fd);
    return error;
}

int bide_simulated_connected_(memory_node *node)
{
    if (memory_stream_of(node)->is_connecting)
        return -EAGAIN;
    return bide_simulated_take_error_(node);
}

/* ---- Listening ---- */

int bide_simulated_listen_(memory_world *world, const bide_address *address, int backlog, int flags)
{
    int error = bide_simulated_has_number_(world);
    if (error != 0)
        return error;
    memory_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return -ENOMEM;
    bide_simulated_node_init_(&listener->node, world, &bide_simulated_listener_kind_);
    listener->node.family = address->any.generic.sa_family;
    listener->node.type = SOCK_STREAM;
    listener->backlog = backlog < 0 || backlog > MOST ? MOST : (unsigned)backlog;
    error = bide_simulated_bind_(&listener->name, &listener->node, address, flags);
    int fd = error == 0 ? bide_simulated_install_(world, &listener->node) : error;
    if (fd < 0)
        bide_simulated_node_drop_(&listener->node);
    return fd;
}

/* Lets in who waits for room. */
static void let_in(memory_listener *listener)
{
    while (listener->calls.first != NULL && !is_full(listener)) {
        memory_stream *caller = take_first(&listener->calls);
        has_connected(caller, join(listener, caller));
    }
}

int bide_simulated_accept_(memory_node *node, bide_address *peer)
{
    memory_world *world = node->world;
    memory_listener *listener = listener_of(node);
    if (node->kind != &bide_simulated_listener_kind_)
        return !node->kind->is_socket ? -ENOTSOCK : node->type == SOCK_STREAM ? -EINVAL : -EOPNOTSUPP;
    if (listener->is_shut)
        return -EINVAL;
    int error = bide_simulated_has_number_(world);
    if (error != 0)
        return error; /* (Linux looks for a number first) */
    if (listener->queue.first == NULL)
        return -EAGAIN;
    memory_stream *stream = take_first(&listener->queue);
    let_in(listener);
    if (!stream->is_local && memory_fault(world, "io: aborted", world->options.broken)) {
        stream->aborts = true;
        bide_simulated_node_drop_(&stream->node);
        return -ECONNABORTED;
    }
    if (peer != NULL)
        *peer = stream->peer;
    int fd = bide_simulated_install_(world, &stream->node);
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

static unsigned ready(const memory_node *node)
{
    const memory_listener *listener = listener_of(node);
    return (listener->queue.first != NULL ? POLLIN | POLLRDNORM : 0) |
           (listener->is_shut ? POLLIN | POLLHUP | POLLRDHUP : 0);
}

/* Nobody is let in any more. */
static void turn_away(memory_listener *listener)
{
    while (listener->calls.first != NULL)
        has_connected(take_first(&listener->calls), -ECONNREFUSED);
    while (listener->queue.first != NULL) {
        memory_stream *stream = take_first(&listener->queue);
        stream->aborts = true;
        bide_simulated_node_drop_(&stream->node);
    }
}

static int shut(memory_node *node, int how)
{
    memory_listener *listener = listener_of(node);
    if (how == SHUT_WR)
        return 0;
    listener->is_shut = true;
    turn_away(listener);
    bide_simulated_changed_(node);
    return 0;
}

static void get_name(const memory_node *node, bide_address *address)
{
    *address = listener_of(node)->name.address;
}

static void left(memory_node *node)
{
    memory_listener *listener = listener_of(node);
    bide_simulated_unbind_(&listener->name);
    turn_away(listener);
}

const memory_kind bide_simulated_listener_kind_ = {
    .name = "a listener",
    .is_socket = true,
    .ready = ready,
    .shut = shut,
    .get_name = get_name,
    .left = left,
};

const bide_address *bide_simulated_listener_address_(const memory_node *node)
{
    return &listener_of(node)->name.address;
}
