/*
 * The append-only file. Each change is appended to `filling` as a record; one coroutine, the
 * writer, writes the records.
 *
 *     filling   records of new changes     --the writer is idle-->     one group, written at once
 *
 * A reply waits until all earlier changes are in the file and, with FSYNC_ALWAYS, on the disk. So a
 * server that is killed loses nothing that it has acknowledged. Changes that are made while a group
 * is written and synced form the next group, so they share one fdatasync. The loop serves clients
 * meanwhile.
 *
 * With FSYNC_ALWAYS, the file is preallocated: zeros behind its records are already on the disk.
 * Syncing a write there needs neither a new size nor new blocks on the disk. If preallocation fails
 * for any reason, everything works as before, but slower.
 *
 * If there is no room for a group, the journal is full, and `refusal` has the error. The clients of
 * the group get it in place of their replies, and so does each later command that changes keys. Others
 * are served. The group stays in `writing`, and the writer tries it again until it succeeds. Then there
 * is room, and changes are accepted again. So the file may later have a change that was refused, but it
 * has each change that was acknowledged.
 *
 * If the file cannot be written for another reason, the server reports the error and exits.
 *
 * The argument, all on the loop's thread:
 *  1. `file_lock` is held by the only coroutine that writes or replaces the file. Its holder owns
 *     `writing`, `size` and `allocated_size`.
 *  2. `last_group` counts groups that have been started, in 64 bits, so it never comes round.
 *     `written` is published in that order, after the group is in the file (and, with FSYNC_ALWAYS, on
 *     the disk). It has the lower bits of the number, which suffice: a client waits for the next group
 *     at most.
 *  3. A change is in `filling`, in the group being written, or in the file. So a client waits for
 *     group last_group + 1 if `filling` is not empty, and for last_group otherwise.
 *  4. When a group fails, `last_refused` is set first. Then the group and the next one, which
 *     `filling` would have been, are published, which wakes all waiters. They compare the group that
 *     they waited for with `last_refused`, never with `is_full`: the writer may have succeeded before
 *     they are resumed, and then the failed group is in the file, but what was in `filling` is not.
 */
#ifndef KV_JOURNAL_H
#define KV_JOURNAL_H

#include "bytes.h"
#include "format.h"

#include <bide/bide.h>

#include <errno.h>

enum fsync { FSYNC_ALWAYS, FSYNC_EACH_SECOND, FSYNC_NO };

struct journal {
    bool is_on;
    enum fsync fsync;
    const char *path;
    bide_descriptor file;
    int64_t size;            /* of the frames */
    int64_t allocated_size;  /* with the zeros behind the frames; may be less than `size` */
    bool cannot_preallocate; /* preallocation failed, and is not retried */
    int64_t base_size;       /* when the file was last rewritten or read */
    int64_t synced_size;     /* everything before it is on the disk */
    int64_t marked_size;     /* if it is `size`, only a mark follows what is on the disk */
    uint64_t groups, syncs;

    struct file_identity identity;

    struct buffer filling, writing;
    bide_mutex sync_lock; /* held by journal_sync_each_second, and while the file is replaced; it is
                             locked before file_lock */
    bide_mutex file_lock; /* held while a group is written or the file is replaced */
    uint64_t last_group;  /* the last group whose write was started */
    bide_sequence_barrier written;                 /* or synced, with FSYNC_ALWAYS */
    bide_single_consumer_auto_event writer_wakeup; /* wakes the writer */
    bide_single_consumer_auto_event grown;         /* wakes journal_sync_each_second */
    bool is_stopping;
    int error;             /* the server stops */
    bool is_full;          /* there was no room for the group in `writing` */
    int refusal;           /* the error of the last group for which there was no room */
    uint64_t last_refused; /* its clients, and earlier ones that still wait, get `refusal` */
    bide_event has_room;   /* set unless it is full */

    /* gathering */
    const size_t *clients;   /* the number of clients */
    size_t waiting_clients;  /* clients with records in `filling` */
    size_t group_clients;    /* clients with records in the group being written */
    size_t expected_clients; /* clients that the writer waits for; 0: it does not gather */

    /* rewriting */
    bool is_rewriting;
    size_t tail_offset; /* the part of `filling` that the new file already has */
    struct buffer tail; /* records of groups that the new file lacks */
    int tail_error;
};

/*
 * Initializes a journal that is all zeros, of a file that is to be opened. `path` and `clients`, the
 * number of clients, stay while it is used.
 */
void journal_init(struct journal *journal, const char *path, enum fsync fsync,
                  const size_t *clients);

/* Wakes the writer if it has work. May be called whether or not records were appended. */
static inline void journal_wake_writer(struct journal *journal)
{
    if ((buffer_used(&journal->filling) > 0 && journal->expected_clients == 0 &&
         !journal->is_full) ||
        journal->error < 0)
        bide_single_consumer_auto_event_set(&journal->writer_wakeup);
}

/* Checks the result of a record's function. A change without a record stops the server. */
static inline void journal_check_append(struct journal *journal, bool was_appended)
{
    if (!was_appended)
        journal->error = -ENOMEM;
}

/*
 * True if replies have to wait for the journal, or to become errors. `has_changes`: some of them
 * report changes. The others only wait with FSYNC_ALWAYS: they may report what another has changed.
 */
static inline bool journal_holds_replies(struct journal *journal, bool has_changes)
{
    if (!journal->is_on || (!has_changes && journal->fsync != FSYNC_ALWAYS))
        return false;
    bide_sequence published = bide_sequence_barrier_last_published(&journal->written);
    return buffer_used(&journal->filling) > 0 || journal->is_full || journal->error < 0 ||
           bide_sequence_precedes(published, (bide_sequence)journal->last_group);
}

/* Bytes of records: no more keys expire, or are evicted, while more wait to be written. */
enum { JOURNAL_MAX_PENDING = 1 << 20 };

/* True if it is so. Then journal_next_group may be called. */
static inline bool journal_is_behind(const struct journal *journal)
{
    return buffer_used(&journal->filling) > JOURNAL_MAX_PENDING && !journal->is_full;
}

/* True for errors of a write that pass when there is room again. */
static inline bool journal_is_full_error(int status)
{
    return status == -ENOSPC || status == -EDQUOT || status == -EFBIG;
}

#endif
