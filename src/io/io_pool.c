/*
 * A pool whose workers each have a loop: the pool of threads, with a driver whose loops its workers
 * sleep in (schedule/pool/worker.h), and one loop for each worker.
 *
 * Threads: the functions of the driver are called on the worker's thread, except worker_loop_wake
 * and destroy_pool_of_loops.
 *
 * 1. A worker's loop belongs to the worker's thread from the start of the thread to its end. So the
 *    loop does everything on that thread, like a loop that runs alone (loop.c, 2), and needs no
 *    lock. Only the library posts to it: remote requests (remote.c), the completions of blocking
 *    calls, and the wake frame. The coroutines of the pool are never posted to it.
 * 2. An operation that ends wakes its coroutine through that coroutine's scheduler, the pool, on
 *    this thread. So the coroutine enters the worker's own queue, and other workers may steal it.
 * 3. A worker is woken by its wake frame, which is posted to its loop. The loop does not sleep
 *    while something is posted (run_loop.c, 2), and a post wakes it when it sleeps. So no wake is
 *    lost, whether it arrives before the sleep or in it.
 * 4. The thread that changes `wake_is_posted` from 0 posts the wake frame. The frame changes it
 *    back when it runs, and is in no queue then. The exchange acquires what the frame's store
 *    released, so the frame may be written anew. (All threads that post it hold the pool's lock.
 *    The worker need not have taken that lock since.)
 * 5. Two workers that wait for each other's remote calls serve each other: remote.c, 5.
 */
#define _GNU_SOURCE
#include "bide/io_pool.h"

#include "offload.h"

#include "../schedule/pool/worker.h"
#include "../system/processors.h"
#include "../system/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct worker_loop {
    bide_loop *loop;
    bide_frame wake_frame;
    bide_atomic(uint32_t) wake_is_posted; /* 4 */
    char padding[BIDE_CACHE_LINE];        /* the next one is written by other threads */
} worker_loop;

typedef struct io_pool {
    bide_pool_driver driver;
    struct bide_io_group_ group;
    bide_blocking *files; /* the file pool that it owns; or NULL */
    unsigned count;
    bide_atomic(uint32_t) next; /* the loop that begins the next operation of a thread outside */
    worker_loop *loops;
} io_pool;

static io_pool *pool_of_loops(bide_pool_driver *driver)
{
    return bide_container_of(driver, io_pool, driver);
}

static bide_run_loop *run_loop_of_worker(bide_pool_driver *driver, unsigned worker)
{
    return &pool_of_loops(driver)->loops[worker].loop->run;
}

/* ---- The driver ---- */

static void worker_loop_enter(bide_pool_driver *driver, unsigned worker)
{
    bide_run_loop_enter_(run_loop_of_worker(driver, worker));
    pool_of_loops(driver)->loops[worker].loop->is_run = true;
}

static void worker_loop_leave(bide_pool_driver *driver, unsigned worker)
{
    bide_run_loop *run = run_loop_of_worker(driver, worker);
    while (bide_run_loop_run_posted_(run)) {
    }
    bide_run_loop_leave_(run);
    pool_of_loops(driver)->loops[worker].loop->is_run = false;
}

static void worker_loop_look(bide_pool_driver *driver, unsigned worker)
{
    bide_run_loop *run = run_loop_of_worker(driver, worker);
    bide_run_loop_run_posted_(run);
    run->events->look(run);
}

static void worker_loop_sleep(bide_pool_driver *driver, unsigned worker, uint64_t deadline)
{
    bide_run_loop *run = run_loop_of_worker(driver, worker);
    if (bide_run_loop_is_ready_(run))
        return;
    run->deadline = deadline;
    run->events->sleep(run);
    run->deadline = BIDE_FOREVER;
}

static void worker_loop_take(bide_pool_driver *driver, unsigned worker)
{
    bide_run_loop *run = run_loop_of_worker(driver, worker);
    run->events->take(run);
    bide_run_loop_run_posted_(run);
}

static bide_next worker_loop_wake_step(bide_frame *frame, unsigned depth)
{
    worker_loop *own = bide_container_of(frame, worker_loop, wake_frame);
    (void)depth;
    /* release: 4; partner is the exchange of worker_loop_wake */
    bide_atomic_store(&own->wake_is_posted, 0, release);
    return bide_next_none();
}

static const bide_coroutine_code worker_loop_wake_code = {worker_loop_wake_step, "(wake a worker)",
                                                          __FILE__, NULL, NULL};
static const bide_point worker_loop_wake_point = BIDE_POINT_START(&worker_loop_wake_code);

