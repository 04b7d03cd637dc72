/*
 * The coroutines of a client: receive requests, run them, send the replies; and the server of
 * connections. All run on the loop's thread.
 */
#define _GNU_SOURCE /* POLLRDHUP */
#include "../common/secure.h"
#include "combine.h"
#include "tasks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    MIN_READ_SPACE = 16 << 10,     /* to receive into */
    RETAINED_CAPACITY = 256 << 10, /* that an empty buffer of a client keeps */
    MAX_READ_AHEAD = 1 << 20,      /* of a large request: the most that one call reserves */
    HANDSHAKE_SECONDS = 10,        /* The TLS handshake may take so long. */
    END_SECONDS = 1 /* The end of TLS waits so long for a client that does not read. */
};

/* ---- The connection, with or without TLS ---- */

/* The part of a client with TLS alone. Its reading and writing may be under way at once. */
struct secure_client {
    bide_stream_operation reading, writing;
    _Alignas(max_align_t) char connection[];
};

static struct secure *secure_of(struct client *client)
{
    return (struct secure *)client->secure->connection;
}

static bide_stream stream_of(struct client *client)
{
    return secure_stream(secure_of(client));
}

async int client_send(struct client *client, const struct buffer *buffer)
{
    const char *data = buffer->data + buffer->begin;
    if (client->secure != NULL)
        return await bide_stream_write(&client->secure->writing, stream_of(client), data,
                                       buffer_used(buffer));
    try await bide_send(client->socket, data, buffer_used(buffer));
    return 0;
}

/*
 * Receives behind the input, where there must be space. Ends with -EPIPE at the end of input, also at one without the end of TLS,
 * as many clients disconnect: a request has its own end.
 */
async int client_receive(struct client *client)
{
    char *data = client->in.data + client->in.end;
    size_t space = client->in.capacity - client->in.end, count;
    if (client->secure != NULL) {
        bide_stream_operation *reading = &client->secure->reading;
        int status = await bide_stream_read(reading, stream_of(client), data, space);
        count = bide_stream_count(reading, stream_of(client));
        if (status < 0 && count == 0)
            return status == -ECONNABORTED ? -EPIPE : status;
    } else {
        count = (size_t)try await bide_recv(client->socket, data, space);
    }
    client->in.end += count;
    return count > 0 ? 0 : -EPIPE;
}

async int shake_hands(struct client *client)
{
    uint64_t deadline = bide_now(bide_this_context()) + UINT64_C(1000000000) * HANDSHAKE_SECONDS;
    return await bide_with_deadline(deadline, secure_accept(secure_of(client), client->kv->tls,
                                                            bide_socket_stream(client->socket)));
}

/* Ends the output of TLS, so that the client knows that it has all replies. */
async int end_secure_output(struct client *client)
{
    uint64_t deadline = bide_now(bide_this_context()) + UINT64_C(1000000000) * END_SECONDS;
    return await bide_with_deadline(
        deadline, bide_stream_shutdown_output(&client->secure->writing, stream_of(client)));
}

/* ---- Requests and replies ---- */

/* Performs an action that takes time, which a request has asked for. */
async int run_control_request(struct client *client)
{
    struct kv *kv = client->kv;
    enum control control = client->control;
    client->control = CONTROL_NONE;
    if (control == CONTROL_SAVE) {
        int status = await save_snapshot(kv);
        size_t replies = buffer_used(&client->out);
        if (status == 0)
            reply_ok(client);
        else
            reply_error(client, "-ERR %s: %s", kv->options.snapshot, strerror(-status));
        reply_hide(client, replies);
    } else if (control == CONTROL_STOP) {
        bide_single_consumer_auto_event_set(&kv->stop);
    }
    return 0;
}

/*
 * Waits until the changes that the replies report are in the file. If they are not, for lack of room,
 * the replies become errors.
 */
