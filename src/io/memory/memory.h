/*
 * What the files of the io in memory ask of each other.
 *
 *     table.c      the io: operations begin, wait and end
 *     calls.c      what operations on descriptors do; calls on descriptors
 *     node.c       numbers, what they stand for, and what happens at a time
 *     names.c      which socket has which address
 *     options.c    what sockets were told
 *     stream.c     connections and pipes
 *     listener.c   how connections are made
 *     flow.c       one direction of a connection
 *     datagram.c   sockets of datagrams
 *     control.c    descriptors and credentials that go with a message
 *     tree.c       names of files
 *     file.c       operations on files
 *
 * A file includes this one, and calls those that are further down in the list, and node.c.
 */
#ifndef BIDE_IO_MEMORY_H
#define BIDE_IO_MEMORY_H

#include "bide/memory_io.h"

#include "bide/address.h"
#include "bide/socket.h"

#include "../operation.h"
#include "../../schedule/test_loop.h"

#include <string.h>
#include <sys/uio.h>

typedef struct bide_memory_io memory_world;
typedef struct memory_node memory_node;

/* ---- Events: what happens at a time (node.c) ---- */

typedef struct memory_event {
    bide_timer timer;
    bide_frame frame; /* runs when the time has come */
    memory_world *world;
    const bide_point *point; /* says what it is */
    void (*happens)(struct memory_event *event);
    bool is_set;
} memory_event;

bide_next memory_event_step(bide_frame *frame, unsigned depth);

