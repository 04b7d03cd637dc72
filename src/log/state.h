/*
 * Shared by the engines of message logs (message_log.h): the handle, the state of a log whose
 * messages are numbered, and the engine's table. Floor: log.
 *
 *     handle, handle ---> state: lock, tail, groups, room, news
 *
 * 1. `tail`, `claimed` and the groups change under `lock`, which is never held across a wait, nor
 *    while another coroutine is woken.
 * 2. A waiter begins its wait for a notify, then looks under the lock, and then awaits. A change
 *    is made under the lock, and notifies all afterwards. So no change between look and wait is
 *    missed.
 * 3. `turn` orders the publishes of a handle that wait for room: its holder alone waits for
 *    `room`. Closing the handle closes `turn`, and notifies `room`, where the holder finds
 *    is_closed.
 * 4. A claim counts in `claimed` until it is published or released. So a publish that has its
 *    claim finds room. A publish that ends while its messages are in a batch leaves its claim there,
 *    until the batch is done or given up. So batches have no more messages than the window, and
 *    reads of a closed handle do not end before such messages are there.
 * 5. Engines that block publish in batches: a publish or a change of a group joins the batch that
 *    waits. While one commit runs (`is_flushing`) the others wait for `flushed`; whoever finds none
 *    running leads the next. A leader that ends without having made the call lets the others go on.
 * 6. An operation that is destroyed between its end and its coroutine's next step returns what it
 *    has: a claim is released, deliveries are withdrawn, a handle is destroyed. So does one that is
 *    destroyed between the end of a call on another thread and its own next step.
 * 7. An engine with a thread sets `is_flushing` for good: so no publish leads, and the thread takes the
 *    batches that wait. Each change by an operation is followed by a call of `changed`.
 */
#ifndef BIDE_SRC_LOG_STATE_H
#define BIDE_SRC_LOG_STATE_H

#include "bide/message_log.h"

#include "group.h"

#define LOG_NAME_MAX 4096

struct log_engine;
struct log_state;

/* The kinds of change that a coroutine may wait for. */
enum { LOG_ROOM = 1, LOG_NEWS = 2 };

/*
 * Of an engine whose logs other processes share: what the shared code calls instead of the lock, and
 * for groups. Its log_state is a copy, which is that of all processes while the lock is held.
 */
struct log_sharing {
    void (*lock)(struct log_state *state);
    void (*unlock)(struct log_state *state);

    /* Under the lock: another process that notifies wakes the waiters of this one. */
    void (*await)(struct log_state *state, unsigned kinds);
    void (*notify)(struct log_state *state, unsigned kinds); /* after the lock */

    /* Under the lock: a group that is not in the list, or -ENOSPC and the like; and gives it back. */
    int (*add_group)(struct log_state *state, const char *name, struct bide_log_group_ **group);
    void (*remove_group)(struct log_state *state, struct bide_log_group_ *group);
};

/* Operations that are committed together. Under the state's lock, but for the fields of the commit that took it. */
struct bide_log_batch_ {
    uint32_t members; /* operations that have joined, and the commit */
    uint32_t count;   /* messages */
    uint32_t left;    /* of these, the claims of publishes that have ended before it is done */
    bool syncs;
    bool is_taken, is_done;
    bool is_uncertain; /* it failed, and its messages may have been published */
    int status;        /* of the messages */
    int groups_status; /* of the groups */
    uint64_t first;    /* the number of the first message */
    size_t size, capacity;
    uint8_t *bytes;               /* of the engine */
    bide_log_position *positions; /* of the messages, or NULL: they are numbered from `first` */
};

/* Of one log, by all handles of this process. */
struct log_state {
    const struct log_sharing *sharing; /* or NULL */
    bide_atomic(uint32_t) lock;        /* unless it is shared */
    uint32_t window;
    bool groups_hold;   /* messages are kept until all groups are done with them */
    uint32_t claimed;   /* room of claims, and of publishes that have not ended */
    uint32_t left;      /* of these, what publishes that have ended have left in batches */
    uint64_t tail;      /* the number of the newest message */
    uint64_t oldest;    /* no message before this number is kept; with groups_hold maybe more */
    uint64_t last_time; /* of the newest message */
    uint64_t owners;    /* the number of the newest consumer */
    struct bide_log_group_ *groups;
    struct bide_log_batch_ *pending; /* or NULL */
    bool is_flushing;
    bool groups_are_removed; /* since the groups were stored */
    bide_notify flushed;
    bide_notify room; /* a publish may have room */
    bide_notify news; /* a read may have a message */
    int ended;        /* why reads end when no message is left, or 0; all but -EPIPE once */
    void (*changed)(struct log_state *state); /* of an engine with a thread, or NULL: 7 */
};

