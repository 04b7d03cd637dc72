/* Commands on the connection and on the server. Each runs to completion on the loop's thread. */
#include "commands.h"

#include "memory.h"

#include <stdio.h>
#include <unistd.h>

void command_ping(struct client *client)
{
    bool has_text = client->request.count == 2;
    if (client->subscription_count > 0 &&
        client->protocol == 2) { /* among messages it looks like one */
        reply_array(client, 2);
        reply_bulk(client, bytes_of("pong"));
        reply_bulk(client, has_text ? client_argument(client, 1) : bytes_of(""));
    } else if (has_text) {
        reply_bulk(client, client_argument(client, 1));
    } else {
        REPLY(client, "+PONG");
    }
}

void command_echo(struct client *client)
{
    reply_bulk(client, client_argument(client, 1));
}

void command_select(struct client *client)
{
    int64_t number;
    if (!argument_number(client, 1, &number))
        return;
    if (number == 0)
        reply_ok(client);
    else
        REPLY(client, "-ERR DB index is out of range: the only database is 0");
}

void command_time(struct client *client)
{
    char text[NUMBER_SIZE];
    int64_t now = client->kv->keys.now;
    reply_array(client, 2);
    reply_bulk(client, (struct bytes){text, number_print(text, now / 1000)});
    reply_bulk(client, (struct bytes){text, number_print(text, now % 1000 * 1000)});
}

/* ---- COMMAND ---- */

static void reply_command(struct client *client, const struct command *command)
{
    char name[32];
    size_t size = strlen(command->name);
    for (size_t i = 0; i < size; i++)
        name[i] = (char)(command->name[i] - 'A' + 'a');
    reply_array(client, 6);
    reply_bulk(client, (struct bytes){name, size});
    reply_number(client, command->max_arguments == command->min_arguments
                             ? command->min_arguments
                             : -command->min_arguments);
    reply_array(client, 1);
    if ((command->kind & READS) != 0)
        REPLY(client, "+readonly");
    else if ((command->kind & WRITES) != 0)
        REPLY(client, "+write");
    else if ((command->kind & MESSAGES) != 0)
        REPLY(client, "+pubsub");
    else
        REPLY(client, "+fast");
    reply_number(client, command->first_key);
    reply_number(client, command->last_key);
    reply_number(client, command->step);
}

void command_command(struct client *client)
{
    struct bytes word =
        client->request.count > 1 ? client_argument(client, 1) : (struct bytes){"", 0};
    if (client->request.count == 1) {
        reply_array(client, command_count);
        for (size_t i = 0; i < command_count; i++)
            reply_command(client, &commands[i]);
    } else if (bytes_are(word, "COUNT")) {
        reply_number(client, (int64_t)command_count);
    } else if (bytes_are(word, "DOCS")) {
        reply_map(client, 0);
    } else {
        REPLY(client, "-ERR unknown subcommand of 'command'");
    }
}

/* ---- Passwords ---- */

/* Compares in a time that depends on the given password's size only. */
static bool is_password(const struct client *client, struct bytes given)
{
    const struct bytes password = bytes_of(client->kv->options.password);
    volatile unsigned char difference = given.size != password.size;
    for (size_t i = 0; i < given.size; i++)
        difference |= (unsigned char)(given.data[i] ^ password.data[i % password.size]);
    return difference == 0;
}

/* Replies with an error and returns false if the user, NULL for the only one, and password are wrong. */
static bool authenticate(struct client *client, struct bytes user, struct bytes password)
{
    bool is_user = user.data == NULL || (user.size == 7 && memcmp(user.data, "default", 7) == 0);
    bool has_password = client->kv->options.password != NULL;
    if (!is_user || (has_password && !is_password(client, password))) {
        REPLY(client, "-WRONGPASS invalid username-password pair or user is disabled.");
        return false;
    }
    client->is_authenticated = true;
    return true;
}

void command_auth(struct client *client)
{
    size_t count = client->request.count;
    struct bytes user = count == 3 ? client_argument(client, 1) : (struct bytes){NULL, 0};
    if (count == 2 && client->kv->options.password == NULL)
        REPLY(client, "-ERR AUTH <password> called without any password configured for the default "
                      "user. Are you sure your configuration is correct?");
    else if (authenticate(client, user, client_argument(client, count - 1)))
        reply_ok(client);
}

/* ---- The connection ---- */

static void reply_hello(struct client *client)
{
    reply_map(client, 7);
    reply_bulk(client, bytes_of("server"));
    reply_bulk(client, bytes_of("kv"));
    reply_bulk(client, bytes_of("version"));
    reply_bulk(client, bytes_of(BIDE_VERSION_TEXT));
    reply_bulk(client, bytes_of("proto"));
    reply_number(client, client->protocol);
    reply_bulk(client, bytes_of("id"));
    reply_number(client, (int64_t)client->id);
    reply_bulk(client, bytes_of("mode"));
    reply_bulk(client, bytes_of("standalone"));
    reply_bulk(client, bytes_of("role"));
    reply_bulk(client, bytes_of("master"));
    reply_bulk(client, bytes_of("modules"));
    reply_array(client, 0);
}

