/*
 * What other threads ask of an io: letters. Each is one of these:
 *
 *     a request to stop     of an operation that waits there
 *     an operation          that was awaited on another thread of the io's group, and begins here
 *     an errand             a function, which its sender waits for
 *
 * 1. A letter is pushed onto `letters` (release), and the mail takes all of them (acquire): so what
 *    was written before it was sent is seen by what is done. The gate of a wait that is to stop is
 *    shut until the io's thread has said that the operation has left (stop.h, 5a), so the operation
 *    stays, also if it ends before the mail comes.
 * 2. The push that finds the list empty posts the mail. The mail takes the list when it runs, and is
 *    in no queue then; so whoever finds the list empty afterwards may post it again. That one writes
 *    the mail's frame anew, and its push acquires what the take released: the mail was read before.
 *    If the push finds something, the mail is posted, or about to be, and has not taken the list yet.
 * 3. An operation ends once: `end_waiting` is called by the table alone, which has it in one place.
 *    The table calls it when it has no use for the memory any more.
 * 4. Letters are opened in the order in which they were pushed. An operation of a group can be asked
 *    to stop once its suspend has returned, and so after it was pushed. In a group also a request on
 *    the io's own thread is sent: the operation may not have begun.
 * 5. An errand is its sender's until it is done, which is released, and acquired by the sender. A
 *    sender that has an io of the group itself opens its own letters while it waits. So two that wait
 *    for each other go on.
 */
#include "bide/extend/io.h"

#include "../coroutine/observe.h"
#include "../system/fork.h"

#include <errno.h>

#include "operation.h"

/* In the low bits of a letter. */
enum { STOP = 0, BEGIN = 1, ERRAND = 2, KINDS = 3 };

typedef struct errand {
    uintptr_t next;
    void (*run)(bide_io *io, void *argument);
    void *argument;
    bide_atomic(uint32_t) is_done;
} errand;

static bide_awaiter *awaiter_in(uintptr_t letter)
{
    return (bide_awaiter *)(letter & ~(uintptr_t)KINDS);
}

static bide_io_operation *operation_in(uintptr_t letter)
{
    return bide_container_of(awaiter_in(letter), bide_io_operation, awaiter);
}

static errand *errand_in(uintptr_t letter)
{
    return (errand *)(letter & ~(uintptr_t)KINDS);
}

static uintptr_t next_of(uintptr_t letter)
{
    switch (letter & KINDS) {
    case STOP:
        return (uintptr_t)*bide_awaiter_next_leaving_(awaiter_in(letter));
    case BEGIN:
        return (uintptr_t)awaiter_in(letter)->link;
    default:
        return errand_in(letter)->next;
    }
}

static void set_next(uintptr_t letter, uintptr_t next)
{
    switch (letter & KINDS) {
    case STOP:
        *bide_awaiter_next_leaving_(awaiter_in(letter)) = (bide_awaiter *)next;
        break;
    case BEGIN:
        awaiter_in(letter)->link = (bide_awaiter *)next;
        break;
    default:
        errand_in(letter)->next = next;
        break;
    }
}

static void open_stop(bide_io *io, bide_io_operation *operation)
{
    if ((operation->state & IO_WAITING) != 0) {
        operation->state |= IO_NAMED;
        io->table->cancel(io, operation);
    } else if (bide_awaiter_has_left_(&operation->awaiter)) {
        bide_wake_one(&operation->awaiter);
    }
}

static void open_begin(bide_io *io, bide_io_operation *operation)
{
    bide_frame *frame = operation->awaiter.frame;
    if (bide_io_begin_(io, operation, frame) == frame)
        bide_wake_one(&operation->awaiter);
}

static void open_errand(bide_io *io, errand *errand)
{
    bide_atomic(uint32_t) *is_done = &errand->is_done;
    errand->run(io, errand->argument);
    /* release: 5. Its memory may be another's from here on; its address is used, and no more. */
    bide_atomic_store(is_done, 1, release);
    bide_platform.wake(is_done, 1);
}

static void open_letter(bide_io *io, uintptr_t letter)
{
    switch (letter & KINDS) {
    case STOP:
        open_stop(io, operation_in(letter));
        break;
    case BEGIN:
        open_begin(io, operation_in(letter));
        break;
    default:
        open_errand(io, errand_in(letter));
        break;
    }
}

