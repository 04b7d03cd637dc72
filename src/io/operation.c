/*
 * Operations on descriptors: the part that all back ends share.
 *
 *     state   0 --begin--> 0, if it ends at once; otherwise IO_WAITING --end_waiting--> 0
 *
 * operation.h lists the other bits of the state, with their writers. operation_table.c says how the
 * operations differ.
 *
 * Threads: an operation, the lines of its descriptor and the io belong to one thread, that of the
 * io's scheduler. So they need no order. Requests of other threads arrive through remote.c.
 *
 * 1. If several threads have an io each and share their coroutines (io_pool.c), a descriptor
 *    belongs to the io that uses it first: its owner (descriptor.c). An operation that is awaited on
 *    another thread is forwarded to the owner, and begins there. So is the withdrawal of an
 *    operation.
 * 2. An operation ends once. Its back end takes it out of its line (bide_io_remove), and then
 *    calls bide_io_finish_waiting, which clears IO_WAITING.
 */
#include "bide/extend/io.h"
#include "bide/inspect.h"

#include "bide/socket.h"

#include "../coroutine/internal.h"
#include "../coroutine/observe.h"
#include "../system/fork.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "buffer_pool.h"
#include "operation.h"

/* ---- Beginning ---- */

/* Adopts a descriptor. False: another thread closes it. */
static BIDE_NOINLINE bool descriptor_is_had(bide_io *io, bide_descriptor *descriptor,
                                            bide_frame *frame)
{
    bide_io *owner = bide_descriptor_claim_(io, descriptor);
    if (BIDE_UNLIKELY(owner != NULL && owner != io))
        bide_misused_by_("a descriptor is used on two loops", frame, NULL);
    if (owner != NULL)
        bide_io_adopt(io, descriptor);
    return owner != NULL;
}

BIDE_INLINE bide_frame *operation_begin(bide_io *io, bide_io_operation *operation,
                                        bide_frame *frame)
{
    bide_descriptor *descriptor = operation->descriptor;
    bide_assert(operation->code < BIDE_IO_CODES && (operation->state & IO_WAITING) == 0);
    if (descriptor != NULL && !io_opens(operation)) {
        if (BIDE_UNLIKELY(!bide_descriptor_is_open(descriptor))) {
            operation->status = -EBADF;
            return frame;
        }
        if ((descriptor->place == NULL || io_of(descriptor) != io) &&
            BIDE_UNLIKELY(!descriptor_is_had(io, descriptor, frame))) {
            operation->status = -EBADF;
            return frame;
        }
    }
    if (operation->io != io) /* (a stop request may read it while a forwarded operation begins) */
        operation->io = io;
    io->begun++;
    return io->table->start(io, operation, frame);
}

bide_frame *bide_io_begin_(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    return operation_begin(io, operation, frame);
}

/* Begins an operation of a group: 1. */
static BIDE_NOINLINE bide_frame *operation_begin_at_owner(bide_io *io, bide_io_operation *operation,
                                                          bide_frame *frame)
{
    bide_descriptor *descriptor = operation->descriptor;
    if (bide_io_row_of_(operation)->is_of_one_loop) {
        operation->status = -ENOTSUP;
        return frame;
    }
    if (descriptor != NULL && !io_opens(operation) && bide_descriptor_is_open(descriptor)) {
        bide_io *owner = bide_descriptor_claim_(io, descriptor);
        if (owner == NULL) {
            operation->status = -EBADF;
            return frame;
        }
        if (owner->group == io->group)
            io = owner; /* (otherwise it is misuse, which operation_begin reports) */
    }
    return bide_io_on_owner_thread_(io) ? operation_begin(io, operation, frame)
                                        : bide_io_forward_(io, operation);
}

#if BIDE_DEBUG
/*
 * Reports once in a process, on stderr, that the loop is missing. `line` is where the coroutine runs; 0: it is
 * suspended.
 */
