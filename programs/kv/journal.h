/*
 * The append-only file. Each change is put into it as a record; a coroutine writes what has come.
 *
 *     filling   records that come now       --the writer is free-->   one group, written at once
 *
 * With FSYNC_ALWAYS a reply waits until all that was changed before it is on the disk. What comes
 * while a group is written and synced is the next group, so one fdatasync is shared by all of it.
 * The loop goes on meanwhile.
 *
 * With FSYNC_ALWAYS the file has room behind its records: zeros that are on the disk already. A sync of
 * what is written there has no size and no new blocks to put on the disk. Without that room, for
 * whatever reason, all is as well, but slower.
 *
 * When it cannot be written the program ends, and says why.
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
    int64_t size;      /* of its records */
    int64_t room;      /* of the file, with the zeros behind them; or less than that */
    bool lacks_room;   /* they could not be written: it is not tried again */
    int64_t base_size; /* when it was last written anew, or read */
    int64_t synced_size;
    uint64_t groups, syncs;

    struct buffer filling, writing;
    bide_mutex busy;               /* a group is being written, or the file is being replaced */
    bide_sequence taken;           /* the number of the last group that was begun to be written */
    bide_sequence_barrier written; /* or synced, with FSYNC_ALWAYS */
    bide_single_consumer_auto_event news;   /* for the writer */
    bide_single_consumer_auto_event growth; /* for what syncs each second */
    bool is_ending;
    int error;

    /* of the gathering */
    const size_t *clients; /* how many there are */
    size_t waiting;        /* clients whose records are in the group that fills */
    size_t in_group;       /* that were in the group that is written */
    size_t expected;       /* clients to be waited for; 0: it does not gather */

    /* of the file that is written anew */
    bool is_rewriting;
    size_t since_from;   /* of `filling`, what is before that the new file has */
    struct buffer since; /* records of groups that it lacks */
    int since_error;
};

/* Records may have been put into `filling`, or not have been. */
static inline void journal_poke(struct journal *journal)
{
    if ((buffer_used(&journal->filling) > 0 && journal->expected == 0) || journal->error < 0)
        bide_single_consumer_auto_event_set(&journal->news);
}

/* What a record's function has returned. A change that is in no record ends the server. */
static inline void journal_put(struct journal *journal, bool was_put)
{
    if (!was_put)
        journal->error = -ENOMEM;
}

/* Has something to be waited for before a reply may be sent? */
static inline bool journal_holds_replies(const struct journal *journal)
{
    return journal->is_on &&
           (journal->fsync == FSYNC_ALWAYS || buffer_used(&journal->filling) > 64 << 20);
}

#endif
