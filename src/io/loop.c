/*
 * The loop: a run loop, an io, and a back end (uring.c, epoll.c or poll.c).
 *
 * 1. The run loop sleeps in its back end (run_loop.c, 8), so posts of other threads wake it as they
 *    wake any run loop.
 * 2. A back end runs on the thread of the loop alone: in the suspend of an operation that is
 *    awaited there, in look and sleep, and in remote requests (remote.c). So it needs no order and no
 *    lock.
 * 3. A child of fork is of another generation. The loop does not run there, and bide_io_suspend
 *    begins no operation. Destroying the loop there closes descriptors, and changes nothing in the
 *    kernel that the parent shares.
 * 4. The monitor reads a loop while it runs. It holds the registry of live objects (live.h), so the
 *    loop stays, and the kernel reads for it (inspect/safe_read.h). Members for the monitor alone are
 *    plain: they are written before or after a system call, and a value that is a moment old is
 *    harmless.
 */
#define _GNU_SOURCE
#include "loop.h"

#include "../inspect/safe_read.h"
#include "../system/fork.h"
#include "../system/portable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_ENTRIES = 1024 };

static bide_io *io_of_loop_scheduler(bide_scheduler *scheduler)
{
    bide_run_loop *run = bide_container_of(scheduler, bide_run_loop, scheduler);
    return &bide_container_of(run, bide_loop, run)->io;
}

/* ---- On its thread ---- */

static void enter_loop(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    if (!loop->has_run) {
        loop->has_run = true;
        loop->thread = pthread_self();
        loop->thread_number = portable_thread_number();
        if (loop->ops->start_on_thread != NULL)
            loop->ops->start_on_thread(loop);
    } else if (!pthread_equal(loop->thread, pthread_self())) {
        bide_platform.misuse("a loop is run on another thread than before", "bide_loop_run",
                             __FILE__, __LINE__);
    }
}

/* ---- Choosing a back end ---- */

/* In the order of preference. */
static const struct {
    const bide_back_end_ *ops;
    const char *why;        /* if nobody chose */
    const char *is_missing; /* if the next one takes the place of this one, which BIDE_IO selects */
} back_ends_of_loops[] = {
    {&bide_uring_, "io_uring is available", "BIDE_IO selects io_uring, which is not available"},
    {&bide_epoll_, "io_uring is not available", "BIDE_IO selects epoll, which is not available"},
    {&bide_poll_back_end_, "neither io_uring nor epoll is available", NULL},
};

/* ---- In a child of fork: one of its coroutines has forked, and goes on ---- */

static void check_process_of_loop(const bide_loop *loop)
{
    if (BIDE_UNLIKELY(bide_is_inherited_(loop->io.generation)))
        bide_misuse_("a loop runs on in a child of the process that created it", "bide_loop_wait",
                     __FILE__, __LINE__);
}

static void look_in_own_process(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    check_process_of_loop(loop);
    loop->ops->events->look(run);
}

static bool sleep_in_own_process(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    check_process_of_loop(loop);
    return loop->ops->events->sleep(run);
}

/*
 * Whether a back end that failed is not there, so that the next one takes its place. An io_uring may be
 * refused for many reasons, among them memory that the other back ends do not need.
 */
static bool is_back_end_missing(const bide_back_end_ *ops, int error)
{
    return ops->kind == BIDE_LOOP_URING || error == -ENOSYS || error == -EPERM || error == -EACCES;
}

/* The kind that the environment variable BIDE_IO selects. -EINVAL: there is no such kind. */
static int kind_of_loop_by_environment(bide_loop_kind *kind)
{
    const char *text = getenv("BIDE_IO");
    *kind = BIDE_LOOP_ANY;
    if (text == NULL || text[0] == '\0')
        return 0;
    for (size_t i = 0; i < sizeof back_ends_of_loops / sizeof *back_ends_of_loops; i++) {
        if (strcmp(text, back_ends_of_loops[i].ops->name) == 0) {
            *kind = back_ends_of_loops[i].ops->kind;
            return 0;
        }
    }
    return -EINVAL;
}

static int create_loop_back_end(bide_loop *loop, const bide_back_end_ *ops, unsigned entries)
{
    bide_io_init(&loop->io, ops->operations, &loop->run.scheduler);
    int error = ops->create(loop, entries);
    if (error != 0)
        return error;
    loop->ops = ops;
    loop->events = *ops->events;
    loop->events.enter = enter_loop;
    loop->events.look = look_in_own_process;
    loop->events.sleep = sleep_in_own_process;
    loop->run.events = &loop->events;
    loop->back_end.name = ops->name;
    return 0;
}

