/*
 * A key-value server that speaks the redis protocol.
 *
 *     kv [--port N] [--append-only FILE --fsync always|everysec|no] [--snapshot FILE] ...
 *
 * All of it runs on one thread, which has a loop:
 *
 *     client_serve           one for each client (client.c): requests in, replies out; a second
 *                            coroutine once it has subscribed
 *     journal_write          the append-only file, a group of changes at a time (journal.c)
 *     run_saves              snapshots, and rewrites of the append-only file (snapshot.c)
 *     expire_keys            expired keys, and
 *     free_flushed_keys      memory of flushed keys, a little at a time (expire.c)
 *     stop_on_request        SIGTERM, SIGINT and SHUTDOWN
 *
 * The commands (strings.c, keys.c, pubsub.c, admin.c) never suspend. So each command is atomic, and
 * needs no lock.
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

void kv_update_clock(struct kv *kv)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    kv->keys.now = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void kv_report(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("kv: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

/* ---- Notifications from the keyspace ---- */

static void log_expired_key(struct keyspace *keyspace, struct bytes key)
{
    kv_log_delete(bide_container_of(keyspace, struct kv, keys), key);
}

static void wake_expiry(struct keyspace *keyspace)
{
    bide_single_consumer_auto_event_set(
        &bide_container_of(keyspace, struct kv, keys)->next_expiry_changed);
}

static void wake_flush(struct keyspace *keyspace)
{
    bide_single_consumer_auto_event_set(&bide_container_of(keyspace, struct kv, keys)->flushed);
}

/* ---- Stopping ---- */

/* Awaits a task that the server needs: its error stops the server. */
async int stop_server_on_error(struct kv *kv, bide_awaiter *task)
{
    int status = await task;
    if (status < 0 && status != -ECANCELED)
        bide_server_shut_down(&kv->server, 0);
    return 0;
}

async int stop_on_request(struct kv *kv, bide_signal *terminate, bide_signal *interrupt)
{
    int status = await any(bide_signal_wait(terminate), bide_signal_wait(interrupt),
                           bide_single_consumer_auto_event_wait(&kv->stop));
    if (status < 0)
        return 0;
    kv->is_stopping = true;
    clients_shut_down_input(kv);
    bide_server_shut_down(&kv->server,
                          bide_now(bide_this_context()) + UINT64_C(1000000000) * DRAIN_SECONDS);
    return 0;
}

/* ---- Serving ---- */

/* The journal's writer outlives the clients, so that all of their changes reach the disk. */
async int serve_clients(struct kv *kv)
{
    async_frame(journal_write) writing;
    bide_scope writer;
    bide_scope_init(&writer, bide_this_frame());
    defer bide_scope_destroy(&writer);
    if (kv->journal.is_on &&
        spawn(&writer, stop_server_on_error(kv, async_journal_write(&writing, &kv->journal))) < 0)
        return -ENOMEM;
    int status = await bide_server_run(&kv->server);
    kv->journal.is_stopping = true;
    bide_single_consumer_auto_event_set(&kv->journal.writer_wakeup);
    await bide_scope_join(&writer);
    return status;
}

async int run_server(struct kv *kv, bide_signal *terminate, bide_signal *interrupt)
{
    async_frame(journal_sync_each_second) syncing;
    bide_scope background;
    bide_scope_init(&background, bide_this_frame());
    defer bide_scope_destroy(&background);
    if (spawn(&background, stop_on_request(kv, terminate, interrupt)) < 0 ||
        spawn(&background, run_saves(kv)) < 0 || spawn(&background, expire_keys(kv)) < 0 ||
        spawn(&background, free_flushed_keys(kv)) < 0)
        return -ENOMEM;
    if (kv->journal.is_on && kv->journal.fsync == FSYNC_EACH_SECOND &&
        spawn(&background,
              stop_server_on_error(kv, async_journal_sync_each_second(&syncing, &kv->journal))) < 0)
        return -ENOMEM;
    int status = await serve_clients(kv);
    bide_scope_stop(&background);
    await bide_scope_join(&background);
    if (status == 0 && kv->saves_on_exit && kv->journal.error == 0)
        status = await save_snapshot(kv);
    return status;
}

/* ---- Starting ---- */

static void exit_with_error(const char *what, int status)
{
    kv_report("%s: %s", what, strerror(-status));
    exit(1);
}

/* Loads one of the files. Returns false if it does not exist. */
static bool load_file(struct kv *kv, const char *path, bool may_be_torn)
{
    struct extent extent;
    int status = replay(kv, path, &extent);
    if (status == -ENOENT)
        return false;
    if (status == -EBADMSG || (status == 0 && extent.good < extent.size && !may_be_torn)) {
        kv_report("%s: damaged at byte %lld of %lld; everything before it is intact, so "
                  "'truncate -s %lld %s' would keep that part",
                  path, (long long)extent.good, (long long)extent.size, (long long)extent.good,
                  path);
        exit(1);
    }
    if (status < 0)
        exit_with_error(path, status);
    if (extent.good < extent.used)
        kv_report("%s: removed the last %lld bytes, which belong to incomplete changes", path,
                  (long long)(extent.used - extent.good));
    if (extent.good < extent.size && truncate(path, (off_t)extent.good) != 0)
        exit_with_error(path, -errno);
    return true;
}

