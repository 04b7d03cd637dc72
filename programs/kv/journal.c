#include "tasks.h"

#include <errno.h>

/* For how long a group waits for all clients that have just had replies: part of a sync's time. */
enum { GATHERING = 4 };

/* Zeros are written behind the records, so many at a time, when fewer are left there. */
enum { ROOM = 256 << 10, MIN_ROOM = 64 << 10 };

async int journal_wait(struct journal *journal)
{
    bide_sequence target = journal->taken;
    if (journal->error < 0)
        return journal->error;
    if (buffer_used(&journal->filling) > 0) {
        target++;
        journal->waiting++;
        if (journal->expected != 0 && journal->waiting >= journal->expected)
            bide_single_consumer_auto_event_set(&journal->news);
    }
    return await bide_sequence_barrier_wait_until_published(&journal->written, target);
}

async int journal_next_group(struct journal *journal)
{
    return await bide_sequence_barrier_wait_until_published(&journal->written, journal->taken + 1);
}

/* Waits until so many clients have records in the group, until `time` at most. */
async int gather(struct journal *journal, size_t count, uint64_t time)
{
    int status = 0;
    journal->expected = count < *journal->clients ? count : *journal->clients;
    defer journal->expected = 0;
    while (status == 0 && journal->waiting < journal->expected && !journal->is_ending &&
           journal->error == 0)
        status =
            await bide_with_deadline(time, bide_single_consumer_auto_event_wait(&journal->news));
    return 0;
}

/*
 * The group before was on the disk at `released`, which took so long. Without this the clients would
 * form several parts, of which one waits for a sync while another sends, and each sync would be shared
 * by few of them. So those that have just had their replies are waited for. All of them, if they are
 * back soon. If they are not, half of them: the others send while that half is synced.
 */
async int gather_group(struct journal *journal, uint64_t released, uint64_t took)
{
    size_t all = journal->waiting + journal->in_group;
    await gather(journal, all, released + took / GATHERING);
    await gather(journal, all / 2, released + took);
    return 0;
}

/* What is in `filling` becomes a group, and is taken from there. False: there is no memory. */
static bool take_group(struct journal *journal)
{
    struct buffer group = journal->filling;
    if (journal->is_rewriting) {
        size_t size = buffer_used(&group) - journal->since_from;
        if (buffer_reserve(&journal->since, size))
            buffer_put(&journal->since, group.data + group.begin + journal->since_from, size);
        else
            journal->since_error = -ENOMEM;
        journal->since_from = 0;
    }
    if (!record_group(&journal->filling))
        return false;
    group = journal->filling;
    journal->filling = journal->writing;
    journal->writing = group;
    journal->taken++;
    journal->groups++;
    journal->in_group = journal->waiting;
    journal->waiting = 0;
    return true;
}

void journal_skip(struct journal *journal, size_t size)
{
    journal->filling.begin += size;
    if (size == 0 || buffer_used(&journal->filling) > 0)
        return;
    journal->taken++;
    journal->waiting = 0;
    bide_sequence_barrier_publish(&journal->written, journal->taken);
}

/* Makes room for groups that are as small as the last one. `busy` is held. */
async int make_room(struct journal *journal, size_t last)
{
    static char zeros[ROOM];
    int64_t from = journal->room > journal->size ? journal->room : journal->size;
    if (journal->lacks_room || last > MIN_ROOM || from - journal->size >= MIN_ROOM)
        return 0;
    long count = await bide_write_at(&journal->file, zeros, ROOM, from);
    int status = count < 0 ? (int)count : await bide_sync(&journal->file, BIDE_SYNC_DATA);
    journal->lacks_room = status < 0;
    journal->room = from + (status < 0 ? 0 : count);
    return 0;
}

/* The file ends with its records again. What hinders that does no harm. */
async int give_room_back(struct journal *journal)
{
    if (journal->room > journal->size || journal->lacks_room)
        await bide_truncate(&journal->file, journal->size);
    return 0;
}

async int write_group(struct journal *journal)
{
    bide_mutex_waiter lock;
    int status = await bide_mutex_lock(&lock, &journal->busy);
    if (status < 0)
        return status;
    defer bide_mutex_unlock(&lock);
    if (journal->error < 0) /* a record may be missing among these */
        return journal->error;
    if (!take_group(journal))
        return -ENOMEM;
    struct buffer *group = &journal->writing;
    size_t size = buffer_used(group);
    long count =
        await bide_write_at(&journal->file, group->data + group->begin, size, journal->size);
    if (count < 0)
        return (int)count;
    journal->size += count;
    buffer_clear(group, 4 << 20);
    if (journal->fsync == FSYNC_ALWAYS) {
        status = await bide_sync(&journal->file, BIDE_SYNC_DATA);
        if (status < 0)
            return status;
        journal->syncs++;
    } else {
        bide_single_consumer_auto_event_set(&journal->growth);
    }
    bide_sequence_barrier_publish(&journal->written, journal->taken);
    return journal->fsync == FSYNC_ALWAYS ? await make_room(journal, size) : 0;
}

async int journal_write(struct journal *journal)
{
    uint64_t begun, released = 0, took = 0;
    int status = 0;
    defer bide_sequence_barrier_close(&journal->written);
    while (status == 0 && journal->error == 0) {
        if (buffer_used(&journal->filling) == 0) {
            if (journal->is_ending)
                break;
            status = await bide_single_consumer_auto_event_wait(&journal->news);
            continue;
        }
        if (journal->fsync == FSYNC_ALWAYS)
            await gather_group(journal, released, took);
        begun = bide_now(bide_this_context());
        status = await write_group(journal);
        released = bide_now(bide_this_context());
        took = released - begun;
    }
    if (status == 0 && journal->error == 0)
        await give_room_back(journal);
    if (status == 0 && journal->error == 0 && journal->fsync != FSYNC_NO)
        status = await bide_sync(&journal->file, BIDE_SYNC_ALL);
    if (journal->error == 0)
        journal->error = status;
    return journal->error;
}

async int journal_sync_each_second(struct journal *journal)
{
    for (;;) {
        int status = await bide_single_consumer_auto_event_wait(&journal->growth);
        if (status < 0)
            return status;
        status = await bide_sleep_for(UINT64_C(1000000000));
        if (status < 0)
            return status;
        int64_t size = journal->size;
        if (size == journal->synced_size)
            continue;
        bide_mutex_waiter lock;
        status = await bide_mutex_lock(&lock, &journal->busy);
        if (status < 0)
            return status;
        defer bide_mutex_unlock(&lock);
        size = journal->size;
        status = await bide_sync(&journal->file, BIDE_SYNC_DATA);
        if (status < 0) {
            journal->error = status;
            bide_single_consumer_auto_event_set(&journal->news);
            return status;
        }
        journal->syncs++;
        journal->synced_size = size;
    }
}
