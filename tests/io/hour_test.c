/*
 * An hour of a program's operations in a minute: all kinds of operations, on all kinds of descriptors, ended in all
 * ways, at random. Afterwards no descriptor, memory, map, file, child or operation is left.
 *
 * Actors share descriptors, and each has files of its own. An operation of an actor completes, is stopped before or
 * meanwhile, is late, is destroyed, or has its descriptor closed. storm_test.c counts the bytes; here it is what is
 * left that counts.
 *
 * BIDE_SOAK is the number of seconds; without it the number of operations is fixed. Operations on names of hosts and
 * signals are left out: what they leave is in caches, and in the process.
 */
#define _GNU_SOURCE
#include "subjects.h"

#include "../../src/base/thread_sanitizer.h"
#include "../../src/io/statx.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/statfs.h>
#include <sys/wait.h>

enum {
    ACTORS = 24,
    KITS = 24,
    PIECE = 8192, /* the maximum number of bytes at once */
    BUFFERS = 4,  /* of an actor's pool */
    USUAL = 4000, /* operations; multiplied by BIDE_ROUNDS */
    WARM_UP = 1500,
    MANY_MAPS = 64,       /* more are a leak; fewer may be of threads */
    MUCH_MEMORY = 131072, /* the same */
};

/* (ThreadSanitizer does not know the children of a fork of several threads) */
enum { HAS_CHILDREN = !BIDE_UNDER_TSAN_ };

/* Two ends, which all actors share. */
typedef struct kit {
    kind kind;
    bide_descriptor ends[2];
} kit;

static const kind kinds_of_kits[] = {STREAMS, DATAGRAMS, PACKETS, TCP,     UDP,   PIPE_IN,
                                     FIFO,    TERMINAL,  REGULAR, COUNTER, CLOCK, IN_MEMORY};

typedef enum cut { COMPLETES, STOPPED_BEFORE, STOPPED, LATE, DESTROYED, CLOSED, CUTS } cut;

/* Each is an operation of an actor. */
typedef enum deed {
    DO_READ,
    DO_WRITE,
    DO_READV,
    DO_WRITEV,
    DO_READ_AT,
    DO_WRITE_AT,
    DO_RECV,
    DO_SEND,
    DO_RECVMSG,
    DO_SENDMSG,
    DO_RECV_BATCH,
    DO_SEND_BATCH,
    DO_SEND_ZERO_COPY,
    DO_RECV_PROVIDED,
    DO_RECV_NEXT,
    DO_SEND_FDS,
    DO_RECV_FDS,
    DO_POLL, /* the last on descriptors that are shared */
    DO_ACCEPT,
    DO_CONNECT,
    DO_LISTEN,
    DO_BIND,
    DO_PAIR,
    DO_OPEN,
    DO_OPEN_FIFO,
    DO_OPEN_TEMPORARY,
    DO_SYNC,
    DO_ALLOCATE,
    DO_TRUNCATE,
    DO_STAT,
    DO_RENAME,
    DO_UNLINK,
    DO_MAKE_DIRECTORY,
    DO_LINK,
    DO_SYMLINK,
    DO_READLINK,
    DO_REALPATH,
    DO_STATX,
    DO_STATFS,
    DO_CHMOD,
    DO_CHOWN,
    DO_UTIMES,
    DO_NEXT_ENTRY,
    DO_MAP,
    DO_PREFAULT,
    DO_COPY_FILE,
    DO_SEND_FILE,
    DO_LOCK,
    DO_SPLICE,
    DO_TEE,
    DO_WATCH,
    DO_PROCESS,
    DEEDS
} deed;

typedef struct hour hour;

typedef struct actor {
    bide_task task;
    bide_spawned spawned;
    hour *hour;
    struct runner runner;
    bide_sleep pause;
    bide_event_waiter wait;
    deed deed;
    cut cut;
    bide_descriptor *used; /* of a kit; or NULL */

    /* of one operation */
    union {
        bide_file_operation file;
        bide_io_operation io;
        bide_fds_operation fds;
        bide_entry_operation entry;
        bide_copy_file_operation copy;
        bide_send_file_operation send_file;
        bide_lock_file_operation lock;
        bide_splice_operation splice;
        bide_file_event_operation event;
        bide_process_wait_operation process;
    } is;
    bide_descriptor opened, other;
    struct iovec vectors[3];
    struct msghdr message;
    bide_message messages[3];
    bide_process child;
    struct stat about;
    struct statx more_about;
    struct statfs file_system;
    int passed[BIDE_SCM_MAX_FDS];
    char names[2][100];
    bide_directory directory;
    char entries[1024];
    void *mapped;

    /* its own */
    char path[64];
    bide_descriptor at, file, same_file, target, pipe[2], piped[2];
    bide_path_root root;
    bide_file_watcher watcher;
    bide_file_watch watch;
    _Alignas(16) char events[4096];
    bide_buffer_pool pool;
    bide_receiver receiver;
    _Alignas(16) char lent[BUFFERS][512];
    char bytes[PIECE];
} actor;