/* A handle. At the head of the engine's own. */
struct bide_log {
    const struct log_engine *engine;
    struct log_state *state;
    bide_log_level level;
    uint32_t window;
    uint32_t size;
    uint64_t segment, retain, keep_for;
    bool has_window, has_size, has_segment, has_retain, has_keep_for; /* the URL names them */
    bool must_exist;                                                  /* create=no */
    bool is_closed;                                                   /* under the state's lock */
    bide_blocking *threads;      /* of the handle's own; NULL: the library's */
    uint64_t keep;               /* of an engine with a server, and so are the next */
    uint32_t redeliver, timeout; /* seconds */
    uint32_t replicas;
    bool has_keep;
    uint32_t claims;    /* room of claims that are held; likewise */
    uint32_t consumers; /* likewise */
    bide_mutex turn;
};

/*
 * An engine: what the shared code calls. One with a `commit` blocks: it opens, commits, fetches and
 * finds on threads for blocking calls, and has no `append`, `load` and `time_of`. One with `encode` alone
 * has a thread that commits (7).
 */
struct log_engine {
    const char *scheme;
    unsigned levels; /* bits by bide_log_level */
    bide_log_level best;
    size_t handle_size;
    bool has_segments; /* the options `segment`, `retain` and `keep_for` */
    bool has_create;   /* the option `create` */
    bool open_blocks;  /* though the rest does not */
    bool is_single;    /* its one group has no name, and stays when it has no consumer */
    bool is_server;    /* the options `keep`, `keep_for`, `redeliver`, `timeout` and `replicas` */

    /* Attaches the handle to its state. `problem` has BIDE_LOG_PROBLEM_TEXT bytes, and is empty. */
    int (*open)(bide_log *log, const char *name, char *problem);
    void (*detach)(bide_log *log);

    /* Adds the messages under the lock, and advances the tail. Cannot fail. */
    void (*append)(bide_log *log, bide_log_message *messages, uint32_t count);

    /*
     * Completes a delivered message, by its position. Under the lock. -EBADMSG: it is none, which
     * `problem`, of BIDE_LOG_PROBLEM_TEXT bytes, says; readers pass over it.
     */
    int (*load)(bide_log *log, bide_log_message *message, char *problem);

    /* The publishing time of a message that is kept. Under the lock. */
    uint64_t (*time_of)(bide_log *log, uint64_t number);

    /* Adds the messages to a batch, under the lock: 0 or -ENOMEM. */
    int (*encode)(bide_log *log, struct bide_log_batch_ *batch, const bide_log_message *messages,
                  uint32_t count);

    /* Takes the batch that waits, and the groups that have changed, and stores both. */
    void (*commit)(bide_log *log);

    /*
     * Completes delivered messages; *fetched of them have memory then, at `encoded - key_size`.
     * -ESTALE: the next is no longer kept.
     */
    int (*fetch)(bide_log *log, bide_log_message *messages, uint32_t count, uint32_t *fetched);

    /* The number of the first message at `time` or later. */
    int (*find_time)(bide_log *log, uint64_t time, uint64_t *number);

    /* Of one that is single: 0, or why it has no such consumer now. Under the lock. */
    int (*admit)(bide_log *log, const bide_log_consumer_options *options);

    /*
     * Of an engine whose groups are a server's, in place of all that is above for consumers. The
     * first four complete the operation, whose parameters are set.
     */
    bide_awaiter *(*subscribe)(bide_log_operation *operation);
    bide_awaiter *(*read)(bide_log_operation *operation);
    bide_awaiter *(*acknowledge)(bide_log_operation *operation);
    bide_awaiter *(*reject)(bide_log_operation *operation);
    void (*unsubscribe)(bide_log_consumer *consumer);
    int (*lag)(bide_log *log, const char *group, uint64_t *count);
    int (*remove_group)(bide_log *log, const char *group);
};

extern const struct log_engine bide_log_ring_engine_, bide_log_file_engine_, bide_log_shm_engine_,
    bide_log_redis_engine_, bide_log_stdio_engine_;

/* The library's threads for blocking calls: file.c. */
int bide_log_threads_(bide_blocking **threads);

/* ---- Batches: batch.c ---- */

/* Joins the batch that waits, with `count` messages; under the lock. */
int bide_log_batch_join_(bide_log_operation *self, const bide_log_message *messages,
                         uint32_t count);

