/*
 * Requests of the HTTP/2 client.
 *
 * Threads: all functions run on the loop's thread, some of them inside a call of nghttp2.
 *
 * Why it is correct:
 * 1. The texts of the request's fields and those of the response's share their memory: nghttp2 copies the request's
 *    when it is submitted, and a response comes after that. The request's pairs are freed then.
 * 2. Received data goes into a ring that is as large as the stream's window; nghttp2 accepts no more. Until the
 *    server has acknowledged the settings, it may use the default window. So the ring has the larger of both
 *    sizes. A read opens the window of the stream again. The window of the connection is opened as soon
 *    as data arrives, if less than max_unread bytes are held so; otherwise when it is read.
 * 3. The body of a request stays in the caller's memory. nghttp2 copies a part when the windows allow to send
 *    it. A write that is cancelled or destroyed resets the stream and withdraws its bytes, and a request that is
 *    closed has no stream, so nothing refers to them afterwards.
 * 4. A response that has come to its end stays readable, whatever happens to the stream or to the connection:
 *    errors show only where more was to come.
 * 5. Callbacks of nghttp2 set events, which post. No coroutine of a request runs inside a callback.
 * 6. A tunnel (CONNECT) has a body in both directions, once its response is 2xx. Any other response ends its output.
 * 7. A tunnel of another protocol stays in line until the server's settings have come: before that nobody knows whether
 *    it may be sent. The requests behind it pass it. Settings never take the permission back (RFC 8441, 3).
 */
#include "client.h"

#include "bide/coroutine.h"
#include "bide/sleep.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void http2_request_wake(bide_http2_request *request)
{
    bide_single_consumer_auto_event_set(&request->readable);
    bide_single_consumer_auto_event_set(&request->writable);
}

/* ---- Its memory: 1 ---- */

static bide_http_field *http2_request_fields(const bide_http2_request *request)
{
    return (bide_http_field *)(void *)request->memory;
}

static size_t http2_request_fields_size(const bide_http2_client *client)
{
    return client->options.max_fields * sizeof(bide_http_field);
}

/* Room for one more pair. Returns false if memory is exhausted. */
static bool http2_request_make_room(bide_http2_request *request)
{
    if (request->field_count < request->max_pairs)
        return true;
    size_t max = request->max_pairs != 0 ? 2 * request->max_pairs : HTTP2_CLIENT_PAIRS;
    nghttp2_nv *pairs = realloc(request->pairs, max * sizeof *pairs);
    if (pairs == NULL)
        return false;
    request->pairs = pairs;
    request->max_pairs = max;
    return true;
}

static void http2_request_free_pairs(bide_http2_request *request)
{
    free(request->pairs);
    request->pairs = NULL;
    request->max_pairs = 0;
}

/* Room for a text, or NULL. */
static char *http2_request_room(bide_http2_request *request, size_t size)
{
    const bide_http2_client *client = request->client;
    if (size > client->options.max_head - request->text_size)
        return NULL;
    char *room = request->memory + http2_request_fields_size(client) + request->text_size;
    request->text_size += size;
    return room;
}

/* ---- The head ---- */

static char http2_request_lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* Credentials are not to be kept in tables of the compression. */
static uint8_t http2_request_flags(bide_slice name)
{
    return bide_http_is(name, "authorization") || bide_http_is(name, "proxy-authorization") ||
                   bide_http_is(name, "cookie")
               ? NGHTTP2_NV_FLAG_NO_INDEX
               : NGHTTP2_NV_FLAG_NONE;
}

/* Stores a pair in `room`; the name becomes lower-case. */
static nghttp2_nv http2_request_pair(char *room, bide_slice name, bide_slice value)
{
    for (size_t i = 0; i < name.size; i++)
        room[i] = http2_request_lower(name.data[i]);
    if (value.size != 0)
        memcpy(room + name.size, value.data, value.size);
    return (nghttp2_nv){.name = (uint8_t *)room,
                        .namelen = name.size,
                        .value = (uint8_t *)room + name.size,
                        .valuelen = value.size,
                        .flags = http2_request_flags(name)};
}

static int http2_request_put(bide_http2_request *request, bide_slice name, bide_slice value)
{
    if (!http2_request_make_room(request))
        return -ENOMEM;
    char *room = http2_request_room(request, name.size + value.size);
    if (room == NULL)
        return -EMSGSIZE;
    nghttp2_nv *pairs = request->pairs;
    pairs[request->field_count++] = http2_request_pair(room, name, value);
    return 0;
}

