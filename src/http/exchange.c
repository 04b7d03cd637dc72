/*
 * An exchange of a server: from the head of a request to the end of its response.
 *
 *     NOTHING --first field, or end of the head--> HEAD --end of the head--> BODY --> ENDED (output.h)
 *
 * Threads: all functions run on the loop's thread. The handler of the exchange is the only caller
 * until it ends; then the connection loop ends the response.
 *
 * Why it is correct:
 * 1. Until the head of the response ends, nothing of it is sent, so the status line can be replaced
 *    in the buffer. As long as nothing is sent, an error can replace the whole response. An error does not
 *    replace a response that is complete.
 * 2. The end of a body in chunks needs room in the buffer. If there is none, bide_http_end_exchange_
 *    returns -EAGAIN, and its caller flushes and calls it again.
 * 3. If the request's body will not be read to its end, the next head cannot be found. The response
 *    then closes the connection.
 * 4. After an upgrade the other protocol reads into the memory of the request's head. The texts that logs print are
 *    therefore copied to the memory of its fields, which nothing else uses any more.
 */
#define _GNU_SOURCE
#include "server.h"

#include "characters.h"
#include "compress.h"
#include "parse.h"

#include "bide/coroutine.h"
#include "bide/errors.h"

#include <string.h>

/* ---- The head of a request ---- */

static void exchange_set_request(bide_http_exchange *exchange, const http_head *head)
{
    bide_http_request *request = &exchange->request;
    request->method = head->method;
    request->major = 1;
    request->minor = head->minor;
    request->method_name = head->method_name;
    request->target = head->target;
    request->path = head->path;
    request->query = head->query;
    request->host = head->host;
    request->upgrade = head->upgrades && head->minor == 1 ? head->upgrade : (bide_slice){"", 0};
    request->fields = head->fields;
    request->field_count = head->field_count;
    request->length = head->is_chunked                    ? BIDE_HTTP_UNKNOWN
                      : head->length == BIDE_HTTP_UNKNOWN ? 0
                                                          : head->length;
    exchange->status = 200;
    exchange->argument = exchange->server->options.argument;
    exchange->route = NULL;
    exchange->is_chosen = false;
    exchange->count = 0;
    exchange->error = 0;
}

static int exchange_start(bide_http_connection *connection, const http_head *head)
{
    bide_http_server *server = connection->server;
    bide_http_input *input = &connection->input;
    bide_http_output *output = &connection->output;
    const bide_http_request *request = &connection->exchange->request;
    exchange_set_request(connection->exchange, head);
    input->fields = connection->fields;
    input->field_count = head->field_count;
    input->max_fields = server->options.max_fields;
    input->max = server->options.max_body;
    bide_http_input_start_(input, head->is_chunked ? HTTP_FRAMING_CHUNKED : HTTP_FRAMING_LENGTH,
                           request->length);
    input->must_continue = head->expects && head->minor == 1 && request->length != 0;
    bide_assert(head->field_count <= input->max_fields);
    connection->requests++;
    connection->is_old = head->minor == 0;
    connection->closes = head->closes || (connection->is_old && !head->keeps) ||
                         connection->requests == server->options.max_requests;
    bide_http_output_start_(output);
    bide_http_compress_start_(connection);
    output->is_old = connection->is_old;
    output->closes = connection->closes;
    output->has_no_body = head->method == BIDE_HTTP_HEAD;
    server->stats.requests++;
    return request->length != BIDE_HTTP_UNKNOWN && request->length > input->max ? 413 : 0;
}

/* Skips one or two empty lines before a request. */
static void exchange_skip_empty_lines(bide_http_connection *connection)
{
    enum { MAX_LINES = 2 };
    bide_reader *reader = &connection->reader;
    while (connection->lines < MAX_LINES && bide_reader_buffered(reader) >= 2 &&
           memcmp(bide_reader_peek(reader), "\r\n", 2) == 0) {
        bide_reader_consume(reader, 2);
        connection->lines++;
    }
}

