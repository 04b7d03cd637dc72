/*
 * Parses the heads of messages. llhttp splits them; this file rejects what llhttp accepts but a
 * server must not. If a server reads a message differently from a proxy in front of it, it can be made
 * to answer a request that the proxy has not seen.
 *
 * Threads: pure functions; any thread may call them.
 *
 * Why it is correct:
 * 1. A head is parsed once all of it is buffered. The result does not depend on how it was split.
 * 2. The end of a head is searched line by line. Each line ends with "\r\n". A bare "\n" or "\r" is
 *    rejected, and so is a line that begins with a space: it would continue the previous line.
 * 3. The first line is checked byte by byte: one space between its parts, and a version.
 * 4. A name is a token up to its colon. A value contains no control characters.
 * 5. Exactly one field announces the length of a body: one "Content-Length" of digits only, or one
 *    "Transfer-Encoding" that is exactly "chunked".
 * 6. "Host" occurs once and is valid.
 */
#define _GNU_SOURCE
#include "parse.h"

#include "characters.h"

#include "../system/portable.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#if BIDE_HAS_LLHTTP
#include "bide_llhttp.h"
const bool bide_http_is_buffered_ = true;
#else
const bool bide_http_is_buffered_ = false;
#endif

/* ---- The end of a head: 2 ---- */

ptrdiff_t bide_http_find_end_(const char *data, size_t size, size_t *scanned)
{
    size_t begin = *scanned; /* the start of a line */
    for (;;) {
        const char *line = data + begin;
        if (begin < size && begin != 0 && (*line == ' ' || *line == '\t'))
            return HTTP_BAD;
        const char *end = begin < size ? memchr(line, '\n', size - begin) : NULL;
        size_t length = end != NULL ? (size_t)(end - line) : size - begin;
        const char *carriage = length != 0 ? memchr(line, '\r', length) : NULL;
        if (end == NULL) {
            *scanned = begin;
            return carriage != NULL && carriage + 1 != line + length ? HTTP_BAD : HTTP_MORE;
        }
        if (carriage == NULL || carriage + 1 != end)
            return HTTP_BAD;
        begin += length + 1;
        if (length == 1)
            return (ptrdiff_t)begin;
    }
}

/* ---- Parts ---- */

static bool http_all_of(const char *data, size_t size, int class)
{
    for (size_t i = 0; i < size; i++)
        if (!http_is_of(data[i], class))
            return false;
    return true;
}

bool bide_http_is_token_(const char *data, size_t size)
{
    return size != 0 && http_all_of(data, size, HTTP_TOKEN);
}

bool bide_http_is_value_(const char *data, size_t size)
{
    return http_all_of(data, size, HTTP_VALUE);
}

bool bide_http_is_target_(const char *data, size_t size)
{
    return http_all_of(data, size, HTTP_TARGET);
}

bool bide_http_is_literal_(const char *data, size_t size)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (size > 3 && http_lower(data[0]) == 'v') {
        size_t digits = 1;
        while (digits < size && http_is_of(data[digits], HTTP_HEX))
            digits++;
        return digits > 1 && digits + 1 < size && data[digits] == '.' &&
               http_all_of(data + digits + 1, size - digits - 1, HTTP_HOST) &&
               memchr(data, '%', size) == NULL && memchr(data, '[', size) == NULL;
    }
    if (size >= sizeof text)
        return false;
    memcpy(text, data, size);
    text[size] = '\0';
    return strlen(text) == size && inet_pton(AF_INET6, text, &address) == 1;
}

static bool http_is_registered_name(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!http_is_of(data[i], HTTP_HOST) || data[i] == ':' || data[i] == '[' || data[i] == ']')
            return false;
        if (data[i] == '%' && (size - i < 3 || !http_is_of(data[i + 1], HTTP_HEX) ||
                               !http_is_of(data[i + 2], HTTP_HEX)))
            return false;
    }
    return true;
}

static bool http_is_port(const char *data, size_t size)
{
    unsigned long port = 0;
    if (!http_all_of(data, size, HTTP_DIGIT))
        return false;
    for (size_t i = 0; i < size && port <= 65535; i++)
        port = port * 10 + (unsigned long)(data[i] - '0');
    return port <= 65535;
}

