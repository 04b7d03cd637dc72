/*
 * The life of an operation by io_uring. uring.h lists the other parts of the back end.
 *
 *     IO_IN_RING          from the operation's entry until its last completion is reaped
 *     IO_CANCEL_IN_RING   the same of a cancel of it
 *     IO_COMPLETED        between the two: it has completed, and its cancel has not
 *     IO_POLLING          its entry is a poll: its call is retried here
 *     IO_BYTES_IN_USE     sent without a copy: the kernel still reads its bytes
 *     IO_CANCELLING, IO_CLOSING, IO_FORGETTING   why it has to end early
 *
 * Threads: all of it runs on the loop's thread.
 *
 * 1. An operation ends when neither it nor a cancel of it is in the ring. Otherwise a late cancel
 *    would hit the next operation at that address, and the kernel would write to memory that has
 *    another use.
 * 2. The effect of an operation before its cancellation counts. If the kernel reports that it moved
 *    bytes, or accepted a connection, it has.
 * 3. Only the first operation of a line is in the ring. The kernel would serve several in any
 *    order, and mix what they send.
 * 4. Several datagrams are received or sent by one call, made here; the ring polls for it if need
 *    be (is_tried_first in the operation table). As entries each datagram would cost an entry and a
 *    completion, and they might be mixed: 3. A splice to a socket and a sendfile are such calls
 *    too: as an entry they would go to a thread of the kernel.
 * 5. A send without a copy completes twice: with its count, and when the kernel needs its bytes no
 *    longer. The first completion says whether a second follows. The operation is IO_IN_RING until
 *    the second, so it does not end before. The second arrives with the peer's acknowledgement,
 *    which may never arrive. If the thread has to wait for it, because the coroutine is destroyed
 *    or the socket closed, the connection is reset. Then the kernel needs nothing of it any more.
 *    If the operation ended earlier instead, the kernel would send whatever is written to that
 *    memory next. A timeout before the reset would block the loop, and the outcome would depend on
 *    the network.
 * 6. A receive is tried before it is polled for, even after a receive that took less than it asked
 *    for. Polling first saves a try if nothing has arrived. But with many connections most have
 *    data by the time of the next entry, and with a poll first their completions arrive 20 at a
 *    time, not all at once.
 * 7. The ring's poll also ends because the peer has closed its half of a connection, which nobody
 *    asked for. That stays so, and a poll that is put in again would end again at once. So the
 *    second poll reports changes, and stays in the ring until what was asked for is among them.
 * 8. The ring polls a terminal in blocking mode, and then makes a call that may wait, on the thread that
 *    enters the ring. A terminal that polls as writable may accept a single byte, and another process may
 *    take the input. So the entry goes to a thread of the kernel (IO_ON_THREAD). The ring polls for it
 *    before it occupies one.
 * 9. The ring tries an open in nonblocking mode first. A FIFO is then opened for reading although nobody
 *    writes, and fails to open for writing. That is known when it is too late: a writer that waited has
 *    seen the reader. So an open that may wait goes to a thread of the kernel at once. Other files that
 *    are in the cache would be opened here, and faster. The kernel has few such threads, and opens may
 *    hold them for ever. So at most half of them are in opens, and other opens go to the file pool, which
 *    has spare threads (blocking.c, 7). uring_files.c has the other operations on files.
 * 10. Between the moment when such a thread has found that the call would wait and the one when it polls,
 *    the kernel finds the entry in neither place, and a cancel has no effect. So a cancel that has found
 *    nothing, of an entry that has not completed, is put in again, a millisecond later. An entry whose call
 *    cannot be interrupted costs one cancel each time.
 * 11. For a connection the kernel wakes one of the accepts that wait at a listener, which may have other
 *    numbers and be in other processes. If that one is cancelled before it has accepted, the kernel wakes no
 *    other, and the connection waits until the next one comes. So an accept that was cancelled, or whose
 *    listener is closed, is tried once more here, when the kernel has let go of it. A connection from then on
 *    wakes another. (One that is destroyed has nowhere to put a connection, and is not tried.)
 */
#define _GNU_SOURCE
#include "acceptor.h"
#include "buffer_pool.h"
#include "calls.h"
#include "offload.h"
#include "receiver.h"

