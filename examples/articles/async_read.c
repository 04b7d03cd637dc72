/*
 * An asynchronous read without a lock between the thread that starts it and the thread that
 * completes it. The coroutine is suspended before the read is started. So the completion may come
 * at any time and on any thread, even before `suspend` has returned. The awaiter is written by
 * hand, to show its three functions: ready, suspend, resume.
 *
 *     thread 1                            thread 2, the device's
 *     ready: no                           waits for a request
 *     the frame is saved
 *     suspend: gives the read to  ----->  reads
 *              the device                 wakes the frame: resume, and the coroutine continues,
 *                                         perhaps to its end
 *     suspend returns
 *
 * From the arrow on, the awaiter and the frame belong to thread 2: suspend must not access them.
 * The program makes the completion come early each time, then late each time, and then leaves it to
 * chance.
 */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "What is awaited may have ended before the waiting has begun.\n";

enum { BLOCK = 8, BLOCKS = sizeof text / BLOCK + 2, ROUNDS = 1000 };

/* When the completion comes, relative to the return of `suspend`. */
enum order { EARLY, LATE, BY_CHANCE };

struct file_read;

/* A file and a thread that reads it. The device outlives all reads. */
struct device {
    int file;
    enum order order;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct file_read *given; /* protected by the lock, as are the members below */
    bool ending;
    bide_atomic(unsigned) resumed;       /* reads whose coroutine was resumed */
    bide_atomic(unsigned) resumed_early; /* ... before suspend returned */
    bide_atomic(bool) late_may_finish;   /* no thread is inside suspend */
};

/* ---- The awaitable: a read, and its awaiter ---- */

struct file_read {
    bide_awaiter awaiter;
    struct device *device;
    char *buffer;
    size_t size;
    off_t at;
    ssize_t count; /* the result: bytes, 0 at the end of the file */
};

static bool file_read_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

static bide_frame *file_read_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    struct file_read *self = bide_container_of(awaiter, struct file_read, awaiter);
    struct device *device = self->device; /* a local: the awaiter may be destroyed at any moment */
    unsigned until_now = bide_atomic_load(&device->resumed, relaxed);
    (void)frame;

    pthread_mutex_lock(&device->lock);
    device->given = self;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    /* No access to `self` or `frame` from here on. */

    while (device->order == EARLY && bide_atomic_load(&device->resumed, relaxed) == until_now)
        sched_yield();
    if (bide_atomic_load(&device->resumed, relaxed) != until_now)
        bide_atomic_fetch_add(&device->resumed_early, 1, relaxed);
    return NULL;
}

static int file_read_resume(bide_awaiter *awaiter)
{
    struct file_read *self = bide_container_of(awaiter, struct file_read, awaiter);
    bide_atomic_fetch_add(&self->device->resumed, 1, relaxed);
    return self->count < 0 ? -EIO : 0;
}

static bide_awaiter *file_read(struct file_read *self, struct device *device, char *buffer,
                               size_t size, off_t at)
{
    static const bide_awaiter_ops ops = {
        .ready = file_read_ready,
        .suspend = file_read_suspend,
        .resume = file_read_resume,
        .name = "file_read",
    };
    self->awaiter.ops = &ops;
    self->device = device;
    self->buffer = buffer;
    self->size = size;
    self->at = at;
    return &self->awaiter;
}

/* ---- The other side ---- */

static struct file_read *wait_for_a_read(struct device *device)
{
    pthread_mutex_lock(&device->lock);
    while (device->given == NULL && !device->ending)
        pthread_cond_wait(&device->changed, &device->lock);
    struct file_read *read = device->given;
    device->given = NULL;
    pthread_mutex_unlock(&device->lock);
    return read;
}

static void *device_thread(void *argument)
{
    struct device *device = argument;
    struct file_read *read;
    while ((read = wait_for_a_read(device)) != NULL) {
        read->count = pread(device->file, read->buffer, read->size, read->at);
        /* acquire: pairs with the release in `read_once`. */
        while (device->order == LATE && !bide_atomic_load(&device->late_may_finish, acquire))
            sched_yield();
        bide_wake_one(&read->awaiter);
    }
    return NULL;
}