static BIDE_COLD void explain_no_loop(const bide_frame *frame, unsigned line)
{
    enum { EXPLAINED_FRAMES = 4 };
    static bide_atomic(uint32_t) explained;
    bide_backtrace_entry entries[EXPLAINED_FRAMES];
    char who[300] = "an operation outside coroutines";
    size_t length = 0;
    if (bide_atomic_exchange(&explained, 1, relaxed) != 0)
        return;
    size_t count = bide_backtrace_from_(frame, line, entries, EXPLAINED_FRAMES);
    for (size_t i = 0; i < count && i < EXPLAINED_FRAMES && length < sizeof who; i++) {
        if (entries[i].kind != NULL) /* (no root) */
            length += (size_t)snprintf(who + length, sizeof who - length, "%s%s (%s:%u)",
                                       length != 0 ? ", awaited by " : "", entries[i].name,
                                       entries[i].file, entries[i].line);
    }
    fprintf(
        stderr,
        "bide: %s: needs a loop for input and output, which its scheduler is not, and ends with "
        "-ENOTSUP; run it by bide_run or bide_loop_wait, or on a pool of bide_io_pool_create\n",
        who);
}
#else
#define explain_no_loop(frame, line) ((void)(line))
#endif

bide_io *bide_io_of_frame_(const bide_frame *frame, unsigned line)
{
    bide_io *io = io_of_context(frame->context);
    if (BIDE_UNLIKELY(io == NULL))
        explain_no_loop(frame, line);
    return io;
}

bide_frame *bide_io_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    bide_io *io = io_of_context(frame->context);
    if (BIDE_UNLIKELY(io == NULL || bide_is_inherited_(io->generation))) {
        if (io == NULL)
            explain_no_loop(frame, 0);
        operation->status = -ENOTSUP;
        return frame;
    }
    bide_frame *next = BIDE_LIKELY(io->group == NULL)
                           ? operation_begin(io, operation, frame)
                           : operation_begin_at_owner(io, operation, frame);
#if BIDE_BUDGET > 0
    if (next == frame)
        bide_budget_ -= BIDE_BUDGET_OF_IO_ - 1;
#endif
    return next;
}

int bide_io_resume(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_io_operation, awaiter)->status;
}

/* ---- Withdrawing ---- */

typedef struct operation_withdrawal {
    bide_io_operation *operation;
    bool was_waiting;
} operation_withdrawal;

static void withdraw_on_owner_thread(bide_io *io, void *argument)
{
    operation_withdrawal *withdrawal = argument;
    bide_io_operation *operation = withdrawal->operation;
    withdrawal->was_waiting = (operation->state & IO_WAITING) != 0;
    if (withdrawal->was_waiting) {
        io->table->discard(io, operation);
        bide_assert((operation->state & (IO_IN_RING | IO_CANCEL_IN_RING | IO_IS_FILE_JOB)) == 0);
        BIDE_OBSERVE_(operation_ends, (&operation->awaiter, operation->count, -ECANCELED));
        operation->state = 0;
    } else if (operation->status == 0) {
        bide_io_release(operation);
    }
}

bool bide_io_withdraw(bide_awaiter *awaiter)
{
    operation_withdrawal withdrawal = {bide_container_of(awaiter, bide_io_operation, awaiter),
                                       false};
    if (withdrawal.operation->io != NULL)
        bide_io_call_remote_(withdrawal.operation->io, withdraw_on_owner_thread, &withdrawal);
    return withdrawal.was_waiting;
}

/* ---- Lines ---- */

int bide_io_direction(const bide_io_operation *operation)
{
    return io_direction(operation);
}

void bide_io_enlist(bide_io *io, bide_io_operation *operation)
{
    BIDE_OBSERVE_(operation,
                  (&operation->awaiter, operation->descriptor != NULL ? io_fd(operation) : -1));
    bide_io_enlist_quietly_(io, operation);
}

void bide_io_enlist_quietly_(bide_io *io, bide_io_operation *operation)
{
    bide_assert((operation->state & IO_WAITING) == 0 && operation->io == io);
    operation->state |= IO_WAITING;
    io->in_flight++;
    if (operation->descriptor == NULL)
        return;
    bide_io_line_ *line = &operation->descriptor->lines[io_direction(operation)];
    operation->next = NULL;
    operation->previous = line->first != NULL ? line->last : NULL;
    if (line->first == NULL)
        line->first = operation;
    else
        line->last->next = operation;
    line->last = operation;
}

