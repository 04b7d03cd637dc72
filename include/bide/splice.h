/*
 * Moving bytes between descriptors inside the kernel: bide_splice to or from a pipe, bide_copy_between
 * any two that are not files, bide_tee from one pipe to another without consuming. Floor: io.
 *
 *     bide_try(bide_splice(&self->splice, &self->pipe, &self->socket, 65536));
 *     ... self->splice.count bytes were moved; 0: the end of self->pipe
 *
 *     error = bide_copy_between_init(&copy, &one, &other);    // has a pipe of its own
 *     ...
 *     bide_try(bide_copy_between(&self->copy));               // until the end of `one`
 *     ... self->copy.count bytes were moved
 *     bide_copy_between_destroy(&self->copy);
 *
 *     bide_try(bide_tee(&self->splice, &self->input, &self->log, 65536));  // they stay in `input`
 *     bide_try(bide_splice(&self->splice, &self->input, &self->socket, self->splice.count));
 *
 * Two copies, one in each direction, make a proxy. A copy reads more only when everything it has read
 * is written, at most 64 KB at a time. So a slow receiver slows down its sender.
 *
 * The loop's thread uses all of this. Each descriptor must be a pipe or in non-blocking mode. Files
 * are rejected (-EOPNOTSUPP), because they may block the loop: use bide_send_file. A cancelled
 * operation loses nothing: its `count`, and `held` of a copy, say where the bytes are.
 *
 * Why it is correct: src/io/splice.c.
 */
#ifndef BIDE_SPLICE_H
#define BIDE_SPLICE_H

#include "bide/extend/io.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* One splice. The caller's memory until it has ended. */
typedef struct bide_splice_operation {
    bide_task task;
    bide_descriptor *from;
    bide_descriptor *to;
    size_t max;
    size_t count; /* of bytes that were moved, whatever it ended with */
    bool keeps;   /* of a tee */
    int status;
    bide_io_operation poll;
} bide_splice_operation;

/*
 * Moves up to `max` bytes, 1 or more, as soon as there are some and there is room. A count of 0 is
 * the end of `from`. It waits in no line: nobody else reads from `from`, or writes to `to`, while
 * it waits. Moving bytes to an end that is gone ends with -EPIPE, and raises no signal.
 * Threads: the loop's. Errors: those of splice(2): -EINVAL (none of them is a pipe; or one cannot be
 * spliced), -EPIPE (also: closed meanwhile); -EBADF (closed before), -EOPNOTSUPP (a file),
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: if one of them is not ready. Cancel-safe: yes,
 * by `count`: nothing is moved after it was cancelled. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_splice(bide_splice_operation *operation, bide_descriptor *from,
                          bide_descriptor *to, size_t max);

/*
 * The same from a pipe to another pipe, but the bytes stay in `from` as well: `count` is how many of
 * the first in there are in `to` now. Awaited again, it begins with the first in there again; so take
 * them first.
 * Threads: the loop's. Errors: as bide_splice; -EINVAL (one is no pipe, or both are ends of one).
 * Suspends: if one of them is not ready. Cancel-safe: yes, by `count`. Progress: that of the system
 * calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_tee(bide_splice_operation *operation, bide_descriptor *from, bide_descriptor *to,
                       size_t max);

/* A copy. The caller's memory until bide_copy_between_destroy. */
typedef struct bide_between {
    bide_task task;
    bide_descriptor *from;
    bide_descriptor *to;
    bide_descriptor input;  /* of its pipe: what is held is read here */
    bide_descriptor output; /* and was written here */
    uint64_t count;         /* of bytes that `to` has got, ever */
    size_t held;            /* of bytes that were taken from `from`, and are in the pipe */
    int status;
    bool is_filling;
    bool is_draining;
    bide_splice_operation splice;
} bide_between;

/*
 * Makes the pipe of a copy from `from` to `to`. It has two descriptors.
 * Threads: any; in memory the loop's. Errors: -EMFILE, -ENFILE; it is ended then. Progress: that of
 * the system call.
 */
int bide_copy_between_init(bide_between *copy, bide_descriptor *from, bide_descriptor *to);

/*
 * Moves all bytes that come, until the end of `from`. When it is cancelled, or fails, `count` is what
 * `to` has got and `held` what is in the pipe: nothing is lost. It may be awaited again, and
 * continues with that; or what is held is read from copy->input. Otherwise as bide_splice.
 * Threads: the loop's. Errors: as bide_splice. Suspends: if one of them is not ready. Cancel-safe:
 * yes, by `count` and `held`. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_copy_between(bide_between *copy);

/*
 * Closes the pipe, with what is held. One that has ended is left as it is.
 * Threads: the loop's. Progress: as bide_close.
 */
void bide_copy_between_destroy(bide_between *copy);

BIDE_EXTERN_C_END

#endif