/* HELLO [version [AUTH user password] [SETNAME name]]: nothing of it counts if a part is wrong. */
void command_hello(struct client *client)
{
    size_t count = client->request.count;
    struct bytes name = {NULL, 0}, user = {NULL, 0}, password = {NULL, 0};
    int64_t version = client->protocol;
    if (count > 1 &&
        (!number_read(client_argument(client, 1), &version) || version < 2 || version > 3)) {
        REPLY(client, "-NOPROTO unsupported protocol version");
        return;
    }
    for (size_t i = 2; i < count;) {
        struct bytes word = client_argument(client, i);
        if (bytes_are(word, "AUTH") && i + 2 < count) {
            user = client_argument(client, i + 1);
            password = client_argument(client, i + 2);
            i += 3;
        } else if (bytes_are(word, "SETNAME") && i + 1 < count &&
                   client_is_name(client_argument(client, i + 1))) {
            name = client_argument(client, i + 1);
            i += 2;
        } else {
            reply_error(client, "-ERR Syntax error in HELLO option '%.*s'",
                        word.size < 128 ? (int)word.size : 128, word.data);
            return;
        }
    }
    if (password.data != NULL && !authenticate(client, user, password))
        return;
    if (!client->is_authenticated) {
        REPLY(client, "-NOAUTH HELLO must be called with the client already authenticated, "
                      "otherwise the HELLO <proto> AUTH <user> <pass> option can be used to "
                      "authenticate the client and select the RESP protocol version at the same "
                      "time");
        return;
    }
    if (name.data != NULL)
        client_set_name(client, name);
    client->protocol = (unsigned)version;
    reply_hello(client);
}

/* The client is as if it had just connected. Many subscriptions are removed in slices. */
void command_reset(struct client *client)
{
    transaction_clear(client);
    monitors_leave(client);
    if (!pubsub_leave(client, client_work_limit(client))) {
        client_end_turn(client);
        return;
    }
    buffer_free(&client->name);
    client->protocol = 2;
    client->reply_mode = REPLY_ON;
    client->is_silent = false;
    client->is_authenticated = client->kv->options.password == NULL;
    REPLY(client, "+RESET");
}

/* ---- INFO ---- */

/* The pauses and refusals of all servers. */
static bide_server_stats count_accepting(const struct kv *kv)
{
    bide_server_stats sum = {0};
    for (size_t i = 0; i < kv->server_count; i++) {
        const bide_server_stats *stats = bide_server_own_stats(&kv->servers[i]);
        sum.pauses += stats->pauses;
        sum.refused += stats->refused;
    }
    return sum;
}

static int print_info(const struct kv *kv, char *text, size_t size)
{
    const bide_server_stats accepting = count_accepting(kv);
    const struct keyspace *keys = &kv->keys;
    bide_loop_back_end back_end = bide_loop_backend(kv->loop);
    return snprintf(
        text, size,
        "# Server\r\nredis_version:7.0.0\r\nserver_name:kv\r\nbide_version:%s\r\nio:%s\r\n"
        "process_id:%ld\r\ntcp_port:%u\r\nuptime_in_seconds:%lld\r\n\r\n"
        "# Clients\r\nconnected_clients:%zu\r\nmaxclients:%zu\r\n"
        "blocked_clients:%zu\r\ntotal_watched_keys:%zu\r\n\r\n"
        "# Memory\r\nused_memory:%zu\r\nmaxmemory:%zu\r\nmaxmemory_policy:%s\r\n"
        "lazyfree_pending_objects:%llu\r\n\r\n"
        "# Persistence\r\nloading:0\r\nrdb_changes_since_last_save:%llu\r\n"
        "rdb_bgsave_in_progress:%d\r\nrdb_last_save_time:%lld\r\nrdb_last_bgsave_status:%s\r\n"
        "aof_enabled:%d\r\naof_last_write_status:%s\r\naof_rewrite_in_progress:%d\r\naof_current_"
        "size:%lld\r\n"
        "aof_groups:%llu\r\naof_syncs:%llu\r\n\r\n"
        "# Stats\r\ntotal_connections_received:%llu\r\ntotal_commands_processed:%llu\r\n"
        "expired_keys:%llu\r\nevicted_keys:%llu\r\nkeyspace_hits:%llu\r\nkeyspace_misses:%"
        "llu\r\npubsub_channels:%zu\r\n"
        "pubsub_patterns:%zu\r\nsubscribers_cut_off:%llu\r\nturns_ended:%llu\r\ntotal_work:%"
        "llu\r\naccept_pauses:%"
        "llu\r\naccept_refused:%"
        "llu\r\n\r\n"
        "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n"
        "# Keyspace\r\ndb0:keys=%zu,expires=%zu\r\n",
        BIDE_VERSION_TEXT, back_end.name, (long)getpid(), kv->options.port,
        (long long)(keys->now - kv->started) / 1000, kv->client_count - kv->killed_clients,
        kv->options.clients, kv->waiting.clients + kv->pause.clients, kv->watching.keys.count, memory_used,
        kv->options.max_memory, eviction_names[kv->options.eviction],
        (unsigned long long)keyspace_unfreed(keys), (unsigned long long)kv->changes, kv->is_saving,
        (long long)kv->last_save / 1000, kv->save_status == 0 ? "ok" : "err", kv->journal.is_on,
        !kv->journal.is_full ? "ok" : "err", kv->journal.is_rewriting, (long long)kv->journal.size,
        (unsigned long long)kv->journal.groups, (unsigned long long)kv->journal.syncs,
        (unsigned long long)kv->connections, (unsigned long long)kv->commands,
        (unsigned long long)keys->expirations, (unsigned long long)kv->evictions,
        (unsigned long long)keys->hits, (unsigned long long)keys->misses, kv->pubsub.channels.count,
        kv->pubsub.pattern_count, (unsigned long long)kv->pubsub.cut_off,
        (unsigned long long)kv->turns_ended, (unsigned long long)kv->work,
        (unsigned long long)accepting.pauses, (unsigned long long)accepting.refused,
        keys->keys.table.count, keys->keys.expiry_count);
}

