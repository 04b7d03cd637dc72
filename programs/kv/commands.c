/* The table of commands, lookup by name, and the loop that runs a client's requests. */
#include "commands.h"

const struct command commands[] = {
    {"GET", command_get, 2, 2, READS, 1, 1, 1},
    {"SET", command_set, 3, -1, WRITES, 1, 1, 1},
    {"SETNX", command_setnx, 3, 3, WRITES, 1, 1, 1},
    {"SETEX", command_setex, 4, 4, WRITES, 1, 1, 1},
    {"PSETEX", command_psetex, 4, 4, WRITES, 1, 1, 1},
    {"GETSET", command_getset, 3, 3, WRITES, 1, 1, 1},
    {"GETDEL", command_getdel, 2, 2, WRITES, 1, 1, 1},
    {"MGET", command_mget, 2, -1, READS, 1, -1, 1},
    {"MSET", command_mset, 3, -1, WRITES, 1, -1, 2},
    {"APPEND", command_append, 3, 3, WRITES, 1, 1, 1},
    {"STRLEN", command_strlen, 2, 2, READS, 1, 1, 1},
    {"INCR", command_incr, 2, 2, WRITES, 1, 1, 1},
    {"DECR", command_decr, 2, 2, WRITES, 1, 1, 1},
    {"INCRBY", command_incrby, 3, 3, WRITES, 1, 1, 1},
    {"DECRBY", command_decrby, 3, 3, WRITES, 1, 1, 1},
    {"DEL", command_del, 2, -1, WRITES, 1, -1, 1},
    {"UNLINK", command_del, 2, -1, WRITES, 1, -1, 1},
    {"EXISTS", command_exists, 2, -1, READS, 1, -1, 1},
    {"EXPIRE", command_expire, 3, 3, WRITES, 1, 1, 1},
    {"PEXPIRE", command_pexpire, 3, 3, WRITES, 1, 1, 1},
    {"EXPIREAT", command_expireat, 3, 3, WRITES, 1, 1, 1},
    {"PEXPIREAT", command_pexpireat, 3, 3, WRITES, 1, 1, 1},
    {"TTL", command_ttl, 2, 2, READS, 1, 1, 1},
    {"PTTL", command_pttl, 2, 2, READS, 1, 1, 1},
    {"PERSIST", command_persist, 2, 2, WRITES, 1, 1, 1},
    {"TYPE", command_type, 2, 2, READS, 1, 1, 1},
    {"KEYS", command_keys, 2, 2, READS, 0, 0, 0},
    {"SCAN", command_scan, 2, -1, READS, 0, 0, 0},
    {"DBSIZE", command_dbsize, 1, 1, READS, 0, 0, 0},
    {"FLUSHDB", command_flush, 1, 2, WRITES, 0, 0, 0},
    {"FLUSHALL", command_flush, 1, 2, WRITES, 0, 0, 0},
    {"PUBLISH", command_publish, 3, 3, OTHER, 0, 0, 0},
    {"SUBSCRIBE", command_subscribe, 2, -1, MESSAGES, 0, 0, 0},
    {"UNSUBSCRIBE", command_unsubscribe, 1, -1, MESSAGES, 0, 0, 0},
    {"PSUBSCRIBE", command_psubscribe, 2, -1, MESSAGES, 0, 0, 0},
    {"PUNSUBSCRIBE", command_punsubscribe, 1, -1, MESSAGES, 0, 0, 0},
    {"PUBSUB", command_pubsub, 2, -1, OTHER, 0, 0, 0},
    {"PING", command_ping, 1, 2, MESSAGES, 0, 0, 0},
    {"ECHO", command_echo, 2, 2, OTHER, 0, 0, 0},
    {"SELECT", command_select, 2, 2, OTHER, 0, 0, 0},
    {"CONFIG", command_config, 2, -1, OTHER, 0, 0, 0},
    {"COMMAND", command_command, 1, -1, OTHER, 0, 0, 0},
    {"HELLO", command_hello, 1, -1, OTHER, 0, 0, 0},
    {"CLIENT", command_client, 2, -1, OTHER, 0, 0, 0},
    {"INFO", command_info, 1, -1, OTHER, 0, 0, 0},
    {"SAVE", command_save, 1, 1, OTHER, 0, 0, 0},
    {"BGSAVE", command_bgsave, 1, 2, OTHER, 0, 0, 0},
    {"BGREWRITEAOF", command_bgrewriteaof, 1, 1, OTHER, 0, 0, 0},
    {"LASTSAVE", command_lastsave, 1, 1, OTHER, 0, 0, 0},
    {"TIME", command_time, 1, 1, OTHER, 0, 0, 0},
    {"QUIT", command_quit, 1, -1, MESSAGES, 0, 0, 0},
    {"SHUTDOWN", command_shutdown, 1, 2, OTHER, 0, 0, 0},
};
const size_t command_count = sizeof commands / sizeof *commands;

