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

#include "../io/operation.h"
#include "sim_loop.h"

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

bide_next bide_simulated_event_step_(bide_frame *frame, unsigned depth);

/* What the trace says of an event; a point for bide_simulated_event_init_. */
#define MEMORY_EVENT(name, text)                                                            \
    static const bide_coroutine_code name##_code = {bide_simulated_event_step_, text, NULL, NULL, NULL}; \
    static const bide_point name = BIDE_POINT_START(&name##_code)

void bide_simulated_event_init_(memory_event *event, memory_world *world, const bide_point *point,
                       void (*happens)(memory_event *event));
void bide_simulated_event_set_(memory_event *event, uint64_t time); /* one that is not set */
void bide_simulated_event_clear_(memory_event *event);              /* if it is set */

/* ---- Bytes of an operation, in pieces ---- */

typedef struct memory_bytes {
    const struct iovec *vectors; /* what is left begins in the first, at `offset` */
    size_t offset;
    size_t left;
} memory_bytes;

void bide_simulated_bytes_init_(memory_bytes *bytes, const struct iovec *vectors, size_t count, size_t skip);
void bide_simulated_bytes_take_(memory_bytes *bytes, void *to, size_t size);
void bide_simulated_bytes_put_(memory_bytes *bytes, const void *from, size_t size);

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
void bide_simulated_node_init_(memory_node *node, memory_world *world, const memory_kind *kind);
void bide_simulated_node_hold_(memory_node *node);
void bide_simulated_node_drop_(memory_node *node);

/* Those that wait for it are to be tried again, by bide_simulated_settle_. */
void bide_simulated_changed_(memory_node *node);
void bide_simulated_settle_(memory_world *world);

/* The error that it has, which it has no more. */
int bide_simulated_take_error_(memory_node *node);

/* ---- Numbers of descriptors ---- */

/* (far above those that the system gives) */
enum { MEMORY_FIRST = 1 << 30 };

typedef struct memory_slot {
    memory_node *node; /* NULL: free */
    bide_descriptor *descriptor; /* that waits, or has waited; or NULL */
    int next; /* of the same node */
} memory_slot;

/* Gives it the lowest number that is free, and the reference; -EMFILE, -ENOMEM. */
int bide_simulated_install_(memory_world *world, memory_node *node);

/* Is one to be had, for what opens one? 0, or -EMFILE, which may be drawn. */
int bide_simulated_has_number_(memory_world *world);
memory_slot *bide_simulated_slot_of_(const memory_world *world, int fd);
memory_node *bide_simulated_node_of_(const memory_world *world, int fd);
int bide_simulated_close_(memory_world *world, int fd);

/* Tries again what waits on the descriptor of a number (table.c). */
void bide_simulated_continue_(memory_world *world, bide_descriptor *descriptor);

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
int bide_simulated_bind_(memory_name *name, memory_node *node, const bide_address *address, int flags);

/* Gives a socket that connects to `to` a port of its own. */
int bide_simulated_bind_to_reach_(memory_name *name, memory_node *node, const bide_address *to);
void bide_simulated_unbind_(memory_name *name);

/* The socket that has an address; or a negative errno. `choice` is for those that share it. */
int bide_simulated_find_(memory_world *world, const bide_address *to, int type, uint32_t choice,
                memory_node **found);

/* Is it an address of a family that there is? 0, or a negative errno. */
int bide_simulated_check_address_(const bide_address *address);

/* How a socket of `family` sees an address of another version. */
void bide_simulated_see_address_(bide_address *address, int family);

/* ---- Options of sockets (options.c) ---- */

int bide_simulated_set_option_(memory_node *node, int level, int name, int value);
int bide_simulated_get_option_(memory_node *node, int level, int name, int *value);

/* What it was told, or else as a socket is at first. */
int bide_simulated_option_of_(const memory_node *node, int level, int name);

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

void bide_simulated_flow_init_(memory_flow *flow, memory_world *world, bool is_local);
void bide_simulated_flow_free_(memory_flow *flow);

/* Puts bytes, for which there is room, or a mark. `passed` goes with the first. 0 or -ENOMEM. */
int bide_simulated_flow_put_(memory_flow *flow, memory_bytes *bytes, size_t size, memory_passed *passed);
void bide_simulated_flow_mark_(memory_flow *flow, memory_mark mark);
size_t bide_simulated_flow_room_(const memory_flow *flow);

/* Takes up to what has arrived; what was passed with it is the caller's. */
size_t bide_simulated_flow_take_(memory_flow *flow, memory_bytes *bytes, bool peeks, memory_passed **passed);

/* Nobody will read what is in it. */
void bide_simulated_flow_drop_(memory_flow *flow);

/* What has not arrived never will, nor what is put from now on. */
void bide_simulated_flow_cut_(memory_flow *flow);

/* What arrives is told of (stream.c). */
void bide_simulated_stream_is_reset_(memory_node *reader, bool has_ended);
void bide_simulated_stream_bounces_(memory_node *writer);

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

extern const memory_kind bide_simulated_stream_kind_, bide_simulated_pipe_kind_;

BIDE_INLINE memory_stream *memory_stream_of(const memory_node *node)
{
    return (memory_stream *)bide_container_of(node, memory_stream, node);
}

memory_stream *bide_simulated_stream_new_(memory_world *world, int family);

/* Connects two that are connected to nothing. 0 or -ENOMEM. */
int bide_simulated_stream_join_(memory_stream *one, memory_stream *other);
void bide_simulated_stream_set_window_(memory_node *node, bool of_input, size_t window);
int bide_simulated_socket_pair_(memory_world *world, int *fds);
int bide_simulated_pipe_(memory_world *world, int *fds);

/* ---- Listeners (listener.c) ---- */

extern const memory_kind bide_simulated_listener_kind_;

/* Opens one: its number, or a negative errno. */
int bide_simulated_listen_(memory_world *world, const bide_address *address, int backlog, int flags);

/* Opens a stream that connects to an address: its number, or a negative errno. */
int bide_simulated_connect_(memory_world *world, const bide_address *to);

/* Is it connected? 0, a negative errno; -EAGAIN: not yet. */
int bide_simulated_connected_(memory_node *node);

/* Takes a connection: its number, or a negative errno. */
int bide_simulated_accept_(memory_node *node, bide_address *peer);

/* Where its address is, for a dump: nothing is read. */
const bide_address *bide_simulated_listener_address_(const memory_node *node);

/* It connects no more, or is not to be accepted. */
void bide_simulated_leave_listener_(memory_stream *stream);

/* ---- Datagrams (datagram.c) ---- */

extern const memory_kind bide_simulated_datagram_kind_;
int bide_simulated_open_datagrams_(memory_world *world, const bide_address *address, int flags);
void bide_simulated_datagrams_end_(memory_world *world);
const bide_address *bide_simulated_datagram_address_(const memory_node *node); /* as of a listener */

/* ---- Control data (control.c) ---- */

/* Takes what a message is to pass. 0 or a negative errno; *passed: NULL if there is nothing. */
int bide_simulated_passed_take_(memory_world *world, const struct msghdr *header, memory_passed **passed);

/* Gives it to who receives it; or to nobody. Sets the header's control data and flags. */
void bide_simulated_passed_give_(memory_node *receiver, memory_passed *passed, memory_message *message);
void bide_simulated_passed_free_(memory_passed *passed);

/* ---- Files (tree.c, file.c) ---- */

int bide_simulated_tree_create_(memory_world *world);
void bide_simulated_tree_destroy_(memory_world *world);
size_t bide_simulated_tree_size_(const memory_world *world); /* bytes of all files */

/* A socket's path. */
int bide_simulated_tree_bind_(memory_world *world, const char *path, memory_node *node, memory_inode **inode);
int bide_simulated_tree_find_(memory_world *world, const char *path, memory_node **node);
void bide_simulated_tree_unbind_(memory_world *world, memory_inode *inode);

extern const memory_kind bide_simulated_file_kind_;

/* Opens a file: its number. */
int bide_simulated_open_(memory_world *world, const char *path, int flags, unsigned mode);
int bide_simulated_seek_(memory_node *node, int64_t offset);

/* Reads and writes, at an offset, or, if that is -1, where the file is at; 0 or more, or an error. */
ptrdiff_t bide_simulated_file_read_(memory_node *node, memory_bytes *bytes, int64_t offset);
ptrdiff_t bide_simulated_file_write_(memory_node *node, memory_bytes *bytes, int64_t offset);

/* What is not of bytes: of an open file, and of the tree. As bide_io_call. */
ptrdiff_t bide_simulated_file_call_(memory_world *world, bide_io_operation *operation);

/* ---- What operations do (calls.c) ---- */

extern const bide_io_calls bide_simulated_calls_;

/* As bide_io_call. */
ptrdiff_t bide_simulated_call_(memory_world *world, bide_io_operation *operation);

/* ---- The io ---- */

typedef struct memory_tree memory_tree;

struct bide_memory_io {
    bide_io io; /* at the head */
    bide_sim_loop *loop;
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
    return rate != 0 && bide_sim_loop_fault_(world->loop, name, rate);
}

/* Describes a descriptor for a dump (describe.c). */
void bide_io_memory_describe_(const bide_io *io, int fd, struct bide_described_ *described);

/* How many of `size` bytes, 1 or more, are moved: all, or, if it is drawn, a part. */
size_t bide_simulated_part_(memory_world *world, const char *fault, size_t size);

#endif
