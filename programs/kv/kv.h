/*
 * The server's state, shared by all of its parts. It belongs to one thread, the thread of its loop.
 */
#ifndef KV_KV_H
#define KV_KV_H

#include "client.h"
#include "journal.h"
#include "keyspace.h"
#include "notifications.h"
#include "options.h"
#include "pubsub.h"
#include "record.h"

/* CLIENT PAUSE (pause.c). */
struct pause {
    int64_t end;      /* milliseconds since 1970; 0: there is none */
    bool is_of_all;   /* of all requests, not of changes alone */
    size_t clients;   /* with a postponed request */
    bide_event ended; /* there is none */
    bide_single_consumer_auto_event changed;
};

struct kv {
    struct options options;
    struct request_limits limits;
    struct keyspace keys;
    struct journal journal;
    struct pubsub pubsub;
    struct watching watching;
    struct waiting waiting;
    struct pause pause;

    bide_loop *loop;
    bide_server
        servers[3]; /* of the port, of --tls-port and of --unix-socket, as far as they are given */
    size_t server_count;
    bide_server *secure_server;  /* one of them; or NULL */
    struct bide_tls_config *tls; /* its certificate; or NULL */
    bide_listen_path unix_path;
    struct client *clients;
    struct client *running;              /* whose request runs, or is served; or NULL */
    uint64_t notify_limit;               /* of `work`: beyond it, notifications are queued */
    size_t client_count, killed_clients; /* all, and those of them that have been killed */
    uint64_t last_id, commands, connections, draws;
    uint64_t work;        /* of all commands, in the unit of CLIENT_MAX_WORK */
    uint64_t turns_ended; /* since the work was CLIENT_MAX_WORK */
    uint64_t combined;    /* elements of results that clients have between slices */
    uint64_t evictions;   /* of keys, for the limit of memory */
    uint64_t charged;     /* of keys.discarded: what a client owes, has freed, or has not caused */
    int64_t started;      /* milliseconds since 1970 */
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

/* Must be called when the options have been set. */
void config_apply(struct kv *kv);

/* Returns a random number. `kv` is a struct kv. */
uint64_t kv_draw(void *kv);

/* Reports a message on stderr, with a newline. */
void kv_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports an error of something, and ends the process. */
_Noreturn void kv_exit_with_error(const char *what, int status);

/* ---- Notifications ---- */

static inline void kv_notify(struct kv *kv, enum notify class, const char *event, struct bytes key)
{
    if ((kv->options.notify & class) != 0)
        notify_send(kv, event, key);
}

/* A command has looked up a key to read it, and there is none. */
static inline void kv_note_miss(struct kv *kv, struct bytes key)
{
    kv_notify(kv, NOTIFY_MISS, "keymiss", key);
}

/* ---- Changes, which go into the append-only file ---- */

static inline void kv_note_change(struct kv *kv, struct bytes key)
{
    kv->changes++;
    if (kv->watching.keys.count > 0)
        watching_touch(&kv->watching, key);
    if (kv->waiting.clients > 0)
        waiting_touch(&kv->waiting, key);
}

static inline void kv_log_set(struct kv *kv, struct bytes key, struct bytes value, int64_t time)
{
    kv_note_change(kv, key);
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, record_set(&kv->journal.filling, key, value, time));
}

static inline void kv_log_append(struct kv *kv, struct bytes key, struct bytes value)
{
    kv_note_change(kv, key);
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, record_append(&kv->journal.filling, key, value));
}

static inline void kv_log_set_range(struct kv *kv, struct bytes key, size_t offset,
                                    struct bytes part)
{
    kv_note_change(kv, key);
    if (kv->journal.is_on)
        journal_check_append(&kv->journal,
                             record_set_range(&kv->journal.filling, key, offset, part));
}

static inline void kv_log_copy(struct kv *kv, struct bytes from, struct bytes to, bool moves)
{
    kv_note_change(kv, to);
    if (moves)
        kv_note_change(kv, from);
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, record_copy(&kv->journal.filling, from, to, moves));
}

/* Any record of a collection; the second word is the key. */
static inline void kv_log_words(struct kv *kv, const struct bytes *words, size_t count)
{
    kv_note_change(kv, words[1]);
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, record_words(&kv->journal.filling, words, count));
}

/* The key's collection, in place of any other value. */
static inline void kv_log_collection(struct kv *kv, struct bytes key, struct collection *collection)
{
    kv_note_change(kv, key);
    if (kv->journal.is_on)
        journal_check_append(&kv->journal,
                             record_delete(&kv->journal.filling, key) &&
                                 record_collection(&kv->journal.filling, key, collection));
}

static inline void kv_log_delete(struct kv *kv, struct bytes key)
{
    kv_note_change(kv, key);
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, record_delete(&kv->journal.filling, key));
}

/* Removes a key, with its event. */
static inline void kv_delete(struct kv *kv, struct entry **link, struct bytes key)
{
    keyspace_remove(&kv->keys, link);
    kv_log_delete(kv, key);
    kv_notify(kv, NOTIFY_GENERIC, "del", key);
}

/* Elements of a collection have been removed, which is this event. Without elements the key is removed. */
static inline void kv_notify_removal(struct kv *kv, enum notify class, const char *event,
                                     struct bytes key)
{
    kv_notify(kv, class, event, key);
    if (keyspace_remove_if_empty(&kv->keys, key))
        kv_notify(kv, NOTIFY_GENERIC, "del", key);
}

static inline void kv_log_expiry(struct kv *kv, struct bytes key, int64_t time)
{
    kv_note_change(kv, key);
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, time != 0
                                               ? record_expire(&kv->journal.filling, key, time)
                                               : record_persist(&kv->journal.filling, key));
}

static inline void kv_log_flush(struct kv *kv)
{
    kv->changes++;
    kv->watching.flushes++;
    if (kv->journal.is_on)
        journal_check_append(&kv->journal, record_flush(&kv->journal.filling));
}

/* ---- Requests ---- */

/* Adds what has been discarded since kv->charged to what the client owes. */
void client_owe(struct client *client);

/*
 * Frees what the client owes, in `steps` steps or a few more. What it owes is 0 then if all is freed. Returns how many
 * steps it took.
 */
size_t client_free_owed(struct client *client, uint64_t steps);

/* Ends the pause: postponed requests run. */
void pause_end(struct kv *kv);

/* Runs the client's request, or queues it in a transaction, and appends the reply to client->out. */
void command_run(struct client *client);

/*
 * Runs a request that has been queued, so it has been checked. With `only_changes`, returns false
 * without running it unless it may change keys.
 */
bool command_run_queued(struct client *client, bool only_changes);

/*
 * Runs complete requests. Returns false when none is left, and true when it stopped early: the
 * replies are many, a request set client->control, or it was the client's first subscription.
 */
bool client_run(struct client *client);

/* Goes on behind the client's request, which is complete. */
void client_end_request(struct client *client);

#endif
