/*
 * Sockets of datagrams.
 *
 *     UDP     --travels, is lost, or is duplicated--> the receiver's queue, if it has room
 *     Unix    --------------------------------------> the receiver's queue; the sender waits for room
 *
 * 1. The receiver of a UDP datagram is looked up when the datagram arrives. So a socket that was
 *    closed meanwhile gets nothing, and a socket that has taken its address gets the datagram.
 * 2. UDP datagrams that travel for different times overtake each other. Datagrams of Unix sockets
 *    arrive at once, in order, and none is lost.
 * 3. A sender names its receiver anew each time, so a receiver does not know its waiting senders.
 *    They are in one list of the io, and all of them are retried when any queue has room.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <stdlib.h>

enum {
    MAX_UDP = 65507,      /* of UDP over version 4 */
    MAX_LOCAL = 212992,   /* (net.core.wmem_default) */
    OVERHEAD = 768,       /* of a datagram, beside its bytes */
    MAX_LOCAL_QUEUE = 10, /* (net.unix.max_dgram_qlen): one more is queued */
};

typedef struct memory_datagram {
    struct memory_datagram *next;
    struct memory_datagram **place; /* in the list of travelling datagrams */
    memory_event arrival;
    bide_address from, to;
    memory_passed *passed;
    size_t size;
    char bytes[];
} memory_datagram;

typedef struct memory_receiver {
    memory_node node;
    memory_name name;
    bool input_is_shut, output_is_shut;
    memory_datagram *first, *last;
    unsigned count;
    size_t used; /* of its room */
    bool is_blocked;
    struct memory_receiver *next_blocked;
} memory_receiver;

static memory_receiver *memory_receiver_of(const memory_node *node)
{
    return (memory_receiver *)bide_container_of(node, memory_receiver, node);
}

static void datagram_free(memory_datagram *datagram)
{
    bide_sim_passed_free_(datagram->passed);
    free(datagram);
}

/* ---- Arriving ---- */

static bool receiver_has_room(const memory_receiver *receiver, size_t size)
{
    if (receiver->node.family == AF_UNIX)
        return receiver->count <= MAX_LOCAL_QUEUE;
    return receiver->first == NULL ||
           receiver->used + size + OVERHEAD <=
               (size_t)bide_sim_option_of_(&receiver->node, SOL_SOCKET, SO_RCVBUF);
}

static void receiver_append(memory_receiver *receiver, memory_datagram *datagram)
{
    datagram->next = NULL;
    if (receiver->first == NULL)
        receiver->first = datagram;
    else
        receiver->last->next = datagram;
    receiver->last = datagram;
    receiver->count++;
    receiver->used += datagram->size + OVERHEAD;
    bide_sim_changed_(&receiver->node);
}

/* 1 */
static void datagram_deliver(sim_environment *environment, memory_datagram *datagram)
{
    memory_node *node;
    uint32_t choice = bide_address_port(&datagram->from);
    int error = bide_sim_find_(environment, &datagram->to, SOCK_DGRAM, choice, &node);
    if (error == 0 && !memory_receiver_of(node)->input_is_shut &&
        receiver_has_room(memory_receiver_of(node), datagram->size))
        receiver_append(memory_receiver_of(node), datagram);
    else
        datagram_free(datagram);
}

static void datagram_arrive(memory_event *event)
{
    memory_datagram *datagram = bide_container_of(event, memory_datagram, arrival);
    *datagram->place = datagram->next;
    if (datagram->next != NULL)
        datagram->next->place = datagram->place;
    datagram_deliver(event->environment, datagram);
}

void bide_sim_datagrams_end_(sim_environment *environment)
{
    while (environment->travelling != NULL) {
        memory_datagram *datagram = environment->travelling;
        environment->travelling = datagram->next;
        bide_sim_event_clear_(&datagram->arrival);
        datagram_free(datagram);
    }
}

/* ---- Sending ---- */

static memory_datagram *datagram_new(memory_receiver *sender, const bide_address *to,
                                     const memory_message *message)
{
    memory_bytes bytes = message->bytes;
    memory_datagram *datagram = malloc(sizeof *datagram + bytes.left);
    if (datagram == NULL)
        return NULL;
    datagram->from = sender->name.address;
    datagram->to = *to;
    datagram->passed = NULL;
    datagram->size = bytes.left;
    bide_sim_bytes_take_(&bytes, datagram->bytes, bytes.left);
    return datagram;
}

