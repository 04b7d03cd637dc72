/*
 * The engine "redis": a stream of a Redis server. Floor: log.
 *
 *     handle ---> publishing   a connection of the commit that runs: XADD, XTRIM, WAIT
 *            ---> reading      a connection of all other calls, under `io`
 *            ---> watching     a connection of the handle's thread: XREAD BLOCK
 *
 *     message              entry of the stream, with the fields "data", "key" and "h:NAME"
 *     position             the entry's ID: milliseconds in `high_`, its sequence in `low_`
 *     group with a name    consumer group of the stream; each handle is one consumer of it
 *     group of a consumer  none: XRANGE from the consumer's place
 *
 * A group has an entry for each message that consumers of the handle have, or that they rejected. An
 * entry's message is pending in the server's group, for the handle's consumer. The thread renews that
 * three times in each `redeliver`; after a `redeliver` without that, any handle claims the message.
 *
 * 1. Groups and their entries change under the state's lock. Calls to the server are made under `io`,
 *    which is taken before the lock. So what is read from the table under `io` and sent is true in
 *    the server's group too, unless another process has claimed it.
 * 2. A reader begins its wait for `news`, then looks at the server, and then awaits, if the server was
 *    watched when it began to look. Otherwise it asks for the watch, and awaits that. The thread asks
 *    for the newest ID, and then for an entry after it, and notifies `news` between the two. An entry
 *    that the reader's look has missed is newer than the watch's ID, or there before the
 *    notification; in both cases the reader looks again.
 * 3. A reply to a command that was not read to its end closes the connection: the next reply is
 *    never taken for it.
 * 4. A publish is sent once. A reply that does not come leaves it uncertain.
 * 5. A reply of messages that is lost leaves them pending in the server's group without an entry
 *    here. They are not renewed, so they are claimed after a `redeliver`.
 */
#ifndef BIDE_SRC_LOG_REDIS_H
#define BIDE_SRC_LOG_REDIS_H

#include "state.h"

#include <pthread.h>

enum { REDIS_TEXT = 512, REDIS_INPUT = 16 * 1024 };

/* A connection, which is made when it is used. */
struct redis_link {
    const struct log_redis *redis;
    int descriptor; /* or -1 */
    int interrupt;  /* a descriptor that ends waits when it is readable, or -1 */
    bool out_of_memory;
    uint64_t deadline; /* of the call that is made */
    size_t begin, end; /* what of `in` was not taken yet */
    size_t out_size, out_capacity;
    uint8_t *out;
    char text[160]; /* a line of the server, such as its last error */
    uint8_t in[REDIS_INPUT];
};

/* The head of a reply: '+' and '-' have link->text, '$' and '*' a size, or -1 for nil. */
struct redis_token {
    char type;
    int64_t value;
};

enum redis_entry_state { REDIS_ENTRY_WITH, REDIS_ENTRY_REJECTED, REDIS_ENTRY_DONE };

struct redis_entry {
    bide_log_position id;
    uint64_t owner; /* a consumer's */
    uint64_t due;
    uint32_t deliveries;
    enum redis_entry_state state;
    void *memory; /* of the message, while it is WITH a consumer */
};

/* A group, as consumers of the handle see it. */
struct redis_group {
    struct bide_log_group_ head; /* its name and members; it has no entries */
    struct redis_group *following;
    bide_log_position cursor; /* of a group without a name: the last that was read */
    bool claims;              /* the next read looks for messages that others have left */
    bool has_large;           /* under `io`: the next read reports the message `large` */
    bide_log_position large;
    size_t first, count, capacity;
    struct redis_entry *entries; /* in the order of their IDs, from `first` */
};

struct log_redis {
    bide_log log;
    struct log_state state;
    char user[REDIS_TEXT], password[REDIS_TEXT], host[REDIS_TEXT], port[8], stream[REDIS_TEXT];
    char consumer[64]; /* the handle's name in groups */
    uint64_t lease;    /* nanoseconds: `redeliver` */
    uint64_t timeout;  /* nanoseconds, of a call */
    struct redis_link publishing;

    pthread_mutex_t io; /* for `reading` */
    struct redis_link reading;

    /* under the state's lock */
    struct redis_group *groups;
    bool ends, wants_watch, is_watching;

    /* the thread's */
    pthread_t thread;
    int wake;      /* an event: look again */
    int interrupt; /* an event: it ends */
    struct redis_link watching;
};

struct log_redis *bide_redis_of_(bide_log *log);

/* ---- redis_link.c: connections ---- */

void bide_redis_link_init_(struct redis_link *link, const struct log_redis *redis, int interrupt);
void bide_redis_link_close_(struct redis_link *link);
void bide_redis_link_destroy_(struct redis_link *link);

/*
 * Begins a call that ends within the handle's `timeout`: connects if that is necessary, again and
 * again if it fails. Negative: no connection, and nothing was sent.
 */