async int settle_replies(struct journal *journal, struct buffer *out, struct buffer *changes)
{
    int status = 0;
    if (journal_holds_replies(journal, buffer_used(changes) > 0)) {
        status = await journal_wait(journal);
        if (journal_is_full_error(status))
            status = replies_refuse_changes(out, changes, status) ? 0 : -ENOMEM;
    }
    buffer_clear(changes, RETAINED_CAPACITY);
    return status;
}

/* ---- Waits for elements of keys ---- */

/* Waits until the client waits no longer. */
async int wait_until_served(struct client *client)
{
    struct blocking *blocking = &client->blocking;
    uint64_t deadline = bide_now(bide_this_context()) + (uint64_t)blocking->timeout * 1000000;
    int status = 0;
    while (status == 0 && blocking->is_waiting) {
        if (blocking->timeout == 0)
            status = await bide_single_consumer_auto_event_wait(&blocking->served);
        else
            status = await bide_with_deadline(
                deadline, bide_single_consumer_auto_event_wait(&blocking->served));
    }
    return status;
}

/* Waits until the client disconnects. Requests behind the present one stay in the socket. */
async int wait_until_left(struct client *client)
{
    try await bide_poll(client->socket, POLLRDHUP);
    return -EPIPE;
}

/* Waits as the request of BLPOP or the like has asked for. */
async int wait_for_elements(struct client *client)
{
    client->control = CONTROL_NONE;
    int status = await any(wait_until_served(client), wait_until_left(client));
    if (client->blocking.is_waiting) { /* (otherwise its reply is there, whatever else has come) */
        blocking_end(client);
        if (status != -ETIMEDOUT)
            return status;
        size_t replies = buffer_used(&client->out);
        reply_null_array(client);
        reply_hide(client, replies);
    }
    client_end_request(client);
    return 0;
}

/* Waits until the pause that postpones the client's request has ended. (Another one may have begun when it runs again.) */
async int wait_for_unpause(struct client *client)
{
    struct pause *pause = &client->kv->pause;
    client->control = CONTROL_NONE;
    client->repeats_request = true;
    client->is_paused = true;
    pause->clients++;
    defer pause->clients--;
    defer client->is_paused = false;
    int status = await any(bide_event_wait(&pause->ended), wait_until_left(client));
    return status;
}

/*
 * Runs the complete requests and sends the replies. Those of a subscriber are sent by its other
 * coroutine; with `until_subscribed`, that one does not run yet.
 */
async int run_requests(struct client *client, bool until_subscribed)
{
    struct journal *journal = &client->kv->journal;
    bool more;
    do {
        more = client_run(client);
        journal_wake_writer(journal);
        if (client->control == CONTROL_SAVE || client->control == CONTROL_STOP)
            await run_control_request(client);
        if (client->has_subscribed) {
            bide_single_consumer_auto_event_set(&client->messages);
            while (!until_subscribed && buffer_used(&client->out) >= CLIENT_MAX_REPLIES &&
                   !client->is_broken)
                try await bide_single_consumer_auto_event_wait(&client->taken);
        } else if (buffer_used(&client->out) > 0) {
            try await settle_replies(journal, &client->out, &client->changes);
            try await client_send(client, &client->out);
            buffer_clear(&client->out, RETAINED_CAPACITY);
        }
        if (client->control == CONTROL_REPEAT) {
            client->control = CONTROL_NONE;
            client->repeats_request = true;
            if (client->awaits_group && journal_is_behind(journal))
                try await journal_next_group(journal);
            client->awaits_group = false;
        } else if (client->control == CONTROL_WAIT) {
            try await wait_for_elements(client);
        } else if (client->control == CONTROL_PAUSE) {
            try await wait_for_unpause(client);
        }
        while (client->publications > 0)
            try await bide_single_consumer_auto_event_wait(&client->published);
        if (client->work >= CLIENT_MAX_WORK) {
            client->work = 0;
            client->kv->turns_ended++;
            try await bide_sleep_for(TASKS_PAUSE);
        }
    } while (more && !client->is_broken && !(until_subscribed && client->has_subscribed));
    return 0;
}