/* Sends a datagram on its way. */
static void datagram_travel(sim_environment *environment, memory_datagram *datagram)
{
    MEMORY_EVENT(arrival, "a datagram arrives");
    uint64_t delay = bide_sim_loop_delay_(environment->loop, "a datagram arrives", environment->options.delay);
    if (delay == 0) {
        datagram_deliver(environment, datagram);
        return;
    }
    datagram->next = environment->travelling;
    datagram->place = &environment->travelling;
    if (datagram->next != NULL)
        datagram->next->place = &datagram->next;
    environment->travelling = datagram;
    bide_sim_event_init_(&datagram->arrival, environment, &arrival, datagram_arrive);
    bide_sim_event_set_(&datagram->arrival, environment->loop->now + delay);
}

static ptrdiff_t send_udp(memory_receiver *sender, const bide_address *to, memory_message *message)
{
    sim_environment *environment = sender->node.environment;
    size_t size = message->bytes.left;
    if (size > MAX_UDP)
        return -EMSGSIZE;
    if (memory_fault(environment, "io: lost", environment->options.lost))
        return (ptrdiff_t)size;
    for (int copies = memory_fault(environment, "io: twice", environment->options.lost) ? 2 : 1; copies > 0;
         copies--) {
        memory_datagram *datagram = datagram_new(sender, to, message);
        if (datagram == NULL)
            return -ENOBUFS;
        datagram_travel(environment, datagram);
    }
    return (ptrdiff_t)size;
}

/* The sender waits for room: 3. */
static void sender_block(memory_receiver *sender)
{
    sim_environment *environment = sender->node.environment;
    if (sender->is_blocked)
        return;
    sender->is_blocked = true;
    sender->next_blocked = environment->blocked;
    environment->blocked = sender;
}

static void unblock_senders(sim_environment *environment)
{
    memory_receiver *next;
    memory_receiver *at = environment->blocked;
    environment->blocked = NULL;
    for (; at != NULL; at = next) {
        next = at->next_blocked;
        at->is_blocked = false;
        bide_sim_changed_(&at->node);
    }
}

static ptrdiff_t send_local(memory_receiver *sender, const bide_address *to,
                            memory_message *message)
{
    sim_environment *environment = sender->node.environment;
    memory_passed *passed = NULL;
    memory_node *node;
    if (message->bytes.left > MAX_LOCAL)
        return -EMSGSIZE;
    int error = bide_sim_find_(environment, to, SOCK_DGRAM, 0, &node);
    if (error != 0)
        return error;
    memory_receiver *receiver = memory_receiver_of(node);
    if (receiver->input_is_shut)
        return -EPIPE;
    if (!receiver_has_room(receiver, message->bytes.left)) {
        sender_block(sender);
        return -EAGAIN;
    }
    memory_datagram *datagram = datagram_new(sender, to, message);
    if (datagram == NULL)
        return -ENOBUFS;
    error = bide_sim_passed_take_(environment, message->header, &passed);
    datagram->passed = passed;
    if (error != 0) {
        datagram_free(datagram);
        return error;
    }
    receiver_append(receiver, datagram);
    return (ptrdiff_t)datagram->size;
}

enum { LONGEST_SENDING = 65535 }; /* of which the kernel looks for an address */

static ptrdiff_t send_datagram(memory_node *node, memory_message *message)
{
    memory_receiver *sender = memory_receiver_of(node);
    struct msghdr *header = message->header;
    bide_address to;
    if (sender->output_is_shut)
        return -EPIPE;
    if (header == NULL || header->msg_name == NULL)
        return node->family == AF_UNIX                 ? -ENOTCONN
               : message->bytes.left > LONGEST_SENDING ? -EMSGSIZE
                                                       : -EDESTADDRREQ;
    if (header->msg_namelen > sizeof to.any)
        return -EINVAL;
    memset(&to, 0, sizeof to);
    to.length = header->msg_namelen;
    memcpy(&to.any, header->msg_name, header->msg_namelen);
    int error = bide_sim_check_address_(&to);
    if (error != 0)
        return error;
    int family = to.any.generic.sa_family;
    if (node->family == AF_UNIX)
        return family == AF_UNIX ? send_local(sender, &to, message) : -EINVAL;
    if (family == AF_UNIX || (family == AF_INET6 && node->family == AF_INET))
        return -EAFNOSUPPORT;
    if (bide_address_port(&to) == 0)
        return -EINVAL;
    return send_udp(sender, &to, message);
}

/* ---- Receiving ---- */