static bide_slice http2_request_text(const char *text)
{
    return (bide_slice){text, strlen(text)};
}

static bool http2_request_is_one_of(bide_slice name, const char (*names)[20], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bide_http_is(name, names[i]))
            return true;
    return false;
}

/* May the field stand in a head, or in trailers? */
static bool http2_request_is_field(bide_slice name, bide_slice value)
{
    static const char reserved[][20] = {"host",    "content-length",   "connection",
                                        "upgrade", "keep-alive",       "proxy-connection",
                                        "te",      "transfer-encoding"};
    char lower[256];
    if (name.size == 0 || name.size > sizeof lower || name.data[0] == ':' ||
        http2_request_is_one_of(name, reserved, sizeof reserved / sizeof *reserved))
        return false;
    for (size_t i = 0; i < name.size; i++)
        lower[i] = http2_request_lower(name.data[i]);
    return nghttp2_check_header_name((const uint8_t *)lower, name.size) &&
           bide_http_transport_is_value(value);
}

/* A host and a port, as both target and authority. */
static bool http2_request_is_tunnel(bide_slice target, bide_slice authority)
{
    size_t digits = 0;
    while (digits < authority.size && authority.data[authority.size - 1 - digits] >= '0' &&
           authority.data[authority.size - 1 - digits] <= '9')
        digits++;
    return digits != 0 && digits + 1 < authority.size &&
           authority.data[authority.size - 1 - digits] == ':' && target.size == authority.size &&
           memcmp(target.data, authority.data, target.size) == 0;
}

static bool http2_request_is_valid(bide_slice method, bide_slice protocol, bide_slice target,
                                   bide_slice authority)
{
    if (method.size == 0 || target.size == 0 || authority.size == 0)
        return false;
    if (protocol.data != NULL
            ? target.data[0] != '/' ||
                  !nghttp2_check_method((const uint8_t *)protocol.data, protocol.size)
        : method.size == 7 && memcmp(method.data, "CONNECT", 7) == 0
            ? !http2_request_is_tunnel(target, authority)
            : target.data[0] != '/' && !(target.size == 1 && target.data[0] == '*'))
        return false;
    return nghttp2_check_method((const uint8_t *)method.data, method.size) &&
           nghttp2_check_path((const uint8_t *)target.data, target.size) &&
           nghttp2_check_authority((const uint8_t *)authority.data, authority.size);
}

/* Adds the fields that begin a request. A tunnel has two of them (RFC 9113, 8.5), unless it is of another protocol. */
static int http2_request_put_pseudo(bide_http2_request *request, bide_slice method,
                                    bide_slice protocol, bide_slice target, bide_slice authority)
{
    bool is_bare = request->is_tunnel && !request->is_extended;
    const char *scheme = request->client->options.is_secure ? "https" : "http";
    int status = http2_request_put(request, http2_request_text(":method"), method);
    if (status == 0 && request->is_extended)
        status = http2_request_put(request, http2_request_text(":protocol"), protocol);
    if (status == 0 && !is_bare)
        status =
            http2_request_put(request, http2_request_text(":scheme"), http2_request_text(scheme));
    if (status == 0)
        status = http2_request_put(request, http2_request_text(":authority"), authority);
    if (status == 0 && !is_bare)
        status = http2_request_put(request, http2_request_text(":path"), target);
    return status;
}

/* `protocol` is NULL, or that of an extended CONNECT. */
static int http2_request_init(bide_http2_request *request, bide_http2_client *client,
                              const char *method, const char *protocol, const char *target,
                              const char *authority)
{
    static const char no_content[][20] = {"GET", "HEAD", "OPTIONS", "TRACE", "DELETE"};
    bide_slice method_text = http2_request_text(method);
    bide_slice target_text = http2_request_text(target);
    bide_slice authority_text = http2_request_text(authority);
    bide_slice protocol_text =
        protocol != NULL ? http2_request_text(protocol) : (bide_slice){NULL, 0};
    memset(request, 0, sizeof *request);
    if (!http2_request_is_valid(method_text, protocol_text, target_text, authority_text))
        return -EINVAL;
    if (!bide_http2_client_is_usable(client))
        return -EPIPE;
    request->client = client;
    request->is_tunnel = strcmp(method, "CONNECT") == 0;
    request->is_extended = protocol != NULL;
    request->memory = malloc(http2_request_fields_size(client) + client->options.max_head);
    if (request->memory == NULL)
        return -ENOMEM;
    int status =
        http2_request_put_pseudo(request, method_text, protocol_text, target_text, authority_text);
    if (status < 0) {
        http2_request_free_pairs(request);
        free(request->memory);
        request->memory = NULL;
        return status;
    }
    request->is_head = strcmp(method, "HEAD") == 0;
    request->has_no_content =
        http2_request_is_one_of(method_text, no_content, sizeof no_content / sizeof *no_content);
    request->length = BIDE_HTTP_UNKNOWN;
    request->started_at = BIDE_FOREVER;
    request->reading.request = request->writing.request = request;
    bide_single_consumer_auto_event_init(&request->readable, false);
    bide_single_consumer_auto_event_init(&request->writable, false);
    request->state = HTTP2_REQUEST_HEAD;
    client->open++;
    client->idle_since = BIDE_FOREVER;
    return 0;
}

