/*
 * MONITOR: a client that monitors has a line for each request that has run, with its time, the address of its client and
 * its arguments. Those about the server's own state, and passwords, are not shown. pubsub.h has how lines are delivered.
 */
#include "commands.h"

#include <bide/address.h>

#include <stdio.h>
#include <time.h>

/* The subcommands that are shown, of commands that have such. */
static const struct {
    command_function *run;
    const char *name;                    /* in capitals */
    size_t min_arguments, max_arguments; /* as in struct command */
} shown_subcommands[] = {
    {command_client, "ID", 2, 2},       {command_client, "INFO", 2, 2},
    {command_client, "SETNAME", 3, 3},  {command_client, "GETNAME", 2, 2},
    {command_client, "REPLY", 3, 3},    {command_client, "SETINFO", 4, 4},
    {command_command, "COUNT", 2, 2},   {command_command, "DOCS", 2, SIZE_MAX},
    {command_object, "ENCODING", 3, 3}, {command_object, "FREQ", 3, 3},
    {command_object, "IDLETIME", 3, 3}, {command_object, "REFCOUNT", 3, 3},
    {command_pubsub, "CHANNELS", 2, 3}, {command_pubsub, "NUMSUB", 2, SIZE_MAX},
    {command_pubsub, "NUMPAT", 2, 2},
};

static bool is_shown(const struct client *client, const struct command *command)
{
    const size_t known = sizeof shown_subcommands / sizeof *shown_subcommands;
    size_t count = client->request.count;
    bool has_subcommands = false;
    for (size_t i = 0; i < known; i++) {
        if (shown_subcommands[i].run != command->run || count == 1)
            continue;
        has_subcommands = true;
        if (bytes_are(client_argument(client, 1), shown_subcommands[i].name) &&
            count >= shown_subcommands[i].min_arguments &&
            count <= shown_subcommands[i].max_arguments)
            return true;
    }
    return !has_subcommands && (command->kind & HIDDEN) == 0;
}

/* ---- Lines ---- */

/* Appends text to the lines. If that is too much, or memory is exhausted, they are lost. */
static void append_text(struct kv *kv, struct bytes text)
{
    struct pubsub *pubsub = &kv->pubsub;
    pubsub->lost_lines |= text.size > kv->options.backlog ||
                          buffer_used(&pubsub->lines) > kv->options.backlog - text.size ||
                          !buffer_reserve(&pubsub->lines, text.size);
    if (!pubsub->lost_lines)
        buffer_append(&pubsub->lines, text.data, text.size);
}

/* The escape of a byte behind a backslash, or 0. */
static char escape_of(char c)
{
    return c == '\\' || c == '"' ? c
           : c == '\n'           ? 'n'
           : c == '\r'           ? 'r'
           : c == '\t'           ? 't'
           : c == '\a'           ? 'a'
           : c == '\b'           ? 'b'
                                 : 0;
}

/* Appends text in quotes, its bytes escaped as redis does it. */
static void append_quoted(struct kv *kv, struct bytes text)
{
    enum { PIECE = 256, MAX_ESCAPE = 4 };
    static const char digits[] = "0123456789abcdef";
    char piece[PIECE];
    size_t size = 0;
    piece[size++] = '"';
    for (size_t i = 0; i < text.size && !kv->pubsub.lost_lines; i++) {
        char c = text.data[i], escape = escape_of(c);
        if (size > PIECE - MAX_ESCAPE) {
            append_text(kv, (struct bytes){piece, size});
            size = 0;
        }
        if (escape != 0) {
            piece[size++] = '\\';
            piece[size++] = escape;
        } else if (c >= ' ' && c <= '~') {
            piece[size++] = c;
        } else {
            piece[size++] = '\\';
            piece[size++] = 'x';
            piece[size++] = digits[(unsigned char)c >> 4];
            piece[size++] = digits[(unsigned char)c & 15];
        }
    }
    append_text(kv, (struct bytes){piece, size});
    append_text(kv, bytes_of("\""));
}