int bide_http_take_head_(bide_http_connection *connection)
{
    bide_reader *reader = &connection->reader;
    const bide_http_options *options = &connection->server->options;
    if (connection->scanned == 0)
        exchange_skip_empty_lines(connection);
    const char *data = bide_reader_peek(reader);
    size_t buffered = bide_reader_buffered(reader);
    if (buffered == 0 || (buffered == 1 && *data == '\r'))
        return -EAGAIN;
    if (!http_is_of(*data, HTTP_TOKEN))
        return 400;
    bool is_too_long = buffered >= options->max_head; /* unless its end is there */
    ptrdiff_t size =
        bide_http_find_end_(data, is_too_long ? options->max_head : buffered, &connection->scanned);
    if (size == HTTP_BAD)
        return 400;
    if (size == HTTP_MORE && is_too_long)
        return memchr(data, '\n', options->max_head) == NULL ? 414 : 431;
    if (size == HTTP_MORE)
        return -EAGAIN;
    connection->scanned = 0;
    connection->lines = 0;
    bide_http_input_keep_room_(reader, (size_t)size);
    data = bide_reader_peek(reader);
    http_head head;
    head.fields = connection->fields;
    head.max_fields = options->max_fields;
    head.max_target = options->max_target;
    int status = bide_http_parse_request_(&head, data, (size_t)size);
    if (status != 0)
        return status;
    bide_reader_consume(reader, (size_t)size);
    return exchange_start(connection, &head);
}

/* ---- The head of a response ---- */

static size_t exchange_print_status_line(char line[64], int status)
{
    const char *reason = bide_http_reason(status);
    size_t size = strlen(reason);
    bide_assert(size + 15 <= 64);
    memcpy(line, "HTTP/1.1 ", 9);
    line[9] = (char)('0' + status / 100 % 10);
    line[10] = (char)('0' + status / 10 % 10);
    line[11] = (char)('0' + status % 10);
    line[12] = ' ';
    memcpy(line + 13, reason, size);
    memcpy(line + 13 + size, "\r\n", 2);
    return size + 15;
}

static const char exchange_ok_line[] = "HTTP/1.1 200 OK\r\n";

/* Returns "Date: ...\r\n" for the current second. */
static const char *exchange_date_line(bide_http_server *server)
{
    int64_t second = server->options.clock();
    if (BIDE_UNLIKELY(second != server->second)) {
        server->second = second;
        memcpy(server->date, "Date: ", 6);
        bide_http_print_date(server->date + 6, second);
        memcpy(server->date + 6 + BIDE_HTTP_DATE_SIZE, "\r\n", 2);
    }
    return server->date;
}

/* Puts the status line, with the current status, and the date. */
static bool exchange_start_head(bide_http_exchange *exchange)
{
    bide_http_connection *connection = exchange->connection;
    bide_http_output *output = &connection->output;
    char line[64];
    bool started;
    if (exchange->status == 200)
        started =
            bide_http_output_start_line_(output, exchange_ok_line, sizeof exchange_ok_line - 1);
    else
        started = bide_http_output_start_line_(output, line,
                                               exchange_print_status_line(line, exchange->status));
    connection->started = exchange->status;
    return started && bide_http_output_put_(output, exchange_date_line(exchange->server),
                                            BIDE_HTTP_DATE_SIZE + 8);
}

/* Replaces the status line: the handler changed the status after the head was started. */
static bool exchange_replace_status(bide_http_exchange *exchange)
{
    bide_http_output *output = &exchange->connection->output;
    bide_writer *writer = output->writer;
    char line[64];
    size_t old = exchange_print_status_line(line, exchange->connection->started);
    size_t size = exchange_print_status_line(line, exchange->status);
    if (size > old && !bide_http_output_put_(output, line, size - old))
        return false;
    char *head = writer->buffer + output->head;
    bide_assert(output->state == HTTP_OUTPUT_HEAD && !output->is_sent); /* 1 */
    bide_assert(old <= writer->end - output->head);
    size_t rest = writer->end - output->head - old;
    if (size > old)
        rest -= size - old;
    memmove(head + size, head + old, rest);
    memcpy(head, line, size);
    writer->end = output->head + size + rest;
    exchange->connection->started = exchange->status;
    return true;
}