#if BIDE_HAS_LIBURING

#include "bide/address.h"

#include "uring.h"

/* In the second completion of a send without a copy: the kernel has copied the bytes. */
#define USAGE_COPIED (1u << 31)

enum { IO_ENDING_EARLY = IO_CANCELLING | IO_CLOSING | IO_FORGETTING };

static bool uring_is_in_ring(const bide_io_operation *operation)
{
    return (operation->state & (IO_IN_RING | IO_CANCEL_IN_RING)) != 0;
}

/* ---- Calls that are made here: 4 ---- */

/* Whether the ring only polls for the operation. */
static bool uring_only_polls(const bide_io_operation *operation)
{
    return bide_io_row_of_(operation)->is_tried_first || operation->code == BIDE_IO_POLL ||
           (bide_io_row_of_(operation)->shape == IO_SHAPE_LENT &&
            operation->arguments.provided.pool->ring == NULL);
}

void bide_uring_try_(bide_loop *loop, bide_io_operation *operation)
{
    if (bide_io_try_(operation))
        bide_uring_end_(loop, operation, BIDE_IO_DONE);
    else if (!io_waits_for_buffer(operation))
        bide_uring_put_(loop->uring, operation);
}

/* ---- Sends without a copy: 5 ---- */

/*
 * Turns a send without a copy into a plain one if the kernel cannot do it. True: the operation has
 * to enter the ring again.
 */
static bool uring_falls_back_to_copy(struct loop_uring *uring, bide_io_operation *operation,
                                     int result)
{
    if (result == -EINVAL && !uring->reports_no_usage) {
        uring->reports_no_usage = true; /* an older kernel: without the flag it can */
        return true;
    }
    /* (-ENOMEM: beyond what a process may pin, RLIMIT_MEMLOCK) */
    if (result != -EOPNOTSUPP && result != -EINVAL && result != -ENOMEM)
        return false;
    operation->code = BIDE_IO_SEND;
    operation->arguments.bytes.was_copied = true;
    return true;
}

/* Takes a completion: the count, or the release of the bytes. False: another one follows. */
static bool uring_take_zero_copy(bide_io_operation *operation, int *result, unsigned flags)
{
    if ((flags & IORING_CQE_F_NOTIF) != 0) {
        operation->arguments.bytes.was_copied |= ((unsigned)*result & USAGE_COPIED) != 0;
        *result = operation->status;
        operation->status = 0;
        operation->state &= (uint16_t)~IO_BYTES_IN_USE;
    } else if ((flags & IORING_CQE_F_MORE) != 0) {
        operation->status = *result;
        operation->state |= IO_BYTES_IN_USE;
        return false;
    }
    return true;
}

/*
 * Has the kernel release the bytes of a send without a copy now. (Those of a datagram it needs only
 * until it has sent it.)
 */
static void uring_reset_connection(const bide_io_operation *operation)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    int type = 0;
    socklen_t size = sizeof type;
    if ((operation->state & IO_BYTES_IN_USE) == 0)
        return;
    int fd = io_fd(operation);
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
    if (type == SOCK_STREAM && connect(fd, &nobody, sizeof nobody) != 0)
        shutdown(fd, SHUT_RDWR);
}

/* ---- Into the ring ---- */

/* The events that a poll entry waits for. */
static unsigned uring_wanted(const bide_io_operation *operation)
{
    if (operation->code == BIDE_IO_POLL)
        return operation->arguments.poll.wanted;
    return io_direction(operation) == BIDE_IO_INPUT ? POLLIN : POLLOUT;
}

/* Whether a poll's result has what it waits for: 7. */
static bool uring_found_wanted(const bide_io_operation *operation, ptrdiff_t result)
{
    return ((unsigned)result & (uring_wanted(operation) | POLLERR | POLLHUP | POLLNVAL)) != 0;
}

