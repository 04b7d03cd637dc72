/*
 * Operations that take something from a descriptor, as cases of a select: receives, reads and accepts.
 *
 *     attempt, on the io's thread   its line is empty: the call is made ----------------> ended
 *        |                                                    -EAGAIN, or a line
 *        |                                                             |
 *        |    +--------------------------------------------------------+
 *        v    v
 *     BIDE_IO_CASE: in the descriptor's line, until there is input; takes nothing --> attempted again
 *
 * Threads: an attempt runs on a thread of the select, a wait on the thread of the io.
 *
 * 1. A case that loses takes nothing: its call is made by an attempt alone, and no case is attempted
 *    after one that has succeeded.
 * 2. A call that would wait has taken nothing either. Then another reader of the descriptor was faster,
 *    and the case waits on, at the end of the line.
 * 3. A case that begins does not pass the operations in the line: it makes no call, and waits behind
 *    them. When it is the first, and there is input, it leaves the line, and the next operation
 *    continues. The attempt after that makes the call whoever is in the line now: it was its turn.
 *    (Otherwise two cases could each find the other in the line, again and again.)
 * 4. If the select runs on another thread than the io, it must not touch the line. This is so in a pool
 *    of loops whose workers share coroutines, and with bide_schedule_on. Then the wait, on the io's
 *    thread, makes the call when there is input, as a partner that carries out the case does
 *    (bide/extend/choice.h): it takes the choice first, so no other case can be carried out by a
 *    partner, and gives it up if the call would wait. It has the choice's address in a place of the
 *    arguments that none of these operations uses.
 * 5. The result that a wait has left is read by the next attempt. The end of the wait orders them.
 * 6. A read of a file that does not poll would block the thread: -EOPNOTSUPP.
 */
#include "bide/extend/choice.h"
#include "bide/extend/io.h"

#include "../coroutine/internal.h"
#include "../system/fork.h"

#include <errno.h>

#include "operation.h"

BIDE_STATIC_ASSERT(offsetof(bide_io_arguments, in_choice.choice) >=
                       offsetof(bide_io_arguments, vector.offset) + sizeof(int64_t),
                   "behind the arguments of a read");
BIDE_STATIC_ASSERT(offsetof(bide_io_arguments, in_choice.choice) >=
                       offsetof(bide_io_arguments, accept.acceptor) + sizeof(void *),
                   "behind the arguments of an accept");

/* ---- The call, on the io's thread ---- */

static ptrdiff_t case_call(bide_io *io, bide_io_operation *operation)
{
    if (io != NULL && io->table->call != NULL)
        return io->table->call(io, operation);
    bide_descriptor *descriptor = operation->descriptor;
    if (bide_io_row_of_(operation)->blocks == IO_BLOCKS_ON_FILE) {
        if ((descriptor->bits & IO_PROBED) == 0)
            bide_io_probe_(descriptor);
        if ((descriptor->bits & IO_FILE) != 0) /* 6 */
            return -EOPNOTSUPP;
    }
    return bide_io_call(operation);
}

/* ---- The wait, on the io's thread ---- */

ptrdiff_t bide_io_end_case_(bide_io_operation *operation)
{
    bide_choice *choice = operation->arguments.in_choice.choice;
    ptrdiff_t result;
    if (choice == NULL || !bide_choice_take(choice, operation->number_in_choice)) /* 4 */
        return 0;
    operation->code = operation->code_in_choice;
    do
        result = case_call(operation->io, operation);
    while (result == -EINTR);
    if (result == -EAGAIN) {
        operation->code = BIDE_IO_CASE;
        bide_choice_untake(choice);
    }
    return result;
}

ptrdiff_t bide_call_case_(bide_io_operation *operation)
{
    struct pollfd polled = {io_fd(operation), POLLIN, 0};
    int ready = poll(&polled, 1, 0);
    if (ready <= 0)
        return ready == 0 ? -EAGAIN : -errno;
    return bide_io_end_case_(operation);
}