/* The connection loop may drop the rest of the request's body and read the next request. */
static bool exchange_can_drop_body(const bide_http_input *input)
{
    return !input->must_continue && input->error == 0 &&
           (input->state != HTTP_INPUT_LENGTH || input->left <= HTTP_DROPPED);
}

static int exchange_end_head(bide_http_exchange *exchange, uint64_t length)
{
    bide_http_connection *connection = exchange->connection;
    bide_http_output *output = &connection->output;
    if (output->state > HTTP_OUTPUT_HEAD || exchange->status < 200 || exchange->status > 999)
        return -EINVAL;
    if (output->state == HTTP_OUTPUT_NOTHING && !exchange_start_head(exchange))
        return -EMSGSIZE;
    if (connection->started != exchange->status && !exchange_replace_status(exchange))
        return -EMSGSIZE;
    if (exchange->status == 204 || exchange->status == 304) {
        output->is_bare = true;
        output->has_no_body = true;
    }
    if (exchange->server->is_draining || !exchange_can_drop_body(&connection->input))
        output->closes = true;
    if (exchange->server->options.compression != NULL)
        length = bide_http_compress_head_(exchange, length);
    return bide_http_output_end_head_(output, length);
}

int bide_http_add_slices(bide_http_exchange *exchange, bide_slice name, bide_slice value)
{
    bide_http_output *output = &exchange->connection->output;
    if (bide_http_is(name, "date"))
        return -EINVAL;
    if (output->state == HTTP_OUTPUT_NOTHING && !exchange_start_head(exchange))
        return -EMSGSIZE;
    return bide_http_output_add_(output, name, value);
}

int bide_http_add(bide_http_exchange *exchange, const char *name, const char *value)
{
    return bide_http_add_slices(exchange, http_text_of(name), http_text_of(value));
}

int bide_http_start_response(bide_http_exchange *exchange, uint64_t length)
{
    return exchange_end_head(exchange, length);
}

/* ---- The bodies ---- */

/* Writes bytes of the body, if `status` is not an error. */
static bide_awaiter *exchange_write(bide_http_exchange *exchange, int status, const void *data,
                                    size_t size)
{
    bide_http_connection *connection = exchange->connection;
    if (status < 0)
        return bide_http_output_fail_(&connection->output, status);
    if (connection->encoding != HTTP_ENCODING_NONE)
        return bide_http_compress_write_(connection, data, size);
    return bide_http_output_write_(&connection->output, data, size);
}

bide_awaiter *bide_http_respond(bide_http_exchange *exchange, const void *data, size_t size)
{
    int status = exchange_end_head(exchange, size);
    return exchange_write(exchange, status, data, size);
}

bide_awaiter *bide_http_write(bide_http_exchange *exchange, const void *data, size_t size)
{
    bide_http_output *output = &exchange->connection->output;
    int status =
        output->state < HTTP_OUTPUT_BODY ? exchange_end_head(exchange, BIDE_HTTP_UNKNOWN) : 0;
    return exchange_write(exchange, status, data, size);
}

bide_awaiter *bide_http_flush(bide_http_exchange *exchange)
{
    bide_http_output *output = &exchange->connection->output;
    int status =
        output->state < HTTP_OUTPUT_BODY ? exchange_end_head(exchange, BIDE_HTTP_UNKNOWN) : 0;
    if (status < 0)
        return bide_http_output_fail_(output, status);
    if (exchange->connection->encoding != HTTP_ENCODING_NONE)
        return bide_http_compress_flush_(exchange->connection);
    return bide_http_output_flush_(output);
}

/* The size of an interim response; 0 if a field is invalid. */
static size_t exchange_interim_size(size_t line, const bide_http_field *fields, size_t count)
{
    size_t size = line + 2;
    for (size_t i = 0; i < count; i++) {
        if (!bide_http_is_token_(fields[i].name.data, fields[i].name.size) ||
            !bide_http_is_value_(fields[i].value.data, fields[i].value.size) ||
            bide_http_output_is_framing_(fields[i].name))
            return 0;
        size += fields[i].name.size + fields[i].value.size + 4;
    }
    return size;
}

