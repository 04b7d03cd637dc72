/*
 * The io in memory: operations begin, wait and end. One thread has it, that of a test loop, so there is
 * nothing to order.
 *
 *     on a socket or pipe   tried at once --it cannot yet--> in line, tried again when its node has
 *                           changed (node.c)
 *     on a file             in line --first, and its time has come--> made --> told of
 *
 * Why a seed gives the same run everywhere:
 * 1. All that happens at a time is an event, which the loop has among its timers, and runs in a turn
 *    of its own: so its order among the coroutines is the loop's to draw.
 * 2. What waits is tried again in an order that the run itself made: that in which nodes have changed,
 *    of a node that of its numbers, of a descriptor that of its lines. No address is compared for
 *    more than being equal, and nothing is asked of the system but the number of the process, and who
 *    owns it, for those who want credentials.
 * 3. What is drawn is drawn from the loop's seed, at the moment at which it is used.
 *
 * An operation on a file is made in one turn, and told of in another. Before the first it can be cut
 * short; between the two it has been done, and ends with what came of it, as one does that a kernel or
 * a thread has begun. If its coroutine is destroyed then, what it opened is closed.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../io/buffer_pool.h"

#include <stdlib.h>

enum { JOB = IO_OWN }; /* of an operation: it is one on a file */

/* ---- Operations on files ---- */

typedef struct memory_job {
    memory_event event;
    bide_io_operation *operation;
    bool is_made;
} memory_job;

/* (kept where other tables have their call) */
static memory_job *job_of(const bide_io_operation *operation)
{
    return bide_container_of(operation, const bide_file_operation, operation)->call.argument;
}

static bool is_job(const memory_world *world, const bide_io_operation *operation)
{
    if (!operation->is_file)
        return false;
    if (operation->code >= BIDE_IO_OPEN)
        return true;
    const memory_node *node = bide_simulated_node_of_(world, operation->descriptor->fd);
    return node != NULL && node->kind->is_file;
}

static bool is_first(const bide_io_operation *operation)
{
    int direction = io_direction(operation);
    return operation->descriptor == NULL || direction == BIDE_IO_FREE ||
           operation->descriptor->lines[direction].first == operation;
}

static void start_job(memory_world *world, const bide_io_operation *operation)
{
    uint64_t delay =
        bide_sim_loop_delay_(world->loop, "an operation on a file is done", world->options.disk_delay);
    bide_simulated_event_set_(&job_of(operation)->event, world->loop->now + delay);
}

/* Takes it out of its line, and starts the next of that. */
static void take_job_out(memory_world *world, bide_io_operation *operation)
{
    const bide_descriptor *descriptor = operation->descriptor;
    int direction = io_direction(operation);
    bool was_first = is_first(operation);
    memory_job *job = job_of(operation);
    bide_simulated_event_clear_(&job->event);
    free(job);
    operation->state &= (uint16_t)~JOB;
    bide_io_remove(&world->io, operation);
    if (descriptor == NULL || direction == BIDE_IO_FREE || !was_first)
        return;
    const bide_io_operation *next = descriptor->lines[direction].first;
    if (next != NULL)
        start_job(world, next);
}

static void do_it_all(memory_world *world, bide_io_operation *operation)
{
    bool again;
    while (!bide_io_take_result(operation, bide_simulated_call_(world, operation), &again)) {
        if (again) { /* (a pipe that its user has filled) */
            operation->status = -EAGAIN;
            return;
        }
    }
}

/* Its time has come: first to be made, then to be told of. */
static void job_happens(memory_event *event)
{
    memory_job *job = bide_container_of(event, memory_job, event);
    memory_world *world = event->world;
    bide_io_operation *operation = job->operation;
    if (!job->is_made) {
        job->is_made = true;
        do_it_all(world, operation);
        bide_simulated_event_set_(event, world->loop->now);
        return;
    }
    take_job_out(world, operation);
    bide_io_finish_waiting(operation, BIDE_IO_DONE);
}

static bide_frame *begin_job(memory_world *world, bide_io_operation *operation, bide_frame *frame)
{
    MEMORY_EVENT(done, "an operation on a file goes on");
    memory_job *job = malloc(sizeof *job);
    if (job == NULL) {
        operation->status = -ENOMEM;
        return frame;
    }
    bide_simulated_event_init_(&job->event, world, &done, job_happens);
    job->operation = operation;
    job->is_made = false;
    bide_container_of(operation, bide_file_operation, operation)->call.argument = job;
    bide_io_enlist(&world->io, operation);
    operation->state |= JOB;
    if (is_first(operation))
        start_job(world, operation);
    return NULL;
}

/* ---- Lines ---- */

