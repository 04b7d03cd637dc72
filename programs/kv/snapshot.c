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

enum { SLICE_BYTES = 256 << 10, MAX_TAIL_BYTES = 64 << 10 };

/* Writes the buffer's records to the file at offset `*size`, as a group. */
async int write_records(bide_descriptor *file, struct buffer *buffer, int64_t *size)
{
    struct buffer writing;
    if (buffer_used(buffer) == 0)
        return 0;
    if (!record_group(buffer))
        return -ENOMEM;
    writing = *buffer;
    *buffer = (struct buffer){0};
    defer buffer_free(&writing);
    *size +=
        try await bide_write_at(file, writing.data + writing.begin, buffer_used(&writing), *size);
    return 0;
}

/* Writes the keys as they are now; clients may change them meanwhile. */
async int write_keys(struct kv *kv, bide_descriptor *file, int64_t *size)
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
            try await write_records(file, &records, size);
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

/* Renames a new file once it is on the disk. */
async int rename_synced(bide_descriptor *file, const char *from, const char *to)
{
    try await bide_sync(file, BIDE_SYNC_ALL);
    return await bide_rename(from, to);
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

async int write_snapshot(struct kv *kv)
{
    bide_descriptor file;
    int64_t size = 0;
    char *name = temporary_name(kv->options.snapshot);
    bide_descriptor_init_closed(&file);
    defer free(name);
    defer bide_close(&file);
    if (name == NULL)
        return -ENOMEM;
    try await bide_open(&file, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    uint64_t changes = kv->changes;
    int64_t time = kv->keys.now;
    int status = await write_keys(kv, &file, &size);
    if (status == 0)
        status = await rename_synced(&file, name, kv->options.snapshot);
    if (status == 0)
        status = await sync_directory_of(kv->options.snapshot);
    if (status < 0) {
        await bide_unlink(name, 0);
        return status;
    }
    kv->changes -= changes;
    kv->last_save = time;
    return 0;
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
async int replace_journal(struct journal *journal, bide_descriptor *file, const char *name,
                          int64_t size)
{
    bide_mutex_waiter lock;
    try await bide_mutex_lock(&lock, &journal->file_lock);
    defer bide_mutex_unlock(&lock);
    try await write_records(file, &journal->tail, &size);
    if (journal->tail_error < 0)
        return journal->tail_error;
    try await rename_synced(file, name, journal->path);
    int fd = bide_descriptor_release(file);
    bide_close(&journal->file);
    bide_descriptor_init(&journal->file, fd);
    journal->size = journal->base_size = journal->synced_size = journal->allocated_size = size;
    journal->cannot_preallocate = false;
    journal->is_rewriting = false;
    int status = await sync_directory_of(journal->path);
    if (status < 0) {
        if (status != -ECANCELED)
            journal->error = status;
        bide_single_consumer_auto_event_set(&journal->writer_wakeup);
        return status;
    }
    journal_skip(journal, journal->tail_offset);
    return 0;
}

async int write_journal(struct kv *kv, bide_descriptor *file, const char *name)
{
    struct journal *journal = &kv->journal;
    int64_t size = 0;
    try await bide_open(file, name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (flock(bide_descriptor_fd(file), LOCK_EX | LOCK_NB) != 0)
        return -errno;
    kv_update_clock(kv);
    journal->is_rewriting = true;
    journal->tail_error = 0;
    journal->tail_offset = buffer_used(&journal->filling);
    defer buffer_free(&journal->tail);
    defer journal->is_rewriting = false;
    try await write_keys(kv, file, &size);
    while (buffer_used(&journal->tail) > MAX_TAIL_BYTES)
        try await write_records(file, &journal->tail, &size);
    return await replace_journal(journal, file, name, size);
}

async int rewrite_journal(struct kv *kv)
{
    bide_descriptor file;
    bide_mutex_waiter lock;
    char *name = temporary_name(kv->journal.path);
    bide_descriptor_init_closed(&file);
    defer free(name);
    defer bide_close(&file);
    if (name == NULL)
        return -ENOMEM;
    try await bide_mutex_lock(&lock, &kv->save_lock);
    defer bide_mutex_unlock(&lock);
    int status = await write_journal(kv, &file, name);
    if (status < 0) {
        await bide_unlink(name, 0);
        if (status != -ECANCELED)
            kv_report("%s: %s", name, strerror(-status));
    }
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
