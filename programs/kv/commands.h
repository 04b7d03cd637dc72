/*
 * The functions of the commands. Each is called with a request that has a permitted number of
 * arguments.
 */
#ifndef KV_COMMANDS_H
#define KV_COMMANDS_H

#include "kv.h"

typedef void command_function(struct client *client);

enum {
    READS = 1,
    WRITES = 2,
    OTHER = 4,
    MESSAGES = 8, /* permitted while the client has subscriptions */
    AT_ONCE = 16, /* not queued in a transaction */
    ALONE = 32,   /* not permitted in a transaction */
    OPEN = 64,    /* permitted without the password */
    GROWS = 128,  /* refused without memory below the limit, as redis has it */
    HIDDEN = 256  /* from clients that monitor */
};

/* A command: its description for clients, and the checks before it runs. */
struct command {
    const char *name; /* in capitals */
    command_function *run;
    int min_arguments,
        max_arguments;             /* arguments, counting the name; max_arguments -1: any number */
    unsigned kind;                 /* bits of the next enum */
    int first_key, last_key, step; /* as redis reports them */
};

extern const struct command commands[];
extern const size_t command_count;

/*
 * False if the client's request changes no key: the command never does, or only with an option that
 * is not there.
 */
bool command_may_change(struct client *client, const struct command *command);

/*
 * False if the request may run: it needs no memory, or some has been made free if necessary. Otherwise it has a reply, or runs
 * again in the client's next turn. Only for a limit of memory that is not 0.
 */
bool command_lacks_room(struct client *client, const struct command *command);

command_function command_lcs, command_get, command_set, command_setnx, command_setex,
    command_psetex, command_getset, command_getdel, command_mget, command_mset, command_append,
    command_strlen, command_incr, command_decr, command_incrby, command_decrby, command_del,
    command_exists, command_expire, command_pexpire, command_expireat, command_pexpireat,
    command_ttl, command_pttl, command_getex, command_getrange, command_setrange, command_msetnx,
    command_incrbyfloat, command_rename, command_renamenx, command_copy, command_randomkey,
    command_expiretime, command_pexpiretime, command_hset, command_hmset, command_hsetnx,
    command_hdel, command_hincrby, command_hincrbyfloat, command_hget, command_hstrlen,
    command_hexists, command_hlen, command_hmget, command_hgetall, command_hkeys, command_hvals,
    command_hscan, command_hrandfield, command_sadd, command_srem, command_smove, command_sismember,
    command_smismember, command_scard, command_smembers, command_combine_sets,
    command_combine_sorted, command_spop, command_srandmember, command_sintercard, command_sscan,
    command_setbit, command_getbit, command_bitcount, command_bitpos, command_bitop,
    command_bitfield, command_bitfield_ro, command_sort, command_sort_ro, command_lpush,
    command_rpush, command_lpushx, command_rpushx, command_lpop, command_rpop, command_lmove,
    command_rpoplpush, command_lmpop, command_blpop, command_brpop, command_blmpop, command_blmove,
    command_brpoplpush, command_llen, command_lindex, command_lrange, command_lset, command_zadd,
    command_zincrby, command_zrem, command_zcard, command_zscore, command_zmscore, command_zrank,
    command_zrevrank, command_zpopmin, command_zpopmax, command_zmpop, command_bzpopmin,
    command_bzpopmax, command_bzmpop, command_zrandmember, command_zscan, command_zcount,
    command_zlexcount, command_zrange, command_zrangestore, command_zrevrange,
    command_zrangebyscore, command_zrevrangebyscore, command_zrangebylex, command_zrevrangebylex,
    command_zremrangebyrank, command_zremrangebyscore, command_zremrangebylex, command_zintercard,
    command_lpos, command_linsert, command_lrem, command_ltrim, command_object, command_persist,
    command_type, command_keys, command_scan, command_dbsize, command_flush, command_publish,
    command_subscribe, command_unsubscribe, command_psubscribe, command_punsubscribe,
    command_pubsub, command_monitor, command_multi, command_exec, command_discard, command_watch,
    command_unwatch, command_ping, command_echo, command_select, command_config, command_command,
    command_hello, command_auth, command_reset, command_client, command_info, command_save,
    command_bgsave, command_bgrewriteaof, command_lastsave, command_time, command_quit,
    command_shutdown;

/* ---- Helpers of several commands ---- */