/* The ring polls, until the operation's call may be retried if it is no poll itself. */
static void uring_put_poll(struct loop_uring *uring, bide_io_operation *operation)
{
    struct io_uring_sqe *entry = bide_uring_new_entry_(uring);
    if ((operation->state & IO_POLLS_CHANGES) != 0)
        io_uring_prep_poll_multishot(entry, io_fd(operation), uring_wanted(operation));
    else
        io_uring_prep_poll_add(entry, io_fd(operation), uring_wanted(operation));
    bide_uring_set_data_(entry, operation, URING_OF_OPERATION);
    operation->state |= IO_IN_RING | IO_POLLING;
}

/* A poll that stays in the ring has found events: 7. */
static void uring_polled_changes(struct loop_uring *uring, bide_io_operation *operation, int result)
{
    if (!uring_found_wanted(operation, result))
        return;
    if (operation->code == BIDE_IO_POLL)
        operation->arguments.poll.found = (uint32_t)result;
    operation->state |= IO_FOUND;
    bide_uring_put_cancel_(uring, operation);
}

void bide_uring_put_(struct loop_uring *uring, bide_io_operation *operation)
{
    bide_assert((operation->state & IO_WAITING) != 0 && !uring_is_in_ring(operation)); /* 1 */
    bide_assert(bide_io_is_first_(operation));                                         /* 3 */
    if (bide_uring_acceptor_of_(operation) != NULL) {
        bide_uring_serve_(loop_of(operation->io), bide_uring_acceptor_of_(operation));
        return;
    }
    if (operation->code == BIDE_IO_RECV_NEXT && bide_uring_receiver_of_(operation) != NULL) {
        bide_uring_serve_receiver_(loop_of(operation->io), bide_uring_receiver_of_(operation));
        return;
    }
    if (uring_only_polls(operation)) {
        uring_put_poll(uring, operation);
        return;
    }
    struct io_uring_sqe *entry = bide_uring_new_entry_(uring);
    bide_uring_rows_[operation->code].prepare(entry, operation);
    if ((operation->state & IO_ON_THREAD) != 0)
        entry->flags |= IOSQE_ASYNC;
    bide_uring_set_data_(entry, operation, URING_OF_OPERATION);
    operation->state |= IO_IN_RING;
}

void bide_uring_put_cancel_(struct loop_uring *uring, bide_io_operation *operation)
{
    if ((operation->state & (IO_IN_RING | IO_CANCEL_IN_RING)) != IO_IN_RING)
        return;
    struct io_uring_sqe *entry = bide_uring_new_entry_(uring);
    io_uring_prep_cancel64(entry, (uintptr_t)operation | URING_OF_OPERATION, 0);
    bide_uring_set_data_(entry, operation, URING_OF_CANCEL);
    operation->state |= IO_CANCEL_IN_RING;
}

/* Puts in another cancel, which begins after a pause: 10. */
static void uring_put_cancel_later(struct loop_uring *uring, bide_io_operation *operation)
{
    static struct __kernel_timespec pause = {.tv_nsec = 1000000};
    struct io_uring_sqe *entry = bide_uring_new_entry_(uring);
    io_uring_prep_timeout(entry, &pause, 0, 0);
    entry->flags |= IOSQE_IO_HARDLINK; /* (it ends with -ETIME) */
    bide_uring_set_data_(entry, NULL, URING_OF_LOOP);
    bide_uring_put_cancel_(uring, operation);
}

/* ---- Completions ---- */

#if IO_MUST_NOTE_WRITES

static void uring_note_vectors(const struct iovec *vector, size_t left)
{
    for (; left != 0; vector++) {
        size_t size = left < vector->iov_len ? left : vector->iov_len;
        io_written(vector->iov_base, size);
        left -= size;
    }
}

/* The kernel has written the memory that a completion with `result` reports. */
static void uring_note_written(const bide_io_operation *operation, ptrdiff_t result)
{
    const struct msghdr *message = operation->arguments.message;
    const bide_address *peer = operation->arguments.accept.peer;
    size_t left = result > 0 ? (size_t)result : 0;
    bool receives = bide_io_row_of_(operation)->direction == BIDE_IO_INPUT;
    switch ((bide_io_shape_)bide_io_row_of_(operation)->shape) {
    case IO_SHAPE_BYTES:
        if (receives)
            io_written(operation->arguments.bytes.data, left);
        break;
    case IO_SHAPE_VECTOR:
        if (receives)
            uring_note_vectors(operation->arguments.vector.vectors, left);
        break;
    case IO_SHAPE_MESSAGE:
        if (!receives || result < 0)
            break;
        uring_note_vectors(message->msg_iov, left);
        io_written(message->msg_name, message->msg_namelen);
        io_written(message->msg_control, message->msg_controllen);
        break;
    case IO_SHAPE_ACCEPT:
        if (peer != NULL)
            io_written(&peer->any, sizeof peer->any);
        break;
    default:
        break;
    }
}

