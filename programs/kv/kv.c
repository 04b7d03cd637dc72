/*
 * A key-value server that speaks the redis protocol.
 *
 *     kv [--port N] [--tls-port N] [--unix-socket PATH] [--append-only FILE --fsync always|everysec|no]
 *        [--snapshot FILE] ...
 *     kv --check FILE
 *
 * All of it runs on one thread, which has a loop:
 *
 *     client_serve           one for each client (client.c): requests in, replies out; a second
 *                            coroutine once it has subscribed
 *     journal_write          the append-only file, a group of changes at a time (journal.c)
 *     run_saves              snapshots, and rewrites of the append-only file (snapshot.c)
 *     expire_keys            expired keys, and
 *     end_pauses             pauses of clients (expire.c)
 *     free_flushed_keys      memory of flushed keys, a little at a time (expire.c)
 *     serve_waiting_clients  those that one turn could not serve (expire.c)
 *     deliver_publications   messages to many subscribers (expire.c)
 *     stop_on_request        SIGTERM, SIGINT and SHUTDOWN
 *
 * The commands (strings.c, bits.c, hashes.c, lists.c, sets.c, keys.c, pubsub.c, publish.c, monitors.c, transaction.c,
 * admin.c) never suspend. So each command is atomic, and needs no lock. One that waits for elements leaves
 * that to the client's coroutine (blocking.c).
 */
#include "../common/monitoring.h"
#include "../common/secure.h"
#include "certificates.h"
#include "replay.h"
#include "tasks.h"

#include <errno.h>
#include <libgen.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DRAIN_SECONDS = 5 };

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

void kv_exit_with_error(const char *what, int status)
{
    kv_report("%s: %s", what, strerror(-status));
    exit(1);
}

/* ---- Notifications from the keyspace ---- */

static void log_expired_key(struct keyspace *keyspace, struct bytes key)
{
    struct kv *kv = bide_container_of(keyspace, struct kv, keys);
    kv_log_delete(kv, key);
    kv_notify(kv, NOTIFY_EXPIRED, "expired", key);
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

static void shut_down_servers(struct kv *kv, uint64_t deadline)
{
    for (size_t i = 0; i < kv->server_count; i++)
        bide_server_shut_down(&kv->servers[i], deadline);
}

/* Awaits a task that the server needs: its error stops the server. */
async int stop_server_on_error(struct kv *kv, bide_awaiter *task)
{
    int status = await task;
    if (status < 0 && status != -ECANCELED)
        shut_down_servers(kv, 0);
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
    shut_down_servers(kv, bide_now(bide_this_context()) + UINT64_C(1000000000) * DRAIN_SECONDS);
    return 0;
}

/* ---- Serving ---- */

/* An error of one server stops the others. */
async int run_listener(struct kv *kv, bide_server *server)
{
    int status = await bide_server_run(server);
    if (status < 0)
        shut_down_servers(kv, 0);
    return status;
}

/* Returns the first error. */
async int run_listeners(struct kv *kv)
{
    bide_scope running;
    bide_scope_init(&running, bide_this_frame());
    defer bide_scope_destroy(&running);
    for (size_t i = 0; i < kv->server_count; i++) {
        if (spawn(&running, run_listener(kv, &kv->servers[i])) < 0)
            return -ENOMEM;
    }
    return await bide_scope_join(&running);
}

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
    int status = await run_listeners(kv);
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
        spawn(&background, free_flushed_keys(kv)) < 0 || spawn(&background, end_pauses(kv)) < 0 ||
        spawn(&background, serve_waiting_clients(kv)) < 0 ||
        spawn(&background, deliver_publications(kv)) < 0)
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

/* Reports why a file is refused. It has not been changed. */
static _Noreturn void reject_file(const char *path, const struct replayed *replayed)
{
    char text[160];
    kv_report("%s: %s; the file is left as it is", path,
              replay_explain(replayed, text, sizeof text));
    exit(1);
}

static void sync_directory(const char *path)
{
    char *copy = strdup(path);
    int fd = copy != NULL ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0 || fsync(fd) != 0)
        kv_exit_with_error(path, copy != NULL ? -errno : -ENOMEM);
    close(fd);
    free(copy);
}

/* Loads the snapshot. Returns false if it does not exist. */
static bool load_snapshot(struct kv *kv, const char *path)
{
    struct replayed replayed;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return false;
    int status = fd < 0 ? -errno : replay_file(&kv->keys, fd, FILE_SNAPSHOT, &replayed);
    if (status < 0)
        kv_exit_with_error(path, status);
    close(fd);
    if (replayed.state != REPLAY_INTACT)
        reject_file(path, &replayed);
    return true;
}

/* ---- The append-only file ---- */

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
            kv_exit_with_error(path, -errno);
        if (tries == TRIES) {
            kv_report("%s: locked by another process", path);
            exit(1);
        }
        nanosleep(&pause, NULL);
    }
}

