/*
 * Operations by readiness: what the back ends share that know when a call may succeed, and make it then.
 * They differ in their poller (epoll.c, poll.c), which reports descriptors as ready. A descriptor is put
 * into the poller, for both directions, when an operation on it has to wait.
 *
 *     a direction of a descriptor
 *         READY   an operation makes its call at once, since the call may succeed
 *         WAITS   the last call would have waited, or took all bytes; an operation enters the line,
 *                 until the poller reports a change (IO_WAITS_INPUT, IO_WAITS_OUTPUT)
 *
 * Threads: all of it runs on the loop's thread.
 *
 * 1. No change is missed. The poller reports each change after the descriptor was put in, and the state
 *    of that moment. A direction becomes WAITS only after a call that found nothing, or less than it
 *    asked for, while the descriptor was in the poller. That call has seen any earlier change; a later
 *    change is reported after it. (A poller that reports states, not changes, reports more: poll.c, 1.)
 * 2. A receive that got less than it asked for has emptied a TCP socket, with two exceptions: the
 *    peer's close might still be there, and a receive stops at urgent data. The change of either was
 *    reported before, or will be. So a short call makes no direction WAITS of which one was reported
 *    (IO_SHORT_IS_NOT_ALL).
 * 3. Operations of a direction end in the order of their line. While there is a line, no operation
 *    passes it.
 * 4. A descriptor leaves the poller before its struct may go. The poller reports nothing of it after that.
 * 5. A receive that waits for a buffer is in front of its line, which continues when a buffer is
 *    free. If the receive leaves before, its line continues without it: the data were reported, and
 *    will not be again.
 * 6. Operations on a file go to the file pool, one at a time of a line: the others wait behind it. Those
 *    on a descriptor that polls, and whose call may wait nevertheless (IO_CALLS_WAIT), go there when a
 *    poll finds it ready. An event that is reported meanwhile is not lost, because the line is tried
 *    when the operation leaves it (continue_line), with a poll of its own.
 */
#include "readiness.h"

#include "buffer_pool.h"
#include "offload.h"

#include <errno.h>

/* Whether an operation that is done has taken all bytes: 2. */
static bool readiness_took_all(const bide_io_operation *operation)
{
    if (!bide_io_row_of_(operation)->empties_when_short)
        return false;
    return operation->status == 0 && operation->count != 0 &&
           operation->count < bide_io_length_(operation) &&
           (operation->descriptor->bits & (IO_REGISTERED | IO_TCP | IO_SHORT_IS_NOT_ALL)) ==
               (IO_REGISTERED | IO_TCP) &&
           operation->flags == 0;
}

/*
 * bide_io_try_, with a receive or send that succeeds done here. Each return after a system call is
 * mispredicted on processors that forget predictions in the kernel, and costs as much as twenty
 * instructions.
 */
BIDE_INLINE bool readiness_try(bide_io_operation *operation)
{
    if (operation->code != BIDE_IO_RECV && operation->code != BIDE_IO_SEND)
        return bide_io_try_(operation);
    ptrdiff_t result = io_move_bytes(operation);
    bool again;
    if (BIDE_LIKELY(result > 0)) {
        operation->count += (size_t)result;
        if (operation->code == BIDE_IO_RECV || !operation->is_whole ||
            operation->count == operation->arguments.bytes.size) {
            operation->status = 0;
            return true;
        }
        return bide_io_try_(operation);
    }
    return bide_io_take_result(operation, result < 0 ? io_error() : 0, &again) ||
           (!again && bide_io_try_(operation));
}

/* Puts a descriptor into the poller: 0, or a negative errno; -EPERM: it is of a kind that does not poll. */
static int readiness_add(bide_loop *loop, bide_descriptor *descriptor)
{
    if ((descriptor->bits & IO_REGISTERED) != 0)
        return 0;
    int error = loop->ops->poller->add(loop, descriptor);
    if (error != 0)
        return error;
    bide_io_adopt(&loop->io, descriptor);
    descriptor->bits |= IO_REGISTERED;
    return 0;
}

/* Whether the call of an operation that may block needs the file pool. */
static bool readiness_needs_file_pool(const bide_io_operation *operation)
{
    bide_descriptor *descriptor = operation->descriptor;
    if (bide_io_row_of_(operation)->blocks != IO_BLOCKS_ON_FILE)
        return bide_io_row_of_(operation)->blocks == IO_BLOCKS_ALWAYS;
    if ((descriptor->bits & IO_PROBED) == 0)
        bide_io_probe_(descriptor);
    return (descriptor->bits & IO_FILE) != 0;
}

/*
 * Whether the descriptor polls, and the call of an operation on it may wait nevertheless: 6. (Its line
 * has an order.)
 */
static bool readiness_needs_thread(const bide_io_operation *operation)
{
    return operation->is_file && bide_io_row_of_(operation)->blocks == IO_BLOCKS_ON_FILE &&
           (operation->descriptor->bits & IO_CALLS_WAIT) != 0 &&
           io_direction(operation) != BIDE_IO_FREE;
}

static const struct bide_buffer_hooks_ readiness_buffer_hooks;

