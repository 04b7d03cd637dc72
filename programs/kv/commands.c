/* The table of commands, lookup by name, and the loop that runs a client's requests. */
#include "commands.h"

#include "combine.h"

const struct command commands[] = {
    {"GET", command_get, 2, 2, READS, 1, 1, 1},
    {"SET", command_set, 3, -1, WRITES | GROWS, 1, 1, 1},
    {"SETNX", command_setnx, 3, 3, WRITES | GROWS, 1, 1, 1},
    {"SETEX", command_setex, 4, 4, WRITES | GROWS, 1, 1, 1},
    {"PSETEX", command_psetex, 4, 4, WRITES | GROWS, 1, 1, 1},
    {"GETSET", command_getset, 3, 3, WRITES | GROWS, 1, 1, 1},
    {"GETDEL", command_getdel, 2, 2, WRITES, 1, 1, 1},
    {"GETEX", command_getex, 2, -1, WRITES, 1, 1, 1},
    {"GETRANGE", command_getrange, 4, 4, READS, 1, 1, 1},
    {"SUBSTR", command_getrange, 4, 4, READS, 1, 1, 1},
    {"SETRANGE", command_setrange, 4, 4, WRITES | GROWS, 1, 1, 1},
    {"MGET", command_mget, 2, -1, READS, 1, -1, 1},
    {"MSET", command_mset, 3, -1, WRITES | GROWS, 1, -1, 2},
    {"MSETNX", command_msetnx, 3, -1, WRITES | GROWS, 1, -1, 2},
    {"APPEND", command_append, 3, 3, WRITES | GROWS, 1, 1, 1},
    {"STRLEN", command_strlen, 2, 2, READS, 1, 1, 1},
    {"LCS", command_lcs, 3, -1, READS, 1, 2, 1},
    {"INCR", command_incr, 2, 2, WRITES | GROWS, 1, 1, 1},
    {"DECR", command_decr, 2, 2, WRITES | GROWS, 1, 1, 1},
    {"INCRBY", command_incrby, 3, 3, WRITES | GROWS, 1, 1, 1},
    {"DECRBY", command_decrby, 3, 3, WRITES | GROWS, 1, 1, 1},
    {"INCRBYFLOAT", command_incrbyfloat, 3, 3, WRITES | GROWS, 1, 1, 1},
    {"HSET", command_hset, 4, -1, WRITES | GROWS, 1, 1, 1},
    {"HMSET", command_hmset, 4, -1, WRITES | GROWS, 1, 1, 1},
    {"HSETNX", command_hsetnx, 4, 4, WRITES | GROWS, 1, 1, 1},
    {"HDEL", command_hdel, 3, -1, WRITES, 1, 1, 1},
    {"HINCRBY", command_hincrby, 4, 4, WRITES | GROWS, 1, 1, 1},
    {"HINCRBYFLOAT", command_hincrbyfloat, 4, 4, WRITES | GROWS, 1, 1, 1},
    {"HGET", command_hget, 3, 3, READS, 1, 1, 1},
    {"HSTRLEN", command_hstrlen, 3, 3, READS, 1, 1, 1},
    {"HEXISTS", command_hexists, 3, 3, READS, 1, 1, 1},
    {"HLEN", command_hlen, 2, 2, READS, 1, 1, 1},
    {"HMGET", command_hmget, 3, -1, READS, 1, 1, 1},
    {"HGETALL", command_hgetall, 2, 2, READS, 1, 1, 1},
    {"HKEYS", command_hkeys, 2, 2, READS, 1, 1, 1},
    {"HVALS", command_hvals, 2, 2, READS, 1, 1, 1},
    {"HSCAN", command_hscan, 3, -1, READS, 1, 1, 1},
    {"HRANDFIELD", command_hrandfield, 2, -1, READS, 1, 1, 1},
    {"SADD", command_sadd, 3, -1, WRITES | GROWS, 1, 1, 1},
    {"SREM", command_srem, 3, -1, WRITES, 1, 1, 1},
    {"SMOVE", command_smove, 4, 4, WRITES, 1, 2, 1},
    {"SISMEMBER", command_sismember, 3, 3, READS, 1, 1, 1},
    {"SMISMEMBER", command_smismember, 3, -1, READS, 1, 1, 1},
    {"SCARD", command_scard, 2, 2, READS, 1, 1, 1},
    {"SMEMBERS", command_smembers, 2, 2, READS, 1, 1, 1},
    {"SPOP", command_spop, 2, -1, WRITES, 1, 1, 1},
    {"SRANDMEMBER", command_srandmember, 2, -1, READS, 1, 1, 1},
    {"SINTER", command_combine_sets, 2, -1, READS, 1, -1, 1},
    {"SINTERSTORE", command_combine_sets, 3, -1, WRITES | GROWS, 1, -1, 1},
    {"SINTERCARD", command_sintercard, 3, -1, READS, 0, 0, 0},
    {"SUNION", command_combine_sets, 2, -1, READS, 1, -1, 1},
    {"SUNIONSTORE", command_combine_sets, 3, -1, WRITES | GROWS, 1, -1, 1},
    {"SDIFF", command_combine_sets, 2, -1, READS, 1, -1, 1},
    {"SDIFFSTORE", command_combine_sets, 3, -1, WRITES | GROWS, 1, -1, 1},
    {"SSCAN", command_sscan, 3, -1, READS, 1, 1, 1},
    {"SETBIT", command_setbit, 4, 4, WRITES | GROWS, 1, 1, 1},
    {"GETBIT", command_getbit, 3, 3, READS, 1, 1, 1},
    {"BITCOUNT", command_bitcount, 2, -1, READS, 1, 1, 1},
    {"BITPOS", command_bitpos, 3, -1, READS, 1, 1, 1},
    {"BITOP", command_bitop, 4, -1, WRITES | GROWS, 2, -1, 1},
    {"BITFIELD", command_bitfield, 2, -1, WRITES | GROWS, 1, 1, 1},
    {"BITFIELD_RO", command_bitfield_ro, 2, -1, READS, 1, 1, 1},
    {"SORT", command_sort, 2, -1, WRITES | GROWS, 1, 1, 1},
    {"SORT_RO", command_sort_ro, 2, -1, READS, 1, 1, 1},
    {"LPUSH", command_lpush, 3, -1, WRITES | GROWS, 1, 1, 1},
    {"RPUSH", command_rpush, 3, -1, WRITES | GROWS, 1, 1, 1},
    {"LPUSHX", command_lpushx, 3, -1, WRITES | GROWS, 1, 1, 1},
    {"RPUSHX", command_rpushx, 3, -1, WRITES | GROWS, 1, 1, 1},
    {"LPOP", command_lpop, 2, 3, WRITES, 1, 1, 1},
    {"RPOP", command_rpop, 2, 3, WRITES, 1, 1, 1},
    {"LMOVE", command_lmove, 5, 5, WRITES | GROWS, 1, 2, 1},
    {"RPOPLPUSH", command_rpoplpush, 3, 3, WRITES | GROWS, 1, 2, 1},
    {"LMPOP", command_lmpop, 4, -1, WRITES, 0, 0, 0},
    {"BLPOP", command_blpop, 3, -1, WRITES, 1, -2, 1},
    {"BRPOP", command_brpop, 3, -1, WRITES, 1, -2, 1},
    {"BLMPOP", command_blmpop, 5, -1, WRITES, 0, 0, 0},
    {"BLMOVE", command_blmove, 6, 6, WRITES | GROWS, 1, 2, 1},
    {"BRPOPLPUSH", command_brpoplpush, 4, 4, WRITES | GROWS, 1, 2, 1},
    {"LLEN", command_llen, 2, 2, READS, 1, 1, 1},
    {"LINDEX", command_lindex, 3, 3, READS, 1, 1, 1},
    {"LRANGE", command_lrange, 4, 4, READS, 1, 1, 1},
    {"LPOS", command_lpos, 3, -1, READS, 1, 1, 1},
    {"LSET", command_lset, 4, 4, WRITES | GROWS, 1, 1, 1},
    {"LINSERT", command_linsert, 5, 5, WRITES | GROWS, 1, 1, 1},
    {"LREM", command_lrem, 4, 4, WRITES, 1, 1, 1},
    {"LTRIM", command_ltrim, 4, 4, WRITES, 1, 1, 1},
    {"ZADD", command_zadd, 4, -1, WRITES | GROWS, 1, 1, 1},
    {"ZINCRBY", command_zincrby, 4, 4, WRITES | GROWS, 1, 1, 1},
    {"ZREM", command_zrem, 3, -1, WRITES, 1, 1, 1},
    {"ZCARD", command_zcard, 2, 2, READS, 1, 1, 1},
    {"ZSCORE", command_zscore, 3, 3, READS, 1, 1, 1},
    {"ZMSCORE", command_zmscore, 3, -1, READS, 1, 1, 1},
    {"ZRANK", command_zrank, 3, 3, READS, 1, 1, 1},
    {"ZREVRANK", command_zrevrank, 3, 3, READS, 1, 1, 1},
    {"ZPOPMIN", command_zpopmin, 2, -1, WRITES, 1, 1, 1},
    {"ZPOPMAX", command_zpopmax, 2, -1, WRITES, 1, 1, 1},
    {"ZMPOP", command_zmpop, 4, -1, WRITES, 0, 0, 0},
    {"BZPOPMIN", command_bzpopmin, 3, -1, WRITES, 1, -2, 1},
    {"BZPOPMAX", command_bzpopmax, 3, -1, WRITES, 1, -2, 1},
    {"BZMPOP", command_bzmpop, 5, -1, WRITES, 0, 0, 0},
    {"ZRANDMEMBER", command_zrandmember, 2, -1, READS, 1, 1, 1},
    {"ZSCAN", command_zscan, 3, -1, READS, 1, 1, 1},
    {"ZCOUNT", command_zcount, 4, 4, READS, 1, 1, 1},
    {"ZLEXCOUNT", command_zlexcount, 4, 4, READS, 1, 1, 1},
    {"ZRANGE", command_zrange, 4, -1, READS, 1, 1, 1},
    {"ZRANGESTORE", command_zrangestore, 5, -1, WRITES | GROWS, 1, 2, 1},
    {"ZREVRANGE", command_zrevrange, 4, -1, READS, 1, 1, 1},
    {"ZRANGEBYSCORE", command_zrangebyscore, 4, -1, READS, 1, 1, 1},
    {"ZREVRANGEBYSCORE", command_zrevrangebyscore, 4, -1, READS, 1, 1, 1},
    {"ZRANGEBYLEX", command_zrangebylex, 4, -1, READS, 1, 1, 1},
    {"ZREVRANGEBYLEX", command_zrevrangebylex, 4, -1, READS, 1, 1, 1},
    {"ZREMRANGEBYRANK", command_zremrangebyrank, 4, 4, WRITES, 1, 1, 1},
    {"ZREMRANGEBYSCORE", command_zremrangebyscore, 4, 4, WRITES, 1, 1, 1},
    {"ZREMRANGEBYLEX", command_zremrangebylex, 4, 4, WRITES, 1, 1, 1},
    {"ZUNION", command_combine_sorted, 3, -1, READS, 0, 0, 0},
    {"ZINTER", command_combine_sorted, 3, -1, READS, 0, 0, 0},
    {"ZDIFF", command_combine_sorted, 3, -1, READS, 0, 0, 0},
    {"ZINTERCARD", command_zintercard, 3, -1, READS, 0, 0, 0},
    {"ZUNIONSTORE", command_combine_sorted, 4, -1, WRITES | GROWS, 1, 1, 1},
    {"ZINTERSTORE", command_combine_sorted, 4, -1, WRITES | GROWS, 1, 1, 1},
    {"ZDIFFSTORE", command_combine_sorted, 4, -1, WRITES | GROWS, 1, 1, 1},
    {"OBJECT", command_object, 3, 3, READS, 2, 2, 1},
    {"DEL", command_del, 2, -1, WRITES, 1, -1, 1},
    {"UNLINK", command_del, 2, -1, WRITES, 1, -1, 1},
    {"EXISTS", command_exists, 2, -1, READS, 1, -1, 1},
    {"TOUCH", command_exists, 2, -1, READS, 1, -1, 1},
    {"RENAME", command_rename, 3, 3, WRITES, 1, 2, 1},
    {"RENAMENX", command_renamenx, 3, 3, WRITES, 1, 2, 1},
    {"COPY", command_copy, 3, -1, WRITES | GROWS, 1, 2, 1},
    {"RANDOMKEY", command_randomkey, 1, 1, READS, 0, 0, 0},
    {"EXPIRE", command_expire, 3, -1, WRITES, 1, 1, 1},
    {"PEXPIRE", command_pexpire, 3, -1, WRITES, 1, 1, 1},
    {"EXPIREAT", command_expireat, 3, -1, WRITES, 1, 1, 1},
    {"PEXPIREAT", command_pexpireat, 3, -1, WRITES, 1, 1, 1},
    {"TTL", command_ttl, 2, 2, READS, 1, 1, 1},
    {"PTTL", command_pttl, 2, 2, READS, 1, 1, 1},
    {"EXPIRETIME", command_expiretime, 2, 2, READS, 1, 1, 1},
    {"PEXPIRETIME", command_pexpiretime, 2, 2, READS, 1, 1, 1},
    {"PERSIST", command_persist, 2, 2, WRITES, 1, 1, 1},
    {"TYPE", command_type, 2, 2, READS, 1, 1, 1},
    {"KEYS", command_keys, 2, 2, READS, 0, 0, 0},
    {"SCAN", command_scan, 2, -1, READS, 0, 0, 0},
    {"DBSIZE", command_dbsize, 1, 1, READS, 0, 0, 0},
    {"FLUSHDB", command_flush, 1, 2, WRITES, 0, 0, 0},
    {"FLUSHALL", command_flush, 1, 2, WRITES, 0, 0, 0},
    {"PUBLISH", command_publish, 3, 3, OTHER, 0, 0, 0},
    {"SUBSCRIBE", command_subscribe, 2, -1, MESSAGES | ALONE, 0, 0, 0},
    {"UNSUBSCRIBE", command_unsubscribe, 1, -1, MESSAGES | ALONE, 0, 0, 0},
    {"PSUBSCRIBE", command_psubscribe, 2, -1, MESSAGES | ALONE, 0, 0, 0},
    {"PUNSUBSCRIBE", command_punsubscribe, 1, -1, MESSAGES | ALONE, 0, 0, 0},
    {"PUBSUB", command_pubsub, 2, -1, OTHER, 0, 0, 0},
    {"MONITOR", command_monitor, 1, 1, OTHER | HIDDEN, 0, 0, 0},
    {"MULTI", command_multi, 1, 1, OTHER | AT_ONCE, 0, 0, 0},
    {"EXEC", command_exec, 1, 1, WRITES | AT_ONCE, 0, 0, 0},
    {"DISCARD", command_discard, 1, 1, OTHER | AT_ONCE, 0, 0, 0},
    {"WATCH", command_watch, 2, -1, OTHER | AT_ONCE, 1, -1, 1},
    {"UNWATCH", command_unwatch, 1, 1, OTHER, 0, 0, 0},
    {"PING", command_ping, 1, 2, MESSAGES, 0, 0, 0},
    {"ECHO", command_echo, 2, 2, OTHER, 0, 0, 0},
    {"SELECT", command_select, 2, 2, OTHER, 0, 0, 0},
    {"CONFIG", command_config, 2, -1, OTHER | HIDDEN, 0, 0, 0},
    {"COMMAND", command_command, 1, -1, OTHER, 0, 0, 0},
    {"AUTH", command_auth, 2, 3, OTHER | ALONE | OPEN, 0, 0, 0},
    {"RESET", command_reset, 1, 1, MESSAGES | AT_ONCE | OPEN, 0, 0, 0},
    {"HELLO", command_hello, 1, -1, OTHER | ALONE | OPEN, 0, 0, 0},
    {"CLIENT", command_client, 2, -1, OTHER, 0, 0, 0},
    {"INFO", command_info, 1, -1, OTHER, 0, 0, 0},
    {"SAVE", command_save, 1, 1, OTHER | ALONE | HIDDEN, 0, 0, 0},
    {"BGSAVE", command_bgsave, 1, 2, OTHER | HIDDEN, 0, 0, 0},
    {"BGREWRITEAOF", command_bgrewriteaof, 1, 1, OTHER | HIDDEN, 0, 0, 0},
    {"LASTSAVE", command_lastsave, 1, 1, OTHER, 0, 0, 0},
    {"TIME", command_time, 1, 1, OTHER, 0, 0, 0},
    {"QUIT", command_quit, 1, -1, MESSAGES | AT_ONCE | OPEN, 0, 0, 0},
    {"SHUTDOWN", command_shutdown, 1, 2, OTHER | ALONE | HIDDEN, 0, 0, 0},
};
const size_t command_count = sizeof commands / sizeof *commands;

