/*
 * Splices: a call that does not wait, and a poll of the side that was not ready.
 *
 *     from --splice--> to           from --fill--> pipe --drain--> to
 *
 * Threads: a splice is a coroutine of the loop's thread.
 *
 * 1. The call is made on the loop's thread, even on io_uring: as an entry it always goes to a
 *    thread of the kernel, which costs more than the call.
 * 2. The call is made between two polls, and counted at once. So a poll that ends early leaves no
 *    byte uncounted.
 * 3. `held`, the bytes in the pipe, changes by the count of a splice to or from the pipe, when that
 *    splice has ended, or its coroutine is destroyed (`finally`).
 */
#define _GNU_SOURCE
#include "bide/splice.h"

#include "bide/coroutine.h"
#include "bide/file.h"

#include "splice_calls.h"

#include <fcntl.h>
#include <unistd.h>

enum { MAX_PIECE = 65536 };

static ptrdiff_t splice_in_system(const bide_splice_operation *splicing)
{
    int from = bide_descriptor_fd(splicing->from), to = bide_descriptor_fd(splicing->to);
    ptrdiff_t result;
    io_sigpipe held;
    bide_io_hold_sigpipe_(&held);
    do {
        result = splicing->keeps ? tee(from, to, splicing->max, SPLICE_F_NONBLOCK)
                                 : splice(from, NULL, to, NULL, splicing->max, SPLICE_F_NONBLOCK);
        if (result < 0)
            result = io_error();
    } while (result == -EINTR);
    bide_io_release_sigpipe_(&held,
                             result == -EPIPE || (result > 0 && (size_t)result < splicing->max));
    return result;
}

static ptrdiff_t splice_now(const bide_splice_operation *splicing, bide_io *io)
{
    const bide_io_calls *calls = io_calls(io);
    if (calls == NULL)
        return splice_in_system(splicing);
    return (splicing->keeps ? calls->tee : calls->splice)(
        io, bide_descriptor_fd(splicing->from), bide_descriptor_fd(splicing->to), splicing->max);
}

static bool splice_ends_are_open(const bide_splice_operation *splicing)
{
    return bide_descriptor_is_open(splicing->from) && bide_descriptor_is_open(splicing->to);
}

static int splice_check(const bide_io *io, bide_splice_operation *splicing)
{
    if (io == NULL)
        return -ENOTSUP;
    if (!splice_ends_are_open(splicing))
        return -EBADF;
    if (io_calls(io) != NULL)
        return 0;
    bide_io_probe_(splicing->from);
    bide_io_probe_(splicing->to);
    return ((splicing->from->bits | splicing->to->bits) & IO_FILE) != 0 ? -EOPNOTSUPP : 0;
}

static bool splice_input_is_ready(bide_io *io, bide_descriptor *descriptor)
{
    struct pollfd asked = {bide_descriptor_fd(descriptor), POLLIN, 0};
    return io_calls(io) != NULL ? io_calls(io)->poll(io, asked.fd, POLLIN) != 0
                                : poll(&asked, 1, 0) != 0;
}

/* Polls the side that is not ready. */
static bide_awaiter *splice_poll(bide_splice_operation *splicing, bide_io *io)
{
    return splice_input_is_ready(io, splicing->from)
               ? bide_poll(&splicing->poll, splicing->to, POLLOUT)
               : bide_poll(&splicing->poll, splicing->from, POLLIN);
}

bide_coroutine(splice_body)
{
    bide_begin(splice_body, bide_splice_operation * self);
    self->status = splice_check(bide_io_of_frame_(bide_this_frame(), __LINE__), self);
    if (self->status < 0)
        bide_return(self->status);
    for (;;) {
        if (!splice_ends_are_open(self))
            bide_return(-EPIPE);
        ptrdiff_t result = splice_now(self, io_of_context(bide_this_context()));
        if (result >= 0)
            self->count = (size_t)result;
        if (result != -EAGAIN)
            bide_return(result < 0 ? (int)result : 0);
        bide_await_status(self->status, splice_poll(self, io_of_context(bide_this_context())));
        if (self->status < 0)
            bide_return(self->status);
    }
    bide_end();
}

static bide_awaiter *splice_init(bide_splice_operation *splicing, bide_descriptor *from,
                                 bide_descriptor *to, size_t max, bool keeps)
{
    splicing->from = from;
    splicing->to = to;
    splicing->max = max;
    splicing->keeps = keeps;
    splicing->count = 0;
    return bide_task_init(&splicing->task, &splice_body);
}

bide_awaiter *bide_splice(bide_splice_operation *splicing, bide_descriptor *from,
                          bide_descriptor *to, size_t max)
{
    return splice_init(splicing, from, to, max, false);
}

bide_awaiter *bide_tee(bide_splice_operation *splicing, bide_descriptor *from, bide_descriptor *to,
                       size_t max)
{
    return splice_init(splicing, from, to, max, true);
}

/* ---- Copying between two descriptors ---- */

int bide_copy_between_init(bide_between *copy, bide_descriptor *from, bide_descriptor *to)
{
    int fds[2];
    bide_io *io = io_of(from);
    bide_descriptor_init_closed(&copy->input);
    bide_descriptor_init_closed(&copy->output);
    copy->from = from;
    copy->to = to;
    copy->count = 0;
    copy->held = 0;
    if (io_calls(io) == NULL) {
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
            return -errno;
        bide_descriptor_init(&copy->input, fds[0]);
        bide_descriptor_init(&copy->output, fds[1]);
        return 0;
    }
    int error = io_calls(io)->pipe(io, fds);
    if (error != 0)
        return error;
    bide_descriptor_init(&copy->input, fds[0]);
    bide_descriptor_init(&copy->output, fds[1]);
    bide_io_adopt(io, &copy->input);
    bide_io_adopt(io, &copy->output);
    return 0;
}

void bide_copy_between_destroy(bide_between *copy)
{
    bide_close(&copy->input);
    bide_close(&copy->output);
    copy->held = 0;
}

static bide_awaiter *between_fill(bide_between *copy)
{
    copy->is_filling = true;
    return bide_splice(&copy->splice, copy->from, &copy->output, MAX_PIECE);
}

static bide_awaiter *between_drain(bide_between *copy)
{
    copy->is_draining = true;
    return bide_splice(&copy->splice, &copy->input, copy->to, copy->held);
}

/* 3 */
static void between_count(bide_between *copy)
{
    bide_assert(!copy->is_filling || !copy->is_draining);
    bide_assert(!copy->is_draining || copy->splice.count <= copy->held);
    if (copy->is_filling)
        copy->held += copy->splice.count;
    if (copy->is_draining) {
        copy->held -= copy->splice.count;
        copy->count += copy->splice.count;
    }
    copy->is_filling = copy->is_draining = false;
}

bide_coroutine(between_body)
{
    bide_begin(between_body, bide_between * self);
    for (;;) {
        while (self->held != 0) {
            bide_await_status(self->status, between_drain(self));
            between_count(self);
            if (self->status < 0)
                bide_return(self->status);
        }
        bide_await_status(self->status, between_fill(self));
        between_count(self);
        if (self->status < 0 || self->held == 0)
            bide_return(self->status);
    }
    bide_finally();
    between_count(self);
    bide_end();
}

bide_awaiter *bide_copy_between(bide_between *copy)
{
    copy->is_filling = copy->is_draining = false;
    return bide_task_init(&copy->task, &between_body);
}
