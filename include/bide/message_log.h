/*
 * Message logs: messages are appended at one end, stay there, and are read by any number of
 * groups of consumers. One interface for logs of different reach; a URL selects the engine. In a
 * library of its own, bide-log. Floor: log.
 *
 * A log does not promise:
 *
 * - Dense positions. Positions grow along a log; they may have gaps.
 * - Order across partitions. Messages are ordered within a partition only.
 * - Exactly one delivery. A message is delivered at least once to each group. It is delivered
 *   again if it was rejected, or if its consumer ended before it acknowledged the message.
 *   `position` identifies a message, and `deliveries` above 1 marks a repetition.
 * - That a failed publish did not happen. A publish that ends with an error, such as -ETIMEDOUT,
 *   may have stored messages, unless its engine says otherwise.
 *
 *     bide_try(bide_log_open(&self->operation, &self->log, "ring:jobs?window=1024"));
 *
 *     self->message = (bide_log_message){.data = self->text, .size = self->length};
 *     bide_try(bide_log_publish(&self->operation, self->log, &self->message, 1)); // a producer
 *
 *     bide_try(bide_log_subscribe(&self->operation, &self->consumer, self->log,
 *                                 &(bide_log_consumer_options){.group = "billing"}));
 *     bide_try(bide_log_read(&self->operation, &self->consumer, self->messages, 16));
 *     ... self->operation.count of them ...
 *     bide_try(bide_log_acknowledge(&self->operation, &self->consumer, self->messages,
 *                                   self->operation.count));
 *
 *     publish --> | window | --> read --> acknowledge         it leaves the group
 *                                    \--> reject, delay       it is delivered to the group again
 *
 * A log has a window, which bounds its memory. A publish waits while its messages do not fit. It
 * ends when they are as safe as the URL's `level` demands; a whole batch is one wait. Each
 * consumer is in a group. Each message is delivered to one consumer of each group, and stays with
 * that consumer until it is acknowledged, rejected, or the consumer unsubscribes.
 *
 * URLs are "ENGINE:NAME?OPTION=VALUE&OPTION=VALUE". "%41" is the byte with that number in
 * hexadecimal. Unknown options and values are errors.
 *
 *     option   value                              default             engines
 *     level    sent, stored, majority, synced     the engine's best   all; others are -ENOTSUP
 *     window   messages                           1024                all
 *     size     bytes of one message               4096                all
 *     segment  bytes of a segment, 4096 or more   64 MiB              file
 *     retain   bytes, 4096 or more                everything          file
 *     keep_for seconds, 1 to 2^32                 for ever            file, redis
 *     keep     messages, 1 to 2^62                everything          redis
 *     redeliver seconds, 1 to 86400               30                  redis
 *     timeout  seconds, 1 to 3600                 5                   redis
 *     replicas 1 to 100                           none                redis
 *     create   yes; no: -ENOENT if there is none  yes                 ring, shm, file
 *
 *     engine   levels                 window                      name         reads in place
 *     stdio    sent                   1 to 2^24                   none         yes
 *     ring     sent                   2 to 2^24, a power of two   63 bytes     yes
 *     shm      sent, stored           2 to 2^24, a power of two   ///NAME      yes
 *     file     sent, stored, synced   1 to 2^24                   ///path      no
 *     redis    all; `stored` unless   1 to 2^24                   //host/stream  no
 *              the URL has one
 *
 * "ring:NAME" is a ring in this process's memory. All handles that are open with the same name
 * share it; it ends with the last of them. "ring:" without a name is the handle's own. It keeps
 * the newest `window` messages. A publish waits for the slowest group: a slot is overwritten
 * after every group has acknowledged its message. A named group stays until the ring ends or
 * bide_log_remove_group, whether or not it has consumers. Without groups nothing is waited for. A
 * publish that fails has published nothing. `window` and `size` are the ring's; they must agree
 * in all handles that name them.
 *
 * "shm:///NAME" is a ring in memory that processes of one machine share: the object NAME of
 * shm_open(3), of 1 to 128 bytes, without "/" and not beginning with ".". It is made if it is not
 * there, for this user alone. An object that is something else, another user's or a symbolic link is
 * refused and not changed. The object stays, with its messages and named groups, until it is removed
 * (shm_unlink(3)) or the machine stops. Windows, groups and waits are as those of a ring, for all
 * processes. 32 processes and 16 groups at most have it at a time. If a process is killed, the others
 * notice: its claims are released, what its consumers had is delivered again, and a publish that it
 * had begun has published all of its messages or none. The processes trust each other: one that
 * writes to the memory otherwise can stop or crash the others. Messages that are read are in memory
 * that the consumer cannot write. A process that is stopped within an operation stops the others
 * meanwhile. Two threads of the library wait for other processes, while a log is open. Coroutines of a
 * test loop may use a log that no other process has open. A child of fork leaves handles alone. The
 * processes are in one namespace of process identifiers. Linux has this engine (pidfd_open(2): Linux
 * 5.3); elsewhere it is -EPROTONOSUPPORT.
 *
 * "file:///path" is a directory, which is made if it is not there, and is otherwise empty or such a
 * log. One process at a time has it open, by any number of handles; others get -EBUSY. Publishes
 * and acknowledgements that wait at the same time are written together; the level `synced` adds one
 * fdatasync(2) for all of them, also to acknowledgements. `sent` is given as `stored`. Groups do
 * not hold publishes back: the window bounds the messages of publishes that are under way, and
 * messages that a group has not acknowledged. A publish removes the oldest segment if the newer
 * ones have `retain` bytes, or if all of its messages are older than `keep_for`; groups pass over
 * what was removed. The newest segment stays; a message goes into a new one if those of the newest
 * are older than `keep_for`. Ages are by the system's clock, as `time` is. Named groups, and what
 * they have acknowledged, outlive the process; `deliveries` counts since the log was opened.
 * Messages that are read are copies, which stay as long as they would in place. A publish that ends
 * with an error has published nothing if operation->uncertain is false. After a sync that failed,
 * publishes of the open log fail; when it is opened again, its newest segment is written again. The
 * first record of the newest segment that a loss of power has torn, and all behind it, are moved to
 * a file beside, and operation->problem names it. Positions of messages that were lost so are given
 * again. If a later record says that the torn one was synced, it is damage, and the open ends with
 * -EBADMSG. The calls are made on threads of the library, so no loop stalls, and coroutines on any
 * loop, thread or test loop may use a handle. A coroutine is not destroyed while it waits for such
 * a call (blocking.h); its wait ends after the call, also when it is cancelled. A child of fork
 * leaves handles alone. There is one partition. There are no readers in other processes.
 *
 * "redis://[user:password@]host[:port]/stream" is a stream of a Redis server, 6.2 or newer. Messages are
 * entries, and named groups are the server's: any process may have the log open. Groups do not hold
 * publishes back. The window bounds the messages of publishes under way, and those that a group's
 * consumers of the handle have. A publish is sent once: if the connection is lost then, it ends with
 * -ECONNRESET, and operation->uncertain is true. `synced` is an error unless the server's
 * configuration syncs each write; `majority` needs `replicas`, and means that a majority of the
 * server and its replicas has the message in memory. `keep` and `keep_for` remove old messages,
 * also if a group has not read them. What a process has that dies is delivered to others after
 * `redeliver`. Each call to the server ends within `timeout`, or fails with -ECONNABORTED. Messages that are read
 * are copies, as for file. Calls are made on threads of the handle, and a wait for one ends after it, as for
 * file. Coroutines of a test loop cannot use it. A child of fork leaves handles alone. bide_log_lag
 * and bide_log_remove_group make calls, which block, and end with their errors too. Linux has this
 * engine, unless the library was built without it; elsewhere it is -EPROTONOSUPPORT. See
 * docs/message-logs-redis.md.
 *
 * "stdio:" is standard input and output. Publishes write to standard output, and a consumer reads
 * standard input: one message on each line, with its key and headers (docs/message-logs-stdio.md).
 * Nothing is kept. Positions are the numbers of lines, from 1, of each of the two; `time` is that of
 * reading. One handle of a process reads and one writes, the first that does; others get -EBUSY until it is
 * destroyed. A handle has one consumer at a time, without a group's name, from the beginning; other options
 * are -ENOTSUP. The consumer's acknowledgement frees the line. Lines that were not acknowledged are
 * delivered to the handle's next consumer; a handle that is destroyed loses lines that it has read. While
 * there is a consumer, lines are read ahead, up to `window` that are not acknowledged and 1 MiB or one
 * line that are not delivered. A line that is no message, or a message larger than `size`, is passed over:
 * the read ends with -EBADMSG, messages[0].position is its, and operation->problem says why. So it is with
 * a last line without its line feed. At the end of the input, and when the handle is closed, reads return
 * the lines that are there, and then -EPIPE. A closed descriptor is -EBADF. The level `sent` says that the
 * system has the bytes. After a write that failed publishes try again, unless a part of a line was
 * written: then they fail too. SIGPIPE is not raised. A thread of the handle reads and writes, without
 * changing the descriptors; waits for it are cancelled at once, and it ends with the handle. A publish that
 * was cancelled may be written until then. A coroutine without a scheduler resumes on the thread, where it
 * may not block or destroy the handle. Coroutines of a test loop cannot use it. A child of fork leaves
 * handles alone.
 *
 * Between machines there is no engine of the library's own.
 *
 * Roles: any thread may publish, claim, close, acknowledge and reject. One coroutine at a time
 * reads by a consumer. Handles and consumers are created and destroyed by one thread at a time.
 *
 * Why it is correct: src/log/state.h, src/log/ring.c, src/log/shm.h, src/log/bell.h, src/log/file.c,
 * src/log/group.h, src/log/redis.h and src/log/stdio_engine.h.
 */
