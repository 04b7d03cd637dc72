/*
 * The operation table: one constant row for each bide_io_code. A row holds what every back end has
 * to know of an operation, so no other file lists codes, except the two tables that belong to one
 * back end:
 *
 *     operation_table.c    all that is common, and the plain system call
 *     uring_rows.c         how io_uring prepares an entry
 *     simulation/calls.c   how the io in memory does it
 *
 * To add an operation, add its code (bide/extend/io.h) and one row to each table. The compiler
 * rejects a table that is too short, and tests/io/operation_table_test.c names every column that is
 * missing.
 */
#ifndef BIDE_IO_OPERATION_TABLE_H
#define BIDE_IO_OPERATION_TABLE_H

#include "bide/extend/io.h"

/* The member of bide_io_arguments that an operation uses. */
typedef enum bide_io_shape_ {
    IO_SHAPE_NONE,
    IO_SHAPE_BYTES,
    IO_SHAPE_VECTOR,
    IO_SHAPE_MESSAGE,
    IO_SHAPE_BATCH,
    IO_SHAPE_LENT,
    IO_SHAPE_ACCEPT,
    IO_SHAPE_ADDRESS,
    IO_SHAPE_LISTEN,
    IO_SHAPE_OPEN,
    IO_SHAPE_PATH,
    IO_SHAPE_NAMES,
    IO_SHAPE_COPY,
    IO_SHAPE_SPLICE,
    IO_SHAPE_SEND_FILE,
    IO_SHAPE_MAP,
    IO_SHAPE_RANGE,
    IO_SHAPE_POLL,
} bide_io_shape_;

/* How a back end starts an operation. */
typedef enum bide_io_start_ {
    IO_START_IN_LINE,    /* in its line, if it cannot be done at once */
    IO_START_AT_ONCE,    /* it never waits: its call completes it */
    IO_START_OPENS,      /* in its line, after the socket was opened: IO_OPENED */
    IO_START_BY_BACK_END /* a back end starts it for itself; it has no coroutine and no call */
} bide_io_start_;

/* Whether its system call may block the thread, so that the call needs the file pool. */
typedef enum bide_io_blocks_ {
    IO_BLOCKS_NEVER,
    IO_BLOCKS_ON_FILE, /* on a descriptor that does not poll: IO_FILE */
    IO_BLOCKS_ALWAYS,
} bide_io_blocks_;

/* The descriptor that an operation opens. */
typedef enum bide_io_opens_ {
    IO_OPENS_NOTHING,
    IO_OPENS_OWN,   /* operation->descriptor, which is closed until then */
    IO_OPENS_OTHER, /* one of its arguments */
} bide_io_opens_;

/* The meaning of a result that is not an error. */
typedef enum bide_io_result_ {
    IO_RESULT_STATUS,     /* none: 0, or the call has stored it itself */
    IO_RESULT_COUNT,      /* the count */
    IO_RESULT_PART,       /* it is added to the count; a whole operation continues to its length */
    IO_RESULT_CONNECTED,  /* its socket is connected */
    IO_RESULT_CONNECTION, /* the number of an accepted connection */
    IO_RESULT_FILE,       /* the number of an open file */
    IO_RESULT_EVENTS,     /* the events that a poll has found */
} bide_io_result_;

typedef struct bide_io_row_ {
    const char *name; /* unique */

    /*
     * The plain system call. It returns a result or a negative errno. It does not wait, unless it
     * may block. NULL: IO_START_BY_BACK_END.
     */
    ptrdiff_t (*call)(bide_io_operation *operation);

    /*
     * Undoes an operation whose result nobody will use: it succeeded after its coroutine was
     * destroyed, or it was cancelled while it had a socket open. NULL: there is nothing to undo.
     */
    void (*release)(bide_io_operation *operation);

    uint8_t direction; /* its line: BIDE_IO_INPUT, _OUTPUT or _FREE */
    uint8_t shape;     /* bide_io_shape_ */
    uint8_t start;     /* bide_io_start_ */
    uint8_t blocks;    /* bide_io_blocks_ */
    uint8_t opens;     /* bide_io_opens_ */
    uint8_t result;    /* bide_io_result_ */

    /* Its arguments have an offset. At an offset of 0 or more it needs no order: BIDE_IO_FREE. */
    bool is_positioned;

    /* Even a back end that can wait for its completion makes the call first, and then polls. */
    bool is_tried_first;

    /* Its descriptor may be in blocking mode, since others share it: it is polled before the call. */
    bool polls_first;

    /* A count below its length means that a TCP socket has no more bytes. */
    bool empties_when_short;

    /* Its arguments belong to one loop, so it cannot be forwarded to another. */
    bool is_of_one_loop;
} bide_io_row_;

extern const bide_io_row_ bide_io_rows_[]; /* (as many as codes) */

BIDE_INLINE const bide_io_row_ *bide_io_row_of_(const bide_io_operation *operation)
{
    return &bide_io_rows_[operation->code];
}

/*
 * The length that an operation moves: bytes, or messages of a batch. 0: it moves none, or its
 * length is not known before.
 */
size_t bide_io_length_of_shape_(const bide_io_operation *operation);
BIDE_INLINE size_t bide_io_length_(const bide_io_operation *operation)
{
    return bide_io_row_of_(operation)->shape == IO_SHAPE_BYTES
               ? operation->arguments.bytes.size
               : bide_io_length_of_shape_(operation);
}

/*
 * Whether code has a row in the tables of io_uring (true where the library has none) and of the io
 * in memory.
 */
bool bide_uring_has_row_(bide_io_code code);
bool bide_sim_has_row_(bide_io_code code);

#endif
