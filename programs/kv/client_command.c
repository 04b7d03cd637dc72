/* CLIENT and its subcommands. Each runs to completion on the loop's thread. */
#include "commands.h"

#include <bide/address.h>
#include <bide/socket.h>

#include <stdio.h>
#include <stdlib.h>

enum { WORK_OF_LINE = 8 }; /* of a client that is printed or compared by its address */

/* ---- Names ---- */

void client_set_name(struct client *client, struct bytes name)
{
    buffer_clear(&client->name, 0);
    if (buffer_reserve(&client->name, name.size + 1))
        buffer_append(&client->name, name.data, name.size);
}

bool client_is_name(struct bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] < '!' || name.data[i] > '~')
            return false;
    }
    return true;
}

static void set_name(struct client *client)
{
    if (client->request.count != 3) {
        REPLY(client, "-ERR wrong number of arguments for 'client|setname' command");
    } else if (!client_is_name(client_argument(client, 2))) {
        REPLY(client, "-ERR Client names cannot contain spaces, newlines or special characters.");
    } else {
        client_set_name(client, client_argument(client, 2));
        reply_ok(client);
    }
}

static void get_name(struct client *client)
{
    if (buffer_used(&client->name) > 0)
        reply_bulk(client, (struct bytes){client->name.data, buffer_used(&client->name)});
    else
        reply_nothing(client);
}

/* ---- Choosing clients ---- */

enum client_type { TYPE_ANY, TYPE_NORMAL, TYPE_PUBSUB, TYPE_NONE };

/* The clients that a subcommand is about. All zero is every client. */
struct filter {
    int64_t id;                  /* 0: any */
    struct bytes peer, local;    /* addresses; data NULL: any */
    enum client_type type;       /* TYPE_NONE: of replication, which there is none of */
    const struct client *except; /* or NULL */
};

/* Prints an address as clients write it, IP:PORT or [IP]:PORT; of a client of the Unix socket, both are its PATH:0. */
static struct bytes print_address(char text[BIDE_ADDRESS_TEXT], struct client *client,
                                  bool is_local)
{
    bide_address address;
    int status = is_local ? bide_local_address(client->socket, &address)
                          : bide_peer_address(client->socket, &address);
    text[0] = '\0';
    if (status == 0 && address.any.generic.sa_family == AF_UNIX)
        (void)snprintf(text, BIDE_ADDRESS_TEXT, "%s:0", client->kv->unix_path.path);
    else if (status == 0)
        bide_address_print(&address, text, BIDE_ADDRESS_TEXT);
    return bytes_of(text);
}

static bool has_address(struct client *client, struct bytes wanted, bool is_local)
{
    char text[BIDE_ADDRESS_TEXT];
    client->kv->work += wanted.data != NULL ? WORK_OF_LINE : 0;
    return wanted.data == NULL || bytes_equal(print_address(text, client, is_local), wanted);
}

static bool is_chosen(struct client *client, const struct filter *filter)
{
    enum client_type type = client->subscription_count > 0 ? TYPE_PUBSUB : TYPE_NORMAL;
    client->kv->work++;
    return !client->is_killed && client != filter->except &&
           (filter->id == 0 || client->id == (uint64_t)filter->id) &&
           (filter->type == TYPE_ANY || filter->type == type) &&
           has_address(client, filter->peer, false) && has_address(client, filter->local, true);
}

/* Parses the name of a type. Returns false after an error reply. */
static bool read_type(struct client *client, struct bytes word, enum client_type *type)
{
    if (bytes_are(word, "NORMAL")) {
        *type = TYPE_NORMAL;
    } else if (bytes_are(word, "PUBSUB")) {
        *type = TYPE_PUBSUB;
    } else if (bytes_are(word, "MASTER") || bytes_are(word, "REPLICA") ||
               bytes_are(word, "SLAVE")) {
        *type = TYPE_NONE;
    } else {
        reply_error(client, "-ERR Unknown client type '%.*s'", word.size < 64 ? (int)word.size : 64,
                    word.data);
        return false;
    }
    return true;
}

/* ---- LIST and INFO ---- */

static const char *flags_of(const struct client *client)
{
    return client->monitoring.client != NULL                  ? "O"
           : client->subscription_count > 0                   ? "P"
           : client->blocking.is_waiting || client->is_paused ? "b"
           : client->transaction.is_open                      ? "x"
           : client->is_closing                               ? "c"
                                                              : "N";
}