#else

static void uring_note_written(const bide_io_operation *operation, ptrdiff_t result)
{
    (void)operation;
    (void)result;
}

#endif

/* Takes an operation out of its line, whose next one enters the ring. */
static void uring_take_out(bide_loop *loop, bide_io_operation *operation)
{
    bide_descriptor *descriptor = operation->descriptor;
    int direction = io_direction(operation);
    bide_assert(!uring_is_in_ring(operation)); /* 1 */
    if (bide_io_row_of_(operation)->blocks == IO_BLOCKS_ALWAYS)
        bide_uring_give_file_back_(loop->uring, operation);
    bide_io_remove(&loop->io, operation);
    if (descriptor == NULL || direction == BIDE_IO_FREE)
        return;
    bide_io_operation *next = descriptor->lines[direction].first;
    /* (one that waits for a buffer is in front, and does not move: another behind it has left) */
    if (next != NULL && (next->state & (IO_IN_RING | IO_CANCEL_IN_RING | IO_CLOSING)) == 0 &&
        !io_waits_for_buffer(next))
        bide_uring_put_(loop->uring, next);
}

void bide_uring_end_(bide_loop *loop, bide_io_operation *operation, bide_io_outcome outcome)
{
    uring_take_out(loop, operation);
    bide_io_finish_waiting(operation, outcome);
}

/* An operation that has to end early ends with nothing done. */
static void uring_end_early(bide_loop *loop, bide_io_operation *operation, unsigned why)
{
    if ((why & IO_FORGETTING) != 0)
        operation->status = -ECANCELED; /* uring_discard ends it */
    else
        bide_uring_end_(loop, operation,
                        (why & IO_CANCELLING) != 0 ? BIDE_IO_CANCELLED : BIDE_IO_CLOSED);
}

/* The kernel's own numbers for an interrupted call, which an open that is cancelled reports. */
static bool uring_was_interrupted(ptrdiff_t result)
{
    enum { FIRST_RESTART = 512, LAST_RESTART = 516 };
    return result == -EINTR || (result <= -FIRST_RESTART && result >= -LAST_RESTART);
}

/* An accept that was woken and cancelled takes the connection that no other is woken for: 11. */
static ptrdiff_t uring_accept_before_end(bide_io_operation *operation)
{
    ptrdiff_t accepted = bide_io_call(operation);
    return accepted >= 0 ? accepted : -ECANCELED;
}

