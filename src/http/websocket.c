/*
 * The handshake of WebSockets over HTTP. src/websocket/handshake.c checks its fields.
 *
 * Bytes that follow the handshake are in the reader's buffer. The WebSocket starts with these bytes, and
 * uses the same memory unless its options have other buffers.
 *
 * Threads: all functions run on the loop's thread.
 */
#include "bide/http_websocket.h"
#include "bide/websocket_deflate.h"

#include "extensions.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

typedef bide_http_websocket_operation http_websocket_opening;

static bide_websocket_value http_websocket_value(bide_slice text)
{
    bide_websocket_value value = {text.data, text.size};
    return value;
}

/* Hands the connection to the WebSocket. */
static int http_websocket_start(http_websocket_opening *self, bide_websocket_role role,
                                bide_reader *reader, bide_writer *writer)
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
    int status = bide_websocket_init(self->websocket, reader->stream, options);
    if (status == 0 && options->deflate != NULL)
        status = bide_websocket_deflate_start(options->deflate, self->websocket);
    return status;
}

/* ---- Servers ---- */

/* The field occurs on several lines, although it is no list. */
static bool http_websocket_is_repeated(const bide_http_exchange *exchange, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < exchange->request.field_count; i++)
        count += bide_http_is(exchange->request.fields[i].name, name);
    return count > 1;
}

/*
 * Checks that the request opens a WebSocket and computes the key of the response. Returns 0 or an
 * error.
 */
static int http_websocket_check_request(http_websocket_opening *self)
{
    static const char unused[] = "AAAAAAAAAAAAAAAAAAAAAA==";
    bide_http_exchange *exchange = self->exchange;
    const bide_http_request *request = &exchange->request;
    /* (request->upgrade is set only if both fields ask for an upgrade: http.h) */
    bide_websocket_headers headers = {
        .upgrade = http_websocket_value(request->upgrade),
        .connection = {"upgrade", sizeof "upgrade" - 1},
        .version = http_websocket_value(bide_http_request_field(exchange, "Sec-WebSocket-Version")),
        .key = http_websocket_value(bide_http_request_field(exchange, "Sec-WebSocket-Key")),
    };
    if (request->major != 1) /* RFC 8441: HTTP/2 needs no key */
        headers.key = (bide_websocket_value){unused, sizeof unused - 1};
    if (request->method != BIDE_HTTP_GET || request->upgrade.size == 0 ||
        http_websocket_is_repeated(exchange, "Sec-WebSocket-Key") ||
        http_websocket_is_repeated(exchange, "Sec-WebSocket-Version"))
        return -EINVAL;
    return bide_websocket_check_request(&headers, self->key);
}

/* Accepts the first offer of compression, if the options have it. Returns 0 or an error. */
static int http_websocket_add_extension(http_websocket_opening *self)
{
    bide_http_exchange *exchange = self->exchange;
    char answer[BIDE_WEBSOCKET_EXTENSION];
    for (size_t i = 0; self->options.deflate != NULL && i < exchange->request.field_count; i++) {
        const bide_http_field *field = &exchange->request.fields[i];
        if (bide_http_is(field->name, "Sec-WebSocket-Extensions") &&
            bide_websocket_deflate_accept(self->options.deflate, http_websocket_value(field->value),
                                          answer) == 1)
            return bide_http_add(exchange, "Sec-WebSocket-Extensions", answer);
    }
    return 0;
}

static int http_websocket_add_fields(http_websocket_opening *self)
{
    bide_http_exchange *exchange = self->exchange;
    bide_slice name = {"Sec-WebSocket-Protocol", sizeof "Sec-WebSocket-Protocol" - 1};
    bide_websocket_value chosen = {NULL, 0};
    int status = exchange->request.major == 1
                     ? bide_http_add(exchange, "Sec-WebSocket-Accept", self->key)
                     : 0;
    for (size_t i = 0; self->protocols != NULL && i < exchange->request.field_count; i++) {
        const bide_http_field *field = &exchange->request.fields[i];
        if (!bide_http_is(field->name, name.data))
            continue;
        bide_websocket_value one =
            bide_websocket_select_protocol(http_websocket_value(field->value), self->protocols);
        if (one.data != NULL && (chosen.data == NULL || one.data < chosen.data))
            chosen = one; /* (both point into `protocols`) */
    }
    if (status == 0 && chosen.data != NULL)
        status = bide_http_add_slices(exchange, name, (bide_slice){chosen.data, chosen.size});
    return status == 0 ? http_websocket_add_extension(self) : status;
}

