/*
 * What all operations on descriptors do alike, whatever carries them out.
 *
 *     state   IDLE --begin--> ended at once, or WAITING --end_waiting--> ENDED
 *             NAMED is beside WAITING: a request on another thread has named it
 *
 * The operation, its descriptor's lines and the io are of one thread: that of the io's scheduler.
 * So they need no order. What other threads reach is in mail.c.
 *
 * Where several threads have an io each and share their coroutines (io_pool.c), a descriptor is of
 * the io that used it first, its home. An operation that is awaited elsewhere is sent home, and
 * begins there. So is what is asked of a descriptor at once: to be closed, or forgotten.
 */
#include "bide/extend/io.h"

#include "bide/socket.h"

#include "../coroutine/observe.h"
#include "../system/fork.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "buffer_pool.h"
#include "operation.h"

/* To which it belongs from now on: this one, unless another of the group was first. */
static bide_io *claim(bide_io *io, bide_descriptor *descriptor)
{
    bide_io *home = io_of(descriptor);
    if (home != NULL)
        return home;
    /* relaxed: an io is older than the threads that find it here */
    if (io->group == NULL)
        bide_atomic_store(&descriptor->io, io, relaxed);
    else if (!bide_atomic_compare_exchange(&descriptor->io, &home, io, relaxed, relaxed))
        return home;
    return io;
}

/*
 * The first of the descriptors, which is looked at before anything else is done with it. Its user may
 * have made another descriptor of that struct, or something else of its memory, without closing it.
 */
static bide_descriptor *first_of(bide_io *io, const char *where)
{
    bide_descriptor *first = io->descriptors;
    if (BIDE_UNLIKELY(first != NULL && (io_of(first) != io || first->place != &io->descriptors)))
        bide_platform.misuse("a descriptor was overwritten while it belonged to a loop", where,
                             __FILE__, __LINE__);
    return first;
}

void bide_io_adopt(bide_io *io, bide_descriptor *descriptor)
{
    if (claim(io, descriptor) != io || descriptor->place != NULL)
        return;
    descriptor->next = first_of(io, "the use of another descriptor");
    descriptor->place = &io->descriptors;
    if (descriptor->next != NULL)
        descriptor->next->place = &descriptor->next;
    io->descriptors = descriptor;
}

/* The descriptor belongs to none. */
static void disown(bide_descriptor *descriptor)
{
    if (io_of(descriptor) == NULL)
        return;
    if (descriptor->place != NULL) {
        *descriptor->place = descriptor->next;
        if (descriptor->next != NULL)
            descriptor->next->place = descriptor->place;
        descriptor->place = NULL;
    }
    bide_atomic_store(&descriptor->io, (bide_io *)NULL, relaxed);
    descriptor->bits &= IO_BITS_OWN - 1;
}

void bide_io_destroy(bide_io *io)
{
    bide_descriptor *first;
    while ((first = first_of(io, "the end of that loop")) != NULL)
        disown(first);
}

BIDE_INLINE bide_frame *begin(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    bide_descriptor *descriptor = operation->descriptor;
    if (descriptor != NULL && !io_opens(operation)) {
        if (BIDE_UNLIKELY(descriptor->fd < 0)) {
            operation->status = -EBADF;
            return frame;
        }
        if (descriptor->place == NULL || io_of(descriptor) != io)
            bide_io_adopt(io, descriptor);
        if (BIDE_UNLIKELY(io_of(descriptor) != io))
            bide_platform.misuse("a descriptor is used on two loops", operation->awaiter.ops->name,
                                 __FILE__, __LINE__);
    }
    if (operation->io != io) /* (one that was sent here may be looked at by a request to stop) */
        operation->io = io;
    io->begun++;
    return io->table->begin(io, operation, frame);
}

bide_frame *bide_io_begin_(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    return begin(io, operation, frame);
}

/* The same of one of several: at the descriptor's home. */
static BIDE_NOINLINE bide_frame *begin_at_home(bide_io *io, bide_io_operation *operation,
                                               bide_frame *frame)
{
    bide_descriptor *descriptor = operation->descriptor;
    if (operation->code == BIDE_IO_RECV_PROVIDED) { /* a pool of buffers is of one loop */
        operation->status = -ENOTSUP;
        return frame;
    }
    if (descriptor != NULL && !io_opens(operation) && descriptor->fd >= 0) {
        bide_io *home = claim(io, descriptor);
        if (home->group == io->group)
            io = home; /* (otherwise it is misuse) */
    }
    return io_is_here(io) ? begin(io, operation, frame) : bide_io_forward_(io, operation);
}

