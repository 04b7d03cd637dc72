/*
 * The io in memory: operations begin, wait and end. All of it runs on the thread of a test loop, so
 * nothing needs an order.
 *
 *     on a socket or pipe   tried at once --not yet--> in line, retried when its node has changed
 *     on a file             a job: in line --first, after a delay--> done --in a later turn--> ended
 *
 * Why a seed gives the same run everywhere:
 * 1. Everything that happens at a time is an event, which is among the loop's timers, and runs in a
 *    turn of its own. So the loop draws its order among the coroutines.
 * 2. Waiting operations are retried in an order that the run itself has made: nodes in the order in
 *    which they changed, the numbers of a node in theirs, a descriptor's lines in theirs. Addresses
 *    are compared for equality alone. The system is asked for nothing but the process's number and
 *    owner, for credentials.
 * 3. Every choice is drawn from the loop's seed, at the moment at which it is used.
 *
 * A job is done in one turn, and its operation ends in another. Before the first it can be
 * cancelled. Between the two it is done, and ends with its result, like an operation that a kernel
 * or a thread has started. If its coroutine is destroyed then, the descriptor that it opened is
 * closed.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../coroutine/internal.h"
#include "../io/buffer_pool.h"

#include <stdlib.h>

/* ---- Jobs: operations on files ---- */

typedef struct memory_job {
    memory_event event;
    bide_io_operation *operation;
    bool is_done;
} memory_job;

/* (it is kept in the place of the blocking call of other back ends) */
static memory_job *job_of(const bide_io_operation *operation)
{
    return bide_container_of(operation, const bide_file_operation, operation)->call.argument;
}

static bool is_job(const bide_io_operation *operation)
{
    return (operation->state & IO_IS_FILE_JOB) != 0;
}

static bool needs_job(const sim_environment *environment, const bide_io_operation *operation)
{
    bide_io_blocks_ blocks = (bide_io_blocks_)bide_io_row_of_(operation)->blocks;
    bide_assert(operation->is_file || blocks != IO_BLOCKS_ALWAYS);
    if (!operation->is_file || blocks != IO_BLOCKS_ON_FILE)
        return operation->is_file && blocks == IO_BLOCKS_ALWAYS;
    const memory_node *node = bide_sim_node_of_(environment, io_fd(operation));
    return node != NULL && node->kind->is_file;
}

static void start_job(sim_environment *environment, const bide_io_operation *operation)
{
    uint64_t delay =
        bide_sim_loop_delay_(environment->loop, "an operation on a file is done", environment->options.disk_delay);
    bide_sim_event_set_(&job_of(operation)->event, environment->loop->now + delay);
}

/* Takes an operation out of its line, frees its job, and starts the next job of the line. */
static void take_job_out(sim_environment *environment, bide_io_operation *operation)
{
    const bide_descriptor *descriptor = operation->descriptor;
    int direction = io_direction(operation);
    bool was_first = bide_io_is_first_(operation);
    memory_job *job = job_of(operation);
    bide_sim_event_clear_(&job->event);
    free(job);
    operation->state &= (uint16_t)~IO_IS_FILE_JOB;
    bide_io_remove(&environment->io, operation);
    if (descriptor == NULL || direction == BIDE_IO_FREE || !was_first)
        return;
    const bide_io_operation *next = descriptor->lines[direction].first;
    if (next != NULL)
        start_job(environment, next);
}

/* From here on it is carried out for `frame`, which awaits it. */
static void carry_out(sim_environment *environment, const bide_io_operation *operation,
                      const bide_frame *frame)
{
    environment->carried = operation;
    environment->carried_for = frame;
}

/* Makes an operation's call, or calls. True: it is done. False: it has to wait. */
static bool try_in_memory(sim_environment *environment, bide_io_operation *operation,
                          const bide_frame *frame)
{
    bool again = false;
    bool is_done;
    carry_out(environment, operation, frame);
    do
        is_done = bide_io_take_result(operation, bide_sim_io_call_(environment, operation), &again);
    while (!is_done && !again);
    environment->carried = NULL;
    return is_done;
}