static void worker_loop_wake(bide_pool_driver *driver, unsigned worker)
{
    worker_loop *own = &pool_of_loops(driver)->loops[worker];
    bide_scheduler *scheduler = &own->loop->run.scheduler;
    /* acquire: 4 */
    if (bide_atomic_exchange(&own->wake_is_posted, 1, acquire) != 0)
        return;
    bide_frame_init_in(&own->wake_frame, &worker_loop_wake_point, &own->loop->io.context);
    own->wake_frame.awaiter.frame = &own->wake_frame;
    scheduler->post(scheduler, &own->wake_frame.awaiter, &own->wake_frame.awaiter);
}

static void free_pool_of_loops(io_pool *pool)
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

static void destroy_pool_of_loops(bide_pool_driver *driver)
{
    free_pool_of_loops(pool_of_loops(driver));
}

/* ---- The loop of a thread ---- */

static const bide_pool_driver driver_of_worker_loops = {
    worker_loop_enter, worker_loop_leave, worker_loop_look,     worker_loop_sleep,
    worker_loop_take,  worker_loop_wake,  destroy_pool_of_loops};

/* (a thread that runs a coroutine of the pool outside of it has an io too) */
static bide_io *io_of_worker_loop(bide_scheduler *scheduler)
{
    bide_thread_pool *threads = bide_container_of(scheduler, bide_thread_pool, scheduler);
    io_pool *pool = pool_of_loops(threads->driver);
    bide_pool_worker *worker = bide_pool_worker_of_(threads);
    unsigned index = worker != NULL ? worker->index
                                    : bide_atomic_fetch_add(&pool->next, 1, relaxed) % pool->count;
    return &pool->loops[index].loop->io;
}

static bool worker_loop_serve(const struct bide_io_group_ *group)
{
    const io_pool *pool = bide_container_of(group, io_pool, group);
    bide_pool_worker *worker = bide_pool_this_worker_();
    if (worker == NULL || worker->pool->driver != &pool->driver)
        return false;
    bide_run_loop_run_posted_(&pool->loops[worker->index].loop->run);
    return true;
}

/* ---- Creating one ---- */

static int create_worker_loops(io_pool *pool, const bide_loop_options *given)
{
    bide_loop_options options = *given;
    options.times_runs = false;
    if (options.files == NULL) {
        int error = bide_loop_create_file_pool_(&pool->files);
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
        bide_atomic_init(&own->wake_is_posted, 0);
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
    pool->driver = driver_of_worker_loops;
    pool->group.serve = worker_loop_serve;
    bide_atomic_init(&pool->next, 0);
    pool->files = NULL;
    pool->count = count;
    pool->loops = loops;
    for (unsigned i = 0; i < count; i++)
        loops[i].loop = NULL;
    int error = create_worker_loops(pool, &options->loop);
    if (error == 0)
        error = bide_pool_create_(created, &threads, &pool->driver, io_of_worker_loop);
    if (error != 0)
        free_pool_of_loops(pool);
    return error;
}

bide_loop_back_end bide_io_pool_backend(const bide_thread_pool *threads)
{
    const io_pool *pool = pool_of_loops(threads->driver);
    bide_loop_back_end first = pool->loops[0].loop->back_end;
    for (unsigned i = 1; i < pool->count; i++) {
        const bide_loop_back_end *other = &pool->loops[i].loop->back_end;
        if (strcmp(other->name, first.name) != 0)
            return (bide_loop_back_end){.name = "mixed",
                                        .why = "some workers lack what others have",
                                        .error = first.error != 0 ? first.error : other->error,
                                        .limits = first.limits | other->limits};
    }
    return first;
}

/* ---- Owners of descriptors ---- */

/* A descriptor that is to belong to a worker. */
typedef struct worker_assignment {
    bide_descriptor *descriptor;
    int result;
} worker_assignment;

bool bide_io_pool_is(const bide_thread_pool *threads)
{
    return threads->driver != NULL && threads->driver->enter == worker_loop_enter;
}

/* On the worker's thread. */
static void worker_loop_adopt(bide_io *io, void *argument)
{
    worker_assignment *assignment = argument;
    bide_io *owner = bide_descriptor_claim_(io, assignment->descriptor);
    if (owner == io)
        bide_io_adopt(io, assignment->descriptor);
    assignment->result = owner == io ? 0 : owner != NULL ? -EBUSY : -EBADF;
}

int bide_io_pool_assign(bide_thread_pool *threads, unsigned worker, bide_descriptor *descriptor)
{
    if (!bide_io_pool_is(threads) || worker >= pool_of_loops(threads->driver)->count)
        return -EINVAL;
    if (!bide_descriptor_is_open(descriptor))
        return -EBADF;
    const bide_io *owner = io_of(descriptor);
    if (owner != NULL)
        return bide_io_is_closing_(owner) ? -EBADF : -EBUSY;
    worker_assignment assignment = {descriptor, 0};
    bide_io_call_remote_(&pool_of_loops(threads->driver)->loops[worker].loop->io, worker_loop_adopt,
                         &assignment);
    return assignment.result;
}
