/*
 * One client: its input, the request being parsed there, and the replies to be sent.
 *
 * A client that has subscribed has two coroutines: one receives its requests, the other sends. Any
 * other client has one, which sends all replies at once when all received requests have been run.
 */
#ifndef KV_CLIENT_H
#define KV_CLIENT_H

#include "blocking.h"
#include "pubsub.h"
#include "request.h"
#include "transaction.h"

#include <bide/bide.h>

struct kv;
struct secure_client;
struct combination;
struct command;

enum {
    /* Bytes of replies that are made before some are sent. */
    CLIENT_MAX_REPLIES = 1 << 20,
    /* Work before others have their turn: arguments, and keys, patterns and subscribers visited. */
    CLIENT_MAX_WORK = 8192
};

/*
 * An action that a request leaves to its client's coroutine, because it takes time. CONTROL_REPEAT:
 * send the replies, and then run the request again. CONTROL_PAUSE: the same when the pause has ended.
 */
enum control {
    CONTROL_NONE,
    CONTROL_SAVE,
    CONTROL_STOP,
    CONTROL_WAIT,
    CONTROL_REPEAT,
    CONTROL_PAUSE
};

/* Which requests have replies: CLIENT REPLY. */
enum reply_mode { REPLY_ON, REPLY_SKIP_NEXT, REPLY_OFF };

/*
 * A reply of many elements, as it is collected between its slices (listing.c). All zero is none.
 */
struct key_listing {
    struct buffer names; /* the array's head, or space for it, and elements behind it */
    size_t count;        /* of entries */
    size_t cursor;       /* where it continues; 0: it has not begun */
    uint64_t version;    /* of the collection, when it began */
};

struct reply_range {
    size_t begin, end; /* from out.begin on */
};

struct client {
    struct kv *kv;
    bide_descriptor *socket;
    struct secure_client *secure; /* its TLS; or NULL */
    uint64_t id;
    struct client *next, **link; /* in the list of all clients */
    struct buffer name;
    int64_t connected_at, last_active; /* milliseconds since 1970 */
    const struct command *command;     /* the last one; or NULL */

    struct buffer in;
    struct request request;
    bool repeats_request; /* it is complete, and is to be run again */
    bool awaits_group;    /* before that: the append-only file is behind */
    size_t checked;       /* 0, or the argument before which no key was ready */
    uint64_t serial;      /* of the key that was ready last when they were checked; or 0 */
    struct buffer out;
    struct buffer
        changes; /* struct reply_range of the replies in `out` that report changes of keys */
    enum reply_mode reply_mode;
    bool is_silent;         /* the present request, which may wait, has no reply */
    size_t pushed;          /* the end of the pushes in `out` that the present request has made */
    struct buffer deferred; /* messages to itself, for behind the replies of that request */
    enum control control;
    unsigned protocol;     /* version of RESP: 2, or 3 after HELLO 3 */
    bool is_authenticated; /* or there is no password */
    size_t work;           /* since others had their turn */
    uint64_t owed;         /* of what it has discarded, to be freed before its next request */
    bool is_paused;        /* its request is postponed */
    bool is_killed;        /* by CLIENT KILL: it no longer counts */
    bool is_closing;       /* disconnect when `out` has been sent */
    bool is_broken;        /* disconnect at once: no memory for a reply, or too slow */
    bool has_subscribed;   /* at any time, or monitored */
    size_t sending;        /* bytes that a subscriber's other coroutine has taken from `out` */

    struct transaction transaction;
    struct blocking blocking;
    struct key_listing listing;
    struct combination *combining; /* between slices; or NULL */

    struct subscription *subscriptions[2];    /* to channels and to patterns, newest first */
    size_t subscription_count, pattern_count; /* all, and those to patterns */
    struct subscription monitoring;           /* to the requests of all clients */
    size_t next_argument; /* of a subscription command between slices; 0: it has not begun */
    size_t publications;  /* of its requests; it runs no other before they are delivered */
    bool has_published;   /* the present PUBLISH, to so many receivers */
    int64_t receivers;
    bide_single_consumer_auto_event published; /* there are fewer publications */
    bide_single_consumer_auto_event messages; /* `out` has data, for a client that has subscribed */
    bide_single_consumer_auto_event taken;    /* that data is being sent */
};

/* An argument of the request. Argument 0 is the command's name. */
static inline struct bytes client_argument(const struct client *client, size_t i)
{
    const struct argument *argument = &request_arguments(&client->request)[i];
    return (struct bytes){client->in.data + client->in.begin + argument->offset, argument->size};
}

/*
 * Appends the request as an array of bulk strings, with `name` in place of its own. Returns false if
 * memory is exhausted.
 */
bool request_append(struct buffer *buffer, const struct client *client, struct bytes name);

/*
 * Runs the request again when the replies before it have been sent, and others have had their turn if it has done
 * much. Must be the last that a command does, without a reply.
 */
void client_repeat_request(struct client *client);

/*
 * As client_repeat_request, when others have had their turn, whatever the request has done. Those that wait for keys are then
 * served a little.
 */
void client_end_turn(struct client *client);

/* ---- Replies ---- */

/* Removes the replies from `begin` on, except pushes, if the client's request has none. */
void reply_hide(struct client *client, size_t begin);

/* Appends the deferred messages: the replies of the client's request are complete. */
void reply_deferred(struct client *client);

/*
 * Reserves the memory for one call of reply_note_change, before the change. Returns false after an error reply,
 * and then there must be no change.
 */
bool reply_reserve_change(struct client *client);

/*
 * Notes that the replies from `begin` on report a change; nothing if there are none. Its memory has been
 * reserved.
 */
void reply_note_change(struct client *client, size_t begin);

/*
 * Reserves the memory for a reply of so many bytes, before elements that are in it are removed. Returns false
 * after an error reply, and then the elements must stay.
 */
bool reply_reserve(struct client *client, size_t size);

/*
 * Replaces the replies that report changes by an error. Returns false if memory is exhausted, and then
 * `out` is unchanged.
 */
bool replies_refuse_changes(struct buffer *out, const struct buffer *changes, int error);

/* Replies that a change is refused, since the append-only file cannot be written. */
void reply_refused(struct client *client, int error);

/* Replies that memory is exhausted. */
void reply_no_memory(struct client *client);

/* Appends bytes unchanged. */
void reply_raw(struct client *client, const char *data, size_t size);

/* Appends a line that is a string literal. */
#define REPLY(client, text) reply_raw(client, text "\r\n", sizeof text "\r\n" - 1)

static inline void reply_ok(struct client *client)
{
    REPLY(client, "+OK");
}

static inline void reply_nothing(struct client *client)
{
    if (client->protocol == 3)
        REPLY(client, "_");
    else
        REPLY(client, "$-1");
}

/* A short text without newlines. */
void reply_simple(struct client *client, const char *text);
void reply_bulk(struct client *client, struct bytes bytes);
void reply_number(struct client *client, int64_t number);
/* With RESP2, a bulk string. */
void reply_double(struct client *client, double number);
void reply_array(struct client *client, size_t count);
/* Pairs of a name and a value: with RESP2, an array of both. */
void reply_map(struct client *client, size_t pairs);
/* Different elements in no order: with RESP2, an array. */
void reply_set(struct client *client, size_t count);
/* A message that no request has asked for: with RESP2, an array. */
void reply_push(struct client *client, size_t count);
/* A text with newlines, for people. */
void reply_text(struct client *client, struct bytes text);
/* An array that does not exist, as opposed to one that is empty. */
void reply_null_array(struct client *client);
void reply_error(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
