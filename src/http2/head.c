/*
 * The heads of requests that are received, and of responses that are sent.
 *
 * Threads: all functions run on the loop's thread, most of them inside a call of nghttp2.
 *
 * Why it is correct:
 * 1. nghttp2 checks the head: lower-case names, valid characters, which fields are allowed and in which
 *    order, and that the body has the announced length. bide_http_transport_start checks what HTTP/1.1
 *    checks beyond that. If there are both "Host" and ":authority", they must be equal: an upstream
 *    server may use either.
 * 2. If a head is too long, nghttp2 still decodes it to its end, because the compression state of later
 *    heads depends on it. Its further fields are not stored.
 * 3. A handler sees what it would see with HTTP/1.1: pieces of a cookie are joined, and ":authority" is
 *    a field "Host".
 * 4. The client takes a 2xx for the acceptance of an extended CONNECT. So one that no handler has upgraded
 *    is answered 501 instead: this server does not speak the protocol there.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

static bide_slice http2_text_of(const char *string)
{
    return (bide_slice){string, strlen(string)};
}

static bool http2_is_same_text(bide_slice one, bide_slice other)
{
    if (one.size != other.size)
        return false;
    for (size_t i = 0; i < one.size; i++) {
        char a = one.data[i], b = other.data[i];
        if (a != b && !((a ^ b) == ' ' && (a | ' ') >= 'a' && (a | ' ') <= 'z'))
            return false;
    }
    return true;
}

/* ---- Requests ---- */

/* Stores a text in the room of the head. Returns false if the head is too long. */
static bool http2_keep_text(http2_stream *stream, bide_slice text, bide_slice *kept)
{
    size_t max = stream->http.server->options.max_head;
    char *room = bide_http_transport_room(&stream->http) + stream->head_size;
    if (text.size > max - stream->head_size)
        return false;
    if (text.size != 0)
        memcpy(room, text.data, text.size);
    *kept = (bide_slice){room, text.size};
    stream->head_size += text.size;
    return true;
}

static void http2_reject(http2_stream *stream, int status)
{
    if (stream->reject_status == 0)
        stream->reject_status = status;
}

static void http2_add_field(http2_stream *stream, bide_slice name, bide_slice value)
{
    bide_http_field *field = &stream->http.fields[stream->field_count];
    if (stream->field_count < stream->http.server->options.max_fields &&
        http2_keep_text(stream, name, &field->name) &&
        http2_keep_text(stream, value, &field->value))
        stream->field_count++;
    else
        http2_reject(stream, 431);
}

/*
 * Appends a piece to a cookie (3). The cookie must be the last stored text, so it is copied to the end
 * if it is not.
 */
static void http2_add_to_cookie(http2_stream *stream, bide_http_field *cookie, bide_slice value)
{
    const char *end = bide_http_transport_room(&stream->http) + stream->head_size;
    bide_slice all = cookie->value, more;
    if ((all.data + all.size != end && !http2_keep_text(stream, cookie->value, &all)) ||
        !http2_keep_text(stream, http2_text_of("; "), &more) ||
        !http2_keep_text(stream, value, &more))
        http2_reject(stream, 431);
    else
        cookie->value = (bide_slice){all.data, all.size + 2 + value.size};
}

static bide_http_field *http2_find_field(const http2_stream *stream, const char *name)
{
    for (size_t i = 0; i < stream->field_count; i++)
        if (bide_http_is(stream->http.fields[i].name, name))
            return &stream->http.fields[i];
    return NULL;
}

void bide_http2_take_field_(http2_stream *stream, bide_slice name, bide_slice value)
{
    bide_http_field *cookie = NULL;
    if (stream->reject_status != 0) /* 2 */
        return;
    if (bide_http_is(name, "cookie"))
        cookie = http2_find_field(stream, "cookie");
    if (cookie != NULL)
        http2_add_to_cookie(stream, cookie, value);
    else if (name.size == 0 || name.data[0] != ':')
        http2_add_field(stream, name, value);
    else if (bide_http_is(name, ":method") && !http2_keep_text(stream, value, &stream->method))
        http2_reject(stream, 431);
    else if (bide_http_is(name, ":path") && !http2_keep_text(stream, value, &stream->path))
        http2_reject(stream, 414);
    else if (bide_http_is(name, ":authority") &&
             !http2_keep_text(stream, value, &stream->authority))
        http2_reject(stream, 431);
    else if (bide_http_is(name, ":protocol") && !http2_keep_text(stream, value, &stream->protocol))
        http2_reject(stream, 431);
}

/* Checks "Host" against ":authority", or adds it: 1, 3. Returns 0 or a status. */
static int http2_resolve_host(http2_stream *stream)
{
    if (stream->authority.data == NULL)
        return 0;
    const bide_http_field *host = http2_find_field(stream, "host");
    if (host != NULL)
        return http2_is_same_text(host->value, stream->authority) ? 0 : 400;
    if (stream->field_count >= stream->http.server->options.max_fields)
        return 431;
    stream->http.fields[stream->field_count++] =
        (bide_http_field){http2_text_of("host"), stream->authority};
    return 0;
}

void bide_http2_end_head_(http2_stream *stream, bool has_ended)
{
    bide_http_transport head = {
        .major = 2,
        .method = stream->method,
        .target = stream->path,
        .authority = stream->authority,
        .length = has_ended ? 0 : BIDE_HTTP_UNKNOWN, /* unless a field announces it */
        .protocol = stream->protocol,
    };
    if (stream->reject_status == 0)
        stream->reject_status = http2_resolve_host(stream);
    head.field_count = stream->field_count;
    int status =
        bide_http_transport_start(&stream->http, &head, stream->head_size, stream->owner->now);
    if (stream->reject_status == 0)
        stream->reject_status = status;
}

