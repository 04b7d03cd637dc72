#include "tasks.h"

#include <errno.h>

/* For how long a group waits for clients that have just had replies: part of a sync's time. */
enum { GATHERING = 4 };

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

/*
 * Otherwise the clients would form two halves, one that sends while the other waits for a sync, and
 * each sync would be shared by half of them. So those that have just had their replies are waited
 * for, until `time` at most.
 */
async int gather(struct journal *journal, uint64_t time)
{
    journal->expected = journal->waiting + journal->in_group;
    defer journal->expected = 0;
    if (journal->waiting < journal->expected && !journal->is_ending)
        await bide_with_deadline(time, bide_single_consumer_auto_event_wait(&journal->news));
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
    long count = await bide_write_at(&journal->file, group->data + group->begin, buffer_used(group),
                                     journal->size);
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
    return 0;
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
            await gather(journal, released + took / GATHERING);
        begun = bide_now(bide_this_context());
        status = await write_group(journal);
        released = bide_now(bide_this_context());
        took = released - begun;
    }
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