/* ---- By name ---- */

/* A name of up to 16 letters as two words, in which capital and small letters are equal. */
struct name {
    uint64_t words[2];
};

enum { NAME_SIZE = 16, SLOT_BITS = 9, SLOTS = 1 << SLOT_BITS };

static bool make_name(struct name *name, struct bytes bytes)
{
    const uint64_t small = UINT64_C(0x2020202020202020);
    *name = (struct name){{0, 0}};
    if (bytes.size > NAME_SIZE)
        return false;
    memcpy(name, bytes.data, bytes.size);
    name->words[0] |= small;
    name->words[1] |= small;
    return true;
}

static unsigned slot_of(const struct name *name)
{
    return (unsigned)(((name->words[0] ^ name->words[1] * 31) * UINT64_C(0x9e3779b97f4a7c15)) >>
                      (64 - SLOT_BITS));
}

/*
 * Open addressing. Setting the bits of `small` makes some different names equal; comparing with the
 * command's own name tells them apart.
 */
static const struct command *find_command(struct bytes bytes)
{
    static struct {
        struct name name;
        const struct command *command;
    } slots[SLOTS];
    static bool is_ready;
    struct name name;
    for (size_t i = 0; !is_ready && i < command_count; i++) {
        make_name(&name, bytes_of(commands[i].name));
        unsigned at = slot_of(&name);
        while (slots[at].command != NULL)
            at = (at + 1) % SLOTS;
        slots[at].name = name;
        slots[at].command = &commands[i];
    }
    is_ready = true;
    if (!make_name(&name, bytes))
        return NULL;
    for (unsigned at = slot_of(&name); slots[at].command != NULL; at = (at + 1) % SLOTS) {
        if (slots[at].name.words[0] == name.words[0] && slots[at].name.words[1] == name.words[1])
            return bytes_are(bytes, slots[at].command->name) ? slots[at].command : NULL;
    }
    return NULL;
}