struct hour {
    world *world;
    uint64_t random;
    uint64_t until; /* 0: `left` operations */
    uint32_t left;
    unsigned running;
    bide_descriptor listener;
    bide_address address; /* its */
    bide_address any;
    char path[48];
    kit kits[KITS];
    actor actors[ACTORS];
    unsigned done[DEEDS], ended[CUTS];
};

static uint32_t draw(hour *h, uint32_t below)
{
    return (uint32_t)(testing_random(&h->random) >> 33) % below;
}

/* ---- What they use ---- */

static void open_kit(kit *kit)
{
    subject made = make(kit->kind);
    if (kit->kind == TERMINAL)
        set_blocking(made.fd, true); /* (as others that share it have it) */
    bide_descriptor_init(&kit->ends[0], made.fd);
    bide_descriptor_init(&kit->ends[1], made.peer);
}

static void close_kit(kit *kit)
{
    for (int i = 0; i < 2; i++)
        bide_close(&kit->ends[i]);
}

/* An end of a kit, which is opened again if it was closed. */
static bide_descriptor *open_end(hour *h, kit *kit)
{
    bide_descriptor *end = &kit->ends[draw(h, 2)];
    if (!bide_descriptor_is_open(end)) {
        close_kit(kit);
        open_kit(kit);
    }
    return bide_descriptor_is_open(end) ? end : &kit->ends[0];
}

static bide_descriptor *draw_end(hour *h)
{
    return open_end(h, &h->kits[draw(h, KITS)]);
}

/* One of a stream that does not block, as a file is sent to. */
static bide_descriptor *draw_stream(hour *h)
{
    kit *kit;
    do {
        kit = &h->kits[draw(h, KITS)];
    } while (kit->kind != STREAMS && kit->kind != TCP);
    return open_end(h, kit);
}

static void open_file(const actor *self, bide_descriptor *file, const char *name, int flags)
{
    char path[100];
    if (bide_descriptor_is_open(file))
        return;
    snprintf(path, sizeof path, "%s/%s", self->path, name);
    int fd = open(path, flags | O_CLOEXEC, 0700);
    assert_true(fd >= 0);
    bide_descriptor_init(file, fd);
}

static void open_pipe(bide_descriptor *ends)
{
    int fds[2];
    if (bide_descriptor_is_open(&ends[0]) && bide_descriptor_is_open(&ends[1]))
        return;
    bide_close(&ends[0]);
    bide_close(&ends[1]);
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    bide_descriptor_init(&ends[0], fds[0]);
    bide_descriptor_init(&ends[1], fds[1]);
}

static void open_own(actor *self)
{
    open_file(self, &self->at, ".", O_RDONLY | O_DIRECTORY);
    open_file(self, &self->file, "file", O_RDWR | O_CREAT);
    open_file(self, &self->same_file, "file", O_RDWR);
    open_file(self, &self->target, "target", O_RDWR | O_CREAT);
    open_pipe(self->pipe);
    open_pipe(self->piped);
}