int bide_redis_begin_(struct redis_link *link);

/* One attempt to connect, if that is necessary. */
int bide_redis_connect_(struct redis_link *link);

/* True: another attempt may help, with a new connection. */
bool bide_redis_is_lost_(int status);

/* Sends the commands that were appended. */
int bide_redis_flush_(struct redis_link *link);
/* Makes at least one byte of `in` available. */
int bide_redis_fill_(struct redis_link *link);
/* Closes the connection, and returns `status`. */
int bide_redis_lost_(struct redis_link *link, int status);

/* ---- redis_protocol.c ---- */

/* Append to the commands that bide_redis_flush_ sends. */
void bide_redis_array_(struct redis_link *link, size_t count);
void bide_redis_bulk_(struct redis_link *link, const void *bytes, size_t size);
void bide_redis_text_(struct redis_link *link, const char *text);
void bide_redis_number_(struct redis_link *link, uint64_t number);
void bide_redis_id_(struct redis_link *link, bide_log_position id);
void bide_redis_raw_(struct redis_link *link, const void *bytes, size_t size);

/* A command of `count` texts. */
void bide_redis_command_(struct redis_link *link, unsigned count, ...);

/* The head of the next reply: 0, or a negative errno, after which the connection is closed. */
int bide_redis_read_(struct redis_link *link, struct redis_token *token);
/* The bytes of a '$', of `size`, and their end; NULL: they are passed over. */
int bide_redis_read_bytes_(struct redis_link *link, void *bytes, size_t size);
/* A '$' or '+' of less than `size` bytes, terminated; a longer one is cut. *is_nil: it is nil. */
int bide_redis_read_text_(struct redis_link *link, char *text, size_t size, bool *is_nil);
int bide_redis_read_id_(struct redis_link *link, bide_log_position *id, bool *is_nil);
/* An array's size, or 0 for nil. An error of the server is its errno, with link->text. */
int bide_redis_read_array_(struct redis_link *link, int64_t *count);
int bide_redis_read_number_(struct redis_link *link, int64_t *number);
/* Passes over a whole reply. */
int bide_redis_skip_(struct redis_link *link);
/* A reply that is not an error. */
int bide_redis_read_ok_(struct redis_link *link);
/* The errno of the server's error in link->text. */
int bide_redis_error_(const struct redis_link *link);

/* ---- redis_message.c ---- */

/*
 * Reads an entry: 1, or 0: it is nil, because it was removed. -EMSGSIZE: it is too large, and only its
 * position is set; the link is whole. The message's bytes are allocated.
 */
int bide_redis_read_entry_(struct redis_link *link, bide_log_message *message);
/* Asks for the ID of the newest entry; zero: there is none. */
int bide_redis_read_newest_(struct redis_link *link, bide_log_position *id);
void *bide_redis_memory_of_(const bide_log_message *message);
void bide_redis_message_drop_(bide_log_message *message);

/* ---- redis_entries.c: entries of a group; under the state's lock ---- */

struct redis_group *bide_redis_group_create_(const char *name);
void bide_redis_group_destroy_(struct redis_group *group);

/* The entry at that place of `count`. */
struct redis_entry *bide_redis_entry_(const struct redis_group *group, size_t i);
/* The entry of that message, or NULL. */
struct redis_entry *bide_redis_find_(const struct redis_group *group, bide_log_position id);
/* Makes room for `more` entries. */
int bide_redis_reserve_(struct redis_group *group, size_t more);
/* Adds an entry if there is none of that ID. There is room. */
struct redis_entry *bide_redis_add_(struct redis_group *group, bide_log_position id);
/* The group is done with it. */
void bide_redis_finish_(struct redis_group *group, struct redis_entry *entry);
void bide_redis_reject_(struct redis_entry *entry, uint64_t due);

/* ---- redis_read.c, redis_groups.c: the operations of consumers ---- */

bide_awaiter *bide_redis_read_messages_(bide_log_operation *operation);
bide_awaiter *bide_redis_subscribe_(bide_log_operation *operation);
bide_awaiter *bide_redis_acknowledge_(bide_log_operation *operation);
bide_awaiter *bide_redis_reject_messages_(bide_log_operation *operation);
void bide_redis_unsubscribe_(bide_log_consumer *consumer);
int bide_redis_lag_(bide_log *log, const char *group, uint64_t *count);
int bide_redis_remove_group_(bide_log *log, const char *group);

/* Leaves what a group without members has to other handles. Under `io`. */
void bide_redis_hand_over_(struct log_redis *redis);
/* Renews what consumers have. Under `io`. */
void bide_redis_renew_(struct log_redis *redis);

/* ---- redis_watch.c: the thread ---- */

int bide_redis_thread_start_(struct log_redis *redis);
void bide_redis_thread_end_(struct log_redis *redis);
void bide_redis_wake_(struct log_redis *redis);

#endif
