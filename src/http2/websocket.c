/*
 * WebSockets of the HTTP/2 client (RFC 8441). ../websocket/handshake.c checks the fields: as HTTP/2 has neither a key nor
 * fields of an upgrade, these are put in as a right answer has them.
 *
 * Threads: all functions run on the loop's thread.
 */
#include "bide/http2_websocket.h"

#include "../http/extensions.h"

#include "bide/coroutine.h"
#include "bide/websocket_deflate.h"

#include <errno.h>

typedef bide_http2_websocket_operation http2_websocket_opening;

static int http2_websocket_put_request(http2_websocket_opening *self)
{
    bide_http2_request *request = self->request;
    if (!request->is_extended)
        return -EINVAL;
    int status = bide_http2_request_add(request, "sec-websocket-version", "13");
    if (status == 0 && self->protocols != NULL)
        status = bide_http2_request_add(request, "sec-websocket-protocol", self->protocols);
    if (status == 0 && self->options.deflate != NULL) {
        char offer[BIDE_WEBSOCKET_EXTENSION];
        bide_websocket_deflate_offer(self->options.deflate, offer);
        status = bide_http2_request_add(request, "sec-websocket-extensions", offer);
    }
    return status;
}

static int http2_websocket_check_response(const http2_websocket_opening *self)
{
    static const char key[] = "AAAAAAAAAAAAAAAAAAAAAA==";
    const bide_http2_request *request = self->request;
    bide_websocket_headers headers = {
        .upgrade = {"websocket", sizeof "websocket" - 1},
        .connection = {"upgrade", sizeof "upgrade" - 1},
        .version = {"13", 2},
        .key = {key, sizeof key - 1},
    };
    char accept[BIDE_WEBSOCKET_ACCEPT + 1];
    bide_websocket_value extensions;
    const bide_http_field *fields = request->response.fields;
    size_t count = request->response.field_count;
    int found =
        http_find_only(0, fields, count, "sec-websocket-protocol", false, &headers.protocol);
    found = http_find_only(found, fields, count, "sec-websocket-extensions", true, &extensions);
    if (request->response.status >= 300)
        return -ECONNREFUSED;
    int status = bide_websocket_check_request(&headers, accept);
    bide_assert(status == 0);
    headers.accept = (bide_websocket_value){accept, BIDE_WEBSOCKET_ACCEPT};
    if (self->options.deflate == NULL)
        headers.extensions = extensions;
    if (status == 0)
        status = bide_websocket_check_answer(101, &headers, key, self->protocols);
    if (status == 0)
        status = found;
    return status == 0 && self->options.deflate != NULL
               ? bide_websocket_deflate_check(self->options.deflate, extensions)
               : status;
}

static int http2_websocket_start(http2_websocket_opening *self)
{
    bide_websocket_options *options = &self->options;
    options->role = BIDE_WEBSOCKET_CLIENT;
    options->initial = NULL;
    options->initial_size = 0;
    int status =
        bide_websocket_init(self->websocket, bide_http2_request_stream(self->request), options);
    if (status == 0 && options->deflate != NULL)
        status = bide_websocket_deflate_start(options->deflate, self->websocket);
    return status;
}

bide_coroutine(http2_websocket_open_body)
{
    bide_begin(http2_websocket_open_body, http2_websocket_opening * self);
    self->status = http2_websocket_put_request(self);
    if (self->status < 0)
        bide_return(self->status);
    bide_try(bide_http2_request_recv(self->request));
    self->status = http2_websocket_check_response(self);
    if (self->status < 0)
        bide_return(self->status);
    bide_return(http2_websocket_start(self));
    bide_end();
}

bide_awaiter *bide_http2_open_websocket(http2_websocket_opening *operation,
                                        bide_http2_request *request, bide_websocket *websocket,
                                        const bide_websocket_options *options,
                                        const char *protocols)
{
    operation->request = request;
    operation->websocket = websocket;
    operation->options = *options;
    operation->protocols = protocols;
    return bide_task_init(&operation->task, &http2_websocket_open_body);
}