/* The name of its last command in small letters, with the subcommand if it still runs. */
static void print_command(char text[64], const struct client *client, const char *subcommand)
{
    size_t size = 0;
    for (const char *at = client->command != NULL ? client->command->name : ""; *at != '\0'; at++)
        text[size++] = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    (void)snprintf(text + size, 64 - size, "%s%s", subcommand != NULL ? "|" : "",
                   subcommand != NULL ? subcommand : "");
}

static bool append_line(struct buffer *text, struct client *at, const char *subcommand)
{
    enum { MAX_NAME = 100, MAX_LINE = 1024 };
    char peer[BIDE_ADDRESS_TEXT], local[BIDE_ADDRESS_TEXT], command[64];
    const struct kv *kv = at->kv;
    const struct transaction *transaction = &at->transaction;
    size_t name = buffer_used(&at->name) < MAX_NAME ? buffer_used(&at->name) : MAX_NAME;
    /* (replies that are not sent yet, without that of this request) */
    size_t waiting = subcommand != NULL ? 0 : buffer_used(&at->out) + at->sending;
    size_t patterns = at->pattern_count, memory = at->in.capacity + at->out.capacity;
    print_address(peer, at, false);
    print_address(local, at, true);
    print_command(command, at, subcommand);
    if (!buffer_reserve(text, MAX_LINE))
        return false;
    int size = snprintf(
        text->data + text->end, MAX_LINE,
        "id=%llu addr=%s laddr=%s fd=%d name=%.*s age=%lld idle=%lld flags=%s db=0 sub=%zu "
        "psub=%zu ssub=0 multi=%lld qbuf=%zu qbuf-free=%zu argv-mem=0 multi-mem=%zu rbs=%zu "
        "rbp=%zu "
        "obl=%zu oll=0 omem=%zu tot-mem=%zu events=r cmd=%s user=default redir=-1 resp=%u\n",
        (unsigned long long)at->id, peer, local, bide_descriptor_fd(at->socket), (int)name,
        name > 0 ? at->name.data + at->name.begin : "",
        (long long)(kv->keys.now - at->connected_at) / 1000,
        (long long)(kv->keys.now - at->last_active) / 1000, flags_of(at),
        at->subscription_count - patterns, patterns,
        transaction->is_open ? (long long)transaction->count : -1LL, buffer_used(&at->in),
        at->in.capacity - at->in.end, buffer_used(&transaction->requests), at->out.capacity,
        at->out.capacity, waiting, waiting, memory, command, at->protocol);
    bide_assert(size > 0 && size < MAX_LINE);
    text->end += (size_t)size;
    return true;
}

/* Lines of clients, as they are collected. */
struct listing {
    struct client *client; /* whose request it is */
    const struct filter *filter;
    const char *subcommand;
    struct buffer text;
    bool has_memory; /* and is not too large */
};

static void list_if_chosen(struct listing *listing, struct client *at)
{
    struct client *client = listing->client;
    if (!is_chosen(at, listing->filter))
        return;
    client->kv->work += WORK_OF_LINE;
    listing->has_memory =
        buffer_used(&listing->text) <= client->kv->options.reply &&
        append_line(&listing->text, at, at == client ? listing->subcommand : NULL);
}

/*
 * Lists the clients whose numbers are the arguments from `ids` on: in that order, and each once. Each number is
 * searched for in an array. (kv->clients begins with the newest, which has the largest number.)
 */
static void list_numbered(struct listing *listing, size_t ids)
{
    struct kv *kv = listing->client->kv;
    struct numbered {
        uint64_t id;
        struct client *client; /* NULL: it is listed already */
    } *all = malloc(kv->client_count * sizeof *all);
    size_t count = 0;
    listing->has_memory = all != NULL;
    for (struct client *at = kv->clients; at != NULL && all != NULL; at = at->next)
        all[count++] = (struct numbered){at->id, at};
    kv->work += count;
    for (size_t i = ids; i < listing->client->request.count && listing->has_memory; i++) {
        int64_t number;
        size_t low = 0, high = count;
        if (!number_read(client_argument(listing->client, i), &number))
            continue;
        for (; low < high; kv->work++) {
            size_t middle = low + (high - low) / 2;
            if (all[middle].id > (uint64_t)number)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == count || all[low].id != (uint64_t)number || all[low].client == NULL)
            continue;
        list_if_chosen(listing, all[low].client);
        all[low].client = NULL;
    }
    free(all);
}