/*
 * Locks the file for this process. A server that was just killed may still have a write in
 * progress, whose file stays locked a moment longer; so the lock is retried.
 */
static void lock_file(const char *path, int fd)
{
    enum { TRIES = 200 };
    const struct timespec pause = {0, 10000000};
    for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            exit_with_error(path, -errno);
        if (tries == TRIES) {
            kv_report("%s: locked by another process", path);
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
        exit_with_error(journal->path, -errno);
    bide_descriptor_init(&journal->file, fd);
    lock_file(journal->path, fd);
    if (!is_empty)
        load_file(kv, journal->path, true);
    journal->size = journal->base_size = journal->synced_size = lseek(fd, 0, SEEK_END);
    journal->allocated_size = journal->size;
    journal->is_on = true;
    if (is_empty) { /* writes the snapshot's keys to it, and syncs its name to the disk */
        int status = bide_loop_wait(kv->loop, async_rewrite_journal(&rewriting, kv));
        if (status < 0)
            exit_with_error(journal->path, status);
    }
}

static void journal_init(struct journal *journal, const struct options *options,
                         const size_t *clients)
{
    journal->path = options->append_only;
    journal->fsync = options->fsync;
    journal->clients = clients;
    journal->last_group = bide_sequence_initial();
    bide_descriptor_init_closed(&journal->file);
    bide_sequence_barrier_init(&journal->written, journal->last_group);
    bide_single_consumer_auto_event_init(&journal->writer_wakeup, false);
    bide_single_consumer_auto_event_init(&journal->grown, false);
    bide_mutex_init(&journal->file_lock);
}

static void kv_init(struct kv *kv)
{
    uint64_t key[2];
    if (getrandom(key, sizeof key, 0) != sizeof key)
        exit_with_error("getrandom", -errno);
    keyspace_init(&kv->keys, key);
    kv->keys.expired = log_expired_key;
    kv->keys.next_expiry_changed = wake_expiry;
    kv->keys.keys_flushed = wake_flush;
    pubsub_init(&kv->pubsub, key);
    kv->limits = (struct request_limits){kv->options.bulk, 1 << 20, kv->options.request};
    bide_single_consumer_auto_event_init(&kv->stop, false);
    bide_single_consumer_auto_event_init(&kv->next_expiry_changed, false);
    bide_single_consumer_auto_event_init(&kv->flushed, false);
    bide_single_consumer_auto_event_init(&kv->save_wanted, false);
    bide_mutex_init(&kv->save_lock);
    kv->saves_on_exit = kv->options.snapshot != NULL;
    kv_update_clock(kv);
    kv->started = kv->last_save = kv->keys.now;
    journal_init(&kv->journal, &kv->options, &kv->client_count);
}

static void load_files(struct kv *kv)
{
    const struct options *options = &kv->options;
    bool has_journal = options->append_only != NULL && access(options->append_only, F_OK) == 0;
    if (!has_journal && options->snapshot != NULL)
        load_file(kv, options->snapshot, false);
    if (options->append_only != NULL)
        open_journal(kv, !has_journal);
    kv->changes = 0;
}

static void start_listening(struct kv *kv)
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
        kv_report("%s port %u: %s", kv->options.address, kv->options.port, strerror(-status));
        exit(1);
    }
    kv->options.port = bide_address_port(&address);
    printf("listening (%s) on port %u\n", bide_loop_backend(kv->loop).name, kv->options.port);
    fflush(stdout);
}

/* Raises the number of descriptors to the hard limit. */
static void raise_limits(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/*
 * By default the allocator returns free memory at the end of its heap to the system at once, all of
 * it in one system call. That call takes many milliseconds when hundreds of thousands of keys have
 * expired. So memory of small keys is kept for other keys, and only large allocations are returned
 * at once.
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
    static async_frame(run_server) frame;
    bide_signal terminate, interrupt;
    options_read(&kv.options, argc, argv);
    raise_limits();
    keep_memory();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* the write reports it */
    int status = bide_loop_create(&kv.loop, NULL);
    if (status < 0)
        exit_with_error("the loop", status);
    kv_init(&kv);
    load_files(&kv);
    if ((status = bide_signal_listen(&terminate, SIGTERM)) < 0 ||
        (status = bide_signal_listen(&interrupt, SIGINT)) < 0)
        exit_with_error("signals", status);
    start_listening(&kv);
    status = bide_loop_wait(kv.loop, async_run_server(&frame, &kv, &terminate, &interrupt));
    bide_signal_destroy(&terminate);
    bide_signal_destroy(&interrupt);
    if (kv.journal.error < 0)
        kv_report("%s: %s; the server has stopped", kv.journal.path, strerror(-kv.journal.error));
    else if (status < 0)
        kv_report("%s; the server has stopped", strerror(-status));
    bide_assert(kv.clients == NULL && kv.client_count == 0);
    bide_close(&kv.journal.file);
    keyspace_free(&kv.keys);
    pubsub_free(&kv.pubsub);
    buffer_free(&kv.journal.filling);
    buffer_free(&kv.journal.writing);
    bide_loop_destroy(kv.loop);
    return status < 0 || kv.journal.error < 0;
}
