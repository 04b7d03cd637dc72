/*
 * A pool whose workers each have a loop. It is two things that exist: the pool of threads, with a
 * driver that its workers sleep in (schedule/pool/worker.h), and a loop for each.
 *
 * 1. A worker's loop is its thread's from the thread's begin to its end. So all that the loop does
 *    is done on that thread, as on a loop that runs alone (loop.c, 2), and it needs no lock. What is
 *    posted to it is of the library: letters (mail.c), the ends of calls that block, and `poke`. The
 *    coroutines of the pool are never posted to it.
 * 2. An operation that ends wakes its coroutine by the scheduler of that, which is the pool; on this
 *    thread, so it is put into the worker's own places, and others may steal it.
 * 3. A worker is woken by `poke`, which is posted to its loop. The loop does not sleep while
 *    something is posted (run_loop.c, 2), and when it does, a post wakes it. So no wake is lost,
 *    whether it comes before the sleep or in it.
 * 4. `poke` is posted by whoever changes `is_poked` from 0, and it changes that back when it runs,
 *    in no queue any more. The exchange acquires what it released: the frame may be written anew.
 *    (All who post it have the pool's lock. The worker need not have taken that since.)
 * 5. Two that wait for each other's errands serve each other: mail.c, 5.
 */
#define _GNU_SOURCE
#include "bide/io_pool.h"

#include "loop.h"

#include "../schedule/pool/worker.h"
#include "../system/processors.h"
#include "../system/threads.h"

#include <errno.h>
#include <stdlib.h>

enum { FILE_THREADS = 4 };

typedef struct worker_loop {
    bide_loop *loop;
    bide_frame poke;
    bide_atomic(uint32_t) is_poked; /* 4 */
    char apart[BIDE_CACHE_LINE];    /* from the next, which other threads write to */
} worker_loop;

typedef struct io_pool {
    bide_pool_driver driver;
    struct bide_io_group_ group;
    bide_blocking *files; /* that it made; or NULL */
    unsigned count;
    bide_atomic(uint32_t) next; /* whose loop begins what is awaited on a thread outside */
    worker_loop *loops;
} io_pool;

static io_pool *pool_of(bide_pool_driver *driver)
{
    return bide_container_of(driver, io_pool, driver);
}

static bide_run_loop *run_of(bide_pool_driver *driver, unsigned worker)
{
    return &pool_of(driver)->loops[worker].loop->run;
}

/* ---- The driver ---- */

static void enter(bide_pool_driver *driver, unsigned worker)
{
    bide_run_loop_enter_(run_of(driver, worker));
    pool_of(driver)->loops[worker].loop->is_run = true;
}

static void leave(bide_pool_driver *driver, unsigned worker)
{
    bide_run_loop *run = run_of(driver, worker);
    while (bide_run_loop_run_posted_(run)) {
    }
    bide_run_loop_leave_(run);
    pool_of(driver)->loops[worker].loop->is_run = false;
}

static void look(bide_pool_driver *driver, unsigned worker)
{
    bide_run_loop *run = run_of(driver, worker);
    bide_run_loop_run_posted_(run);
    run->events->look(run);
}

static void sleep_in_loop(bide_pool_driver *driver, unsigned worker, uint64_t deadline)
{
    bide_run_loop *run = run_of(driver, worker);
    if (bide_run_loop_is_ready_(run))
        return;
    run->deadline = deadline;
    run->events->sleep(run);
    run->deadline = BIDE_FOREVER;
}

static void take(bide_pool_driver *driver, unsigned worker)
{
    bide_run_loop *run = run_of(driver, worker);
    run->events->take(run);
    bide_run_loop_run_posted_(run);
}

static bide_next poke_step(bide_frame *frame, unsigned depth)
{
    worker_loop *own = bide_container_of(frame, worker_loop, poke);
    (void)depth;
    /* release: 4; partner is the exchange of `wake` */
    bide_atomic_store(&own->is_poked, 0, release);
    return bide_next_none();
}

static const bide_coroutine_code poke_code = {poke_step, "(wake a worker)", __FILE__, NULL, NULL};
static const bide_point poke_point = BIDE_POINT_START(&poke_code);

static void wake(bide_pool_driver *driver, unsigned worker)
{
    worker_loop *own = &pool_of(driver)->loops[worker];
    bide_scheduler *scheduler = &own->loop->run.scheduler;
    /* acquire: 4 */
    if (bide_atomic_exchange(&own->is_poked, 1, acquire) != 0)
        return;
    bide_frame_init_in(&own->poke, &poke_point, &own->loop->io.context);
    own->poke.awaiter.frame = &own->poke;
    scheduler->post(scheduler, &own->poke.awaiter, &own->poke.awaiter);
}

