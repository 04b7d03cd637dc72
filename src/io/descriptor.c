/*
 * Descriptors: to which io they belong, and how they are closed.
 *
 *     `io` of an open descriptor
 *
 *     NULL --the first operation, on any thread of a group--> its owner --closed there--> NULL
 *          --closed before that--> closing --its number is closed, or released--> NULL
 *
 * If several threads have an io each and share their coroutines (io_pool.c), any of them may begin
 * an operation on a descriptor, or close it. Everything else that is done with the descriptor is done on
 * its owner's thread.
 *
 * 1. Each step from NULL is a compare-exchange. So a first operation and a close from two threads have
 *    an order: the operation finds `closing`, or the close finds the owner and is forwarded to it. Two
 *    closes have one too.
 * 2. On the owner's thread a close is one step (descriptor_end_here): what waits ends, the back end
 *    forgets the descriptor, its struct says that it is closed, and its number is closed. So whatever
 *    begins on that thread finds it as it was before, or closed.
 * 3. `io` becomes NULL after the struct says that it is closed. The release of that NULL, and the
 *    acquire of each step from NULL, let the next claimant read that the descriptor is closed. It puts
 *    NULL back.
 * 4. The struct says whether the descriptor is open in a relaxed atomic. A thread that forwards an
 *    operation or a close may read an old value. The owner reads it again, by 2.
 * 5. A descriptor is in the list of its owner exactly while `place` is not NULL.
 */
#include "operation.h"

#include "../system/fork.h"

#include <errno.h>

/* `io` of a descriptor that belonged to none when its close began. It carries nothing out. */
static const bide_io_table closing_table = {.name = "(being closed)"};
static bide_io closing = {.table = &closing_table};

bool bide_io_is_closing_(const bide_io *io)
{
    return io == &closing;
}

/* ---- Owners ---- */

/* A claimed descriptor was closed in the meantime: 3. */
static bide_io *descriptor_give_back(bide_descriptor *descriptor)
{
    bide_atomic_store(&descriptor->io, (bide_io *)NULL, release); /* release: 3 */
    return NULL;
}

bide_io *bide_descriptor_claim_(bide_io *io, bide_descriptor *descriptor)
{
    bide_io *owner = io_of(descriptor);
    if (owner != NULL)
        return owner != &closing ? owner : NULL;
    if (io->group == NULL) {
        bide_atomic_store(&descriptor->io, io, relaxed); /* relaxed: one thread has it */
        return io;
    }
    /* relaxed: an io is older than the threads that find it here. acquire: 3 */
    if (!bide_atomic_compare_exchange(&descriptor->io, &owner, io, acquire, relaxed))
        return owner != &closing ? owner : NULL;
    return bide_descriptor_is_open(descriptor) ? io : descriptor_give_back(descriptor);
}

/*
 * The first descriptor in the io's list. It is checked before it is used: its user may have reused
 * the memory of its struct without closing it.
 */
static bide_descriptor *first_descriptor_of_io(bide_io *io, const char *where)
{
    bide_descriptor *first = io->descriptors;
    if (BIDE_UNLIKELY(first != NULL && (io_of(first) != io || first->place != &io->descriptors)))
        bide_platform.misuse("a descriptor was overwritten while it belonged to a loop", where,
                             __FILE__, __LINE__);
    return first;
}

void bide_io_adopt(bide_io *io, bide_descriptor *descriptor)
{
    if (bide_descriptor_claim_(io, descriptor) != io || descriptor->place != NULL)
        return;
    descriptor->next = first_descriptor_of_io(io, "the use of another descriptor");
    descriptor->place = &io->descriptors;
    if (descriptor->next != NULL)
        descriptor->next->place = &descriptor->next;
    io->descriptors = descriptor;
}

static void descriptor_disown(bide_descriptor *descriptor)
{
    if (io_of(descriptor) == NULL)
        return;
    if (descriptor->place != NULL) {
        bide_assert(*descriptor->place == descriptor); /* 5 */
        *descriptor->place = descriptor->next;
        if (descriptor->next != NULL)
            descriptor->next->place = descriptor->place;
        descriptor->place = NULL;
    }
    descriptor->bits &= IO_SYSTEM_BITS;
    bide_atomic_store(&descriptor->io, (bide_io *)NULL, release); /* release: 3 */
}

void bide_io_destroy(bide_io *io)
{
    bide_descriptor *first;
    while ((first = first_descriptor_of_io(io, "the end of that loop")) != NULL)
        descriptor_disown(first);
}

/* ---- Closing ---- */

/* How a descriptor leaves its io. */
typedef struct descriptor_end {
    bide_descriptor *descriptor;
    bool is_released; /* its number stays open, and is the result */
    int result;
} descriptor_end;

/* The one step: 2. A connect that waited has closed the descriptor by its end. */
static void descriptor_end_here(bide_io *io, void *argument)
{
    descriptor_end *end = argument;
    bide_descriptor *descriptor = end->descriptor;
    bool was_open = bide_descriptor_is_open(descriptor);
    if (was_open && io != NULL && !bide_is_inherited_(io->generation)) {
        io->table->release(io, descriptor);
        for (int direction = 0; direction < BIDE_IO_LINES; direction++)
            bide_assert(descriptor->lines[direction].first == NULL);
    }
    int fd = bide_descriptor_fd(descriptor);
    end->result = was_open && !end->is_released ? 0 : -EBADF;
    if (fd < 0)
        return;
    bide_atomic_store(&descriptor->fd_and_1_, 0, relaxed); /* relaxed: 3, 4 */
    descriptor->bits = 0;
    descriptor_disown(descriptor);
    end->result = end->is_released ? fd : bide_io_close_number_(io, fd);
}

int bide_io_close_(bide_io *io, bide_descriptor *descriptor)
{
    descriptor_end end = {descriptor, false, 0};
    descriptor_end_here(io, &end);
    return end.result;
}

/* Ends a descriptor that belonged to no io, and is marked as `closing`. */
static void descriptor_end_unclaimed(descriptor_end *end)
{
    if (bide_descriptor_is_open(end->descriptor))
        descriptor_end_here(NULL, end);
    else
        descriptor_give_back(end->descriptor); /* another close was first: 3 */
}

static int descriptor_end_at_owner(bide_descriptor *descriptor, bool is_released)
{
    descriptor_end end = {descriptor, is_released, -EBADF};
    bide_io *owner = io_of(descriptor);
    if (!bide_descriptor_is_open(descriptor))
        return -EBADF;
    /* relaxed: as in bide_descriptor_claim_. acquire: 3 */
    if (owner == NULL &&
        bide_atomic_compare_exchange(&descriptor->io, &owner, &closing, acquire, relaxed))
        descriptor_end_unclaimed(&end);
    else if (owner != &closing)
        bide_io_call_remote_(owner, descriptor_end_here, &end);
    return end.result;
}

int bide_close(bide_descriptor *descriptor)
{
    return descriptor_end_at_owner(descriptor, false);
}

int bide_descriptor_release(bide_descriptor *descriptor)
{
    return descriptor_end_at_owner(descriptor, true);
}