int bide_http2_request_init(bide_http2_request *request, bide_http2_client *client,
                            const char *method, const char *target, const char *authority)
{
    return http2_request_init(request, client, method, NULL, target, authority);
}

int bide_http2_request_init_protocol(bide_http2_request *request, bide_http2_client *client,
                                     const char *protocol, const char *target,
                                     const char *authority)
{
    return http2_request_init(request, client, "CONNECT", protocol, target, authority);
}

int bide_http2_request_add(bide_http2_request *request, const char *name, const char *value)
{
    bide_slice key = http2_request_text(name), text = bide_http2_trim_(http2_request_text(value));
    if (request->state != HTTP2_REQUEST_HEAD || !http2_request_is_field(key, text))
        return -EINVAL;
    return http2_request_put(request, key, text);
}

static int http2_request_add_length(bide_http2_request *request, uint64_t length)
{
    char digits[20];
    size_t at = sizeof digits;
    if (length == BIDE_HTTP_UNKNOWN || (length == 0 && request->has_no_content))
        return 0;
    do {
        digits[--at] = (char)('0' + length % 10);
        length /= 10;
    } while (length != 0);
    return http2_request_put(request, http2_request_text("content-length"),
                             (bide_slice){digits + at, sizeof digits - at});
}

/* The request stands in line for a stream. */
static void http2_request_enter(bide_http2_request *request)
{
    bide_http2_client *client = request->client;
    request->state = HTTP2_REQUEST_WAITING;
    bide_http2_requests_add_(&client->waiting, request);
    if (client->has_ended || client->refuses || client->error != 0)
        bide_http2_request_end_(request, client->refusal);
    else
        bide_auto_event_set(&client->output_needed);
}

int bide_http2_request_finish_head(bide_http2_request *request, uint64_t length)
{
    if (request->state != HTTP2_REQUEST_HEAD ||
        (request->is_tunnel && length != BIDE_HTTP_UNKNOWN)) /* 6 */
        return -EINVAL;
    int status = http2_request_add_length(request, length);
    if (status < 0)
        return status;
    request->length = length;
    request->is_finished = length == 0;
    http2_request_enter(request);
    return 0;
}

/* Ends the head unless it has ended already. */
static int http2_request_ensure_head_end(bide_http2_request *request, uint64_t length)
{
    if (request->state == HTTP2_REQUEST_CLOSED)
        return -EINVAL;
    return request->state == HTTP2_REQUEST_HEAD ? bide_http2_request_finish_head(request, length)
                                                : 0;
}

int bide_http2_request_set_body(bide_http2_request *request, const void *data, size_t size)
{
    int status = bide_http2_request_finish_head(request, size);
    if (status < 0)
        return status;
    request->source = data;
    request->left = size;
    request->written = size;
    request->is_finished = true;
    return 0;
}

/* ---- Streams ---- */

/* Submits a request. Returns false if there are no streams any more. */
static bool http2_request_submit(bide_http2_request *request, const bide_context *context)
{
    bide_http2_client *client = request->client;
    nghttp2_data_provider body = {.source = {.ptr = NULL},
                                  .read_callback = bide_http2_request_give_body_};
    bool is_bare = request->is_finished && request->left == 0 && request->trailers == NULL;
    int32_t id = nghttp2_submit_request(client->session, NULL, request->pairs, request->field_count,
                                        is_bare ? NULL : &body, request);
    if (id < 0) {
        bide_http2_client_note_(client, id == NGHTTP2_ERR_NOMEM ? id : 0);
        bide_http2_request_end_(request, id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -ECONNREFUSED);
        return id != NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE;
    }
    bide_http2_requests_remove_(&client->waiting, request);
    bide_http2_requests_add_(&client->active, request);
    request->state = HTTP2_REQUEST_ACTIVE;
    request->id = id;
    request->started_at = bide_now(context);
    http2_request_free_pairs(request); /* 1 */
    request->field_count = 0;
    request->text_size = 0;
    return true;
}