#ifndef BIDE_MESSAGE_LOG_H
#define BIDE_MESSAGE_LOG_H

#include "bide/blocking.h"
#include "bide/deadline.h"
#include "bide/detail/beside.h"
#include "bide/mutex.h"
#include "bide/notify.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* An open log: a handle, which bide_log_open allocates. */
typedef struct bide_log bide_log;

/* How safe a message is when its publish ends; each level includes those before it. */
typedef enum bide_log_level {
    BIDE_LOG_SENT,     /* the engine has it */
    BIDE_LOG_STORED,   /* one server has stored it; it outlives this process */
    BIDE_LOG_MAJORITY, /* a majority of the servers has stored it */
    BIDE_LOG_SYNCED    /* it is on stable storage; it outlives the machine's power */
} bide_log_level;

/* The most messages of a window, and the most bytes of a message. */
#define BIDE_LOG_WINDOW_MAX ((uint32_t)1 << 24)
#define BIDE_LOG_SIZE_MAX   ((uint32_t)1 << 30)

/* The bytes of a position's text, with its terminator; and of a description of a problem. */
#define BIDE_LOG_POSITION_TEXT 48
#define BIDE_LOG_PROBLEM_TEXT  160

/*
 * A place in a log. Its content is the engine's: compare, print and parse it by the functions
 * below. All zero is before the first message.
 */
