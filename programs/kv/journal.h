/*
 * The append-only file. Each change is appended to `filling` as a record; one coroutine, the
 * writer, writes the records.
 *
 *     filling   records of new changes     --the writer is idle-->     one group, written at once
 *
 * With FSYNC_ALWAYS, a reply waits until all earlier changes are on the disk. Changes that are made
 * while a group is written and synced form the next group, so they share one fdatasync. The loop
 * serves clients meanwhile.
 *
 * With FSYNC_ALWAYS, the file is preallocated: zeros behind its records are already on the disk.
 * Syncing a write there needs neither a new size nor new blocks on the disk. If preallocation fails
 * for any reason, everything works as before, but slower.
 *
 * If the file cannot be written, the server reports the error and exits.
 *
 * The argument, all on the loop's thread:
 *  1. `file_lock` is held by the only coroutine that writes or replaces the file. Its holder owns
 *     `writing`, `size` and `allocated_size`.
 *  2. `last_group` counts groups that have been started. `written` is published in that order, after
 *     the group is in the file (and, with FSYNC_ALWAYS, on the disk).
 *  3. A change is in `filling`, in the group being written, or in the file. So a client waits for
 *     group last_group + 1 if `filling` is not empty, and for last_group otherwise.
 */
#ifndef KV_JOURNAL_H
#define KV_JOURNAL_H

#include "bytes.h"

#include <bide/bide.h>

enum fsync { FSYNC_ALWAYS, FSYNC_EACH_SECOND, FSYNC_NO };

struct journal {
    bool is_on;
    enum fsync fsync;
    const char *path;
    bide_descriptor file;
    int64_t size;            /* of the records */
    int64_t allocated_size;  /* with the zeros behind the records; may be less than `size` */
    bool cannot_preallocate; /* preallocation failed, and is not retried */
    int64_t base_size;       /* when the file was last rewritten or read */
    int64_t synced_size;
    uint64_t groups, syncs;

    struct buffer filling, writing;
    bide_mutex file_lock;          /* held while a group is written or the file is replaced */
    bide_sequence last_group;      /* the last group whose write was started */
    bide_sequence_barrier written; /* or synced, with FSYNC_ALWAYS */
    bide_single_consumer_auto_event writer_wakeup; /* wakes the writer */
    bide_single_consumer_auto_event grown;         /* wakes journal_sync_each_second */
    bool is_stopping;
    int error;

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

/* Wakes the writer if it has work. May be called whether or not records were appended. */
static inline void journal_wake_writer(struct journal *journal)
{
    if ((buffer_used(&journal->filling) > 0 && journal->expected_clients == 0) ||
        journal->error < 0)
        bide_single_consumer_auto_event_set(&journal->writer_wakeup);
}

/* Checks the result of a record's function. A change without a record stops the server. */
static inline void journal_check_append(struct journal *journal, bool was_appended)
{
    if (!was_appended)
        journal->error = -ENOMEM;
}

/* True if a reply has to wait for the journal. */
static inline bool journal_holds_replies(const struct journal *journal)
{
    return journal->is_on &&
           (journal->fsync == FSYNC_ALWAYS || buffer_used(&journal->filling) > 64 << 20);
}

#endif