void bide_http2_client_start_waiting_(bide_http2_client *client, const bide_context *context)
{
    uint32_t max = nghttp2_session_get_remote_settings(client->session,
                                                       NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    if (max > client->options.max_streams)
        max = client->options.max_streams;
    bool forbids =
        client->has_settings && nghttp2_session_get_remote_settings(
                                    client->session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) != 1;
    bide_http2_request *next;
    for (bide_http2_request *request = client->waiting.first; request != NULL; request = next) {
        bool is_held = client->is_doubted || client->active.count >= max;
        if (is_held && (!forbids || client->waiting.extended == 0))
            break; /* (the list may be long) */
        next = request->next;
        if (request->is_extended && !client->has_settings) /* 7 */
            continue;
        if (request->is_extended && forbids) {
            bide_http2_request_end_(request, -EPROTONOSUPPORT);
        } else if (!is_held && !http2_request_submit(request, context)) {
            bide_http2_client_go_away_(client);
            return;
        }
    }
}

/* A read or a write of it must not find nghttp2 again. */
void bide_http2_request_end_(bide_http2_request *request, int error)
{
    bide_http2_client *client = request->client;
    bide_assert(request->state == HTTP2_REQUEST_WAITING || request->state == HTTP2_REQUEST_ACTIVE);
    bide_http2_requests_remove_(
        request->state == HTTP2_REQUEST_WAITING ? &client->waiting : &client->active, request);
    request->state = HTTP2_REQUEST_ENDED;
    request->source = NULL;
    if (request->error == 0)
        request->error = error;
    http2_request_wake(request);
    bide_auto_event_set(&client->output_needed); /* another may have its stream */
}

void bide_http2_request_abort_(bide_http2_request *request, uint32_t code, int error)
{
    bide_http2_client *client = request->client;
    bide_assert(request->state == HTTP2_REQUEST_ACTIVE);
    (void)nghttp2_session_set_stream_user_data(client->session, request->id, NULL);
    bide_http2_client_note_(
        client, nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, request->id, code));
    bide_http2_request_end_(request, error);
}

/* ---- Its body: 3 ---- */

static int http2_request_submit_trailers(bide_http2_request *request)
{
    nghttp2_nv pairs[HTTP2_CLIENT_TRAILERS];
    size_t count = 0;
    for (size_t at = 0; at != request->trailers_size; count++) {
        bide_slice name = http2_request_text(request->trailers + at);
        bide_slice value = http2_request_text(name.data + name.size + 1);
        char *room = request->trailers + at;
        pairs[count] = (nghttp2_nv){.name = (uint8_t *)room,
                                    .namelen = name.size,
                                    .value = (uint8_t *)room + name.size + 1,
                                    .valuelen = value.size,
                                    .flags = http2_request_flags(name)};
        at += name.size + value.size + 2;
    }
    return nghttp2_submit_trailer(request->client->session, request->id, pairs, count);
}