/* Appends the time, the database, and the client's address. */
static void append_origin(struct kv *kv, struct client *client)
{
    char text[64], peer[BIDE_ADDRESS_TEXT] = "";
    bide_address address;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(text, sizeof text, "+%lld.%06ld [0 ", (long long)now.tv_sec, now.tv_nsec / 1000);
    append_text(kv, bytes_of(text));
    if (bide_peer_address(client->socket, &address) == 0) {
        bool is_unix = address.any.generic.sa_family == AF_UNIX;
        if (!is_unix)
            bide_address_print(&address, peer, sizeof peer);
        append_text(kv, bytes_of(is_unix ? "unix:" : peer));
        if (is_unix)
            append_text(kv, bytes_of(kv->unix_path.path));
    }
    append_text(kv, bytes_of("]"));
}

/*
 * Appends the arguments. The users and passwords of AUTH, and of HELLO's option of that name, are redacted, also if the request
 * is wrong.
 */
static void append_arguments(struct kv *kv, struct client *client, const struct command *command)
{
    size_t secrets = 0, names = 0; /* of the next arguments */
    for (size_t i = 0; i < client->request.count && !kv->pubsub.lost_lines; i++) {
        struct bytes argument = client_argument(client, i);
        append_text(kv, bytes_of(" "));
        append_quoted(kv, secrets > 0 ? bytes_of("(redacted)") : argument);
        if (i == 0 && command->run == command_auth)
            secrets = SIZE_MAX;
        else if (secrets > 0)
            secrets--;
        else if (names > 0)
            names--;
        else if (i > 1 && command->run == command_hello && bytes_are(argument, "AUTH"))
            secrets = 2;
        else if (i > 1 && command->run == command_hello && bytes_are(argument, "SETNAME"))
            names = 1;
    }
}

void monitors_show(struct client *client, const struct command *command)
{
    enum { RETAINED_LINES = 64 << 10, LINE_BYTES = 1024 }; /* ... printed in a step */
    struct kv *kv = client->kv;
    struct pubsub *pubsub = &kv->pubsub;
    size_t before = buffer_used(&pubsub->lines);
    if (is_shown(client, command)) {
        append_origin(kv, client);
        append_arguments(kv, client, command);
        append_text(kv, bytes_of("\r\n"));
        kv->work += 1 + (buffer_used(&pubsub->lines) - before) / LINE_BYTES;
    }
    if (client->transaction.is_running)
        return;
    if (pubsub->lost_lines || buffer_used(&pubsub->lines) > 0) {
        publish_lines(
            client,
            (struct bytes){pubsub->lines.data + pubsub->lines.begin, buffer_used(&pubsub->lines)},
            pubsub->lost_lines);
        client->pushed = buffer_used(&client->out); /* (the replies before have been hidden) */
    }
    buffer_clear(&pubsub->lines, RETAINED_LINES);
    pubsub->lost_lines = false;
}

/* ---- The command ---- */

/* A client that monitors has a second coroutine, as a subscriber has. */
void command_monitor(struct client *client)
{
    struct pubsub *pubsub = &client->kv->pubsub;
    struct subscription *monitoring = &client->monitoring;
    if (client->transaction.is_running) {
        REPLY(client, "-ERR MONITOR isn't allowed for DENY BLOCKING client");
        return;
    }
    if (monitoring->client != NULL) /* (redis has no reply either) */
        return;
    *monitoring = (struct subscription){
        .client = client, .next = pubsub->monitors, .link = &pubsub->monitors};
    if (monitoring->next != NULL)
        monitoring->next->link = &monitoring->next;
    pubsub->monitors = monitoring;
    client->has_subscribed = true;
    reply_ok(client);
}

void monitors_leave(struct client *client)
{
    if (client->monitoring.client == NULL)
        return;
    subscription_unlink(&client->kv->pubsub, &client->monitoring);
    client->monitoring = (struct subscription){.client = NULL};
}