void bide_io_remove(bide_io *io, bide_io_operation *operation)
{
    bide_assert((operation->state & IO_WAITING) != 0 && io->in_flight != 0);
    io->in_flight--;
    if (io_waits_for_buffer(operation))
        bide_buffer_pool_stop_waiting_(operation);
    if (operation->descriptor == NULL)
        return;
    bide_io_line_ *line = &operation->descriptor->lines[io_direction(operation)];
    bide_assert(operation->previous != NULL ? operation->previous->next == operation
                                            : line->first == operation);
    bide_assert(operation->next != NULL ? operation->next->previous == operation
                                        : line->last == operation);
    if (operation->previous != NULL)
        operation->previous->next = operation->next;
    else
        line->first = operation->next;
    if (operation->next != NULL)
        operation->next->previous = operation->previous;
    else
        line->last = operation->previous;
}

/* ---- Results ---- */

/* The operation has opened the descriptor `fd`. */
static void operation_take_opened(const bide_io_operation *operation, bide_descriptor *descriptor,
                                  int fd, uint32_t bits)
{
    bide_assert(!bide_descriptor_is_open(descriptor));
    bide_descriptor_init(descriptor, fd);
    descriptor->bits = bits;
    if (io_calls(operation->io) != NULL) /* its number means something there alone */
        bide_io_adopt(operation->io, descriptor);
}

/* Not an open, nor a call such as mmap(2), whose -EAGAIN is final. */
static bool operation_waits_for_descriptor(const bide_io_operation *operation)
{
    return operation->descriptor != NULL &&
           (operation->code == BIDE_IO_SPLICE_FROM_FILE ||
            bide_io_row_of_(operation)->blocks != IO_BLOCKS_ALWAYS);
}

/*
 * A connect that waits is in its descriptor's line yet, so bide_io_finish_waiting closes its socket.
 * (A thread of the file pool may be here: it reads the state of no operation but a connect.)
 */
static bool operation_take_error(bide_io_operation *operation, int error, bool *again)
{
    if (error == -EINTR)
        return false;
    if (error == -EAGAIN && operation_waits_for_descriptor(operation)) {
        *again = true;
        return false;
    }
    operation->status = error;
    if (bide_io_row_of_(operation)->start == IO_START_OPENS &&
        (operation->state & (IO_OPENED | IO_WAITING)) == IO_OPENED) {
        operation->state &= (uint16_t)~IO_OPENED;
        bide_io_release(operation);
    }
    return true;
}

bool bide_io_take_result(bide_io_operation *operation, ptrdiff_t result, bool *again)
{
    *again = false;
    if (BIDE_UNLIKELY(result < 0))
        return operation_take_error(operation, (int)result, again);
    switch ((bide_io_result_)bide_io_row_of_(operation)->result) {
    case IO_RESULT_COUNT:
        operation->count = (size_t)result;
        break;
    case IO_RESULT_PART:
        operation->count += (size_t)result;
        if (operation->is_whole && operation->count < bide_io_length_(operation)) {
            if (result != 0)
                return false;
            operation->status = -EIO; /* it takes nothing, and reports no error */
            return true;
        }
        break;
    case IO_RESULT_CONNECTED:
        operation->state &= (uint16_t)~IO_OPENED;
        break;
    case IO_RESULT_CONNECTION:
        operation_take_opened(operation, operation->arguments.accept.accepted, (int)result,
                              IO_PROBED | (operation->descriptor->bits & IO_TCP));
        break;
    case IO_RESULT_FILE:
        operation_take_opened(operation, operation->arguments.open.opened, (int)result, 0);
        break;
    case IO_RESULT_EVENTS:
        operation->arguments.poll.found = (uint32_t)result;
        break;
    case IO_RESULT_STATUS:
        break;
    }
    operation->status = 0;
    return true;
}

bool bide_io_try_(bide_io_operation *operation)
{
    bool again;
    while (!bide_io_take_result(operation, bide_io_call(operation), &again)) {
        if (again)
            return false;
    }
    return true;
}

void bide_io_release(bide_io_operation *operation)
{
    const bide_io_row_ *row = bide_io_row_of_(operation);
    if (row->release != NULL)
        row->release(operation);
}

/* ---- Descriptors ---- */

bide_atomic(bide_io_close_in_memory_ *) bide_io_closes_in_memory_;

int bide_io_close_number_(bide_io *io, int fd)
{
    int result;
    /* relaxed: a constant function */
    bide_io_close_in_memory_ *in_memory =
        io == NULL ? bide_atomic_load(&bide_io_closes_in_memory_, relaxed) : NULL;
    if (in_memory != NULL && in_memory(fd, &result))
        return result;
    if (io_calls(io) != NULL)
        return io_calls(io)->close(io, fd);
    return close(fd) == 0 ? 0 : -errno;
}
