/*
 * The io_uring back end of a loop, in parts:
 *
 *     uring.c           the life of an operation: into the ring, completed, ended; and its argument
 *     uring_rows.c      how the entry of each operation is prepared
 *     uring_accept.c    connections that the kernel accepts as a stream, for acceptors
 *     uring_recv.c      data that the kernel receives as a stream, for receivers
 *     uring_buffers.c   buffers that are provided to the kernel, for buffer pools
 *     uring_files.c     operations on files: which the ring takes, and how it does opens and stats
 *     uring_ring.c      the ring, how the loop sleeps in it, and the table of the back end
 *
 * All of it runs on the loop's thread. It is only included if the library is built with liburing.
 */
#ifndef BIDE_IO_URING_H
#define BIDE_IO_URING_H

#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>

enum { URING_OPCODES = 64 }; /* the opcodes that this library knows are below */

struct loop_uring {
    struct io_uring ring;
    bool is_armed;      /* an entry in the ring reports posts */
    bool has_futex;     /* it waits on the word; otherwise it polls the descriptor */
    uint64_t supported; /* a bit for each opcode below URING_OPCODES */
    uint16_t next_group;
    unsigned opens;        /* that threads of the kernel have (uring.c, 9) */
    unsigned max_opens;    /* of these */
    bool reports_no_usage; /* the kernel does not report whether a send without a copy copied */
    bool has_buffers;      /* the kernel may take provided buffers */
    bool has_streams;      /* it has received a stream: uring_recv.c */
    bool lacks_streams;    /* it cannot */
    struct statx *stats; /* what the kernel fills in (uring_files.c, 1); NULL: not needed so far */
    uint64_t free_stats; /* a bit for each that no operation has */
};

BIDE_INLINE bool bide_uring_has_opcode_(const struct loop_uring *uring, unsigned opcode)
{
    return opcode < URING_OPCODES && (uring->supported >> opcode & 1) != 0;
}

/* ---- Entries ---- */

/* The kind of an entry: the low bits of its data, whose other bits are an address. */
enum { URING_OF_OPERATION = 0, URING_OF_CANCEL = 1, URING_OF_LOOP = 2, URING_KINDS = 3 };

/* A new entry. Submits the queue if it is full. */
BIDE_INLINE struct io_uring_sqe *bide_uring_new_entry_(struct loop_uring *uring)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&uring->ring);
    while (entry == NULL) {
        io_uring_submit(&uring->ring);
        entry = io_uring_get_sqe(&uring->ring);
    }
    return entry;
}

BIDE_INLINE void bide_uring_set_data_(struct io_uring_sqe *entry, const void *data, unsigned kind)
{
    bide_assert(((uintptr_t)data & URING_KINDS) == 0);
    entry->user_data = (uintptr_t)data | kind;
}

/* ---- Rows (uring_rows.c) ---- */

/* How io_uring carries an operation out, beside its row in the operation table. */
typedef struct uring_row {
    uint8_t opcode;   /* of its entry; URING_OPCODES: there is none, so the file pool has it */
    bool is_required; /* a kernel without the opcode is not supported */

    /*
     * Prepares the entry for the part of the operation that is not done. NULL: its entry is a poll,
     * or it has none.
     */
    void (*prepare)(struct io_uring_sqe *entry, const bide_io_operation *operation);
} uring_row;

extern const uring_row bide_uring_rows_[]; /* (as many as codes) */

/*
 * A write at a file's own position. If it is short, kernels (6.18 among them) leave the position where
 * it was, and the next part would overwrite the first. A read by O_DIRECT never moves it. So the entry
 * names the position, which is moved here when `moved` bytes were written or read. A file that each
 * write appends to has its position at its end.
 */
bool bide_uring_moves_position_(const bide_io_operation *operation);
void bide_uring_move_position_(const bide_io_operation *operation, size_t moved);

/* ---- Operations (uring.c) ---- */

extern const bide_io_table bide_uring_operations_;

/* Puts an operation into the ring, for the part of it that is not done. */
void bide_uring_put_(struct loop_uring *uring, bide_io_operation *operation);

