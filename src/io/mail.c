/*
 * How an operation on a descriptor ends early: a request to stop on another thread reaches the thread
 * of the io, and each operation ends once.
 *
 * 1. A request to stop on another thread pushes the operation onto `leaving` (release), and the mail
 *    takes all of them (acquire): so what was written before the request is seen by its end. The
 *    gate of the wait is shut until the io's thread has said that the operation has left (stop.h,
 *    5a), so the operation stays, also if it ends before the mail comes.
 * 2. The push that finds the list empty posts the mail. The mail takes the list when it runs, and is
 *    in no queue then; so whoever finds the list empty afterwards may post it again. That one writes
 *    the mail's frame anew, and its push acquires what the take released: the mail was read before.
 *    If the push finds something, the mail is posted, or about to be, and has not taken the list yet.
 * 3. An operation ends once: `end_waiting` is called by the table alone, which has it in one place.
 *    The table calls it when it has no use for the memory any more.
 */
#include "bide/extend/io.h"

#include "../coroutine/observe.h"
#include "../system/fork.h"

#include <errno.h>

#include "operation.h"

static bide_next mail_step(bide_frame *frame, unsigned depth)
{
    bide_io *io = bide_container_of(frame, bide_io, mail);
    (void)depth;
    /* acquire: 1. release: 2, partner is the next push */
    bide_awaiter *named = (bide_awaiter *)bide_atomic_exchange(&io->leaving, 0, acq_rel);
    while (named != NULL) {
        bide_awaiter *awaiter = named;
        bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
        named = *bide_awaiter_next_leaving_(awaiter);
        if ((operation->state & IO_WAITING) != 0) {
            operation->state |= IO_NAMED;
            io->table->cancel(io, operation);
        } else if (bide_awaiter_has_left_(awaiter)) {
            bide_wake_one(awaiter);
        }
    }
    return bide_next_none();
}

static const bide_coroutine_code mail_code = {mail_step, "(requests to stop)", __FILE__, NULL,
                                              NULL};
static const bide_point mail_point = BIDE_POINT_START(&mail_code);

void bide_io_init(bide_io *io, const bide_io_table *table, bide_scheduler *scheduler)
{
    io->table = table;
    io->scheduler = scheduler;
    io->context.scheduler = scheduler;
    io->context.stop = NULL;
    io->context.name = NULL;
    io->context.unhandled = NULL;
    io->descriptors = NULL;
    io->in_flight = 0;
    io->begun = 0;
    io->generation = bide_generation_;
    bide_atomic_init(&io->leaving, 0);
}

void bide_io_cancel(bide_awaiter *awaiter)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    bide_io *io = operation->io;
    if (io->scheduler->runs_here_only(io->scheduler)) {
        if ((operation->state & IO_WAITING) != 0)
            io->table->cancel(io, operation);
        return;
    }
    if (!bide_awaiter_leaves_(awaiter))
        return;
    bide_awaiter **link = bide_awaiter_next_leaving_(awaiter);
    uintptr_t newest = bide_atomic_load(&io->leaving, relaxed);
    do {
        *link = (bide_awaiter *)newest;
        /* release: 1. acquire: 2 */
    } while (!bide_atomic_compare_exchange_weak(&io->leaving, &newest, (uintptr_t)awaiter, acq_rel,
                                                relaxed));
    if (newest == 0) {
        bide_frame_init_in(&io->mail, &mail_point, &io->context);
        io->mail.awaiter.frame = &io->mail;
        io->scheduler->post(io->scheduler, &io->mail.awaiter, &io->mail.awaiter);
    }
}

void bide_io_end_waiting(bide_io_operation *operation, bide_io_outcome outcome)
{
    bide_awaiter *awaiter = &operation->awaiter;
    bool named = (operation->state & IO_NAMED) != 0;
    operation->state = 0;
    if (outcome != BIDE_IO_DONE) {
        if (operation->code == BIDE_IO_CONNECT)
            bide_io_give_back(operation);
        operation->status = outcome == BIDE_IO_CLOSED ? -EPIPE : -ECANCELED;
    }
    if (outcome == BIDE_IO_CANCELLED)
        bide_awaiter_end_cancelled(awaiter);
    if (named && bide_awaiter_has_left_(awaiter)) {
        /* (it has not ended, so the gate cannot have been stepped) */
    }
    BIDE_OBSERVE_(operation_ends, (awaiter, operation->count, operation->status));
    bide_wake_one(awaiter);
}