/* Replies with the lines of the chosen clients, or of those whose number is an argument from `ids` on. */
static void reply_lines(struct client *client, const struct filter *filter, size_t ids,
                        const char *subcommand)
{
    struct listing listing = {client, filter, subcommand, {0}, true};
    struct buffer *text = &listing.text;
    if (ids != 0)
        list_numbered(&listing, ids);
    for (struct client *at = client->kv->clients; ids == 0 && at != NULL && listing.has_memory;
         at = at->next)
        list_if_chosen(&listing, at);
    if (listing.has_memory)
        reply_text(client, (struct bytes){text->data != NULL ? text->data : "", buffer_used(text)});
    else if (buffer_used(text) > client->kv->options.reply)
        reply_too_large(client);
    else
        reply_no_memory(client);
    buffer_free(text);
}

/* CLIENT LIST [TYPE type | ID id ...] */
static void list_clients(struct client *client)
{
    struct filter filter = {.type = TYPE_ANY};
    size_t count = client->request.count, ids = 0;
    if (count == 4 && bytes_are(client_argument(client, 2), "TYPE")) {
        if (!read_type(client, client_argument(client, 3), &filter.type))
            return;
    } else if (count > 3 && bytes_are(client_argument(client, 2), "ID")) {
        ids = 3;
        for (size_t i = ids; i < count; i++) {
            int64_t number;
            if (!number_read(client_argument(client, i), &number) || number < 1) {
                REPLY(client, "-ERR Invalid client ID");
                return;
            }
        }
    } else if (count > 2) {
        reply_syntax_error(client);
        return;
    }
    reply_lines(client, &filter, ids, "list");
}

/* ---- KILL ---- */

/*
 * Disconnects a client: another one at once, this one when its replies have been sent. Its coroutine ends when it
 * next runs; until then it is counted and shown no longer.
 */
static void kill_client(struct client *client, struct client *target)
{
    target->is_killed = true;
    target->kv->killed_clients++;
    if (target == client) {
        target->is_closing = true;
        return;
    }
    target->is_broken = true;
    blocking_end(target);
    bide_shutdown(target->socket, BIDE_HALF_BOTH);
}

static int64_t kill_chosen(struct client *client, const struct filter *filter)
{
    int64_t count = 0;
    for (struct client *at = client->kv->clients; at != NULL; at = at->next) {
        if (!is_chosen(at, filter))
            continue;
        kill_client(client, at);
        count++;
    }
    return count;
}

/* One pair of CLIENT KILL's words. Returns false after an error reply. */
static bool read_kill_option(struct client *client, size_t i, struct filter *filter)
{
    struct bytes word = client_argument(client, i), value = client_argument(client, i + 1);
    if (bytes_are(word, "ID")) {
        if (number_read(value, &filter->id) && filter->id > 0)
            return true;
        REPLY(client, "-ERR client-id should be greater than 0");
        return false;
    }
    if (bytes_are(word, "TYPE"))
        return read_type(client, value, &filter->type);
    if (bytes_are(word, "USER")) {
        if (value.size == 7 && memcmp(value.data, "default", 7) == 0)
            return true; /* the only one */
        reply_error(client, "-ERR No such user '%.*s'", value.size < 64 ? (int)value.size : 64,
                    value.data);
        return false;
    }
    if (bytes_are(word, "SKIPME") && (bytes_are(value, "YES") || bytes_are(value, "NO")))
        filter->except = bytes_are(value, "YES") ? client : NULL;
    else if (bytes_are(word, "ADDR"))
        filter->peer = value;
    else if (bytes_are(word, "LADDR"))
        filter->local = value;
    else {
        reply_syntax_error(client);
        return false;
    }
    return true;
}