/* Puts a cancel of an operation into the ring, if the ring has the operation but no cancel of it. */
void bide_uring_put_cancel_(struct loop_uring *uring, bide_io_operation *operation);

/* Makes the calls of an operation, and ends it, or puts it into the ring. */
void bide_uring_try_(bide_loop *loop, bide_io_operation *operation);

/* Ends an operation that is not in the ring. The next of its line enters the ring. */
void bide_uring_end_(bide_loop *loop, bide_io_operation *operation, bide_io_outcome outcome);

/* Takes as many completions as a turn may. */
void bide_uring_reap_(bide_loop *loop);

/* The entry that reports posts has completed (uring_ring.c). */
void bide_uring_woken_(bide_loop *loop);

/* ---- Acceptors (uring_accept.c) ---- */

/* The acceptor of an accept; NULL: it is a plain one, or no accept. */
BIDE_INLINE struct bide_acceptor *bide_uring_acceptor_of_(const bide_io_operation *operation)
{
    return operation->code == BIDE_IO_ACCEPT ? operation->arguments.accept.acceptor : NULL;
}

/*
 * Gives connections that are kept to the accepts that wait for them. If there are not enough, the
 * kernel accepts more.
 */
void bide_uring_serve_(bide_loop *loop, struct bide_acceptor *acceptor);

/* The stream of an acceptor has accepted a connection; has ended. */
void bide_uring_accepted_(bide_loop *loop, bide_io_operation *stream, int fd);
void bide_uring_stream_ended_(bide_loop *loop, bide_io_operation *stream, int result);

/* ---- Receivers (uring_recv.c) ---- */

/* The receiver of an operation, if the kernel receives for it as a stream; or NULL. */
struct bide_receiver *bide_uring_receiver_of_(const bide_io_operation *operation);

/* Gives a chunk that is kept to the operation that waits for it. Otherwise the kernel receives more. */
void bide_uring_serve_receiver_(bide_loop *loop, struct bide_receiver *receiver);

/* The stream of a receiver has received into a buffer; has ended. */
void bide_uring_received_(bide_loop *loop, bide_io_operation *stream, int result, unsigned flags);
void bide_uring_recv_stream_ended_(bide_loop *loop, bide_io_operation *stream, int result);

/* ---- Files (uring_files.c) ---- */

/*
 * Whether the ring takes an operation that blocks always. If so, the operation has what it needs, until
 * bide_uring_give_file_back_. Otherwise the file pool makes its call.
 */
bool bide_uring_take_file_(struct loop_uring *uring, bide_io_operation *operation);

/* Such an operation is in the ring no more. */
void bide_uring_give_file_back_(struct loop_uring *uring, bide_io_operation *operation);

/* Fills in the caller's memory of a stat that has succeeded. Returns its result. */
int bide_uring_end_stat_(bide_io_operation *operation);

/* Whether an entry has failed where more calls may succeed, which the file pool makes. */
bool bide_uring_needs_thread_(const bide_io_operation *operation, ptrdiff_t result);

/* (of rows) */
void bide_uring_prepare_open_(struct io_uring_sqe *entry, const bide_io_operation *operation);
void bide_uring_prepare_open_temporary_(struct io_uring_sqe *entry,
                                        const bide_io_operation *operation);
void bide_uring_prepare_stat_(struct io_uring_sqe *entry, const bide_io_operation *operation);
void bide_uring_prepare_statx_(struct io_uring_sqe *entry, const bide_io_operation *operation);

/* ---- Buffer pools (uring_buffers.c) ---- */

/*
 * Has the kernel take buffers of the pool, if the pool is used for the first time. Otherwise, or if
 * the kernel does not support it, receives are made after a poll.
 */
void bide_uring_enter_pool_(bide_loop *loop, struct bide_buffer_pool *pool);

/* The kernel has taken a buffer for a receive. */
void bide_uring_take_buffer_(bide_io_operation *operation, int result, unsigned flags);

/*
 * A receive had data, and the kernel had no buffer for it: it is put into the ring again, or waits.
 */
void bide_uring_found_no_buffer_(bide_loop *loop, bide_io_operation *operation);

#endif