ssize_t bide_http2_request_give_body_(nghttp2_session *session, int32_t id, uint8_t *buffer,
                                      size_t length, uint32_t *flags, nghttp2_data_source *source,
                                      void *client)
{
    bide_http2_request *request = nghttp2_session_get_stream_user_data(session, id);
    (void)source;
    (void)client;
    if (request == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (request->left == 0 && !request->is_finished)
        return NGHTTP2_ERR_DEFERRED;
    size_t count = length < request->left ? length : request->left;
    if (count != 0)
        memcpy(buffer, request->source, count);
    request->source = count != 0 ? request->source + count : request->source;
    request->left -= count;
    if (request->left != 0)
        return (ssize_t)count;
    bide_single_consumer_auto_event_set(&request->writable);
    if (!request->is_finished)
        return (ssize_t)count;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (request->trailers != NULL) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (http2_request_submit_trailers(request) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)count;
}

/* Has nghttp2 ask for the body again. */
static void http2_request_resume(bide_http2_request *request)
{
    bide_http2_client *client = request->client;
    if (request->state == HTTP2_REQUEST_ACTIVE)
        (void)nghttp2_session_resume_data(client->session, request->id); /* (it may ask already) */
    bide_auto_event_set(&client->output_needed);
}

/* (the other end of a tunnel may end its output before) */
static bool http2_request_wants_no_more(const bide_http2_request *request)
{
    return request->is_tunnel ? request->state == HTTP2_REQUEST_ENDED && request->error == 0
                              : request->input_ended;
}

static int http2_request_start_write(bide_http2_waiting_ *self)
{
    bide_http2_request *request = self->request;
    int status = http2_request_ensure_head_end(request, BIDE_HTTP_UNKNOWN);
    if (status < 0)
        return status;
    if (request->is_finished || (request->is_tunnel && !request->has_response)) /* 6 */
        return self->size == 0 ? 0 : -EINVAL;
    if (self->size > request->length - request->written)
        return -EMSGSIZE;
    if (http2_request_wants_no_more(request))
        return -EPIPE;
    if (request->error != 0)
        return request->error;
    if (self->size == 0)
        return 0;
    bide_assert(request->left == 0); /* one write at a time */
    request->written += self->size;
    request->source = self->source;
    request->left = self->size;
    http2_request_resume(request);
    return 0;
}

/* The write ends before its bytes are taken. */
static void http2_request_withdraw(bide_http2_request *request)
{
    if (request->left == 0 || (request->is_finished && !request->is_tunnel))
        return;
    if (request->state == HTTP2_REQUEST_ACTIVE)
        bide_http2_request_abort_(request, NGHTTP2_CANCEL, -ECANCELED);
    else if (request->state == HTTP2_REQUEST_WAITING)
        bide_http2_request_end_(request, -ECANCELED);
    request->written -= request->left;
    request->left = 0;
    request->source = NULL;
}

bide_coroutine(http2_request_write_body)
{
    bide_begin(http2_request_write_body, bide_http2_waiting_ * self);
    self->status = http2_request_start_write(self);
    if (self->status < 0)
        bide_return(self->status);
    while (self->request->left != 0) {
        if (http2_request_wants_no_more(self->request))
            bide_return(-EPIPE);
        if (self->request->error != 0)
            bide_return(self->request->error);
        bide_try(bide_single_consumer_auto_event_wait(&self->wait, &self->request->writable));
    }
    bide_finally();
    http2_request_withdraw(self->request);
    bide_end();
}

bide_awaiter *bide_http2_request_write(bide_http2_request *request, const void *data, size_t size)
{
    request->writing.request = request;
    request->writing.source = data;
    request->writing.size = size;
    return bide_task_init(&request->writing.task, &http2_request_write_body);
}

int bide_http2_request_add_trailer(bide_http2_request *request, const char *name, const char *value)
{
    bide_slice key = http2_request_text(name), text = bide_http2_trim_(http2_request_text(value));
    size_t size = key.size + text.size + 2;
    if (request->is_tunnel ||
        (request->state != HTTP2_REQUEST_WAITING && request->state != HTTP2_REQUEST_ACTIVE) ||
        request->is_finished || !http2_request_is_field(key, text))
        return -EINVAL;
    if (request->trailers == NULL && (request->trailers = malloc(HTTP2_TRAILERS)) == NULL)
        return -ENOMEM;
    if (size > HTTP2_TRAILERS - request->trailers_size ||
        request->sent_trailers == HTTP2_CLIENT_TRAILERS)
        return -EMSGSIZE;
    char *room = request->trailers + request->trailers_size;
    for (size_t i = 0; i <= key.size; i++)
        room[i] = http2_request_lower(name[i]);
    memcpy(room + key.size + 1, text.data, text.size);
    room[size - 1] = '\0';
    request->trailers_size += size;
    request->sent_trailers++;
    return 0;
}

static void http2_request_end_output(bide_http2_request *request)
{
    if (request->is_finished)
        return;
    request->is_finished = true;
    http2_request_resume(request);
}

/* Ends the request, whose body is complete. */
static int http2_request_finish(bide_http2_request *request)
{
    int status = http2_request_ensure_head_end(request, request->is_tunnel ? BIDE_HTTP_UNKNOWN : 0);
    if (status < 0 || request->is_finished || request->is_tunnel)
        return status;
    if (request->left == 0 &&
        (request->length == BIDE_HTTP_UNKNOWN || request->written == request->length)) {
        request->is_finished = true;
        http2_request_resume(request);
        return 0;
    }
    return request->has_response || request->error != 0 ? 0
                                                        : -EINVAL; /* (the response may be early) */
}

/* ---- The response ---- */

void bide_http2_request_start_head_(bide_http2_request *request)
{
    if (request->has_response)
        return;
    memset(&request->response, 0, sizeof request->response);
    request->response.fields = http2_request_fields(request);
    request->response.length = BIDE_HTTP_UNKNOWN;
    request->field_count = 0;
    request->text_size = 0;
}

/* (nghttp2 has checked the digits) */
static uint64_t http2_request_number(bide_slice digits)
{
    uint64_t number = 0;
    for (size_t i = 0; i < digits.size; i++)
        number = number * 10 + (uint64_t)(digits.data[i] - '0');
    return number;
}

void bide_http2_request_take_field_(bide_http2_request *request, bide_slice name, bide_slice value)
{
    if (name.size != 0 && name.data[0] == ':') {
        request->response.status = (int)http2_request_number(value);
        return;
    }
    size_t index = request->field_count + request->trailer_count;
    char *room = index < request->client->options.max_fields
                     ? http2_request_room(request, name.size + value.size)
                     : NULL;
    if (room == NULL) {
        bide_http2_request_abort_(request, NGHTTP2_CANCEL, -EMSGSIZE);
        return;
    }
    memcpy(room, name.data, name.size);
    if (value.size != 0)
        memcpy(room + name.size, value.data, value.size);
    http2_request_fields(request)[index] =
        (bide_http_field){{room, name.size}, {room + name.size, value.size}};
    if (request->has_response) {
        request->trailer_count++;
        return;
    }
    request->field_count++;
    if (bide_http_is(name, "content-length"))
        request->response.length = http2_request_number(value);
}

/* A head without a body, or a body of a known length. Returns 0 or an error. */
static int http2_request_check_length(bide_http2_request *request, bool has_ended)
{
    bide_http_response *response = &request->response;
    if (request->is_tunnel && response->status < 300) /* (the tunnel's bytes are no content) */
        response->length = BIDE_HTTP_UNKNOWN;
    bool is_bare =
        request->is_head || response->status == 304; /* (the length of a body that is not sent) */
    if (has_ended && !is_bare)
        response->length = 0;
    if (has_ended || is_bare || response->length == BIDE_HTTP_UNKNOWN)
        return 0;
    return response->length > request->client->options.max_body ? -EFBIG : 0;
}

/* The head of a response of 1xx is complete. */
static void http2_request_end_interim(bide_http2_request *request)
{
    if (++request->interim_count > HTTP2_CLIENT_INTERIM) {
        bide_http2_request_abort_(request, NGHTTP2_CANCEL, -EBADMSG);
        return;
    }
    int status = request->response.status;
    if (status == 100)
        request->continues = true;
    if (request->on_informational != NULL) {
        request->response.field_count = request->field_count;
        request->on_informational(request);
        request->response.field_count = 0;
    }
    if (status != 100)
        request->informational = status;
    else if (request->informational != 0) /* a later 100 does not hide it */
        request->response.status = request->informational;
    bide_single_consumer_auto_event_set(&request->readable);
}

void bide_http2_request_end_head_(bide_http2_request *request, bool has_ended)
{
    if (request->has_response) /* trailers */
        return;
    if (request->response.status < 200) {
        http2_request_end_interim(request);
        return;
    }
    request->response.field_count = request->field_count;
    request->continues = false;
    int status = http2_request_check_length(request, has_ended);
    if (status < 0) {
        bide_http2_request_abort_(request, NGHTTP2_CANCEL, status);
        return;
    }
    request->has_response = true;
    bide_single_consumer_auto_event_set(&request->readable);
    if (request->is_tunnel && request->response.status >= 300) /* 6 */
        http2_request_end_output(request);
}

void bide_http2_request_end_input_(bide_http2_request *request)
{
    request->input_ended = true;
    http2_request_wake(request);
}

/* ---- The body of the response: 2 ---- */

/* Opens the connection's window for bytes that are not stored. */
static void http2_request_drop(bide_http2_client *client, size_t size)
{
    if (!client->has_ended && size != 0)
        bide_http2_client_note_(client, nghttp2_session_consume_connection(client->session, size));
}

/* `count` bytes leave the ring. Returns for how many the connection's window is still to be opened. */
static size_t http2_request_give_back(bide_http2_request *request, size_t count)
{
    return bide_http2_ring_settle_(&request->ring, count, &request->client->unread);
}

static bool http2_request_make_ring(bide_http2_request *request)
{
    uint64_t length = request->response.length;
    size_t size = bide_http2_ring_window_(request->client->session, request->id,
                                          request->client->options.window);
    if (length != 0 && length < size)
        size = (size_t)length;
    request->ring.data = malloc(size);
    request->ring.size = size;
    return request->ring.data != NULL;
}

void bide_http2_request_take_body_(bide_http2_request *request, const char *data, size_t size)
{
    bide_http2_client *client = request->client;
    if (request->ring.data == NULL && !http2_request_make_ring(request)) {
        http2_request_drop(client, size);
        bide_http2_request_abort_(request, NGHTTP2_CANCEL, -ENOMEM);
        return;
    }
    uint64_t max = request->is_tunnel ? BIDE_HTTP_UNKNOWN : client->options.max_body;
    if (size > max - request->taken || size > request->ring.size - request->ring.count) {
        http2_request_drop(client, size);
        bide_http2_request_abort_(request, NGHTTP2_CANCEL, -EFBIG);
        return;
    }
    request->taken += size;
    bide_http2_ring_put_(&request->ring, data, size);
    if (size <= client->options.max_unread - client->unread) {
        client->unread += size;
        request->ring.opened += size;
        http2_request_drop(client, size);
    }
    bide_single_consumer_auto_event_set(&request->readable);
}

static size_t http2_request_take(bide_http2_request *request, char *data, size_t size)
{
    bide_http2_client *client = request->client;
    size_t held =
        http2_request_give_back(request, size < request->ring.count ? size : request->ring.count);
    size_t count = bide_http2_ring_take_(&request->ring, data, size);
    if (request->state == HTTP2_REQUEST_ACTIVE)
        bide_http2_client_note_(
            client, nghttp2_session_consume_stream(client->session, request->id, count));
    http2_request_drop(client, held);
    return count;
}

/* ---- Waiting for it: 4 ---- */

/* Returns 0, -EAGAIN, or an error. */
static int http2_request_try_recv(const bide_http2_waiting_ *self)
{
    const bide_http2_request *request = self->request;
    if (request->has_response || (self->is_for_continue && request->continues))
        return 0;
    if (request->error != 0)
        return request->error;
    return request->state == HTTP2_REQUEST_ENDED ? -EBADMSG : -EAGAIN;
}

bide_coroutine(http2_request_recv_body)
{
    bide_begin(http2_request_recv_body, bide_http2_waiting_ * self);
    self->status = self->is_for_continue
                       ? http2_request_ensure_head_end(self->request, BIDE_HTTP_UNKNOWN)
                       : http2_request_finish(self->request);
    if (self->status < 0)
        bide_return(self->status);
    while ((self->status = http2_request_try_recv(self)) == -EAGAIN)
        bide_try(bide_single_consumer_auto_event_wait(&self->wait, &self->request->readable));
    bide_return(self->status);
    bide_end();
}

bide_awaiter *bide_http2_request_recv(bide_http2_request *request)
{
    request->reading.request = request;
    request->reading.is_for_continue = false;
    return bide_task_init(&request->reading.task, &http2_request_recv_body);
}

bide_awaiter *bide_http2_request_continue(bide_http2_request *request)
{
    request->reading.request = request;
    request->reading.is_for_continue = true;
    return bide_task_init(&request->reading.task, &http2_request_recv_body);
}

/* Returns 0, -EAGAIN, or an error. */
static int http2_request_try_read(bide_http2_waiting_ *self)
{
    bide_http2_request *request = self->request;
    if (!request->has_response || self->size == 0)
        return request->error != 0 ? request->error : -EINVAL;
    if (request->ring.count != 0) {
        request->count = http2_request_take(request, self->data, self->size);
        return 0;
    }
    if (request->input_ended)
        return 0;
    if (request->error != 0)
        return request->error;
    return request->state == HTTP2_REQUEST_ENDED ? -ENODATA : -EAGAIN;
}

bide_coroutine(http2_request_read_body)
{
    bide_begin(http2_request_read_body, bide_http2_waiting_ * self);
    while ((self->status = http2_request_try_read(self)) == -EAGAIN)
        bide_try(bide_single_consumer_auto_event_wait(&self->wait, &self->request->readable));
    bide_return(self->status);
    bide_end();
}

bide_awaiter *bide_http2_request_read(bide_http2_request *request, void *data, size_t size)
{
    request->count = 0;
    request->reading.request = request;
    request->reading.data = data;
    request->reading.size = size;
    return bide_task_init(&request->reading.task, &http2_request_read_body);
}

/* ---- A tunnel: 6 ---- */

typedef struct http2_tunnel_operation {
    bide_awaiter awaiter;
    const bide_http2_request *request;
    uint64_t before; /* bytes that were written before, for a write */
    bool is_write;
} http2_tunnel_operation;

static http2_tunnel_operation *http2_tunnel_operation_of(bide_stream_operation *operation)
{
    return (http2_tunnel_operation *)(void *)operation;
}

static bide_awaiter *http2_tunnel_read(bide_stream stream, bide_stream_operation *operation,
                                       void *data, size_t size)
{
    http2_tunnel_operation *self = http2_tunnel_operation_of(operation);
    self->request = stream.object;
    self->is_write = false;
    return bide_http2_request_read(stream.object, data, size);
}

static bide_awaiter *http2_tunnel_write(bide_stream stream, bide_stream_operation *operation,
                                        const void *data, size_t size)
{
    http2_tunnel_operation *self = http2_tunnel_operation_of(operation);
    self->request = stream.object;
    self->before = self->request->written;
    self->is_write = true;
    return bide_http2_request_write(stream.object, data, size);
}

static size_t http2_tunnel_count(const bide_stream_operation *operation)
{
    const http2_tunnel_operation *self = (const http2_tunnel_operation *)(const void *)operation;
    const bide_http2_request *request = self->request;
    return self->is_write ? (size_t)(request->written - request->left - self->before)
                          : request->count;
}

static bide_awaiter *http2_tunnel_end_output(bide_stream stream, bide_stream_operation *operation)
{
    bide_http2_request *request = stream.object;
    if (request->state == HTTP2_REQUEST_CLOSED || !request->is_tunnel || !request->has_response)
        return bide_stream_ended(operation, -EINVAL);
    http2_request_end_output(request);
    return bide_stream_ended(operation, 0);
}

static int http2_tunnel_close(bide_stream stream)
{
    bide_http2_request *request = stream.object;
    if (request->state == HTTP2_REQUEST_ACTIVE)
        bide_http2_request_abort_(request, NGHTTP2_CANCEL, -EPIPE);
    else if (request->state == HTTP2_REQUEST_WAITING)
        bide_http2_request_end_(request, -EPIPE);
    return 0;
}

bide_stream bide_http2_request_stream(bide_http2_request *request)
{
    static const bide_stream_table table = {
        .name = "http2 tunnel",
        .read = http2_tunnel_read,
        .write = http2_tunnel_write,
        .count = http2_tunnel_count,
        .shutdown_output = http2_tunnel_end_output,
        .close = http2_tunnel_close,
    };
    return (bide_stream){&table, request};
}

bide_slice bide_http2_request_field(const bide_http2_request *request, const char *name)
{
    return bide_http_find(request->response.fields, request->response.field_count, name);
}

bide_slice bide_http2_request_trailer(const bide_http2_request *request, const char *name)
{
    if (!request->has_response || request->state == HTTP2_REQUEST_CLOSED)
        return (bide_slice){NULL, 0};
    return bide_http_find(http2_request_fields(request) + request->field_count,
                          request->trailer_count, name);
}

/* ---- Its end ---- */

void bide_http2_request_close(bide_http2_request *request)
{
    bide_http2_client *client = request->client;
    if (request->state == HTTP2_REQUEST_CLOSED)
        return;
    if (request->state == HTTP2_REQUEST_ACTIVE)
        bide_http2_request_abort_(request, NGHTTP2_CANCEL, -ECANCELED);
    else if (request->state == HTTP2_REQUEST_WAITING)
        bide_http2_request_end_(request, -ECANCELED);
    size_t held = http2_request_give_back(request, request->ring.count);
    request->ring.count = 0;
    http2_request_drop(client, held);
    http2_request_free_pairs(request);
    free(request->ring.data);
    free(request->trailers);
    free(request->memory);
    request->ring.data = request->trailers = request->memory = NULL;
    memset(&request->response, 0, sizeof request->response);
    request->state = HTTP2_REQUEST_CLOSED;
    bide_assert(client->open != 0);
    client->open--;
    if (client->open != 0)
        return;
    bide_auto_event_set(&client->output_needed); /* (it may have been the last request) */
    if (client->options.idle_timeout != 0)
        bide_auto_event_set(&client->nudge);
}
