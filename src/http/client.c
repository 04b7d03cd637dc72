/*
 * An HTTP client: one request at a time on one connection.
 *
 *     IDLE --begin--> REQUEST --receive--> SENT --head--> RESPONSE --end of the body--> IDLE
 *                                           +--bad head--> FAILED
 *
 * Threads: all functions run on the loop's thread.
 *
 * Why it is correct:
 * 1. A head is parsed once all of it is buffered, as in a server (parse.c).
 * 2. The length of the body follows from the request's method, the status, and either
 *    "Content-Length" or "Transfer-Encoding". A response with both is an error.
 * 3. A server may respond without reading the whole request. If sending the body fails, receive
 *    therefore still reads the response.
 * 4. Responses of 1xx are counted for a request, not for a wait: a wait that is cancelled and begun again adds none,
 *    so a server cannot keep a request open with them.
 * 5. A server waits for all of a body whose length it knows. So after less, no response would come: receive fails,
 *    unless bytes of one are there.
 */
#define _GNU_SOURCE
#include "bide/http_client.h"

#include "characters.h"
#include "output.h"
#include "parse.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

enum {
    HTTP_CLIENT_IDLE,
    HTTP_CLIENT_REQUEST,
    HTTP_CLIENT_SENT,
    HTTP_CLIENT_RESPONSE,
    HTTP_CLIENT_FAILED
};
enum { HTTP_CLIENT_MAX_INFORMATIONAL = 32 };

#undef bide_http_client_init
int bide_http_client_init(bide_http_client *client, bide_stream stream, void *memory, size_t size,
                          const bide_http_client_options *options)
{
    static const bide_http_client_options none = {0, 0, 0, 0, false};
    if (!bide_http_is_buffered_)
        return -ENOTSUP;
    client->options = options != NULL ? *options : none;
    options = &client->options;
    if (options->max_fields == 0)
        client->options.max_fields = 64;
    if (options->max_body == 0)
        client->options.max_body = BIDE_HTTP_UNKNOWN;
    if (options->max_fields > size / sizeof(bide_http_field))
        return -EINVAL;
    size_t of_fields = options->max_fields * sizeof(bide_http_field);
    size_t rest = size > of_fields ? size - of_fields : 0;
    if (options->write_buffer_size == 0)
        client->options.write_buffer_size = rest / 4;
    if (options->write_buffer_size < HTTP_MIN_OUTPUT || options->write_buffer_size > rest ||
        rest - options->write_buffer_size < HTTP_MIN_INPUT)
        return -EINVAL;
    size_t input = rest - options->write_buffer_size;
    if (options->max_head == 0 || options->max_head > input - HTTP_ROOM_BEHIND_HEAD)
        client->options.max_head = input - HTTP_ROOM_BEHIND_HEAD;
    if (!options->keeps_delay)
        bide_stream_set_no_delay(stream);
    client->stream = stream;
    client->fields = memory;
    bide_reader_init(&client->reader, stream, (char *)memory + of_fields, input);
    bide_writer_init(&client->writer, stream, (char *)memory + of_fields + input, options->write_buffer_size);
    client->input.reader = &client->reader;
    client->input.watch = NULL;
    client->input.output = &client->output;
    bide_http_output_init_(&client->output, &client->writer, NULL);
    client->output.is_request = true;
    client->receiver.client = client;
    client->on_informational = NULL;
    client->state = HTTP_CLIENT_IDLE;
    client->closes = false;
    client->scanned = 0;
    client->count = 0;
    return 0;
}

/* ---- The request ---- */

/* The whole body was read. This holds at once for a body of length 0. */
static bool http_client_has_read_all(const bide_http_client *client)
{
    return client->state == HTTP_CLIENT_RESPONSE && http_input_has_ended(&client->input);
}

bool bide_http_client_is_reusable(const bide_http_client *client)
{
    return http_client_has_read_all(client) && !client->closes && client->output.error == 0 &&
           client->output.state == HTTP_OUTPUT_ENDED &&
           bide_reader_buffered(&client->reader) == 0 && !client->reader.has_ended;
}

static bool http_client_is_method(bide_slice method, const char *name)
{
    size_t size = strlen(name);
    return method.size == size && memcmp(method.data, name, size) == 0;
}