bide_frame *bide_readiness_start_(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    bide_loop *loop = loop_of(io);
    bide_descriptor *descriptor = operation->descriptor;
    const bide_io_row_ *row = bide_io_row_of_(operation);
    bide_assert(operation->is_file || row->blocks != IO_BLOCKS_ALWAYS);
    if (operation->is_file && readiness_needs_file_pool(operation))
        return bide_loop_offload_(loop, operation, frame);
    if (BIDE_UNLIKELY(row->start != IO_START_IN_LINE)) {
        if (row->start == IO_START_AT_ONCE) {
            bide_io_try_(operation);
            return frame;
        }
        operation->status = bide_io_open_to_connect_(operation);
        if (operation->status != 0)
            return frame;
    }
    if (row->shape == IO_SHAPE_LENT)
        bide_buffer_pool_claim_(operation->arguments.provided.pool, io, &readiness_buffer_hooks);
    int direction = io_direction(operation);
    if (direction == BIDE_IO_FREE || descriptor->lines[direction].first == NULL) {
        if (BIDE_UNLIKELY(readiness_needs_thread(operation))) {
            /* (registered first, for the operations that will wait behind it) */
            int error = readiness_add(loop, descriptor);
            if (error == -EPERM || (error == 0 && !bide_io_would_wait_(operation)))
                return bide_loop_offload_(loop, operation, frame);
        } else if (!readiness_direction_waits(descriptor, direction) && readiness_try(operation)) {
            if (readiness_took_all(operation))
                readiness_set_waits(descriptor, direction, true);
            return frame;
        }
        if ((descriptor->bits & IO_REGISTERED) != 0)
            readiness_set_waits(descriptor, direction, true);
        int error = readiness_add(loop, descriptor);
        if (error != 0) {
            operation->status = error;
            if (io_waits_for_buffer(operation))
                bide_buffer_pool_stop_waiting_(operation);
            if ((operation->state & IO_OPENED) != 0)
                bide_io_release(operation);
            operation->state = 0;
            return frame;
        }
    }
    bide_io_enlist(io, operation);
    return NULL;
}

/* Makes the calls of a line, until one has to wait. */
void bide_readiness_try_line_(bide_loop *loop, bide_descriptor *descriptor, int direction)
{
    bide_io_operation *next;
    readiness_set_waits(descriptor, direction, false);
    for (bide_io_operation *at = descriptor->lines[direction].first; at != NULL; at = next) {
        next = at->next;
        if (readiness_direction_waits(descriptor, direction))
            break;
        if (bide_loop_is_offloaded_(at)) { /* 6 */
            if (direction != BIDE_IO_FREE)
                break;
            continue;
        }
        bool needs_thread = readiness_needs_thread(at);
        if ((needs_thread && !bide_io_would_wait_(at)) ||
            (at->is_file && readiness_needs_file_pool(at))) {
            if (bide_loop_offload_waiting_(loop, at))
                break;
            continue;
        }
        if (needs_thread || !readiness_try(at)) {
            readiness_set_waits(descriptor, direction, true);
            continue;
        }
        if (readiness_took_all(at))
            readiness_set_waits(descriptor, direction, true);
        loop->counts.completions++;
        bide_io_remove(&loop->io, at);
        bide_io_finish_waiting(at, BIDE_IO_DONE);
    }
}

/* The descriptor of a receive that waits for a buffer, its data being reported; or NULL: 5. */
static bide_descriptor *readiness_unread_of(const bide_io_operation *operation)
{
    return io_waits_for_buffer(operation) ? operation->descriptor : NULL;
}

static void readiness_retry_with_buffer(bide_io *io, bide_io_operation *operation)
{
    readiness_direction_is_ready(loop_of(io), operation->descriptor, BIDE_IO_INPUT);
}

static const struct bide_buffer_hooks_ readiness_buffer_hooks = {readiness_retry_with_buffer, NULL,
                                                                 NULL};

void bide_readiness_cancel_(bide_io *io, bide_io_operation *operation)
{
    if (bide_loop_is_offloaded_(operation)) {
        bide_loop_cancel_offloaded_(loop_of(io), operation);
        return;
    }
    bide_descriptor *unread = readiness_unread_of(operation);
    bide_io_remove(io, operation);
    bide_io_finish_waiting(operation, BIDE_IO_CANCELLED);
    if (unread != NULL)
        readiness_direction_is_ready(loop_of(io), unread, BIDE_IO_INPUT);
}

void bide_readiness_discard_(bide_io *io, bide_io_operation *operation)
{
    if (bide_loop_is_offloaded_(operation)) {
        bide_loop_discard_offloaded_(loop_of(io), operation);
        return;
    }
    bide_descriptor *unread = readiness_unread_of(operation);
    bide_io_remove(io, operation);
    if ((operation->state & IO_OPENED) != 0)
        bide_close(operation->descriptor);
    if (unread != NULL)
        readiness_direction_is_ready(loop_of(io), unread, BIDE_IO_INPUT);
}

void bide_readiness_release_(bide_io *io, bide_descriptor *descriptor)
{
    bide_loop *loop = loop_of(io);
    for (int direction = 0; direction < BIDE_IO_LINES; direction++) {
        while (descriptor->lines[direction].first != NULL) {
            bide_io_operation *operation = descriptor->lines[direction].first;
            if (bide_loop_is_offloaded_(operation)) {
                bide_loop_release_offloaded_(loop, operation);
                continue;
            }
            bide_io_remove(io, operation);
            bide_io_finish_waiting(operation, BIDE_IO_CLOSED);
        }
    }
    if ((descriptor->bits & IO_REGISTERED) != 0) {
        loop->ops->poller->remove(loop, descriptor);
        descriptor->bits = 0;
    }
}

void bide_readiness_continue_line_(bide_loop *loop, bide_descriptor *descriptor, int direction)
{
    readiness_direction_is_ready(loop, descriptor, direction);
}
