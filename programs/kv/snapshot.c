/* Writes all keys to a file of its own, which gets its name when it is whole and on the disk. */
#include "tasks.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

enum { SLICE = 256 << 10, SMALL = 64 << 10 };

/* Writes what is in the buffer behind `*size` bytes of the file, as a group. */
async int write_out(bide_descriptor *file, struct buffer *buffer, int64_t *size)
{
    struct buffer writing;
    if (buffer_used(buffer) == 0)
        return 0;
    if (!record_group(buffer))
        return -ENOMEM;
    writing = *buffer;
    *buffer = (struct buffer){0};
    defer buffer_free(&writing);
    long count =
        await bide_write_at(file, writing.data + writing.begin, buffer_used(&writing), *size);
    if (count < 0)
        return (int)count;
    *size += count;
    return 0;
}

/* The keys as they are now; others change them meanwhile. */
async int write_keys(struct kv *kv, bide_descriptor *file, int64_t *size)
{
    struct buffer records = {0};
    int done = 0, status = 0;
    keyspace_begin_snapshot(&kv->keys, &records);
    defer buffer_free(&records);
    defer keyspace_end_snapshot(&kv->keys);
    while (status == 0 && (done == 0 || buffer_used(&records) > 0)) {
        if (done == 0)
            done = keyspace_snapshot_slice(&kv->keys, SLICE);
        if (done < 0)
            status = done;
        else if (buffer_used(&records) >= SLICE || done > 0)
            status = await write_out(file, &records, size);
        else
            status = await bide_sleep_for(TASKS_PAUSE);
    }
    return status;
}

async int sync_folder_of(const char *path)
{
    bide_descriptor folder;
    char *copy = strdup(path);
    bide_descriptor_init_closed(&folder);
    defer free(copy);
    defer bide_close(&folder);
    if (copy == NULL)
        return -ENOMEM;
    int status = await bide_open(&folder, dirname(copy), O_RDONLY | O_DIRECTORY, 0);
    return status < 0 ? status : await bide_sync(&folder, BIDE_SYNC_ALL);
}

/* A new file has been written: it gets the name, when it is on the disk. */
async int rename_synced(bide_descriptor *file, const char *from, const char *to)
{
    int status = await bide_sync(file, BIDE_SYNC_ALL);
    return status < 0 ? status : await bide_rename(from, to);
}

/* The name of the file that is being written. NULL: there is no memory. */
static char *new_name(const char *path)
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
    char *name = new_name(kv->options.snapshot);
    bide_descriptor_init_closed(&file);
    defer free(name);
    defer bide_close(&file);
    if (name == NULL)
        return -ENOMEM;
    int status = await bide_open(&file, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (status < 0)
        return status;
    uint64_t changes = kv->changes;
    int64_t time = kv->keys.now;
    status = await write_keys(kv, &file, &size);
    if (status == 0)
        status = await rename_synced(&file, name, kv->options.snapshot);
    if (status == 0)
        status = await sync_folder_of(kv->options.snapshot);
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
    int status = await bide_mutex_lock(&lock, &kv->save);
    if (status < 0)
        return status;
    defer bide_mutex_unlock(&lock);
    kv->is_saving = true;
    defer kv->is_saving = false;
    kv_look_at_clock(kv);
    kv->save_status = await write_snapshot(kv);
    if (kv->save_status < 0 && kv->save_status != -ECANCELED)
        kv_tell("%s: %s", kv->options.snapshot, strerror(-kv->save_status));
    return kv->save_status;
}

/* ---- The append-only file, anew ---- */

/*
 * The new file takes the old one's place. Nobody writes meanwhile. Once it has the name, what comes
 * goes there, and the name has to be on the disk before anything is acknowledged.
 */
async int replace(struct journal *journal, bide_descriptor *file, const char *name, int64_t size)
{
    bide_mutex_waiter lock;
    int status = await bide_mutex_lock(&lock, &journal->busy);
    if (status < 0)
        return status;
    defer bide_mutex_unlock(&lock);
    status = await write_out(file, &journal->since, &size);
    if (status == 0)
        status = journal->since_error;
    if (status == 0)
        status = await rename_synced(file, name, journal->path);
    if (status < 0)
        return status;
    int fd = bide_descriptor_release(file);
    bide_close(&journal->file);
    bide_descriptor_init(&journal->file, fd);
    journal->size = journal->base_size = journal->synced_size = journal->room = size;
    journal->lacks_room = false;
    journal->is_rewriting = false;
    status = await sync_folder_of(journal->path);
    if (status < 0) {
        if (status != -ECANCELED)
            journal->error = status;
        bide_single_consumer_auto_event_set(&journal->news);
        return status;
    }
    journal_skip(journal, journal->since_from);
    return 0;
}

async int write_journal(struct kv *kv, bide_descriptor *file, const char *name)
{
    struct journal *journal = &kv->journal;
    int64_t size = 0;
    int status = await bide_open(file, name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (status < 0)
        return status;
    if (flock(file->fd, LOCK_EX | LOCK_NB) != 0)
        return -errno;
    kv_look_at_clock(kv);
    journal->is_rewriting = true;
    journal->since_error = 0;
    journal->since_from = buffer_used(&journal->filling);
    defer buffer_free(&journal->since);
    defer journal->is_rewriting = false;
    status = await write_keys(kv, file, &size);
    while (status == 0 && buffer_used(&journal->since) > SMALL)
        status = await write_out(file, &journal->since, &size);
    return status < 0 ? status : await replace(journal, file, name, size);
}

async int rewrite_journal(struct kv *kv)
{
    bide_descriptor file;
    bide_mutex_waiter lock;
    char *name = new_name(kv->journal.path);
    bide_descriptor_init_closed(&file);
    defer free(name);
    defer bide_close(&file);
    if (name == NULL)
        return -ENOMEM;
    int status = await bide_mutex_lock(&lock, &kv->save);
    if (status < 0)
        return status;
    defer bide_mutex_unlock(&lock);
    status = await write_journal(kv, &file, name);
    if (status < 0) {
        await bide_unlink(name, 0);
        if (status != -ECANCELED)
            kv_tell("%s: %s", name, strerror(-status));
    }
    return status;
}

/* ---- When ---- */

/* The file has doubled, and is not small. */
static bool is_rewriting_due(const struct journal *journal)
{
    return journal->is_on && journal->size > 64 << 20 && journal->size > 2 * journal->base_size;
}

async int keep_saving(struct kv *kv)
{
    const uint64_t second = UINT64_C(1000000000);
    uint64_t next_save = bide_now(bide_this_context());
    for (;;) {
        int status;
        if (kv->options.save_each != 0 || kv->journal.is_on)
            status =
                await bide_with_deadline(bide_now(bide_this_context()) + second,
                                         bide_single_consumer_auto_event_wait(&kv->save_wanted));
        else
            status = await bide_single_consumer_auto_event_wait(&kv->save_wanted);
        if (status < 0 && status != -ETIMEDOUT)
            return status;
        bool is_due = kv->options.save_each != 0 && kv->options.snapshot != NULL &&
                      kv->changes > 0 && bide_now(bide_this_context()) >= next_save;
        if (kv->wants_snapshot || is_due) {
            kv->wants_snapshot = false;
            await save_snapshot(kv);
            next_save = bide_now(bide_this_context()) + kv->options.save_each * second;
        }
        if (kv->wants_rewrite || is_rewriting_due(&kv->journal)) {
            kv->wants_rewrite = false;
            await rewrite_journal(kv);
        }
    }
}
