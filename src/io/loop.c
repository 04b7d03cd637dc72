/*
 * The loop: a run loop, an io, and one of two back ends (epoll.c, uring.c).
 *
 * 1. The run loop sleeps as its back end says (run_loop.c, 8), so posts of other threads wake it as
 *    they wake any run loop.
 * 2. All that a back end does is done on the thread of the loop: in `suspend` of an operation that
 *    is awaited there, in `look` and `sleep`, and in the mail of the io (operation.c). So it has no
 *    order, and no lock.
 * 3. A child of fork is of another generation. It does not run there, and no operation is begun,
 *    since bide_io_suspend refuses it; and destroying the loop closes descriptors, and tells the kernel nothing.
 * 4. The monitor reads a loop while it runs. It holds the live ones (live.h), so the loop stays, and
 *    the kernel reads for it (inspect/peek.h). What is there for it alone is plain: it is written
 *    before a system call, or after it, and a reader that finds it a moment old is not misled.
 */
#define _GNU_SOURCE
#include "loop.h"

#include "../inspect/safe_read.h"
#include "../system/fork.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILE_THREADS = 4, ENTRIES = 1024 };

static bide_io *io_of_run_loop(bide_scheduler *scheduler)
{
    bide_run_loop *run = bide_container_of(scheduler, bide_run_loop, scheduler);
    return &bide_container_of(run, bide_loop, run)->io;
}

/* ---- What may block ---- */

enum { OFFLOADED = IO_OWN << 4 };

static bide_file_operation *file_of(bide_io_operation *operation)
{
    return bide_container_of(operation, bide_file_operation, operation);
}

/* On a thread for blocking calls: does all of it. */
static void do_it_all(void *argument)
{
    bide_io_operation *operation = argument;
    bool again;
    while (!bide_io_take_result(operation, bide_io_call(operation), &again)) {
        if (again) { /* a device in non-blocking mode: it is waited for */
            struct pollfd wait = {operation->descriptor->fd,
                                  io_direction(operation) == BIDE_IO_INPUT ? POLLIN : POLLOUT,
                                  0};
            poll(&wait, 1, -1);
        }
    }
}

/* On the loop's thread: it was done, or could not be. */
static bide_next relay_step(bide_frame *frame, unsigned depth)
{
    bide_file_operation *file = bide_container_of(frame, bide_file_operation, relay);
    bide_io_operation *operation = &file->operation;
    int error = bide_awaiter_resume(&file->call.awaiter, file->call.awaiter.ops);
    (void)depth;
    if (error != 0)
        operation->status = error;
    loop_of(operation->io)->counts.completions++;
    bide_io_remove(operation->io, operation);
    bide_io_finish_waiting(operation, BIDE_IO_DONE);
    return bide_next_none();
}

static const bide_coroutine_code relay_code = {relay_step, "(a call that blocks)", __FILE__, NULL,
                                               NULL};
static const bide_point relay_point = BIDE_POINT_START(&relay_code);

bide_frame *bide_loop_offload_(bide_loop *loop, bide_io_operation *operation, bide_frame *frame)
{
    bide_file_operation *file = file_of(operation);
    if (loop->files == NULL) {
        bide_blocking_options options = {.name = "files", .max_threads = FILE_THREADS};
        int error = bide_blocking_create_with(&loop->files, &options);
        if (error != 0) {
            operation->status = error;
            return frame;
        }
        loop->owns_files = true;
    }
    if (operation->descriptor != NULL && (operation->descriptor->bits & IO_ASKED) == 0)
        bide_io_probe_fd_(operation->descriptor);
    bide_frame_init_in(&file->relay, &relay_point, &loop->io.context);
    bide_io_enlist(&loop->io, operation);
    operation->state |= OFFLOADED;
    bide_await_later(bide_blocking_run(&file->call, loop->files, do_it_all, operation));
    file->call.awaiter.frame = &file->relay;
    if (file->call.awaiter.ops->suspend(&file->call.awaiter, &file->relay) == NULL)
        return NULL;
    operation->status = bide_awaiter_resume(&file->call.awaiter, file->call.awaiter.ops);
    bide_io_remove(&loop->io, operation);
    operation->state = 0;
    return frame;
}

