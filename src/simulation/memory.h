/*
 * The shared declarations of the io in memory.
 *
 *     table.c      the io: operations begin, wait and end
 *     calls.c      how each operation is done; calls on descriptors
 *     describe.c   descriptions for dumps
 *     node.c       numbers, the nodes that they refer to, and events
 *     names.c      the addresses of sockets
 *     options.c    options of sockets
 *     stream.c     connections and pipes
 *     listener.c   how connections are made
 *     flow.c       one direction of a connection
 *     datagram.c   sockets of datagrams
 *     control.c    descriptors and credentials in messages
 *     tree.c       names of files
 *     file.c       operations on files
 *
 * A file calls files that are further down in the list, and node.c. All of it runs on the thread of
 * a test loop, except describe.c.
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

typedef struct bide_memory_io sim_environment;
typedef struct memory_node memory_node;
typedef struct memory_host memory_host;
typedef struct memory_records memory_records;

/* ---- Events: something that happens at a time (node.c) ---- */

typedef struct memory_event {
    bide_timer timer;
    bide_frame frame; /* runs at that time */
    sim_environment *environment;
    const bide_point *point; /* its text in a trace */
    void (*happens)(struct memory_event *event);
    bool is_set;
} memory_event;

bide_next bide_sim_event_step_(bide_frame *frame, unsigned depth);

