/*
 * The functions of the commands. Each is called with a request that has a permitted number of
 * arguments.
 */
#ifndef KV_COMMANDS_H
#define KV_COMMANDS_H

#include "kv.h"

typedef void command_function(struct client *client);

/* A command: its description for clients, and the checks before it runs. */
struct command {
    const char *name; /* in capitals */
    command_function *run;
    int min_arguments,
        max_arguments; /* arguments, counting the name; max_arguments -1: any number */
    enum { READS = 1, WRITES = 2, OTHER = 4, MESSAGES = 8 } kind;
    int first_key, last_key, step; /* as redis reports them */
};

extern const struct command commands[];
extern const size_t command_count;

command_function command_get, command_set, command_setnx, command_setex, command_psetex,
    command_getset, command_getdel, command_mget, command_mset, command_append, command_strlen,
    command_incr, command_decr, command_incrby, command_decrby, command_del, command_exists,
    command_expire, command_pexpire, command_expireat, command_pexpireat, command_ttl, command_pttl,
    command_persist, command_type, command_keys, command_scan, command_dbsize, command_flush,
    command_publish, command_subscribe, command_unsubscribe, command_psubscribe,
    command_punsubscribe, command_pubsub, command_ping, command_echo, command_select,
    command_config, command_command, command_hello, command_client, command_info, command_save,
    command_bgsave, command_bgrewriteaof, command_lastsave, command_time, command_quit,
    command_shutdown;

/* ---- Helpers of several commands ---- */

static inline void reply_syntax_error(struct client *client)
{
    REPLY(client, "-ERR syntax error");
}

static inline void reply_no_memory(struct client *client)
{
    REPLY(client, "-OOM out of memory");
}

/* Parses an argument as a number; if it is none, replies with an error and returns false. */
bool argument_number(struct client *client, size_t i, int64_t *number);

/* Removes the part of the reply between two offsets. */
void reply_drop(struct client *client, size_t from, size_t to);

/*
 * Starts an array whose count is not known yet, and returns where it begins; the other call
 * completes its head.
 */
size_t reply_start_array(struct client *client);
void reply_finish_array(struct client *client, size_t begin, size_t count);

/*
 * True if the replies of the client are too large to be continued: an array of several values is an
 * error instead. Or its memory is exhausted.
 */
static inline bool client_refuses_reply(const struct client *client)
{
    return client->is_broken ||
           buffer_used(&client->out) > client->kv->options.reply + CLIENT_MAX_REPLIES;
}

/* Replies that several values are too large for one reply. */
void reply_too_large(struct client *client);

/*
 * As reply_finish_array; but if the array is too large, an error replaces it. Returns false then.
 */
bool finish_listing(struct client *client, size_t begin, size_t count);

#endif