static void exchange_put(bide_http_output *output, const char *data, size_t size)
{
    bool fits = bide_http_output_put_(output, data, size);
    bide_assert(fits);
    (void)fits;
}

bide_awaiter *bide_http_send_interim(bide_http_exchange *exchange, int status,
                                     const bide_http_field *fields, size_t count)
{
    bide_http_output *output = &exchange->connection->output;
    char line[64];
    if (output->state != HTTP_OUTPUT_NOTHING || status < 102 || status > 199)
        return bide_http_output_fail_(output, -EINVAL);
    size_t line_size = exchange_print_status_line(line, status);
    size_t size = exchange_interim_size(line_size, fields, count);
    if (size == 0)
        return bide_http_output_fail_(output, -EINVAL);
    if (output->is_old)
        return bide_http_output_fail_(output, 0);
    if (!bide_http_output_reserve_(output, size))
        return bide_http_output_fail_(output, -EMSGSIZE);
    exchange_put(output, line, line_size);
    for (size_t i = 0; i < count; i++) {
        exchange_put(output, fields[i].name.data, fields[i].name.size);
        exchange_put(output, ": ", 2);
        exchange_put(output, fields[i].value.data, fields[i].value.size);
        exchange_put(output, "\r\n", 2);
    }
    exchange_put(output, "\r\n", 2);
    return bide_http_output_flush_interim_(output);
}

void bide_http_close_after(bide_http_exchange *exchange)
{
    exchange->connection->closes = true;
    exchange->connection->output.closes = true;
}

int bide_http_add_trailer(bide_http_exchange *exchange, const char *name, const char *value)
{
    if (exchange->connection->encoding != HTTP_ENCODING_NONE)
        return -EINVAL; /* the end of the compressed body is missing */
    return bide_http_output_add_trailer_(&exchange->connection->output, http_text_of(name),
                                         http_text_of(value));
}

static int exchange_read_resume(bide_awaiter *awaiter)
{
    bide_http_connection *connection =
        bide_container_of(awaiter, bide_http_connection, reading.awaiter);
    int status = bide_forward_take(&connection->reading);
    connection->exchange->count = connection->input.count;
    if (http_input_has_ended(&connection->input))
        bide_auto_event_set(&connection->guard.start);
    return status;
}

bide_awaiter *bide_http_read(bide_http_exchange *exchange, void *data, size_t size)
{
    static const bide_wrapper_ops ops = BIDE_FORWARD_OPS(exchange_read_resume, "bide_http_read");
    bide_http_connection *connection = exchange->connection;
    exchange->count = 0;
    return bide_forward_init(&connection->reading, &ops,
                             bide_http_input_read_(&connection->input, data, size));
}

bide_slice bide_http_request_field(const bide_http_exchange *exchange, const char *name)
{
    return bide_http_find(exchange->request.fields, exchange->request.field_count, name);
}

bide_slice bide_http_request_trailer(const bide_http_exchange *exchange, const char *name)
{
    const bide_http_input *input = &exchange->connection->input;
    return bide_http_find(input->fields + input->field_count, input->trailer_count, name);
}

void bide_http_set_deadline(bide_http_exchange *exchange, uint64_t time)
{
    http_watch_exchange_until(&exchange->connection->watch, time);
}

void bide_http_set_half_close(bide_http_exchange *exchange, bool is_allowed)
{
    bide_http_connection *connection = exchange->connection;
    connection->allows_half_close = is_allowed;
    if (!is_allowed && connection->is_handled && connection->reader.has_ended)
        bide_http_abandon_(connection);
}

/* ---- Upgrades ---- */