/*
 * A back end that the options select has to work. If the environment selects one that does not
 * work, the next in order is used.
 */
static int choose_loop_back_end(bide_loop *loop, bide_loop_kind kind, unsigned entries)
{
    const char *chosen = "the options select it";
    const char *is_missing = NULL;
    bool by_environment = false;
    int error = -EINVAL;
    if (kind == BIDE_LOOP_ANY) {
        error = kind_of_loop_by_environment(&kind);
        if (error != 0)
            return error;
        by_environment = kind != BIDE_LOOP_ANY;
        chosen = "BIDE_IO selects it";
    }
    for (size_t i = 0; i < sizeof back_ends_of_loops / sizeof *back_ends_of_loops; i++) {
        const bide_back_end_ *ops = back_ends_of_loops[i].ops;
        bool is_selected = kind == ops->kind;
        if (kind != BIDE_LOOP_ANY && !is_selected)
            continue;
        error = create_loop_back_end(loop, ops, entries != 0 ? entries : DEFAULT_ENTRIES);
        if (error == 0) {
            loop->back_end.why = is_selected          ? chosen
                                 : is_missing != NULL ? is_missing
                                                      : back_ends_of_loops[i].why;
            return 0;
        }
        if ((is_selected && !by_environment) || !is_back_end_missing(ops, error))
            return error;
        if (is_selected)
            is_missing = back_ends_of_loops[i].is_missing;
        if (loop->back_end.error == 0)
            loop->back_end.error = error;
        kind = BIDE_LOOP_ANY;
    }
    return error;
}

/* ---- Creating one ---- */

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
    loop->run.pace.spins = 0;
    loop->run.scheduler.io = io_of_loop_scheduler;
    loop->run.times_runs = options->times_runs;
    loop->files = options->files;
    int error = choose_loop_back_end(loop, options->kind, options->entries);
    if (error != 0) {
        free(loop);
        return error;
    }
    bide_io_describe_with_(loop->io.table);
    bide_registry_add_(&loop->live, BIDE_LIVE_LOOP_);
    *created = loop;
    return 0;
}

void bide_loop_destroy_in_(bide_loop *loop, const char *function, const char *file, unsigned line)
{
    if (loop == NULL)
        return;
    if (loop->run.scheduler.runs_here_only(&loop->run.scheduler))
        bide_misuse_("a loop is destroyed while it runs on this thread", function, file, line);
    bide_registry_remove_(&loop->live);
    bool is_own = !bide_is_inherited_(loop->io.generation);
    bide_io_destroy(&loop->io);
    loop->ops->destroy(loop, is_own);
    if (is_own) {
        if (BIDE_DEBUG)
            bide_run_loop_destroy_checked_(&loop->run, "a loop is destroyed while it is in use",
                                           function, file, line);
        if (loop->owns_files)
            bide_blocking_destroy_in_(loop->files, function, file, line);
    }
    free(loop);
}

#undef bide_loop_destroy

void bide_loop_destroy(bide_loop *loop)
{
    bide_loop_destroy_in_(loop, __func__, __FILE__, __LINE__);
}

/* ---- Running it ---- */

bide_context *bide_loop_context(bide_loop *loop)
{
    return &loop->run.context;
}

int bide_loop_wait(bide_loop *loop, bide_awaiter *awaiter)
{
    if (bide_is_inherited_(loop->io.generation))
        return -ENOTSUP;
    loop->is_run = true;
    int status = bide_run_loop_wait(&loop->run, awaiter);
    loop->is_run = false;
    return status;
}

void bide_loop_run(bide_loop *loop)
{
    if (bide_is_inherited_(loop->io.generation))
        return;
    loop->is_run = true;
    bide_run_loop_run(&loop->run);
    loop->is_run = false;
}

int bide_loop_shutdown(bide_loop *loop, uint64_t deadline, bide_run_loop_remaining *remaining)
{
    if (bide_is_inherited_(loop->io.generation))
        return -ENOTSUP;
    loop->is_run = true;
    int status = bide_run_loop_shutdown(&loop->run, deadline, remaining);
    loop->is_run = false;
    return status;
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

/* ---- For the monitor: 4 ---- */

/* Reads a name, which may be any memory, as far as it is printable. */
static void read_printable_name(const char *address, char *name, size_t size)
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

bool bide_loop_note_events_(const bide_registry_ *live, loop_seen *seen)
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
        read_printable_name(name, seen->name, sizeof seen->name);
    return was_read;
}