static void set_sender(const memory_receiver *receiver, struct msghdr *header, bide_address *from)
{
    if (header->msg_name == NULL) {
        header->msg_namelen = 0;
        return;
    }
    bide_sim_see_address_(from, receiver->node.family);
    size_t size = header->msg_namelen < from->length ? header->msg_namelen : from->length;
    memcpy(header->msg_name, &from->any, size);
    header->msg_namelen = from->length;
}

static ptrdiff_t receive_datagram(memory_node *node, memory_message *message)
{
    memory_receiver *receiver = memory_receiver_of(node);
    memory_datagram *datagram = receiver->first;
    struct msghdr *header = message->header;
    if (datagram == NULL)
        return receiver->input_is_shut ? 0 : -EAGAIN;
    size_t size = datagram->size < message->bytes.left ? datagram->size : message->bytes.left;
    bool was_cut = size < datagram->size;
    bool peeks = (message->flags & MSG_PEEK) != 0;
    ptrdiff_t result = (ptrdiff_t)((message->flags & MSG_TRUNC) != 0 ? datagram->size : size);
    bide_sim_bytes_put_(&message->bytes, datagram->bytes, size);
    if (header != NULL) {
        header->msg_flags = was_cut ? MSG_TRUNC : 0;
        bide_address from = datagram->from;
        set_sender(receiver, header, &from);
    }
    bide_sim_passed_give_(node, peeks ? NULL : datagram->passed, message);
    if (peeks)
        return result;
    receiver->first = datagram->next;
    bide_assert(receiver->count != 0 && receiver->used >= datagram->size + OVERHEAD);
    receiver->count--;
    receiver->used -= datagram->size + OVERHEAD;
    free(datagram);
    if (node->family == AF_UNIX)
        unblock_senders(node->environment);
    return result;
}

static unsigned receiver_ready(const memory_node *node)
{
    const memory_receiver *receiver = memory_receiver_of(node);
    return (receiver->first != NULL || receiver->input_is_shut ? POLLIN | POLLRDNORM : 0) |
           POLLOUT | POLLWRNORM;
}

/* ---- Opening and closing ---- */

static int receiver_shut(memory_node *node, int how)
{
    memory_receiver *receiver = memory_receiver_of(node);
    if (node->family != AF_UNIX) /* (Linux wakes waiting callers all the same) */
        return -ENOTCONN;
    receiver->input_is_shut |= how != SHUT_WR;
    receiver->output_is_shut |= how != SHUT_RD;
    bide_sim_changed_(node);
    unblock_senders(node->environment);
    return 0;
}

static void receiver_get_name(const memory_node *node, bide_address *address)
{
    *address = memory_receiver_of(node)->name.address;
}

static void receiver_left(memory_node *node)
{
    memory_receiver *receiver = memory_receiver_of(node);
    bide_sim_unbind_(&receiver->name);
    if (receiver->is_blocked) {
        memory_receiver **place = &node->environment->blocked;
        while (*place != receiver)
            place = &(*place)->next_blocked;
        *place = receiver->next_blocked;
    }
    while (receiver->first != NULL) {
        memory_datagram *datagram = receiver->first;
        receiver->first = datagram->next;
        datagram_free(datagram);
    }
    unblock_senders(node->environment);
}

const memory_kind bide_sim_datagram_kind_ = {
    .name = "datagrams",
    .is_socket = true,
    .receive = receive_datagram,
    .send = send_datagram,
    .ready = receiver_ready,
    .shut = receiver_shut,
    .get_name = receiver_get_name,
    .left = receiver_left,
};

int bide_sim_open_datagrams_(sim_environment *environment, const bide_address *address, int flags)
{
    int error = bide_sim_has_number_(environment);
    if (error != 0)
        return error;
    memory_receiver *receiver = calloc(1, sizeof *receiver);
    if (receiver == NULL)
        return -ENOMEM;
    bide_sim_node_init_(&receiver->node, environment, &bide_sim_datagram_kind_);
    receiver->node.family = address->any.generic.sa_family;
    receiver->node.type = SOCK_DGRAM;
    error = bide_sim_bind_(&receiver->name, &receiver->node, address, flags);
    int fd = error == 0 ? bide_sim_install_(environment, &receiver->node) : error;
    if (fd < 0)
        bide_sim_node_drop_(&receiver->node);
    return fd;
}

const bide_address *bide_sim_datagram_address_(const memory_node *node)
{
    return &memory_receiver_of(node)->name.address;
}