typedef struct bide_log_position {
    uint64_t high_;
    uint64_t low_;
} bide_log_position;

/* A name and a value that travel with a message. */
typedef struct bide_log_header {
    const char *name; /* 1 to 255 bytes; not terminated in a message that was read */
    size_t name_size;
    const void *value;
    size_t value_size;
} bide_log_header;

/*
 * A message. A producer sets the first group, and may leave the rest zero. In a message that was
 * read, pointers point into the log. They are valid until it is acknowledged or rejected, or its
 * consumer unsubscribes.
 */
typedef struct bide_log_message {
    const void *data; /* may be NULL if size is 0 */
    size_t size;
    const void *key; /* selects the partition; NULL: none */
    size_t key_size;
    const bide_log_header *headers; /* of a producer */
    size_t header_count;

    const void *encoded; /* the headers of a message that was read; published after `headers` */
    size_t encoded_size;

    bide_log_position position; /* set when it is read, and so are the next two */
    uint64_t time;              /* of its publishing: nanoseconds since 1970 */
    uint32_t deliveries;        /* how often it was delivered to the group */

    bide_log_position published; /* where it was published, set when that has ended with 0 */
} bide_log_message;

/* Room in the window for `count` messages. The holder's, until it is used up or released. */
typedef struct bide_log_claim {
    bide_log *log;
    uint32_t count;
} bide_log_claim;

/* Where a group begins, if it does not exist yet. */
typedef enum bide_log_from {
    BIDE_LOG_FROM_BEGINNING, /* with the oldest message that is kept */
    BIDE_LOG_FROM_END,       /* with the next one that is published */
    BIDE_LOG_FROM_POSITION,  /* with the first one after options.position */
    BIDE_LOG_FROM_TIME       /* with the first one published at options.time or later */
} bide_log_from;

typedef struct bide_log_consumer_options {
    const char *group; /* 1 to 63 bytes; NULL: a group of its own, which ends with the consumer */
    bide_log_from from;
    bide_log_position position;
    uint64_t time; /* nanoseconds since 1970 */
} bide_log_consumer_options;