static bide_next mail_step(bide_frame *frame, unsigned depth)
{
    bide_io *io = bide_container_of(frame, bide_io, mail);
    uintptr_t oldest = 0;
    (void)depth;
    /* acquire: 1. release: 2, partner is the next push */
    uintptr_t newest = bide_atomic_exchange(&io->letters, 0, acq_rel);
    for (uintptr_t letter = newest, next; letter != 0; letter = next) {
        next = next_of(letter);
        set_next(letter, oldest);
        oldest = letter;
    }
    for (uintptr_t letter = oldest, next; letter != 0; letter = next) {
        next = next_of(letter);
        open_letter(io, letter);
    }
    return bide_next_none();
}

static const bide_coroutine_code mail_code = {mail_step, "(letters to an io)", __FILE__, NULL,
                                              NULL};
static const bide_point mail_point = BIDE_POINT_START(&mail_code);

void bide_io_init(bide_io *io, const bide_io_table *table, bide_scheduler *scheduler)
{
    io->table = table;
    io->scheduler = scheduler;
    io->context.scheduler = scheduler;
    io->context.stop = NULL;
    io->context.name = NULL;
    io->context.on_unhandled_error = NULL;
    io->descriptors = NULL;
    io->in_flight = 0;
    io->begun = 0;
    io->generation = bide_generation_;
    io->group = NULL;
    bide_atomic_init(&io->letters, 0);
}

/* It is not touched afterwards. */
static void send_letter(bide_io *io, uintptr_t letter)
{
    uintptr_t newest = bide_atomic_load(&io->letters, relaxed);
    do {
        set_next(letter, newest);
        /* release: 1. acquire: 2 */
    } while (!bide_atomic_compare_exchange_weak(&io->letters, &newest, letter, acq_rel, relaxed));
    if (newest == 0) {
        bide_frame_init_in(&io->mail, &mail_point, &io->context);
        io->mail.awaiter.frame = &io->mail;
        io->scheduler->post(io->scheduler, &io->mail.awaiter, &io->mail.awaiter);
    }
}

void bide_io_cancel(bide_awaiter *awaiter)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    bide_io *io = operation->io;
    if (io->group == NULL && io_is_here(io)) {
        if ((operation->state & IO_WAITING) != 0)
            io->table->cancel(io, operation);
        return;
    }
    if (bide_awaiter_leaves_(awaiter))
        send_letter(io, (uintptr_t)awaiter | STOP);
}

bide_frame *bide_io_forward_(bide_io *io, bide_io_operation *operation)
{
    operation->io = io;
    send_letter(io, (uintptr_t)&operation->awaiter | BEGIN);
    return NULL;
}

void bide_io_call_remote_(bide_io *io, void (*run)(bide_io *io, void *argument), void *argument)
{
    const struct bide_io_group_ *group = io->group;
    if (group == NULL || io->generation != bide_generation_ || io_is_here(io)) {
        run(io, argument);
        return;
    }
    errand errand;
    errand.run = run;
    errand.argument = argument;
    bide_atomic_init(&errand.is_done, 0);
    send_letter(io, (uintptr_t)&errand | ERRAND);
    /* acquire: 5 */
    while (bide_atomic_load(&errand.is_done, acquire) == 0) {
        if (group->serve(group))
            bide_platform.yield();
        else
            bide_platform.wait(&errand.is_done, 0, BIDE_FOREVER);
    }
}

void bide_io_finish_waiting(bide_io_operation *operation, bide_io_outcome outcome)
{
    bide_awaiter *awaiter = &operation->awaiter;
    bool named = (operation->state & IO_NAMED) != 0;
    operation->state = 0;
    if (outcome != BIDE_IO_DONE) {
        if (operation->code == BIDE_IO_CONNECT)
            bide_io_release(operation);
        operation->status = outcome == BIDE_IO_CLOSED ? -EPIPE : -ECANCELED;
    }
    if (outcome == BIDE_IO_CANCELLED)
        bide_awaiter_finish_cancelled(awaiter);
    if (named && bide_awaiter_has_left_(awaiter)) {
        /* (it has not ended, so the gate cannot have been stepped) */
    }
    BIDE_OBSERVE_(operation_ends, (awaiter, operation->count, operation->status));
    bide_wake_one(awaiter);
}