/* Neither the operation nor a cancel of it is in the ring: it ends, or enters the ring again. */
static void uring_finish(bide_loop *loop, bide_io_operation *operation, ptrdiff_t result)
{
    bide_assert(!uring_is_in_ring(operation));
    if (operation->code == BIDE_IO_ACCEPT_STREAM) {
        bide_uring_stream_ended_(loop, operation, (int)result);
        return;
    }
    bool again = false;
    if (uring_was_interrupted(result))
        result = -EINTR;
    if (operation->code == BIDE_IO_RECV_STREAM) {
        bide_uring_recv_stream_ended_(loop, operation, (int)result);
        return;
    }
    if ((operation->state & IO_FOUND) != 0)
        result = operation->code == BIDE_IO_POLL ? (ptrdiff_t)operation->arguments.poll.found
                                                 : (ptrdiff_t)uring_wanted(operation);
    bool polled = (operation->state & IO_POLLING) != 0 && result >= 0;
    bool found_other = polled && !uring_found_wanted(operation, result);
    if (operation->code == BIDE_IO_POLL && polled && !found_other) {
        polled = false; /* what it has found is its result */
        result &= uring_wanted(operation) | POLLERR | POLLHUP | POLLNVAL;
    }
    unsigned why = operation->state & IO_ENDING_EARLY;
    bool no_buffer = result == -ENOBUFS && bide_io_row_of_(operation)->shape == IO_SHAPE_LENT;
    bool falls_back = operation->code == BIDE_IO_SEND_ZERO_COPY &&
                      uring_falls_back_to_copy(loop->uring, operation, (int)result);
    bool needs_thread = result < 0 && bide_uring_needs_thread_(operation, result);
    bool did_nothing = why != 0 && (result == -ECANCELED || result == -EINTR || no_buffer ||
                                    falls_back || needs_thread);
    if (did_nothing && operation->code == BIDE_IO_ACCEPT && (why & IO_FORGETTING) == 0) {
        result = uring_accept_before_end(operation);
        did_nothing = result < 0;
    }
    operation->state &= (uint16_t) ~(IO_POLLING | IO_COMPLETED | IO_FOUND | IO_POLLS_CHANGES);
    if (result > 0 && !polled && bide_uring_moves_position_(operation))
        bide_uring_move_position_(operation, (size_t)result);
    uring_note_written(operation, polled ? 0 : result);
    if (why == 0 && falls_back) {
        bide_uring_put_(loop->uring, operation);
        return;
    }
    if (why == 0 && needs_thread) {
        bide_uring_give_file_back_(loop->uring, operation);
        bide_loop_offload_waiting_(loop, operation);
        return;
    }
    if (operation->code == BIDE_IO_STAT && result == 0 && (why & IO_FORGETTING) == 0)
        result = bide_uring_end_stat_(operation);
    if (why == 0 && no_buffer) {
        bide_uring_found_no_buffer_(loop, operation);
        return;
    }
    if (why == 0 && found_other) {
        operation->state |= IO_POLLS_CHANGES;
        uring_put_poll(loop->uring, operation);
        return;
    }
    if (why == 0 && polled && uring_only_polls(operation)) {
        bide_uring_try_(loop, operation);
        return;
    }
    bool done = !polled && !did_nothing && bide_io_take_result(operation, result, &again);
    if (done) {
        if ((why & IO_FORGETTING) == 0)
            bide_uring_end_(loop, operation, BIDE_IO_DONE);
    } else if (why != 0) {
        uring_end_early(loop, operation, why);
    } else if (again) {
        uring_put_poll(loop->uring, operation);
    } else {
        bide_uring_put_(loop->uring, operation);
    }
}

static void uring_completed(bide_loop *loop, bide_io_operation *operation, int result,
                            unsigned flags)
{
    bool continues = (flags & IORING_CQE_F_MORE) != 0;
    bide_assert((operation->state & (IO_WAITING | IO_IN_RING)) == (IO_WAITING | IO_IN_RING));
    if (!continues)
        operation->state &= (uint16_t)~IO_IN_RING;
    if (operation->code == BIDE_IO_ACCEPT_STREAM && result >= 0)
        bide_uring_accepted_(loop, operation, result);
    if (operation->code == BIDE_IO_SEND_ZERO_COPY &&
        !uring_take_zero_copy(operation, &result, flags))
        return;
    if (operation->code == BIDE_IO_RECV_STREAM && (flags & IORING_CQE_F_BUFFER) != 0)
        bide_uring_received_(loop, operation, result, flags);
    if (continues && (operation->state & IO_POLLS_CHANGES) != 0)
        uring_polled_changes(loop->uring, operation, result);
    if (continues)
        return;
    if ((flags & IORING_CQE_F_BUFFER) != 0 && bide_io_row_of_(operation)->shape == IO_SHAPE_LENT)
        bide_uring_take_buffer_(operation, result, flags);
    if ((operation->state & IO_CANCEL_IN_RING) != 0) { /* 1 */
        operation->state |= IO_COMPLETED;
        operation->status = result;
        return;
    }
    uring_finish(loop, operation, result);
}

static void uring_cancel_completed(bide_loop *loop, bide_io_operation *operation, int found)
{
    bide_assert((operation->state & IO_CANCEL_IN_RING) != 0);
    operation->state &= (uint16_t)~IO_CANCEL_IN_RING;
    if ((operation->state & IO_COMPLETED) == 0) {
        if (found != 0 && (operation->state & IO_ON_THREAD) != 0)
            uring_put_cancel_later(loop->uring, operation);
        return;
    }
    int result = operation->status;
    operation->status = 0;
    uring_finish(loop, operation, result);
}

