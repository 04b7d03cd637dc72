/*
 * The server's state, shared by all of its parts. It belongs to one thread, the thread of its loop.
 */
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
    uint64_t work;   /* of all commands, in the unit of CLIENT_MAX_WORK */
    int64_t started; /* milliseconds since 1970 */
    bool is_stopping;
    bide_single_consumer_auto_event stop; /* a client has requested a shutdown */
    bide_single_consumer_auto_event next_expiry_changed, flushed;

    /* snapshots, and rewrites of the append-only file: one at a time */
    bool is_saving;
    bool saves_on_exit;
    int64_t last_save; /* milliseconds since 1970 */
    int save_status;
    bide_mutex save_lock;
    bool wants_snapshot, wants_rewrite;
    bide_single_consumer_auto_event save_wanted;
    uint64_t changes; /* since the last snapshot began */
};

/* Updates keys.now from the clock. */
void kv_update_clock(struct kv *kv);

/* Reports a message on stderr, with a newline. */
void kv_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- Changes, which go into the append-only file ---- */

static inline void kv_log_set(struct kv *kv, struct bytes key, struct bytes value, int64_t time)
{
    kv->changes++;
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, record_set(&kv->journal.filling, key, value, time));
}

static inline void kv_log_append(struct kv *kv, struct bytes key, struct bytes value)
{
    kv->changes++;
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, record_append(&kv->journal.filling, key, value));
}

static inline void kv_log_delete(struct kv *kv, struct bytes key)
{
    kv->changes++;
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, record_delete(&kv->journal.filling, key));
}

static inline void kv_log_expiry(struct kv *kv, struct bytes key, int64_t time)
{
    kv->changes++;
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, time != 0
                                               ? record_expire(&kv->journal.filling, key, time)
                                               : record_persist(&kv->journal.filling, key));
}

static inline void kv_log_flush(struct kv *kv)
{
    kv->changes++;
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, record_flush(&kv->journal.filling));
}

/* ---- Requests ---- */

/* Runs the client's request and appends the reply to client->out. */
void command_run(struct client *client);

/*
 * Runs complete requests. Returns false when none is left, and true when it stopped early: the
 * replies are many, or a request set client->control.
 */
bool client_run(struct client *client);

#endif