/* CLIENT KILL address, or CLIENT KILL [ID id] [TYPE type] [ADDR address] [LADDR address] [USER user] [SKIPME yes|no] */
static void kill_clients(struct client *client)
{
    struct filter filter = {.type = TYPE_ANY};
    size_t count = client->request.count;
    if (count == 3) {
        filter.peer = client_argument(client, 2);
        if (kill_chosen(client, &filter) > 0)
            reply_ok(client);
        else
            REPLY(client, "-ERR No such client");
        return;
    }
    if (count % 2 != 0 || count < 4) {
        if (count < 4)
            REPLY(client, "-ERR wrong number of arguments for 'client|kill' command");
        else
            reply_syntax_error(client);
        return;
    }
    filter.except = client;
    for (size_t i = 2; i < count; i += 2) {
        if (!read_kill_option(client, i, &filter))
            return;
    }
    reply_number(client, kill_chosen(client, &filter));
}

/* ---- UNBLOCK ---- */

/* CLIENT UNBLOCK id [TIMEOUT|ERROR] */
static void unblock_client(struct client *client)
{
    bool is_error = client->request.count == 4 && bytes_are(client_argument(client, 3), "ERROR");
    int64_t id;
    if (client->request.count == 4 && !is_error &&
        !bytes_are(client_argument(client, 3), "TIMEOUT")) {
        REPLY(client, "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        return;
    }
    if (!argument_number(client, 2, &id))
        return;
    struct client *target = client->kv->clients;
    for (; target != NULL && target->id != (uint64_t)id; client->kv->work++)
        target = target->next;
    if (target == NULL || !target->blocking.is_waiting) {
        reply_number(client, 0);
        return;
    }
    size_t replies = buffer_used(&target->out);
    if (is_error)
        REPLY(target, "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    else
        reply_null_array(target);
    reply_hide(target, replies);
    blocking_end(target);
    reply_number(client, 1);
}

/* ---- REPLY ---- */

/* CLIENT REPLY ON|OFF|SKIP, of which only ON has a reply itself. */
static void set_reply_mode(struct client *client)
{
    struct bytes word = client_argument(client, 2);
    if (client->transaction.is_running) {
        REPLY(client, "-ERR CLIENT REPLY is not allowed inside a transaction");
        return;
    }
    if (bytes_are(word, "ON")) {
        client->reply_mode = REPLY_ON;
        client->is_silent = false;
        reply_ok(client);
    } else if (bytes_are(word, "OFF")) {
        client->reply_mode = REPLY_OFF;
        client->is_silent = true;
    } else if (bytes_are(word, "SKIP")) {
        if (client->reply_mode == REPLY_ON)
            client->reply_mode = REPLY_SKIP_NEXT;
        client->is_silent = true;
    } else {
        reply_syntax_error(client);
    }
}

/* ---- CLIENT ---- */

void command_client(struct client *client)
{
    struct bytes word = client_argument(client, 1);
    size_t count = client->request.count;
    if (bytes_are(word, "ID") && count == 2) {
        reply_number(client, (int64_t)client->id);
    } else if (bytes_are(word, "SETNAME")) {
        set_name(client);
    } else if (bytes_are(word, "GETNAME") && count == 2) {
        get_name(client);
    } else if (bytes_are(word, "LIST")) {
        list_clients(client);
    } else if (bytes_are(word, "INFO") && count == 2) {
        reply_lines(client, &(struct filter){.id = (int64_t)client->id}, 0, "info");
    } else if (bytes_are(word, "KILL")) {
        kill_clients(client);
    } else if (bytes_are(word, "UNBLOCK") && (count == 3 || count == 4)) {
        unblock_client(client);
    } else if (bytes_are(word, "PAUSE") && (count == 3 || count == 4)) {
        client_pause(client);
    } else if (bytes_are(word, "UNPAUSE") && count == 2) {
        pause_end(client->kv);
        reply_ok(client);
    } else if (bytes_are(word, "REPLY") && count == 3) {
        set_reply_mode(client);
    } else if (bytes_are(word, "SETINFO") && count == 4) {
        reply_ok(client);
    } else if (bytes_are(word, "NO-EVICT") && count == 3) {
        struct bytes mode = client_argument(client, 2);
        if (bytes_are(mode, "ON") || bytes_are(mode, "OFF"))
            reply_ok(client); /* (no client is ever evicted) */
        else
            reply_syntax_error(client);
    } else {
        reply_error(client,
                    "-ERR unknown subcommand or wrong number of arguments for 'client|%.*s'",
                    word.size < 64 ? (int)word.size : 64, word.data);
    }
}