/* The text of an event in a trace: a point for bide_sim_event_init_. */
#define MEMORY_EVENT(name, text)                                                                \
    static const bide_coroutine_code name##_code = {bide_sim_event_step_, text, NULL, NULL, NULL}; \
    static const bide_point name = BIDE_POINT_START(&name##_code)

void bide_sim_event_init_(memory_event *event, sim_environment *environment, const bide_point *point,
                       void (*happens)(memory_event *event));
void bide_sim_event_set_(memory_event *event, uint64_t time); /* it is not set yet */
void bide_sim_event_clear_(memory_event *event);              /* if it is set */

/* ---- Bytes of an operation, in pieces ---- */

typedef struct memory_bytes {
    const struct iovec *vectors; /* the rest begins in the first, at `offset` */
    size_t offset;
    size_t left;
} memory_bytes;

void bide_sim_bytes_init_(memory_bytes *bytes, const struct iovec *vectors, size_t count, size_t skip);
void bide_sim_bytes_take_(memory_bytes *bytes, void *to, size_t size);
void bide_sim_bytes_put_(memory_bytes *bytes, const void *from, size_t size);

/* A message, as of recvmsg and sendmsg. */
typedef struct memory_message {
    memory_bytes bytes;
    int flags;
    struct msghdr *header; /* for the address and control data; or NULL */
} memory_message;

/* ---- Nodes: a descriptor refers to one ---- */

typedef struct memory_kind {
    const char *name;
    bool is_socket;
    bool is_file; /* its operations take a disk's time */

    /* The number of bytes, or a negative errno; -EAGAIN: not yet. NULL: -EINVAL. */
    ptrdiff_t (*receive)(memory_node *node, memory_message *message);
    ptrdiff_t (*send)(memory_node *node, memory_message *message);

    unsigned (*ready)(const memory_node *node); /* the events, as of poll(2) */
    int (*shut)(memory_node *node, int how);
    void (*get_name)(const memory_node *node, bide_address *address);
    int (*get_peer)(const memory_node *node, bide_address *address);
    void (*left)(memory_node *node); /* the last reference was dropped: releases its resources */
} memory_kind;

/* An option that was set. */
typedef struct memory_option {
    int level, name, value;
} memory_option;

enum { MEMORY_OPTIONS = 16 };

struct memory_node {
    const memory_kind *kind;
    sim_environment *environment;
    uint32_t references;
    int slot; /* the first of its numbers; -1: none */
    bool has_changed;
    memory_node *next_changed;
    int family, type; /* of a socket */
    int error;        /* a negative errno that the next call returns; 0 */
    memory_option options[MEMORY_OPTIONS];
    unsigned options_count;
};

/* The node is one of `kind`, with one reference. */
void bide_sim_node_init_(memory_node *node, sim_environment *environment, const memory_kind *kind);
void bide_sim_node_hold_(memory_node *node);
void bide_sim_node_drop_(memory_node *node);

/* Operations that wait on the node are to be retried, by bide_sim_settle_. */
void bide_sim_changed_(memory_node *node);
void bide_sim_settle_(sim_environment *environment);

/* Takes the pending error of a node. */
int bide_sim_take_error_(memory_node *node);

/* ---- Numbers of descriptors ---- */

/* (far above the numbers of the system) */
enum { MEMORY_FIRST = 1 << 30 };

typedef struct memory_slot {
    memory_node *node;           /* NULL: free */
    bide_descriptor *descriptor; /* on which operations wait, or have waited; or NULL */
    int next;                    /* the next number of the same node */
    const bide_point *opened_at; /* the await that opened it; NULL: not known */
    const char *opened_by;       /* the name of the operation */
} memory_slot;

/* Gives a node the lowest free number, which takes over the reference; -EMFILE, -ENOMEM. */
int bide_sim_install_(sim_environment *environment, memory_node *node);

/* Whether a number is free. 0, or -EMFILE, which may be drawn. */
int bide_sim_has_number_(sim_environment *environment);
memory_slot *bide_sim_slot_of_(const sim_environment *environment, int fd);
memory_node *bide_sim_node_of_(const sim_environment *environment, int fd);
int bide_sim_close_(sim_environment *environment, int fd);

/* Retries the operations that wait on a descriptor (table.c). */
void bide_sim_retry_(sim_environment *environment, bide_descriptor *descriptor);

/* ---- Names of sockets (names.c) ---- */

enum { MEMORY_NAMES = 256 };

typedef struct memory_inode memory_inode;

/* The name of a bound socket. */
typedef struct memory_name {
    struct memory_name *next;
    struct memory_name **place; /* NULL: not bound */
    memory_node *node;
    int type;
    uint16_t port;
    uint8_t ip[16]; /* of version 4 as in version 6 */
    bool is_any, is_v6_only, shares_port;
    bool is_found; /* it listens, or receives; otherwise it only keeps the port */
    bide_address address;
    memory_inode *inode; /* of its path */
} memory_name;

/* Binds it to `address`. The name gets the address that was chosen. */
int bide_sim_bind_(memory_name *name, memory_node *node, const bide_address *address, int flags);

/* Binds a socket that connects to `to` to a free port. */
int bide_sim_bind_to_reach_(memory_name *name, memory_node *node, const bide_address *to);
void bide_sim_unbind_(memory_name *name);

/*
 * Finds the socket of an address; or a negative errno. `choice` picks one of several that share it.
 */
int bide_sim_find_(sim_environment *environment, const bide_address *to, int type, uint32_t choice,
                memory_node **found);

/* Whether the family of an address is supported: 0, or a negative errno. */
int bide_sim_check_address_(const bide_address *address);

/* Converts an address to the version that a socket of `family` sees. */
void bide_sim_see_address_(bide_address *address, int family);

/* ---- Options of sockets (options.c) ---- */

int bide_sim_set_option_(memory_node *node, int level, int name, int value);
int bide_sim_get_option_(memory_node *node, int level, int name, int *value);

/* The value that was set, or the default. */
int bide_sim_option_of_(const memory_node *node, int level, int name);

/* ---- One direction of a connection (flow.c) ---- */

typedef struct memory_passed memory_passed;
typedef struct memory_piece memory_piece;

typedef enum memory_mark { MEMORY_BYTES, MEMORY_END, MEMORY_RESET } memory_mark;

typedef struct memory_flow {
    sim_environment *environment;
    memory_node *writer; /* NULL: gone */
    memory_node *reader;
    char *bytes; /* a ring */
    size_t capacity, begin;
    size_t arrived, travelling; /* bytes in the ring: to be read, and behind them */
    size_t window;
    memory_piece *first, *last; /* pieces that were put, and not read */
    memory_piece *next;         /* the first of them that has not arrived */
    bool has_ended;             /* its end has arrived */
    bool is_local;              /* pieces arrive at once */
    bool is_cut;                /* the connection has broken: nothing more arrives */
    memory_event arrival;
    memory_event pause; /* a short send: the writer has to wait */
} memory_flow;

void bide_sim_flow_init_(memory_flow *flow, sim_environment *environment, bool is_local);
void bide_sim_flow_free_(memory_flow *flow);

/* Puts bytes, for which there is room; a mark. `passed` goes with the first byte. 0 or -ENOMEM. */
int bide_sim_flow_put_(memory_flow *flow, memory_bytes *bytes, size_t size, memory_passed *passed);
void bide_sim_flow_mark_(memory_flow *flow, memory_mark mark);
size_t bide_sim_flow_room_(const memory_flow *flow);

/* Takes bytes that have arrived. Descriptors that were passed with them belong to the caller. */
size_t bide_sim_flow_take_(memory_flow *flow, memory_bytes *bytes, bool peeks, memory_passed **passed);

/* Its bytes will not be read. */
void bide_sim_flow_drop_(memory_flow *flow);

/* Nothing arrives any more: neither travelling pieces, nor pieces that are put later. */
void bide_sim_flow_cut_(memory_flow *flow);

/* Notifications of a flow to its ends (stream.c). */
void bide_sim_stream_is_reset_(memory_node *reader, bool has_ended);
void bide_sim_stream_bounces_(memory_node *writer);

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

extern const memory_kind bide_sim_stream_kind_, bide_sim_pipe_kind_;

BIDE_INLINE memory_stream *memory_stream_of(const memory_node *node)
{
    return (memory_stream *)bide_container_of(node, memory_stream, node);
}

memory_stream *bide_sim_stream_new_(sim_environment *environment, int family);

/* Connects two that are connected to nothing. 0 or -ENOMEM. */
int bide_sim_stream_join_(memory_stream *one, memory_stream *other);
void bide_sim_stream_set_window_(memory_node *node, bool of_input, size_t window);
int bide_sim_socket_pair_(sim_environment *environment, int *fds);
int bide_sim_pipe_(sim_environment *environment, int *fds);

/* ---- Listeners (listener.c) ---- */

extern const memory_kind bide_sim_listener_kind_;

/* Opens a listener: its number, or a negative errno. */
int bide_sim_listen_(sim_environment *environment, const bide_address *address, int backlog, int flags);

/* Opens a stream that connects to an address: its number, or a negative errno. */
int bide_sim_connect_(sim_environment *environment, const bide_address *to);

/* Whether it is connected: 0, or a negative errno; -EAGAIN: not yet. */
int bide_sim_connected_(memory_node *node);

/* Takes a connection: its number, or a negative errno. */
int bide_sim_accept_(memory_node *node, bide_address *peer);

/* The place of its address, for a dump. It reads nothing. */
const bide_address *bide_sim_listener_address_(const memory_node *node);

/* Removes a stream that connects, or waits to be accepted. */
void bide_sim_leave_listener_(memory_stream *stream);

/* ---- Datagrams (datagram.c) ---- */

extern const memory_kind bide_sim_datagram_kind_;
int bide_sim_open_datagrams_(sim_environment *environment, const bide_address *address, int flags);
void bide_sim_datagrams_end_(sim_environment *environment);
const bide_address *bide_sim_datagram_address_(const memory_node *node); /* as of a listener */

/* ---- Control data (control.c) ---- */

/* Collects the descriptors of a message. 0 or a negative errno; *passed: NULL if there are none. */
int bide_sim_passed_take_(sim_environment *environment, const struct msghdr *header, memory_passed **passed);

/* Gives them to the receiver, if it has a header. Sets the header's control data and flags. */
void bide_sim_passed_give_(memory_node *receiver, memory_passed *passed, memory_message *message);
void bide_sim_passed_free_(memory_passed *passed);

/* ---- Files (tree.c, file.c) ---- */

int bide_sim_tree_create_(sim_environment *environment);
void bide_sim_tree_destroy_(sim_environment *environment);
size_t bide_sim_tree_size_(const sim_environment *environment); /* bytes of all files */

/* A socket's path. */
int bide_sim_tree_bind_(sim_environment *environment, const char *path, memory_node *node,
                     memory_inode **inode);
int bide_sim_tree_find_(sim_environment *environment, const char *path, memory_node **node);
void bide_sim_tree_unbind_(sim_environment *environment, memory_inode *inode);

extern const memory_kind bide_sim_file_kind_;

/* Opens a file: its number. */
int bide_sim_open_(sim_environment *environment, const char *path, int flags, unsigned mode);
int bide_sim_seek_(memory_node *node, int64_t offset);

/*
 * Reads and writes at an offset, or, if that is -1, at the file's position. A count, or a negative
 * errno.
 */
ptrdiff_t bide_sim_file_read_(memory_node *node, memory_bytes *bytes, int64_t offset);
ptrdiff_t bide_sim_file_write_(memory_node *node, memory_bytes *bytes, int64_t offset);

/* Whether bytes may be copied from one file to another, as copy_file_range(2) checks it: 0, -EBADF or -EINVAL. */
int bide_sim_file_check_copy_(const memory_node *from, int64_t from_offset, const memory_node *to,
                              int64_t to_offset, size_t size);

/*
 * How the io in memory carries an operation out: a result or a negative errno; -EAGAIN: not yet.
 * `node` is that of the operation's descriptor; NULL: it has none.
 */
typedef ptrdiff_t memory_operation(sim_environment *environment, memory_node *node,
                                   bide_io_operation *operation);

/* Operations on files and their names, for the rows in calls.c. */
memory_operation bide_sim_call_open_, bide_sim_call_sync_, bide_sim_call_allocate_,
    bide_sim_call_truncate_, bide_sim_call_stat_, bide_sim_call_rename_, bide_sim_call_unlink_,
    bide_sim_call_make_directory_, bide_sim_call_read_directory_, bide_sim_call_open_temporary_,
    bide_sim_call_statx_, bide_sim_call_chmod_, bide_sim_call_readlink_, bide_sim_call_link_;

/* ---- Operations (calls.c) ---- */

/* The row of an operation: how the io in memory does it, beside its row in the operation table. */
typedef struct memory_row {
    memory_operation *call;

    /* The nodes that it works on. On another one it fails with `error`. */
    enum { MEMORY_ON_ANY, MEMORY_ON_SOCKET, MEMORY_ON_FILE } node;
    int error;

    /* Opens the operation's own descriptor: its number, or a negative errno. NULL: it opens none. */
    int (*open)(sim_environment *environment, bide_io_operation *operation);
} memory_row;

extern const memory_row bide_sim_rows_[]; /* (as many as codes) */

/* The call of an operation that the io in memory does not carry out: -ENOTSUP. */
memory_operation bide_sim_call_nothing_;

extern const bide_io_calls bide_sim_calls_;

/* As bide_io_call. */
ptrdiff_t bide_sim_io_call_(sim_environment *environment, bide_io_operation *operation);

/* Opens the operation's own descriptor. 0 or a negative errno. */
int bide_sim_open_own_(sim_environment *environment, bide_io_operation *operation);

/* `fd` is the number of `descriptor` from now on. */
void bide_sim_take_opened_(sim_environment *environment, bide_descriptor *descriptor, int fd);

/* ---- Dumps (describe.c) ---- */

/* As describe of a bide_io_table. */
void bide_sim_describe_(const bide_io *io, int fd, struct bide_described_ *described);

/* ---- The io ---- */

typedef struct memory_tree memory_tree;

struct bide_memory_io {
    bide_io io; /* at the head */
    bide_sim_loop *loop;
    bide_memory_io_options options;
    memory_slot *slots;
    int slots_count; /* there is memory for so many */
    int slots_open;
    int lowest; /* no number below is free */
    const bide_io_operation
        *carried; /* out, in this moment, for the frame that awaits it; or NULL */
    const bide_frame *carried_for;
    memory_node *first_changed, *last_changed;
    bool is_settling;
    memory_name *names[MEMORY_NAMES];
    uint16_t next_port[2];
    struct memory_receiver *blocked; /* senders of datagrams that wait for room in any queue */
    struct memory_datagram *travelling;
    memory_tree *tree;
    memory_host *hosts;
    memory_records *records;
    bide_memory_io *next; /* of the thread's */
    bide_memory_io **place;
};

/* hosts.c: the answers of resolve and resolve_records of bide_io_calls; and the end of all hosts. */
int bide_sim_resolve_(bide_io *io, const char *host, bide_address *addresses, unsigned max,
                      uint64_t *delay);
int bide_sim_resolve_records_(bide_io *io, const char *name, const struct bide_address *address,
                              unsigned kind, const struct bide_name_record **records,
                              uint64_t *delay);
void bide_sim_hosts_end_(sim_environment *environment);

BIDE_INLINE sim_environment *sim_environment_of(bide_io *io)
{
    return bide_container_of(io, sim_environment, io);
}

BIDE_INLINE bool memory_fault(sim_environment *environment, const char *name, uint32_t rate)
{
    return rate != 0 && bide_sim_loop_fault_(environment->loop, name, rate);
}

/* The part of `size` bytes that is moved, at least one: all, unless a part is drawn. */
size_t bide_sim_part_(sim_environment *environment, const char *fault, size_t size);

#endif