/* The first event of a job does the operation, the second one ends it. */
static void job_happens(memory_event *event)
{
    memory_job *job = bide_container_of(event, memory_job, event);
    sim_environment *environment = event->environment;
    bide_io_operation *operation = job->operation;
    if (!job->is_done) {
        job->is_done = true;
        if (!try_in_memory(environment, operation, operation->awaiter.frame))
            operation->status = -EAGAIN; /* (a pipe that its user has filled) */
        bide_sim_event_set_(event, environment->loop->now);
        return;
    }
    take_job_out(environment, operation);
    bide_io_finish_waiting(operation, BIDE_IO_DONE);
}

static bide_frame *begin_job(sim_environment *environment, bide_io_operation *operation, bide_frame *frame)
{
    MEMORY_EVENT(done, "an operation on a file continues");
    memory_job *job = malloc(sizeof *job);
    if (job == NULL) {
        operation->status = -ENOMEM;
        return frame;
    }
    bide_sim_event_init_(&job->event, environment, &done, job_happens);
    job->operation = operation;
    job->is_done = false;
    bide_container_of(operation, bide_file_operation, operation)->call.argument = job;
    bide_io_enlist(&environment->io, operation);
    operation->state |= IO_IS_FILE_JOB;
    if (bide_io_is_first_(operation))
        start_job(environment, operation);
    return NULL;
}

/* ---- Lines ---- */

static void try_line_in_memory(sim_environment *environment, bide_descriptor *descriptor, int direction)
{
    bide_io_operation *next;
    for (bide_io_operation *at = descriptor->lines[direction].first; at != NULL; at = next) {
        next = at->next;
        if (is_job(at))
            continue;
        if (!try_in_memory(environment, at, at->awaiter.frame)) {
            if (direction != BIDE_IO_FREE)
                break;
            continue;
        }
        bide_io_remove(&environment->io, at);
        bide_io_finish_waiting(at, BIDE_IO_DONE);
    }
}

void bide_sim_retry_(sim_environment *environment, bide_descriptor *descriptor)
{
    for (int direction = 0; direction < BIDE_IO_LINES; direction++)
        try_line_in_memory(environment, descriptor, direction);
}

/* ---- Buffers of pools ---- */

static void sim_retry_with_buffer(bide_io *io, bide_io_operation *operation)
{
    sim_environment *environment = sim_environment_of(io);
    try_line_in_memory(environment, operation->descriptor, BIDE_IO_INPUT);
    bide_sim_settle_(environment);
}

static const struct bide_buffer_hooks_ sim_buffer_hooks = {sim_retry_with_buffer, NULL, NULL};

/* Takes an operation out of its line, whose next one may now succeed. */
static void leave_line_in_memory(sim_environment *environment, bide_io_operation *operation)
{
    memory_node *node =
        operation->descriptor != NULL ? bide_sim_node_of_(environment, io_fd(operation)) : NULL;
    bide_io_remove(&environment->io, operation);
    if (node != NULL)
        bide_sim_changed_(node);
}

/* ---- The table ---- */

/* The number of a descriptor that is about to wait refers to it. */
static int slot_refer_to(sim_environment *environment, bide_descriptor *descriptor)
{
    memory_slot *slot = bide_sim_slot_of_(environment, bide_descriptor_fd(descriptor));
    if (slot == NULL)
        return -EBADF;
    if (slot->descriptor != NULL && slot->descriptor != descriptor)
        return -EEXIST;
    slot->descriptor = descriptor;
    return 0;
}

static bide_frame *begin_in_line(sim_environment *environment, bide_io_operation *operation,
                                 bide_frame *frame)
{
    bide_descriptor *descriptor = operation->descriptor;
    int direction = io_direction(operation);
    if (bide_io_row_of_(operation)->shape == IO_SHAPE_LENT)
        bide_buffer_pool_claim_(operation->arguments.provided.pool, &environment->io, &sim_buffer_hooks);
    bool is_done = (direction == BIDE_IO_FREE || descriptor->lines[direction].first == NULL) &&
                   try_in_memory(environment, operation, frame);
    if (!is_done) {
        int error = slot_refer_to(environment, descriptor);
        if (error == 0) {
            bide_io_enlist(&environment->io, operation);
        } else {
            operation->status = error;
            if (io_waits_for_buffer(operation))
                bide_buffer_pool_stop_waiting_(operation);
            if ((operation->state & IO_OPENED) != 0)
                bide_io_release(operation);
            operation->state = 0;
            is_done = true;
        }
    }
    bide_sim_settle_(environment);
    return is_done ? frame : NULL;
}