void bide_http2_take_trailer_(http2_stream *stream, bide_slice name, bide_slice value)
{
    bide_http_input *input = &stream->http.input;
    if (stream->error != 0 || stream->http.is_upgraded) /* (the memory of fields has texts for logs) */
        return;
    if (stream->trailers == NULL)
        stream->trailers = bide_http2_allocate_for_stream_(stream->owner->http2, HTTP2_TRAILERS);
    if (stream->trailers == NULL) {
        stream->error = -ENOMEM;
    } else if (name.size + value.size > HTTP2_TRAILERS - stream->trailers_size ||
               input->field_count + input->trailer_count >= input->max_fields) {
        stream->error = -EMSGSIZE;
    } else if (!bide_http_transport_is_value(value)) {
        stream->error = -EBADMSG;
    } else {
        char *room = stream->trailers + stream->trailers_size;
        bide_http_field *field = &input->fields[input->field_count + input->trailer_count++];
        memcpy(room, name.data, name.size);
        if (value.size != 0)
            memcpy(room + name.size, value.data, value.size);
        field->name = (bide_slice){room, name.size};
        field->value = (bide_slice){room + name.size, value.size};
        stream->trailers_size += name.size + value.size;
    }
}

/* ---- Responses ---- */

enum { HTTP2_MAX_RESPONSE_FIELDS = 128 };

static uint8_t *http2_bytes_of(const char *data)
{
    __extension__ union {
        const char *read;
        uint8_t *write;
    } pointer = {.read = data};
    return pointer.write; /* (nghttp2 copies the bytes) */
}

bide_slice bide_http2_trim_(bide_slice value)
{
    while (value.size != 0 && (*value.data == ' ' || *value.data == '\t')) {
        value.data++;
        value.size--;
    }
    while (value.size != 0 &&
           (value.data[value.size - 1] == ' ' || value.data[value.size - 1] == '\t'))
        value.size--;
    return value;
}

/*
 * Parses lines up to an empty line or to the end of `data`. Returns the number of fields, including
 * `count` previous ones, or -EMSGSIZE. Names become lower-case in place; the text has no other reader.
 * *size becomes the number of parsed bytes.
 */
static int http2_parse_lines(char *data, size_t *size, nghttp2_nv *fields, int count)
{
    char *at = data;
    char *end = data + *size;
    while (at != end) {
        char *line_end = memchr(at, '\r', (size_t)(end - at));
        char *next = line_end + 2;
        if (line_end == at) {
            at = next;
            break;
        }
        char *colon = memchr(at, ':', (size_t)(line_end - at));
        if (count == HTTP2_MAX_RESPONSE_FIELDS)
            return -EMSGSIZE;
        for (char *letter = at; letter != colon; letter++)
            if (*letter >= 'A' && *letter <= 'Z')
                *letter = (char)(*letter - 'A' + 'a');
        bide_slice value =
            bide_http2_trim_((bide_slice){colon + 2, (size_t)(line_end - colon - 2)});
        fields[count++] = (nghttp2_nv){.name = http2_bytes_of(at),
                                       .namelen = (size_t)(colon - at),
                                       .value = http2_bytes_of(value.data),
                                       .valuelen = value.size,
                                       .flags = NGHTTP2_NV_FLAG_NONE};
        at = next;
    }
    *size = (size_t)(at - data);
    return count;
}

ptrdiff_t bide_http2_submit_head_(http2_stream *stream, char *data, size_t size)
{
    static const char line[] = "HTTP/1.1 ";
    nghttp2_session *session = stream->owner->session;
    nghttp2_data_provider provider = {.source = {.ptr = stream},
                                      .read_callback = bide_http2_give_body_};
    nghttp2_nv fields[HTTP2_MAX_RESPONSE_FIELDS];
    char *status_text = data + sizeof line - 1;
    if (stream->protocol.data != NULL && !stream->http.is_upgraded && *status_text == '2') { /* 4 */
        memcpy(status_text, "501", 3);
        stream->http.exchange->status = 501;
    }
    char *first = (char *)memchr(data, '\n', size) + 1;
    size_t rest = size - (size_t)(first - data);
    fields[0] = (nghttp2_nv){.name = http2_bytes_of(":status"),
                             .namelen = 7,
                             .value = http2_bytes_of(data + sizeof line - 1),
                             .valuelen = 3,
                             .flags = NGHTTP2_NV_FLAG_NONE};
    int count = http2_parse_lines(first, &rest, fields, 1);
    if (count < 0)
        return count;
    size_t head = (size_t)(first - data) + rest;
    bool is_interim = data[sizeof line - 1] == '1';
    bool has_body =
        !stream->is_finished || stream->left != head || stream->http.output.chunk != SIZE_MAX;
    int status = is_interim ? nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, stream->id, NULL,
                                                     fields, (size_t)count, NULL)
                            : nghttp2_submit_response(session, stream->id, fields, (size_t)count,
                                                      has_body ? &provider : NULL);
    bide_http2_note_(stream->owner, status);
    if (status != 0)
        return bide_http2_errno_(status);
    if (!is_interim)
        stream->is_submitted = true;
    return (ptrdiff_t)head;
}

int bide_http2_submit_trailers_(http2_stream *stream, char *data, size_t size)
{
    nghttp2_nv fields[HTTP2_MAX_RESPONSE_FIELDS];
    int count = http2_parse_lines(data, &size, fields, 0);
    if (count < 0)
        return count;
    return nghttp2_submit_trailer(stream->owner->session, stream->id, fields, (size_t)count);
}