/* ---- Running one ---- */

/*
 * Runs a command that may change keys, and notes which replies report a change. All records of a
 * command, and so all of a transaction, are in one group, since it never suspends.
 */
static void run_change(struct client *client, const struct command *command)
{
    struct journal *journal = &client->kv->journal;
    size_t records = buffer_used(&journal->filling), replies = buffer_used(&client->out);
    if (!reply_reserve_change(client)) {
        if (client->transaction.is_open) /* EXEC: without memory it ends the transaction too */
            transaction_clear(client);
        return;
    }
    command->run(client);
    reply_hide(client, replies);
    if (buffer_used(&journal->filling) > records)
        reply_note_change(client, replies);
}

static bool has_word(struct client *client, const char *word)
{
    for (size_t i = 2; i < client->request.count; i++) {
        if (bytes_are(client_argument(client, i), word))
            return true;
    }
    return false;
}

bool command_may_change(struct client *client, const struct command *command)
{
    if (command->run == command_sort)
        return has_word(client, "STORE");
    if (command->run == command_bitfield)
        return has_word(client, "SET") || has_word(client, "INCRBY");
    return (command->kind & WRITES) != 0;
}

bool command_run_queued(struct client *client, bool only_changes)
{
    const struct command *command = find_command(client_argument(client, 0));
    bide_assert(command != NULL);
    if (only_changes && !command_may_change(client, command))
        return false;
    client->kv->commands++;
    client->kv->work += client->request.count;
    client->kv->keys.uses.last = NULL;
    command->run(client);
    if (client->kv->pubsub.monitors != NULL)
        monitors_show(client, command);
    return true;
}

