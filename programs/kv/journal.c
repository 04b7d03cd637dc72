/*
 * The writer of the append-only file: group commit, gathering, preallocation and syncs. journal.h
 * has the model and the argument. All of it runs on the loop's thread.
 */
#include "tasks.h"

/* A group waits this fraction of a sync's time for all clients that have just received replies. */
enum { GATHER_DIVISOR = 4 };

/*
 * Bytes of zeros that are written behind the records at a time, when fewer than MIN_PREALLOCATED
 * are left.
 */
enum { PREALLOCATION = 256 << 10, MIN_PREALLOCATED = 64 << 10 };

void journal_init(struct journal *journal, const char *path, enum fsync fsync,
                  const size_t *clients)
{
    journal->path = path;
    journal->fsync = fsync;
    journal->clients = clients;
    bide_descriptor_init_closed(&journal->file);
    bide_sequence_barrier_init(&journal->written, (bide_sequence)journal->last_group);
    bide_event_init(&journal->has_room, true);
    bide_single_consumer_auto_event_init(&journal->writer_wakeup, false);
    bide_single_consumer_auto_event_init(&journal->grown, false);
    bide_mutex_init(&journal->sync_lock);
    bide_mutex_init(&journal->file_lock);
}

async int journal_wait(struct journal *journal)
{
    uint64_t target = journal->last_group;
    if (journal->error < 0 || journal->is_full)
        return journal->error < 0 ? journal->error : journal->refusal;
    if (buffer_used(&journal->filling) > 0) {
        target++;
        journal->waiting_clients++;
        if (journal->expected_clients != 0 && journal->waiting_clients >= journal->expected_clients)
            bide_single_consumer_auto_event_set(&journal->writer_wakeup);
    }
    if (!bide_sequence_precedes(bide_sequence_barrier_last_published(&journal->written),
                                (bide_sequence)target))
        return 0;
    try await bide_sequence_barrier_wait_until_published(&journal->written, (bide_sequence)target);
    return target > journal->last_refused ? 0 : journal->refusal;
}

async int journal_next_group(struct journal *journal)
{
    return await bide_sequence_barrier_wait_until_published(
        &journal->written, (bide_sequence)(journal->last_group + 1));
}

/* Waits until `count` clients have records in the group, but no longer than `time`. */
async int wait_for_clients(struct journal *journal, size_t count, uint64_t time)
{
    int status = 0;
    journal->expected_clients = count < *journal->clients ? count : *journal->clients;
    defer journal->expected_clients = 0;
    while (status == 0 && journal->waiting_clients < journal->expected_clients &&
           !journal->is_stopping && journal->error == 0)
        status = await bide_with_deadline(
            time, bide_single_consumer_auto_event_wait(&journal->writer_wakeup));
    return 0;
}

/*
 * Gathers the next group. The previous one was on the disk at `released`, and took `took`
 * nanoseconds. Without gathering, the clients would split into several parts: one waits for a sync
 * while another sends, and each sync is shared by few clients. So the writer waits for the clients
 * that have just received replies. It waits for all of them first, for a fraction of a sync's time.
 * Then it waits for half of them: the other half sends during that half's sync.
 */
async int gather_group(struct journal *journal, uint64_t released, uint64_t took)
{
    size_t all = journal->waiting_clients + journal->group_clients;
    await wait_for_clients(journal, all, released + took / GATHER_DIVISOR);
    await wait_for_clients(journal, all / 2, released + took);
    return 0;
}

static void publish_last_group(struct journal *journal)
{
    bide_sequence_barrier_publish(&journal->written, (bide_sequence)journal->last_group);
}

/*
 * Makes `filling` the group that is written. Returns false if memory is exhausted. The caller holds
 * `file_lock`.
 */
static bool start_group(struct journal *journal)
{
    struct buffer group = journal->filling;
    bide_assert(buffer_used(&journal->writing) == 0);
    if (journal->is_rewriting) {
        bide_assert(journal->tail_offset <= buffer_used(&group));
        size_t size = buffer_used(&group) - journal->tail_offset;
        if (buffer_reserve(&journal->tail, size))
            buffer_append(&journal->tail, group.data + group.begin + journal->tail_offset, size);
        else
            journal->tail_error = -ENOMEM;
        journal->tail_offset = 0;
    }
    if (!format_seal_group(&journal->filling, &journal->identity, journal->size,
                           journal->synced_size))
        return false;
    group = journal->filling;
    journal->filling = journal->writing;
    journal->writing = group;
    journal->last_group++;
    journal->groups++;
    journal->group_clients = journal->waiting_clients;
    journal->waiting_clients = 0;
    return true;
}

