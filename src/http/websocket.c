/*
 * The handshake of websockets, by HTTP. What it says is checked in src/websocket/handshake.c.
 *
 * What came behind the handshake is in the reader's buffer. The websocket begins with that, in the same
 * memory if it has no other.
 */
#include "bide/http_websocket.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

typedef bide_http_websocket_operation opening;

static bide_websocket_value value_of(bide_slice text)
{
    bide_websocket_value value = {text.data, text.size};
    return value;
}

/* The connection is the websocket's. */
static int take_over(opening *self, bide_websocket_role role, bide_reader *reader,
                     bide_writer *writer)
{
    bide_websocket_options *options = &self->options;
    options->role = role;
    options->initial = bide_reader_peek(reader);
    options->initial_size = bide_reader_buffered(reader);
    if (options->read_buffer == NULL) {
        options->read_buffer = reader->buffer;
        options->read_buffer_size = reader->size;
    }
    if (options->write_buffer == NULL) {
        options->write_buffer = writer->buffer;
        options->write_buffer_size = writer->size;
    }
    return bide_websocket_init(self->websocket, reader->stream, options);
}

/* ---- Servers ---- */

/* Is it a request for one? If so, the answer's fields are added. 0, or an error that is answered. */
static int check_request(opening *self)
{
    bide_http_exchange *exchange = self->exchange;
    const bide_http_request *request = &exchange->request;
    /* (an upgrade is asked for by both fields: http.h) */
    bide_websocket_headers headers = {
        .upgrade = value_of(request->upgrade),
        .connection = {"upgrade", sizeof "upgrade" - 1},
        .version = value_of(bide_http_request_field(exchange, "Sec-WebSocket-Version")),
        .key = value_of(bide_http_request_field(exchange, "Sec-WebSocket-Key")),
    };
    if (request->method != BIDE_HTTP_GET || request->upgrade.size == 0)
        return -EINVAL;
    return bide_websocket_check_request(&headers, self->key);
}

static int add_fields(opening *self)
{
    bide_http_exchange *exchange = self->exchange;
    bide_slice name = {"Sec-WebSocket-Protocol", sizeof "Sec-WebSocket-Protocol" - 1};
    bide_websocket_value chosen = {NULL, 0};
    int status = bide_http_add(exchange, "Sec-WebSocket-Accept", self->key);
    if (status == 0 && self->protocols != NULL)
        chosen = bide_websocket_select_protocol(
            value_of(bide_http_request_field(exchange, name.data)), self->protocols);
    if (status == 0 && chosen.data != NULL)
        status = bide_http_add_slices(exchange, name, (bide_slice){chosen.data, chosen.size});
    return status;
}

bide_coroutine(accept_websocket_body)
{
    static const char none[] = "This is for a WebSocket.\n";
    bide_begin(accept_websocket_body, opening * self);
    self->status = check_request(self);
    if (self->status < 0) {
        self->exchange->status = self->status == -EPROTONOSUPPORT ? 426 : 400;
        bide_http_add(self->exchange, "Content-Type", "text/plain");
        if (self->status == -EPROTONOSUPPORT)
            bide_http_add(self->exchange, "Sec-WebSocket-Version", "13");
        bide_try(bide_http_respond(self->exchange, none, sizeof none - 1));
        bide_return(self->status);
    }
    self->status = add_fields(self);
    if (self->status < 0)
        bide_return(self->status);
    bide_try(bide_http_upgrade(self->exchange, "websocket"));
    bide_return(take_over(self, BIDE_WEBSOCKET_SERVER, bide_http_reader(self->exchange),
                          bide_http_writer(self->exchange)));
    bide_end();
}

bide_awaiter *bide_http_accept_websocket(opening *operation, bide_http_exchange *exchange,
                                         bide_websocket *websocket,
                                         const bide_websocket_options *options,
                                         const char *protocols)
{
    operation->exchange = exchange;
    operation->websocket = websocket;
    operation->options = *options;
    operation->protocols = protocols;
    return bide_task_init(&operation->task, &accept_websocket_body);
}

/* ---- Clients ---- */

static int ask(opening *self)
{
    bide_http_client *client = self->client;
    int status = bide_websocket_make_key(self->key);
    if (status == 0)
        status = bide_http_client_start_request(client, "GET", self->target, self->host);
    if (status == 0)
        status = bide_http_client_request_upgrade(client, "websocket");
    if (status == 0)
        status = bide_http_client_add(client, "Sec-WebSocket-Version", "13");
    if (status == 0)
        status = bide_http_client_add(client, "Sec-WebSocket-Key", self->key);
    if (status == 0 && self->protocols != NULL)
        status = bide_http_client_add(client, "Sec-WebSocket-Protocol", self->protocols);
    return status;
}

static int check_answer(const opening *self)
{
    const bide_http_client *client = self->client;
    bide_websocket_headers headers = {
        .upgrade = value_of(bide_http_client_field(client, "Upgrade")),
        .connection = value_of(bide_http_client_field(client, "Connection")),
        .accept = value_of(bide_http_client_field(client, "Sec-WebSocket-Accept")),
        .protocol = value_of(bide_http_client_field(client, "Sec-WebSocket-Protocol")),
        .extensions = value_of(bide_http_client_field(client, "Sec-WebSocket-Extensions")),
    };
    return bide_websocket_check_answer(client->response.status, &headers, self->key,
                                       self->protocols);
}

bide_coroutine(open_websocket_body)
{
    bide_begin(open_websocket_body, opening * self);
    self->status = ask(self);
    if (self->status < 0)
        bide_return(self->status);
    bide_try(bide_http_client_recv(self->client));
    self->status = check_answer(self);
    if (self->status < 0)
        bide_return(self->status);
    bide_return(take_over(self, BIDE_WEBSOCKET_CLIENT, bide_http_client_reader(self->client),
                          bide_http_client_writer(self->client)));
    bide_end();
}

bide_awaiter *bide_http_open_websocket(opening *operation, bide_http_client *client,
                                       bide_websocket *websocket,
                                       const bide_websocket_options *options, const char *target,
                                       const char *host, const char *protocols)
{
    operation->client = client;
    operation->websocket = websocket;
    operation->options = *options;
    operation->target = target;
    operation->host = host;
    operation->protocols = protocols;
    return bide_task_init(&operation->task, &open_websocket_body);
}