static void begin_actor(actor *self, int number)
{
    char fifo[80];
    snprintf(self->path, sizeof self->path, "%s/%d", self->hour->path, number);
    assert_int_equal(mkdir(self->path, 0700), 0);
    snprintf(fifo, sizeof fifo, "%s/fifo", self->path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    self->root.directory = &self->at;
    open_own(self);
    assert_int_equal(ftruncate(bide_descriptor_fd(&self->file), PIECE), 0);
    assert_int_equal(bide_file_watcher_init(&self->watcher, self->events, sizeof self->events), 0);
    assert_int_equal(bide_file_watch_add(&self->watcher, &self->watch, self->path,
                                         BIDE_FILE_CREATED | BIDE_FILE_REMOVED),
                     0);
    bide_buffer_pool_init(&self->pool, self->lent, sizeof self->lent[0], BUFFERS);
    bide_process_init(&self->child);
}

static void end_actor(actor *self)
{
    static const char *const names[] = {"file", "target", "fifo", "a", "b", "c", "d"};
    char path[100];
    bide_file_watcher_destroy(&self->watcher);
    bide_buffer_pool_destroy(&self->pool);
    bide_close(&self->at);
    bide_close(&self->file);
    bide_close(&self->same_file);
    bide_close(&self->target);
    for (int i = 0; i < 2; i++) {
        bide_close(&self->pipe[i]);
        bide_close(&self->piped[i]);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", self->path, names[i]);
        if (unlink(path) != 0)
            rmdir(path);
    }
    assert_int_equal(rmdir(self->path), 0); /* nothing else is in there */
}

/* ---- Operations ---- */

static void draw_names(actor *self)
{
    for (int i = 0; i < 2; i++)
        snprintf(self->names[i], sizeof self->names[i], "%c", 'a' + (int)draw(self->hour, 4));
}

static void lay_out(actor *self)
{
    size_t size = 1 + draw(self->hour, 1000);
    for (int i = 0; i < 3; i++) {
        self->vectors[i] = (struct iovec){self->bytes + i * 1000, size};
        bide_message_init(&self->messages[i], &self->vectors[i], NULL);
    }
    self->message = (struct msghdr){.msg_iov = self->vectors, .msg_iovlen = 3};
}

static bide_awaiter *move_bytes(actor *self)
{
    hour *h = self->hour;
    bide_descriptor *end = self->used = draw_end(h);
    size_t size = 1 + draw(h, draw(h, 4) == 0 ? PIECE : 100);
    int of_group = self->passed[0] = bide_descriptor_fd(&self->at);
    lay_out(self);
    switch (self->deed) {
    case DO_READ:
        return bide_read(&self->is.file, end, self->bytes, size);
    case DO_WRITE:
        return bide_write(&self->is.file, end, self->bytes, size);
    case DO_READV:
        return bide_readv(&self->is.file, end, self->vectors, 3, -1);
    case DO_WRITEV:
        return bide_writev(&self->is.file, end, self->vectors, 3, -1);
    case DO_READ_AT:
        return bide_read_at(&self->is.file, end, self->bytes, size, 100);
    case DO_WRITE_AT:
        return bide_write_at(&self->is.file, end, self->bytes, size, 100);
    case DO_RECV:
        return bide_recv(&self->is.io, end, self->bytes, size);
    case DO_SEND:
        return bide_send(&self->is.io, end, self->bytes, size);
    case DO_RECVMSG:
        return bide_recvmsg(&self->is.io, end, &self->message, 0);
    case DO_SENDMSG:
        return bide_sendmsg(&self->is.io, end, &self->message, 0);
    case DO_RECV_BATCH:
        return bide_recv_batch(&self->is.io, end, self->messages, 3);
    case DO_SEND_BATCH:
        return bide_send_batch(&self->is.io, end, self->messages, 3);
    case DO_SEND_ZERO_COPY:
        return bide_send_zero_copy(&self->is.io, end, self->bytes, size);
    case DO_RECV_PROVIDED:
        return bide_recv_provided(&self->is.io, end, &self->pool);
    case DO_RECV_NEXT:
        bide_receiver_init(&self->receiver, end, &self->pool, 1);
        return bide_receiver_next(&self->receiver);
    case DO_SEND_FDS:
        return bide_send_fds(&self->is.fds, end, self->bytes, size, &of_group, 1);
    case DO_RECV_FDS:
        return bide_recv_fds(&self->is.fds, end, self->bytes, size, self->passed, BIDE_SCM_MAX_FDS);
    default:
        return bide_poll(&self->is.io, end, draw(h, 2) == 0 ? POLLIN : POLLOUT);
    }
}

static bide_awaiter *use_own(actor *self)
{
    static const struct timespec times[2] = {{1, 0}, {2, 0}};
    hour *h = self->hour;
    bide_file_operation *file = &self->is.file;
    const bide_path_root *root = &self->root;
    char *one = self->names[0], *other = self->names[1];
    self->used = NULL;
    draw_names(self);
    switch (self->deed) {
    case DO_ACCEPT:
        return bide_accept(&self->is.io, &h->listener, &self->opened, NULL);
    case DO_CONNECT:
        return bide_connect(&self->is.io, &self->opened, &h->address);
    case DO_LISTEN:
        return bide_listen(&self->is.io, &self->opened, &h->any, 1);
    case DO_BIND:
        return bide_bind(&self->is.io, &self->opened, &h->any, 0);
    case DO_PAIR:
        return bide_socket_pair(&self->is.io, &self->opened, &self->other);
    case DO_OPEN:
        return bide_open_at(file, &self->opened, root, one, O_RDWR | O_CREAT, 0600);
    case DO_OPEN_FIFO:
        return bide_open_at(file, &self->opened, root, "fifo",
                            draw(h, 2) == 0 ? O_RDONLY : O_WRONLY, 0);
    case DO_OPEN_TEMPORARY:
        return bide_open_temporary(file, &self->opened, root, ".", 0, 0600);
    case DO_SYNC:
        return bide_sync(file, &self->target, BIDE_SYNC_DATA);
    case DO_ALLOCATE:
        return bide_allocate(file, &self->target, 0, 0, PIECE);
    case DO_TRUNCATE:
        return bide_truncate(file, &self->target, draw(h, PIECE));
    case DO_STAT:
        return bide_stat(file, &self->file, &self->about);
    case DO_RENAME:
        return bide_rename_at(file, root, one, root, other, 0);
    case DO_UNLINK:
        return bide_unlink_at(file, root, one, draw(h, 2) == 0 ? AT_REMOVEDIR : 0);
    case DO_MAKE_DIRECTORY:
        return bide_make_directory_at(file, root, one, 0700);
    case DO_LINK:
        return bide_link_at(file, root, one, root, other, 0);
    case DO_SYMLINK:
        return bide_symlink_at(file, one, root, other);
    case DO_READLINK:
        return bide_readlink_at(file, root, one, self->bytes, sizeof self->bytes);
    case DO_REALPATH:
        return bide_realpath_at(file, root, one, self->bytes, sizeof self->bytes);
    case DO_STATX:
        return bide_statx_at(file, root, one, 0, STATX_BASIC_STATS, &self->more_about);
    case DO_STATFS:
        return bide_statfs_at(file, root, "file", &self->file_system);
    case DO_CHMOD:
        return bide_chmod_at(file, root, one, 0700, 0);
    case DO_CHOWN:
        return bide_chown_at(file, root, one, (uid_t)-1, (gid_t)-1, 0);
    case DO_UTIMES:
        return bide_utimes_at(file, root, one, times, 0);
    case DO_NEXT_ENTRY:
        open_file(self, &self->opened, ".", O_RDONLY | O_DIRECTORY);
        bide_directory_init(&self->directory, &self->opened, self->entries, sizeof self->entries);
        return bide_next_entry(&self->is.entry, &self->directory);
    case DO_MAP:
        return bide_map_file(file, &self->file, 0, PIECE, PROT_READ, MAP_SHARED);
    case DO_PREFAULT:
        self->mapped =
            mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return bide_prefault(file, self->mapped, PIECE, true);
    case DO_COPY_FILE:
        return bide_copy_file(&self->is.copy, &self->file, 0, &self->target, draw(h, 100), PIECE);
    case DO_SEND_FILE:
        return bide_send_file(&self->is.send_file, draw_stream(h), &self->file, 0, PIECE);
    case DO_LOCK:
        return bide_lock_file(&self->is.lock, draw(h, 2) == 0 ? &self->file : &self->same_file,
                              BIDE_FILE_EXCLUSIVE, 0, 0);
    case DO_SPLICE:
        return bide_splice(&self->is.splice, &self->pipe[0], &self->piped[1], 100);
    case DO_TEE:
        (void)!write(bide_descriptor_fd(&self->pipe[1]), "abc", 3);
        return bide_tee(&self->is.splice, &self->pipe[0], &self->piped[1], 100);
    case DO_WATCH:
        return bide_file_watch_next(&self->is.event, &self->watcher);
    default:
        return bide_process_wait(&self->is.process, &self->child);
    }
}

static bide_awaiter *choose(actor *self)
{
    hour *h = self->hour;
    self->deed = draw(h, 2) == 0 ? (deed)draw(h, DO_POLL + 1) : (deed)draw(h, DEEDS);
    if (self->deed == DO_PROCESS && (!HAS_CHILDREN || draw(h, 20) != 0))
        self->deed = DO_STAT; /* (a start costs as much as a hundred operations) */
    if (self->deed == DO_PROCESS) {
        const bide_process_options options = {
            .program = "true",
            .streams = {{BIDE_STREAM_NULL, 0}, {BIDE_STREAM_NULL, 0}, {BIDE_STREAM_NULL, 0}}};
        if (bide_process_start(&self->child, &options) != 0)
            self->deed = DO_STAT;
    }
    bide_descriptor_init_closed(&self->opened);
    bide_descriptor_init_closed(&self->other);
    self->mapped = NULL;
    open_own(self);
    return self->deed <= DO_POLL ? move_bytes(self) : use_own(self);
}

/* Puts away the result of an operation; 1: it was destroyed. */
static void put_away(actor *self, int status)
{
    if (self->deed == DO_RECV_PROVIDED && status == 0 && self->is.io.count != 0)
        bide_buffer_release(&self->pool, bide_provided_buffer(&self->is.io));
    if (self->deed == DO_RECV_NEXT) {
        if (status == 0)
            bide_buffer_release(&self->pool, bide_receiver_data(&self->receiver));
        bide_receiver_destroy(&self->receiver);
    }
    if (self->deed == DO_RECV_FDS && status == 0) {
        for (unsigned i = 0; i < self->is.fds.passed; i++)
            assert_int_equal(close(self->passed[i]), 0);
    }
    if (self->deed == DO_MAP && status == 0)
        self->mapped = self->is.file.operation.arguments.map.at;
    if (self->mapped != NULL)
        assert_int_equal(munmap(self->mapped, PIECE), 0);
    if (self->deed == DO_LOCK) {
        bide_unlock_file(&self->file, 0, 0);
        bide_unlock_file(&self->same_file, 0, 0);
    }
    bide_close(&self->opened);
    bide_close(&self->other);
    bide_process_destroy(&self->child);
    bide_process_init(&self->child);
}

static void check_status(const actor *self, int status)
{
    bool was_stopped = self->cut == STOPPED || self->cut == STOPPED_BEFORE;
    /* (not every file system can allocate, or has files without names) */
    bool may_lack = self->deed == DO_ALLOCATE || self->deed == DO_OPEN_TEMPORARY;
    if ((status == -ECANCELED && !was_stopped) || (status == -ENOTSUP && !may_lack) ||
        status == -EFAULT) {
        printf("# operation %d ended with %d, cut %d\n", (int)self->deed, status, (int)self->cut);
        assert_int_equal(status, 0);
    }
}

bide_coroutine(actor_body)
{
    bide_begin(actor_body, actor * self);
    while (self->hour->until != 0 ? world_now(self->hour->world) < self->hour->until
                                  : self->hour->left > 0) {
        self->hour->left -= self->hour->left != 0;
        self->cut = (cut)draw(self->hour, CUTS);
        prepare(self->hour->world, &self->runner, choose(self));
        if (self->cut == STOPPED_BEFORE)
            bide_stop_request(&self->runner.stop);
        if (self->cut == DESTROYED) {
            start_inside(&self->runner);
        } else {
            /* (what nothing ends is late) */
            uint64_t time = self->cut == LATE ? draw(self->hour, 300000) : 3000000;
            self->runner.awaiter = bide_with_deadline(
                &self->runner.limited, world_now(self->hour->world) + time, self->runner.awaiter);
            bide_spawn(&self->runner.spawned, &self->runner.context,
                       bide_task_init(&self->runner.task, &runner_body));
        }
        if (self->cut != COMPLETES && self->cut != LATE)
            bide_await(bide_sleep_for(&self->pause, draw(self->hour, 200000)));
        if (self->cut == STOPPED)
            bide_stop_request(&self->runner.stop);
        if (self->cut == CLOSED && self->used != NULL)
            bide_close(self->used);
        if (self->cut == DESTROYED && !self->runner.has_ended) {
            destroy_inside(&self->runner);
            self->runner.status = 1;
        }
        if (self->cut != DESTROYED)
            bide_await(bide_event_wait(&self->wait, &self->runner.spawned.ended));
        check_status(self, self->runner.status);
        self->hour->ended[self->cut]++;
        self->hour->done[self->deed]++;
        put_away(self, self->runner.status);
    }
    self->hour->running--;
    bide_end();
}

struct dusk {
    bide_task task;
    hour *hour;
    bide_sleep pause;
};

/* At the end, what nobody would read is closed, so that what is sent without a copy ends. */
bide_coroutine(dusk_body)
{
    bide_begin(dusk_body, struct dusk * self);
    while (self->hour->running != 0) {
        bide_await(bide_sleep_for(&self->pause, 20000000));
        if (self->hour->running < ACTORS) {
            for (int i = 0; i < KITS; i++)
                close_kit(&self->hour->kits[i]);
        }
    }
    bide_end();
}

static void pass(hour *h)
{
    struct dusk dusk = {.hour = h};
    bide_event_waiter wait;
    h->running = ACTORS;
    for (int i = 0; i < ACTORS; i++)
        bide_spawn(&h->actors[i].spawned, h->world->context,
                   bide_task_init(&h->actors[i].task, &actor_body));
    assert_int_equal(world_wait(h->world, bide_task_init(&dusk.task, &dusk_body)), 0);
    for (int i = 0; i < ACTORS; i++)
        assert_int_equal(world_wait(h->world, bide_event_wait(&wait, &h->actors[i].spawned.ended)),
                         0);
    for (int i = 0; i < KITS; i++)
        close_kit(&h->kits[i]);
}

/* ---- What is left ---- */

static unsigned count_maps(void)
{
    char line[4096];
    unsigned count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        count++;
    fclose(maps);
    return count;
}

static uint64_t count_in_flight(const world *world)
{
    bide_loop_stats counts;
    bide_loop_get_stats(world->loop, &counts);
    return counts.in_flight;
}

/* Connections that nobody has accepted. */
static void empty_listener(hour *h)
{
    bide_descriptor accepted;
    bide_io_operation accept;
    bide_with_deadline_operation limited;
    while (world_wait(h->world,
                      bide_with_deadline(&limited, world_now(h->world) + 5000000,
                                         bide_accept(&accept, &h->listener, &accepted, NULL))) == 0)
        bide_close(&accepted);
}

static void an_hour_of_operations_leaves_nothing(void **state)
{
    world *world = world_of(state);
    const char *seconds = getenv("BIDE_SOAK");
    hour *h = calloc(1, sizeof *h);
    bide_io_operation listen;
    unsigned sum = 0;
    h->world = world;
    h->random = testing_seed();
    strcpy(h->path, "/tmp/bide_hour_XXXXXX");
    assert_non_null(mkdtemp(h->path));
    assert_int_equal(bide_address_parse(&h->any, "127.0.0.1:0"), 0);
    assert_int_equal(world_wait(world, bide_listen(&listen, &h->listener, &h->any, 64)), 0);
    assert_int_equal(bide_local_address(&h->listener, &h->address), 0);
    for (int i = 0; i < KITS; i++)
        h->kits[i].kind = kinds_of_kits[(size_t)i % (sizeof kinds_of_kits / sizeof *kinds_of_kits)];
    for (int i = 0; i < ACTORS; i++) {
        h->actors[i].hour = h;
        begin_actor(&h->actors[i], i);
    }
    h->left = rounds_of(WARM_UP);
    pass(h);
    empty_listener(h);
    int descriptors = count_descriptors();
    unsigned maps = count_maps();
    size_t memory = mallinfo2().uordblks;
    h->left = rounds_of(USUAL);
    h->until = seconds != NULL ? world_now(world) + strtoull(seconds, NULL, 10) * 1000000000 : 0;
    pass(h);
    empty_listener(h);
    assert_int_equal(count_in_flight(world), 0);
    assert_in_range(count_descriptors(), descriptors - 2,
                    descriptors + KEPT_DESCRIPTORS); /* (those of threads, which come and go) */
    assert_in_range(count_maps(), 0, maps + MANY_MAPS);
    assert_in_range(mallinfo2().uordblks, 0, memory + MUCH_MEMORY);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    for (int i = 0; i < ACTORS; i++)
        end_actor(&h->actors[i]);
    assert_int_equal(rmdir(h->path), 0);
    bide_close(&h->listener);
    for (int i = 0; i < DEEDS; i++) {
        sum += h->done[i];
        if (h->done[i] == 0 && seconds != NULL && (i != DO_PROCESS || HAS_CHILDREN))
            printf("# operation %d was not drawn\n", i);
    }
    printf("# %u operations: %u completed, %u stopped before and %u meanwhile, %u late, %u "
           "destroyed, %u closed\n",
           sum, h->ended[COMPLETES], h->ended[STOPPED_BEFORE], h->ended[STOPPED], h->ended[LATE],
           h->ended[DESTROYED], h->ended[CLOSED]);
    free(h);
}

int main(void)
{
    fill_pattern();
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        world_test(an_hour_of_operations_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
