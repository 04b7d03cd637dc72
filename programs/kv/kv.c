/*
 * A server of keys and values that speaks redis's protocol.
 *
 *     kv [--port N] [--append-only FILE --fsync always|everysec|no] [--snapshot FILE] ...
 *
 * One thread has a loop, on which all of this runs:
 *
 *     serve             of each client (client.c): requests in, replies out; a second coroutine for
 *                       who has subscribed
 *     journal_write     the append-only file, a group of changes at a time (journal.c)
 *     keep_saving       snapshots, and the append-only file written anew (snapshot.c)
 *     keep_expiring     keys whose time has come, and
 *     keep_sweeping     memory of what was flushed, a little at a time (expire.c)
 *     stop_when_asked   SIGTERM, SIGINT and SHUTDOWN
 *
 * The commands (strings.c, keys.c, pubsub.c, admin.c) never wait. So each is done as a whole, and
 * nothing has a lock.
 */
#include "replay.h"
#include "tasks.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 1024, DRAIN_SECONDS = 5 };

void kv_look_at_clock(struct kv *kv)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    kv->keys.now = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void kv_tell(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("kv: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

/* ---- What the keys tell of ---- */

static void key_expired(struct keyspace *keyspace, struct bytes key)
{
    kv_log_delete(bide_container_of(keyspace, struct kv, keys), key);
}

static void time_is_sooner(struct keyspace *keyspace)
{
    bide_single_consumer_auto_event_set(&bide_container_of(keyspace, struct kv, keys)->sooner);
}

static void keys_were_flushed(struct keyspace *keyspace)
{
    bide_single_consumer_auto_event_set(&bide_container_of(keyspace, struct kv, keys)->flushed);
}

/* ---- Its end ---- */

/* Of a task without which the server cannot go on: its error stops it. */
async int must_not_fail(struct kv *kv, bide_awaiter *task)
{
    int status = await task;
    if (status < 0 && status != -ECANCELED)
        bide_server_shut_down(&kv->server, 0);
    return 0;
}

async int stop_when_asked(struct kv *kv, bide_signal *terminate, bide_signal *interrupt)
{
    int status = await any(bide_signal_wait(terminate), bide_signal_wait(interrupt),
                           bide_single_consumer_auto_event_wait(&kv->stop));
    if (status < 0)
        return 0;
    kv->is_stopping = true;
    clients_end(kv);
    bide_server_shut_down(&kv->server,
                          bide_now(bide_this_context()) + UINT64_C(1000000000) * DRAIN_SECONDS);
    return 0;
}

/* ---- Its life ---- */

/* The file's writer ends after the clients, when all that they changed is on the disk. */
async int serve_clients(struct kv *kv)
{
    async_frame(journal_write) writing;
    bide_scope writer;
    bide_scope_init(&writer, bide_this_frame());
    defer bide_scope_destroy(&writer);
    if (kv->journal.is_on &&
        spawn(&writer, must_not_fail(kv, async_journal_write(&writing, &kv->journal))) < 0)
        return -ENOMEM;
    int status = await bide_server_run(&kv->server);
    kv->journal.is_ending = true;
    bide_single_consumer_auto_event_set(&kv->journal.news);
    await bide_scope_join(&writer);
    return status;
}

async int run(struct kv *kv, bide_signal *terminate, bide_signal *interrupt)
{
    async_frame(journal_sync_each_second) syncing;
    bide_scope beside;
    bide_scope_init(&beside, bide_this_frame());
    defer bide_scope_destroy(&beside);
    if (spawn(&beside, stop_when_asked(kv, terminate, interrupt)) < 0 ||
        spawn(&beside, keep_saving(kv)) < 0 || spawn(&beside, keep_expiring(kv)) < 0 ||
        spawn(&beside, keep_sweeping(kv)) < 0)
        return -ENOMEM;
    if (kv->journal.is_on && kv->journal.fsync == FSYNC_EACH_SECOND &&
        spawn(&beside, must_not_fail(kv, async_journal_sync_each_second(&syncing, &kv->journal))) <
            0)
        return -ENOMEM;
    int status = await serve_clients(kv);
    bide_scope_stop(&beside);
    await bide_scope_join(&beside);
    if (status == 0 && kv->saves_at_end && kv->journal.error == 0)
        status = await save_snapshot(kv);
    return status;
}

/* ---- Its beginning ---- */

static void fail(const char *what, int status)
{
    kv_tell("%s: %s", what, strerror(-status));
    exit(1);
}

/* Reads one of the files. False: it is not there. */
static bool load(struct kv *kv, const char *path, bool may_be_torn)
{
    struct extent extent;
    int status = replay(kv, path, &extent);
    if (status == -ENOENT)
        return false;
    if (status == -EBADMSG || (status == 0 && extent.good < extent.size && !may_be_torn)) {
        kv_tell("%s: damaged at byte %lld of %lld; what is before that is whole, so "
                "'truncate -s %lld %s' would keep that alone",
                path, (long long)extent.good, (long long)extent.size, (long long)extent.good, path);
        exit(1);
    }
    if (status < 0)
        fail(path, status);
    if (extent.good < extent.used)
        kv_tell("%s: the last %lld bytes are of changes that were not whole; they are cut off",
                path, (long long)(extent.used - extent.good));
    if (extent.good < extent.size && truncate(path, (off_t)extent.good) != 0)
        fail(path, -errno);
    return true;
}

/*
 * One process has the file. A server that was killed may have a write under way, which has it for a
 * moment longer.
 */
static void lock(const char *path, int fd)
{
    enum { TRIES = 200 };
    const struct timespec pause = {0, 10000000};
    for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            fail(path, -errno);
        if (tries == TRIES) {
            kv_tell("%s: another process has it", path);
            exit(1);
        }
        nanosleep(&pause, NULL);
    }
}

static void open_journal(struct kv *kv, bool is_empty)
{
    struct journal *journal = &kv->journal;
    async_frame(rewrite_journal) rewriting;
    int fd = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        fail(journal->path, -errno);
    bide_descriptor_init(&journal->file, fd);
    lock(journal->path, fd);
    if (!is_empty)
        load(kv, journal->path, true);
    journal->size = journal->base_size = journal->synced_size = lseek(fd, 0, SEEK_END);
    journal->room = journal->size;
    journal->is_on = true;
    if (is_empty) { /* with its name on the disk, and what the snapshot had */
        int status = bide_loop_wait(kv->loop, async_rewrite_journal(&rewriting, kv));
        if (status < 0)
            fail(journal->path, status);
    }
}

static void journal_init(struct journal *journal, const struct options *options,
                         const size_t *clients)
{
    journal->path = options->append_only;
    journal->fsync = options->fsync;
    journal->clients = clients;
    journal->taken = bide_sequence_initial();
    bide_descriptor_init_closed(&journal->file);
    bide_sequence_barrier_init(&journal->written, journal->taken);
    bide_single_consumer_auto_event_init(&journal->news, false);
    bide_single_consumer_auto_event_init(&journal->growth, false);
    bide_mutex_init(&journal->busy);
}

static void kv_init(struct kv *kv)
{
    uint64_t key[2];
    if (getrandom(key, sizeof key, 0) != sizeof key)
        fail("getrandom", -errno);
    keyspace_init(&kv->keys, key);
    kv->keys.expired = key_expired;
    kv->keys.sooner = time_is_sooner;
    kv->keys.was_flushed = keys_were_flushed;
    pubsub_init(&kv->pubsub, key);
    kv->limits = (struct request_limits){kv->options.bulk, 1 << 20, kv->options.request};
    bide_single_consumer_auto_event_init(&kv->stop, false);
    bide_single_consumer_auto_event_init(&kv->sooner, false);
    bide_single_consumer_auto_event_init(&kv->flushed, false);
    bide_single_consumer_auto_event_init(&kv->save_wanted, false);
    bide_mutex_init(&kv->save);
    kv->saves_at_end = kv->options.snapshot != NULL;
    kv_look_at_clock(kv);
    kv->started = kv->last_save = kv->keys.now;
    journal_init(&kv->journal, &kv->options, &kv->client_count);
}

static void load_files(struct kv *kv)
{
    const struct options *options = &kv->options;
    bool has_journal = options->append_only != NULL && access(options->append_only, F_OK) == 0;
    if (!has_journal && options->snapshot != NULL)
        load(kv, options->snapshot, false);
    if (options->append_only != NULL)
        open_journal(kv, !has_journal);
    kv->changes = 0;
}

static void start_to_listen(struct kv *kv)
{
    bide_address address;
    bide_io_operation listen;
    int status = bide_address_ip(&address, kv->options.address, (uint16_t)kv->options.port);
    if (status == 0)
        status = client_server_init(kv);
    if (status == 0)
        status =
            bide_loop_wait(kv->loop, bide_listen(&listen, &kv->server.listener, &address, BACKLOG));
    if (status == 0)
        status = bide_local_address(&kv->server.listener, &address);
    if (status < 0) {
        kv_tell("%s port %u: %s", kv->options.address, kv->options.port, strerror(-status));
        exit(1);
    }
    kv->options.port = bide_address_port(&address);
    printf("listening (%s) on port %u\n", bide_loop_backend(kv->loop).name, kv->options.port);
    fflush(stdout);
}

/* As many descriptors as there may be. */
static void raise_limits(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/*
 * The allocator would give memory back at the end of its heap as soon as that is free, all of it by
 * one call of the system: many milliseconds, when hundreds of thousands of keys have ended. So what
 * keys had is kept for other keys. Only what is large is the system's again at once.
 */
static void keep_memory(void)
{
    enum { LARGE = 4 << 20 };
    mallopt(M_TRIM_THRESHOLD, -1);
    mallopt(M_MMAP_THRESHOLD, LARGE);
}

int main(int argc, char **argv)
{
    static struct kv kv;
    static async_frame(run) frame;
    bide_signal terminate, interrupt;
    options_read(&kv.options, argc, argv);
    raise_limits();
    keep_memory();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write says so */
    int status = bide_loop_create(&kv.loop, NULL);
    if (status < 0)
        fail("the loop", status);
    kv_init(&kv);
    load_files(&kv);
    if ((status = bide_signal_listen(&terminate, SIGTERM)) < 0 ||
        (status = bide_signal_listen(&interrupt, SIGINT)) < 0)
        fail("signals", status);
    start_to_listen(&kv);
    status = bide_loop_wait(kv.loop, async_run(&frame, &kv, &terminate, &interrupt));
    bide_signal_destroy(&terminate);
    bide_signal_destroy(&interrupt);
    if (kv.journal.error < 0)
        kv_tell("%s: %s; the server has ended", kv.journal.path, strerror(-kv.journal.error));
    else if (status < 0)
        kv_tell("%s; the server has ended", strerror(-status));
    bide_close(&kv.journal.file);
    keyspace_free(&kv.keys);
    pubsub_free(&kv.pubsub);
    buffer_free(&kv.journal.filling);
    buffer_free(&kv.journal.writing);
    bide_loop_destroy(kv.loop);
    return status < 0 || kv.journal.error < 0;
}