/* Reserves space for input; for a large request no more than twice the size already received. */
static bool reserve_input(struct client *client)
{
    size_t used = buffer_used(&client->in), needs = request_needs(&client->request),
           space = MIN_READ_SPACE;
    if (used == 0)
        buffer_clear(&client->in, RETAINED_CAPACITY);
    if (needs > used + MIN_READ_SPACE)
        space = needs - used < MAX_READ_AHEAD ? needs - used : MAX_READ_AHEAD;
    return buffer_reserve(&client->in, space);
}

/*
 * Receives and runs requests until the client disconnects or, with `until_subscribed`, has
 * subscribed.
 */
async int receive_requests(struct client *client, bool until_subscribed)
{
    for (;;) {
        /* (the first time, those that a subscriber sent together with its first subscription) */
        try await run_requests(client, until_subscribed);
        if (client->is_closing || client->is_broken || (until_subscribed && client->has_subscribed))
            return 0;
        if (!reserve_input(client))
            return -ENOMEM;
        try await client_receive(client);
    }
}

/* ---- Clients that have subscribed ---- */

/*
 * Receives the requests of a subscriber. When it returns, send_messages still sends what is left in
 * `out`.
 */
async int receive_subscriber_requests(struct client *client)
{
    int status = await receive_requests(client, false);
    client->is_closing = true;
    bide_single_consumer_auto_event_set(&client->messages);
    return status == -EPIPE ? 0 : status;
}

/*
 * Sends messages and replies as they are produced. Those produced during a send form the next one.
 */
async int send_messages(struct client *client)
{
    struct journal *journal = &client->kv->journal;
    struct buffer sending = {0}, changes = {0};
    defer buffer_free(&sending);
    defer buffer_free(&changes);
    for (;;) {
        while (buffer_used(&client->out) == 0) {
            if (client->is_closing || client->is_broken)
                return 0;
            try await bide_single_consumer_auto_event_wait(&client->messages);
        }
        struct buffer filled = client->out, filled_changes = client->changes;
        client->out = sending;
        client->changes = changes;
        sending = filled;
        changes = filled_changes;
        bide_single_consumer_auto_event_set(&client->taken);
        client->sending = buffer_used(&sending);
        try await settle_replies(journal, &sending, &changes);
        try await client_send(client, &sending);
        buffer_clear(&sending, RETAINED_CAPACITY);
        client->sending = 0;
    }
}

/* ---- The lifetime of a client ---- */

static bool is_on_this_machine(const bide_address *peer)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* version 4 in version 6 */
    const uint8_t *ip = peer->any.v6.sin6_addr.s6_addr;
    switch (peer->any.generic.sa_family) {
    case AF_UNIX:
        return true;
    case AF_INET:
        return ntohl(peer->any.v4.sin_addr.s_addr) >> 24 == 127;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&peer->any.v6.sin6_addr) ||
               (memcmp(ip, mapped, sizeof mapped) == 0 && ip[12] == 127);
    default:
        return false;
    }
}

static void client_init(struct client *client, bide_connection *connection,
                        struct secure_client *secure)
{
    struct kv *kv = connection->server->argument;
    *client = (struct client){.kv = kv,
                              .socket = &connection->socket,
                              .secure = secure,
                              .id = ++kv->last_id,
                              .protocol = 2,
                              .is_authenticated = kv->options.password == NULL,
                              .next = kv->clients,
                              .link = &kv->clients};
    bide_single_consumer_auto_event_init(&client->messages, false);
    bide_single_consumer_auto_event_init(&client->taken, false);
    bide_single_consumer_auto_event_init(&client->published, false);
    bide_single_consumer_auto_event_init(&client->blocking.served, false);
    if (client->next != NULL)
        client->next->link = &client->next;
    kv->clients = client;
    kv_update_clock(kv);
    client->connected_at = client->last_active = kv->keys.now;
    kv->client_count++;
    kv->connections++;
    bide_set_no_delay(client->socket, true);
}

/*
 * Protected mode: without a password, only clients on this machine are served, whatever address the
 * server listens on.
 */