/* Makes its call, or calls. True: it is done. False: it has to wait. */
static bool try_it(memory_world *world, bide_io_operation *operation)
{
    bool again;
    while (!bide_io_take_result(operation, bide_simulated_call_(world, operation), &again)) {
        if (again)
            return false;
    }
    return true;
}

static void go_on_with_line(memory_world *world, bide_descriptor *descriptor, int direction)
{
    bide_io_operation *next;
    for (bide_io_operation *at = descriptor->lines[direction].first; at != NULL; at = next) {
        next = at->next;
        if ((at->state & JOB) != 0)
            continue;
        if (!try_it(world, at)) {
            if (direction != BIDE_IO_FREE)
                break;
            continue;
        }
        bide_io_remove(&world->io, at);
        bide_io_finish_waiting(at, BIDE_IO_DONE);
    }
}

void bide_simulated_continue_(memory_world *world, bide_descriptor *descriptor)
{
    for (int direction = 0; direction < BIDE_IO_LINES; direction++)
        go_on_with_line(world, descriptor, direction);
}

/* ---- Buffers that are lent ---- */

static void retry(bide_io *io, bide_io_operation *operation)
{
    memory_world *world = memory_world_of(io);
    go_on_with_line(world, operation->descriptor, BIDE_IO_INPUT);
    bide_simulated_settle_(world);
}

static const struct bide_buffer_hooks_ buffer_hooks = {retry, NULL, NULL};

/* What it leaves, the next in its line may have. */
static void leave_line(memory_world *world, bide_io_operation *operation)
{
    memory_node *node =
        operation->descriptor != NULL ? bide_simulated_node_of_(world, operation->descriptor->fd) : NULL;
    bide_io_remove(&world->io, operation);
    if (node != NULL)
        bide_simulated_changed_(node);
}

/* ---- Opening ---- */

static void take_opened(memory_world *world, bide_descriptor *descriptor, int fd)
{
    bide_descriptor_init(descriptor, fd);
    descriptor->bits = IO_ASKED;
    bide_io_adopt(&world->io, descriptor);
}

static int open_pair(memory_world *world, const bide_io_operation *operation)
{
    int fds[2];
    int error = bide_simulated_socket_pair_(world, fds);
    if (error == 0) {
        take_opened(world, operation->descriptor, fds[0]);
        take_opened(world, operation->arguments.accept.accepted, fds[1]);
    }
    return error;
}

/* 0 or a negative errno. */
static int open_it(memory_world *world, const bide_io_operation *operation)
{
    int fd;
    switch (operation->code) {
    case BIDE_IO_PAIR:
        return open_pair(world, operation);
    case BIDE_IO_CONNECT:
        fd = bide_simulated_connect_(world, operation->arguments.address);
        break;
    case BIDE_IO_LISTEN:
        fd = bide_simulated_listen_(world, operation->arguments.listen.address,
                           operation->arguments.listen.backlog, operation->flags);
        break;
    default:
        fd = bide_simulated_open_datagrams_(world, operation->arguments.listen.address, operation->flags);
        break;
    }
    if (fd < 0)
        return fd;
    take_opened(world, operation->descriptor, fd);
    return 0;
}

/* ---- The table ---- */

/* Has its number lead to the descriptor that is about to wait. */
static int enroll(memory_world *world, bide_descriptor *descriptor)
{
    memory_slot *slot = bide_simulated_slot_of_(world, descriptor->fd);
    if (slot == NULL)
        return -EBADF;
    if (slot->descriptor != NULL && slot->descriptor != descriptor)
        return -EEXIST;
    slot->descriptor = descriptor;
    return 0;
}

static bide_frame *begin_in_line(memory_world *world, bide_io_operation *operation,
                                 bide_frame *frame)
{
    bide_descriptor *descriptor = operation->descriptor;
    int direction = io_direction(operation);
    if (operation->code == BIDE_IO_RECV_PROVIDED)
        bide_io_pool_enter_(operation->arguments.lent.pool, &world->io, &buffer_hooks);
    bool is_done = (direction == BIDE_IO_FREE || descriptor->lines[direction].first == NULL) &&
                   try_it(world, operation);
    if (!is_done) {
        int error = enroll(world, descriptor);
        if (error == 0) {
            bide_io_enlist(&world->io, operation);
        } else {
            operation->status = error;
            if (io_waits_for_buffer(operation))
                bide_io_pool_leave_(operation);
            is_done = true;
        }
    }
    bide_simulated_settle_(world);
    return is_done ? frame : NULL;
}

static bide_frame *begin(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    memory_world *world = memory_world_of(io);
    switch (operation->code) {
    case BIDE_IO_LISTEN:
    case BIDE_IO_BIND:
    case BIDE_IO_PAIR:
        operation->status = open_it(world, operation);
        return frame;
    case BIDE_IO_CONNECT:
        operation->status = open_it(world, operation);
        if (operation->status != 0)
            return frame;
        break;
    case BIDE_IO_MAP:
    case BIDE_IO_PREFAULT:
        operation->status = -ENOTSUP;
        return frame;
    default:
        break;
    }
    return is_job(world, operation) ? begin_job(world, operation, frame)
                                    : begin_in_line(world, operation, frame);
}