bide_frame *bide_io_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    bide_io *io = io_of_context(frame->context);
    if (BIDE_UNLIKELY(io == NULL || io->generation != bide_generation_)) {
        operation->status = -ENOTSUP;
        return frame;
    }
    bide_frame *next = BIDE_LIKELY(io->group == NULL) ? begin(io, operation, frame)
                                                      : begin_at_home(io, operation, frame);
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

/* What is asked of an operation at its io. */
typedef struct withdrawal {
    bide_io_operation *operation;
    bool is_forgotten;
} withdrawal;

static void forget(bide_io *io, void *argument)
{
    withdrawal *wanted = argument;
    bide_io_operation *operation = wanted->operation;
    wanted->is_forgotten = (operation->state & IO_WAITING) != 0;
    if (wanted->is_forgotten) {
        io->table->forget(io, operation);
        BIDE_OBSERVE_(operation_ends, (&operation->awaiter, operation->count, -ECANCELED));
        operation->state = 0;
    } else if (operation->status == 0) {
        bide_io_release(operation);
    }
}

bool bide_io_withdraw(bide_awaiter *awaiter)
{
    withdrawal wanted = {bide_container_of(awaiter, bide_io_operation, awaiter), false};
    if (wanted.operation->io != NULL)
        bide_io_call_remote_(wanted.operation->io, forget, &wanted);
    return wanted.is_forgotten;
}

int bide_io_direction(const bide_io_operation *operation)
{
    return io_direction(operation);
}

void bide_io_enlist(bide_io *io, bide_io_operation *operation)
{
    BIDE_OBSERVE_(operation, (&operation->awaiter,
                              operation->descriptor != NULL ? operation->descriptor->fd : -1));
    bide_io_enqueue_(io, operation);
}

void bide_io_enqueue_(bide_io *io, bide_io_operation *operation)
{
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
    io->in_flight--;
    if (io_waits_for_buffer(operation))
        bide_io_pool_leave_(operation);
    if (operation->descriptor == NULL)
        return;
    bide_io_line_ *line = &operation->descriptor->lines[io_direction(operation)];
    if (operation->previous != NULL)
        operation->previous->next = operation->next;
    else
        line->first = operation->next;
    if (operation->next != NULL)
        operation->next->previous = operation->previous;
    else
        line->last = operation->previous;
}

/* How many bytes a vector holds. */
static size_t size_of(const struct iovec *vectors, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += vectors[i].iov_len;
    return size;
}

static size_t wanted(const bide_io_operation *operation)
{
    if (operation->code == BIDE_IO_WRITE_VECTOR)
        return size_of(operation->arguments.vector.vectors, operation->arguments.vector.count);
    if (operation->code == BIDE_IO_SEND_BATCH)
        return operation->arguments.batch.count;
    if (operation->code == BIDE_IO_SPLICE_TO_SOCKET)
        return operation->arguments.splice.size;
    return operation->arguments.bytes.size;
}

/* Of a call that returned what it opened. */
static void take_opened(const bide_io_operation *operation, bide_descriptor *descriptor, int fd,
                        uint32_t bits)
{
    bide_descriptor_init(descriptor, fd);
    descriptor->bits = bits;
    if (io_calls(operation->io) != NULL) /* its number means something there alone */
        bide_io_adopt(operation->io, descriptor);
}