/* A consumer. The caller's memory until it has unsubscribed and its wait has ended. */
typedef struct bide_log_consumer {
    bide_log *log;
    struct bide_log_group_ *group; /* NULL: not subscribed */
    uint64_t owner;                /* the library's number of it */
} bide_log_consumer;

/* The wait for a batch of an engine that writes them. Its members are the library's. */
typedef struct bide_log_commit_ {
    bide_task task;
    bide_log *log;
    struct bide_log_batch_ *batch; /* or NULL */
    uint32_t first;                /* the place in the batch of the first message */
    bool leads;
    bide_blocking *threads;
    bide_blocking_call call;
    bide_notify_waiter notified;
} bide_log_commit_;

/* One operation on a log. The caller's memory until it has ended. */
typedef struct bide_log_operation {
    bide_task task;
    uint32_t count; /* the messages that were published, read, acknowledged or rejected */
    bool uncertain; /* of a publish that failed: its messages may have been published */
    char problem[BIDE_LOG_PROBLEM_TEXT]; /* of bide_log_open that failed: engine, log, reason; or,
                                            if it opened, of what was kept beside; of a read of
                                            stdio that ended with -EBADMSG; or empty */

    /* of the operation */
    bide_log *log;
    bide_log **opened;
    const char *url;
    bide_log_consumer *consumer;
    bide_log_consumer_options options;
    bide_log_message *messages;
    const bide_log_message *acknowledged;
    bide_log_claim *claim;
    bide_log_position position;
    uint64_t delay;
    uint64_t due;
    uint32_t wanted;
    uint32_t claimed;
    uint32_t fetched;
    int status;
    bool has_turn;
    bool is_fetching;
    bide_blocking *threads;
    bide_blocking_call call;
    bide_log_commit_ commit;
    bide_mutex_waiter turn;
    bide_notify_waiter notified;
    bide_with_deadline_operation limited;
} bide_log_operation;
BIDE_AWAIT_VALUE(bide_log_operation, long, count);

/* ---- Logs ---- */

/*
 * Opens the log that `url` names, and stores the handle in *log; NULL if it fails, and then
 * operation->problem says why. `url` must stay until the operation has ended.
 * Also a macro, so that the linker names bide-log if it is missing.
 * Threads: any. Errors: -EINVAL (the URL), -EPROTONOSUPPORT (no such engine), -ENOTSUP (the engine
 * does not give that level), -ENOENT (create=no, and there is none), -EEXIST (it has other options;
 * or, for file and shm, it is something else), -EPERM (shm: another user's, or others may open it),
 * -EBUSY (file: another process has it open), -EUSERS (shm: 32 processes have it open), -EAGAIN and
 * -EMFILE (stdio: no thread or descriptors), -EBADMSG (a file of it is not the log's, or is
 * damaged: nothing is cut), -ENOMEM, for file and shm also those of the system's calls, -ECANCELED,
 * -ETIMEDOUT. Suspends: never for ring, otherwise as the engine does. Cancel-safe: yes, nothing is
 * open. Progress: blocks while another handle of the same name opens or closes; for file and shm,
 * on a thread for blocking calls, while any log of the engine opens or closes, with all its calls
 * on files. So does fork(2), on its thread.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_log_open(bide_log_operation *operation, bide_log **log, const char *url);
#define bide_log_open(first, ...) \
    bide_log_open(BIDE_BESIDE_(bide_link_with_lbide_log_, first), __VA_ARGS__)

/*
 * Closes the handle: publishes and claims, now and later, end with -EPIPE. Claims that are held
 * may still be published. Reads by consumers of the handle return the messages that are left, also
 * what a cancelled publish has left to be written, and then -EPIPE. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters; for shm as
 * bide_log_publish.
 */
void bide_log_close(bide_log *log);

/*
 * Frees the handle. Its operations have ended, its claims are released, and its consumers have
 * unsubscribed: otherwise it is misuse, which is detected for consumers and claims. Each call of
 * bide_log_close(), bide_log_unsubscribe() and bide_log_claim_release() with it has returned: that
 * a reader saw the end does not mean that the closing call has. NULL does nothing.
 * Threads: one at a time. Progress: blocks while another handle of the same name opens or closes.
 * The engines `file` and `shm` have one lock for all their logs: there it blocks while any of them opens
 * or closes, with all the calls on files. The last handle of a log also stores what is left and closes the
 * log's files. fork(2) waits for that lock too. For redis it blocks until the calls that are made have
 * ended and other handles can have what consumers have left: about a `timeout` if the server does not answer.
 */
void bide_log_destroy(bide_log *log);