static bide_frame *sim_start(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    sim_environment *environment = sim_environment_of(io);
    const memory_row *row = &bide_sim_rows_[operation->code];
    if (row->open != NULL) {
        carry_out(environment, operation, frame);
        operation->status = bide_sim_open_own_(environment, operation);
        environment->carried = NULL;
        if (operation->status != 0 || bide_io_row_of_(operation)->start == IO_START_AT_ONCE)
            return frame;
        operation->state |= IO_OPENED;
    } else if (row->call == bide_sim_call_nothing_) {
        operation->status = -ENOTSUP;
        return frame;
    }
    return needs_job(environment, operation) ? begin_job(environment, operation, frame)
                                       : begin_in_line(environment, operation, frame);
}

static void sim_cancel(bide_io *io, bide_io_operation *operation)
{
    sim_environment *environment = sim_environment_of(io);
    if (!is_job(operation))
        leave_line_in_memory(environment, operation);
    else if (!job_of(operation)->is_done)
        take_job_out(environment, operation);
    else
        return; /* its second event ends it */
    bide_io_finish_waiting(operation, BIDE_IO_CANCELLED);
    bide_sim_settle_(environment);
}

static void sim_discard_operation(bide_io *io, bide_io_operation *operation)
{
    sim_environment *environment = sim_environment_of(io);
    if (is_job(operation)) {
        bool is_done = job_of(operation)->is_done;
        take_job_out(environment, operation);
        if (is_done && operation->status == 0)
            bide_io_release(operation);
    } else {
        leave_line_in_memory(environment, operation);
        if ((operation->state & IO_OPENED) != 0)
            bide_close(operation->descriptor);
    }
    bide_sim_settle_(environment);
}

static void release_operation(sim_environment *environment, bide_io_operation *operation)
{
    bool is_done = is_job(operation) && job_of(operation)->is_done;
    if (is_job(operation))
        take_job_out(environment, operation);
    else
        bide_io_remove(&environment->io, operation);
    bide_io_finish_waiting(operation, is_done ? BIDE_IO_DONE : BIDE_IO_CLOSED);
}

static void sim_release(bide_io *io, bide_descriptor *descriptor)
{
    sim_environment *environment = sim_environment_of(io);
    for (int direction = 0; direction < BIDE_IO_LINES; direction++) {
        while (descriptor->lines[direction].first != NULL)
            release_operation(environment, descriptor->lines[direction].first);
    }
    memory_slot *slot = bide_sim_slot_of_(environment, bide_descriptor_fd(descriptor));
    if (slot != NULL && slot->descriptor == descriptor)
        slot->descriptor = NULL;
    bide_sim_settle_(environment);
}

static ptrdiff_t sim_call(bide_io *io, bide_io_operation *operation)
{
    sim_environment *environment = sim_environment_of(io);
    if (needs_job(environment, operation))
        return -EOPNOTSUPP;
    ptrdiff_t result = bide_sim_io_call_(environment, operation);
    bide_sim_settle_(environment);
    return result;
}

static const bide_io_table sim_operations = {
    .name = "memory",
    .start = sim_start,
    .cancel = sim_cancel,
    .discard = sim_discard_operation,
    .release = sim_release,
    .calls = &bide_sim_calls_,
    .call = sim_call,
    .describe = bide_sim_describe_,
};

/* ---- Numbers without a descriptor ---- */

/* Those of this thread, the newest first. */
static BIDE_THREAD_LOCAL sim_environment *memory_environments;

/* That of the test loop that runs on this thread; while none runs, the thread's only one. Or NULL. */
static sim_environment *environment_here(void)
{
    bide_io *io = bide_sim_loop_running_ != NULL ? bide_sim_loop_running_->io : NULL;
    if (bide_sim_loop_running_ != NULL)
        return io != NULL && io->table == &sim_operations ? sim_environment_of(io) : NULL;
    return memory_environments != NULL && memory_environments->next == NULL ? memory_environments
                                                                            : NULL;
}

