/*
 * Exchanges on the streams of a carrier (extend/http.h). The carrier calls these functions where the
 * connection loop of HTTP/1.1 would act, and does the waiting itself.
 *
 * Threads: all functions run on the loop's thread.
 *
 * Why it is correct:
 * 1. A head that a carrier has parsed obeys the same limits as a head of HTTP/1.1. Targets, hosts
 *    and values are checked again here. A log or an upstream server therefore receives the same
 *    texts, no matter how the request arrived.
 * 2. The body extends to the end of its stream. The carrier checks that its size equals the
 *    announced length.
 * 3. The end of an exchange puts the rest of the response into the writer's buffer, which reserves
 *    room for it (output.c, 1).
 * 4. An extended CONNECT (RFC 8441) is, to a handler, what asks for the same with HTTP/1.1: a GET with an
 *    upgrade. Its stream carries the other protocol, so it has no body. The carrier takes care that no
 *    response of 2xx looks like an upgrade.
 */
#include "bide/extend/http.h"

#include "compress.h"
#include "parse.h"
#include "server.h"

#include "bide/coroutine.h"

#include <errno.h>

bool bide_http_transport_is_value(bide_slice text)
{
    return bide_http_is_value_(text.data, text.size);
}

void bide_http_transport_init(bide_http_connection *connection, bide_http_server *server,
                              bide_stream stream, void *memory, bide_auto_event *nudge)
{
    connection->server = server;
    connection->stream = stream;
    bide_http_init_connection_(connection, memory);
    connection->transport = HTTP_PROTOCOL_NO;
    connection->watch.nudge = nudge;
    connection->output.is_framed = true;
}

/* Reads the length, the host and the expectation from the fields. Returns 0 or a status. */
static int http_transport_check_fields(bide_http_connection *connection,
                                       const bide_http_transport *head, bide_http_request *request,
                                       bool *expects)
{
    for (size_t i = 0; i < head->field_count; i++) {
        const bide_http_field *field = &connection->fields[i];
        bide_slice value = field->value;
        if (!bide_http_is_token_(field->name.data, field->name.size) ||
            !bide_http_is_value_(value.data, value.size))
            return 400;
        if (bide_http_is(field->name, "host")) {
            if (!bide_http_is_host_(value.data, value.size))
                return 400;
            if (request->host.data == NULL)
                request->host = value;
        } else if (bide_http_is(field->name, "content-length")) {
            if (!bide_http_parse_length_(value, &request->length))
                return 400;
        } else if (bide_http_is(field->name, "expect")) {
            *expects = true;
            if (!bide_http_is(value, "100-continue"))
                return 417;
        }
    }
    return 0;
}

/* 1 */
static int http_transport_parse_target(const bide_http_transport *head, size_t max_target,
                                       bide_http_request *request)
{
    bide_slice method = head->protocol.data != NULL ? (bide_slice){"GET", 3} : head->method; /* 4 */
    http_head parts = {.method = bide_http_method_of_(method), .method_name = method};
    bide_slice authority = head->authority;
    request->method = parts.method;
    request->method_name = method;
    parts.target = parts.method == BIDE_HTTP_CONNECT ? head->authority : head->target;
    if (parts.target.size > max_target)
        return 414;
    if (!bide_http_is_token_(method.data, method.size) || parts.target.size == 0 ||
        !bide_http_is_target_(parts.target.data, parts.target.size) ||
        !bide_http_split_target_(&parts, &authority) ||
        (authority.data != NULL && !bide_http_is_host_(authority.data, authority.size)))
        return 400;
    request->target = parts.target;
    request->path = parts.path;
    request->query = parts.query;
    request->host = authority;
    return 0;
}