bool bide_loop_is_offloaded_(const bide_io_operation *operation)
{
    return (operation->state & OFFLOADED) != 0;
}

void bide_loop_cancel_offloaded_(bide_loop *loop, bide_io_operation *operation)
{
    bide_awaiter *call = &file_of(operation)->call.awaiter;
    if (!call->ops->withdraw(call))
        return; /* it has begun, and ends by itself */
    bide_io_remove(&loop->io, operation);
    bide_io_finish_waiting(operation, BIDE_IO_CANCELLED);
}

/* What has begun is waited for: its thread, or the post of its end, refers to it. */
void bide_loop_discard_offloaded_(bide_loop *loop, bide_io_operation *operation)
{
    bide_file_operation *file = file_of(operation);
    bide_awaiter *call = &file->call.awaiter;
    if (!call->ops->withdraw(call)) {
        while (!loop->run.scheduler.take_back(&loop->run.scheduler, call))
            bide_cpu_relax();
        if (operation->status == 0)
            bide_io_release(operation);
    }
    bide_io_remove(&loop->io, operation);
}

bool bide_loop_do_at_once_(bide_io_operation *operation)
{
    bool again;
    switch (operation->code) {
    case BIDE_IO_LISTEN:
    case BIDE_IO_BIND:
    case BIDE_IO_PAIR:
        bide_io_take_result(operation, bide_io_call(operation), &again);
        return true;
    default:
        return false;
    }
}

/* ---- Making one ---- */

/* What BIDE_IO says. */
static bide_loop_kind kind_of_environment(void)
{
    const char *text = getenv("BIDE_IO");
    if (text != NULL && strcmp(text, "uring") == 0)
        return BIDE_LOOP_URING;
    if (text != NULL && strcmp(text, "epoll") == 0)
        return BIDE_LOOP_EPOLL;
    return BIDE_LOOP_ANY;
}

static int make_back_end(bide_loop *loop, bide_loop_kind kind, unsigned entries)
{
    const char *chosen = "the options ask for it";
    bool by_environment = false;
    if (kind == BIDE_LOOP_ANY) {
        kind = kind_of_environment();
        by_environment = kind != BIDE_LOOP_ANY;
        chosen = "BIDE_IO asks for it";
    }
    if (kind != BIDE_LOOP_EPOLL) {
        int error = bide_loop_uring_create_(loop, entries != 0 ? entries : ENTRIES);
        if (error == 0) {
            loop->back_end.name = "uring";
            loop->back_end.why =
                kind == BIDE_LOOP_ANY ? "the kernel lets this process have an io_uring" : chosen;
            return 0;
        }
        if (kind == BIDE_LOOP_URING && !by_environment)
            return error;
        loop->back_end.error = error;
        chosen = "an io_uring was refused";
    }
    loop->back_end.name = "epoll";
    loop->back_end.why = chosen;
    return bide_loop_epoll_create_(loop);
}

int bide_loop_create(bide_loop **created, const bide_loop_options *options)
{
    static const bide_loop_options none;
    if (options == NULL)
        options = &none;
    size_t size = (sizeof(bide_loop) + BIDE_CACHE_LINE - 1) / BIDE_CACHE_LINE * BIDE_CACHE_LINE;
    bide_loop *loop = aligned_alloc(BIDE_CACHE_LINE, size);
    if (loop == NULL)
        return -ENOMEM;
    memset(loop, 0, size);
    bide_run_loop_init(&loop->run);
    loop->run.spins = 0;
    loop->run.scheduler.io = io_of_run_loop;
    bide_io_describe_operations_(NULL);
    loop->run.times_runs = options->times_runs;
    loop->files = options->files;
    int error = make_back_end(loop, options->kind, options->entries);
    if (error != 0) {
        free(loop);
        return error;
    }
    bide_live_add_(&loop->live, BIDE_LIVE_LOOP_);
    *created = loop;
    return 0;
}