/*
 * The level, the window in messages and the largest size of a message that the handle has.
 * Threads: any. Progress: wait-free.
 */
bide_log_level bide_log_level_of(const bide_log *log);
uint32_t bide_log_window(const bide_log *log);
uint32_t bide_log_size_max(const bide_log *log);

/*
 * Removes a group by its name. Its messages may then be overwritten. For file the removal is stored
 * with the next change of a group, or when the last handle is destroyed.
 * Threads: any. Errors: -ENOENT (there is none), -EBUSY (it has consumers). Progress: lock-free,
 * linear in the waiters.
 */
int bide_log_remove_group(bide_log *log, const char *group);

/*
 * Sets *count to the messages that the group has not acknowledged, including messages that are
 * delivered now.
 * Threads: any. Errors: -ENOENT (there is no such group). Progress: wait-free, linear in the
 * groups.
 */
int bide_log_lag(bide_log *log, const char *group, uint64_t *count);

/* ---- Producers ---- */

/*
 * Publishes `count` messages, in this order, and waits until all of them are as safe as the
 * handle's level. Then `published` of each is set. Their bytes are copied before it ends, so the
 * messages must stay until then. Waiting publishes of a handle are served in their order.
 * Threads: any. Errors: -EINVAL (no message, more than the window, or a header's name), -EMSGSIZE
 * (key, headers and data are more than the handle's size), -EPIPE (closed), -ECANCELED, -ETIMEDOUT;
 * for file -ENOMEM, -EAGAIN (no threads) and those of the system's calls, such as -ENOSPC; for
 * stdio these too, such as -EPIPE, and -EBUSY (another handle writes). Suspends: if there is no
 * room, and as the engine does. Cancel-safe: no, messages may have been published if
 * operation->uncertain is true; yes for ring and shm. Progress: lock-free for ring, except for
 * other threads' short accesses; for shm also for those of other processes.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_log_publish(bide_log_operation *operation, bide_log *log,
                               bide_log_message *messages, uint32_t count);

/*
 * Claims room for `count` messages, so that a publish does not wait for it. *claim is held if the
 * operation ends with 0.
 * Threads: any. Errors: -EINVAL (0, or more than the window), -EPIPE (closed), -ECANCELED,
 * -ETIMEDOUT. Suspends: if there is no room. Cancel-safe: yes, nothing is claimed. Progress: as
 * bide_log_publish.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_log_reserve(bide_log_operation *operation, bide_log *log, uint32_t count,
                               bide_log_claim *claim);

/*
 * As bide_log_publish, in room that was claimed, also if the handle was closed since.
 * claim->count shrinks by `count` if it ends with 0, or is cancelled while its messages wait to be
 * written with those of others: they keep their room until they are written.
 * Threads: the claim's holder's. Errors: -EINVAL (no message, more than the claim, or a header's
 * name), -EMSGSIZE and the system's (as bide_log_publish), -ECANCELED, -ETIMEDOUT. Suspends: never
 * for ring and shm, otherwise as the engine does. Cancel-safe: as bide_log_publish. Progress: as
 * bide_log_publish.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_log_publish_claimed(bide_log_operation *operation, bide_log_claim *claim,
                                       bide_log_message *messages, uint32_t count);

/*
 * Returns the room that is left of a claim. A claim of 0 does nothing.
 * Threads: the claim's holder's. Suspends: never. Progress: as bide_log_publish.
 */
void bide_log_claim_release(bide_log_claim *claim);

/* ---- Consumers ---- */

/*
 * Makes `consumer` a member of the group that the options name. A group that exists continues
 * where it is; options->from is for a new one. A place that is no longer kept is the oldest that
 * is. NULL for the options is a group of its own, from the beginning. The options are copied; the
 * group's name must stay until it has ended.
 * Threads: any. Errors: -EINVAL (the group's name, or `from`), -ENOMEM, -EPIPE (closed), -ENOSPC
 * (shm: 16 groups, or no memory), -ECANCELED, -ETIMEDOUT; for file also those of the system's
 * calls; for stdio -ENOTSUP, -EBUSY (there is a consumer, or another handle reads) and -EBADF.
 * Suspends: never for ring and shm, otherwise as the engine does. Cancel-safe: yes, it is not
 * subscribed. Progress: blocks while another thread accesses the log's groups; for shm also while
 * another process does, and a new group's memory is allocated by a system call, during which the
 * others wait.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_log_subscribe(bide_log_operation *operation, bide_log_consumer *consumer,
                                 bide_log *log, const bide_log_consumer_options *options);

/*
 * Ends the membership. Messages that were delivered to the consumer, and not acknowledged, are
 * delivered to its group again. A read that is under way ends with -EPIPE. More than once is
 * once.
 * Threads: any. Suspends: never. Progress: as bide_log_publish, linear in the group's messages that
 * are not acknowledged.
 */