static bool exchange_put_upgrade(bide_http_exchange *exchange, const char *protocol)
{
    static const char names[] = "Connection: Upgrade\r\nUpgrade: ";
    bide_http_output *output = &exchange->connection->output;
    if (output->state == HTTP_OUTPUT_NOTHING && !exchange_start_head(exchange))
        return false;
    if (exchange->connection->started != exchange->status && !exchange_replace_status(exchange))
        return false;
    return (protocol == NULL || (bide_http_output_put_(output, names, sizeof names - 1) &&
                                 bide_http_output_put_(output, protocol, strlen(protocol)) &&
                                 bide_http_output_put_(output, "\r\n", 2))) &&
           bide_http_output_put_(output, "\r\n", 2);
}

/* Copies the first bytes of a text to *at. */
static bide_slice exchange_keep_text(char **at, const char *end, bide_slice text)
{
    size_t size = (size_t)(end - *at);
    if (size > BIDE_HTTP_UPGRADE_TEXT)
        size = BIDE_HTTP_UPGRADE_TEXT;
    if (size > text.size)
        size = text.size;
    bide_slice kept = {*at, size};
    if (size != 0)
        memcpy(*at, text.data, size);
    *at += size;
    return kept;
}

/* Keeps the texts that logs print, as far as there is room, and no other: 4 */
static void exchange_keep_texts(bide_http_exchange *exchange)
{
    enum { KEPT = 2, ENOUGH = 16 };
    static const char *const names[KEPT] = {"Referer", "User-Agent"};
    bide_http_connection *connection = exchange->connection;
    bide_http_request *request = &exchange->request;
    bide_http_field *fields = connection->fields;
    size_t size = exchange->server->options.max_fields * sizeof *fields;
    bool keeps_fields = exchange->server->options.max_fields >= ENOUGH;
    bide_slice values[KEPT];
    for (size_t i = 0; i < KEPT; i++)
        values[i] = bide_http_request_field(exchange, names[i]);
    const char *end = (char *)fields + size;
    char *at = (char *)(keeps_fields ? fields + KEPT : fields);
    request->method_name = exchange_keep_text(&at, end, request->method_name);
    request->target = exchange_keep_text(&at, end, request->target);
    request->path = request->query = request->host = request->upgrade = (bide_slice){"", 0};
    request->field_count = 0;
    connection->input.field_count = connection->input.trailer_count = 0;
    for (size_t i = 0; keeps_fields && i < KEPT; i++)
        if (values[i].data != NULL)
            fields[request->field_count++] =
                (bide_http_field){http_text_of(names[i]), exchange_keep_text(&at, end, values[i])};
}

bide_awaiter *bide_http_upgrade(bide_http_exchange *exchange, const char *protocol)
{
    bide_http_connection *connection = exchange->connection;
    bide_http_output *output = &connection->output;
    const bide_http_request *request = &exchange->request;
    bool is_asked = protocol == NULL ? request->method == BIDE_HTTP_CONNECT
                                     : request->upgrade.size != 0 &&
                                           bide_http_is_value_(protocol, strlen(protocol));
    if (!is_asked || output->state > HTTP_OUTPUT_HEAD || !http_input_has_ended(&connection->input))
        return bide_http_output_fail_(output, -EINVAL);
    if (request->major != 1) /* the response to an extended CONNECT is that to a CONNECT */
        protocol = NULL;
    exchange->status = protocol == NULL ? 200 : 101;
    if (!exchange_put_upgrade(exchange, protocol))
        return bide_http_output_fail_(output, -EMSGSIZE);
    exchange_keep_texts(exchange);
    output->state = HTTP_OUTPUT_ENDED;
    connection->is_upgraded = true;
    http_watch_exchange_until(&connection->watch, BIDE_FOREVER);
    return bide_http_output_flush_(output);
}

/* ---- The end ---- */

/* The status that reports an error of reading the request; 0 if the handler's error is another. */
static int exchange_status_of_input(const bide_http_input *input, int error)
{
    if (error != input->error && error != input->status)
        return 0;
    return error == -EBADMSG ? 400 : error == -EFBIG ? 413 : error == -EMSGSIZE ? 431 : 0;
}