static void free_all(io_pool *pool)
{
    for (unsigned i = 0; i < pool->count; i++) {
        if (pool->loops[i].loop != NULL)
            bide_loop_destroy(pool->loops[i].loop);
    }
    if (pool->files != NULL)
        bide_blocking_destroy(pool->files);
    free(pool->loops);
    free(pool);
}

static void destroy(bide_pool_driver *driver)
{
    free_all(pool_of(driver));
}

/* ---- Whose loop ---- */

static const bide_pool_driver driver_of_loops = {enter, leave, look,   sleep_in_loop,
                                                 take,  wake,  destroy};

/* Also of a thread that is about to run a coroutine of the pool outside of it. */
static bide_io *io_of_pool(bide_scheduler *scheduler)
{
    bide_thread_pool *threads = bide_container_of(scheduler, bide_thread_pool, scheduler);
    io_pool *pool = pool_of(threads->driver);
    bide_pool_worker *worker = bide_pool_worker_of_(threads);
    unsigned index = worker != NULL ? worker->index
                                    : bide_atomic_fetch_add(&pool->next, 1, relaxed) % pool->count;
    return &pool->loops[index].loop->io;
}

static bool serve(const struct bide_io_group_ *group)
{
    const io_pool *pool = bide_container_of(group, io_pool, group);
    bide_pool_worker *worker = bide_pool_this_worker_();
    if (worker == NULL || worker->pool->driver != &pool->driver)
        return false;
    bide_run_loop_run_posted_(&pool->loops[worker->index].loop->run);
    return true;
}

/* ---- Making one ---- */

static int make_loops(io_pool *pool, const bide_loop_options *given)
{
    bide_loop_options options = *given;
    options.times_runs = false;
    if (options.files == NULL) {
        bide_blocking_options files = {.name = "files", .max_threads = FILE_THREADS};
        int error = bide_blocking_create_with(&pool->files, &files);
        if (error != 0)
            return error;
        options.files = pool->files;
    }
    for (unsigned i = 0; i < pool->count; i++) {
        worker_loop *own = &pool->loops[i];
        int error = bide_loop_create(&own->loop, &options);
        if (error != 0) {
            own->loop = NULL;
            return error;
        }
        own->loop->io.group = &pool->group;
        bide_atomic_init(&own->is_poked, 0);
    }
    return 0;
}

int bide_io_pool_create(bide_thread_pool **created, const bide_io_pool_options *options)
{
    static const bide_io_pool_options none;
    if (options == NULL)
        options = &none;
    unsigned count = options->threads.threads != 0 ? options->threads.threads : bide_processors_();
    if (count > BIDE_THREADS_MAX_)
        return -EINVAL;
    bide_thread_pool_options threads = options->threads;
    threads.threads = count;
    io_pool *pool = malloc(sizeof *pool);
    worker_loop *loops = malloc(count * sizeof *loops);
    if (pool == NULL || loops == NULL) {
        free(loops);
        free(pool);
        return -ENOMEM;
    }
    pool->driver = driver_of_loops;
    pool->group.serve = serve;
    bide_atomic_init(&pool->next, 0);
    pool->files = NULL;
    pool->count = count;
    pool->loops = loops;
    for (unsigned i = 0; i < count; i++)
        loops[i].loop = NULL;
    int error = make_loops(pool, &options->loop);
    if (error == 0)
        error = bide_pool_create_(created, &threads, &pool->driver, io_of_pool);
    if (error != 0)
        free_all(pool);
    return error;
}

bide_loop_back_end bide_io_pool_backend(const bide_thread_pool *threads)
{
    return pool_of(threads->driver)->loops[0].loop->back_end;
}

/* ---- Homes ---- */

bool bide_io_pool_is(const bide_thread_pool *threads)
{
    return threads->driver != NULL && threads->driver->enter == enter;
}

static void adopt(bide_io *io, void *descriptor)
{
    bide_io_adopt(io, descriptor);
}

int bide_io_pool_assign(bide_thread_pool *threads, unsigned worker, bide_descriptor *descriptor)
{
    if (!bide_io_pool_is(threads) || worker >= pool_of(threads->driver)->count)
        return -EINVAL;
    if (!bide_descriptor_is_open(descriptor))
        return -EBADF;
    if (io_of(descriptor) != NULL)
        return -EBUSY;
    bide_io_call_remote_(&pool_of(threads->driver)->loops[worker].loop->io, adopt, descriptor);
    return 0;
}