/*
 * Finds the value of a key, to be used as one of that type: *entry is NULL if there is none. If it has
 * another type, replies with an error and returns false.
 */
bool find_value(struct client *client, struct bytes key, enum value_type type,
                struct entry **entry);

/* As find_value, of a command that does not change the key: if there is none, that is an event. */
bool find_to_read(struct client *client, struct bytes key, enum value_type type,
                  struct entry **entry);

/*
 * Finds the first of the keys that has a value: *found is the index of the argument, or 0. If it has another type,
 * replies with an error and returns false.
 */
bool find_first_value(struct client *client, enum value_type type, size_t first_key, size_t keys,
                      size_t *found);

/*
 * The items from index `first` to `last`, both included, as those of GETRANGE. Negative indexes count from the end.
 * Returns how many of the `count` items these are, from *begin on.
 */
size_t range_of(int64_t first, int64_t last, size_t count, size_t *begin);

/*
 * HDEL, SREM, ZREM: removes the elements of the arguments behind the key, logs that under a name, notifies of the event and replies.
 */
void remove_named(struct client *client, enum value_type type, const char *name, enum notify class,
                  const char *event,
                  bool (*remove)(struct collection *collection, struct bytes element));

/* Parses the count of LPOP and the like: [count]. Returns false after an error reply. */
bool read_pop_count(struct client *client, bool *has_count, int64_t *count);

/* An end of a list, or of a sorted set. */
enum end { FIRST, LAST };

/* Parses an argument as one of two words. Returns false after an error reply. */
bool read_end(struct client *client, size_t i, const char *const ends[2], enum end *end);

/* The arguments of LMPOP and the like: count key [key ...] END [COUNT count]. */
struct multiple_pop {
    size_t first_key, keys;
    enum end end;
    int64_t count;
};

/* Parses them; `i` is the index of the first. Returns false after an error reply. */
bool read_multiple_pop(struct client *client, size_t i, const char *const ends[2],
                       struct multiple_pop *pop);

/*
 * Sets a key's value, a string, and its expiry, `time`: 0 for none, or RECORD_KEEPS_TIME. Logs it, and notifies of the
 * event. Returns false after an error reply.
 */
bool assign_value(struct client *client, struct bytes key, struct bytes value, int64_t time,
                  const char *event);

/*
 * Logs the request's arguments from the key on, as a record of that name; there is always space for
 * it or the server stops.
 */
void log_request(struct client *client, const char *name);

/*
 * Replies with entries of a table that are drawn, for HRANDFIELD and the like. `table` is NULL if there is no such
 * key. Without `has_count`, the reply is the name of one. A negative count may draw an entry several times.
 * `reply` appends an entry, with its value if there are such.
 */
typedef void reply_drawn_function(struct client *client, const struct entry *entry, bool has_value);
void reply_drawn(struct client *client, struct table *table, bool has_count, int64_t count,
                 bool has_values, reply_drawn_function *reply);

/*
 * Parses the count of HRANDFIELD and its like, argument 2, which is negative if an element may be there twice. Argument
 * 3, if there is one, must be the option. Returns false after an error reply.
 */
bool argument_draws(struct client *client, const char *option, int64_t *count);

/* ---- Fractions, in strings.c ---- */

/* The longest text of a long double with 17 digits behind the point. */
enum { FRACTION_SIZE = 5 * 1024 };

/* Parses the whole text as a number or an infinity. */
bool fraction_read(struct bytes text, long double *number);

/* Prints a sum to `text`. The size of the result is 0 if the sum is not finite. */
struct bytes fraction_add(char text[FRACTION_SIZE], long double a, long double b);

/* ---- More helpers ---- */

/* In pause.c: CLIENT PAUSE; and whether a request, which has been checked, is postponed. */
void client_pause(struct client *client);
bool pause_postpones(const struct client *client, const struct command *command);

/* In client_command.c: a client's name may have no spaces and no control characters. */
bool client_is_name(struct bytes name);
void client_set_name(struct client *client, struct bytes name);

/* Parses an argument as a number that is not negative; if it is none, replies and returns false. */
bool argument_count(struct client *client, size_t i, int64_t *count);

static inline void reply_syntax_error(struct client *client)
{
    REPLY(client, "-ERR syntax error");
}

/* Parses an argument as a number; if it is none, replies with an error and returns false. */
bool argument_number(struct client *client, size_t i, int64_t *number);