bool bide_io_take_result(bide_io_operation *operation, ptrdiff_t result, bool *again)
{
    *again = false;
    if (result < 0) {
        if (result == -EINTR)
            return false;
        if (result == -EAGAIN) {
            *again = true;
            return false;
        }
        operation->status = (int)result;
        if (operation->code == BIDE_IO_CONNECT)
            bide_io_release(operation);
        return true;
    }
    switch (operation->code) {
    case BIDE_IO_RECV:
    case BIDE_IO_RECV_PROVIDED:
    case BIDE_IO_RECVMSG:
    case BIDE_IO_RECV_BATCH:
    case BIDE_IO_SPLICE_FROM_FILE:
    case BIDE_IO_READ_DIRECTORY:
    case BIDE_IO_SENDMSG:
    case BIDE_IO_READ:
    case BIDE_IO_READ_VECTOR:
        operation->count = (size_t)result;
        break;
    case BIDE_IO_SEND:
    case BIDE_IO_SEND_ZERO_COPY:
    case BIDE_IO_SEND_BATCH:
    case BIDE_IO_SPLICE_TO_SOCKET:
    case BIDE_IO_WRITE:
    case BIDE_IO_WRITE_VECTOR:
        operation->count += (size_t)result;
        if (operation->is_whole && operation->count < wanted(operation)) {
            if (result == 0) {
                operation->status = -EIO; /* it takes nothing, and says nothing */
                return true;
            }
            return false;
        }
        break;
    case BIDE_IO_ACCEPT:
        take_opened(operation, operation->arguments.accept.accepted, (int)result,
                    IO_ASKED | (operation->descriptor->bits & IO_BYTES));
        break;
    case BIDE_IO_OPEN:
        take_opened(operation, operation->arguments.open.opened, (int)result, 0);
        break;
    case BIDE_IO_POLL:
        operation->arguments.poll.found = (uint32_t)result;
        break;
    default:
        break;
    }
    operation->status = 0;
    return true;
}

/* Nobody knows of the descriptors that came with a message. */
static void close_passed(bide_io *io, struct msghdr *message)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = CMSG_LEN(0); i + sizeof(int) <= at->cmsg_len; i += sizeof(int)) {
            int fd;
            memcpy(&fd, (const char *)at + i, sizeof fd);
            bide_io_close_number_(io, fd);
        }
    }
    message->msg_controllen = 0;
}

void bide_io_release(bide_io_operation *operation)
{
    switch (operation->code) {
    case BIDE_IO_RECVMSG:
        close_passed(operation->io, operation->arguments.message);
        break;
    case BIDE_IO_RECV_BATCH:
        for (size_t i = 0; i < operation->count; i++)
            close_passed(operation->io, &operation->arguments.batch.messages[i].header);
        break;
    case BIDE_IO_ACCEPT:
        bide_close(operation->arguments.accept.accepted);
        break;
    case BIDE_IO_OPEN:
        bide_close(operation->arguments.open.opened);
        break;
    case BIDE_IO_READ_DIRECTORY: /* (what was read will be read again) */
        bide_io_unread_directory_(operation);
        break;
    case BIDE_IO_MAP:
        munmap(operation->arguments.map.at, operation->arguments.map.size);
        break;
    case BIDE_IO_RECV_PROVIDED:
        bide_buffer_release(operation->arguments.lent.pool, operation->arguments.lent.data);
        operation->arguments.lent.data = NULL;
        break;
    case BIDE_IO_CONNECT:
        bide_io_close_(operation->io, operation->descriptor);
        break;
    case BIDE_IO_LISTEN:
    case BIDE_IO_BIND:
        bide_close(operation->descriptor);
        break;
    case BIDE_IO_PAIR:
        bide_close(operation->descriptor);
        bide_close(operation->arguments.accept.accepted);
        break;
    default:
        break;
    }
}

/* ---- Descriptors ---- */

int bide_io_close_number_(bide_io *io, int fd)
{
    if (io_calls(io) != NULL)
        return io_calls(io)->close(io, fd);
    return close(fd) == 0 ? 0 : -errno;
}

int bide_io_close_(bide_io *io, bide_descriptor *descriptor)
{
    int fd = descriptor->fd;
    if (fd < 0)
        return -EBADF;
    disown(descriptor);
    bide_descriptor_init_closed(descriptor);
    return bide_io_close_number_(io, fd);
}

static void release_there(bide_io *io, void *argument)
{
    bide_descriptor *descriptor = argument;
    if (io->generation == bide_generation_)
        io->table->release(io, descriptor);
    disown(descriptor);
}

/* Its loop lets go of it. */
static bide_io *leave_io(bide_descriptor *descriptor)
{
    bide_io *io = io_of(descriptor);
    if (io != NULL)
        bide_io_call_remote_(io, release_there, descriptor);
    return io;
}

int bide_close(bide_descriptor *descriptor)
{
    if (descriptor->fd < 0)
        return -EBADF;
    bide_io *io = leave_io(descriptor);
    return bide_io_close_(io, descriptor);
}

int bide_descriptor_release(bide_descriptor *descriptor)
{
    int fd = descriptor->fd;
    if (fd < 0)
        return -EBADF;
    leave_io(descriptor);
    bide_descriptor_init_closed(descriptor);
    return fd;
}