/* Runs a request that has been checked. `replies` is the size of the replies before. */
static void run_checked(struct client *client, const struct command *command, size_t replies)
{
    if (client->kv->journal.is_on && (command->kind & WRITES) != 0)
        run_change(client, command);
    else
        command->run(client);
    reply_hide(client, replies);
    if (client->kv->pubsub.monitors != NULL && client->control != CONTROL_REPEAT)
        monitors_show(client, command);
}

/* Clients that monitor have no access to keys, as in redis. */
static bool is_for_others(const struct client *client, const struct command *command)
{
    return client->monitoring.client != NULL && command->run != command_exec &&
           ((command->kind & (READS | WRITES)) != 0 || command->run == command_publish);
}

/* Checks a request. If it may not run, replies with an error and returns false. */
static bool check_command(struct client *client, const struct command *command)
{
    struct bytes name = client_argument(client, 0);
    int count = client->request.count < INT32_MAX ? (int)client->request.count : INT32_MAX;
    if (command == NULL)
        reply_error(client, "-ERR unknown command '%.*s'", name.size < 128 ? (int)name.size : 128,
                    name.data);
    else if (count < command->min_arguments ||
             (command->max_arguments >= 0 && count > command->max_arguments))
        reply_error(client, "-ERR wrong number of arguments for '%.*s' command", (int)name.size,
                    name.data);
    else if (!client->is_authenticated && (command->kind & OPEN) == 0)
        REPLY(client, "-NOAUTH Authentication required.");
    else if (client->protocol == 2 && client->subscription_count > 0 &&
             (command->kind & MESSAGES) == 0)
        reply_error(client,
                    "-ERR Can't execute '%.*s': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT "
                    "/ RESET are allowed in this context",
                    (int)name.size, name.data);
    else if (is_for_others(client, command))
        REPLY(client, "-ERR Replica can't interact with the keyspace");
    else if (client->transaction.is_open && (command->kind & ALONE) != 0)
        REPLY(client, "-ERR Command not allowed inside a transaction");
    else
        return true;
    return false;
}