/*
 * (If there is no completion, a peek would enter the kernel for a few more, before the queue is
 * submitted.)
 */
void bide_uring_reap_(bide_loop *loop)
{
    struct loop_uring *uring = loop->uring;
    struct io_uring_cqe *entry;
    for (int i = 0; i < LOOP_TURN && io_uring_cq_ready(&uring->ring) != 0; i++) {
        io_uring_peek_cqe(&uring->ring, &entry);
        bide_io_operation *operation =
            (bide_io_operation *)(void *)(uintptr_t)(entry->user_data & ~(uint64_t)URING_KINDS);
        unsigned kind = (unsigned)(entry->user_data & URING_KINDS);
        int result = entry->res;
        unsigned flags = entry->flags;
        io_uring_cqe_seen(&uring->ring, entry);
        loop->counts.completions++;
        if (kind == URING_OF_OPERATION)
            uring_completed(loop, operation, result, flags);
        else if (kind == URING_OF_CANCEL)
            uring_cancel_completed(loop, operation, result);
        else if (operation != NULL)
            bide_uring_woken_(loop);
    }
}

/* ---- The table ---- */

/* Takes a connection that the acceptor has kept, if no other accept waits for one. */
static bool uring_accepts_at_once(bide_io_operation *operation)
{
    bide_acceptor *acceptor = bide_uring_acceptor_of_(operation);
    if (acceptor == NULL || operation->descriptor->lines[BIDE_IO_INPUT].first != NULL)
        return false;
    int fd = bide_io_acceptor_take_(acceptor);
    if (fd >= 0)
        bide_io_acceptor_give_(operation, fd);
    return fd >= 0;
}

/* Takes a chunk that the receiver has kept, if no other receive waits. */
static bool uring_receives_at_once(bide_io_operation *operation)
{
    return operation->code == BIDE_IO_RECV_NEXT &&
           operation->descriptor->lines[BIDE_IO_INPUT].first == NULL &&
           bide_uring_receiver_of_(operation) != NULL &&
           bide_receiver_take_(bide_uring_receiver_of_(operation));
}

/*
 * Prepares a read or write by what its descriptor is. -ESPIPE: it has an offset, and its descriptor has no
 * position. (The ring would read, and take the bytes.)
 */
static int uring_prepare_positioned(bide_io_operation *operation)
{
    bool has_offset = operation->arguments.bytes.offset >= 0; /* (or of the vector: operation.h) */
    bide_descriptor *descriptor = operation->descriptor;
    if ((descriptor->bits & IO_PROBED) == 0)
        bide_io_probe_(descriptor);
    if ((descriptor->bits & IO_CALLS_WAIT) != 0)
        operation->state |= IO_ON_THREAD; /* 8 */
    return has_offset && (descriptor->bits & IO_SEEKS) == 0 ? -ESPIPE : 0;
}

/* A read or write of no bytes. What it reports differs between the ring and the calls. */
static bool uring_moves_nothing(const bide_io_operation *operation)
{
    return bide_io_row_of_(operation)->shape == IO_SHAPE_BYTES
               ? operation->arguments.bytes.size == 0
               : operation->arguments.vector.count == 0;
}