void bide_loop_destroy(bide_loop *loop)
{
    bide_live_remove_(&loop->live);
    bool is_own = loop->io.generation == bide_generation_;
    bide_io_destroy(&loop->io);
    if (loop->uring != NULL)
        bide_loop_uring_destroy_(loop, is_own);
    else
        bide_loop_epoll_destroy_(loop, is_own);
    if (is_own) {
        bide_run_loop_destroy(&loop->run);
        if (loop->owns_files)
            bide_blocking_destroy(loop->files);
    }
    free(loop);
}

/* ---- Running it ---- */

bide_context *bide_loop_context(bide_loop *loop)
{
    return &loop->run.context;
}

void bide_loop_begin_on_thread_(bide_loop *loop)
{
    if (!loop->has_run) {
        loop->has_run = true;
        loop->thread = pthread_self();
        loop->thread_number = (int)syscall(SYS_gettid);
    } else if (!pthread_equal(loop->thread, pthread_self())) {
        bide_platform.misuse("a loop is run on another thread than before", "bide_loop_run",
                             __FILE__, __LINE__);
    }
}

int bide_loop_wait(bide_loop *loop, bide_awaiter *awaiter)
{
    if (loop->io.generation != bide_generation_)
        return -ENOTSUP;
    loop->is_run = true;
    int status = bide_run_loop_wait(&loop->run, awaiter);
    loop->is_run = false;
    return status;
}

void bide_loop_run(bide_loop *loop)
{
    if (loop->io.generation != bide_generation_)
        return;
    loop->is_run = true;
    bide_run_loop_run(&loop->run);
    loop->is_run = false;
}

void bide_loop_stop(bide_loop *loop)
{
    bide_run_loop_stop(&loop->run);
}

bide_loop_back_end bide_loop_backend(const bide_loop *loop)
{
    return loop->back_end;
}

void bide_loop_get_stats(const bide_loop *loop, bide_loop_stats *counts)
{
    *counts = loop->counts;
    counts->runs = loop->run.runs;
    counts->longest_run = loop->run.longest;
    counts->started = loop->io.begun;
    counts->in_flight = loop->io.in_flight;
}

/* ---- Seen from outside: 4 ---- */

/* The name may be anybody's memory: as much of it as is printable. */
static void see_name(const char *address, char *name, size_t size)
{
    size_t length = 0;
    name[0] = '\0';
    if (address == NULL)
        return;
    while (length + 1 < size && bide_peek_(address + length, name + length, 1) &&
           (unsigned char)name[length] >= ' ' && name[length] != 0x7f)
        length++;
    name[length] = '\0';
}

bool bide_loop_note_events_(const bide_live_ *live, loop_seen *seen)
{
    const bide_loop *loop = bide_container_of(live, bide_loop, live);
    const char *name;
    seen->number = live->number;
    seen->back_end = loop->back_end.name; /* constant, as the number is */
    bool was_read = bide_peek_(&loop->thread_number, &seen->thread, sizeof seen->thread) &&
                    bide_peek_(&loop->is_run, &seen->is_run, 1) &&
                    bide_peek_(&loop->is_asleep, &seen->is_asleep, 1) &&
                    bide_peek_(&loop->counts, &seen->counts, sizeof seen->counts) &&
                    bide_peek_(&loop->run.runs, &seen->counts.runs, sizeof(uint64_t)) &&
                    bide_peek_(&loop->run.longest, &seen->counts.longest_run, sizeof(uint64_t)) &&
                    bide_peek_(&loop->io.begun, &seen->counts.started, sizeof(uint64_t)) &&
                    bide_peek_(&loop->io.in_flight, &seen->counts.in_flight, sizeof(uint64_t)) &&
                    bide_peek_(&loop->run.context.name, &name, sizeof name);
    if (was_read)
        see_name(name, seen->name, sizeof seen->name);
    return was_read;
}