/* Removes the part of the reply between two offsets. */
void reply_drop(struct client *client, size_t from, size_t to);

/*
 * Appends space for the head of an array whose count is not known yet. Returns false if memory is
 * exhausted.
 */
bool buffer_append_head_space(struct buffer *buffer);

/*
 * Starts an array whose count is not known yet, and returns where it begins. One of the other calls
 * completes its head, which begins with that space.
 */
size_t reply_start_array(struct client *client);
typedef void finish_function(struct client *client, size_t begin, size_t count);
finish_function reply_finish_array, reply_finish_map, reply_finish_set;

/* ---- Replies in slices, between which others have their turn ---- */

/*
 * A slice of a reply with many elements of a collection, whose count is known. The reply is of one moment: if the collection
 * changes between slices, the reply is made anew in one step.
 *
 *     struct slice slice = slice_begin(client, collection, count);
 *     if (slice.next == 0)
 *         reply_array(client, count);
 *     for (size_t i = slice.next; i < count && !client_refuses_reply(client); client->kv->work++) {
 *         ... append element i ...
 *         if (++i < count && slice_is_over(client, &slice)) {
 *             slice_pause(client, &slice, i);
 *             return;
 *         }
 *     }
 *     slice_finish(client, &slice);
 */
struct slice {
    size_t begin;   /* of its replies in client->out */
    size_t next;    /* the first element; 0 in the first slice */
    uint64_t limit; /* of kv->work; UINT64_MAX if there is no other slice */
};

/* The work at which the client's turn ends. */
static inline uint64_t client_work_limit(const struct client *client)
{
    return client->work < CLIENT_MAX_WORK ? client->kv->work + CLIENT_MAX_WORK - client->work : 0;
}

/* `collection` may be NULL, or its type unknown. Small replies, and those in a transaction, are one slice. */
struct slice slice_begin(struct client *client, const struct collection *collection, size_t count);

static inline bool slice_is_over(const struct client *client, const struct slice *slice)
{
    return client->kv->work >= slice->limit ||
           (slice->limit < UINT64_MAX &&
            buffer_used(&client->out) - slice->begin >= CLIENT_MAX_REPLIES);
}

/*
 * Ends the slice. The request runs again in the client's next turn, at element `next`. Must be the last that a command
 * does.
 */
void slice_pause(struct client *client, const struct slice *slice, size_t next);

/* Makes the slices one reply, or an error if it is too large. Returns false then. */
bool slice_finish(struct client *client, const struct slice *slice);

/* Frees what has been kept of a request that is complete, or ends. */
void listing_clear(struct client *client);

/*
 * Replies with all entries of the collection of argument 1, in slices between which others have their turn. `finish`
 * completes the head. Returns false without a reply if the caller is to make it in one step: the collection is not large, or
 * has changed since the first slice, or it is a transaction, or there is no such collection. Must be the last that the
 * command does, unless it returns false.
 */
bool list_in_slices(struct client *client, enum value_type type, bool has_names, bool has_values,
                    finish_function *finish);

/*
 * Replies with the names in a table that match a pattern, or all if its data is NULL, in slices. The entries of `keys` must not have
 * expired; it may be NULL. Must be the last that the command does.
 */
void list_names(struct client *client, struct table *table, struct bytes pattern,
                const struct keyspace *keys);

/* True if so many more bytes are too large a reply, or the client's memory is exhausted. */
static inline bool client_refuses_more(const struct client *client, size_t more)
{
    return client->is_broken ||
           buffer_used(&client->out) + buffer_used(&client->listing.names) + more >
               client->kv->options.reply + CLIENT_MAX_REPLIES;
}

/*
 * True if the replies of the client are too large to be continued: an array of several values is an
 * error instead. Or its memory is exhausted.
 */
static inline bool client_refuses_reply(const struct client *client)
{
    return client_refuses_more(client, 0);
}

/* Replies that several values are too large for one reply. */
void reply_too_large(struct client *client);

/*
 * For an array or a map whose count stood before its elements: if it is too large, an error replaces
 * it. Returns false then.
 */
bool finish_counted(struct client *client, size_t begin);

/*
 * As reply_finish_array; but if the array is too large, an error replaces it. Returns false then.
 */
bool finish_listing(struct client *client, size_t begin, size_t count);

#endif