/* The arguments that are keys which a command may change. `first` is 0 if they are not known. */
struct changed_keys {
    size_t first, last, step;
};

/* The keys behind their number, which is that argument; none, if the number is wrong. */
static struct changed_keys counted_keys(struct client *client, size_t at)
{
    int64_t count;
    if (!number_read(client_argument(client, at), &count) || count <= 0 ||
        (uint64_t)count >= client->request.count - at)
        count = 0;
    return (struct changed_keys){at + 1, at + (size_t)count, 1};
}

static struct changed_keys changed_keys_of(struct client *client, const struct command *command)
{
    size_t count = client->request.count, last = command->last_key < 0
                                                     ? count - (size_t)-command->last_key
                                                     : (size_t)command->last_key;
    if (command->run == command_lmpop || command->run == command_zmpop)
        return counted_keys(client, 1);
    if (command->run == command_blmpop || command->run == command_bzmpop)
        return counted_keys(client, 2);
    if (command->run == command_sort) /* (the key of STORE may be any argument) */
        return (struct changed_keys){0};
    return (struct changed_keys){(size_t)command->first_key, last, (size_t)command->step};
}

/*
 * True if one of the keys is ready. A request that is run again continues at the key that was ready. Behind the last key it
 * begins again if others have become ready meanwhile: so the work is not a multiple of the keys for each repetition.
 */