static bool http_client_has_no_content(bide_slice method)
{
    static const char names[][8] = {"GET", "HEAD", "CONNECT", "OPTIONS", "TRACE", "DELETE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (http_client_is_method(method, names[i]))
            return true;
    return false;
}

int bide_http_client_start_request_slices(bide_http_client *client, bide_slice method,
                                bide_slice target, bide_slice host)
{
    static const char version[] = " HTTP/1.1\r\nHost: ";
    bide_http_output *output = &client->output;
    bide_slice parts[3] = {method, target, host};
    if (client->state != HTTP_CLIENT_IDLE && !bide_http_client_is_reusable(client))
        return -EBUSY;
    if (!bide_http_is_token_(parts[0].data, parts[0].size) || parts[1].size == 0 ||
        !bide_http_is_target_(parts[1].data, parts[1].size) ||
        !bide_http_is_host_(parts[2].data, parts[2].size))
        return -EINVAL;
    bide_http_output_start_(output);
    client->reader.begin = 0;
    client->reader.end = 0;
    client->scanned = 0;
    client->informational = 0;
    client->closes = false;
    client->is_head = http_client_is_method(method, "HEAD");
    client->is_connect = http_client_is_method(method, "CONNECT");
    client->has_no_content = http_client_has_no_content(method);
    if (!bide_http_output_start_line_(output, parts[0].data, parts[0].size) ||
        !bide_http_output_put_(output, " ", 1) ||
        !bide_http_output_put_(output, parts[1].data, parts[1].size) ||
        !bide_http_output_put_(output, version, sizeof version - 1) ||
        !bide_http_output_put_(output, parts[2].data, parts[2].size) ||
        !bide_http_output_put_(output, "\r\n", 2)) {
        client->writer.begin = 0;
        client->writer.end = 0;
        return -EMSGSIZE;
    }
    client->state = HTTP_CLIENT_REQUEST;
    return 0;
}

int bide_http_client_start_request(bide_http_client *client, const char *method, const char *target,
                           const char *host)
{
    return bide_http_client_start_request_slices(client, http_text_of(method), http_text_of(target),
                                       http_text_of(host));
}

int bide_http_client_add_slices(bide_http_client *client, bide_slice name, bide_slice value)
{
    if (client->state != HTTP_CLIENT_REQUEST)
        return -EINVAL;
    return bide_http_output_add_(&client->output, name, value);
}

int bide_http_client_add(bide_http_client *client, const char *name, const char *value)
{
    return bide_http_client_add_slices(client, http_text_of(name), http_text_of(value));
}

void bide_http_client_close_after(bide_http_client *client)
{
    client->output.closes = true;
}

int bide_http_client_request_upgrade(bide_http_client *client, const char *protocol)
{
    static const char connection[] = "Connection: Upgrade\r\n";
    int status = bide_http_client_add(client, "Upgrade", protocol);
    if (status == 0 && !bide_http_output_put_(&client->output, connection, sizeof connection - 1))
        status = -EMSGSIZE;
    return status;
}

int bide_http_client_finish_head(bide_http_client *client, uint64_t length)
{
    if (client->state != HTTP_CLIENT_REQUEST || client->output.state != HTTP_OUTPUT_HEAD)
        return -EINVAL;
    client->output.is_bare = length == 0 && client->has_no_content;
    return bide_http_output_end_head_(&client->output, length);
}

/* Ends the head unless it has ended already. Returns 0 or an error. */
static int http_client_ensure_head_end(bide_http_client *client, uint64_t length)
{
    if (client->state != HTTP_CLIENT_REQUEST)
        return -EINVAL;
    return client->output.state == HTTP_OUTPUT_HEAD ? bide_http_client_finish_head(client, length) : 0;
}

bide_awaiter *bide_http_client_write(bide_http_client *client, const void *data, size_t size)
{
    int status = http_client_ensure_head_end(client, BIDE_HTTP_UNKNOWN);
    return status < 0 ? bide_http_output_fail_(&client->output, status)
                      : bide_http_output_write_(&client->output, data, size);
}

bide_awaiter *bide_http_client_flush(bide_http_client *client)
{
    int status = http_client_ensure_head_end(client, BIDE_HTTP_UNKNOWN);
    return status < 0 ? bide_http_output_fail_(&client->output, status)
                      : bide_http_output_flush_(&client->output);
}

int bide_http_client_add_trailer(bide_http_client *client, const char *name, const char *value)
{
    return bide_http_output_add_trailer_(&client->output, http_text_of(name), http_text_of(value));
}

/* ---- The response ---- */

static bool http_client_has_no_body(const bide_http_client *client, int status)
{
    return client->is_head || status < 200 || status == 204 || status == 304 ||
           (client->is_connect && status < 300);
}

/* 2 */
static int http_client_start_body(bide_http_client *client, const http_head *head)
{
    bide_http_input *input = &client->input;
    enum http_framing framing = HTTP_FRAMING_LENGTH;
    uint64_t length = 0;
    if (!http_client_has_no_body(client, head->status)) {
        if (head->is_chunked)
            framing = HTTP_FRAMING_CHUNKED;
        else if (head->has_other_coding || head->length == BIDE_HTTP_UNKNOWN)
            framing = HTTP_FRAMING_CLOSE;
        else
            length = head->length;
        if (framing == HTTP_FRAMING_LENGTH && length > client->options.max_body)
            return -EFBIG;
    }
    input->fields = client->fields;
    input->field_count = head->field_count;
    input->max_fields = client->options.max_fields;
    input->max = client->options.max_body;
    bide_http_input_start_(input, framing, length);
    client->response.length = framing == HTTP_FRAMING_LENGTH ? length : BIDE_HTTP_UNKNOWN;
    if (client->is_head || head->status == 304) /* (of a body that is not sent) */
        client->response.length = head->length;
    client->closes = client->output.closes || head->closes || (head->minor == 0 && !head->keeps) ||
                     framing == HTTP_FRAMING_CLOSE || head->status == 101 ||
                     (client->is_connect && head->status < 300);
    return 0;
}

static void http_client_set_response(bide_http_client *client, const http_head *head)
{
    bide_http_response *response = &client->response;
    response->status = head->status;
    response->minor = head->minor;
    response->reason = head->reason;
    response->fields = head->fields;
    response->field_count = head->field_count;
}

/* Parses a head from the buffer. Returns 0, -EAGAIN (the head is incomplete), or an error. */
static int http_client_parse_head(bide_http_client *client)
{
    bide_reader *reader = &client->reader;
    const char *data = bide_reader_peek(reader);
    size_t buffered = bide_reader_buffered(reader);
    size_t max = client->options.max_head;
    ptrdiff_t size = buffered != 0 ? bide_http_find_end_(data, buffered, &client->scanned) : HTTP_MORE;
    if (size == HTTP_BAD)
        return -EBADMSG;
    if (size == HTTP_MORE && buffered < max)
        return -EAGAIN;
    if (size == HTTP_MORE || (size_t)size > max)
        return -EMSGSIZE;
    client->scanned = 0;
    bide_http_input_keep_room_(reader, (size_t)size);
    data = bide_reader_peek(reader);
    http_head head;
    head.fields = client->fields;
    head.max_fields = client->options.max_fields;
    head.max_target = 0;
    int status = bide_http_parse_response_(&head, data, (size_t)size);
    if (status != 0)
        return status;
    bide_reader_consume(reader, (size_t)size);
    http_client_set_response(client, &head);
    return http_client_start_body(client, &head);
}

/* A head has come. Returns 0, or -EBADMSG if it is one response of 1xx too many. */
static int http_client_note_informational(bide_http_client *client)
{
    if (client->response.status >= 200 || client->response.status == 101)
        return 0;
    if (client->informational == HTTP_CLIENT_MAX_INFORMATIONAL) /* 4 */
        return -EBADMSG;
    client->informational++;
    if (client->on_informational != NULL)
        client->on_informational(client);
    return 0;
}

static bool http_client_lacks_body(const bide_http_client *client)
{
    const bide_http_output *output = &client->output;
    if (output->error != 0)
        return false;
    return output->framing == HTTP_FRAMING_LENGTH ? output->left != 0 : output->is_unfinished;
}

/*
 * Ends the request. Returns 0, -EAGAIN (the buffer is full: flush it and call again), or an error.
 */
static int http_client_finish_request(bide_http_client *client)
{
    int status = http_client_ensure_head_end(client, 0);
    if (status == 0 && http_client_lacks_body(client) && bide_reader_buffered(&client->reader) == 0) { /* 5 */
        client->state = HTTP_CLIENT_FAILED;
        return -EINVAL;
    }
    return status < 0 ? status : bide_http_output_end_(&client->output);
}

bide_coroutine(http_client_receive_body)
{
    bide_begin(http_client_receive_body, bide_http_receiver_ * self);
    if (self->client->state ==
        HTTP_CLIENT_RESPONSE) /* the response arrived instead of "100 Continue" */
        bide_return(0);
    if (!self->is_for_continue) {
        while (self->client->state == HTTP_CLIENT_REQUEST) {
            self->client->status = http_client_finish_request(self->client);
            if (self->client->status == 0)
                self->client->state = HTTP_CLIENT_SENT;
            else if (self->client->status == -EAGAIN) {
                bide_await_status(self->client->status, bide_http_output_flush_(&self->client->output));
                if (self->client->status < 0 && self->client->output.error == 0)
                    bide_return(self->client->status);
            } else if (self->client->output.error != 0) /* 3 */
                self->client->state = HTTP_CLIENT_SENT;
            else
                bide_return(self->client->status);
        }
        if (self->client->state != HTTP_CLIENT_SENT)
            bide_return(-EINVAL);
    }
    if (self->client->output.error == 0) {
        bide_await_status(self->client->status, bide_http_output_flush_(&self->client->output)); /* 3 */
        if (self->client->status < 0 && self->client->output.error == 0)
            bide_return(self->client->status); /* cancelled: the next receive resumes the flush */
    }
    for (;;) {
        while ((self->client->status = http_client_parse_head(self->client)) == -EAGAIN) {
            self->client->input.base = 0;
            bide_await_status(self->client->status, bide_http_input_fill_(&self->client->input));
            bide_http_input_filled_(&self->client->input, self->client->status);
            if (self->client->status < 0)
                bide_return(self->client->status);
            if (self->client->reader.has_ended)
                bide_return(bide_reader_buffered(&self->client->reader) != 0 ? -ENODATA : -EPIPE);
        }
        if (self->client->status == 0)
            self->client->status = http_client_note_informational(self->client);
        if (self->client->status < 0) {
            self->client->state = HTTP_CLIENT_FAILED;
            bide_return(self->client->status);
        }
        if (self->client->response.status >= 200 || self->client->response.status == 101) {
            self->client->state = HTTP_CLIENT_RESPONSE;
            bide_return(0);
        }
        if (self->client->response.status == 100 && self->is_for_continue) {
            self->client->continues = true;
            bide_return(0);
        }
    }
    bide_end();
}

bide_awaiter *bide_http_client_recv(bide_http_client *client)
{
    client->receiver.is_for_continue = false;
    return bide_task_init(&client->receiver.task, &http_client_receive_body);
}

bide_awaiter *bide_http_client_continue(bide_http_client *client)
{
    int status = http_client_ensure_head_end(client, BIDE_HTTP_UNKNOWN);
    if (status < 0)
        return bide_http_output_fail_(&client->output, status);
    client->receiver.is_for_continue = true;
    client->continues = false;
    return bide_task_init(&client->receiver.task, &http_client_receive_body);
}

static int http_client_read_resume(bide_awaiter *awaiter)
{
    bide_http_client *client = bide_container_of(awaiter, bide_http_client, reading.awaiter);
    int status = bide_forward_take(&client->reading);
    client->count = client->input.count;
    return status;
}

bide_awaiter *bide_http_client_read(bide_http_client *client, void *data, size_t size)
{
    static const bide_wrapper_ops ops =
        BIDE_FORWARD_OPS(http_client_read_resume, "bide_http_client_read");
    client->count = 0;
    if (client->state != HTTP_CLIENT_RESPONSE)
        return bide_http_output_fail_(&client->output, -EINVAL);
    return bide_forward_init(&client->reading, &ops, bide_http_input_read_(&client->input, data, size));
}

bide_slice bide_http_client_field(const bide_http_client *client, const char *name)
{
    return bide_http_find(client->response.fields, client->response.field_count, name);
}

bide_slice bide_http_client_trailer(const bide_http_client *client, const char *name)
{
    const bide_http_input *input = &client->input;
    return bide_http_find(input->fields + input->field_count, input->trailer_count, name);
}
