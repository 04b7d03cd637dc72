/* The server: what all of its parts share. One thread has it, that of its loop. */
#ifndef KV_KV_H
#define KV_KV_H

#include "client.h"
#include "journal.h"
#include "keyspace.h"
#include "options.h"
#include "pubsub.h"
#include "record.h"

struct kv {
    struct options options;
    struct request_limits limits;
    struct keyspace keys;
    struct journal journal;
    struct pubsub pubsub;

    bide_loop *loop;
    bide_server server;
    struct client *clients;
    size_t client_count;
    uint64_t last_id, commands, connections;
    int64_t started; /* milliseconds since 1970 */
    bool is_stopping;
    bide_single_consumer_auto_event stop; /* a client asks for the end */
    bide_single_consumer_auto_event sooner, flushed;

    /* of snapshots; of those, and of the append-only file written anew, one at a time */
    bool is_saving;
    bool saves_at_end;
    int64_t last_save; /* milliseconds since 1970 */
    int save_status;
    bide_mutex save;
    bool wants_snapshot, wants_rewrite;
    bide_single_consumer_auto_event save_wanted;
    uint64_t changes; /* since the last one began */
};

/* Looks at the clock for what follows. */
void kv_look_at_clock(struct kv *kv);

/* Says something on stderr, with a line's end. */
void kv_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- Changes, which go into the append-only file ---- */

static inline void kv_log_set(struct kv *kv, struct bytes key, struct bytes value, int64_t time)
{
    kv->changes++;
    if (kv->journal.is_on)
        journal_put(&kv->journal, record_set(&kv->journal.filling, key, value, time));
}

static inline void kv_log_append(struct kv *kv, struct bytes key, struct bytes value)
{
    kv->changes++;
    if (kv->journal.is_on)
        journal_put(&kv->journal, record_append(&kv->journal.filling, key, value));
}

static inline void kv_log_delete(struct kv *kv, struct bytes key)
{
    kv->changes++;
    if (kv->journal.is_on)
        journal_put(&kv->journal, record_delete(&kv->journal.filling, key));
}

static inline void kv_log_time(struct kv *kv, struct bytes key, int64_t time)
{
    kv->changes++;
    if (kv->journal.is_on)
        journal_put(&kv->journal, time != 0 ? record_expire(&kv->journal.filling, key, time)
                                            : record_persist(&kv->journal.filling, key));
}

static inline void kv_log_flush(struct kv *kv)
{
    kv->changes++;
    if (kv->journal.is_on)
        journal_put(&kv->journal, record_flush(&kv->journal.filling));
}

/* ---- Requests ---- */

/* Does what the client's request says, and puts the reply into client->out. */
void command_run(struct client *client);

/*
 * Does the requests that are there whole, until there are no more (false), or its replies are many,
 * or it wishes for something (true).
 */
bool client_run(struct client *client);

#endif