static bool has_ready_key(struct client *client, struct changed_keys keys)
{
    struct waiting *waiting = &client->kv->waiting;
    size_t i = client->checked;
    if (i != 0 && waiting_is_ready(waiting, client_argument(client, i)))
        return true;
    for (bool is_whole = false; !is_whole;) {
        is_whole = i == 0;
        if (is_whole) {
            client->serial = waiting->serial;
            i = keys.first;
        }
        for (; i <= keys.last; i += keys.step) {
            client->kv->work++;
            if (waiting_is_ready(waiting, client_argument(client, i))) {
                client->checked = i;
                return true;
            }
        }
        if (client->serial == waiting->serial)
            break;
        i = 0;
    }
    return false;
}

/*
 * True if the command may change a key whose waiting clients are still to be served. EXEC and FLUSHALL may change each
 * of those that were ready when the request came. While the journal is full nobody is served, and no command
 * changes anything: EXEC is refused.
 */
static bool must_wait_for_others(struct client *client, const struct command *command)
{
    struct waiting *waiting = &client->kv->waiting;
    if (waiting->ready == NULL || !command_may_change(client, command) ||
        client->kv->journal.is_full)
        return false;
    struct changed_keys keys = changed_keys_of(client, command);
    if (keys.first != 0)
        return has_ready_key(client, keys);
    if (command->run == command_exec &&
        (!client->transaction.changes || client->transaction.is_rejected))
        return false;
    if (client->serial == 0)
        client->serial = waiting->serial;
    return waiting_has_ready_since(waiting, client->serial);
}