static bide_frame *uring_start(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    bide_loop *loop = loop_of(io);
    const bide_io_row_ *row = bide_io_row_of_(operation);
    bide_assert(operation->is_file || row->blocks != IO_BLOCKS_ALWAYS);
    if (BIDE_UNLIKELY(row->start == IO_START_AT_ONCE)) {
        bide_io_try_(operation);
        return frame;
    }
    if (row->blocks == IO_BLOCKS_ALWAYS) {
        if (!bide_uring_take_file_(loop->uring, operation))
            return bide_loop_offload_(loop, operation, frame);
    } else if (BIDE_UNLIKELY(!bide_uring_has_opcode_(loop->uring,
                                                     bide_uring_rows_[operation->code].opcode))) {
        if (operation->code != BIDE_IO_SEND_ZERO_COPY)
            return bide_loop_offload_(loop, operation, frame);
        uring_falls_back_to_copy(loop->uring, operation, -EOPNOTSUPP);
    }
    if (BIDE_UNLIKELY(row->start == IO_START_OPENS)) {
        operation->status = bide_io_open_to_connect_(operation);
        if (operation->status != 0)
            return frame;
    }
    if (row->is_positioned) {
        operation->status = uring_prepare_positioned(operation);
        if (operation->status != 0) {
            operation->state = 0;
            return frame;
        }
    }
    if (row->shape == IO_SHAPE_LENT && bide_io_is_no_socket_(operation->descriptor)) {
        operation->status =
            -ENOTSOCK; /* (the ring would poll it first, and forever if it is a file) */
        operation->state = 0;
        return frame;
    }
    if (row->shape == IO_SHAPE_LENT)
        bide_uring_enter_pool_(loop, operation->arguments.provided.pool);
    if (uring_accepts_at_once(operation) || uring_receives_at_once(operation))
        return frame;
    if ((row->is_tried_first || (row->is_positioned && uring_moves_nothing(operation))) &&
        operation->descriptor->lines[io_direction(operation)].first == NULL &&
        bide_io_try_(operation)) {
        operation->state = 0;
        return frame;
    }
    bide_io_enlist(io, operation);
    if (bide_io_is_first_(operation))
        bide_uring_put_(loop->uring, operation);
    return NULL;
}

static void uring_cancel(bide_io *io, bide_io_operation *operation)
{
    bide_loop *loop = loop_of(io);
    if (bide_loop_is_offloaded_(operation)) {
        bide_loop_cancel_offloaded_(loop, operation);
        return;
    }
    if (!uring_is_in_ring(operation)) { /* it is not the first of its line, or waits for a buffer */
        bide_uring_end_(loop, operation, BIDE_IO_CANCELLED);
        return;
    }
    operation->state |= IO_CANCELLING;
    bide_uring_put_cancel_(loop->uring, operation);
}

/* Waits for completions, and takes a turn of them. */
static void uring_wait_and_reap(bide_loop *loop)
{
    io_uring_submit_and_wait(&loop->uring->ring, 1);
    bide_uring_reap_(loop);
}

static void uring_discard(bide_io *io, bide_io_operation *operation)
{
    bide_loop *loop = loop_of(io);
    if (bide_loop_is_offloaded_(operation)) {
        bide_loop_discard_offloaded_(loop, operation);
        return;
    }
    if (!uring_is_in_ring(operation)) { /* it has done nothing */
        uring_take_out(loop, operation);
        return;
    }
    operation->state |= IO_FORGETTING;
    bide_uring_put_cancel_(loop->uring, operation);
    while (uring_is_in_ring(operation)) {
        uring_reset_connection(operation);
        uring_wait_and_reap(loop);
    }
    uring_take_out(loop, operation);
    if (operation->status == 0 || (operation->state & IO_OPENED) != 0)
        bide_io_release(operation);
}

static void uring_release(bide_io *io, bide_descriptor *descriptor)
{
    bide_loop *loop = loop_of(io);
    for (int direction = 0; direction < BIDE_IO_LINES; direction++) {
        bide_io_operation *next;
        /* (all of them before the first one ends, so that its end puts no other into the ring) */
        for (bide_io_operation *at = descriptor->lines[direction].first; at != NULL; at = at->next)
            at->state |= IO_CLOSING;
        for (bide_io_operation *at = descriptor->lines[direction].first; at != NULL; at = next) {
            next = at->next;
            if (bide_loop_is_offloaded_(at))
                bide_loop_release_offloaded_(loop, at);
            else if (uring_is_in_ring(at))
                bide_uring_put_cancel_(loop->uring, at);
            else
                bide_uring_end_(loop, at, BIDE_IO_CLOSED);
        }
        while (descriptor->lines[direction].first != NULL) {
            uring_reset_connection(descriptor->lines[direction].first);
            uring_wait_and_reap(loop);
        }
    }
}

const bide_io_table bide_uring_operations_ = {
    .name = "uring",
    .start = uring_start,
    .cancel = uring_cancel,
    .discard = uring_discard,
    .release = uring_release,
};

#endif
