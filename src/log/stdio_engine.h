/*
 * The engine "stdio": standard input and output as lines of text (lines.h). Floor: log.
 *
 *     input ---> buffer ---> lines ---> the group, whose consumer reads them in place
 *     publishes ---> batch that waits ---> batch that is written ---> output
 *
 * A handle has descriptors of its own for both (terminal.h), and a thread, which alone reads and writes.
 *
 * 1. The thread polls for what is wanted: `polled`, which it sets under the state's lock. An operation
 *    that has changed what is wanted finds, under the same lock, that it is not what is polled, and
 *    writes to the pipe `wake`. So the poll ends, now or when it begins. An operation that looks before
 *    `polled` is set has made its change before, and the thread sees that.
 * 2. Reads and writes do not block, so the thread ends soon after it is asked to. The descriptor does not
 *    block, the call does not, or the poll has said that so many bytes can be moved. The last is so of a
 *    pipe or terminal that could not be reopened. Only the disk of a file is waited for.
 * 3. A line is whole before `tail` reaches it, under the lock. Its memory is freed after `acknowledged`
 *    has passed it, and before its place in the ring has another line. A line that a consumer reads is
 *    with it, so it is after `acknowledged`.
 * 4. There are lines after `acknowledged` up to `tail`, which are at most `window`, so each has a place
 *    of its own in the ring of lines. The thread alone adds them, and the group's two numbers only grow,
 *    so room that it has seen stays.
 * 5. The bytes of a batch that is taken are the thread's. The rest of it is under the lock.
 */
#ifndef BIDE_SRC_LOG_STDIO_H
#define BIDE_SRC_LOG_STDIO_H

#include "state.h"

#include "bide/descriptor.h"

#include <pthread.h>

enum { STDIO_READS = 1, STDIO_WRITES = 2 };

struct stdio_line {
    const char *why; /* it is no message; or NULL */
    uint64_t begin;  /* the bytes of all lines before it */
    struct log_slot slot;
    uint8_t bytes[];
};

/* How calls are kept from blocking. */
enum stdio_kind {
    STDIO_DIRECT,  /* the descriptor does not block, or is a file's */
    STDIO_SOCKET,  /* the call does not block */
    STDIO_PIPE,    /* the poll has said that PIPE_BUF bytes can be written */
    STDIO_TERMINAL /* the poll has said that a byte can be written */
};

/* Standard input or output. */
struct stdio_end {
    bide_descriptor descriptor;
    int status; /* 0, or why it is not open */
    enum stdio_kind kind;
};

struct log_stdio {
    bide_log log;
    struct log_state state;
    struct stdio_end input, output;
    pthread_t thread;
    int wake[2]; /* a pipe */

    /* under the state's lock */
    bool ends;
    unsigned polled;           /* what the thread waits for: 1 */
    struct stdio_line **lines; /* a ring: of number n at n & mask */
    uint32_t mask;
    uint64_t freed; /* the number of the newest line whose memory was freed */
    uint64_t bytes; /* of all lines that were read */
    uint64_t written_lines;
    int torn; /* why a write ended within a line; nothing is published behind it */
    struct bide_log_batch_ *writing;

    /* the thread's */
    size_t written; /* bytes of `writing` */
    char *buffer;
    size_t begin, scanned, end, capacity; /* from `begin` to `scanned` there is no line feed */
    bool is_skipping;                     /* a line that is too long */
    bool is_at_end;
};

/* Frees the memory of lines up to this number. Under the lock. */
void bide_stdio_free_lines_(struct log_stdio *stdio, uint64_t up_to);

/* The bits of STDIO_READS and STDIO_WRITES that the thread has to do now. Under the lock. */
unsigned bide_stdio_wants_(const struct log_stdio *stdio);

int bide_stdio_thread_start_(struct log_stdio *stdio);
void bide_stdio_thread_end_(struct log_stdio *stdio);
void bide_stdio_wake_(struct log_stdio *stdio);

#endif
