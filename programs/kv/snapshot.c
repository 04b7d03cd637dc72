/*
 * Snapshots and rewrites of the append-only file. Both write all keys to a new file, which is
 * renamed once it is complete and on the disk. All of it runs on the loop's thread; kv->save_lock
 * admits one at a time.
 */
#include "tasks.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLICE_BYTES = 256 << 10, MAX_TAIL_BYTES = 64 << 10 };

/* A new file. */
struct output {
    bide_descriptor file;
    const char *name;
    bool exists; /* under that name, and is this server's */
    struct file_identity identity;
    int64_t size;
};

/* ---- Creating a file ---- */

static bool has_name(const bide_descriptor *file, const char *name)
{
    struct stat named, opened;
    return lstat(name, &named) == 0 && fstat(bide_descriptor_fd(file), &opened) == 0 &&
           named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/*
 * Locks a file for this process. A server that was just killed may still have a write in progress,
 * whose file stays locked a moment longer; so the lock is retried.
 */
async int lock_output(bide_descriptor *file)
{
    enum { TRIES = 200, PAUSE = 10000000 };
    for (int tries = 0; flock(bide_descriptor_fd(file), LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (tries == TRIES)
            return -EBUSY;
        try await bide_sleep_for(PAUSE);
    }
    return 0;
}

/*
 * Removes what a killed server has left under that name, or a symbolic link. A file that another
 * server is writing is locked, and is -EBUSY.
 */
async int remove_leftover(const char *name)
{
    for (;;) {
        bide_descriptor file;
        bide_descriptor_init_closed(&file);
        defer bide_close(&file);
        int status = await bide_open(&file, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        if (status == -ENOENT)
            return 0;
        if (status < 0 && status != -ELOOP)
            return status;
        if (status == 0) {
            try await lock_output(&file);
            if (!has_name(&file, name)) /* another server has renamed or removed it meanwhile */
                continue;
        }
        status = await bide_unlink(name, 0);
        if (status < 0 && status != -ENOENT)
            return status;
    }
}

/*
 * Creates the file and locks it. Links are not followed, and the file is only for its owner: it
 * gets the data.
 */
async int create_output(struct output *output, enum file_kind kind)
{
    char header[FORMAT_HEADER];
    try await remove_leftover(output->name);
    try await bide_open(&output->file, output->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    output->exists = true;
    try await lock_output(&output->file);
    int status = format_make_header(header, kind, &output->identity);
    if (status < 0)
        return status;
    output->size = try await bide_write_at(&output->file, header, sizeof header, 0);
    return 0;
}

static void output_init(struct output *output, const char *name)
{
    *output = (struct output){.name = name};
    bide_descriptor_init_closed(&output->file);
}

/* ---- Writing a file ---- */

/* Writes the buffer's records to the file, as a group. */
async int write_records(struct output *output, struct buffer *buffer)
{
    struct buffer writing;
    if (buffer_used(buffer) == 0)
        return 0;
    if (!format_seal_group(buffer, &output->identity, output->size, 0))
        return -ENOMEM;
    writing = *buffer;
    *buffer = (struct buffer){0};
    defer buffer_free(&writing);
    output->size += try await bide_write_at(&output->file, writing.data + writing.begin,
                                            buffer_used(&writing), output->size);
    return 0;
}

/* Writes the keys as they are now; clients may change them meanwhile. */
async int write_keys(struct kv *kv, struct output *output)
{
    struct buffer records = {0};
    int done = 0;
    keyspace_start_snapshot(&kv->keys, &records);
    defer buffer_free(&records);
    defer keyspace_stop_snapshot(&kv->keys);
    while (done == 0 || buffer_used(&records) > 0) {
        if (done == 0)
            done = keyspace_snapshot_slice(&kv->keys, SLICE_BYTES);
        if (done < 0)
            return done;
        if (buffer_used(&records) >= SLICE_BYTES || done > 0)
            try await write_records(output, &records);
        else
            try await bide_sleep_for(TASKS_PAUSE);
    }
    return 0;
}

async int sync_directory_of(const char *path)
{
    bide_descriptor directory;
    char *copy = strdup(path);
    bide_descriptor_init_closed(&directory);
    defer free(copy);
    defer bide_close(&directory);
    if (copy == NULL)
        return -ENOMEM;
    try await bide_open(&directory, dirname(copy), O_RDONLY | O_DIRECTORY, 0);
    return await bide_sync(&directory, BIDE_SYNC_ALL);
}

/*
 * Marks the end of a new file, and gives it its name once it is on the disk. The mark claims that
 * everything before it is there, which is true of a file with that name.
 */
async int rename_synced(struct output *output, const char *to)
{
    char mark[FORMAT_HEAD];
    format_make_mark(mark, &output->identity, output->size, output->size);
    output->size += try await bide_write_at(&output->file, mark, sizeof mark, output->size);
    try await bide_sync(&output->file, BIDE_SYNC_ALL);
    try await bide_rename(output->name, to);
    output->exists = false;
    return 0;
}

/* The name of the new file. Returns NULL if memory is exhausted. */
static char *temporary_name(const char *path)
{
    size_t size = strlen(path) + sizeof ".new";
    char *name = malloc(size);
    if (name != NULL)
        snprintf(name, size, "%s.new", path);
    return name;
}

/* ---- The snapshot ---- */

/* Writes the keys to the file, gives it its name, and counts their changes as saved. */
async int complete_snapshot(struct kv *kv, struct output *output)
{
    try await create_output(output, FILE_SNAPSHOT);
    uint64_t changes = kv->changes;
    int64_t time = kv->keys.now;
    try await write_keys(kv, output);
    try await rename_synced(output, kv->options.snapshot);
    try await sync_directory_of(kv->options.snapshot);
    kv->changes -= changes;
    kv->last_save = time;
    return 0;
}

async int write_snapshot(struct kv *kv)
{
    struct output output;
    char *name = temporary_name(kv->options.snapshot);
    output_init(&output, name);
    defer free(name);
    defer bide_close(&output.file);
    if (name == NULL)
        return -ENOMEM;
    int status = await complete_snapshot(kv, &output);
    if (output.exists)
        await bide_unlink(name, 0);
    return status;
}

async int save_snapshot(struct kv *kv)
{
    bide_mutex_waiter lock;
    try await bide_mutex_lock(&lock, &kv->save_lock);
    defer bide_mutex_unlock(&lock);
    kv->is_saving = true;
    defer kv->is_saving = false;
    kv_update_clock(kv);
    kv->save_status = await write_snapshot(kv);
    if (kv->save_status < 0 && kv->save_status != -ECANCELED)
        kv_report("%s: %s", kv->options.snapshot, strerror(-kv->save_status));
    return kv->save_status;
}

/* ---- Rewriting the append-only file ---- */

/*
 * Replaces the append-only file by the new one. `file_lock` keeps the writer out meanwhile. After
 * the rename, records go to the new file, so its name must be on the disk before any of them is
 * acknowledged.
 */
async int replace_journal(struct journal *journal, struct output *output)
{
    bide_mutex_waiter sync_lock, lock;
    try await bide_sync(&output->file, BIDE_SYNC_ALL); /* most of it while groups are written */
    try await bide_mutex_lock(&sync_lock, &journal->sync_lock);
    defer bide_mutex_unlock(&sync_lock);
    try await bide_mutex_lock(&lock, &journal->file_lock);
    defer bide_mutex_unlock(&lock);
    try await write_records(output, &journal->tail);
    if (journal->tail_error < 0)
        return journal->tail_error;
    try await rename_synced(output, journal->path);
    int fd = bide_descriptor_release(&output->file);
    bide_close(&journal->file);
    bide_descriptor_init(&journal->file, fd);
    journal->identity = output->identity;
    journal->size = journal->base_size = journal->synced_size = journal->allocated_size =
        journal->marked_size = output->size;
    journal->cannot_preallocate = false;
    journal->is_rewriting = false;
    int status = await sync_directory_of(journal->path);
    if (status < 0) {
        if (status != -ECANCELED)
            journal->error = status;
        bide_single_consumer_auto_event_set(&journal->writer_wakeup);
        return status;
    }
    /* The new file also has a group that had no room in the old one: its changes were made before. */
    buffer_clear(&journal->writing, 0);
    journal_accept_changes(journal);
    journal_skip(journal, journal->tail_offset);
    return 0;
}

async int write_journal(struct kv *kv, struct output *output)
{
    struct journal *journal = &kv->journal;
    try await create_output(output, FILE_JOURNAL);
    /* (each server that begins this file holds the lock of the new one from here on) */
    if (!bide_descriptor_is_open(&journal->file) && access(journal->path, F_OK) == 0)
        return -EEXIST;
    kv_update_clock(kv);
    journal->is_rewriting = true;
    journal->tail_error = 0;
    journal->tail_offset = buffer_used(&journal->filling);
    defer buffer_free(&journal->tail);
    defer journal->is_rewriting = false;
    try await write_keys(kv, output);
    while (buffer_used(&journal->tail) > MAX_TAIL_BYTES)
        try await write_records(output, &journal->tail);
    return await replace_journal(journal, output);
}

async int rewrite_journal(struct kv *kv)
{
    struct output output;
    bide_mutex_waiter lock;
    char *name = temporary_name(kv->journal.path);
    output_init(&output, name);
    defer free(name);
    defer bide_close(&output.file);
    if (name == NULL)
        return -ENOMEM;
    try await bide_mutex_lock(&lock, &kv->save_lock);
    defer bide_mutex_unlock(&lock);
    int status = await write_journal(kv, &output);
    if (output.exists)
        await bide_unlink(name, 0);
    if (status < 0 && status != -ECANCELED && status != -EEXIST)
        kv_report("%s: %s", name, strerror(-status));
    return status;
}

/* ---- The schedule ---- */

/* The file has doubled and is not small. */
static bool is_rewriting_due(const struct journal *journal)
{
    return journal->is_on && journal->size > 64 << 20 && journal->size > 2 * journal->base_size;
}

async int run_saves(struct kv *kv)
{
    const uint64_t second = UINT64_C(1000000000);
    uint64_t next_save = bide_now(bide_this_context());
    for (;;) {
        int status;
        if (kv->options.save_every != 0 || kv->journal.is_on)
            status = await bide_with_timeout(
                second, bide_single_consumer_auto_event_wait(&kv->save_wanted));
        else
            status = await bide_single_consumer_auto_event_wait(&kv->save_wanted);
        if (status < 0 && status != -ETIMEDOUT)
            return status;
        bool is_due = kv->options.save_every != 0 && kv->options.snapshot != NULL &&
                      kv->changes > 0 && bide_now(bide_this_context()) >= next_save;
        if (kv->wants_snapshot || is_due) {
            kv->wants_snapshot = false;
            await save_snapshot(kv);
            next_save = bide_now(bide_this_context()) + kv->options.save_every * second;
        }
        if (kv->wants_rewrite || is_rewriting_due(&kv->journal)) {
            kv->wants_rewrite = false;
            await rewrite_journal(kv);
        }
    }
}