/* Opens and locks the existing file. Returns -1 if there is none. */
static int open_locked(const char *path)
{
    for (;;) {
        struct stat named, opened;
        int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            return -1;
        if (fd < 0)
            kv_exit_with_error(path, -errno);
        lock_file(path, fd);
        if (fstat(fd, &opened) != 0)
            kv_exit_with_error(path, -errno);
        if (stat(path, &named) == 0 && named.st_dev == opened.st_dev &&
            named.st_ino == opened.st_ino)
            return fd;
        close(fd); /* replaced before it was locked */
    }
}

/* Creates a file beside `path`, PATH.torn or PATH.torn.N, and returns its name. */
static char *create_beside(const char *path, int *fd)
{
    enum { MAX_FILES = 10000, NAME_SPACE = sizeof ".torn.9999" };
    size_t size = strlen(path) + NAME_SPACE;
    char *name = malloc(size);
    if (name == NULL)
        kv_exit_with_error(path, -ENOMEM);
    *fd = -1;
    for (int i = 0; i < MAX_FILES && *fd < 0; i++) {
        int length = snprintf(name, size, "%s.torn", path);
        if (i > 0)
            snprintf(name + length, size - (size_t)length, ".%d", i);
        *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (*fd < 0 && errno != EEXIST)
            break;
    }
    if (*fd < 0)
        kv_exit_with_error(name, -errno);
    return name;
}

static int copy_range(int from, int64_t begin, int64_t end, int to)
{
    static char piece[65536];
    while (begin < end) {
        size_t size = end - begin < (int64_t)sizeof piece ? (size_t)(end - begin) : sizeof piece;
        ssize_t count = pread(from, piece, size, (off_t)begin);
        if (count == 0)
            return -EIO; /* the file has become shorter */
        if (count > 0)
            count = write(to, piece, (size_t)count);
        if (count < 0 && errno != EINTR)
            return -errno;
        begin += count > 0 ? count : 0;
    }
    return fsync(to) == 0 ? 0 : -errno;
}

/* Copies a torn tail to a file beside, so that nothing is lost when it is cut off. */
static void keep_torn_tail(const char *path, int fd, const struct replayed *replayed)
{
    int to;
    char *name = create_beside(path, &to);
    int status = copy_range(fd, replayed->good, replayed->used, to);
    close(to);
    if (status < 0) {
        unlink(name);
        kv_exit_with_error(name, status);
    }
    sync_directory(name);
    kv_report("%s: moved the last %lld bytes, which belong to incomplete changes, to %s", path,
              (long long)(replayed->used - replayed->good), name);
    free(name);
}

/*
 * Loads the file, cuts off what is behind its intact frames, and syncs it: what a killed server had
 * written is then on the disk as well. Returns the version of its format.
 */
static unsigned load_journal(struct kv *kv, int fd)
{
    struct journal *journal = &kv->journal;
    struct replayed replayed;
    int status = replay_file(&kv->keys, fd, FILE_JOURNAL, &replayed);
    if (status == -EINVAL) {
        kv_report("%s: not a regular file", journal->path);
        exit(1);
    }
    if (status < 0)
        kv_exit_with_error(journal->path, status);
    if (replayed.state == REPLAY_TORN)
        keep_torn_tail(journal->path, fd, &replayed);
    else if (replayed.state != REPLAY_INTACT)
        reject_file(journal->path, &replayed);
    if ((replayed.good < replayed.size && ftruncate(fd, (off_t)replayed.good) != 0) ||
        fsync(fd) != 0)
        kv_exit_with_error(journal->path, -errno);
    journal->identity = replayed.identity;
    journal->size = journal->base_size = journal->synced_size = journal->allocated_size =
        replayed.good;
    journal->marked_size = replayed.ends_with_mark ? replayed.good : 0;
    return replayed.version;
}

/*
 * Opens the file. A new one begins with the keys of the snapshot, if there is one. One of an older
 * version is rewritten: new records do not belong into it.
 */
static void open_journal(struct kv *kv)
{
    struct journal *journal = &kv->journal;
    async_frame(rewrite_journal) rewriting;
    int status = 0;
    do {
        int fd = open_locked(journal->path);
        if (fd >= 0) {
            bide_descriptor_init(&journal->file, fd);
            if (load_journal(kv, fd) < FORMAT_VERSION)
                status = bide_loop_wait(kv->loop, async_rewrite_journal(&rewriting, kv));
        } else {
            if (kv->options.snapshot != NULL)
                load_snapshot(kv, kv->options.snapshot);
            status = bide_loop_wait(kv->loop, async_rewrite_journal(&rewriting, kv));
        }
    } while (status == -EEXIST); /* another server has just begun it */
    if (status < 0)
        kv_exit_with_error(journal->path, status);
    journal->is_on = true;
}