static const bide_awaiter_ops case_waits_ops = {
    .suspend = bide_io_suspend,
    .resume = bide_io_resume,
    .cancel = bide_io_cancel,
    .withdraw = bide_io_withdraw, /* if it has carried the case out, gives back its result */
    .name = "(input for a case of a select)",
    .undo = BIDE_UNDO_WITHDRAW,
};

/* An attempt has the result: its wait has nothing to give back. */
static bool case_ended_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

static const bide_awaiter_ops case_ended_ops = {
    .resume = bide_io_resume,
    .withdraw = case_ended_withdraw,
    .name = "(input for a case of a select)",
};

/* ---- The attempt: on the select's thread ---- */

/*
 * Finds the io of a descriptor; it belongs to that of this thread, if it belonged to none. *found is
 * NULL: none. False: another thread closes it.
 */
static bool find_io_of_case(bide_descriptor *descriptor, bide_scheduler *scheduler, bide_io **found)
{
    bide_io *io = *found = io_of(descriptor);
    if (io != NULL || scheduler == NULL || scheduler->io == NULL)
        return !bide_io_is_closing_(io);
    io = scheduler->io(scheduler);
    if (io == NULL || bide_is_inherited_(io->generation) || !bide_io_on_owner_thread_(io))
        return true;
    *found = bide_descriptor_claim_(io, descriptor);
    if (*found == io)
        bide_io_adopt(io, descriptor);
    return *found != NULL;
}

/* Its wait has ended: whether that has left the status of the case: 4, 5. */
static bool wait_has_ended_case(bide_io_operation *operation, bide_choice *choice)
{
    if (bide_choice_taken(choice) != 0)
        return true;
    operation->code = operation->code_in_choice;
    return operation->status != 0 && operation->status != -ECANCELED;
}

/* Whether the case may make its call now: 3. */
static bool is_turn_of_case(const bide_io_operation *operation, const bide_choice *choice)
{
    return (choice->again && operation->status == 0) ||
           operation->descriptor->lines[io_direction(operation)].first == NULL;
}

static int case_ends(bide_io_operation *operation)
{
    operation->awaiter.ops = &case_ended_ops;
    return operation->status;
}

static int case_waits(bide_io_operation *operation, bide_choice *choice, bool is_here)
{
    operation->status = -ECANCELED; /* until it is let go */
    operation->code_in_choice = operation->code;
    operation->number_in_choice = (uint16_t)choice->number;
    operation->arguments.in_choice.choice = is_here ? NULL : choice;
    operation->code = BIDE_IO_CASE;
    operation->awaiter.ops = &case_waits_ops;
    choice->wait = &operation->awaiter;
    return -EAGAIN;
}

/* Makes the call. False: it would have to wait. */
static bool case_is_had(bide_io *io, bide_io_operation *operation)
{
    bool again;
    operation->io = io;
    while (!bide_io_take_result(operation, case_call(io, operation), &again)) {
        if (again)
            return false;
    }
    if (io != NULL)
        io->begun++;
#if BIDE_BUDGET > 0
    bide_budget_ -= BIDE_BUDGET_OF_IO_ - 1;
#endif
    return true;
}

int bide_io_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    bide_descriptor *descriptor = operation->descriptor;
    if (choice->again && wait_has_ended_case(operation, choice))
        return case_ends(operation);
    bide_io *io;
    if (!bide_descriptor_is_open(descriptor) ||
        !find_io_of_case(descriptor, choice->scheduler, &io)) {
        operation->status = -EBADF;
        return case_ends(operation);
    }
    bool is_here = io != NULL ? !bide_is_inherited_(io->generation) && bide_io_on_owner_thread_(io)
                              : choice->scheduler == NULL;
    if (is_here && (io == NULL || is_turn_of_case(operation, choice)) && case_is_had(io, operation))
        return case_ends(operation);
    if (!is_here && choice->number > UINT16_MAX) {
        operation->status = -E2BIG;
        return case_ends(operation);
    }
    return case_waits(operation, choice, is_here);
}
