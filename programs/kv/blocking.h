/*
 * Clients that wait for elements of keys: BLPOP and the like.
 *
 *     idle       --the keys have no elements-->                          waiting
 *     waiting    --served; timeout; CLIENT UNBLOCK; disconnected-->      idle
 *
 * A waiting client is in a queue of each of its keys. A key has a queue for each type. A change of such a
 * key makes the key ready. Ready keys are served when the command that has changed them is complete; of a
 * transaction, EXEC. They are served in the order in which they became ready, and the clients of a key in
 * the order in which they began to wait.
 *
 * Serving is done in the turn of the client that has made the change, up to CLIENT_MAX_WORK, and counts as
 * its work. A coroutine serves the rest, and keys that became ready behind the rest or without a command, by
 * their expiry. So no client does or pays for work that another one has caused. A request that may change a key
 * of the rest runs when that key has been served, so it never takes an element before a client that waits. EXEC and
 * FLUSHALL may change any key. They wait for the keys that are ready when they come, and not for those that become ready
 * later: otherwise steady pushes would hold them forever.
 *
 * Nobody is served while the journal is full, since the replies would be errors. The element goes from the key to
 * the reply in one step, so it is never lost on the way. A timeout or disconnection that comes at the same time
 * finds that the client waits no longer.
 *
 * All of it runs on the loop's thread.
 */
#ifndef KV_BLOCKING_H
#define KV_BLOCKING_H

#include "table.h"

#include <bide/bide.h>

struct kv;
struct client;
struct waiter;
struct waited;

enum {
    BLOCKING_MAX_KEYS = 16384, /* of a client that waits */
    BLOCKING_TYPES = 2         /* for whose elements clients wait */
};

/* The index of a type among them, or BLOCKING_TYPES. */
static inline size_t blocking_queue_of(enum value_type type)
{
    return type == VALUE_LIST ? 0 : type == VALUE_SORTED_SET ? 1 : BLOCKING_TYPES;
}

/*
 * Replies to a waiting client with elements of the key, which has some of the type that it waits for,
 * and removes them from the key. Its request is still there.
 */
typedef void blocking_serve_function(struct client *client, struct bytes key);

/* A client's wait. All zero is none. */
struct blocking {
    bool is_waiting;
    enum value_type type;
    blocking_serve_function *serve;
    struct waiter *waiters; /* one for each of its keys */
    size_t count;
    int64_t timeout;                        /* milliseconds; 0: none */
    bide_single_consumer_auto_event served; /* it waits no longer; may be set too early */
};

/* The keys for which clients wait. */
struct waiting {
    struct table keys; /* by name: a struct waited * */
    struct waited *ready, **ready_end;
    uint64_t serial; /* of the key that became ready last */
    size_t clients;
    bide_single_consumer_auto_event unserved; /* `ready` keys are left; may be set too early */
};

void waiting_init(struct waiting *waiting, const uint64_t key[2]);
void waiting_free(struct waiting *waiting);

/* Notes that a key has changed. */
void waiting_touch(struct waiting *waiting, struct bytes key);

/* Has the coroutine serve the ready keys, if there are any. Must be called after changes that no command makes. */
static inline void waiting_leave(struct waiting *waiting)
{
    if (waiting->ready != NULL)
        bide_single_consumer_auto_event_set(&waiting->unserved);
}

/* True if the key is one that is still to be served. */
bool waiting_is_ready(struct waiting *waiting, struct bytes key);

/* True if a key is still to be served that became ready not later than the one with this serial. */
bool waiting_has_ready_since(const struct waiting *waiting, uint64_t serial);

/*
 * Serves clients that wait for keys that have changed, until all are served or the work is CLIENT_MAX_WORK.
 * Returns true if some are left.
 */
bool waiting_serve(struct kv *kv);

/*
 * Lets the client wait for elements of that type of the keys, which are arguments of its request. Must
 * be the last that the command does: if replies are still to be sent, the request runs again when they
 * have been. `timeout` is in
 * milliseconds; 0: none. Not in a transaction.
 */
void blocking_begin(struct client *client, enum value_type type, size_t first_key, size_t keys,
                    int64_t timeout, blocking_serve_function *serve);

/*
 * Serves the client with the first of the keys that has elements of that type. If none has, the client waits, or in a
 * transaction has a null reply. `timeout` is the index of that argument. As blocking_begin, it must be the last that the
 * command does.
 */
void blocking_serve_or_wait(struct client *client, enum value_type type, size_t first_key,
                            size_t keys, size_t timeout, blocking_serve_function *serve);

/* Ends the client's wait, if it waits. The caller replies. */
void blocking_end(struct client *client);

/* Parses seconds as milliseconds, rounded up. Returns false after an error reply. */
bool blocking_read_timeout(struct client *client, size_t i, int64_t *timeout);

#endif