/* What the trace says of an event; a point for memory_event_init. */
#define MEMORY_EVENT(name, text)                                                            \
    static const bide_coroutine_code name##_code = {memory_event_step, text, NULL, NULL, NULL}; \
    static const bide_point name = BIDE_POINT_START(&name##_code)

void memory_event_init(memory_event *event, memory_world *world, const bide_point *point,
                       void (*happens)(memory_event *event));
void memory_event_set(memory_event *event, uint64_t time); /* one that is not set */
void memory_event_clear(memory_event *event);              /* if it is set */

/* ---- Bytes of an operation, in pieces ---- */

typedef struct memory_bytes {
    const struct iovec *vectors; /* what is left begins in the first, at `offset` */
    size_t offset;
    size_t left;
} memory_bytes;

void memory_bytes_init(memory_bytes *bytes, const struct iovec *vectors, size_t count, size_t skip);
void memory_bytes_take(memory_bytes *bytes, void *to, size_t size);
void memory_bytes_put(memory_bytes *bytes, const void *from, size_t size);

/* What is received or sent: as by recvmsg and sendmsg. */
typedef struct memory_message {
    memory_bytes bytes;
    int flags;
    struct msghdr *header; /* for the address and control data; or NULL */
} memory_message;

/* ---- Nodes: what a descriptor stands for ---- */

typedef struct memory_kind {
    const char *name;
    bool is_socket;
    bool is_file; /* its operations take a disk's time */

    /* Of bytes: how many, or a negative errno; -EAGAIN: not yet. NULL: -EINVAL. */
    ptrdiff_t (*receive)(memory_node *node, memory_message *message);
    ptrdiff_t (*send)(memory_node *node, memory_message *message);

    unsigned (*ready)(const memory_node *node); /* for what: as poll(2) says */
    int (*shut)(memory_node *node, int how);
    void (*get_name)(const memory_node *node, bide_address *address);
    int (*get_peer)(const memory_node *node, bide_address *address);
    void (*left)(memory_node *node); /* nobody has it any more: gives up what it has */
} memory_kind;

/* What a socket was told of, and is asked. */
typedef struct memory_option {
    int level, name, value;
} memory_option;

enum { MEMORY_OPTIONS = 16 };

struct memory_node {
    const memory_kind *kind;
    memory_world *world;
    uint32_t references;
    int slot; /* the first of its numbers; -1: none */
    bool has_changed;
    memory_node *next_changed;
    int family, type; /* of a socket */
    int error;        /* a negative errno that the next call returns; 0 */
    memory_option options[MEMORY_OPTIONS];
    unsigned options_count;
};

/* Frees nothing yet: the node is one of `kind`, with one reference. */
void memory_node_init(memory_node *node, memory_world *world, const memory_kind *kind);
void memory_node_hold(memory_node *node);
void memory_node_drop(memory_node *node);

/* Those that wait for it are to be tried again, by memory_settle. */
void memory_changed(memory_node *node);
void memory_settle(memory_world *world);

/* The error that it has, which it has no more. */
int memory_take_error(memory_node *node);

/* ---- Numbers of descriptors ---- */

/* (far above those that the system gives) */
enum { MEMORY_FIRST = 1 << 30 };

typedef struct memory_slot {
    memory_node *node; /* NULL: free */
    bide_descriptor *descriptor; /* that waits, or has waited; or NULL */
    int next; /* of the same node */
} memory_slot;

/* Gives it the lowest number that is free, and the reference; -EMFILE, -ENOMEM. */
int memory_install(memory_world *world, memory_node *node);

/* Is one to be had, for what opens one? 0, or -EMFILE, which may be drawn. */
int memory_has_number(memory_world *world);
memory_slot *memory_slot_of(const memory_world *world, int fd);
memory_node *memory_node_of(const memory_world *world, int fd);
int memory_close(memory_world *world, int fd);

/* Tries again what waits on the descriptor of a number (table.c). */
void memory_go_on(memory_world *world, bide_descriptor *descriptor);

/* ---- Names of sockets (names.c) ---- */

enum { MEMORY_NAMES = 256 };

typedef struct memory_inode memory_inode;

/* What a socket is bound to. */
typedef struct memory_name {
    struct memory_name *next;
    struct memory_name **place; /* NULL: bound to nothing */
    memory_node *node;
    int type;
    uint16_t port;
    uint8_t ip[16]; /* of version 4 as in version 6 */
    bool is_any, is_v6_only, shares_port;
    bool is_found; /* it listens, or receives; otherwise it keeps the port */
    bide_address address;
    memory_inode *inode; /* of a path */
} memory_name;

/* Binds it to `address`, which is then the name that it got. */
int memory_bind(memory_name *name, memory_node *node, const bide_address *address, int flags);

/* Gives a socket that connects to `to` a port of its own. */
int memory_bind_to_reach(memory_name *name, memory_node *node, const bide_address *to);
void memory_unbind(memory_name *name);

/* The socket that has an address; or a negative errno. `choice` is for those that share it. */
int memory_find(memory_world *world, const bide_address *to, int type, uint32_t choice,
                memory_node **found);

/* Is it an address of a family that there is? 0, or a negative errno. */
int memory_check_address(const bide_address *address);

/* How a socket of `family` sees an address of another version. */
void memory_see_address(bide_address *address, int family);

/* ---- Options of sockets (options.c) ---- */

int memory_set_option(memory_node *node, int level, int name, int value);
int memory_get_option(memory_node *node, int level, int name, int *value);

/* What it was told, or else as a socket is at first. */
int memory_option_of(const memory_node *node, int level, int name);

/* ---- One direction of a connection (flow.c) ---- */

typedef struct memory_passed memory_passed;
typedef struct memory_piece memory_piece;

typedef enum memory_mark { MEMORY_BYTES, MEMORY_END, MEMORY_RESET } memory_mark;

typedef struct memory_flow {
    memory_world *world;
    memory_node *writer; /* NULL: gone */
    memory_node *reader;
    char *bytes; /* a ring */
    size_t capacity, begin;
    size_t arrived, travelling; /* bytes in it, first those to be read */
    size_t window;
    memory_piece *first, *last; /* what was put, and not read */
    memory_piece *next;         /* of those, that has not arrived */
    bool has_ended;             /* its end has arrived */
    bool is_local;              /* what is put arrives at once */
    bool is_cut;                /* the connection has broken: nothing more arrives */
    memory_event arrival;
    memory_event pause; /* a short send: the writer has to wait */
} memory_flow;

void memory_flow_init(memory_flow *flow, memory_world *world, bool is_local);
void memory_flow_free(memory_flow *flow);

/* Puts bytes, for which there is room, or a mark. `passed` goes with the first. 0 or -ENOMEM. */
int memory_flow_put(memory_flow *flow, memory_bytes *bytes, size_t size, memory_passed *passed);
void memory_flow_mark(memory_flow *flow, memory_mark mark);
size_t memory_flow_room(const memory_flow *flow);

/* Takes up to what has arrived; what was passed with it is the caller's. */
size_t memory_flow_take(memory_flow *flow, memory_bytes *bytes, bool peeks, memory_passed **passed);

/* Nobody will read what is in it. */
void memory_flow_drop(memory_flow *flow);

/* What has not arrived never will, nor what is put from now on. */
void memory_flow_cut(memory_flow *flow);

/* What arrives is told of (stream.c). */
void memory_stream_is_reset(memory_node *reader, bool has_ended);
void memory_stream_bounces(memory_node *writer);

/* ---- Streams (stream.c) ---- */

typedef struct memory_link memory_link;

typedef struct memory_stream {
    memory_node node;
    memory_link *link; /* NULL: not connected */
    unsigned side;     /* writes link->flows[side], and reads the other */
    bool is_local;     /* of the machine, or a pipe */
    bool is_reset, aborts;
    bool input_is_shut, output_is_shut;
    memory_name name;
    bide_address local, peer;

    /* of listener.c, while it connects, and until it is accepted */
    enum { MEMORY_IDLE, MEMORY_CALLS, MEMORY_QUEUED } place;
    bool is_connecting;
    struct memory_listener *listener;
    struct memory_stream *next_in_line;
    memory_event connecting;
} memory_stream;

extern const memory_kind memory_stream_kind, memory_pipe_kind;

BIDE_INLINE memory_stream *memory_stream_of(const memory_node *node)
{
    return (memory_stream *)bide_container_of(node, memory_stream, node);
}

memory_stream *memory_stream_new(memory_world *world, int family);

/* Connects two that are connected to nothing. 0 or -ENOMEM. */
int memory_stream_join(memory_stream *one, memory_stream *other);
void memory_stream_set_window(memory_node *node, bool of_input, size_t window);
int memory_socket_pair(memory_world *world, int *fds);
int memory_pipe(memory_world *world, int *fds);

/* ---- Listeners (listener.c) ---- */

extern const memory_kind memory_listener_kind;

/* Opens one: its number, or a negative errno. */
int memory_listen(memory_world *world, const bide_address *address, int backlog, int flags);

/* Opens a stream that connects to an address: its number, or a negative errno. */
int memory_connect(memory_world *world, const bide_address *to);

/* Is it connected? 0, a negative errno; -EAGAIN: not yet. */
int memory_connected(memory_node *node);

/* Takes a connection: its number, or a negative errno. */
int memory_accept(memory_node *node, bide_address *peer);

/* Where its address is, for a dump: nothing is read. */
const bide_address *memory_listener_address(const memory_node *node);

/* It connects no more, or is not to be accepted. */
void memory_leave_listener(memory_stream *stream);

/* ---- Datagrams (datagram.c) ---- */

extern const memory_kind memory_datagram_kind;
int memory_open_datagrams(memory_world *world, const bide_address *address, int flags);
void memory_datagrams_end(memory_world *world);
const bide_address *memory_datagram_address(const memory_node *node); /* as of a listener */

/* ---- Control data (control.c) ---- */

/* Takes what a message is to pass. 0 or a negative errno; *passed: NULL if there is nothing. */
int memory_passed_take(memory_world *world, const struct msghdr *header, memory_passed **passed);

/* Gives it to who receives it; or to nobody. Sets the header's control data and flags. */
void memory_passed_give(memory_node *receiver, memory_passed *passed, memory_message *message);
void memory_passed_free(memory_passed *passed);

/* ---- Files (tree.c, file.c) ---- */

int memory_tree_create(memory_world *world);
void memory_tree_destroy(memory_world *world);
size_t memory_tree_size(const memory_world *world); /* bytes of all files */

/* A socket's path. */
int memory_tree_bind(memory_world *world, const char *path, memory_node *node, memory_inode **inode);
int memory_tree_find(memory_world *world, const char *path, memory_node **node);
void memory_tree_unbind(memory_world *world, memory_inode *inode);

extern const memory_kind memory_file_kind;

/* Opens a file: its number. */
int memory_open(memory_world *world, const char *path, int flags, unsigned mode);
int memory_seek(memory_node *node, int64_t offset);

/* Reads and writes, at an offset, or, if that is -1, where the file is at; 0 or more, or an error. */
ptrdiff_t memory_file_read(memory_node *node, memory_bytes *bytes, int64_t offset);
ptrdiff_t memory_file_write(memory_node *node, memory_bytes *bytes, int64_t offset);

/* What is not of bytes: of an open file, and of the tree. As bide_io_call. */
ptrdiff_t memory_file_call(memory_world *world, bide_io_operation *operation);

/* ---- What operations do (calls.c) ---- */

extern const bide_io_calls memory_calls;

/* As bide_io_call. */
ptrdiff_t memory_call(memory_world *world, bide_io_operation *operation);

/* ---- The io ---- */

typedef struct memory_tree memory_tree;

struct bide_memory_io {
    bide_io io; /* at the head */
    bide_test_loop *loop;
    bide_memory_io_options options;
    memory_slot *slots;
    int slots_count; /* that there is memory for */
    int slots_open;
    int lowest; /* none below is free */
    memory_node *first_changed, *last_changed;
    bool is_settling;
    memory_name *names[MEMORY_NAMES];
    uint16_t next_port[2];
    struct memory_receiver *blocked; /* senders of datagrams that wait for room anywhere */
    struct memory_datagram *travelling;
    memory_tree *tree;
};

BIDE_INLINE memory_world *memory_world_of(bide_io *io)
{
    return bide_container_of(io, memory_world, io);
}

BIDE_INLINE bool memory_fault(memory_world *world, const char *name, uint32_t rate)
{
    return rate != 0 && test_loop_fault(world->loop, name, rate);
}

/* How many of `size` bytes, 1 or more, are moved: all, or, if it is drawn, a part. */
size_t memory_part(memory_world *world, const char *fault, size_t size);

#endif