void journal_skip(struct journal *journal, size_t size)
{
    bide_assert(size <= buffer_used(&journal->filling));
    journal->filling.begin += size;
    if (size == 0 || buffer_used(&journal->filling) > 0)
        return;
    journal->last_group++;
    journal->waiting_clients = 0;
    publish_last_group(journal);
}

/* Preallocates for groups as small as the last one. The caller holds `file_lock`. */
async int journal_preallocate(struct journal *journal, size_t last)
{
    static char zeros[PREALLOCATION];
    int64_t from =
        journal->allocated_size > journal->size ? journal->allocated_size : journal->size;
    if (journal->cannot_preallocate || last > MIN_PREALLOCATED ||
        from - journal->size >= MIN_PREALLOCATED)
        return 0;
    long count = await bide_write_at(&journal->file, zeros, PREALLOCATION, from);
    int status = count < 0 ? (int)count : await bide_sync(&journal->file, BIDE_SYNC_DATA);
    journal->cannot_preallocate = status < 0;
    journal->allocated_size = from + (status < 0 ? 0 : count);
    return 0;
}

/*
 * Writes a mark, which says that everything before `synced` is on the disk: so damage there is never
 * taken for a torn tail. The caller holds `file_lock`. A failure does no harm.
 */
async int mark_synced(struct journal *journal, int64_t synced)
{
    char mark[FORMAT_HEAD];
    format_make_mark(mark, &journal->identity, journal->size, synced);
    long count = try await bide_write_at(&journal->file, mark, sizeof mark, journal->size);
    if (synced == journal->size)
        journal->marked_size = synced + count;
    journal->size += count;
    return 0;
}

/*
 * Truncates the file to its frames, where a failure does no harm, syncs and marks it. A rewrite may
 * still be running, so `file_lock` keeps it from closing the file meanwhile.
 */
async int finish_file(struct journal *journal)
{
    bide_mutex_waiter sync_lock, lock;
    try await bide_mutex_lock(&sync_lock, &journal->sync_lock);
    defer bide_mutex_unlock(&sync_lock);
    try await bide_mutex_lock(&lock, &journal->file_lock);
    defer bide_mutex_unlock(&lock);
    if (journal->allocated_size > journal->size || journal->cannot_preallocate)
        await bide_truncate(&journal->file, journal->size);
    if (journal->fsync == FSYNC_NO)
        return 0;
    try await bide_sync(&journal->file, BIDE_SYNC_ALL);
    if (journal->size == journal->marked_size || await mark_synced(journal, journal->size) < 0)
        return 0;
    return await bide_sync(&journal->file, BIDE_SYNC_ALL);
}

/* Refuses changes from now on, since there is no room for the group. The caller holds `file_lock`. */
async int refuse_changes(struct journal *journal, int error)
{
    format_unseal_group(&journal->writing);
    /* (what was written of the group may take the room that others need) */
    if (await bide_truncate(&journal->file, journal->size) == 0)
        journal->allocated_size = journal->size;
    if (!journal->is_full) {
        kv_report("%s: %s; changes are refused", journal->path, strerror(-error));
        journal->is_full = true;
        journal->refusal = error;
        bide_event_reset(&journal->has_room);
        journal->last_refused = ++journal->last_group;
        journal->waiting_clients = 0;
        publish_last_group(journal);
    }
    return error;
}

/* Accepts changes again. */
void journal_accept_changes(struct journal *journal)
{
    if (!journal->is_full)
        return;
    kv_report("%s: changes are accepted again", journal->path);
    journal->is_full = false;
    bide_event_set(&journal->has_room);
}

/*
 * Writes the next group, or the one that had no room. If there is no room, the status is that error,
 * and the group stays in `writing`.
 */