/* The request runs again, after what `control` says. */
static void repeat_request(struct client *client, enum control control)
{
    client->kv->commands--;
    client->kv->work -= client->request.count; /* (command_run adds both again) */
    if (client->is_silent && client->reply_mode == REPLY_ON)
        client->reply_mode = REPLY_SKIP_NEXT;
    client->control = control;
}

void client_repeat_request(struct client *client)
{
    repeat_request(client, CONTROL_REPEAT);
}

void client_end_turn(struct client *client)
{
    client->work = CLIENT_MAX_WORK;
    client_repeat_request(client);
}

/* Decides whether the request has a reply. */
static void start_reply(struct client *client)
{
    client->is_silent = client->reply_mode != REPLY_ON;
    if (client->reply_mode == REPLY_SKIP_NEXT)
        client->reply_mode = REPLY_ON;
    client->pushed = 0;
}

/*
 * True if the request is refused without memory, or may be. Not between slices: the result so far counts as memory, and its
 * sources must not be evicted for it.
 */
static bool needs_room(const struct client *client, const struct command *command)
{
    return client->kv->options.max_memory != 0 && client->listing.cursor == 0 &&
           client->combining == NULL &&
           ((command->kind & GROWS) != 0 || client->transaction.is_open);
}

/*
 * A request that begins like HTTP ends the connection, since any web page can make a browser send one
 * to a server on the same machine, with commands in its body.
 */
void command_run(struct client *client)
{
    struct bytes name = client_argument(client, 0);
    const struct command *command = find_command(name);
    size_t replies = buffer_used(&client->out);
    bool has_unserved = client->kv->waiting.ready != NULL;
    start_reply(client);
    client->kv->commands++;
    client->kv->work += client->request.count;
    client->command = command;
    client->last_active = client->kv->keys.now;
    if (command == NULL && (bytes_are(name, "POST") || bytes_are(name, "HOST:")))
        client->is_broken = true;
    else if (!check_command(client, command))
        client->transaction.is_rejected |= client->transaction.is_open;
    else if (pause_postpones(client, command))
        repeat_request(client, CONTROL_PAUSE);
    else if (needs_room(client, command) && command_lacks_room(client, command))
        ; /* it has a reply, or runs again */
    else if (client->transaction.is_open && (command->kind & AT_ONCE) == 0)
        transaction_queue(client, command);
    else if (client->kv->journal.is_full && (command->kind & AT_ONCE) == 0 &&
             command_may_change(client, command))
        reply_refused(client, client->kv->journal.refusal); /* (EXEC looks itself) */
    else if (must_wait_for_others(client, command))
        client_end_turn(client);
    else
        run_checked(client, command, replies);
    reply_hide(client, replies);
    reply_deferred(client);
    if (!has_unserved && client->kv->waiting.ready != NULL)
        waiting_serve(client->kv);
}