/* The status that reports an error of the handler. It never blames the client for a message. */
static int exchange_status_of_error(int error)
{
    switch (error) {
    case -ENOENT:
        return 404;
    case -EACCES:
    case -EPERM:
        return 403;
    case -EREMOTEIO: /* an upstream server failed */
        return 502;
    case -ENOMEM:
    case -ENOBUFS:
    case -EMFILE:
    case -ENFILE:
    case -EHOSTDOWN:
        return 503;
    case -ETIMEDOUT: /* an upstream server was too slow; a slow client gets 408 */
        return 504;
    default:
        return 500;
    }
}

/* Replaces the unsent response, if there is one, by a response that contains only its status. */
static int exchange_put_status(bide_http_exchange *exchange, int status)
{
    static const char type[] = "Content-Type: text/plain; charset=utf-8\r\n";
    bide_http_output *output = &exchange->connection->output;
    char line[64];
    size_t size = exchange_print_status_line(line, status) - 9; /* "404 Not Found\r\n" */
    if (output->state != HTTP_OUTPUT_NOTHING)
        output->writer->end = output->head;
    bool closes = output->closes;
    bool is_old = output->is_old;
    bool has_no_body = exchange->request.method == BIDE_HTTP_HEAD;
    bide_http_output_start_(output);
    output->closes = closes;
    output->is_old = is_old;
    output->has_no_body = has_no_body;
    exchange->connection->encoding = HTTP_ENCODING_NONE;
    exchange->connection->may_compress = false;
    exchange->status = status;
    if (!exchange_start_head(exchange) || !bide_http_output_put_(output, type, sizeof type - 1) ||
        exchange_end_head(exchange, size - 1) != 0)
        return -EMSGSIZE;
    line[9 + size - 2] = '\n';
    if (!has_no_body && !bide_http_output_put_(output, line + 9, size - 1))
        return -EMSGSIZE;
    return bide_http_output_count_(output, size - 1);
}

void bide_http_write_rejection_(bide_http_connection *connection, int status)
{
    bide_http_output *output = &connection->output;
    bide_assert(status >= 400 && status <= 599);
    if (connection->state != HTTP_CONNECTION_EXCHANGE) {
        bide_http_output_start_(output);
        connection->exchange->request.method = BIDE_HTTP_OTHER;
    }
    output->closes = true;
    if (exchange_put_status(connection->exchange, status) != 0)
        output->error = -EMSGSIZE;
}

bool bide_http_is_complete_(const bide_http_connection *connection)
{
    const bide_http_output *output = &connection->output;
    return output->error == 0 &&
           (output->state == HTTP_OUTPUT_ENDED || connection->encoding == HTTP_ENCODING_COMPLETE ||
            (output->state == HTTP_OUTPUT_BODY && output->framing == HTTP_FRAMING_LENGTH &&
             (output->left == 0 || output->is_bare)));
}

/* The handler has failed because a read of the request's body has found that the client has left. */
static bool exchange_has_lost_client(const bide_http_input *input, int error)
{
    return (error == -ENODATA && input->error == error) ||
           ((error == -ECONNRESET || error == -EPIPE) && input->status == error);
}

int bide_http_end_exchange_(bide_http_connection *connection, int error)
{
    bide_http_exchange *exchange = connection->exchange;
    bide_http_output *output = &connection->output;
    bide_assert(connection->state == HTTP_CONNECTION_EXCHANGE && !connection->is_upgraded);
    if (error < 0)
        exchange->error = error;
    if (output->error != 0)
        return output->error;
    if (bide_http_is_complete_(connection)) /* 1 */
        return bide_http_output_end_(output);
    if (exchange_has_lost_client(&connection->input, error)) {
        if (output->state < HTTP_OUTPUT_BODY)
            exchange->status = HTTP_CLIENT_LEFT;
        return error;
    }
    if (error < 0 && !output->is_sent) {
        if (connection->input.error != 0)
            output->closes = true;
        int status = exchange_status_of_input(&connection->input, error);
        error =
            exchange_put_status(exchange, status != 0 ? status : exchange_status_of_error(error));
    } else if (error == 0 && output->state < HTTP_OUTPUT_BODY) {
        error = exchange_end_head(exchange, 0);
    }
    if (error < 0)
        return error;
    return bide_http_output_end_(output);
}