static bool close_in_memory(int fd, int *result)
{
    sim_environment *environment = fd >= MEMORY_FIRST ? environment_here() : NULL;
    if (environment == NULL)
        return false;
    *result = bide_sim_close_(environment, fd);
    bide_sim_settle_(environment);
    return true;
}

/* Those that belong to a descriptor of the io are marked by it. (bide_io_destroy checks the list.) */
static void mark_numbers_of_descriptors(sim_environment *environment)
{
    bide_descriptor **place = &environment->io.descriptors;
    for (bide_descriptor *at; (at = *place) != NULL && at->place == place; place = &at->next) {
        memory_slot *slot = bide_sim_slot_of_(environment, bide_descriptor_fd(at));
        if (slot != NULL)
            slot->descriptor = at;
    }
}

static void report_numbers_without_descriptor(const sim_environment *environment)
{
    static const char what[] =
        "a number was left open in an io in memory, and belongs to no descriptor";
    for (int i = 0; i < environment->slots_count; i++) {
        const memory_slot *slot = &environment->slots[i];
        if (slot->node == NULL || slot->descriptor != NULL)
            continue;
        if (slot->opened_at != NULL)
            bide_misused_(what, slot->opened_at);
        bide_platform.misuse(what, slot->opened_by, __FILE__, __LINE__);
    }
}

/* ---- Creating and destroying ---- */

int bide_memory_io_create(bide_memory_io **created, bide_sim_loop *loop,
                          const bide_memory_io_options *options)
{
    if (loop->io != NULL)
        return -EBUSY;
    sim_environment *environment = calloc(1, sizeof *environment);
    if (environment == NULL)
        return -ENOMEM;
    environment->loop = loop;
    if (options != NULL)
        environment->options = *options;
    int error = bide_sim_tree_create_(environment);
    if (error != 0) {
        free(environment);
        return error;
    }
    bide_io_init(&environment->io, &sim_operations, &loop->scheduler);
    bide_io_describe_with_(&sim_operations);
    bide_atomic_store(&bide_io_closes_in_memory_, close_in_memory, relaxed);
    environment->next = memory_environments;
    environment->place = &memory_environments;
    if (memory_environments != NULL)
        memory_environments->place = &environment->next;
    memory_environments = environment;
    loop->io = &environment->io;
    *created = environment;
    return 0;
}

void bide_memory_io_destroy(bide_memory_io *environment)
{
    if (environment == NULL)
        return;
    if (environment->io.in_flight != 0)
        bide_platform.misuse("an io in memory is destroyed while operations wait",
                             "bide_memory_io_destroy", __FILE__, __LINE__);
    mark_numbers_of_descriptors(environment);
    bide_io_destroy(&environment->io);
    report_numbers_without_descriptor(environment);
    *environment->place = environment->next;
    if (environment->next != NULL)
        environment->next->place = environment->place;
    for (int i = 0; i < environment->slots_count; i++)
        bide_sim_close_(environment, MEMORY_FIRST + i);
    bide_assert(environment->slots_open == 0);
    bide_sim_settle_(environment);
    bide_sim_datagrams_end_(environment);
    bide_sim_hosts_end_(environment);
    bide_sim_tree_destroy_(environment);
    environment->loop->io = NULL;
    free(environment->slots);
    free(environment);
}

void bide_memory_io_change(bide_memory_io *environment, const bide_memory_io_options *options)
{
    environment->options = *options;
}

int bide_memory_io_pipe(bide_memory_io *environment, bide_descriptor *input, bide_descriptor *output)
{
    int fds[2];
    bide_descriptor_init_closed(input);
    bide_descriptor_init_closed(output);
    int error = bide_sim_pipe_(environment, fds);
    if (error == 0) {
        bide_sim_take_opened_(environment, input, fds[0]);
        bide_sim_take_opened_(environment, output, fds[1]);
    }
    return error;
}

void bide_memory_io_get_stats(const bide_memory_io *environment, bide_memory_io_stats *counts)
{
    counts->started = environment->io.begun;
    counts->in_flight = environment->io.in_flight;
    counts->descriptors = (unsigned)environment->slots_open;
    counts->disk = bide_sim_tree_size_(environment);
}

bide_loop_back_end bide_memory_io_back_end(const bide_memory_io *environment)
{
    return (bide_loop_back_end){environment->io.table->name, "its scheduler is a test loop", 0, 0};
}