static void cancel(bide_io *io, bide_io_operation *operation)
{
    memory_world *world = memory_world_of(io);
    if ((operation->state & JOB) == 0)
        leave_line(world, operation);
    else if (!job_of(operation)->is_made)
        take_job_out(world, operation);
    else
        return; /* it ends by itself */
    bide_io_finish_waiting(operation, BIDE_IO_CANCELLED);
    bide_simulated_settle_(world);
}

static void forget(bide_io *io, bide_io_operation *operation)
{
    memory_world *world = memory_world_of(io);
    if ((operation->state & JOB) != 0) {
        bool is_made = job_of(operation)->is_made;
        take_job_out(world, operation);
        if (is_made && operation->status == 0)
            bide_io_release(operation);
    } else {
        leave_line(world, operation);
        if (operation->code == BIDE_IO_CONNECT)
            bide_close(operation->descriptor);
    }
    bide_simulated_settle_(world);
}

static void release_one(memory_world *world, bide_io_operation *operation)
{
    bool is_made = (operation->state & JOB) != 0 && job_of(operation)->is_made;
    if ((operation->state & JOB) != 0)
        take_job_out(world, operation);
    else
        bide_io_remove(&world->io, operation);
    bide_io_finish_waiting(operation, is_made ? BIDE_IO_DONE : BIDE_IO_CLOSED);
}

static void release(bide_io *io, bide_descriptor *descriptor)
{
    memory_world *world = memory_world_of(io);
    for (int direction = 0; direction < BIDE_IO_LINES; direction++) {
        while (descriptor->lines[direction].first != NULL)
            release_one(world, descriptor->lines[direction].first);
    }
    memory_slot *slot = bide_simulated_slot_of_(world, descriptor->fd);
    if (slot != NULL && slot->descriptor == descriptor)
        slot->descriptor = NULL;
    bide_simulated_settle_(world);
}

static const bide_io_table bide_io_memory_table_ = {"memory", begin,   cancel,
                                              forget,   release, &bide_simulated_calls_};

static const bide_io_describer_ describer = {&bide_io_memory_table_, bide_io_memory_describe_};

/* ---- Beginning and end ---- */

int bide_memory_io_create(bide_memory_io **created, bide_sim_loop *loop,
                          const bide_memory_io_options *options)
{
    if (loop->io != NULL)
        return -EBUSY;
    memory_world *world = calloc(1, sizeof *world);
    if (world == NULL)
        return -ENOMEM;
    world->loop = loop;
    if (options != NULL)
        world->options = *options;
    int error = bide_simulated_tree_create_(world);
    if (error != 0) {
        free(world);
        return error;
    }
    bide_io_init(&world->io, &bide_io_memory_table_, &loop->scheduler);
    bide_io_describe_operations_(&describer);
    loop->io = &world->io;
    *created = world;
    return 0;
}

void bide_memory_io_destroy(bide_memory_io *world)
{
    if (world->io.in_flight != 0)
        bide_platform.misuse("an io in memory is destroyed while operations wait",
                             "bide_memory_io_destroy", __FILE__, __LINE__);
    bide_io_destroy(&world->io);
    for (int i = 0; i < world->slots_count; i++)
        bide_simulated_close_(world, MEMORY_FIRST + i);
    bide_simulated_settle_(world);
    bide_simulated_datagrams_end_(world);
    bide_simulated_tree_destroy_(world);
    world->loop->io = NULL;
    free(world->slots);
    free(world);
}

void bide_memory_io_change(bide_memory_io *world, const bide_memory_io_options *options)
{
    world->options = *options;
}

int bide_memory_io_pipe(bide_memory_io *world, bide_descriptor *input, bide_descriptor *output)
{
    int fds[2];
    bide_descriptor_init_closed(input);
    bide_descriptor_init_closed(output);
    int error = bide_simulated_pipe_(world, fds);
    if (error == 0) {
        take_opened(world, input, fds[0]);
        take_opened(world, output, fds[1]);
    }
    return error;
}

void bide_memory_io_get_stats(const bide_memory_io *world, bide_memory_io_stats *counts)
{
    counts->started = world->io.begun;
    counts->in_flight = world->io.in_flight;
    counts->descriptors = (unsigned)world->slots_open;
    counts->disk = bide_simulated_tree_size_(world);
}

bide_loop_back_end bide_memory_io_back_end(const bide_memory_io *world)
{
    return (bide_loop_back_end){world->io.table->name, "a test loop has it", 0};
}