/* Checks a file and prints what is in it, and changes nothing. Returns the exit status. */
static int check_file(const char *path)
{
    struct replayed replayed;
    char text[160];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int status = fd < 0 ? -errno : replay_file(NULL, fd, 0, &replayed);
    if (status == -EINVAL) {
        kv_report("%s: not a regular file", path);
        return 1;
    }
    if (status < 0)
        kv_exit_with_error(path, status);
    close(fd);
    if (replayed.state == REPLAY_INTACT || replayed.state == REPLAY_TORN ||
        (replayed.state == REPLAY_DAMAGED && replayed.good > 0))
        printf("%s: %s, version %u: %lld bytes are intact, with %llu records in %llu groups\n",
               path, replayed.kind == FILE_SNAPSHOT ? "snapshot" : "append-only file",
               replayed.version, (long long)replayed.good, (unsigned long long)replayed.records,
               (unsigned long long)replayed.groups);
    if (replayed.state == REPLAY_INTACT)
        return 0;
    kv_report("%s: %s", path, replay_explain(&replayed, text, sizeof text));
    return 1;
}

static void kv_init(struct kv *kv)
{
    uint64_t key[2];
    if (getrandom(key, sizeof key, 0) != sizeof key)
        kv_exit_with_error("getrandom", -errno);
    keyspace_init(&kv->keys, key);
    kv->keys.expired = log_expired_key;
    kv->keys.uses.draw = kv_draw;
    kv->keys.uses.draw_of = kv;
    kv->keys.next_expiry_changed = wake_expiry;
    kv->keys.keys_flushed = wake_flush;
    pubsub_init(&kv->pubsub, key);
    watching_init(&kv->watching, key);
    waiting_init(&kv->waiting, key);
    kv->limits.arguments = 1 << 20;
    config_apply(kv);
    bide_single_consumer_auto_event_init(&kv->stop, false);
    bide_single_consumer_auto_event_init(&kv->next_expiry_changed, false);
    bide_single_consumer_auto_event_init(&kv->flushed, false);
    bide_event_init(&kv->pause.ended, true);
    bide_single_consumer_auto_event_init(&kv->pause.changed, false);
    bide_single_consumer_auto_event_init(&kv->save_wanted, false);
    bide_mutex_init(&kv->save_lock);
    kv->saves_on_exit = kv->options.snapshot != NULL;
    kv_update_clock(kv);
    kv->started = kv->last_save = kv->keys.now;
    journal_init(&kv->journal, kv->options.append_only, kv->options.fsync, &kv->client_count);
}

static void load_files(struct kv *kv)
{
    if (kv->options.append_only != NULL)
        open_journal(kv);
    else if (kv->options.snapshot != NULL)
        load_snapshot(kv, kv->options.snapshot);
    kv->changes = 0;
}

/* Limits the files, to those of the options and files beside them, before any other thread exists. */
static void confine_files(struct options *options)
{
    enum { STORES = CONFINE_READ | CONFINE_WRITE };
    if (options->append_only != NULL)
        confine_allow_replaced(&options->confine, options->append_only, STORES);
    if (options->snapshot != NULL)
        confine_allow_replaced(&options->confine, options->snapshot, STORES);
    if (options->unix_socket != NULL)
        confine_allow_replaced(&options->confine, options->unix_socket, CONFINE_SOCKET);
    confine_allow_monitor(&options->confine, options->monitor);
    if (options->has_tls_port && options->has_port)
        confine_allow_port(&options->confine, options->tls_port);
    confine_limit_files(&options->confine, options->has_port       ? options->port
                                           : options->has_tls_port ? options->tls_port
                                                                   : CONFINE_NO_PORT);
}

static void confine_calls(struct kv *kv)
{
    bool is_uring = strcmp(bide_loop_backend(kv->loop).name, "uring") == 0;
    monitoring_start("kv", kv->options.monitor);
    confine_limit_calls(&kv->options.confine,
                        CONFINE_STORES | (is_uring ? CONFINE_URING : 0) |
                            (kv->options.unix_socket != NULL ? CONFINE_REMOVES : 0));
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
    if (kv.options.check != NULL)
        return check_file(kv.options.check);
    confine_enter(&kv.options.confine);
    confine_drop_user(&kv.options.confine);
    raise_limits();
    keep_memory();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* the write reports it */
    int status = bide_loop_create(&kv.loop, NULL);
    if (status < 0)
        kv_exit_with_error("the loop", status);
    if (kv.options.has_tls_port)
        kv.tls = certificates_load(&kv.options);
    listeners_find_path(&kv);
    confine_files(&kv.options);
    kv_init(&kv);
    load_files(&kv);
    if ((status = bide_signal_listen(&terminate, SIGTERM)) < 0 ||
        (status = bide_signal_listen(&interrupt, SIGINT)) < 0)
        kv_exit_with_error("signals", status);
    listeners_start(&kv);
    confine_calls(&kv);
    listeners_print(&kv);
    status = bide_loop_wait(kv.loop, async_run_server(&frame, &kv, &terminate, &interrupt));
    monitoring_stop(kv.options.monitor);
    if (kv.options.unix_socket != NULL)
        bide_listen_path_remove(&kv.unix_path);
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
    bide_assert(kv.combined == 0); /* no client, so no result between slices */
    watching_free(&kv.watching);
    waiting_free(&kv.waiting);
    buffer_free(&kv.journal.filling);
    buffer_free(&kv.journal.writing);
    secure_release(kv.tls);
    free(kv.options.password);
    bide_loop_destroy(kv.loop);
    return status < 0 || kv.journal.error < 0;
}
