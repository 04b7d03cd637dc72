#include "tasks.h"

#include <errno.h>
#include <stdlib.h>

enum {
    ROOM = 16 << 10,  /* to receive, at least */
    KEPT = 256 << 10, /* memory that a client keeps when it has nothing in it */
    WELL = 1 << 20    /* what is not received any more at once of a large request */
};

/* ---- Requests and replies ---- */

/* Does what a request has asked for that takes time. */
async int grant(struct client *client)
{
    struct kv *kv = client->kv;
    enum wish wish = client->wish;
    client->wish = WISH_NOTHING;
    if (wish == WISH_SAVE) {
        int status = await save_snapshot(kv);
        if (status == 0)
            reply_ok(client);
        else
            reply_error(client, "-ERR %s: %s", kv->options.snapshot, strerror(-status));
    } else if (wish == WISH_SAVE_LATER) {
        kv->wants_snapshot = true;
        bide_single_consumer_auto_event_set(&kv->save_wanted);
        REPLY(client, "+Background saving started");
    } else if (wish == WISH_REWRITE) {
        kv->wants_rewrite = true;
        bide_single_consumer_auto_event_set(&kv->save_wanted);
        REPLY(client, "+Background append only file rewriting started");
    } else if (wish == WISH_STOP) {
        bide_single_consumer_auto_event_set(&kv->stop);
    }
    return 0;
}

/* Does the requests that have come whole, and sends the replies. */
async int answer(struct client *client)
{
    struct journal *journal = &client->kv->journal;
    bool more;
    do {
        more = client_run(client);
        journal_poke(journal);
        if (client->wish != WISH_NOTHING)
            await grant(client);
        if (client->has_subscribed) {
            bide_single_consumer_auto_event_set(&client->messages);
        } else if (buffer_used(&client->out) > 0) {
            if (journal_holds_replies(journal)) {
                int status = await journal_wait(journal);
                if (status < 0)
                    return status;
            }
            long sent = await bide_send(client->socket, client->out.data + client->out.begin,
                                        buffer_used(&client->out));
            if (sent < 0)
                return (int)sent;
            buffer_clear(&client->out, KEPT);
        }
    } while (more && !client->is_broken);
    return 0;
}

/* Memory for what comes next: for a large request no more than twice what has come of it. */
static bool make_room(struct client *client)
{
    size_t used = buffer_used(&client->in), needs = request_needs(&client->request), room = ROOM;
    if (used == 0)
        buffer_clear(&client->in, KEPT);
    if (needs > used + ROOM)
        room = needs - used < WELL ? needs - used : WELL;
    return buffer_reserve(&client->in, room);
}

/* Takes requests until the client ends, or, if that is so asked, has subscribed to something. */
async int take_requests(struct client *client, bool until_subscribed)
{
    int status = 0;
    while (status == 0 && !client->is_over && !client->is_broken &&
           !(until_subscribed && client->has_subscribed)) {
        if (!make_room(client))
            return -ENOMEM;
        long count = await bide_recv(client->socket, client->in.data + client->in.end,
                                     client->in.capacity - client->in.end);
        if (count <= 0)
            status = count < 0 ? (int)count : -EPIPE;
        else {
            client->in.end += (size_t)count;
            status = await answer(client);
        }
    }
    return status;
}

/* ---- Clients that have subscribed ---- */

/* The requests of one; what is to be sent to it is sent before it ends. */
async int take_requests_of_subscriber(struct client *client)
{
    int status = await take_requests(client, false);
    client->is_over = true;
    bide_single_consumer_auto_event_set(&client->messages);
    return status == -EPIPE ? 0 : status;
}

/* Sends messages and replies as they come; what comes meanwhile gathers. */
async int send_messages(struct client *client)
{
    struct journal *journal = &client->kv->journal;
    struct buffer sending = {0};
    defer buffer_free(&sending);
    for (;;) {
        while (buffer_used(&client->out) == 0) {
            if (client->is_over || client->is_broken)
                return 0;
            int status = await bide_single_consumer_auto_event_wait(&client->messages);
            if (status < 0)
                return status;
        }
        if (journal_holds_replies(journal)) {
            int status = await journal_wait(journal);
            if (status < 0)
                return status;
        }
        struct buffer filled = client->out;
        client->out = sending;
        sending = filled;
        long sent =
            await bide_send(client->socket, sending.data + sending.begin, buffer_used(&sending));
        if (sent < 0)
            return (int)sent;
        buffer_clear(&sending, KEPT);
    }
}

/* ---- One client, from its beginning to its end ---- */

static void client_begin(struct client *client, bide_connection *connection)
{
    struct kv *kv = connection->server->argument;
    *client = (struct client){.kv = kv,
                              .socket = &connection->socket,
                              .id = ++kv->last_id,
                              .next = kv->clients,
                              .place = &kv->clients};
    bide_single_consumer_auto_event_init(&client->messages, false);
    if (client->next != NULL)
        client->next->place = &client->next;
    kv->clients = client;
    kv->client_count++;
    kv->connections++;
    bide_set_no_delay(client->socket, true);
}

static void client_end(struct client *client)
{
    pubsub_leave(client);
    *client->place = client->next;
    if (client->next != NULL)
        client->next->place = client->place;
    client->kv->client_count--;
    buffer_free(&client->in);
    buffer_free(&client->out);
    buffer_free(&client->name);
    free(client->request.more);
}

async int serve(bide_connection *connection)
{
    struct client client;
    client_begin(&client, connection);
    defer client_end(&client);
    int status = await take_requests(&client, true);
    if (client.has_subscribed && status == 0)
        status = await all(take_requests_of_subscriber(&client), send_messages(&client));
    return status == -EPIPE || status == -ECONNRESET ? 0 : status;
}

/* What bide_server begins for each: it has a body of the other kind. */
struct connection {
    bide_connection connection;
    async_frame(serve) serve;
};

bide_coroutine(connection_body)
{
    bide_begin(connection_body, struct connection * self);
    bide_try(async_serve(&self->serve, &self->connection));
    bide_end();
}

int client_server_init(struct kv *kv)
{
    bide_server_options options = {.body = &connection_body,
                                   .size = sizeof(struct connection),
                                   .max_connections = kv->options.clients,
                                   .allocator = &bide_heap};
    int status = bide_server_init(&kv->server, &options);
    kv->server.argument = kv;
    return status;
}

/* What is in the socket can still be read, and then comes its end. */
void clients_end(struct kv *kv)
{
    for (struct client *client = kv->clients; client != NULL; client = client->next)
        bide_shutdown(client->socket, BIDE_HALF_INPUT);
}