static void reject_distant_client(struct client *client)
{
    const struct options *options = &client->kv->options;
    bide_address peer;
    if (options->password != NULL || !options->is_protected ||
        (bide_peer_address(client->socket, &peer) == 0 && is_on_this_machine(&peer)))
        return;
    REPLY(client, "-DENIED the server has no password, so it only serves clients on its own "
                  "machine: start it with --password-file, or with --protected-mode no");
    client->is_closing = true;
}

static void client_destroy(struct client *client)
{
    blocking_end(client);
    pubsub_leave(client, UINT64_MAX);
    monitors_leave(client);
    publications_leave(client);
    transaction_clear(client);
    bide_assert(client->subscription_count == 0 && client->kv->client_count > 0);
    *client->link = client->next;
    if (client->next != NULL)
        client->next->link = client->link;
    client->kv->client_count--;
    client->kv->killed_clients -= client->is_killed;
    buffer_free(&client->in);
    buffer_free(&client->out);
    buffer_free(&client->changes);
    buffer_free(&client->deferred);
    buffer_free(&client->name);
    combination_drop(client);
    buffer_free(&client->listing.names);
    free(client->request.more);
    if (client->secure != NULL)
        secure_close(secure_of(client));
}

/* Removes many subscriptions in slices. If it is cancelled, client_destroy removes the rest. */
async int leave_subscriptions(struct client *client)
{
    struct kv *kv = client->kv;
    client->is_broken = true; /* (for messages that come meanwhile) */
    while (!pubsub_leave(client, kv->work + CLIENT_MAX_WORK)) {
        kv->turns_ended++;
        try await bide_sleep_for(TASKS_PAUSE);
    }
    return 0;
}

/* Serves the client until it disconnects or is disconnected. */
async int serve_requests(struct client *client)
{
    if (client->secure != NULL)
        try await shake_hands(client);
    reject_distant_client(client);
    int status = await receive_requests(client, true);
    if (client->has_subscribed && status == 0)
        status = await all(receive_subscriber_requests(client), send_messages(client));
    if (client->secure != NULL && (status == 0 || status == -EPIPE) && !client->is_broken)
        await end_secure_output(client);
    return status;
}

async int client_serve(bide_connection *connection, struct secure_client *secure)
{
    struct client client;
    client_init(&client, connection, secure);
    defer client_destroy(&client);
    int status = await serve_requests(&client);
    await leave_subscriptions(&client);
    return status == -EPIPE || status == -ECONNRESET ? 0 : status;
}

/* The server's state for each connection, whose body is a coroutine of the macros. */
struct kv_connection {
    bide_connection connection;
    async_frame(client_serve) frame;
    _Alignas(max_align_t) char secure[]; /* of the server with TLS alone */
};

/* The connection's TLS, initialised; or NULL. */
static struct secure_client *connection_secure(struct kv_connection *self)
{
    const struct kv *kv = self->connection.server->argument;
    struct secure_client *secure = (void *)self->secure;
    if (self->connection.server != kv->secure_server)
        return NULL;
    secure_init((struct secure *)secure->connection);
    return secure;
}

bide_coroutine(connection_body)
{
    bide_begin(connection_body, struct kv_connection * self);
    bide_try(async_client_serve(&self->frame, &self->connection, connection_secure(self)));
    bide_end();
}

int client_server_init(struct kv *kv, bide_server *server, bool is_secure)
{
    bide_server_options options = {
        .body = &connection_body,
        .size = sizeof(struct kv_connection) +
                (is_secure ? sizeof(struct secure_client) + secure_size() : 0),
        .max_connections = kv->options.clients,
        .allocator = &bide_heap};
    int status = bide_server_init(server, &options);
    server->argument = kv;
    if (is_secure)
        kv->secure_server = server;
    return status;
}

/*
 * Data that is already in the socket can still be read; the next read after it returns end of file.
 */
void clients_shut_down_input(struct kv *kv)
{
    for (struct client *client = kv->clients; client != NULL; client = client->next)
        bide_shutdown(client->socket, BIDE_HALF_INPUT);
}