/* The wait for the batch that the operation has joined. */
bide_awaiter *bide_log_commit_begin_(bide_log_operation *self);

/* Publishes the messages that publishes have left in the batch, or gives them up. Under the lock. */
void bide_log_batch_settle_(struct log_state *state, struct bide_log_batch_ *batch);

/*
 * One member less, under the lock. Returns the batch if it is to be freed, after the lock: there may
 * be room then.
 */
struct bide_log_batch_ *bide_log_batch_leave_(struct log_state *state,
                                              struct bide_log_batch_ *batch);
void bide_log_batch_free_(struct bide_log_batch_ *batch);

/* Frees the batch that bide_log_batch_leave_ has returned, or does nothing. After the lock. */
void bide_log_batch_end_(struct log_state *state, struct bide_log_batch_ *batch);

/* ---- The state: state.c ---- */

void bide_log_state_init_(struct log_state *state, uint32_t window, bool groups_hold);
void bide_log_state_destroy_(struct log_state *state);

void bide_log_lock_(struct log_state *state);
void bide_log_unlock_(struct log_state *state);

/* Under the lock: an operation waits for one of these. Its own wait has begun: 2. */
void bide_log_await_(struct log_state *state, unsigned kinds);

/* After a change, and after the lock: wakes the operations that wait for one of these kinds. */
void bide_log_notify_(struct log_state *state, unsigned kinds);

/* The same without an operation that waits: the engine's thread looks, if it has one. */
void bide_log_changed_(struct log_state *state);

/* The link to the group of that name; a link to NULL: there is none. */
struct bide_log_group_ **bide_log_state_find_(struct log_state *state, const char *name);

/* Removes the group from the list; the group if it is to be freed, after the lock. */
struct bide_log_group_ *bide_log_state_remove_(struct log_state *state,
                                               struct bide_log_group_ **at);

/* The number of the oldest message that a new group can begin with. */
uint64_t bide_log_state_oldest_(const struct log_state *state);

/* True if `count` more messages fit into the window. */
bool bide_log_state_has_room_(const struct log_state *state, uint32_t count);

/* Sets what an operation may return to the state when it is destroyed: it has nothing yet. */
void bide_log_operation_init_(bide_log_operation *operation, bide_log *log);

/* ---- Consumers: consume.c ---- */

/* The group's name and `from` are what they may be. */
bool bide_log_consumer_options_are_valid_(const bide_log_consumer_options *options);

/* ---- URLs: url.c ---- */

struct log_url {
    const struct log_engine *engine;
    char name[LOG_NAME_MAX];
    bide_log_level level;
    uint32_t window;
    uint32_t size;
    uint64_t segment;
    uint64_t retain;
    uint64_t keep_for; /* nanoseconds */
    uint64_t keep;
    uint32_t redeliver, timeout, replicas;
    bool has_window, has_size, has_segment, has_retain, has_keep_for, has_keep;
    bool must_exist;
};

/* Parses a URL. On errors `problem`, of BIDE_LOG_PROBLEM_TEXT bytes, says why. */
int bide_log_url_parse_(struct log_url *url, const char *text, char *problem);

/* ---- Bytes of a message: encode.c ---- */

/* The bytes of its headers, encoded; SIZE_MAX: too many, or a name that is not allowed. */
size_t bide_log_headers_size_(const bide_log_message *message);

/* Writes the headers, encoded, of which bide_log_headers_size_ has said the size. */
void bide_log_headers_write_(const bide_log_message *message, uint8_t *out);

/* True if `encoded` is a whole number of headers. */
bool bide_log_headers_are_whole_(const void *encoded, size_t size);

/* The time of messages that are published now, nanoseconds since 1970: not before *last_time. */
uint64_t bide_log_time_(uint64_t *last_time);

/* A message in memory. Its bytes are elsewhere: key, headers, data. */
struct log_slot {
    uint64_t time;
    uint32_t key_size;
    uint32_t encoded_size;
    uint32_t size;
    uint32_t unused;
};

/* Writes a message that is published at `time`. `bytes` has room for a message of the log's size. */
void bide_log_slot_fill_(struct log_slot *slot, uint8_t *bytes, const bide_log_message *message,
                         uint64_t time);

/*
 * Completes a delivered message, which points to `bytes`, of which there are `size`. A slot with
 * sizes that do not fit, which another process may have written, gives a message without bytes.
 */
void bide_log_slot_read_(const struct log_slot *slot, const uint8_t *bytes, uint32_t size,
                         bide_log_message *message);

#endif