/* ---- By name ---- */

/* A name of up to 16 letters as two words, in which capital and small letters are equal. */
struct name {
    uint64_t words[2];
};

enum { NAME_SIZE = 16, SLOTS = 256 };

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
                      56);
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

/* Runs a command that may change keys, and notes which replies report a change. */
static void run_change(struct client *client, const struct command *command)
{
    struct journal *journal = &client->kv->journal;
    size_t records = buffer_used(&journal->filling), replies = buffer_used(&client->out);
    if (journal->full < 0) {
        reply_refused(client, journal->full);
        return;
    }
    command->run(client);
    if (buffer_used(&journal->filling) > records)
        reply_note_change(client, replies);
}

/*
 * A request that begins like HTTP ends the connection, since any web page can make a browser send one
 * to a server on the same machine, with commands in its body.
 */
void command_run(struct client *client)
{
    struct bytes name = client_argument(client, 0);
    const struct command *command = find_command(name);
    int count = client->request.count < INT32_MAX ? (int)client->request.count : INT32_MAX;
    client->kv->commands++;
    client->kv->work += client->request.count;
    if (command == NULL && (bytes_are(name, "POST") || bytes_are(name, "HOST:"))) {
        client->is_broken = true;
    } else if (command == NULL) {
        reply_error(client, "-ERR unknown command '%.*s'", name.size < 128 ? (int)name.size : 128,
                    name.data);
    } else if (count < command->min_arguments ||
               (command->max_arguments >= 0 && count > command->max_arguments)) {
        reply_error(client, "-ERR wrong number of arguments for '%.*s' command", (int)name.size,
                    name.data);
    } else if (client->subscription_count > 0 && command->kind != MESSAGES) {
        reply_error(client,
                    "-ERR Can't execute '%.*s': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT "
                    "are allowed in this context",
                    (int)name.size, name.data);
    } else if (command->kind == WRITES && client->kv->journal.is_on) {
        run_change(client, command);
    } else {
        command->run(client);
    }
}

bool client_run(struct client *client)
{
    struct kv *kv = client->kv;
    uint64_t begun = kv->work;
    kv_update_clock(kv);
    while (!client->is_closing && !client->is_broken) {
        if (buffer_used(&client->in) == 0)
            return false;
        switch (request_read(&client->request, client->in.data + client->in.begin,
                             buffer_used(&client->in), &kv->limits)) {
        case REQUEST_INCOMPLETE:
            return false;
        case REQUEST_WRONG:
            reply_error(client, "-ERR Protocol error: %s", client->request.error);
            client->is_closing = true;
            return false;
        case REQUEST_COMPLETE:
            break;
        }
        command_run(client);
        client->in.begin += client->request.size;
        request_clear(&client->request);
        client->work += kv->work - begun;
        begun = kv->work;
        if (buffer_used(&client->out) >= CLIENT_MAX_REPLIES || client->work >= CLIENT_MAX_WORK ||
            client->control != CONTROL_NONE)
            return true;
    }
    return false;
}

/* ---- Helpers of several commands ---- */

bool argument_number(struct client *client, size_t i, int64_t *number)
{
    *number = 0;
    if (number_read(client_argument(client, i), number))
        return true;
    REPLY(client, "-ERR value is not an integer or out of range");
    return false;
}

void reply_drop(struct client *client, size_t from, size_t to)
{
    char *at = client->out.data + client->out.begin;
    size_t size = buffer_used(&client->out) - to;
    if (client->is_broken)
        return;
    memmove(at + from, at + to, size);
    client->out.end = client->out.begin + from + size;
}

enum { HEAD_SIZE = NUMBER_SIZE + 3 };

size_t reply_start_array(struct client *client)
{
    static const char placeholder[HEAD_SIZE];
    size_t begin = buffer_used(&client->out);
    reply_raw(client, placeholder, sizeof placeholder);
    return begin;
}

/* The head is appended at the end first, then copied into the space reserved for it. */
void reply_finish_array(struct client *client, size_t begin, size_t count)
{
    char head[HEAD_SIZE];
    size_t before = buffer_used(&client->out);
    reply_array(client, count);
    if (client->is_broken)
        return;
    char *at = client->out.data + client->out.begin;
    size_t size = buffer_used(&client->out) - before;
    memcpy(head, at + before, size);
    memcpy(at + begin, head, size);
    client->out.end -= size;
    reply_drop(client, begin + size, begin + HEAD_SIZE);
}

void reply_too_large(struct client *client)
{
    reply_error(client, "-ERR the reply would be larger than %zu bytes", client->kv->options.reply);
}

bool finish_listing(struct client *client, size_t begin, size_t count)
{
    if (client_refuses_reply(client)) {
        reply_drop(client, begin, buffer_used(&client->out));
        reply_too_large(client);
        return false;
    }
    reply_finish_array(client, begin, count);
    return true;
}