async int write_group(struct journal *journal)
{
    bide_mutex_waiter lock;
    try await bide_mutex_lock(&lock, &journal->file_lock);
    defer bide_mutex_unlock(&lock);
    struct buffer *group = &journal->writing;
    if (journal->error < 0) /* one of these records may be incomplete */
        return journal->error;
    bool had_no_room = buffer_used(group) > 0;
    if (!had_no_room && buffer_used(&journal->filling) == 0)
        return 0; /* a rewrite has written it meanwhile */
    if (had_no_room
            ? !format_seal_group(group, &journal->identity, journal->size, journal->synced_size)
            : !start_group(journal))
        return -ENOMEM;
    size_t size = buffer_used(group);
    long count =
        await bide_write_at(&journal->file, group->data + group->begin, size, journal->size);
    if (journal_is_full_error((int)count))
        return await refuse_changes(journal, (int)count);
    if (count < 0)
        return (int)count;
    bide_assert((size_t)count == size); /* bide_write_at writes everything or fails */
    journal->size += count;
    buffer_clear(group, 4 << 20);
    if (journal->fsync == FSYNC_ALWAYS) {
        try await bide_sync(&journal->file, BIDE_SYNC_DATA);
        journal->syncs++;
        journal->synced_size = journal->size;
    } else {
        bide_single_consumer_auto_event_set(&journal->grown);
    }
    journal_accept_changes(journal);
    publish_last_group(journal);
    return journal->fsync == FSYNC_ALWAYS ? await journal_preallocate(journal, size) : 0;
}

/* Waits a moment, or until the server stops. */
async int wait_for_room(struct journal *journal)
{
    const uint64_t pause = 100000000;
    int status = journal->is_stopping
                     ? journal->refusal
                     : await bide_with_timeout(
                           pause, bide_single_consumer_auto_event_wait(&journal->writer_wakeup));
    return status == -ETIMEDOUT ? 0 : status;
}

async int journal_write(struct journal *journal)
{
    uint64_t begun, released = 0, took = 0;
    int status = 0;
    defer bide_sequence_barrier_close(&journal->written);
    while (status == 0 && journal->error == 0) {
        if (journal->is_full) {
            status = await write_group(journal);
            if (journal_is_full_error(status))
                status = await wait_for_room(journal);
            continue;
        }
        if (buffer_used(&journal->filling) == 0) {
            if (journal->is_stopping)
                break;
            status = await bide_single_consumer_auto_event_wait(&journal->writer_wakeup);
            continue;
        }
        if (journal->fsync == FSYNC_ALWAYS)
            await gather_group(journal, released, took);
        begun = bide_now(bide_this_context());
        status = await write_group(journal);
        if (journal_is_full_error(status))
            status = await wait_for_room(journal);
        released = bide_now(bide_this_context());
        took = released - begun;
    }
    if (status == 0 && journal->error == 0)
        status = await finish_file(journal);
    if (journal->error == 0)
        journal->error = status;
    return journal->error;
}

/* Syncs and marks the file if it has grown. Groups are written meanwhile. */
async int sync_file(struct journal *journal)
{
    bide_mutex_waiter sync_lock, lock;
    try await bide_mutex_lock(&sync_lock, &journal->sync_lock);
    defer bide_mutex_unlock(&sync_lock);
    int64_t size = journal->size;
    if (size == journal->synced_size || size == journal->marked_size)
        return 0;
    try await bide_sync(&journal->file, BIDE_SYNC_DATA);
    journal->syncs++;
    journal->synced_size = size;
    try await bide_mutex_lock(&lock, &journal->file_lock);
    defer bide_mutex_unlock(&lock);
    if (!journal->is_full)
        await mark_synced(journal, size);
    return 0;
}

async int journal_sync_each_second(struct journal *journal)
{
    for (;;) {
        try await bide_single_consumer_auto_event_wait(&journal->grown);
        try await bide_sleep_for(UINT64_C(1000000000));
        int status = await sync_file(journal);
        if (status == -ECANCELED) /* the server stops: the writer has synced all at its end */
            return status;
        if (status < 0) {
            journal->error = status;
            bide_single_consumer_auto_event_set(&journal->writer_wakeup);
            return status;
        }
    }
}