void client_end_request(struct client *client)
{
    client->in.begin += client->request.size;
    if (client->listing.cursor != 0) { /* (it ended with an error) */
        listing_clear(client);
        combination_drop(client);
    }
    client->checked = 0;
    client->serial = 0;
    client->next_argument = 0;
    request_clear(&client->request);
}

/* The state of the next request. */
static enum request_state next_request(struct client *client)
{
    const struct request_limits few = {REQUEST_BULK_BEFORE_AUTH, 10, REQUEST_LINE};
    bool is_complete = client->repeats_request;
    client->repeats_request = false;
    return is_complete ? REQUEST_COMPLETE
                       : request_read(&client->request, client->in.data + client->in.begin,
                                      buffer_used(&client->in),
                                      client->is_authenticated ? &client->kv->limits : &few);
}

/* Replies to input that is no request, which ends the connection. */
static void reply_protocol_error(struct client *client)
{
    const struct request *request = &client->request;
    size_t replies = buffer_used(&client->out);
    start_reply(client);
    if (request->got != 0)
        reply_error(client, "-ERR Protocol error: %s, got '%c'", request->error, request->got);
    else
        reply_error(client, "-ERR Protocol error: %s", request->error);
    reply_hide(client, replies);
    client->is_closing = true;
}

void client_owe(struct client *client)
{
    struct kv *kv = client->kv;
    client->owed += kv->keys.discarded - kv->charged;
    kv->charged = kv->keys.discarded;
}

size_t client_free_owed(struct client *client, uint64_t steps)
{
    struct keyspace *keys = &client->kv->keys;
    size_t taken = 0;
    while (client->owed > 0 && taken < steps) {
        uint64_t freed = keys->freed, left = steps - taken;
        taken += keyspace_free_some(keys, (size_t)(client->owed < left ? client->owed : left));
        client_owe(client); /* (the values of flushed keys) */
        freed = keys->freed - freed;
        client->owed -= freed < client->owed ? freed : client->owed;
        if (client->owed > keyspace_unfreed(keys)) /* (others have freed some) */
            client->owed = keyspace_unfreed(keys);
    }
    return taken;
}

/* Frees what earlier requests of the client have discarded. Returns false if others are to have their turn before the rest. */
static bool free_before_request(struct client *client)
{
    size_t left = client->work < CLIENT_MAX_WORK ? CLIENT_MAX_WORK - client->work : 0;
    size_t taken = client_free_owed(client, left);
    client->kv->work += taken;
    client->work += taken;
    return client->owed == 0;
}

bool client_run(struct client *client)
{
    struct kv *kv = client->kv;
    bool had_subscribed = client->has_subscribed;
    kv_update_clock(kv);
    kv->charged = kv->keys.discarded;
    while (!client->is_closing && !client->is_broken) {
        if (client->publications > 0 || !free_before_request(client))
            return true;
        uint64_t begun = kv->work;
        if (buffer_used(&client->in) == 0)
            return false;
        switch (next_request(client)) {
        case REQUEST_INCOMPLETE:
            return false;
        case REQUEST_WRONG:
            reply_protocol_error(client);
            return false;
        case REQUEST_COMPLETE:
            break;
        }
        kv->running = client;
        kv->keys.uses.last = NULL;
        kv->notify_limit = client_work_limit(client);
        command_run(client);
        kv->running = NULL;
        client->work += kv->work - begun;
        client_owe(client);
        if (client->control == CONTROL_REPEAT || client->control == CONTROL_WAIT ||
            client->control == CONTROL_PAUSE)
            return true;
        client_end_request(client);
        if (buffer_used(&client->out) >= CLIENT_MAX_REPLIES || client->work >= CLIENT_MAX_WORK ||
            client->control != CONTROL_NONE || client->has_subscribed != had_subscribed)
            return true;
    }
    return false;
}