void bide_log_unsubscribe(bide_log_consumer *consumer);

/*
 * Waits for messages, and reads up to `max` of the available ones, at least one. operation->count
 * is how many. Messages that were rejected come first, when their delay has passed. A group that
 * has as many unacknowledged messages as the window waits until one is acknowledged.
 * Threads: any, one read of a consumer at a time. Errors: -EINVAL (`max` is 0), -EPIPE (not
 * subscribed, or the handle is closed and none is left), -ECANCELED, -ETIMEDOUT; for file -EBADMSG
 * (a message is damaged, and messages[0].position is its), -ENOMEM and those of the system's calls;
 * for stdio likewise, and the next read continues behind it. Suspends: if there is no message, and
 * always for file. Cancel-safe: yes, none is delivered. Progress: as bide_log_publish.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_log_read(bide_log_operation *operation, bide_log_consumer *consumer,
                            bide_log_message *messages, uint32_t max);

/*
 * Acknowledges `count` messages that were delivered to the consumer, in any order: the group is
 * done with them. operation->count is how many were. The others are not changed by that.
 * Threads: any. Errors: -ESTALE (one was not with the consumer: it was acknowledged, rejected or
 * given back), -EINVAL (not subscribed), -ECANCELED, -ETIMEDOUT; for file those of the system's
 * calls: then the group is done with them, and may have them again after a restart. Suspends:
 * never for ring and shm, otherwise as the engine does. Cancel-safe: no, messages may have been
 * acknowledged; yes for ring and shm. Progress: as bide_log_publish.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_log_acknowledge(bide_log_operation *operation, bide_log_consumer *consumer,
                                   const bide_log_message *messages, uint32_t count);

/*
 * Acknowledges every message that was delivered to the consumer, at `position` or before.
 * operation->count is how many.
 * Threads: any. Errors: -EINVAL (not subscribed), -ECANCELED, -ETIMEDOUT. Suspends: as
 * bide_log_acknowledge. Cancel-safe: as bide_log_acknowledge. Progress: as bide_log_publish,
 * linear in the window.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_log_acknowledge_up_to(bide_log_operation *operation, bide_log_consumer *consumer,
                                         bide_log_position position);

/*
 * Rejects `count` messages that were delivered to the consumer: each is delivered to the group
 * again, to any of its consumers, `delay` nanoseconds from now or later. operation->count is how
 * many.
 * Threads: any. Errors: as bide_log_acknowledge. Suspends: as bide_log_acknowledge. Cancel-safe:
 * as bide_log_acknowledge. Progress: as bide_log_publish.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_log_reject(bide_log_operation *operation, bide_log_consumer *consumer,
                              const bide_log_message *messages, uint32_t count, uint64_t delay);

/* ---- Messages and positions ---- */

/*
 * The next header of a message that was read. *at is 0 at first. False: there are no more.
 * Threads: any. Progress: wait-free.
 */
bool bide_log_next_header(const bide_log_message *message, size_t *at, bide_log_header *header);

/*
 * Compares two positions of one partition: negative, 0 or positive, as `a` is before, at or after
 * `b`.
 * Threads: any. Errors: none. Progress: wait-free.
 */
BIDE_INLINE int bide_log_position_compare(bide_log_position a, bide_log_position b)
{
    if (a.high_ != b.high_)
        return a.high_ < b.high_ ? -1 : 1;
    return a.low_ < b.low_ ? -1 : a.low_ > b.low_;
}

/*
 * Writes a position as text: printable ASCII without spaces, and a terminator.
 * BIDE_LOG_POSITION_TEXT bytes are enough.
 * Threads: any. Errors: -EMSGSIZE (it does not fit). Progress: wait-free.
 */
int bide_log_position_print(bide_log_position position, char *text, size_t size);

/*
 * Reads a position from text that bide_log_position_print has written: a whole terminated string.
 * *position is unchanged on errors.
 * Threads: any. Errors: -EINVAL (it is none), -ERANGE (too large). Progress: wait-free, linear in
 * the text.
 */
int bide_log_position_parse(bide_log_position *position, const char *text);

BIDE_EXTERN_C_END

#endif