int bide_http_transport_start(bide_http_connection *connection, const bide_http_transport *head,
                              size_t used, uint64_t now)
{
    bide_http_server *server = connection->server;
    bide_http_exchange *exchange = connection->exchange;
    bide_http_request *request = &exchange->request;
    bide_http_input *input = &connection->input;
    bool expects = false;
    bide_assert(connection->state == HTTP_CONNECTION_FRESH); /* one exchange for each stream */
    bide_assert(used <= server->options.max_head &&
                head->field_count <= server->options.max_fields);
    connection->state = HTTP_CONNECTION_EXCHANGE;
    connection->began = now;
    connection->watch.whole = http_later(now, server->options.request_timeout);
    http_watch_until(&connection->watch, connection->watch.whole);
    exchange->status = 200;
    exchange->argument = server->options.argument;
    exchange->route = NULL;
    exchange->is_chosen = false;
    exchange->count = 0;
    exchange->error = 0;
    request->major = head->major;
    request->minor = 1;
    request->upgrade = head->protocol.data != NULL ? head->protocol : (bide_slice){"", 0};
    request->fields = connection->fields;
    request->field_count = head->field_count;
    request->length = head->length;
    int status = http_transport_parse_target(head, server->options.max_target, request);
    if (status == 0 && head->protocol.data != NULL &&
        (!bide_http_is(head->method, "CONNECT") ||
         !bide_http_is_token_(head->protocol.data, head->protocol.size)))
        status = 400;
    if (status == 0)
        status = http_transport_check_fields(connection, head, request, &expects);
    if (request->method == BIDE_HTTP_CONNECT || head->protocol.data != NULL)
        request->length = 0; /* the tunnel carries its own data */
    connection->reader.begin = used;
    connection->reader.end = used;
    input->fields = connection->fields;
    input->field_count = head->field_count;
    input->max_fields = server->options.max_fields;
    input->max = server->options.max_body;
    bide_http_input_start_(
        input, request->length == BIDE_HTTP_UNKNOWN ? HTTP_FRAMING_CLOSE : HTTP_FRAMING_LENGTH,
        request->length);
    input->must_continue = expects && request->length != 0; /* 2 */
    bide_http_output_start_(&connection->output);
    bide_http_compress_start_(connection);
    connection->output.has_no_body = request->method == BIDE_HTTP_HEAD;
    if (status == 0 && request->length != BIDE_HTTP_UNKNOWN && request->length > input->max)
        status = 413;
    if (status == 0)
        server->stats.requests++;
    return status;
}

bide_awaiter *bide_http_transport_run(bide_http_connection *connection)
{
    return bide_http_begin_handler_(connection);
}

int bide_http_transport_finish(bide_http_connection *connection, int error)
{
    if (connection->is_upgraded)
        return error;
    return bide_http_end_exchange_(connection, error); /* 3 */
}

int bide_http_transport_reject(bide_http_connection *connection, int status)
{
    bide_http_output *output = &connection->output;
    if (bide_http_is_complete_(connection))
        return bide_http_output_end_(output);
    if (output->is_sent || output->error != 0)
        return -EALREADY;
    bide_http_write_rejection_(connection, status);
    return output->error == 0 ? bide_http_output_end_(output) : output->error;
}

void bide_http_transport_report(bide_http_connection *connection, int error)
{
    if (error == -ECONNRESET && connection->output.state < HTTP_OUTPUT_BODY)
        connection->exchange->status = HTTP_CLIENT_LEFT;
    bide_http_report_end_(connection, error);
}

void bide_http_transport_report_refused(bide_http_connection *connection, bide_slice line,
                                        int status)
{
    bide_http_report_refused_(connection, line, status);
}

bide_awaiter *bide_http_transport_serve(bide_http_connection *connection, bide_http_server *server,
                                        bide_stream stream, void *memory, bool is_other_protocol)
{
    bide_awaiter *awaiter = bide_http_serve(connection, server, stream, memory);
    connection->transport = is_other_protocol ? HTTP_PROTOCOL_YES : HTTP_PROTOCOL_NO;
    return awaiter;
}