/* True if the client wants the section: it names it, or all, or none at all. */
static bool is_wanted(struct client *client, struct bytes section)
{
    char name[32];
    bide_assert(section.size < sizeof name);
    for (size_t i = 0; i < section.size; i++)
        name[i] = (char)(section.data[i] & ~0x20); /* a capital letter */
    name[section.size] = '\0';
    for (size_t i = 1; i < client->request.count; i++) {
        struct bytes word = client_argument(client, i);
        if (bytes_are(word, name) || bytes_are(word, "ALL") || bytes_are(word, "DEFAULT") ||
            bytes_are(word, "EVERYTHING"))
            return true;
    }
    return client->request.count == 1;
}

/* A section begins with its name, "# Name\r\n", and an empty line is between two. */
void command_info(struct client *client)
{
    char text[4096], wanted[sizeof text];
    print_info(client->kv, text, sizeof text);
    size_t size = 0;
    for (const char *at = text, *next; at != NULL; at = next) {
        struct bytes name = {at + 2, strcspn(at + 2, "\r")};
        next = strstr(at, "\r\n\r\n");
        next = next != NULL ? next + 4 : NULL;
        size_t length = next != NULL ? (size_t)(next - at) : strlen(at);
        if (!is_wanted(client, name))
            continue;
        memcpy(wanted + size, at, length);
        size += length;
    }
    reply_text(client, (struct bytes){wanted, size});
}

/* ---- Saving and stopping: actions that take time are left to coroutines ---- */

static bool has_snapshot(struct client *client)
{
    if (client->kv->options.snapshot != NULL)
        return true;
    REPLY(client, "-ERR no file for snapshots: the server was started without --snapshot");
    return false;
}

void command_save(struct client *client)
{
    if (has_snapshot(client))
        client->control = CONTROL_SAVE;
}

void command_bgsave(struct client *client)
{
    if (client->kv->is_saving)
        REPLY(client, "-ERR Background save already in progress");
    else if (has_snapshot(client)) {
        client->kv->wants_snapshot = true;
        bide_single_consumer_auto_event_set(&client->kv->save_wanted);
        REPLY(client, "+Background saving started");
    }
}

void command_bgrewriteaof(struct client *client)
{
    if (!client->kv->journal.is_on)
        REPLY(client, "-ERR no append-only file: the server was started without --append-only");
    else if (client->kv->journal.is_rewriting)
        REPLY(client, "-ERR Background append only file rewriting already in progress");
    else {
        client->kv->wants_rewrite = true;
        bide_single_consumer_auto_event_set(&client->kv->save_wanted);
        REPLY(client, "+Background append only file rewriting started");
    }
}

void command_lastsave(struct client *client)
{
    reply_number(client, client->kv->last_save / 1000);
}

void command_quit(struct client *client)
{
    reply_ok(client);
    client->is_closing = true;
}

void command_shutdown(struct client *client)
{
    struct kv *kv = client->kv;
    kv->saves_on_exit = kv->options.snapshot != NULL;
    if (client->request.count == 2 && bytes_are(client_argument(client, 1), "NOSAVE"))
        kv->saves_on_exit = false;
    else if (client->request.count == 2 && !bytes_are(client_argument(client, 1), "SAVE")) {
        reply_syntax_error(client);
        return;
    }
    client->control = CONTROL_STOP;
    client->is_closing = true;
}