/* RFC 3986, 3.2.2 and 3.2.3: a host, and a port, which may be empty. An empty text has neither. */
bool bide_http_is_host_(const char *data, size_t size)
{
    size_t host = 0;
    if (size == 0)
        return true;
    if (data[0] == '[') {
        const char *end = memchr(data, ']', size);
        if (end == NULL || !bide_http_is_literal_(data + 1, (size_t)(end - data) - 1))
            return false;
        host = (size_t)(end - data) + 1;
    } else {
        while (host != size && data[host] != ':')
            host++;
        if (host == 0 || !http_is_registered_name(data, host))
            return false;
    }
    return host == size || (data[host] == ':' && http_is_port(data + host + 1, size - host - 1));
}

bool bide_http_parse_length_(bide_slice text, uint64_t *length)
{
    uint64_t value = 0;
    if (text.size == 0 || text.size > 18 || !http_all_of(text.data, text.size, HTTP_DIGIT))
        return false;
    for (size_t i = 0; i < text.size; i++)
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    *length = value;
    return true;
}

int bide_http_parse_chunk_size_(const char *line, size_t size, uint64_t *chunk)
{
    enum { MAX_DIGITS = 15 };
    uint64_t value = 0;
    size_t digits = 0;
    while (digits < size && http_is_of(line[digits], HTTP_HEX)) {
        char digit = http_lower(line[digits++]);
        if (digits > MAX_DIGITS)
            return -EBADMSG;
        value = value << 4 | (uint64_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    if (digits == 0 || (digits != size && line[digits] != ';') ||
        !bide_http_is_value_(line + digits, size - digits))
        return -EBADMSG;
    *chunk = value;
    return 0;
}

/* Parses the next token of a list and advances the list. Returns false at its end. */
static bool http_next_token(bide_slice *list, bide_slice *token)
{
    const char *at = list->data;
    const char *end = list->data + list->size;
    while (at != end && (*at == ',' || *at == ' ' || *at == '\t'))
        at++;
    token->data = at;
    while (at != end && *at != ',')
        at++;
    list->data = at;
    list->size = (size_t)(end - at);
    while (at != token->data && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    token->size = (size_t)(at - token->data);
    return token->size != 0;
}

bool bide_http_has_token(bide_slice list, const char *token)
{
    bide_slice one;
    while (http_next_token(&list, &one))
        if (bide_http_is(one, token))
            return true;
    return false;
}

/* ---- Methods and targets ---- */

bide_http_method bide_http_method_of_(bide_slice name)
{
    static const char names[BIDE_HTTP_METHODS][8] = {
        "", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"};
    for (int i = 1; i < BIDE_HTTP_METHODS; i++)
        if (name.size < sizeof names[i] && names[i][name.size] == '\0' &&
            memcmp(name.data, names[i], name.size) == 0)
            return (bide_http_method)i;
    return BIDE_HTTP_OTHER;
}

static void http_split_query(http_head *head, bide_slice target)
{
    const char *mark = memchr(target.data, '?', target.size);
    head->path = target;
    head->query.data = NULL;
    head->query.size = 0;
    if (mark != NULL) {
        head->path.size = (size_t)(mark - target.data);
        head->query.data = mark + 1;
        head->query.size = target.size - head->path.size - 1;
    }
}

/* A valid host is followed by a port that is not empty. */
static bool http_has_port(bide_slice host)
{
    const char *colon = portable_find_last(host.data, ':', host.size);
    const char *bracket = portable_find_last(host.data, ']', host.size);
    return colon != NULL && (bracket == NULL || bracket < colon) &&
           colon + 1 != host.data + host.size;
}

/* Handles the four forms: origin, absolute, authority and asterisk. */
bool bide_http_split_target_(http_head *head, bide_slice *authority)
{
    bide_slice target = head->target;
    if (head->method == BIDE_HTTP_CONNECT) {
        *authority = target;
        http_split_query(head, (bide_slice){target.data + target.size, 0});
        return bide_http_is_host_(target.data, target.size) && http_has_port(target);
    }
    if (target.data[0] == '/') {
        http_split_query(head, target);
        return true;
    }
    if (target.size == 1 && target.data[0] == '*' && head->method == BIDE_HTTP_OPTIONS) {
        http_split_query(head, target);
        return true;
    }
    size_t scheme = http_text_starts_with(target, "http://")    ? 7
                    : http_text_starts_with(target, "https://") ? 8
                                                                : 0;
    if (scheme == 0)
        return false;
    authority->data = target.data + scheme;
    authority->size = 0;
    while (authority->size != target.size - scheme && authority->data[authority->size] != '/' &&
           authority->data[authority->size] != '?')
        authority->size++;
    http_split_query(head, (bide_slice){authority->data + authority->size,
                                        target.size - scheme - authority->size});
    if (head->path.size == 0)
        head->path = (bide_slice){"/", 1};
    return authority->size != 0 && bide_http_is_host_(authority->data, authority->size);
}

#if BIDE_HAS_LLHTTP

/* ---- The fields ---- */

/* The state of the parser beside the head that the caller gets. */
typedef struct http_parsing {
    bide_llhttp_t parser; /* must be first */
    http_head *head;
    unsigned hosts;
    unsigned lengths;
    unsigned codings;
    int reject_status; /* a status, or 0 */
    bool is_complete;
    bool is_trailer;
} http_parsing;

static void http_parsing_reject(http_parsing *self, int status)
{
    if (self->reject_status == 0)
        self->reject_status = status;
}

static void http_parsing_note_connection(http_head *head, bide_slice list)
{
    bide_slice token;
    while (http_next_token(&list, &token)) {
        if (bide_http_is(token, "close"))
            head->closes = true;
        else if (bide_http_is(token, "keep-alive"))
            head->keeps = true;
        else if (bide_http_is(token, "upgrade"))
            head->upgrades = true;
    }
}

/* 5 */
static void http_parsing_note_coding(http_parsing *self, bide_slice value)
{
    bide_slice last = {NULL, 0};
    bide_slice list = value;
    size_t count = 0;
    for (bide_slice token; http_next_token(&list, &token); count++)
        last = token;
    self->codings++;
    if (self->codings == 1 && bide_http_is(value, "chunked"))
        self->head->is_chunked = true;
    else if (self->parser.type == HTTP_RESPONSE && self->codings == 1 &&
             (count == 0 || !bide_http_is(last, "chunked")))
        self->head->has_other_coding = true;
    else
        http_parsing_reject(
            self, self->codings == 1 && count > 1 && bide_http_is(last, "chunked") ? 501 : 400);
}

/* Notes a field that determines how the message is read. Fields of requests mean nothing in a response. */
static void http_parsing_note_field(http_parsing *self, const bide_http_field *field)
{
    http_head *head = self->head;
    bool is_request = self->parser.type == HTTP_REQUEST;
    bide_slice name = field->name;
    bide_slice value = field->value;
    switch (name.size) {
    case 4:
        if (is_request && bide_http_is(name, "host")) {
            head->host = value;
            self->hosts++;
            if (!bide_http_is_host_(value.data, value.size))
                http_parsing_reject(self, 400);
        }
        break;
    case 6:
        if (is_request && bide_http_is(name, "expect")) {
            head->expects = true;
            if (!bide_http_is(value, "100-continue"))
                http_parsing_reject(self, 417);
        }
        break;
    case 7:
        if (bide_http_is(name, "upgrade"))
            head->upgrade = value;
        break;
    case 10:
        if (bide_http_is(name, "connection"))
            http_parsing_note_connection(head, value);
        break;
    case 14:
        if (bide_http_is(name, "content-length")) {
            self->lengths++;
            if (!bide_http_parse_length_(value, &head->length))
                http_parsing_reject(self, 400);
        }
        break;
    case 17:
        if (bide_http_is(name, "transfer-encoding"))
            http_parsing_note_coding(self, value);
        break;
    default:
        break;
    }
}

/* ---- Callbacks of llhttp ---- */

static http_parsing *http_parsing_of(bide_llhttp_t *parser)
{
    return (http_parsing *)(void *)parser;
}

static int http_parsing_on_name(bide_llhttp_t *parser, const char *data, size_t size)
{
    http_parsing *self = http_parsing_of(parser);
    http_head *head = self->head;
    if (head->field_count == head->max_fields) {
        http_parsing_reject(self, 431);
        return HPE_USER;
    }
    bide_http_field *field = &head->fields[head->field_count];
    field->name.data = data;
    field->name.size = size;
    field->value.data = data + size;
    field->value.size = 0;
    if (!bide_http_is_token_(data, size)) { /* 4 */
        http_parsing_reject(self, 400);
        return HPE_USER;
    }
    return 0;
}

static int http_parsing_on_value(bide_llhttp_t *parser, const char *data, size_t size)
{
    http_parsing *self = http_parsing_of(parser);
    bide_assert(self->head->field_count < self->head->max_fields);
    bide_http_field *field = &self->head->fields[self->head->field_count];
    while (size != 0 && (data[size - 1] == ' ' || data[size - 1] == '\t'))
        size--;
    field->value.data = data;
    field->value.size = size;
    if (!bide_http_is_value_(data, size)) { /* 4 */
        http_parsing_reject(self, 400);
        return HPE_USER;
    }
    return 0;
}

static int http_parsing_on_value_complete(bide_llhttp_t *parser)
{
    http_parsing *self = http_parsing_of(parser);
    if (!self->is_trailer)
        http_parsing_note_field(self, &self->head->fields[self->head->field_count]);
    self->head->field_count++;
    return 0;
}

static int http_parsing_on_reason(bide_llhttp_t *parser, const char *data, size_t size)
{
    http_parsing *self = http_parsing_of(parser);
    self->head->reason.data = data;
    self->head->reason.size = size;
    return 0;
}

static int http_parsing_on_complete(bide_llhttp_t *parser)
{
    http_parsing_of(parser)->is_complete = true;
    return HPE_PAUSED;
}

static const bide_llhttp_settings_t http_parsing_settings = {
    .on_status = http_parsing_on_reason,
    .on_header_field = http_parsing_on_name,
    .on_header_value = http_parsing_on_value,
    .on_header_value_complete = http_parsing_on_value_complete,
    .on_headers_complete = http_parsing_on_complete,
};

static void http_parsing_start(http_parsing *self, http_head *head, bide_llhttp_type_t type)
{
    bide_llhttp_init(&self->parser, type, &http_parsing_settings);
    self->head = head;
    self->hosts = 0;
    self->lengths = 0;
    self->codings = 0;
    self->reject_status = 0;
    self->is_complete = false;
    self->is_trailer = false;
    bide_http_field *fields = head->fields;
    size_t max_fields = head->max_fields;
    size_t max_target = head->max_target;
    memset(head, 0, sizeof *head);
    head->fields = fields;
    head->max_fields = max_fields;
    head->max_target = max_target;
    head->length = BIDE_HTTP_UNKNOWN;
}

/* ---- Requests ---- */

/* Parses "HTTP/1.1". Returns 0 or the status that rejects it. */
static int http_parse_version(const char *data, size_t size, int *minor)
{
    if (size != 8 || memcmp(data, "HTTP/", 5) != 0 || !http_is_of(data[5], HTTP_DIGIT) ||
        data[6] != '.' || !http_is_of(data[7], HTTP_DIGIT))
        return 400;
    *minor = data[7] - '0';
    return data[5] == '1' && *minor <= 1 ? 0 : 505;
}

/* Parses the first line (3). Returns 0 or the status that rejects it. */
static int http_parse_request_line(http_head *head, const char *data, size_t size)
{
    const char *end = (const char *)memchr(data, '\n', size) - 1;
    const char *space = memchr(data, ' ', (size_t)(end - data));
    if (space == NULL || !bide_http_is_token_(data, (size_t)(space - data)))
        return 400;
    head->method_name = (bide_slice){data, (size_t)(space - data)};
    head->method = bide_http_method_of_(head->method_name);
    const char *target = space + 1;
    space = memchr(target, ' ', (size_t)(end - target));
    if (space == NULL || space == target)
        return 400;
    head->target = (bide_slice){target, (size_t)(space - target)};
    if (head->target.size > head->max_target)
        return 414;
    if (!http_all_of(head->target.data, head->target.size, HTTP_TARGET))
        return 400;
    return http_parse_version(space + 1, (size_t)(end - space - 1), &head->minor);
}

/* 5, 6 */
static int http_parsing_check_request(http_parsing *self, bide_slice authority)
{
    http_head *head = self->head;
    if (self->lengths > 1 || (self->lengths != 0 && self->codings != 0) ||
        (self->codings != 0 && head->minor == 0))
        return 400;
    if (self->hosts > 1 || (self->hosts == 0 && head->minor == 1))
        return 400;
    if (authority.data != NULL)
        head->host = authority;
    return 0;
}

int bide_http_parse_request_(http_head *head, const char *data, size_t size)
{
    http_parsing self;
    bide_slice authority = {NULL, 0};
    http_parsing_start(&self, head, HTTP_REQUEST);
    int status = http_parse_request_line(head, data, size);
    if (status == 0 && !bide_http_split_target_(head, &authority))
        status = 400;
    if (status != 0)
        return status;
    bide_llhttp_errno_t error = bide_llhttp_execute(&self.parser, data, size);
    if (self.reject_status != 0)
        return self.reject_status;
    if (!self.is_complete)
        return error == HPE_INVALID_METHOD ? 501 : 400;
    return http_parsing_check_request(&self, authority);
}

/* ---- Responses and trailers ---- */

/* Parses "HTTP/1.1 200 OK". The phrase may be empty, and the space before it missing. */
static bool http_parse_status_line(http_head *head, const char *data, size_t size)
{
    size_t length = (size_t)((const char *)memchr(data, '\n', size) - data) - 1;
    if (length < 12 || http_parse_version(data, 8, &head->minor) != 0 || data[8] != ' ' ||
        !http_all_of(data + 9, 3, HTTP_DIGIT) || (length > 12 && data[12] != ' ') ||
        !bide_http_is_value_(data + 12, length - 12))
        return false;
    head->status = (data[9] - '0') * 100 + (data[10] - '0') * 10 + (data[11] - '0');
    return head->status >= 100;
}

int bide_http_parse_response_(http_head *head, const char *data, size_t size)
{
    http_parsing self;
    http_parsing_start(&self, head, HTTP_RESPONSE);
    if (!http_parse_status_line(head, data, size))
        return -EBADMSG;
    (void)bide_llhttp_execute(&self.parser, data, size);
    if (self.reject_status == 431)
        return -EMSGSIZE;
    if (!self.is_complete || self.reject_status != 0 || self.lengths > 1 ||
        (self.lengths != 0 && self.codings != 0) || (head->minor == 0 && self.codings != 0))
        return -EBADMSG;
    return 0;
}

int bide_http_parse_trailers_(http_head *head, const char *data, size_t size)
{
    static const char line[] = "GET / HTTP/1.1\r\n";
    http_parsing self;
    http_parsing_start(&self, head, HTTP_REQUEST);
    self.is_trailer = true;
    if (bide_llhttp_execute(&self.parser, line, sizeof line - 1) == HPE_OK)
        (void)bide_llhttp_execute(&self.parser, data, size);
    if (self.reject_status == 431)
        return -EMSGSIZE;
    return self.is_complete && self.reject_status == 0 ? 0 : -EBADMSG;
}

#else

int bide_http_parse_request_(http_head *head, const char *data, size_t size)
{
    (void)head, (void)data, (void)size;
    return 501;
}

int bide_http_parse_response_(http_head *head, const char *data, size_t size)
{
    (void)head, (void)data, (void)size;
    return -ENOTSUP;
}

int bide_http_parse_trailers_(http_head *head, const char *data, size_t size)
{
    (void)head, (void)data, (void)size;
    return -ENOTSUP;
}

#endif