bide_coroutine(http_websocket_accept_body)
{
    static const char none[] = "A WebSocket handshake is required.\n";
    bide_begin(http_websocket_accept_body, http_websocket_opening * self);
    self->status = http_websocket_check_request(self);
    if (self->status < 0) {
        self->exchange->status = self->status == -EPROTONOSUPPORT ? 426 : 400;
        bide_http_add(self->exchange, "Content-Type", "text/plain");
        if (self->status == -EPROTONOSUPPORT)
            bide_http_add(self->exchange, "Sec-WebSocket-Version", "13");
        bide_try(bide_http_respond(self->exchange, none, sizeof none - 1));
        bide_return(self->status);
    }
    self->status = http_websocket_add_fields(self);
    if (self->status < 0)
        bide_return(self->status);
    bide_try(bide_http_upgrade(self->exchange, "websocket"));
    bide_return(http_websocket_start(self, BIDE_WEBSOCKET_SERVER, bide_http_reader(self->exchange),
                                     bide_http_writer(self->exchange)));
    bide_end();
}

bide_awaiter *bide_http_accept_websocket(http_websocket_opening *operation,
                                         bide_http_exchange *exchange, bide_websocket *websocket,
                                         const bide_websocket_options *options,
                                         const char *protocols)
{
    operation->exchange = exchange;
    operation->websocket = websocket;
    operation->options = *options;
    operation->protocols = protocols;
    return bide_task_init(&operation->task, &http_websocket_accept_body);
}

/* ---- Clients ---- */

static int http_websocket_put_request(http_websocket_opening *self)
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
    if (status == 0 && self->options.deflate != NULL) {
        char offer[BIDE_WEBSOCKET_EXTENSION];
        bide_websocket_deflate_offer(self->options.deflate, offer);
        status = bide_http_client_add(client, "Sec-WebSocket-Extensions", offer);
    }
    return status;
}

static int http_websocket_check_response(const http_websocket_opening *self)
{
    const bide_http_client *client = self->client;
    bide_websocket_headers headers = {
        .upgrade = http_websocket_value(bide_http_client_field(client, "Upgrade")),
        .connection = http_websocket_value(bide_http_client_field(client, "Connection")),
    };
    bide_websocket_value extensions;
    const bide_http_field *fields = client->response.fields;
    size_t count = client->response.field_count;
    int found = http_find_only(0, fields, count, "sec-websocket-accept", false, &headers.accept);
    found =
        http_find_only(found, fields, count, "sec-websocket-protocol", false, &headers.protocol);
    found = http_find_only(found, fields, count, "sec-websocket-extensions", true, &extensions);
    if (self->options.deflate == NULL)
        headers.extensions = extensions;
    int status =
        bide_websocket_check_answer(client->response.status, &headers, self->key, self->protocols);
    if (status == 0)
        status = found;
    return status == 0 && self->options.deflate != NULL
               ? bide_websocket_deflate_check(self->options.deflate, extensions)
               : status;
}

bide_coroutine(http_websocket_open_body)
{
    bide_begin(http_websocket_open_body, http_websocket_opening * self);
    self->status = http_websocket_put_request(self);
    if (self->status < 0)
        bide_return(self->status);
    bide_try(bide_http_client_recv(self->client));
    self->status = http_websocket_check_response(self);
    if (self->status < 0)
        bide_return(self->status);
    bide_return(http_websocket_start(self, BIDE_WEBSOCKET_CLIENT,
                                     bide_http_client_reader(self->client),
                                     bide_http_client_writer(self->client)));
    bide_end();
}

bide_awaiter *bide_http_open_websocket(http_websocket_opening *operation, bide_http_client *client,
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
    return bide_task_init(&operation->task, &http_websocket_open_body);
}
