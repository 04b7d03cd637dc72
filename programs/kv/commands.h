/* The functions of the commands: each has a request with as many arguments as it allows. */
#ifndef KV_COMMANDS_H
#define KV_COMMANDS_H

#include "kv.h"

typedef void command_function(struct client *client);

/* What clients are told of it, and what is asked before it is run. */
struct command {
    const char *name; /* in capitals */
    command_function *run;
    int min, max; /* arguments with the name; most -1: any number */
    enum { READS = 1, WRITES = 2, OTHER = 4, MESSAGES = 8 } kind;
    int first_key, last_key, step; /* as redis tells of them */
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

/* ---- What several of them need ---- */

static inline void reply_syntax_error(struct client *client)
{
    REPLY(client, "-ERR syntax error");
}

static inline void reply_no_memory(struct client *client)
{
    REPLY(client, "-OOM there is no memory for this");
}

/* An argument as a number; or false, and the reply says so. */
bool argument_number(struct client *client, size_t i, int64_t *number);

/* Takes back what was replied between two places, each a number of bytes that were there. */
void reply_drop(struct client *client, size_t from, size_t to);

/* Where the head of an array begins whose count is not known yet, and its end. */
size_t reply_begin_array(struct client *client);
void reply_end_array(struct client *client, size_t begin, size_t count);

#endif