static bool device_open(struct device *device, int file, enum order order)
{
    device->file = file;
    device->order = order;
    device->given = NULL;
    device->ending = false;
    bide_atomic_init(&device->resumed, 0);
    bide_atomic_init(&device->resumed_early, 0);
    bide_atomic_init(&device->late_may_finish, false);
    pthread_mutex_init(&device->lock, NULL);
    pthread_cond_init(&device->changed, NULL);
    return pthread_create(&device->thread, NULL, device_thread, device) == 0;
}

static void device_close(struct device *device)
{
    pthread_mutex_lock(&device->lock);
    device->ending = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    pthread_join(device->thread, NULL);
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->lock);
}

/* ---- The coroutine ---- */

struct reader {
    bide_task task;
    struct device *device;
    struct file_read read;
    size_t length;
    char text[BLOCKS * BLOCK];
};

bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct reader * self);
    self->length = 0;
    do {
        bide_try(file_read(&self->read, self->device, self->text + self->length, BLOCK,
                           (off_t)self->length));
        self->length += (size_t)self->read.count;
    } while (self->read.count != 0);
    bide_end();
}

/*
 * Reads the file once, in a frame that is destroyed afterwards, even if a thread is still inside
 * suspend. Early and by chance, the coroutine runs on a pool, and another thread continues it while
 * one is inside suspend. Late, the coroutine belongs to no thread: main starts it, and the device's
 * thread continues it, including from the next suspend to the next completion. So that completion
 * comes after that suspend.
 */
static bool read_once(struct device *device, bide_thread_pool *pool)
{
    bide_context context = bide_default_context;
    bide_event_waiter wait;
    bide_spawned spawned;
    struct reader *reader = malloc(sizeof *reader);
    if (reader == NULL)
        return false;
    reader->device = device;
    if (device->order != LATE)
        context.scheduler = bide_thread_pool_scheduler(pool);
    bide_atomic_store(&device->late_may_finish, false, relaxed);
    bide_spawn(&spawned, &context, bide_task_init(&reader->task, &reader_body));
    /* release: pairs with the acquire in device_thread. The first suspend has returned. */
    bide_atomic_store(&device->late_may_finish, true, release);
    bide_sync_wait(bide_event_wait(&wait, &spawned.ended));
    bool same = spawned.root.status == 0 && reader->length == sizeof text - 1 &&
                memcmp(reader->text, text, reader->length) == 0;
    free(reader);
    return same;
}

/* Returns how many completions came before suspend returned, or -1 after an error. */
static int run(int file, enum order order, unsigned *reads)
{
    struct device device;
    bide_thread_pool *pool;
    bool good = true;
    if (bide_thread_pool_create(&pool, 2) != 0)
        return -1;
    if (!device_open(&device, file, order)) {
        bide_thread_pool_destroy(pool);
        return -1;
    }
    for (int i = 0; i < ROUNDS && good; i++)
        good = read_once(&device, pool);
    bide_thread_pool_destroy(pool); /* joins its threads: none is inside suspend any more */
    device_close(&device);
    *reads = bide_atomic_load(&device.resumed, relaxed);
    return good ? (int)bide_atomic_load(&device.resumed_early, relaxed) : -1;
}

int main(void)
{
    static const char *const names[] = {"early", "late", "by chance"};
    FILE *file = tmpfile();
    if (file == NULL)
        return 1;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Stream): open until the program exits */
    if (fputs(text, file) == EOF || fflush(file) != 0)
        return fclose(file) + 1;
    fputs(text, stdout);
    for (enum order order = EARLY; order <= BY_CHANCE; order++) {
        unsigned reads;
        int resumed_early = run(fileno(file), order, &reads);
        if (resumed_early < 0)
            return fclose(file) + 1;
        printf("%s: %u reads", names[order], reads);
        if (order != BY_CHANCE)
            printf(", %d of them ended before suspend had returned", resumed_early);
        puts("");
    }
    return fclose(file) != 0;
}
